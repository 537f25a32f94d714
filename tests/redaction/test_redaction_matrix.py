"""Every kind of secret in every place: nothing of it is left."""

import random
from collections import Counter

import pytest

from kite_memory.redaction import redact
from kite_memory.redaction.cleaning import bare
from kite_memory.redaction.redaction_engine import KINDS as MARKS
from kite_memory.redaction.redaction_engine import find
from kite_memory.redaction.vendors import VENDORS, catalogue
from tests.redaction.contexts import CONTEXTS, HOSTILE, PLAIN, left_of
from tests.redaction.kinds_of_secrets import KINDS, Kind

ROUNDS = 3
MANY_ROUNDS = 40


def chance(kind: Kind, context: str, number: int) -> random.Random:
    return random.Random(f"{kind.name}/{context}/{number}")


def test_there_are_two_hundred_kinds_and_ten_contexts() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 200
    assert len(CONTEXTS) == 10


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_nothing_of_a_secret_is_left_where_it_is_written_plainly(kind: Kind) -> None:
    for name, context in PLAIN.items():
        for number in range(ROUNDS):
            secret, text = context(kind, chance(kind, name, number))

            assert left_of(secret, redact(text)) == "", f"{name}, round {number}"


@pytest.mark.parametrize("name", HOSTILE)
def test_one_secret_in_a_hundred_at_most_is_left_where_it_is_disguised(name: str) -> None:
    missed = Counter[str]()
    for kind in KINDS:
        for number in range(ROUNDS):
            secret, text = HOSTILE[name](kind, chance(kind, name, number))
            if left_of(secret, redact(text)):
                missed[kind.name] += 1

    assert missed.total() <= 0.01 * ROUNDS * len(KINDS), missed


@pytest.mark.moonshot
@pytest.mark.parametrize("name", CONTEXTS)
def test_the_same_over_many_rounds(name: str) -> None:
    missed = Counter[str]()
    for kind in KINDS:
        for number in range(MANY_ROUNDS):
            secret, text = CONTEXTS[name](kind, chance(kind, name, number))
            if left_of(secret, redact(text)):
                missed[kind.name] += 1

    assert missed.total() <= (0.01 if name in HOSTILE else 0.0005) * MANY_ROUNDS * len(KINDS), missed


@pytest.mark.parametrize("name", CONTEXTS)
def test_what_looks_for_leaks_sees_every_secret_that_was_not_redacted(name: str) -> None:
    for kind in KINDS:
        secret, text = CONTEXTS[name](kind, chance(kind, name, 0))

        assert left_of(secret, text), kind.name


@pytest.mark.parametrize("kind", ["github-token", "anthropic-key", "slack-token", "huggingface-token"])
def test_a_kind_that_is_taken_out_of_the_catalogue_is_no_longer_found_as_such(kind: str) -> None:
    others = catalogue(vendor for vendor in VENDORS if vendor.kind != kind)
    prefix = next(vendor.anchors[0] for vendor in VENDORS if vendor.kind == kind)
    rng = random.Random(kind)
    token = prefix + "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=40))
    text = f"I pasted {token} into the form."

    with_it = {found[2] for found in find(bare(text), [])}
    without_it = {found[2] for found in find(bare(text), [], others)}

    assert kind in with_it
    assert kind not in without_it


def test_every_kind_that_is_written_into_a_mark_is_one_that_marks_may_have() -> None:
    for kind in KINDS:
        for name, context in CONTEXTS.items():
            _, text = context(kind, chance(kind, name, 0))

            assert {found[2] for found in find(bare(text), [])} <= MARKS
