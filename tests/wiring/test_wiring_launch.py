"""What others who start us hand on of our environment."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kite_memory import config
from kite_memory.wiring.daemon import service_of
from kite_memory.wiring.launch import daemon_environment, link_commands, service_command, unlink_commands
from tests.app.test_app_operations import config_in

CHOICES = {"KMEM_JUDGE": "off"}


def test_a_daemon_elsewhere_reads_the_places_that_a_command_here_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setenv("CODEX_HOME", "~/codex")
    monkeypatch.setenv("COPILOT_HOME", "copilot")
    settings = config.load()

    handed_on = daemon_environment(settings)

    assert handed_on["CODEX_HOME"] == str(tmp_path / "ada" / "codex") == str(settings.codex_root)
    assert handed_on["COPILOT_HOME"] == str(tmp_path / "copilot")


def test_what_moves_an_agent_s_folder_is_handed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read = set(re.findall(r'environ\.get\("([A-Z_]+)"', Path(config.__file__).read_text(encoding="utf-8"))) - {"APPDATA"}
    for name in read:
        monkeypatch.setenv(name, str(tmp_path / name.lower()) if name not in CHOICES else CHOICES[name])

    assert read - daemon_environment(config.load()).keys() == set()


@pytest.mark.parametrize(
    ("target", "writable"), [("/mnt/shared/kite", True), ("git@git.example.org:ada/kite.git", False), ("", False)]
)
def test_the_service_may_write_to_the_folder_of_the_exchange(tmp_path: Path, target: str, writable: bool) -> None:
    made = replace(config_in(tmp_path), sync=config.SyncConfig(target=target))

    service, _ = service_of(made)

    assert (Path("/mnt/shared/kite") in service.writable) is writable


@pytest.mark.parametrize(("platform", "name"), [("win32", "pythonw.exe"), ("linux", "python.exe")])
def test_a_task_of_windows_opens_no_window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, name: str) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python.exe"))
    without = service_command()
    (tmp_path / "pythonw.exe").touch()
    monkeypatch.setattr(sys, "platform", platform)

    assert Path(without[0]).name == "python.exe"
    assert service_command() == (str(tmp_path / name), *without[1:])


@pytest.mark.skipif(sys.platform == "win32", reason="a task has the user's lasting variables")
def test_a_service_that_runs_claude_finds_it_where_this_shell_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/home/ada/.local/bin:/usr/bin")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    made = config_in(tmp_path)

    with_rules, with_claude = (
        service_of(replace(made, extractor=config.ExtractorConfig(name=name)))[0].environment for name in ("offline", "claude-cli")
    )

    assert with_claude["PATH"] == "/home/ada/.local/bin:/usr/bin"
    assert with_claude["HTTPS_PROXY"] == with_rules["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert "PATH" not in with_rules


def test_links_of_an_installer_are_not_ours_to_remove(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment = tmp_path / "tools" / "kite-memory"
    (environment / "bin").mkdir(parents=True)
    for name in ("python", "kmem", "kmem-hook"):
        (environment / "bin" / name).touch()
    monkeypatch.setattr(sys, "executable", str(environment / "bin" / "python"))
    monkeypatch.setattr(sys, "prefix", str(environment))
    monkeypatch.setenv("PATH", "")
    links = link_commands(tmp_path)
    (environment / "uv-receipt.toml").touch()

    assert unlink_commands(tmp_path) == ()
    (environment / "uv-receipt.toml").unlink()
    assert unlink_commands(tmp_path) == links
    assert not any(link.is_symlink() for link in links)


def test_a_daemon_without_a_console_ends_with_the_same_code(tmp_path: Path) -> None:
    """As under Windows' program that opens no window."""
    (tmp_path / "config.toml").write_text("= 1")
    start = "import runpy, sys; sys.stderr = {}; sys.argv[1:] = ['daemon']; runpy.run_module('kite_memory', run_name='__main__')"

    codes = [
        subprocess.run(
            [sys.executable, "-c", start.format(console)], env={**os.environ, "KMEM_HOME": str(tmp_path)}, capture_output=True
        ).returncode
        for console in ("sys.stderr", "None")
    ]

    assert codes == [2, 2]
