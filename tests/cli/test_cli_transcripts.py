"""Plays every console transcript in `transcripts/`."""

import sys
from pathlib import Path

import pytest

from tests.cli.commands import every_command
from tests.cli.transcript import Player, matches, steps
from tests.e2e.kmem import Machine

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_console_shows(path: Path, machine: Machine) -> None:
    if path.stem == "service" and sys.platform != "linux":
        pytest.skip("units are systemd's")

    Player(machine).play(path.read_text(encoding="utf-8"))


def test_every_command_is_shown_somewhere() -> None:
    typed = "\n".join(step.command for path in TRANSCRIPTS for step in steps(path.read_text(encoding="utf-8")))

    missing = [name for name, _ in every_command() if f"kmem {name}" not in typed]

    assert missing == []


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["a"], ["a", "b"], False),
        (["a…c"], ["abc"], True),
        (["a…c"], ["ac"], True),
        (["a…c"], ["ab", "c"], False),
        (["a", "…", "c"], ["a", "c"], True),
        (["a", "…", "c"], ["a", "b", "b", "c"], True),
        (["…"], [], True),
        (["[x]"], ["x"], False),
    ],
)
def test_an_ellipsis_stands_for_any_text(expected: list[str], actual: list[str], same: bool) -> None:
    assert matches(expected, actual) is same
