"""One note after the other, with somebody at the terminal."""

import json
import re
import sys
import time
from typing import Any

import pytest

from kite_memory.cli import reviewing, vault
from tests.cli.terminal import at_a_terminal
from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals of unix")

MEMORIES = ("The staging server has 8 GB of memory, and a disk named Vesta", "Ada prefers tabs", "Bob is away in May")
STANDING = "The staging server has 8 GB of memory and two cores."
ASKS = "[q]uit: "


@pytest.fixture
def waiting(machine: Machine) -> Machine:
    """Three notes wait, and a fourth is near one of them."""
    file = machine.home / "mem0.json"
    file.write_text(json.dumps([{"id": str(number), "memory": text} for number, text in enumerate(MEMORIES)]))
    for arguments in (["remember", STANDING, "--project", "orchard"], ["import", "mem0.json", "--project", "orchard"]):
        ran = in_this_process(machine, arguments, cwd=machine.home)
        assert ran.code == 0, ran.err
    return machine


def statuses(machine: Machine) -> dict[str, str]:
    found: dict[str, str] = {}
    for note in machine.notes():
        text = note.read_text(encoding="utf-8")
        found[next(line for line in text.splitlines() if line.startswith("title: "))] = text
    return {title.partition(": ")[2].strip('"'): re.findall(r"^status: (\w+)", text, re.M)[0] for title, text in found.items()}


def test_each_is_shown_and_decided_by_a_key(waiting: Machine) -> None:
    seen = at_a_terminal(waiting, ["review"], typed=[("1 of 3", b"x\na\n"), ("2 of 3", b"r\n"), ("3 of 3", b"m\n")])

    assert seen.code == 0, seen.screen
    assert "+ The staging server has 8 GB of memory, and a disk named Vesta" in seen.screen
    assert seen.coloured
    assert "1 accepted, 1 rejected, 1 merged" in seen.screen
    assert sorted(statuses(waiting).values()) == ["accepted", "accepted", "rejected", "superseded"]


def test_leaving_and_skipping_decide_nothing(waiting: Machine) -> None:
    seen = at_a_terminal(waiting, ["review"], typed=[("1 of 3", b"s\n"), ("2 of 3", b"q\n")])

    assert seen.code == 0, seen.screen
    assert "1 skipped" in seen.screen
    assert sorted(statuses(waiting).values()) == ["accepted", "proposed", "proposed", "proposed"]


def test_what_is_edited_is_shown_again_and_then_decided(waiting: Machine) -> None:
    editor = waiting.home / "bin" / "edit"
    editor.parent.mkdir(exist_ok=True)
    editor.write_text('#!/bin/sh\nsed -i "s/tabs/spaces/" "$1"\n')
    editor.chmod(0o700)
    waiting.environment["EDITOR"] = "edit"

    seen = at_a_terminal(waiting, ["review"], typed=[("1 of 3", b"e\n"), ("prefers spaces", b"a\nq\n")])

    assert seen.code == 0, seen.screen
    assert "1 accepted" in seen.screen
    (note,) = [note for note in waiting.notes() if "spaces" in note.read_text()]
    assert "status: accepted" in note.read_text()


def test_an_editor_that_does_not_start_ends_nothing(waiting: Machine) -> None:
    waiting.environment["EDITOR"] = "no-such-editor"

    seen = at_a_terminal(waiting, ["review"], typed=[("1 of 3", b"a\n"), ("2 of 3", b"e\n"), ("no-such-editor", b"r\nq\n")])

    assert seen.code == 0, seen.screen
    assert "1 accepted, 1 rejected" in seen.screen


def test_what_was_judged_before_an_error_is_reported(waiting: Machine) -> None:
    first, second, *_ = json.loads(in_this_process(waiting, ["review", "--json"], cwd=waiting.home).out)["notes"]

    plain, as_json = (
        in_this_process(waiting, ["review", "--accept", note["path"], "--accept", "nothing", *flags], cwd=waiting.home)
        for note, flags in ((first, []), (second, ["--json"]))
    )

    assert (plain.code, as_json.code) == (1, 1)
    assert plain.out == f"accepted {first['path']}\n"
    assert [each["path"] for each in json.loads(as_json.out)["done"]] == [second["path"]]


def test_the_end_of_the_input_is_a_leave(waiting: Machine) -> None:
    seen = at_a_terminal(waiting, ["review"], typed=[("1 of 3", b"\x04")])

    assert seen.code == 0, seen.screen
    assert "nothing was decided" in seen.screen


def test_a_consolidation_of_which_nothing_can_be_reverted_does_not_stand_before_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    def perform(name: str, *, dry_run: bool = False) -> dict[str, Any]:
        asked.append(dry_run)
        left = {"left_alone": ["facts/gate.md"], "page": False}
        return {"at": "2026-03-01T08:00:00+00:00", "steps": [], **left} if dry_run else {"undone": 0, "git": "", **left}

    monkeypatch.setattr(vault, "perform", perform)
    monkeypatch.setattr(vault, "is_interactive", lambda: True)

    vault.undo()

    assert asked == [True, False]
    assert capsys.readouterr().err.count("facts/gate.md") == 1


def test_a_note_is_of_the_day_where_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    note = {"title": "", "project": "", "kind": "fact", "origin": "user", "created": "2026-03-01T03:00:00+00:00", "id": "a"}
    with monkeypatch.context() as there:
        there.setenv("TZ", "America/Los_Angeles")
        time.tzset()
        _, (line, _), *_ = reviewing._shown({**note, "evidence": [], "contested": None, "long": False, "nearest": None, "body": ""})
    time.tzset()

    assert "2026-02-28" in line
