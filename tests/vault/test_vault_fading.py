"""What has had its time, and what stays."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kite_memory.model.note import NoteKind, NoteStatus
from kite_memory.vault.usefulness import PASSING, UNSHOWN, NoteUse, has_faded, is_junk, is_worth_a_line, strength
from tests.vault.building import START, note

BUG = "The press fails on line 12 of press.py"
LASTING = "Pears need a second tree because they are not self-fertile"


@pytest.mark.parametrize(
    ("title", "changes", "days", "faded"),
    [
        (BUG, {}, 41, False),
        (BUG, {}, 43, True),
        (LASTING, {}, 43, False),
        (LASTING, {}, 91, True),
        (LASTING, {"origin": "user"}, 400, False),
        (BUG, {"origin": "user", "importance": 2}, 43, True),
        (BUG, {"origin": "user", "importance": 3}, 400, False),
        ("Every pull request about the press is read by Ida", {"origin": "user", "importance": 3}, 400, False),
        ("The winter branch is cut on the first Monday", {"origin": "user", "evidence": ()}, 400, False),
        ("Which branch does the press run from?", {"origin": "user", "importance": 3, "kind": NoteKind.QUESTION}, 91, True),
        ("The winter branch is missing a press test", {"origin": "assistant", "importance": 3}, 43, True),
        (BUG, {"kind": NoteKind.DECISION}, 400, False),
        (BUG, {"kind": NoteKind.PREFERENCE}, 400, False),
        (BUG, {"key": "press"}, 400, False),
        (BUG, {"conflicts": ("another",)}, 400, False),
        (BUG, {"status": NoteStatus.PROPOSED}, 400, False),
    ],
)
def test_notes_fade_by_kind(title: str, changes: dict[str, Any], days: int, faded: bool) -> None:
    made = replace(note(title), **{"origin": "assistant", **changes})

    assert has_faded(made, NoteUse(), START + timedelta(days=days)) is faded


def test_a_note_of_an_old_session_does_not_fade_before_its_file_is_that_old() -> None:
    written = START + timedelta(days=400)
    bug, lasting = (replace(note(title), origin="assistant", updated=written) for title in (BUG, LASTING))

    assert [has_faded(each, NoteUse(), written + timedelta(minutes=1)) for each in (bug, lasting)] == [False, False]
    assert [has_faded(bug, NoteUse(), written + timedelta(days=days)) for days in (41, 43)] == [False, True]
    assert [has_faded(lasting, NoteUse(), written + timedelta(days=days)) for days in (89, 91)] == [False, True]


def test_what_is_of_use_or_said_again_stays_and_being_shown_keeps_what_is_not_passing() -> None:
    now = START + UNSHOWN + PASSING
    lately = now - timedelta(days=3)
    bug, lasting = (replace(note(title), origin="assistant") for title in (BUG, LASTING))

    assert [has_faded(bug, use, now) for use in (NoteUse(shown=lately), NoteUse(used=lately), NoteUse(said=lately))] == [
        True,
        False,
        False,
    ]
    assert [has_faded(lasting, use, now) for use in (NoteUse(), NoteUse(shown=lately))] == [True, False]


def test_a_title_that_stands_alone_is_stronger_than_a_fragment() -> None:
    strong = replace(note(LASTING), kind=NoteKind.FACT)
    weak = [
        replace(note(title), kind=NoteKind.DECISION)
        for title in ("Update `press()` to accept", "Line 12: `press` (now)", "We are back")
    ]

    assert is_worth_a_line(strong)
    assert not any(map(is_worth_a_line, weak))
    assert max(map(strength, weak)) < strength(strong)
    assert is_junk(replace(weak[0], body="From an approved plan: press."))
