"""The real OpenCode with our plugin in its folder: the prompt reaches the hook, and the note the model."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clients import installed, read_of, run
from tests.e2e.kmem import Machine, eventually
from tests.fakes.anthropic_server import AnthropicServer, anthropic_server, text_message

with_client = pytest.mark.skipif(installed("opencode") is None, reason="OpenCode is not installed; `.ci/run` installs it")

KNOWN = "The job queue uses PostgreSQL, not SQLite, because SQLite's single-writer lock stalled the workers."
ASKS = "Which database does the job queue use, and why not SQLite?"
ALONE = {f"OPENCODE_DISABLE_{name}": "1" for name in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")}

HOST = """
import plugin from "PLUGIN"
if (typeof plugin.id !== "string" || typeof plugin.setup !== "function") throw new Error("not a plugin of OpenCode 2")
const hooks = {}
const session = {
  get: async ({ sessionID }) => ({ id: sessionID, location: { directory: process.cwd() } }),
  hook: async (name, callback) => { hooks[name] = callback; return { dispose: async () => {} } },
}
await plugin.setup({ session, location: { directory: "/" } })
const asked = async (id, text) => {
  const event = { sessionID: "ses_1", messageID: id, prompt: { text }, metadata: { theirs: 1 }, delivery: "steer" }
  await hooks.prompt(event)
  return { id, text: event.prompt.text, metadata: event.metadata }
}
const request = async (stored) => {
  const made = ({ id, text, metadata }) => ({ id, role: "user", content: [{ type: "text", text }], metadata })
  const event = { sessionID: "ses_1", system: [], messages: stored.map(made), tools: {}, options: {} }
  await hooks.context(event)
  return event.messages.map((message) => message.content)
}
const stored = [await asked("msg_1", "ASKS")]
const first = await request(stored)
stored.push(await asked("msg_2", "Thanks."))
console.log(JSON.stringify({ stored, first, second: await request(stored) }))
"""
"""Calls the plugin as OpenCode 2.0.20 does, by its public sources: npm does not have that version."""


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with anthropic_server(lambda asked: text_message("Understood.")) as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path, server: AnthropicServer) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home", environment={"KMEM_EXTRACTOR": "offline"}, usual_places=True)
    machine.configure("[recall]\nthreshold = 0.05\n")
    settings = machine.home / ".config" / "opencode" / "opencode.json"
    settings.parent.mkdir()
    model = {"name": "fake", "tool_call": True, "limit": {"context": 100_000, "output": 8_000}}
    provider = {"options": {"baseURL": f"{server.url}/v1", "apiKey": "dummy"}, "models": {"fake": model}}
    chosen = {"model": "anthropic/fake", "small_model": "anthropic/fake"}
    settings.write_text(json.dumps({"provider": {"anthropic": provider}, **chosen, "autoupdate": False, "share": "disabled"}))
    yield machine
    machine.kmem("down")


@with_client
def test_the_plugin_gives_the_model_a_note_and_takes_it_for_no_ones_words(machine: Machine, server: AnthropicServer) -> None:
    client = installed("opencode")
    assert client is not None
    plugin = machine.home / ".config" / "opencode" / "plugins" / "kite-memory.js"
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    assert machine.kmem("remember", KNOWN, "--kind", "decision", "--global").code == 0
    assert machine.kmem("hooks", "install", "--agent", "opencode", "--yes").code == 0

    ran = run(machine, [client, "run", ASKS], cwd=machine.home / "orchard", extra=ALONE)

    assert ran.code == 0, ran.err
    asked = [json.dumps(request["messages"]) for request in server.requests if ASKS in json.dumps(request["messages"])]
    assert any("vault-context" in text and "stalled the workers" in text for text in asked)
    assert eventually(lambda: any(len(events) >= 2 for _, events in read_of(machine, "opencode")))
    ((_, events),) = read_of(machine, "opencode")
    assert not any("vault-context" in event.text or "PostgreSQL" in event.text for event in events)
    assert machine.kmem("hooks", "uninstall", "--agent", "opencode", "--yes").code == 0
    assert not plugin.exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_version_2_is_given_the_note_with_each_request_and_keeps_what_was_written(machine: Machine) -> None:
    node = shutil.which("node")
    assert node is not None
    plugin = machine.home / ".config" / "opencode" / "plugins" / "kite-memory.js"
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    assert machine.kmem("remember", KNOWN, "--kind", "decision", "--global").code == 0
    assert machine.kmem("hooks", "install", "--agent", "opencode", "--yes").code == 0
    host = machine.home / "host.mjs"
    host.write_text(HOST.replace("PLUGIN", plugin.as_uri()).replace("ASKS", ASKS))
    (plugin.parent / "package.json").write_text('{"type": "module"}')

    ran = run(machine, [node, str(host)], cwd=machine.home / "orchard", extra={})

    assert ran.code == 0, ran.err
    seen = json.loads(ran.out)
    (content,) = seen["first"]
    assert [part["type"] for part in content] == ["text", "text"]
    assert content[0]["text"] == ASKS
    assert "vault-context" in content[1]["text"]
    assert "stalled the workers" in content[1]["text"]
    assert seen["second"][0] == content
    assert [each["text"] for each in seen["stored"]] == [ASKS, "Thanks."]
    assert all(each["metadata"]["theirs"] == 1 for each in seen["stored"])
