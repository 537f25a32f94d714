"""The table of the tools: each declared argument is parsed, each limit enforced, each older name understood."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kite_memory.errors import UsageError
from kite_memory.tools.arguments import TODOS, VALUE, Argument
from kite_memory.tools.declarations import MORE_TOOLS, RECENT_NOTES, TOOLS, ToolDispatcher, ToolSpec, called
from kite_memory.tools.store import OWNER, Asker

EVERY = (*TOOLS.values(), RECENT_NOTES, MORE_TOOLS)
UUID = "0b9a9c1e-2f3d-4c55-9a6b-7d8e9f001122"


Pair = tuple[ToolSpec, Argument[Any]]
ALL_ARGUMENTS: tuple[Pair, ...] = tuple((tool, argument) for tool in EVERY for argument in tool.takes)
NEEDED = tuple((tool, argument) for tool, argument in ALL_ARGUMENTS if argument.needed)
OPTIONAL = tuple((tool, argument) for tool, argument in ALL_ARGUMENTS if not argument.needed)


def sample(schema: dict[str, Any]) -> Any:
    """Return a value that fits a schema."""
    kind = schema["type"]
    if "enum" in schema:
        return schema["enum"][0]
    match kind if isinstance(kind, str) else "string":
        case "string":
            return "pear"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [sample(schema["items"])]
        case "object":
            return {name: sample(each) for name, each in schema.get("properties", {}).items()}
        case other:
            raise AssertionError(other)


def needed(tool: ToolSpec) -> dict[str, Any]:
    return {argument.name: sample(argument.schema) for argument in tool.takes if argument.needed}


def beyond(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values just outside what a schema shows."""
    if "enum" in schema:
        yield "none of these"
    if "maxLength" in schema:
        yield "k" * (schema["maxLength"] + 1)
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if "exclusiveMinimum" in schema:
        yield schema["exclusiveMinimum"]
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if "maxItems" in schema and schema["items"].get("type") == "string":
        yield ["pear"] * (schema["maxItems"] + 1)
    match schema["type"]:
        case "string":
            yield from (7, "k" * 20_001)
        case "integer" | "number":
            yield from ("7", 1.5 if schema["type"] == "integer" else True, float("inf"))
        case "boolean":
            yield from ("true", 1)
        case "array":
            yield from (7, [{}] if schema["items"]["type"] == "string" else 7)
        case "object":
            yield from (7, [])
        case _:
            pass


def names(pairs: Iterable[Pair]) -> list[str]:
    return [f"{tool.name}: {argument.name}" for tool, argument in pairs]


def test_what_is_declared_is_taken() -> None:
    def is_taken(tool: ToolSpec, argument: Argument[Any]) -> bool:
        parsed = tool.parsed(needed(tool) | {argument.name: sample(argument.schema)})
        return argument in parsed and (argument.nullable or parsed[argument] not in (None, "", (), frozenset()))

    assert names(pair for pair in ALL_ARGUMENTS if not is_taken(*pair)) == []


def test_what_is_omitted_or_null_has_the_default() -> None:
    def has_the_default(tool: ToolSpec, argument: Argument[Any]) -> bool:
        omitted, null = tool.parsed(needed(tool)), tool.parsed(needed(tool) | {argument.name: None})
        return omitted[argument] == null[argument] == argument.default and argument not in omitted and argument not in null

    assert names(pair for pair in OPTIONAL if not has_the_default(*pair)) == []


def test_what_is_needed_is_asked_for() -> None:
    def is_asked_for(tool: ToolSpec, argument: Argument[Any]) -> bool:
        error = refusal(tool, {name: value for name, value in needed(tool).items() if name != argument.name})
        return f"{tool.name} needs '{argument.name}'" in str(error) and (error.hint == argument.hint or argument.name in error.hint)

    assert NEEDED
    assert names(pair for pair in NEEDED if not is_asked_for(*pair)) == []


def refusal(tool: ToolSpec, given: dict[str, Any]) -> UsageError:
    """Return the error for these arguments; an empty one if they are taken."""
    try:
        tool.parsed(given)
    except UsageError as error:
        return error
    return UsageError("", hint="")


def test_each_limit_that_is_reported_is_enforced() -> None:
    def is_enforced(tool: ToolSpec, argument: Argument[Any], value: Any) -> bool:
        error = refusal(tool, needed(tool) | {argument.name: value})
        return error.hint != "" and "none of these" not in str(error)

    beyond_limits = tuple(bounded())
    assert len(beyond_limits) > 200
    assert [
        f"{tool.name}: {argument.name}: {str(value)[:40]}"
        for tool, argument, value in beyond_limits
        if not is_enforced(tool, argument, value)
    ] == []


def bounded() -> Iterator[tuple[ToolSpec, Argument[Any], Any]]:
    for tool in EVERY:
        for argument in () if tool.open else tool.takes:  # of a record, what is too long is cut, and said to be
            any_value = argument is TODOS or not isinstance(argument.schema["type"], str)  # see test_bridge_states.py
            for value in () if any_value else beyond(argument.schema):
                yield tool, argument, value


def renamed() -> Iterator[Any]:
    for tool in EVERY:
        for argument in tool.takes:
            for alias in argument.aliases:
                yield pytest.param(tool, argument, alias, id=f"{tool.name}-{alias}")


@pytest.mark.parametrize(("tool", "argument", "alias"), tuple(renamed()))
def test_an_argument_is_taken_under_its_older_names(tool: ToolSpec, argument: Argument[Any], alias: str) -> None:
    rest = {name: value for name, value in needed(tool).items() if name != argument.name}
    value, other = sample(argument.schema), {"string": "fig", "array": ["fig"], "integer": 200}[argument.schema["type"]]

    older = tool.parsed(rest | {alias: value})
    both = tool.parsed(rest | {alias: value, argument.name: other})

    assert older[argument] == argument.parse(value)
    assert both[argument] == argument.parse(other)


def test_older_names_of_arguments_are_no_tools_own() -> None:
    older = {alias for tool in EVERY for argument in tool.takes for alias in argument.aliases}

    assert older == {"project_path", "session", "tokens", "ai", "id", "ids", "path", "note", "conversation_id", "uuid"}
    for tool in EVERY:
        names = [name for argument in tool.takes for name in (argument.name, *argument.aliases)]
        assert len(names) == len(set(names)), tool.name


def test_older_names_of_tools_mean_the_same() -> None:
    assert called("get-context") is called("get_context") is TOOLS["get_context"]
    assert called("save-conversation") is TOOLS["save_conversation"]
    assert called("generate-conversation-id") is TOOLS["generate_conversation_id"]
    assert called("recent_notes") is called("more_tools") is called("") is None


@pytest.mark.parametrize("tool", EVERY, ids=lambda tool: tool.name)
def test_what_is_not_declared_is_refused_by_its_name(tool: ToolSpec) -> None:
    if tool.open:
        assert tool.parsed({"claude_conversation_uuid": UUID, "sope": 1}).raw["sope"] == 1
        return

    with pytest.raises(UsageError, match=f"{tool.name} takes no 'sope'"):
        tool.parsed(needed(tool) | {"sope": "global"})


def test_null_is_a_value() -> None:
    fields = {"key": "a", "value": None, "tags": None}

    assert ToolDispatcher({"write_memory": lambda asker, parsed: parsed.raw}).perform(
        "write_memory", fields, Asker(grant=OWNER)
    ) == {
        "key": "a",
        "value": None,
    }


def test_what_stands_in_the_context_is_taken_and_the_rest_of_it_kept() -> None:
    fields = {"key": "a", "value": 1, "scope": "global", "context": {"scope": "shared", "session": "s1", "ttl": 60, "why": "asked"}}

    parsed = TOOLS["write_memory"].parsed(fields)

    values = {argument.name: parsed[argument] for argument in TOOLS["write_memory"].takes}
    assert (values["scope"], values["session_id"], values["ttl"], values["context"]) == ("global", "s1", 60, {"why": "asked"})
    read = TOOLS["read_memory"].parsed({"key": "a", "context": {"scope": "shared", "ttl": 60, "why": "asked"}})
    assert {argument.name: read[argument] for argument in TOOLS["read_memory"].takes}["scope"] == "shared"


def test_a_call_is_parsed_once() -> None:
    """Text that is JSON is read as JSON once: what it holds stays text."""
    bridge = ToolDispatcher({"write_memory": lambda asker, arguments: {"value": arguments[VALUE]}})

    answer = bridge.perform("write_memory", {"key": "a", "value": '["{\\"a\\": 1}"]'}, Asker(grant=OWNER))

    assert answer == {"value": ['{"a": 1}']}
