"""Plays every console transcript in `transcripts/`."""

from pathlib import Path

import pytest

from tests.cli.transcript import Player, matches, steps
from tests.e2e.kmem import Machine

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_console_shows(path: Path, machine: Machine) -> None:
    Player(machine).play(path.read_text(encoding="utf-8"))


def test_every_command_is_shown_somewhere() -> None:
    from typer.main import get_command

    from kite_memory.cli.main import app

    typed = {" ".join(words[: words.index("kmem") + 3]) for step in every_step() if "kmem" in (words := step.split())}

    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]  # typer's group has them
        names = [f"{name} {inner}" for inner in getattr(command, "commands", {})] or [name]
        for each in names:
            assert any(f"kmem {each}" in line for line in typed), each


def every_step() -> list[str]:
    return [step.command for path in TRANSCRIPTS for step in steps(path.read_text(encoding="utf-8"))]


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
