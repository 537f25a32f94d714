"""What a person asks to have kept is known to the very next prompt, here and elsewhere; and a box on the page is obeyed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clients import codex, gemini, installed
from tests.e2e.kmem import Machine, claude_code, eventually
from tests.fakes.anthropic_server import AnthropicServer, Json, anthropic_server, text_message, tool_message
from tests.fakes.gemini_server import gemini_server
from tests.fakes.gemini_server import said as gemini_said
from tests.fakes.openai_responses_server import openai_responses_server
from tests.fakes.openai_responses_server import said as codex_said

KEPT = "The staging database is reset every Monday."
SAYS = f"Thanks, that works. Remember that {KEPT[0].lower()}{KEPT[1:]}"
ASKS = "On which day is the staging database reset?"
RULE = "From now on name every migration after its ticket."

with_claude_code = pytest.mark.skipif(
    claude_code() is None, reason="Claude Code is not installed; `.ci/run` installs it into .clients/"
)


def model(request: Json) -> Json:
    """Runs what a command of ours asks for, as a model would: the person's words as one argument."""
    asked = json.dumps(request.get("messages", []))
    if not request.get("tools") or "tool_result" in asked:
        return text_message("Done.")
    if found := re.search(r"The person wants this kept in their memory:(?:\\n)+(.{5,200}?)(?:\\n)", asked):
        return tool_message("Bash", {"command": f"kmem remember '{found[1]}'", "description": "keep it"})
    return text_message("Understood.")


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with anthropic_server(model) as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path, server: AnthropicServer) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home")
    machine.environment = {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "dummy",
        "KMEM_EXTRACTOR": "offline",
        "KMEM_EMBEDDER": "local",
        "KMEM_JUDGE": "off",
        "KMEM_HOOK_DEADLINE_MS": "4000",
    }
    machine.configure("[daemon]\nidle_seconds = 2\n")
    (machine.home / ".claude").mkdir()
    machine.shell("true")  # so that `kmem` can be called by its name
    yield machine
    machine.kmem("down")


def prompted(machine: Machine, text: str, *, session: str) -> str:
    answer = machine.hook(
        {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": str(machine.home / "mycelia"), "prompt": text}
    )
    assert answer.code == 0, answer.err
    return answer.out


def notes_saying(machine: Machine, words: str) -> list[Path]:
    return [note for note in machine.notes() if words in note.read_text(encoding="utf-8")]


def turns(server: AnthropicServer, prompt: str) -> list[str]:
    asked = (json.dumps(request["messages"]) for request in server.requests if request.get("tools"))
    return [text for text in asked if prompt in text]


def test_what_is_said_to_be_kept_is_known_to_the_next_prompt(machine: Machine) -> None:
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    (machine.home / "mycelia" / ".git").mkdir(parents=True)

    prompted(machine, SAYS, session="one")
    assert eventually(lambda: bool(notes_saying(machine, KEPT)))

    assert eventually(lambda: KEPT in prompted(machine, ASKS, session="two"))
    assert KEPT in prompted(machine, ASKS, session="one")
    (note,) = notes_saying(machine, KEPT)
    assert "tags: [said]" in note.read_text(encoding="utf-8")
    assert "origin: user" in note.read_text(encoding="utf-8")


def test_what_a_command_keeps_is_known_to_the_next_prompt(machine: Machine) -> None:
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    (machine.home / "mycelia" / ".git").mkdir(parents=True)
    assert KEPT not in prompted(machine, ASKS, session="one")

    kept = machine.kmem("remember", KEPT, cwd=machine.home / "mycelia")

    assert kept.code == 0, kept.err
    assert KEPT in prompted(machine, ASKS, session="one")
    assert KEPT in prompted(machine, ASKS, session="two")
    machine.kmem("forget", KEPT, cwd=machine.home / "mycelia")
    assert KEPT not in prompted(machine, ASKS, session="three")


def test_a_box_that_is_ticked_is_obeyed_while_the_daemon_runs(machine: Machine) -> None:
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    (machine.home / "mem0.json").write_text(json.dumps([{"id": "1", "memory": KEPT}]))
    assert machine.kmem("import", str(machine.home / "mem0.json"), "--project", "mycelia").code == 0
    page = machine.vault / "Review.md"
    assert eventually(lambda: page.exists() and "- [ ] accept" in page.read_text(encoding="utf-8"))

    page.write_text(page.read_text(encoding="utf-8").replace("- [ ] accept", "- [x] accept") + "\nmine\n", encoding="utf-8")

    (note,) = notes_saying(machine, KEPT)
    assert eventually(lambda: "status: accepted" in note.read_text(encoding="utf-8"))
    assert eventually(lambda: "Nothing waits." in page.read_text(encoding="utf-8"))
    assert page.read_text(encoding="utf-8").endswith("\nmine\n")


@with_claude_code
def test_with_the_real_client_what_is_said_and_what_is_commanded_is_known_next(machine: Machine, server: AnthropicServer) -> None:
    assert machine.kmem("up", "--yes").code == 0
    connected = machine.kmem("connect", "--agent", "claude-code", "--yes")
    assert connected.code == 0, connected.err
    project = machine.home / "mycelia"

    said = machine.claude(RULE, cwd=project)
    assert said.code == 0, said.err + said.out
    assert eventually(lambda: bool(notes_saying(machine, "Name every migration after its ticket.")))
    commanded = machine.claude(f"/remember {KEPT}", cwd=project)
    assert commanded.code == 0, commanded.err + commanded.out
    assert eventually(lambda: bool(notes_saying(machine, KEPT))), server.requests[-1]["messages"]
    machine.claude(ASKS, cwd=project)

    assert any(f"{KEPT}" in text and "<vault-context>" in text for text in turns(server, ASKS))
    (rule,) = notes_saying(machine, "Name every migration after its ticket.")
    assert eventually(lambda: "claude-code:" in rule.read_text(encoding="utf-8"))  # the line of the transcript, once it is read
    assert len(notes_saying(machine, "migration after its ticket")) == 1


@pytest.mark.skipif(installed("codex") is None, reason="Codex is not installed; `.ci/run` installs it into .clients/")
def test_the_real_codex_knows_our_skills(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", environment={"KMEM_EXTRACTOR": "offline"}, usual_places=True)
    (machine.home / ".codex").mkdir()
    connected = machine.kmem("connect", "--agent", "codex", "--yes")
    assert connected.code == 0, connected.err

    with openai_responses_server(lambda asked: [codex_said("Understood.")]) as server:
        ran = codex(machine, "$resume-work", server=server.url, cwd=machine.home / "mycelia")

    assert ran.code == 0, ran.err
    asked = json.dumps(server.requests)
    assert "Keep something in Kite Memory" in asked  # that there is such a skill
    assert "it prints what changed last, what failed, what to verify next" in asked  # what the one called says


@pytest.mark.skipif(installed("gemini") is None, reason="Gemini CLI is not installed; `.ci/run` installs it into .clients/")
def test_the_real_gemini_runs_our_commands(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", environment={"KMEM_EXTRACTOR": "offline"}, usual_places=True)
    (machine.home / ".gemini").mkdir()
    connected = machine.kmem("connect", "--agent", "gemini-cli", "--yes")
    assert connected.code == 0, connected.err
    (machine.home / ".gemini" / "settings.json").unlink()  # without our server, which would have to be started here

    with gemini_server(lambda asked: [gemini_said("Understood.")]) as server:
        ran = gemini(machine, f"/remember {KEPT}", server=server.url, cwd=machine.home / "mycelia")

    assert ran.code == 0, ran.err
    asked = json.dumps(server.requests)
    assert "The person wants this kept in their memory" in asked
    assert KEPT in asked
