"""Cline's real command line tool with our hook in its folder: beside a tool's result the model gets what belongs to the prompt."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import installed, read_of, run
from tests.e2e.kmem import Machine, eventually
from tests.fakes.openai_server import completion, openai_server

pytestmark = pytest.mark.skipif(installed("cline") is None, reason="Cline's CLI is not installed; `.ci/run` installs it")

KNOWN = "The job queue uses PostgreSQL, not SQLite, because SQLite's single-writer lock stalled the workers."
ASKS = "Which database does the job queue use, and why not SQLite?"
ALONE = {"CLINE_SESSION_BACKEND_MODE": "local"}  # otherwise it leaves a process of its own behind


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home", environment={"KMEM_EXTRACTOR": "offline"}, usual_places=True)
    machine.configure("[recall]\nthreshold = 0.05\n")
    yield machine
    machine.kmem("down")


def test_the_hook_gives_the_model_a_note_and_takes_it_for_no_ones_words(machine: Machine) -> None:
    client = installed("cline")
    assert client is not None
    command = {"name": "run_commands", "arguments": json.dumps({"commands": ["echo looked"]})}

    def reply(asked: dict[str, Any]) -> dict[str, Any]:
        seen = sum(message["role"] == "tool" for message in asked["messages"])
        if seen == 2:
            return completion("Understood.")
        if seen == 1:
            assert eventually(lambda: bool(read_of(machine, "cline")))  # a model takes longer than the daemon
        call = {"index": 0, "id": f"call_{seen}", "type": "function", "function": command}
        return completion(None, finish="tool_calls", tool_calls=[call])

    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    assert machine.kmem("remember", KNOWN, "--kind", "decision", "--global").code == 0
    assert machine.kmem("hooks", "install", "--agent", "cline-cli", "--yes").code == 0
    with openai_server(reply) as server:
        provider = ["auth", "openai-compatible", "-k", "dummy", "-m", "fake", "-b", server.url]
        assert run(machine, [client, *provider], cwd=machine.home / "orchard", extra=ALONE).code == 0
        ran = run(machine, [client, "--json", ASKS], cwd=machine.home / "orchard", extra=ALONE)

        assert ran.code == 0, ran.err
        asked = [json.dumps(request["messages"]) for request in server.requests]
    assert ["vault-context" in each for each in asked] == [False, True, True]
    assert "--- [decisions/" in asked[-1]
    assert eventually(lambda: any(len(events) >= 3 for _, events in read_of(machine, "cline")))
    ((session, events),) = read_of(machine, "cline")
    assert session.project
    assert not any("vault-context" in event.text or "PostgreSQL" in event.text for event in events)
    assert machine.kmem("hooks", "uninstall", "--agent", "cline-cli", "--yes").code == 0
    assert not (machine.home / ".cline" / "hooks" / "PostToolUse").exists()
