"""Passwords as people write them down: in many languages, in sentences, in commands, in tables and disguised."""

import re
from collections import Counter

import pytest

from kite_memory.redaction import redact, redaction_engine
from kite_memory.redaction.chance import TextWords
from kite_memory.redaction.cleaning import bare, clean
from kite_memory.redaction.redaction_engine import find
from tests.redaction.people import Case, cases

CASES = list(cases())
SECRETS = [case for case in CASES if case.secrets]


def found(some: list[Case]) -> float:
    return sum(not case.left() for case in some) / len(some)


def test_most_secrets_of_people_are_taken_out() -> None:
    missed = Counter(case.group for case in SECRETS if case.left())

    assert len(SECRETS) >= 300
    assert found(SECRETS) >= 0.95, missed
    assert found([case for case in SECRETS if not case.tuned]) >= 0.93, missed
    assert found([case for case in SECRETS if case.group.startswith("later")]) >= 0.95, missed
    assert found([case for case in SECRETS if case.group.startswith("seen")]) >= 0.97, missed


def test_what_only_looks_like_one_stays() -> None:
    innocent = [case.text for case in CASES if not case.secrets]

    assert [(text, redact(text)) for text in innocent if redact(text) != text] == []


def test_a_note_about_a_secret_stays_and_the_secret_goes() -> None:
    about = "remember that the Stripe webhook secret rotates on the 1st of each month"

    assert redact(about) == about
    assert redact("password hunter2Xy!99z on host db1") == "password [redacted:password] on host db1"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("pw = '-'.join(['olive', 'Lamp7!'])", "olive-Lamp7!"),
        ('token = ["Moss!", "Bark", "1999"].join("")', "Moss!Bark1999"),
        ("$pass = implode('', ['Fog!', 'Horn22']);", "Fog!Horn22"),
        ("pw = chr(80)+chr(105)+chr(110)+chr(101)+chr(33)+chr(55)+chr(55)", "chr(105)"),
        ('password = base64.b64decode("UGluZS1GZXJuITg4")', "UGluZS1GZXJuITg4"),
        ("PASSWORD=$(echo UGluZS1GZXJuITg4 | base64 -d)", "UGluZS1GZXJuITg4"),
        ("root:Maple#Yard41 gets you into the box", "Maple#Yard41"),
        ("the guest wifi is Orchard-5G and the key is barn.Owl!77", "barn.Owl!77"),
        ("the passphrase for the backup disk is candle river mountain spoon", "candle river"),
        ("the password, in case you forgot, is Gravel#Path8", "Gravel#Path8"),
    ],
)
def test_what_a_program_puts_together_and_longer_sentences(text: str, secret: str) -> None:
    redacted = redact(text)

    assert "[redacted:" in redacted
    assert all(piece not in redacted for piece in (secret[:5], secret[-5:]))


def test_leaving_out_words_that_no_search_asks_for_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {case.text: bare(clean(case.text)) for case in SECRETS}
    found = {text: sorted(find(each, [])) for text, each in raw.items()}
    monkeypatch.setattr(redaction_engine, "words_of", every_word)

    assert [text for text, each in raw.items() if sorted(find(each, [])) != found[text]] == []


def every_word(small: bytes) -> TextWords:
    each = frozenset(re.findall(rb"[a-z]+", small))
    return TextWords(each, b" ".join((b"", *each)), parts=True)
