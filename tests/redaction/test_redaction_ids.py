"""Ids are given by agents: they pass the same door as what was said."""

from dataclasses import replace
from typing import Any

import pytest

from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.redaction import redact_event, redact_id

TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6"
FIELDS = ("id", "session", "parent", "call", "tool")


@pytest.mark.parametrize("field", FIELDS)
def test_a_secret_in_an_id_of_an_event_is_not_kept(field: str) -> None:
    given: dict[str, Any] = {field: f"x {TOKEN}"}

    redacted = redact_event(replace(event(1, "Prune the pear tree."), **given))

    assert TOKEN not in getattr(redacted, field)


def test_two_ids_with_secrets_stay_two_and_one_stays_one() -> None:
    first, again, other = redact_id(TOKEN), redact_id(TOKEN), redact_id(TOKEN[:-1] + "7")

    assert first == again != other
    assert redact_id(first) == first


@pytest.mark.parametrize(
    "ordinary",
    [
        "",
        "5e55",
        "0276a600-2f22-4d2b-844c-3feb9c5aa108",
        "0276a600-2f22-4d2b-844c-3feb9c5aa108:3",
        "toolu_01A9kQ2mZ7LpX4vT8sR3nWcB",
        "call_9fK2mZ7LpX4vT8sR3nWcBq1d",
        "msg_01A9kQ2mZ7LpX4vT8sR3nWcB",
        "chatcmpl-A9kQ2mZ7LpX4vT8sR3nWcBq1dYe5u",
        "ses_6f1d2c3bffeX4vT8sR3nWcB",
        "mcp__kite-memory__search_notes",
        "rollout-2026-02-01T10-20-30-0276a600-2f22-4d2b-844c-3feb9c5aa108",
        "agent-a1b2c3d",
    ],
)
def test_an_ordinary_id_stays_as_it_is(ordinary: str) -> None:
    assert redact_id(ordinary) == ordinary
