"""A session with the real Gemini CLI: what it writes is what we read, once, over resumes."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.clients import gemini, installed, problems, read_of
from tests.e2e.kmem import Machine, eventually
from tests.fakes.anthropic_server import Json
from tests.fakes.gemini_server import called, gemini_server, results, said
from tests.fakes.model_server import ModelServer

pytestmark = pytest.mark.skipif(
    installed("gemini") is None, reason="Gemini CLI is not installed; `.ci/run` installs it into .clients/"
)

KNOWN = "The job queue uses PostgreSQL, not SQLite, because SQLite's single-writer lock stalled the workers."
ASKS = "Which database does the job queue use, and why not SQLite?"
PLANT = "Plant a pear in the orchard."


def model(asked: Json) -> Sequence[Json]:
    """Runs a command that fails, writes a file, and is done."""
    match results(asked):
        case []:
            return [said("I look around first."), called("run_shell_command", command="echo 'no such tree'; exit 3")]
        case ["run_shell_command"]:
            return [called("write_file", file_path="pear.txt", content="Conference\n")]
        case _:
            return [said("The pear is planted.")]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with gemini_server(model) as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home", environment={"KMEM_EXTRACTOR": "offline"}, usual_places=True)
    machine.configure("[recall]\nthreshold = 0.05\n")  # what is tried here does not hang on how the gate is fitted
    yield machine
    machine.kmem("down")


WHOLE = [
    ("user_message", "", PLANT),
    ("assistant_message", "", "I look around first."),
    ("tool_call", "", ""),
    ("command", "", "echo 'no such tree'; exit 3"),
    ("tool_result", "failed", "no such tree"),
    ("error", "failed", "no such tree"),
    ("tool_call", "", "content: Conference\n"),
    ("tool_result", "ok", "Successfully created and wrote to new file"),
    ("file_action", "ok", "created"),
    ("assistant_message", "", "The pear is planted."),
]


def test_a_session_arrives_whole_and_at_once(machine: Machine, server: ModelServer) -> None:
    orchard = machine.home / "orchard"
    assert machine.kmem("up", "--yes").code == 0

    ran = gemini(machine, PLANT, server=server.url, cwd=orchard)

    assert ran.code == 0, ran.err
    assert eventually(lambda: any(len(events) >= len(WHOLE) for _, events in read_of(machine, "gemini-cli")))
    ((session, events),) = read_of(machine, "gemini-cli")
    assert [(event.type.value, event.status) for event in events] == [(kind, status) for kind, status, _ in WHOLE]
    assert all(event.text.startswith(text) for event, (_, _, text) in zip(events, WHOLE, strict=True))
    assert (session.cwd, session.project) == (str(orchard), "orchard")
    action = next(event for event in events if event.type == "file_action")
    assert action.path == str(orchard / "pear.txt")
    assert problems(machine, "gemini-cli") == 0


def test_a_resumed_session_shows_only_what_is_new(machine: Machine, server: ModelServer) -> None:
    orchard = machine.home / "orchard"
    gemini(machine, PLANT, server=server.url, cwd=orchard)
    machine.kmem("backfill")
    ((session, before),) = read_of(machine, "gemini-cli")

    gemini(machine, "Now water it.", server=server.url, cwd=orchard, how=("--resume", "latest"))
    machine.kmem("backfill")

    ((again, events),) = read_of(machine, "gemini-cli")
    assert again.id == session.id
    assert events[: len(before)] == before
    assert [event.text for event in events if event.type == "user_message"] == [PLANT, "Now water it."]
    assert len({event.id for event in events}) == len(events)


def test_the_hook_gives_the_model_a_note_and_takes_it_for_no_ones_words(machine: Machine, server: ModelServer) -> None:
    orchard = machine.home / "orchard"
    gemini(machine, PLANT, server=server.url, cwd=machine.home / "elsewhere")
    settings = machine.home / ".gemini" / "settings.json"
    before = settings.read_text()
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    assert machine.kmem("remember", KNOWN, "--kind", "decision", "--global").code == 0
    assert machine.kmem("hooks", "install", "--agent", "gemini-cli", "--yes").code == 0

    ran = gemini(machine, ASKS, server=server.url, cwd=orchard)

    assert ran.code == 0, ran.err
    shown = [json.dumps(asked) for asked in server.requests]
    assert any("vault-context" in text and "PostgreSQL" in text for text in shown)
    assert eventually(lambda: len(read_of(machine, "gemini-cli")) == 2 and len(read_of(machine, "gemini-cli")[-1][1]) >= len(WHOLE))
    _, (_, events) = read_of(machine, "gemini-cli")
    assert [event.text for event in events if event.type == "user_message"] == [ASKS]
    assert not any("vault-context" in event.text or "PostgreSQL" in event.text for event in events)
    assert machine.kmem("hooks", "uninstall", "--agent", "gemini-cli", "--yes").code == 0
    assert settings.read_text() == before


def test_a_prompt_with_a_note_survives_a_resume(machine: Machine, server: ModelServer) -> None:
    orchard = machine.home / "orchard"
    (machine.home / ".gemini").mkdir()
    machine.kmem("up", "--yes", "--no-hooks")
    machine.kmem("remember", KNOWN, "--kind", "decision", "--global")
    machine.kmem("hooks", "install", "--agent", "gemini-cli", "--yes")
    settings = machine.home / ".gemini" / "settings.json"
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), **auth}))
    gemini(machine, ASKS, server=server.url, cwd=orchard)

    gemini(machine, "And since when?", server=server.url, cwd=orchard, how=("--resume", "latest"))

    shown = [json.dumps(asked) for asked in server.requests]
    assert any("vault-context" in text for text in shown)
    assert any(ASKS in text and "And since when?" in text for text in shown)
