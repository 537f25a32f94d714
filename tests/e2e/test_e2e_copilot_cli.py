"""The real Copilot CLI with our hooks file: a prompt reaches the hook, and the note the model."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clients import installed, read_of, run
from tests.e2e.kmem import Machine, eventually
from tests.fakes.anthropic_server import AnthropicServer, anthropic_server, text_message

pytestmark = pytest.mark.skipif(installed("copilot") is None, reason="Copilot CLI is not installed; `.ci/run` installs it")

KNOWN = "The job queue uses PostgreSQL, not SQLite, because SQLite's single-writer lock stalled the workers."
ASKS = "Which database does the job queue use, and why not SQLite?"


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with anthropic_server(lambda asked: text_message("Understood.")) as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home", environment={"KMEM_EXTRACTOR": "offline"}, usual_places=True)
    machine.configure("[recall]\nthreshold = 0.05\n")
    yield machine
    machine.kmem("down")


def test_the_hook_gives_the_model_a_note_and_takes_it_for_no_ones_words(machine: Machine, server: AnthropicServer) -> None:
    client = installed("copilot")
    assert client is not None
    to_loopback = {
        "COPILOT_PROVIDER_BASE_URL": server.url,
        "COPILOT_PROVIDER_TYPE": "anthropic",
        "COPILOT_PROVIDER_API_KEY": "dummy",
    }
    alone = {"COPILOT_MODEL": "claude-sonnet-4", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    hooks = machine.home / ".copilot" / "hooks" / "kite-memory.json"
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    assert machine.kmem("remember", KNOWN, "--kind", "decision", "--global").code == 0
    assert machine.kmem("hooks", "install", "--agent", "copilot-cli", "--yes").code == 0

    ran = run(machine, [client, "-p", ASKS], cwd=machine.home / "orchard", extra={**to_loopback, **alone})

    assert ran.code == 0, ran.err
    asked = [json.dumps(request["messages"]) for request in server.requests]
    assert any(ASKS in text and "vault-context" in text and "stalled the workers" in text for text in asked)
    assert eventually(lambda: any(len(events) >= 2 for _, events in read_of(machine, "copilot-cli")))
    ((_, events),) = read_of(machine, "copilot-cli")
    assert not any("vault-context" in event.text or "PostgreSQL" in event.text for event in events)
    assert machine.kmem("hooks", "uninstall", "--agent", "copilot-cli", "--yes").code == 0
    assert not hooks.exists()
