"""What holds of every text."""

import re
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.model.event import EventType
from kite_memory.redaction import redact, redact_event
from kite_memory.redaction.cleaning import clean
from kite_memory.redaction.redaction_engine import KINDS, mark
from tests.counts import examples

DASHES = "-" * 5
PIECES = st.one_of(
    st.sampled_from(
        [
            *("password", "PASSWORD=", "token: ", '"api_key": "', "Authorization: Bearer ", "Cookie: ", "secret ", "key", " is "),
            *("gh" + "p_", "sk-" + "ant-", "AK" + "IA", "eyJ", "xox" + "b-", "://ada:", "@host"),
            *(f"{DASHES}BEGIN PRIVATE KEY{DASHES}", f"{DASHES}END PRIVATE KEY{DASHES}"),
            *("q7Rk2vXz9LmP4tWs", "hunter2", "0123456789abcdef" * 2, "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6uX9"),
            *("\n", "\\\n", "\\n", "    ", " ", "\t", '"', "'", "=", ":", "&", "|", "│", "\r\n", "<", ">"),
            *("%3D", "&quot;", "\\u003d"),
            *("\x1b[31m", "\x1b[0m", "\x1b", "\u200b", "\u2060", "\ufeff", "\x9b", "[", "]", "ｐａｓｓ", "é", "😀", "\ud800"),
            *("[redacted:password]", "[redacted:nothing]", "[redacted:", "Z2hw", "X2FiY2RlZg==", "<private>"),
        ]
    ),
    st.text(max_size=12),
    st.text(alphabet="abcXYZ0189_-+/=.", max_size=48),
)
TEXTS = st.lists(PIECES, max_size=14).map("".join)
MARK = re.compile(r"\[redacted:([a-z0-9-]+)\]")


def remains_in_order(out: str, text: str) -> bool:
    """Whether ``out`` is ``text`` with stretches of it replaced by marks (marks of its own are text like any other)."""
    pieces = MARK.split(out)[::2]
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return text.startswith(pieces[0]) and text.endswith(pieces[-1])


@given(TEXTS)
@settings(max_examples=examples(500), deadline=None)
@example('"password": "a\nPASSWORD=[redacted:password]hunter2x')
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


@given(TEXTS)
@settings(max_examples=examples(500), deadline=None)
def test_what_is_no_secret_stays_as_it_was(text: str) -> None:
    assert remains_in_order(redact(text), clean(text))


@given(TEXTS)
@settings(max_examples=examples(300), deadline=None)
def test_every_new_mark_names_a_kind(text: str) -> None:
    new = MARK.findall(redact(text))

    assert all(kind in KINDS or mark(kind) in clean(text) for kind in new)


@given(TEXTS)
@settings(deadline=None)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_plain_text_is_clean(text: str) -> None:
    assert clean(text) == text


@given(TEXTS, TEXTS)
@settings(deadline=None, max_examples=examples(200))
def test_an_event_is_redacted_once_and_for_all(text: str, command: str) -> None:
    changed = replace(event(1, text, EventType.TOOL_CALL), command=command)

    once = redact_event(changed)

    assert redact_event(once) == once
    assert (once is changed) == (once == changed)
