"""A session with the real Codex: what it writes is what we read, once, over resumes and forks."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kite_memory.model.event import Event
from tests.e2e.clients import codex, installed, problems, read_of
from tests.e2e.kmem import Machine, eventually
from tests.fakes.anthropic_server import Json
from tests.fakes.model_server import ModelServer
from tests.fakes.openai_responses_server import command, openai_responses_server, patch, results, said

pytestmark = pytest.mark.skipif(installed("codex") is None, reason="Codex is not installed; `.ci/run` installs it into .clients/")

KNOWN = "The job queue uses PostgreSQL, not SQLite, because SQLite's single-writer lock stalled the workers."
ASKS = "Which database does the job queue use, and why not SQLite?"
PLANT = "Plant a pear in the orchard."
PATCH = "*** Begin Patch\n*** Add File: pear.txt\n+Conference\n*** End Patch\n"


def model(asked: Json) -> Sequence[Json]:
    """Runs a command that fails, writes a file, and is done."""
    match results(asked):
        case []:
            return [said("I look around first."), command("echo 'no such tree'; exit 3", call="call_look")]
        case ["call_look"]:
            return [patch(PATCH, call="call_plant")]
        case _:
            return [said("The pear is planted.")]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with openai_responses_server(model) as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home", environment={"KMEM_EXTRACTOR": "offline"}, usual_places=True)
    machine.configure("[recall]\nthreshold = 0.05\n")  # what is tried here does not hang on how the gate is fitted
    yield machine
    machine.kmem("down")


def described(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(event.type.value, event.status, event.text) for event in events]


WHOLE = [
    ("user_message", "", PLANT),
    ("assistant_message", "", "I look around first."),
    ("tool_call", "", ""),
    ("command", "", "echo 'no such tree'; exit 3"),
    ("tool_result", "failed", "no such tree"),
    ("error", "failed", "no such tree"),
    ("tool_call", "", f"patch: {PATCH}"),
    ("tool_result", "ok", "Success. Updated the following files:\nA pear.txt"),
    ("file_action", "ok", "created"),
    ("assistant_message", "", "The pear is planted."),
]


def test_a_session_arrives_whole_and_at_once(machine: Machine, server: ModelServer) -> None:
    orchard = machine.home / "orchard"
    assert machine.kmem("up", "--yes").code == 0

    ran = codex(machine, PLANT, server=server.url, cwd=orchard)

    assert ran.code == 0, ran.err
    assert eventually(lambda: any(len(events) >= len(WHOLE) for _, events in read_of(machine, "codex")))
    ((session, events),) = read_of(machine, "codex")
    assert described(events) == WHOLE
    assert (session.cwd, session.project) == (str(orchard), "orchard")
    action = next(event for event in events if event.type == "file_action")
    assert action.path == str(orchard / "pear.txt")
    assert problems(machine, "codex") == 0


def test_resumes_and_forks_tell_only_what_is_new(machine: Machine, server: ModelServer) -> None:
    orchard = machine.home / "orchard"
    codex(machine, PLANT, server=server.url, cwd=orchard)
    machine.kmem("backfill")
    ((session, _),) = read_of(machine, "codex")

    codex(machine, "Now water it.", server=server.url, cwd=orchard, how=("resume", "--last"))
    codex(machine, "And plant a plum.", server=server.url, cwd=orchard, how=("fork", session.id))
    machine.kmem("backfill")

    (first, events), (fork, forked) = read_of(machine, "codex")
    assert first.id == session.id
    assert [event.text for event in events if event.type == "user_message"] == [PLANT, "Now water it."]
    assert [event.text for event in forked if event.type == "user_message"] == ["And plant a plum."]
    assert fork.parent == session.id


def test_the_hook_gives_the_model_a_note_and_takes_it_for_no_ones_words(machine: Machine, server: ModelServer) -> None:
    orchard = machine.home / "orchard"
    (machine.home / ".codex").mkdir()
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    assert machine.kmem("remember", KNOWN, "--kind", "decision", "--global").code == 0
    assert machine.kmem("hooks", "install", "--agent", "codex", "--yes").code == 0

    ran = codex(machine, ASKS, server=server.url, cwd=orchard, trusting=True)

    assert ran.code == 0, ran.err
    assert any("<vault-context>" in json.dumps(asked) and "PostgreSQL" in json.dumps(asked) for asked in server.requests)
    assert eventually(lambda: any(len(events) >= len(WHOLE) for _, events in read_of(machine, "codex")))
    ((_, events),) = read_of(machine, "codex")
    assert [event.text for event in events if event.type == "user_message"] == [ASKS]
    assert not any("vault-context" in event.text or "PostgreSQL" in event.text for event in events)
    assert machine.kmem("hooks", "uninstall", "--agent", "codex", "--yes").code == 0
    assert not (machine.home / ".codex" / "hooks.json").exists()
