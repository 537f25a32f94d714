import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.text.display import clip, clip_end, clip_line, counted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a title that fits into the line", "a title that fits into the line"),
        ("a title that is cut between two of its words", "a title that is cut between two of its…"),
        ("a title with a comma, where it is cut, in two", "a title with a comma, where it is cut…"),
        ("evidence 01234567-89ab-cdef-0123-456789abcdef", "evidence 01234567-89ab-cdef-0123-456789…"),
    ],
)
def test_a_text_is_cut_between_words(text: str, shown: str) -> None:
    assert clip(text, 40) == shown


def test_a_line_is_cut_wherever_it_gets_too_long() -> None:
    assert clip_line("one\n  two three", 9) == "one two…"
    assert clip_line("one\n  twenty", 9) == "one twen…"


@given(st.text(), st.integers(0, 40))
def test_no_cut_text_is_longer_than_allowed(text: str, limit: int) -> None:
    assert len(clip(text, limit)) <= limit
    assert len(clip_end(text, limit)) <= max(1, limit)
    assert len(clip_line(text, limit)) <= max(1, limit)


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "note", "0 notes"),
        (1, "note", "1 note"),
        (21_091, "note", "21,091 notes"),
        (2, "entity", "2 entities"),
        (2, "reply", "2 replies"),
        (2, "day", "2 days"),
        (1, "memory", "1 memory"),
    ],
)
def test_things_are_counted_as_people_count(number: int, noun: str, said: str) -> None:
    assert counted(number, noun) == said
