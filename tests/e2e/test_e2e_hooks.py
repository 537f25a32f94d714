"""What reaches the model beside a tool's result and as a session starts, with the real client and its real hooks.

The gate is asked to doubt every prompt, so that what is tried here does not hang on how it is fitted.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kite_memory.agents.claude_code import fast_command, plan_install
from kite_memory.agents.settings_edit import Edit
from kite_memory.app.agent_hooks import HookHandler, Judging
from kite_memory.config import Config, ExtractorConfig
from kite_memory.daemon.protocol import Ok, Reply, Request
from kite_memory.daemon.server import Server
from kite_memory.distill.outbox import Outbox
from kite_memory.keys import keys_beside
from kite_memory.model.hit import Injection, Judged, Question
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.select import Delivery, Prompt
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.system.private_files import make_private_folder
from kite_memory.timeline.store import Timeline
from kite_memory.wiring.models import judge_of
from tests.e2e.kmem import Machine, claude_code, eventually
from tests.fakes.anthropic_server import AnthropicServer, Json, anthropic_server, message, text_message
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.recall.notes import AUTH, LINT, Pile, hit

ASKS = "please have a look at what the linter says"
NOTES = (AUTH, LINT)

pytestmark = pytest.mark.skipif(claude_code() is None, reason="Claude Code is not installed; `.ci/run` installs it into .clients/")


class Doubting(Recall):
    """Every prompt has a question for the judge."""

    opening: Injection = Injection(block="", hits=(), reason="nothing that always applies")
    asked: Callable[[], object] = staticmethod(lambda: None)

    def answer(self, prompt: Prompt, *, remember: bool = True, delivery: Delivery | None = None) -> Injection:
        candidates = tuple(replace(hit(note.body), note=note) for note in NOTES)
        question = Question(session=prompt.session, project=prompt.project, prompt=prompt.text, exchange="", candidates=candidates)
        return Injection(block="", hits=(), reason="not sure", question=question)

    def log_verdicts(self, question: Question, judged: Judged) -> None:
        self.asked()

    def brief(
        self, *, session: str, project: str, branch: str = "", remember: bool = True, delivery: Delivery | None = None
    ) -> Injection:
        return self.opening


@dataclass(slots=True)
class Model:
    """Plays the agent's model, which wants ``tools`` called one after the other, and our judge, which finds the second note."""

    tools: list[list[Json]] = field(default_factory=list)
    before_judging: Callable[[], object] = lambda: None
    before_a_turn: Callable[[], object] = lambda: None
    judgements: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Json) -> Json:
        if is_judgement(request):
            self.before_judging()
            with self.lock:
                self.judgements += 1
            return text_message(json.dumps({"any": 90, "notes": [{"n": 2, "p": 90}]}))
        if not request.get("tools"):
            return text_message("Understood.")
        if "tool_result" not in json.dumps(request["messages"][-1:]):
            self.before_a_turn()
        with self.lock:
            calls = self.tools.pop(0) if self.tools else []
        return message(calls, stop_reason="tool_use") if calls else text_message("Done.")


def is_judgement(request: Json) -> bool:
    return not request.get("tools") and "<notes>" in json.dumps(request["messages"])


def runs(command: str, id: str) -> Json:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}


def fails(id: str) -> Json:
    return {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/nowhere/at/all"}}


@dataclass(frozen=True, slots=True)
class Scene:
    machine: Machine
    server: AnthropicServer
    model: Model
    recall: Doubting
    handler: HookHandler

    @property
    def project(self) -> Path:
        return self.machine.home / "mycelia"

    def turns(self) -> list[str]:
        """What the agent's model was asked, in order."""
        return [json.dumps(request["messages"]) for request in self.server.requests if request.get("tools")]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    model = Model()
    machine = Machine(tmp_path / "home")
    plan = plan_install(None, fast_command())
    assert isinstance(plan, Edit) and plan.after is not None
    (machine.home / ".claude").mkdir()
    (machine.home / ".claude" / "settings.json").write_text(plan.after)
    make_private_folder(machine.state)
    with anthropic_server(model) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy")
        machine.environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy", "KMEM_HOOK_DEADLINE_MS": "4000"}
        config = Config(
            file=machine.config,
            state=machine.state,
            vault=machine.vault,
            claude_root=machine.home / ".claude",
            extractor=ExtractorConfig(name="anthropic", base_url=server.url),
        )
        outbox = Outbox(machine.state / "outbox.sqlite")
        timeline = Timeline(machine.state / "timeline.sqlite")
        folder = machine.state / "index"
        recall = Doubting(index=Index(folder, embedder=HashingEmbedder(dim=32)), memory=SessionMemory(folder / "shown.sqlite"))
        recall.refresh(Pile(*NOTES))
        judge = judge_of(config, keys_beside(config.file), outbox)
        assert judge is not None
        handler = HookHandler(recall=recall, timeline=timeline, judging=Judging(judge=judge, mode="late"), report=print)

        def handle(request: Request) -> Reply:
            return Ok(body=handler.answer(request.body, request.variant).encode())

        with Server(machine.state, handle, report=print):
            yield Scene(machine, server, model, recall, handler)
        handler.close()
        for thread in threading.enumerate():
            if thread.name == "kmem-judge":
                thread.join(20)
        recall.close()
        timeline.close()
        outbox.close()


def test_a_verdict_reached_while_the_first_tool_runs_is_beside_its_result_in_the_same_turn(scene: Scene) -> None:
    running, reached = scene.machine.home / "running", scene.machine.home / "reached"
    scene.model.tools = [[runs(f"touch {running}; while [ ! -e {reached} ]; do sleep 0.1; done; sleep 0.3; echo 3 findings", "t1")]]
    scene.model.before_judging = lambda: eventually(running.exists)
    scene.recall.asked = reached.touch

    ran = scene.machine.claude(ASKS, cwd=scene.project)

    first, second = scene.turns()
    assert ran.code == 0, ran.err
    assert scene.model.judgements == 1
    assert ASKS in first and "vault-context" not in first
    assert "3 findings" in second and "facts/lint.md" in second and "only when started in src" in second
    assert second.index("3 findings") < second.index("facts/lint.md")
    assert "facts/auth.md" not in second


@pytest.mark.parametrize("call", [runs("exit 3", "t1"), fails("t1")], ids=["a command that fails", "a file that is not there"])
def test_it_comes_with_a_tool_that_fails_as_well(scene: Scene, call: Json) -> None:
    judged = threading.Event()
    scene.recall.asked = judged.set
    scene.model.before_a_turn = lambda: judged.wait(20)
    scene.model.tools = [[call]]

    scene.machine.claude(ASKS, cwd=scene.project)

    first, second = scene.turns()
    assert "vault-context" not in first
    assert "facts/lint.md" in second


def test_nothing_comes_twice_in_a_session(scene: Scene) -> None:
    judged = threading.Semaphore(0)
    scene.recall.asked = judged.release
    scene.model.before_a_turn = lambda: judged.acquire(timeout=20)

    scene.model.tools = [[runs("echo 3 findings", "t1")], [runs("echo looking", "t2"), runs("echo closer", "t3")]]
    scene.machine.claude(ASKS, cwd=scene.project)
    scene.model.tools = [[runs("echo again", "t4")]]
    scene.machine.claude(f"{ASKS}, again", cwd=scene.project, go_on=True)

    assert scene.model.judgements == 2
    assert len(scene.turns()) == 5
    assert [turn.count("facts/lint.md") for turn in scene.turns()] == [0, 1, 1, 1, 1]


def test_a_sessions_brief_is_in_its_first_request(scene: Scene) -> None:
    scene.recall.opening = Injection(
        block="<vault-context>\nlint runs from src\n</vault-context>", hits=(), reason="brief", tokens=20
    )

    scene.machine.claude(ASKS, cwd=scene.project)

    assert "lint runs from src" in scene.turns()[0]


def test_what_was_being_done_last_is_reported_as_the_next_session_starts(tmp_path: Path) -> None:
    def model(request: Json) -> Json:
        return text_message("Understood.")

    with anthropic_server(model) as server:
        machine = Machine(tmp_path / "home")
        machine.environment = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "dummy",
            "KMEM_EXTRACTOR": "offline",
            "KMEM_HOOK_DEADLINE_MS": "4000",
        }
        (machine.home / ".claude").mkdir()
        try:
            assert machine.kmem("up", "--yes").code == 0
            machine.claude("Write the migration of the queue", cwd=machine.home / "mycelia")
            assert eventually(lambda: any(each["events"] for each in machine.kmem("status", "--json").json()["sources"]))
            machine.claude("Good morning", cwd=machine.home / "mycelia")
        finally:
            machine.kmem("down")

    (result,) = [
        json.dumps(each["messages"]) for each in server.requests if each.get("tools") and "Good morning" in json.dumps(each)
    ]
    assert "what was being done here last" in result
    assert re.search(r"- 20\d\d-\d\d-\d\d, the last prompt: \W+Write the migration of the queue", result)
