"""Three real agents, one after the other, at the same piece of work: their sessions form one thread."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.clients import codex, gemini, installed
from tests.e2e.kmem import Machine, claude_code, eventually
from tests.fakes import gemini_server, openai_responses_server
from tests.fakes.anthropic_server import AnthropicServer, Json, anthropic_server, text_message, tool_message
from tests.fakes.model_server import ModelServer
from tests.fakes.repositories import FakeRepository

pytestmark = pytest.mark.skipif(
    claude_code() is None or installed("codex") is None or installed("gemini") is None,
    reason="not all three clients are installed; `.ci/run` installs them into .clients/",
)

AGENTS = ("claude-code", "codex", "gemini-cli")
CHECK = "sh check.sh"
SAYS = "AssertionError: the sweeper took back a claim within its lease"
KNOWN = "A stale claim is to be taken back by the sweeper alone, because two takers gave it to two workers."
ASKED = {
    "claude-code": "Let the sweeper take back stale claims.",
    "codex": "Go on with what takes back stale claims.",
    "gemini-cli": "What takes back stale claims still fails: mend it.",
}
PATCH = "*** Begin Patch\n*** Update File: sweeper.py\n@@\n-LEASE = 0\n+LEASE = 30\n*** End Patch\n"


def claudes_model(project: Path, asked: Json) -> Json:
    """Runs the check, which fails, writes the file, and is done."""
    if not asked.get("tools"):
        return text_message("Understood.")
    blocks = [block for message in asked["messages"] if isinstance(message["content"], list) for block in message["content"]]
    match [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]:
        case []:
            return tool_message("Bash", {"command": CHECK}, id="toolu_check")
        case ["toolu_check"]:
            return tool_message("Write", {"file_path": str(project / "sweeper.py"), "content": "LEASE = 0\n"}, id="toolu_write")
        case _:
            return text_message("The sweeper is there, its lease is not right yet.")


def codexs_model(asked: Json) -> Sequence[Json]:
    match openai_responses_server.results(asked):
        case []:
            return [openai_responses_server.command(CHECK, call="call_check")]
        case ["call_check"]:
            return [openai_responses_server.patch(PATCH, call="call_mend")]
        case _:
            return [openai_responses_server.said("The lease is longer now.")]


def geminis_model(asked: Json) -> Sequence[Json]:
    match gemini_server.results(asked):
        case []:
            return [gemini_server.called("run_shell_command", command=CHECK)]
        case ["run_shell_command"]:
            return [gemini_server.called("write_file", file_path="sweeper.py", content="LEASE = 60\n")]
        case _:
            return [gemini_server.said("Shall the sweeper also log what it takes back?")]


@dataclass(frozen=True, slots=True)
class Scene:
    """``shown`` is every request of each agent's model, in order; ``geminis`` is where Gemini CLI's is."""

    machine: Machine
    project: Path
    geminis: str
    shown: Mapping[str, Callable[[], list[str]]]

    def kmem(self, *arguments: str) -> Json:
        content: Json = self.machine.kmem(*arguments, "--json", cwd=self.project).json()
        return content

    def has_arrived(self, agent: str) -> bool:
        """Whether the last thing that the agent did is in the timeline."""
        mine = [each for each in self.kmem("timeline")["sessions"] if each["provider"] == agent]
        events = self.kmem("timeline", f"{agent}:{mine[0]['id']}")["events"] if mine else []
        return bool(events) and events[-1]["type"] == "assistant_message"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Hooks in all three, and each has worked, as soon as what the one before it did was known."""
    machine = Machine(tmp_path_factory.mktemp("three") / "home", usual_places=True)
    project = machine.home / "mycelia"
    FakeRepository(project).commit("A check for the sweeper", check_sh=f"echo '{SAYS}' >&2\nexit 1\n")
    for folder in (".claude", ".codex", ".gemini"):
        (machine.home / folder).mkdir()
    (machine.home / ".gemini" / "settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}\n')
    with (
        anthropic_server(partial(claudes_model, project)) as claudes,
        openai_responses_server.openai_responses_server(codexs_model) as codexs,
        gemini_server.gemini_server(geminis_model) as geminis,
    ):
        machine.environment = {"ANTHROPIC_BASE_URL": claudes.url, "ANTHROPIC_API_KEY": "dummy", "KMEM_EXTRACTOR": "offline"}
        listed = [machine.kmem("up", "--yes", "--no-hooks")]
        listed += [machine.kmem("hooks", "install", "--agent", agent, "--yes") for agent in AGENTS]
        listed += [machine.kmem("remember", KNOWN, "--kind", "decision", "--project", "mycelia")]
        assert [each.code for each in listed] == [0] * 5, [each.err for each in listed]
        servers: dict[str, AnthropicServer | ModelServer] = {"claude-code": claudes, "codex": codexs, "gemini-cli": geminis}
        scene = Scene(machine, project, geminis.url, {agent: partial(_requests, server) for agent, server in servers.items()})
        work = {
            "claude-code": partial(machine.claude, ASKED["claude-code"], cwd=project),
            "codex": partial(codex, machine, ASKED["codex"], server=codexs.url, cwd=project, trusting=True),
            "gemini-cli": partial(gemini, machine, ASKED["gemini-cli"], server=geminis.url, cwd=project),
        }
        for agent in AGENTS:
            ran = work[agent]()
            assert ran.code == 0, ran.err + ran.out
            assert eventually(partial(scene.has_arrived, agent)), agent
        yield scene
        machine.kmem("down")


def _requests(server: AnthropicServer | ModelServer) -> list[str]:
    return [json.dumps(request) for request in server.requests]


def test_three_agents_at_one_file_and_one_failure_are_one_thread(scene: Scene) -> None:
    answer = scene.kmem("threads")

    (thread,) = answer["threads"]
    assert [session["provider"] for session in thread["sessions"]] == list(AGENTS)
    assert {session["project"] for session in thread["sessions"]} == {"mycelia"}
    named = [f"{session['provider']}:{session['id']}" for session in thread["sessions"]]
    assert [joint["to"] for joint in thread["joints"]] == named[1:]
    for joint in thread["joints"]:
        assert joint["from"] in named
        reasons = [(reason["tie"], reason["what"]) for reason in joint["reasons"]]
        assert {("file", "sweeper.py"), ("error", SAYS)} <= set(reasons)
    shown = scene.machine.kmem("threads", cwd=scene.project).out
    assert all(agent in shown for agent in AGENTS)
    assert "file sweeper.py" in shown


def test_the_timeline_has_what_each_of_them_did(scene: Scene) -> None:
    listed = scene.kmem("timeline", "--project", "mycelia")["sessions"]

    sessions = {each["provider"]: each["id"] for each in listed if each["provider"] in AGENTS}
    assert len(sessions) == 3
    for agent, session in sessions.items():
        plain = scene.machine.kmem("timeline", session, "--plain").out
        assert ASKED[agent] in plain and "sweeper.py" in plain and SAYS in plain


def test_where_each_of_them_stood_is_reported_and_the_last_one_unasked(scene: Scene) -> None:
    last = scene.kmem("resume")
    listed = [each for each in scene.kmem("timeline")["sessions"] if each["provider"] in AGENTS]

    assert last["session"]["provider"] == "gemini-cli"
    assert "Shall the sweeper also log what it takes back?" in last["text"]
    assert "`sh check.sh` failed" in last["text"]
    for each in listed:
        resumed = scene.kmem("resume", "--session", f"{each['provider']}:{each['id']}")
        assert ASKED[each["provider"]] in resumed["text"] and "sweeper.py" in resumed["text"]
        assert all(cited.startswith(f"{each['provider']}:") for line in resumed["lines"] for cited in line["evidence"])


def test_a_search_for_the_failure_finds_it_with_all_three(scene: Scene) -> None:
    found = scene.kmem("search", "error: claim within its lease")["events"]

    assert {event["provider"] for event in found} == set(AGENTS)


@pytest.mark.parametrize("agent", AGENTS)
def test_each_ones_model_is_given_the_note_in_its_first_request_and_once(scene: Scene, agent: str) -> None:
    shown = [request for request in scene.shown[agent]() if ASKED[agent] in request]

    assert shown
    assert all(request.count("[decisions/a-stale-claim") == 1 for request in shown)


@pytest.mark.parametrize(("agent", "before"), [("codex", "claude-code"), ("gemini-cli", "codex")])
def test_each_learns_what_the_one_before_it_was_asked(scene: Scene, agent: str, before: str) -> None:
    """Gemini CLI with its first prompt: it can be given nothing before."""
    shown = [request for request in scene.shown[agent]() if ASKED[agent] in request]

    assert shown
    assert all(request.count("what was being done here last") == 1 for request in shown)
    assert all(ASKED[before] in request for request in shown)


def test_gemini_gets_nothing_again_as_it_goes_on_and_keeps_its_first_prompt(scene: Scene) -> None:
    """What a session's start says would cost a resumed one its first prompt."""
    ran = gemini(scene.machine, "And since when?", server=scene.geminis, cwd=scene.project, how=("--resume", "latest"))

    assert ran.code == 0, ran.err
    shown = [request for request in scene.shown["gemini-cli"]() if "And since when?" in request]
    assert shown
    assert all(ASKED["gemini-cli"] in request for request in shown)
    assert all(request.count("what was being done here last") == 1 for request in shown)
