"""What others who start us hand on of our environment."""

import sys
from pathlib import Path

import pytest

from kite_memory import config
from kite_memory.wiring.launch import daemon_environment, link_commands, unlink_commands


def test_a_daemon_elsewhere_reads_the_places_that_a_command_here_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setenv("CODEX_HOME", "~/codex")
    monkeypatch.setenv("COPILOT_HOME", "copilot")
    settings = config.load()

    handed_on = daemon_environment(settings)

    assert handed_on["CODEX_HOME"] == str(tmp_path / "ada" / "codex") == str(settings.codex_root)
    assert handed_on["COPILOT_HOME"] == str(tmp_path / "copilot")


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
