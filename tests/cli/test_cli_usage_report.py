"""«Is it helping me?»: what `why`, `status` and `doctor` tell of the notes that were shown."""

import re
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from kite_memory.recall.session_memory import Occasion, SessionMemory, ShownNote
from kite_memory.recall.uptake import Moment, Outcome, Uptake
from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine, Ran

TEXTS = {
    "walnut": "The walnut tree is older than the house",
    "bees": "The bees winter behind the south wall",
    "press": "The cider press stands in the north barn",
    "pears": "The old pears are grafted on quince",
}
WHY: dict[Outcome, str] = {
    "used": "“walnut.toml” in a command",
    "ignored": "nothing of it appears",
    "unknown": "nothing in it is distinctive",
}


def kmem(machine: Machine, *arguments: str) -> Ran:
    return in_this_process(machine, list(arguments), cwd=machine.home)


class Orchard:
    """A machine with four notes in its vault, and a record of what was shown."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        machine.vault.mkdir(parents=True)
        self.paths: dict[str, dict[str, str]] = {}
        for name, text in TEXTS.items():
            ran = kmem(machine, "remember", text, "--json")
            assert ran.code == 0, ran.err
            self.paths[name] = ran.json()
        self.now = datetime.now(UTC)

    def was_shown(self, *names: str, moment: Moment = "prompt", outcome: Outcome | None = None, times: int = 1) -> "Orchard":
        memory = SessionMemory(self.machine.state / "index" / "shown.sqlite")
        for _ in range(times):
            given = tuple(ShownNote(note=self.paths[name]["id"], score=0.62) for name in names)
            memory.record(
                Occasion(at=self.now, session="s", project="", head="how old?", reason="because", given=given, moment=moment)
            )
            if outcome is not None:
                for showing in memory.shown_open(datetime.now(UTC)):
                    memory.settle(showing, Uptake(outcome=outcome, why=WHY[outcome]), self.now)
        memory.close()
        return self

    def status(self) -> list[str]:
        lines = kmem(self.machine, "status").out.splitlines()
        start = next((number for number, line in enumerate(lines) if line.startswith("usage")), len(lines))
        return [line for number, line in enumerate(lines[start:]) if not number or re.match(r" {11}\d{4}-W", line)]

    def helping(self) -> Any:
        return kmem(self.machine, "status", "--json").json()["helping"]

    def findings(self) -> list[tuple[str, str, str]]:
        found: Iterable[dict[str, str]] = kmem(self.machine, "doctor", "--json").json()
        return [(each["level"], each["what"], each["hint"]) for each in found if "help" in each["what"]]


@pytest.fixture
def orchard(machine: Machine) -> Orchard:
    return Orchard(machine)


def test_why_shows_for_each_note_whether_it_was_used_and_how_one_knows(orchard: Orchard) -> None:
    orchard.was_shown("walnut", outcome="used").was_shown("bees", moment="late", outcome="unknown").was_shown("press")

    ran = kmem(orchard.machine, "why", "--last", "9")

    when = f"{orchard.now:%Y-%m-%d %H:%M}"
    paths = {name: note["path"] for name, note in orchard.paths.items()}
    assert ran.out.splitlines() == [
        f"{when}  how old?",
        f"                  0.62  {TEXTS['press']}  ({paths['press']})",
        "                        the turn is not over yet",
        "                  because",
        f"{when}  how old? (later in the turn)",
        f"                  0.62  {TEXTS['bees']}  ({paths['bees']})",
        "                        used or not is unknown: nothing in it is distinctive",
        "                  because",
        f"{when}  how old?",
        f"                  0.62  {TEXTS['walnut']}  ({paths['walnut']})",
        "                        used: “walnut.toml” in a command",
        "                  because",
    ]
    assert ran.err == ""


def test_where_something_was_ignored_why_says_how_to_mute_it(orchard: Orchard) -> None:
    orchard.was_shown("bees", outcome="ignored")

    ran = kmem(orchard.machine, "why")

    assert "ignored: nothing of it appears" in ran.out
    assert ran.err == "`kmem mute NOTE` keeps a note from being shown again; searching still finds it\n"


def test_why_as_json_has_the_same(orchard: Orchard) -> None:
    orchard.was_shown("walnut", "bees", moment="start", outcome="ignored")

    (result,) = kmem(orchard.machine, "why", "--json").json()["prompts"]

    assert result["moment"] == "start"
    assert [(note["id"], note["outcome"], note["because"]) for note in result["notes"]] == [
        (orchard.paths[name]["id"], "ignored", "nothing of it appears") for name in ("walnut", "bees")
    ]


def test_status_shows_the_week(orchard: Orchard) -> None:
    orchard.was_shown("walnut", "bees", outcome="used").was_shown("press", outcome="ignored").was_shown()

    (line,) = orchard.status()

    assert re.fullmatch(
        r"usage      \d{4}-W\d\d: 3 notes shown, 2 used, 1 ignored; nothing shown for 1 of 3 prompts",
        line,
    )


def test_status_shows_for_the_moments_where_there_are_several(orchard: Orchard) -> None:
    orchard.was_shown("walnut", moment="start", outcome="unknown").was_shown("press", moment="late").was_shown("bees")

    (line,) = orchard.status()

    assert "2 notes shown (1 with a prompt, 1 later in a turn), 1 title listed, 0 used, 0 ignored, 2 open" in line


def test_status_as_json_adds_up(orchard: Orchard) -> None:
    orchard.was_shown("walnut", "bees", outcome="used").was_shown("press", moment="action", outcome="ignored").was_shown()

    report = orchard.helping()

    assert {name: report[name] for name in ("verdict", "shown", "used", "ignored", "unknown", "open")} == {
        "verdict": "too early to tell",
        "shown": 3,
        "used": 2,
        "ignored": 1,
        "unknown": 0,
        "open": 0,
    }
    assert len(report["weeks"]) == 4
    assert sum(week["prompts"] for week in report["weeks"]) == 2
    moments = [week["by_moment"] for week in report["weeks"] if week["shown"]]
    assert [sorted(each) for each in moments] == [["action", "prompt"]]
    assert [(each["path"], each["ignored"]) for each in report["most_ignored"]] == [(orchard.paths["press"]["path"], 1)]


def test_doctor_says_so_where_it_seldom_helps_and_what_to_mute(orchard: Orchard) -> None:
    orchard.was_shown("walnut", outcome="used").was_shown("bees", outcome="ignored", times=6)
    orchard.was_shown("press", outcome="ignored", times=4).was_shown("pears", outcome="ignored", times=2)

    ((level, what, hint),) = orchard.findings()

    assert level == "note"
    assert what == "it seldom helps: the agent used 1 of 13 notes (13 shown in four weeks)"
    assert hint == (
        "`kmem config set recall.dial quiet` shows less; `kmem mute NOTE` keeps one back, first of all "
        + ", ".join(orchard.paths[name]["path"] for name in ("bees", "press", "pears"))
    )


def test_doctor_is_glad_where_it_helps(orchard: Orchard) -> None:
    orchard.was_shown("walnut", outcome="used", times=4).was_shown("bees", outcome="ignored", times=6)
    orchard.was_shown("press", outcome="unknown", times=2)

    assert orchard.findings() == [
        ("ok", "it helps: the agent used 4 of 10 notes (12 shown in four weeks; unknown for the rest)", "")
    ]


@pytest.mark.parametrize(("ignored", "unknown"), [(9, 0), (4, 20)])
def test_doctor_does_not_judge_by_little(orchard: Orchard, ignored: int, unknown: int) -> None:
    orchard.was_shown("bees", outcome="ignored", times=ignored).was_shown("press", outcome="unknown", times=unknown)

    ((level, what, hint),) = orchard.findings()

    assert (level, hint) == ("ok", "")
    assert what.startswith("too early to see whether it helps: ")


def test_doctor_and_status_say_nothing_of_it_where_nothing_was_shown(orchard: Orchard) -> None:
    assert orchard.findings() == []
    assert orchard.status() == []


def test_a_note_that_was_forgotten_is_reported_and_not_to_be_muted(orchard: Orchard) -> None:
    orchard.was_shown("bees", outcome="ignored", times=10)
    assert kmem(orchard.machine, "forget", orchard.paths["bees"]["path"]).code == 0

    ((_, _, hint),) = orchard.findings()

    assert [note["title"] for note in orchard.helping()["most_ignored"]] == ["(forgotten since)"]
    assert "mute" not in hint


def test_an_earlier_conversation_is_named_by_its_citation_and_not_as_forgotten(orchard: Orchard) -> None:
    orchard.paths["talk"] = {"id": "claude-code:earlier#0a0b0c0d"}
    orchard.was_shown("talk")

    ran = kmem(orchard.machine, "why", "--last", "1")

    assert "0.62  an earlier conversation  (claude-code:earlier#0a0b0c0d)" in ran.out
    (prompt,) = kmem(orchard.machine, "why", "--json").json()["prompts"]
    assert prompt["notes"][0]["path"] == ""  # so that no page offers to open or mute it as a note


def test_status_stands_where_the_record_cannot_be_read(orchard: Orchard) -> None:
    database = sqlite3.connect(orchard.machine.state / "index" / "shown.sqlite")
    database.execute("DROP TABLE showing")
    database.close()

    ran = kmem(orchard.machine, "status")

    assert ran.code == 0
    assert "problem    the memory of what was shown cannot be used: no such table: showing" in ran.out
