"""What one real agent saves, another real agent can read: through our MCP server, as `kmem connect` wires it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.clients import codex, codex_settings, gemini, gemini_settings, installed
from tests.e2e.kmem import Machine, Ran, claude_code
from tests.fakes import gemini_server, openai_responses_server
from tests.fakes.anthropic_server import AnthropicServer, Json, anthropic_server, text_message, tool_message
from tests.fakes.model_server import ModelServer
from tests.fakes.repositories import FakeRepository

pytestmark = pytest.mark.skipif(
    claude_code() is None or installed("codex") is None or installed("gemini") is None,
    reason="not all three clients are installed; `.ci/run` installs them into .clients/",
)

LOOK, SAVE = "Look up what we said about the sweeper.", "Save what we decided about the sweeper."


def record(number: int, agent: str, decision: str, reasoning: str) -> Json:
    return {
        "claude_conversation_uuid": f"{number:08x}-0000-4000-8000-000000000000",
        "source": agent,
        "conversation_type": "single_topic",
        "topic": "Sweeper and its leases",
        "summary": f"The sweeper takes back claims whose worker has died. {decision}",
        "decisions": [{"decision": decision, "reasoning": reasoning}],
        "open_questions": [],
        "related_entities": ["sweeper.py"],
    }


CLAUDES = record(
    1, "claude_code", "The sweeper's lease is 45 seconds.", "A worker's heartbeat comes every 15 seconds, and three may be lost."
)
CODEXS = record(
    2, "codex", "The sweeper logs every claim it takes back.", "Without a line in the log nobody noticed the dead workers."
)
GEMINIS = record(
    3, "gemini_cli", "The sweeper runs on one machine only.", "Two sweepers took back the same claim at the same moment."
)
ABOUT = {"query": "what was decided about the sweeper"}


def claudes_model(asked: Json) -> Json:
    """Finds the tool that the prompt is about, calls it, and is done."""
    encoded = json.dumps(asked["messages"])
    if not asked.get("tools") or "toolu_call" in encoded:
        return text_message("Done.")
    tool, arguments = ("save_conversation", CLAUDES) if SAVE in encoded else ("get_context", ABOUT)
    if "toolu_find" not in encoded:
        return tool_message("ToolSearch", {"query": f"select:mcp__kite-memory__{tool}"}, id="toolu_find")
    return tool_message(f"mcp__kite-memory__{tool}", arguments, id="toolu_call")


def codexs_model(asked: Json) -> Sequence[Json]:
    """Waits until the server is there, as a person's first words would; then looks, and saves."""
    kinds = [item.get("type") for item in asked["input"]]
    match openai_responses_server.results(asked), "tool_search_output" in kinds:
        case [], _:
            return [openai_responses_server.command("sleep 5", call="call_wait")]
        case ["call_wait"], False:
            wanted = {"query": "get context, save conversation", "limit": 8}
            return [
                {
                    "type": "tool_search_call",
                    "call_id": "call_find",
                    "execution": "client",
                    "status": "completed",
                    "arguments": wanted,
                }
            ]
        case ["call_wait"], True:
            return [_codex_call("get_context", ABOUT, "call_look")]
        case ["call_wait", "call_look"], _:
            return [_codex_call("save_conversation", CODEXS, "call_save")]
        case _:
            return [openai_responses_server.said("Done.")]


def _codex_call(tool: str, arguments: Json, call: str) -> Json:
    fields = {"namespace": "mcp__kite_memory", "name": tool, "arguments": json.dumps(arguments)}
    return {"type": "function_call", "id": f"fc_{call}", "call_id": call, **fields}


def geminis_model(asked: Json) -> Sequence[Json]:
    match gemini_server.results(asked):
        case []:
            return [gemini_server.called("mcp_kite-memory_get_context", **ABOUT)]
        case ["mcp_kite-memory_get_context"]:
            return [gemini_server.called("mcp_kite-memory_save_conversation", **GEMINIS)]
        case _:
            return [gemini_server.said("Done.")]


@dataclass(frozen=True, slots=True)
class Scene:
    machine: Machine
    project: Path
    claudes: AnthropicServer
    codexs: ModelServer
    geminis: ModelServer

    def claude(self, prompt: str) -> Ran:
        return self._well(self.machine.claude(prompt, cwd=self.project))

    def codex(self) -> Ran:
        return self._well(codex(self.machine, LOOK, server=self.codexs.url, cwd=self.project))

    def gemini(self) -> Ran:
        return self._well(gemini(self.machine, LOOK, server=self.geminis.url, cwd=self.project))

    @staticmethod
    def _well(ran: Ran) -> Ran:
        assert ran.code == 0, ran.err + ran.out
        return ran


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    machine = Machine(tmp_path / "home", usual_places=True)
    project = machine.home / "mycelia"
    FakeRepository(project).commit("A sweeper", sweeper_py="LEASE = 45\n")
    (machine.home / ".claude").mkdir()
    with (
        anthropic_server(claudes_model) as claudes,
        openai_responses_server.openai_responses_server(codexs_model) as codexs,
        gemini_server.gemini_server(geminis_model) as geminis,
    ):
        machine.environment = {"ANTHROPIC_BASE_URL": claudes.url, "ANTHROPIC_API_KEY": "dummy", "KMEM_EXTRACTOR": "offline"}
        codex_settings(machine, codexs.url)
        gemini_settings(machine)
        for agent in ("claude-code", "codex", "gemini-cli"):
            connected = machine.kmem("connect", "--agent", agent, "--yes")
            assert connected.code == 0, connected.err
        up = machine.kmem("up", "--yes", "--no-hooks")
        assert up.code == 0, up.err
        yield Scene(machine, project, claudes, codexs, geminis)
        machine.kmem("down")


def decided(of: Json) -> str:
    return str(of["decisions"][0]["decision"])


def test_what_one_agent_saves_arrives_in_the_next_agents_request(scene: Scene) -> None:
    scene.claude(SAVE)
    scene.codex()
    scene.gemini()
    scene.claude(LOOK)

    codexs, geminis = (json.dumps(server.requests) for server in (scene.codexs, scene.geminis))
    last = json.dumps([request for request in scene.claudes.requests if LOOK in json.dumps(request)])
    assert decided(CLAUDES) in codexs and "three may be lost" in codexs
    assert decided(CLAUDES) in geminis and decided(CODEXS) in geminis and "nobody noticed the dead workers" in geminis
    assert decided(CODEXS) in last and decided(GEMINIS) in last and "took back the same claim" in last
    found = scene.machine.kmem("search", "decision: sweeper lease", "--json", cwd=scene.project).json()["hits"]
    assert {hit["project"] for hit in found} == {"mycelia"}


def test_the_instructions_and_the_tools_reach_each_agent(scene: Scene) -> None:
    scene.claude(LOOK)
    scene.codex()
    scene.gemini()

    asked = [json.dumps(scene.claudes.requests)]
    asked += [json.dumps(server.requests) for server in (scene.codexs, scene.geminis)]
    for requests in asked:
        assert "holds what was decided and found out in earlier sessions" in requests
        assert "What is already known about a subject from earlier sessions" in requests


def test_taken_out_again_every_file_is_as_it_was(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", usual_places=True)
    codex_settings(machine, "http://127.0.0.1:9")
    gemini_settings(machine)
    files = [machine.home / ".codex" / "config.toml", machine.home / ".gemini" / "settings.json"]
    before = [file.read_bytes() for file in files]

    for agent in ("claude-code", "codex", "gemini-cli"):
        machine.kmem("connect", "--agent", agent, "--yes")
    between = [file.read_bytes() for file in files]
    for agent in ("claude-code", "codex", "gemini-cli"):
        assert machine.kmem("connect", "--agent", agent, "--remove", "--yes").code == 0

    assert all(one != other for one, other in zip(before, between, strict=True))
    assert [file.read_bytes() for file in files] == before
    assert not (machine.home / ".claude" / ".claude.json").exists()
    assert not any((machine.home / ".claude" / folder).exists() for folder in ("commands", "skills"))
    assert not any((machine.home / folder).exists() for folder in (".claude/CLAUDE.md", ".codex/AGENTS.md", ".gemini/GEMINI.md"))
