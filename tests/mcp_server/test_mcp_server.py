"""The MCP server as the official client sees it, in both eras of the protocol."""

import json
import re
from collections.abc import Iterator
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from kite_memory.mcp_server.http import agent_of
from kite_memory.mcp_server.server import client_of, server_over
from kite_memory.tools.declarations import MORE_TOOLS, TOOLS
from kite_memory.tools.store import OWNER, Asker
from tests.fakes.performers import Performer

DAILY = (
    "generate_conversation_id", "get_context", "save_conversation", "write_memory", "read_memory", "smart_resume", "ai_state_save",
    "ai_state_get", "search_notes", "show_notes", "remember", "forget", "more_tools",
)  # fmt: skip
CONTRACT = (
    "generate-conversation-id", "get-context", "save-conversation", "write_memory", "read_memory", "list_memories", "delete_memory",
    "smart_resume", "ai_state_save", "ai_state_get", "ai_state_transfer", "ai_state_list", "search_notes", "get_note",
    "show_notes", "timeline", "resume_brief", "remember", "forget",
)  # fmt: skip

ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])


class Table:
    """A server over a `Performer`, and what came of it."""

    def __init__(self, *, everything: bool = False) -> None:
        self.performer = Performer()
        self.reported: list[BaseException] = []
        self.everything = everything

    def client(self, era: str = "legacy", name: str = "claude-code") -> Client:
        def who(context: Any) -> Asker:
            return Asker(grant=OWNER, project="mycelia", ai=agent_of(client_of(context)))

        server = server_over(self.performer.perform, who, self.reported.append, everything=self.everything)
        return Client(server, mode=era, client_info=types.Implementation(name=name, version="1"))


@pytest.fixture
def table() -> Iterator[Table]:
    yield Table()


async def called(client: Client, tool: str, **arguments: object) -> types.CallToolResult:
    return await client.call_tool(tool, arguments)


def words(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def listed(table: Table, era: str = "legacy") -> types.ListToolsResult:
    async def ask() -> types.ListToolsResult:
        async with table.client(era) as client:
            assert client.instructions is not None and "get_context" in client.instructions
            return await client.list_tools()

    return anyio.run(ask)


def size(listed: types.ListToolsResult) -> int:
    return len(listed.model_dump_json(by_alias=True, exclude_none=True).encode())


@ERAS
@pytest.mark.parametrize("everything", [False, True])
def test_the_tools_are_listed_with_words_and_hints(era: str, everything: bool) -> None:
    tools = {tool.name: tool for tool in listed(Table(everything=everything), era).tools}

    assert tuple(tools) == (tuple(TOOLS) if everything else DAILY)
    for name, tool in tools.items():
        assert re.fullmatch("[a-z]+(_[a-z]+)*", name)
        assert tool.description is not None and len(tool.description) > 60
        assert tool.annotations is not None and tool.annotations.open_world_hint is False
        assert set(tool.input_schema.get("required", [])) <= set(tool.input_schema["properties"])
    hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations is not None}
    assert {name for name, hint in hints.items() if hint.destructive_hint} == {"delete_memory", "forget", "more_tools"} & set(tools)
    writing = re.compile("write|save|remember|forget|delete|more|ai_state_[st]")
    assert not any(hint.read_only_hint for name, hint in hints.items() if writing.match(name))
    assert hints["get_context"].read_only_hint and hints["smart_resume"].read_only_hint


def test_the_declarations_take_an_agent_at_most_12_kb() -> None:
    """Every session of every agent pays for them."""
    assert size(listed(Table())) <= 12_000
    assert size(listed(Table(everything=True))) <= 17_000


@pytest.mark.parametrize("name", CONTRACT)
def test_every_name_of_the_contract_is_callable_whether_listed_or_not(table: Table, name: str) -> None:
    async def asked() -> types.CallToolResult:
        async with table.client() as client:
            return await client.call_tool(name, {"key": "a", "note": "n1"})

    anyio.run(asked)

    ((tool, _, _),) = table.performer.asked
    assert tool == name.replace("-", "_")


def test_what_is_not_listed_is_described_and_called_by_a_tool_that_is(table: Table) -> None:
    async def asked() -> tuple[types.CallToolResult, ...]:
        async with table.client() as client:
            return (
                await client.call_tool("more_tools"),
                await client.call_tool("more_tools", {"tool": "get_note", "arguments": {"note": "n1"}}),
                await client.call_tool("more_tools", {"tool": "get_note", "arguments": '{"note": "n2"}'}),
                await client.call_tool("more_tools", {"tool": "get_note", "arguments": "n1"}),
            )

    described, found, missing, unfit = anyio.run(asked)

    assert {tool["name"] for tool in described.structured_content["tools"]} == set(TOOLS) - set(DAILY)
    assert all(tool["arguments"]["properties"] and tool["description"] for tool in described.structured_content["tools"])
    assert words(found) == "# Tea\n\nWith biscuits."
    assert missing.is_error and "no such note" in words(missing)
    assert unfit.is_error and "arguments are not an object" in words(unfit)
    assert all(name in MORE_TOOLS.description for name in set(TOOLS) - set(DAILY))


@pytest.mark.parametrize("name", ["", "nothing", "more_tools", "recent_notes"])
def test_more_tools_calls_nothing_but_tools(table: Table, name: str) -> None:
    async def asked() -> None:
        async with table.client() as client:
            if not name:
                await client.call_tool("more_tools", {"tool": name})
                return
            with pytest.raises(MCPError, match="unknown tool"):
                await client.call_tool("more_tools", {"tool": name})

    anyio.run(asked)

    assert table.performer.asked == []


@ERAS
def test_a_call_reaches_the_bridge_with_who_asked(table: Table, era: str) -> None:
    async def asked() -> types.CallToolResult:
        async with table.client(era) as client:
            return await called(client, "write_memory", key="a.b", value={"n": 1}, scope=None, expected_version=0)

    result = anyio.run(asked)

    assert result.structured_content == {"key": "a.b", "scope": "project", "version": 1}
    assert json.loads(words(result)) == result.structured_content
    assert table.performer.asked == [
        (
            "write_memory",
            {"key": "a.b", "value": {"n": 1}, "scope": None, "expected_version": 0},
            Asker(grant=OWNER, project="mycelia", ai="claude-code"),
        )
    ]


@ERAS
def test_a_conflict_is_an_error_with_its_version(table: Table, era: str) -> None:
    async def asked() -> types.CallToolResult:
        async with table.client(era) as client:
            return await called(client, "write_memory", key="a.b", value=1, expected_version=1)

    result = anyio.run(asked)

    assert result.is_error
    assert result.structured_content["error"]["kind"] == "conflict"
    assert result.structured_content["error"]["version"] == 2
    assert "expected_version 2" in words(result) and "read_memory shows it" in words(result)


@ERAS
def test_an_unknown_tool_is_named_with_those_there_are(table: Table, era: str) -> None:
    async def asked() -> None:
        async with table.client(era) as client:
            with pytest.raises(MCPError, match=r"unknown tool 'recent_notes'.*get_context"):
                await called(client, "recent_notes")

    anyio.run(asked)

    assert table.performer.asked == []


def test_a_bug_of_ours_is_reported_and_costs_one_call(table: Table) -> None:
    async def asked() -> list[types.CallToolResult]:
        async with table.client() as client:
            return [await called(client, "forget", note="n1"), await called(client, "read_memory", key="a")]

    failed, went_on = anyio.run(asked)

    assert failed.is_error and "internal error" in words(failed) and "ZeroDivision" not in words(failed)
    assert [type(error) for error in table.reported] == [ZeroDivisionError]
    assert went_on.structured_content == {"key": "a", "value": 7}


def test_results_are_bounded(table: Table) -> None:
    async def asked() -> types.CallToolResult:
        async with table.client() as client:
            return await called(client, "search_notes", query="tea")

    result = anyio.run(asked)

    assert len(words(result)) <= 20_200
    assert "ask for less" in result.structured_content["cut"]
    assert result.structured_content["hits"][0]["id"] == "0"


@ERAS
def test_notes_are_resources(table: Table, era: str) -> None:
    async def read() -> tuple[types.ListResourcesResult, types.ListResourceTemplatesResult, types.ReadResourceResult]:
        async with table.client(era) as client:
            listed = await client.list_resources()
            return listed, await client.list_resource_templates(), await client.read_resource(str(listed.resources[0].uri))

    listed, templates, note = anyio.run(read)

    assert [(resource.uri, resource.title) for resource in listed.resources] == [("kite://note/n1", "Tea & biscuits")]
    assert [template.uri_template for template in templates.resource_templates] == ["kite://note/{id}"]
    (content,) = note.contents
    assert isinstance(content, types.TextResourceContents)
    assert content.text == "# Tea\n\nWith biscuits." and content.mime_type == "text/markdown"


@ERAS
@pytest.mark.parametrize("uri", ["kite://note/n2", "kite://note/..%2F..%2Fetc%2Fpasswd", "file:///etc/passwd", "kite://note/"])
def test_a_resource_that_is_invalid_is_an_error(table: Table, era: str, uri: str) -> None:
    async def read() -> None:
        async with table.client(era) as client:
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    anyio.run(read)

    assert all(arguments["note"] in ("n2", "../../etc/passwd") for _, arguments, _ in table.performer.asked)


@pytest.mark.parametrize(("era", "code"), [("legacy", -32002), ("auto", types.INVALID_PARAMS)])
def test_a_resource_that_is_not_there_is_reported_by_the_code_of_its_time(table: Table, era: str, code: int) -> None:
    """The older one is retired, and may not be used again."""

    async def read() -> int:
        async with table.client(era) as client:
            with pytest.raises(MCPError) as missing:
                await client.read_resource("kite://note/n2")
            return missing.value.error.code

    assert anyio.run(read) == code


@ERAS
def test_the_prompt_brings_the_briefing(table: Table, era: str) -> None:
    async def prompted() -> list[types.GetPromptResult]:
        async with table.client(era) as client:
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["resume-work"]
            return [await client.get_prompt("resume-work"), await client.get_prompt("resume-work", {"session_id": "coffee"})]

    listed = [prompt.messages[0].content for prompt in anyio.run(prompted)]

    assert ["brewing tea" in str(content) for content in listed] == [True, False]
    assert "brewing coffee" in str(listed[1])
    assert all("current.kettle: on" in str(content) for content in listed)


@pytest.mark.parametrize(
    ("client", "agent"),
    [
        ("claude-code", "claude-code"),
        ("codex-mcp-client", "codex"),
        ("gemini-cli-mcp-client", "gemini-cli"),
        ("Visual Studio Code - Insiders", "vscode"),
        ("Cursor", "cursor"),
        ("Some Agent/../2", "some-agent-..-2"),
        ("", ""),
        ("\0\n", ""),
    ],
)
def test_an_agent_has_the_name_of_its_source(client: str, agent: str) -> None:
    assert agent_of(client) == agent
