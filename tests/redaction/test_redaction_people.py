"""Passwords as people write them down: in many languages, in sentences, in commands, in tables and disguised."""

from collections import Counter

import pytest

from kite_memory.redaction import redact
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


@pytest.mark.parametrize("case", [case for case in CASES if not case.secrets], ids=lambda case: case.text[:40])
def test_what_only_looks_like_one_stays(case: Case) -> None:
    assert redact(case.text) == case.text


def test_a_note_about_a_secret_stays_and_the_secret_goes() -> None:
    about = "remember that the Stripe webhook secret rotates on the 1st of each month"

    assert redact(about) == about
    assert redact("password hunter2Xy!99z on host db1") == "password [redacted:password] on host db1"
