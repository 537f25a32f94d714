"""The main job with the real client: said in one session, known in the next, silent where it does not matter."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kmem import Machine, claude_code, eventually
from tests.fakes.anthropic_server import AnthropicServer, Json, anthropic_server, text_message, tool_message

DECIDES = "Let's use PostgreSQL instead of SQLite for the job queue, because SQLite's single-writer lock stalled the workers."
ASKS = "Which database does the job queue use, and why not SQLite?"
SCHEDULES = "Look at how the workers are scheduled."
UNRELATED = "Write a haiku about the sea in autumn."

pytestmark = pytest.mark.skipif(claude_code() is None, reason="Claude Code is not installed; `.ci/run` installs it into .clients/")


def is_extraction(request: Json) -> bool:
    return "output_config" in request and not request.get("tools")


def is_turn(request: Json, prompt: str) -> bool:
    """The client also asks small things of its own, as for a title; a turn carries tools and the prompt."""
    return not is_extraction(request) and bool(request.get("tools")) and prompt in json.dumps(request.get("messages"))


def model(request: Json) -> Json:
    """One loopback model for both: it chats with the client, and answers our extraction with one decision."""
    if not is_extraction(request):
        return opening(json.dumps(request["messages"])) if request.get("tools") else text_message("Understood.")
    return extraction(json.dumps(request["messages"]))


def opening(text: str) -> Json:
    """The agent opens what a title promises, once, where the prompt is about that."""
    named = re.search(r"- ([0-9A-Z]{6}) PostgreSQL over SQLite", text)
    if named is None or SCHEDULES not in text or "tool_result" in text:
        return text_message("Understood.")
    return tool_message("Bash", {"command": f"kmem show {named.group(1)}", "description": "Open a note"})


def extraction(text: str) -> Json:
    evidence = re.search(r"\[(\d{4,})\][^\[]*PostgreSQL", text)
    if evidence is None:
        return text_message(json.dumps({"topics": [], "cross_topic_insights": []}))
    item = {
        "evidence": [evidence.group(1)],
        "kind": "decision",
        "title": "PostgreSQL over SQLite for the job queue",
        "body": "The job queue uses PostgreSQL, because SQLite's single-writer lock stalled the workers.",
        "symptom": "",
        "rejected": [{"alternative": "SQLite", "reason": "its single-writer lock stalled the workers"}],
        "importance": 3,
        "origin": "user",
        "everywhere": False,
        "entities": ["PostgreSQL", "SQLite"],
        "triggers": ["which database does the job queue use"],
    }
    topic = {"name": "job queue database", "summary": "PostgreSQL was chosen.", "categories": [], "entities": [], "items": [item]}
    return text_message(json.dumps({"topics": [topic], "cross_topic_insights": []}))


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with anthropic_server(model) as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path, server: AnthropicServer) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home")
    machine.environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy", "KMEM_EXTRACTOR": "anthropic"}
    machine.configure("[daemon]\nidle_seconds = 2\n")
    (machine.home / ".claude").mkdir()
    yield machine
    machine.kmem("down")


def test_a_decision_of_one_session_is_known_in_the_next(machine: Machine, server: AnthropicServer) -> None:
    up = machine.kmem("up", "--yes")
    assert up.code == 0, up.err
    assert "UserPromptSubmit" in (machine.home / ".claude" / "settings.json").read_text()
    project = machine.home / "mycelia"

    first = machine.claude(DECIDES, cwd=project)
    assert first.code == 0, first.err + first.out
    assert eventually(lambda: any("PostgreSQL" in note.read_text() for note in machine.notes())), machine.kmem(
        "status", "--json"
    ).out
    machine.claude(ASKS, cwd=project)
    machine.claude(UNRELATED, cwd=project)

    (note,) = [note for note in machine.notes() if note.parent.name == "decisions"]
    turns = [request for request in server.requests if is_turn(request, ASKS)]
    asked = [json.dumps(each["messages"]) for each in turns if not is_turn(each, UNRELATED)]  # whose start quotes the last work
    assert asked
    assert all("<vault-context>" in text and f"decisions/{note.name}" in text for text in asked)
    by_name = {
        each["prompt"]: each for each in machine.kmem("why", "--silent", "--json").json()["prompts"] if each["moment"] == "prompt"
    }
    assert by_name[ASKS]["reason"].startswith("1 in full")  # though the start named it
    assert by_name[UNRELATED]["notes"] == []
    assert by_name[UNRELATED]["reason"].startswith("below threshold")
    recalled = machine.kmem("recall", ASKS, "--json", cwd=project).json()
    assert [hit["path"] for hit in recalled["notes"]] == [f"decisions/{note.name}"]


def test_a_note_is_opened_without_anybody_being_asked(machine: Machine, server: AnthropicServer) -> None:
    machine.kmem("up", "--yes")
    machine.shell("kmem --version")  # puts it where the agent finds it
    project = machine.home / "mycelia"
    machine.claude(DECIDES, cwd=project)
    assert eventually(lambda: any("PostgreSQL" in note.read_text() for note in machine.notes()))

    ran = machine.claude(SCHEDULES, cwd=project, asking=True)

    last = [json.dumps(request["messages"]) for request in server.requests if is_turn(request, SCHEDULES)][-1]
    assert "tool_result" in last, ran.out
    assert "single-writer lock stalled the workers" in last.partition("tool_result")[2]
    assert json.loads(ran.out).get("permission_denials", []) == []
    prompts = machine.kmem("why", "--json").json()["prompts"]
    assert "opened" in {each["moment"] for each in prompts}


def test_what_was_injected_never_becomes_a_memory(machine: Machine, server: AnthropicServer) -> None:
    machine.kmem("up", "--yes")
    project = machine.home / "mycelia"
    machine.claude(DECIDES, cwd=project)
    assert eventually(lambda: bool(machine.notes()))
    before = {note: note.read_bytes() for note in machine.notes()}

    machine.claude(ASKS, cwd=project)
    status = machine.kmem("status", "--json").json()
    assert eventually(lambda: machine.kmem("status", "--json").json()["extractor"]["backlog_chunks"] == 0, seconds=60), status

    assert {note: note.read_bytes() for note in machine.notes()} == before
    extractions = [json.dumps(request) for request in server.requests if is_extraction(request)]
    assert not any("vault-context" in text for text in extractions)


def test_evidence_opens_the_line_it_rests_on(machine: Machine) -> None:
    machine.kmem("up", "--yes")
    machine.claude(DECIDES, cwd=machine.home / "mycelia")
    assert eventually(lambda: bool(machine.notes()))

    why = machine.kmem("why", "PostgreSQL over SQLite for the job queue", "--json").json()

    (piece,) = why["evidence"]
    assert DECIDES in piece["events"][0]["text"]


def test_hooks_go_as_they_came(machine: Machine) -> None:
    settings = machine.home / ".claude" / "settings.json"
    settings.write_text('{\n  "model": "haiku"\n}\n')
    machine.kmem("up", "--yes")

    gone = machine.kmem("hooks", "uninstall", "--yes")

    assert gone.code == 0, gone.err
    assert settings.read_text() == '{\n  "model": "haiku"\n}\n'
