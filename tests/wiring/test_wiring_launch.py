"""What others who start us hand on of our environment."""

from pathlib import Path

import pytest

from kite_memory import config
from kite_memory.wiring.launch import daemon_environment


def test_a_daemon_elsewhere_reads_the_places_that_a_command_here_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setenv("CODEX_HOME", "~/codex")
    monkeypatch.setenv("COPILOT_HOME", "copilot")
    settings = config.load()

    handed_on = daemon_environment(settings)

    assert handed_on["CODEX_HOME"] == str(tmp_path / "ada" / "codex") == str(settings.codex_root)
    assert handed_on["COPILOT_HOME"] == str(tmp_path / "copilot")
