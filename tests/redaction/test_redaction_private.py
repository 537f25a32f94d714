"""What a person put between private tags is gone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.redaction import drop_private
from kite_memory.sources.common.tool_text import shortened

TAGS = [
    ("<private>", "</private>"),
    ("<PRIVATE>", "</Private>"),
    ("< private >", "</ private >"),
    ('<private reason="family">', "</private>"),
    ("&lt;private&gt;", "&lt;/private&gt;"),
    ("&amp;lt;private&amp;gt;", "&amp;lt;/private&amp;gt;"),
    ("&#60;private&#62;", "&#x3c;/private&#x3E;"),
    ("\\u003cprivate\\u003e", "\\u003c/private\\u003e"),
    ("＜private＞", "＜／private＞"),
    ("<pri\u200bvate>", "</priv\u200date>"),
    ("\x1b[2m<private>\x1b[0m", "</private>"),
]


@pytest.mark.parametrize(("opened", "closed"), TAGS)
def test_it_goes_with_its_tags(opened: str, closed: str) -> None:
    assert drop_private(f"I like {opened}pears{closed}plums.") == "I like plums."


def test_an_unclosed_tag_drops_the_rest() -> None:
    assert drop_private("Plant the pear. <private>My number is 12.\nAnd more.") == "Plant the pear. "


def test_tags_within_tags_count() -> None:
    assert drop_private("a<private>b<private>c</private>d</private>e") == "ae"


def test_several_go_each_by_itself() -> None:
    assert drop_private("a<private>b</private>c<private>d</private>e") == "ace"


def test_what_is_left_makes_no_new_tag() -> None:
    assert drop_private("<pri<private>x</private>vate>secret") == ""


def test_a_closing_tag_alone_is_text() -> None:
    assert drop_private("a</private>b") == "a</private>b"


@pytest.mark.parametrize("text", ["a private matter", "private = True", "<privateer>x</privateer>", "BEGIN PRIVATE KEY", ""])
def test_other_words_stay(text: str) -> None:
    assert drop_private(text) == text


PIECES = st.sampled_from(
    ["<private>", "</private>", "<pri", "vate>", "&lt;private&gt;", "a", "\n", "é", "\u200b", "\x1b[1m", "<", ">"],
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_dropping_twice_changes_nothing(text: str) -> None:
    once = drop_private(text)

    assert drop_private(once) == once


AROUND = st.text(alphabet="abc \n", max_size=20)


@given(AROUND, st.text(alphabet="XYZ", min_size=1, max_size=20), AROUND)
def test_nothing_between_tags_is_left_and_nothing_else_goes(before: str, inside: str, after: str) -> None:
    assert drop_private(f"{before}<private>{inside}</private>{after}") == before + after


@given(
    st.lists(st.sampled_from(("<private>", "</private>", "&lt;/private&gt;", "pears in the shed\n", "pears " * 30)), max_size=12),
    st.integers(1, 400),
)
def test_of_what_is_private_a_cut_keeps_nothing(pieces: list[str], limit: int) -> None:
    depth, text = 0, ""
    for piece in pieces:
        depth += (piece == "<private>") - ("/" in piece and depth > 0)
        text += piece.replace("pears", "plums") if depth else piece

    assert "plums" not in drop_private(shortened(text, limit))
