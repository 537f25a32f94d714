"""Which Claude Code is installed, as its several installers leave it on the disk."""

import json
from pathlib import Path

import pytest

from kite_memory.agents.claude_code import claude_version


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    return str(path)


def npm_package(folder: Path, version: object = "2.1.328", name: str = "@anthropic-ai/claude-code") -> Path:
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}), encoding="ascii")
    return folder


def linked(tmp_path: Path, to: str) -> str:
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "claude"
    link.symlink_to(to)
    return str(link)


@pytest.mark.parametrize("where", ["bin/claude.exe", "cli.js"])
def test_npm_says_it_in_the_package_and_not_in_the_path(tmp_path: Path, where: str) -> None:
    package = npm_package(tmp_path / "node" / "22.1.0" / "lib" / "node_modules" / "@anthropic-ai" / "claude-code")

    assert claude_version(linked(tmp_path, program(package / where))) == (2, 1, 328)


def test_its_own_installer_names_the_program_by_its_version(tmp_path: Path) -> None:
    at = program(tmp_path / "share" / "claude" / "versions" / "2.1.99")

    assert claude_version(linked(tmp_path, at)) == (2, 1, 99)


def test_homebrew_names_the_folder_by_its_version(tmp_path: Path) -> None:
    assert claude_version(linked(tmp_path, program(tmp_path / "Caskroom" / "claude-code" / "2.1.120" / "claude"))) == (2, 1, 120)


@pytest.mark.parametrize("version", ["latest", "", None, 7, "2.1", "2.1.x"])
def test_a_package_that_does_not_say_is_not_known(tmp_path: Path, version: object) -> None:
    package = npm_package(tmp_path / "claude-code", version)

    assert claude_version(program(package / "bin" / "claude")) is None


def test_somebody_elses_program_of_that_name_is_not_known(tmp_path: Path) -> None:
    package = npm_package(tmp_path / "other", "1.0.0", name="claude-of-somebody-else")

    assert claude_version(program(package / "bin" / "claude")) is None


def test_without_one_there_is_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert claude_version() is None


def test_a_link_that_leads_round_in_a_circle_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "claude").symlink_to(tmp_path / "claude")

    assert claude_version(str(tmp_path / "claude")) is None
