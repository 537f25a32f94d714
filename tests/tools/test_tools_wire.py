"""A call goes over the wire and comes back as if nothing lay between."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.errors import KiteError, NoteNotFound, UsageError
from kite_memory.model.note import Scope
from kite_memory.redaction.redaction_engine import redact_id
from kite_memory.tools import declarations
from kite_memory.tools.store import OWNER, Asker, Conflict, Grant, NotAllowed, StoreUnavailable

GRANTS = st.builds(
    Grant,
    name=st.text(max_size=20),
    write=st.booleans(),
    scopes=st.none() | st.frozensets(st.sampled_from(Scope)),
    projects=st.none() | st.frozensets(st.text(min_size=1, max_size=10), max_size=3),
)
SESSIONS = st.text(max_size=9).map(redact_id)  # what else a client may send is replaced as it comes in
ASKERS = st.builds(Asker, grant=st.just(OWNER) | GRANTS, project=st.text(max_size=9), session=SESSIONS, ai=st.text(max_size=9))


def over_the_wire(perform: declarations.Perform, tool: str, arguments: declarations.Json, asker: Asker) -> declarations.Json:
    asked = json.loads(declarations.request_body(tool, arguments, asker))
    return declarations.result_of(
        json.loads(json.dumps(declarations.perform(perform, asked["tool"], asked["arguments"], asked["asker"])))
    )


@given(asker=ASKERS)
def test_anyone_who_asks_is_the_same_at_the_other_end(asker: Asker) -> None:
    seen: list[Asker] = []

    def perform(tool: str, arguments: declarations.Json, asker: Asker) -> declarations.Json:
        seen.append(asker)
        return {"tool": tool, **arguments}

    result = over_the_wire(perform, "read_memory", {"key": "a.b"}, asker)

    assert seen == [asker]
    assert result == {"tool": "read_memory", "key": "a.b"}


@pytest.mark.parametrize(
    "error",
    [
        NotAllowed("no", hint="ask"),
        NoteNotFound("none"),
        StoreUnavailable("gone", hint="again"),
        UsageError("wrong", hint="so"),
        KiteError("else"),
    ],
)
def test_an_error_comes_back_as_what_it_was(error: KiteError) -> None:
    def perform(tool: str, arguments: declarations.Json, asker: Asker) -> declarations.Json:
        raise error

    with pytest.raises(type(error)) as raised:
        over_the_wire(perform, "forget", {}, Asker(grant=OWNER))

    assert type(raised.value) is type(error)
    assert (str(raised.value), raised.value.hint) == (str(error), error.hint)


def test_a_conflict_keeps_its_version() -> None:
    def perform(tool: str, arguments: declarations.Json, asker: Asker) -> declarations.Json:
        raise Conflict("written since", version=7, hint="read again")

    with pytest.raises(Conflict) as raised:
        over_the_wire(perform, "write_memory", {}, Asker(grant=OWNER))

    assert raised.value.version == 7


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [{"deep": float("-inf")}]])
def test_what_json_cannot_say_is_refused_and_not_made_null(value: object) -> None:
    with pytest.raises(UsageError, match="not JSON"):
        declarations.request_body("write_memory", {"key": "a", "value": value}, Asker(grant=OWNER))


def test_nesting_without_end_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(UsageError, match="nesting"):
        declarations.request_body("write_memory", {"key": "a", "value": value}, Asker(grant=OWNER))


@pytest.mark.parametrize(
    "grant",
    [
        "all",
        {},
        {"name": "x", "write": True},
        {"name": "x", "write": 1, "scopes": None, "projects": None},
        {"name": "x", "write": True, "scopes": ["everything"], "projects": None},
        {"name": "x", "write": True, "scopes": "global", "projects": None},
    ],
)
def test_a_grant_that_cannot_be_read_never_becomes_the_owners(grant: object) -> None:
    def perform(tool: str, arguments: declarations.Json, asker: Asker) -> declarations.Json:
        raise AssertionError("nobody may ask")

    with pytest.raises(UsageError):
        declarations.perform(perform, "read_memory", {}, {"project": "", "session": "", "ai": "", "grant": grant})


@pytest.mark.parametrize(
    "answer", [{}, {"result": 1}, {"error": {}}, {"error": "no"}, {"error": {"kind": 1, "message": "", "hint": ""}}]
)
def test_an_answer_that_is_invalid_is_an_error_to_act_on(answer: declarations.Json) -> None:
    with pytest.raises(KiteError, match="no proper answer"):
        declarations.result_of(answer)


@pytest.mark.parametrize("number", [1 << 64, -(1 << 63) - 1, 10**400])
def test_a_number_that_the_other_end_would_round_is_refused(number: int) -> None:
    with pytest.raises(UsageError, match="number") as refused:
        declarations.request_body("write_memory", {"key": "k", "value": {"deep": [number]}}, Asker(grant=OWNER))

    assert refused.value.hint


@given(
    value=st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("0123456789-.e", max_size=60)
)
def test_numbers_arrive_as_they_were(value: float | str) -> None:
    arrived = orjson.loads(declarations.request_body("write_memory", {"value": value}, Asker(grant=OWNER)))["arguments"]["value"]

    assert (arrived, type(arrived)) == (value, type(value))


def test_half_a_character_arrives_as_something_that_can_be_written() -> None:
    arrived = orjson.loads(declarations.request_body("write_memory", {"key": "half \ud83d"}, Asker(grant=OWNER)))["arguments"]

    arrived["key"].encode()
    assert arrived["key"].startswith("half ")
