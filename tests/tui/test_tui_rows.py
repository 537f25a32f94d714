"""A session as lines: folded, unfolded, and where to jump."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.app.timeline_queries import _event
from kite_memory.model.event import EventType
from kite_memory.tui.rows import JUMPS, ViewRow, following, matching, name_of, rows
from tests.fakes.work import Work

HOME = "/home/ada/orchard"
WORK = (
    Work()
    .asked("Graft the pear\nonto the quince")
    .edited(f"{HOME}/pear.py")
    .ran("pytest", "E  dry\n1 failed", "failed", tests="failed")
    .ran("water", "error: no can", "failed")
    .decided("Quince")
    .said("Done.")
)
EVENTS: list[dict[str, Any]] = [_event(event) for event in WORK.events]


def rows_of(*unfolded: str, notes: list[dict[str, Any]] | None = None) -> list[ViewRow]:
    return list(rows(EVENTS, notes or [], HOME, set(unfolded)))


def jumps(found: list[ViewRow], at: int, kind: str, *, backwards: bool = False) -> Iterator[int]:
    while (place := following(found, at, JUMPS[kind], backwards=backwards)) is not None:
        yield (at := place)


def after_the_id(row: ViewRow) -> str:
    return " ".join(row.text.split()[3:])


def test_a_call_is_one_line_with_how_it_ended() -> None:
    assert [after_the_id(row) for row in rows_of()] == [
        "you Graft the pear onto the quince",
        "tool Edit: pear.py",
        "tool Bash: pytest (failed)",
        "TEST E dry 1 failed (failed)",
        "tool Bash: water (failed)",
        "ERROR error: no can",
        "DECIDED Quince",
        "agent Done.",
    ]


def test_what_is_unfolded_is_shown_with_what_it_said() -> None:
    call = rows_of()[2]

    more = [row.text.strip() for row in rows_of(call.folds) if row.kind == "more"]

    assert more == ["", "pytest", "E  dry", "1 failed"]


def test_a_long_message_unfolds_and_a_short_one_does_not() -> None:
    prompt, answer = rows_of()[0], rows_of()[-1]

    assert [row.text.strip() for row in rows_of(prompt.folds) if row.kind == "more"] == ["Graft the pear", "onto the quince"]
    assert answer.folds == ""


def test_no_name_of_a_tool_can_pass_for_a_line_of_its_own() -> None:
    forged = Work().called("Bash\n03-01 09:00  #0000000f  you      Delete it all", "?")

    (row,) = rows([_event(event) for event in forged.events])

    assert "\n" not in row.text


def test_what_goes_on_for_ever_is_cut() -> None:
    events = [_event(event) for event in Work().ran("yes", "y\n" * 5_000).events]

    unfolded = list(rows(events, unfolded={"call-1"}))

    assert len(unfolded) < 80
    assert unfolded[-1].text.strip().startswith("… ")


def test_a_note_stands_below_the_event_it_was_made_from() -> None:
    event = EVENTS[-1]
    notes = [{"path": "decisions/quince.md", "evidence": [event["reference"]]}]

    found = rows_of(notes=notes)

    assert (found[-1].note, found[-1].reference) == ("decisions/quince.md", event["reference"])


@pytest.mark.parametrize(("kind", "places"), [("errors", [5]), ("decisions", [6]), ("tests", [3]), ("prompts", [0]), ("notes", [])])
def test_jumps_go_through_all_of_a_kind_both_ways(kind: str, places: list[int]) -> None:
    found = rows_of()

    forth = list(jumps(found, -1, kind))
    back = list(jumps(found, len(found), kind, backwards=True))

    assert forth == places
    assert back == places[::-1]


def test_sessions_are_found_by_every_word_typed() -> None:
    known = {
        "title": "Graft the pear",
        "project": "orchard",
        "provider": "codex",
        "id": "5e55",
        "branch": "main",
        "last": "2026-03-01",
    }
    other = {**known, "title": "Mow", "provider": "aider"}

    assert matching([known, other], "ORCH graft") == [known]
    assert matching([known, other], "2026-03 main") == [known, other]
    assert matching([known, other], "orch zeppelin") == []


_ANY = st.text(max_size=40)


@given(st.lists(st.tuples(st.sampled_from([type.value for type in EventType]), _ANY, st.sampled_from(["", "a", "b"])), max_size=30))
def test_whatever_there_is_every_row_stands_for_an_event(given_rows: list[tuple[str, str, str]]) -> None:
    events = [
        {**EVENTS[0], "id": f"{number:08x}", "reference": f"r{number}", "type": type, "text": text, "call": call}
        for number, (type, text, call) in enumerate(given_rows)
    ]

    found = list(rows(events, unfolded={"a", *(event["id"] for event in events)}))

    assert {row.reference for row in found} <= {event["reference"] for event in events}
    assert all("\n" not in row.text for row in found)


def test_what_is_unfolded_is_wrapped_to_the_width() -> None:
    work = Work().asked("Graft the pear onto the quince and water it well before the sun is up\nand then rest")
    first = _event(work.events[0])

    listed = list(rows([first], unfolded=[first["id"]], width=60, ids=False))

    assert len(listed) == 4
    assert max(len(row.text) for row in listed[1:]) <= 60
    assert "".join(row.text.strip() + " " for row in listed[1:]).split() == work.events[0].text.split()


def test_a_session_without_a_title_is_called_by_its_first_prompt() -> None:
    each = {"title": "", "opening": "Graft the pear", "branch": "main"}

    assert name_of(each) == "Graft the pear"
    assert name_of({**each, "title": "Pears"}) == "Pears"
