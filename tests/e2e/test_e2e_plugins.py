"""Our plugins in the real clients: installed by the client itself, and the memory works, once, whatever else is set up."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.paths import asset_folder
from tests.e2e.clients import codex, codex_settings, gemini, gemini_settings, installed, run
from tests.e2e.kmem import Machine, Ran, claude_code
from tests.fakes.anthropic_server import Json, anthropic_server, text_message
from tests.fakes.gemini_server import gemini_server
from tests.fakes.gemini_server import said as said_by_gemini
from tests.fakes.openai_responses_server import openai_responses_server
from tests.fakes.openai_responses_server import said as said_by_codex

KNOWN = "The job queue uses PostgreSQL, not SQLite, because SQLite's single-writer lock stalled the workers."
ASKS = "Which database does the job queue use, and why not SQLite?"
HOOKS = Path(asset_folder("hooks"))
BLOCK = "vault-context"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """`kmem` and `kmem-hook` are in ~/.local/bin, which is not on the PATH."""
    machine = Machine(tmp_path / "home", environment={"KMEM_EXTRACTOR": "offline"}, usual_places=True)
    machine.configure("[recall]\nthreshold = 0.05\n")
    machine.shell("kmem --version")
    (machine.home / ".local").mkdir()
    (machine.home / "bin").rename(machine.home / ".local" / "bin")
    assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    assert machine.kmem("remember", KNOWN, "--kind", "decision", "--global").code == 0
    yield machine
    machine.kmem("down")


def blocks(requests: list[Json], prompt: str = ASKS) -> list[int]:
    """How many blocks with the note each request holds that asks the prompt."""
    return [text.count("single-writer lock stalled") for text in map(json.dumps, requests) if prompt in text and BLOCK in text]


@pytest.mark.skipif(claude_code() is None, reason="Claude Code is not installed; `.ci/run` installs it into .clients/")
class TestClaudeCode:
    @staticmethod
    def client(machine: Machine, *words: str) -> Ran:
        client = claude_code()
        assert client is not None
        return run(
            machine, [client, "plugin", *words], cwd=machine.home, extra={"CLAUDE_CONFIG_DIR": str(machine.home / ".claude")}
        )

    @staticmethod
    def listed_servers(machine: Machine) -> str:
        client = claude_code()
        assert client is not None
        root = {"CLAUDE_CONFIG_DIR": str(machine.home / ".claude")}
        return run(machine, [client, "mcp", "list"], cwd=machine.home, extra=root).out

    def install(self, machine: Machine) -> None:
        for words in (
            ("validate", "--strict", str(HOOKS / "claude-code")),
            ("marketplace", "add", str(HOOKS / "claude-code")),
            ("install", "kite-memory@kite-memory"),
        ):
            ran = self.client(machine, *words)
            assert ran.code == 0, ran.out + ran.err

    def test_the_plugin_gives_the_model_a_note(self, machine: Machine) -> None:
        self.install(machine)
        with anthropic_server(lambda asked: text_message("Understood.")) as server:
            machine.environment |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy"}

            ran = machine.claude(ASKS, cwd=machine.home / "mycelia")

            assert ran.code == 0, ran.err
            assert blocks(server.requests)
            assert "✔ Connected" in self.listed_servers(machine)
            segment = machine.kmem("statusline", input=json.dumps({"session_id": ran.json()["session_id"]}))
            assert re.fullmatch(r"kite: 1 note · \d+ ms\n", segment.out)
            assert segment.out == machine.kmem("statusline").out
        (status,) = [each for each in machine.kmem("hooks", "status", "--json").json() if each["agent"] == "claude-code"]
        assert (status["plugin"], status["hooks"]) == (True, [])

    def test_beside_the_hooks_of_the_settings_it_gives_one_block(self, machine: Machine) -> None:
        settings = machine.home / ".claude" / "settings.json"
        assert machine.kmem("hooks", "install", "--yes").code == 0
        self.install(machine)
        assert "hook_client.py" in settings.read_text()
        with anthropic_server(lambda asked: text_message("Understood.")) as server:
            machine.environment |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy"}

            machine.claude(ASKS, cwd=machine.home / "mycelia")

            given = [each for each in machine.kmem("why", "--json").json()["prompts"] if each["moment"] == "prompt"]
            assert blocks(server.requests)
            assert [each["head"] if "head" in each else each["prompt"] for each in given] == [ASKS]
        doctor = machine.kmem("doctor")
        assert "installed twice" in doctor.out + doctor.err
        again = machine.kmem("hooks", "install", "--yes")
        assert "the plugin runs the hooks" in again.err
        assert "hook_client.py" not in settings.read_text()
        assert "already" in machine.kmem("hooks", "install", "--yes").err

    def test_connecting_adds_no_second_server_and_no_second_commands(self, machine: Machine) -> None:
        self.install(machine)
        connected = machine.kmem("connect", "--agent", "claude-code", "--yes")

        assert "the plugin brings the server" in connected.err
        assert not (machine.home / ".claude" / "commands" / "why.md").exists()


@pytest.mark.skipif(installed("codex") is None, reason="Codex is not installed; `.ci/run` installs it into .clients/")
def test_the_codex_plugin_gives_the_model_a_note(machine: Machine) -> None:
    client = installed("codex")
    assert client is not None
    with openai_responses_server(lambda asked: [said_by_codex("Understood.")]) as server:
        codex_settings(machine, server.url)
        for words in (("marketplace", "add", str(HOOKS)), ("add", "kite-memory@kite-memory")):
            ran = run(machine, [client, "plugin", *words], cwd=machine.home, extra={})
            assert ran.code == 0, ran.out + ran.err

        ran = codex(machine, ASKS, server=server.url, cwd=machine.home / "orchard", trusting=True)

        assert ran.code == 0, ran.err
        assert blocks(server.requests)
    assert "the plugin runs the hooks already" in machine.kmem("hooks", "install", "--agent", "codex", "--yes").err


@pytest.mark.skipif(installed("gemini") is None, reason="Gemini CLI is not installed; `.ci/run` installs it into .clients/")
def test_the_gemini_extension_gives_the_model_a_note(machine: Machine) -> None:
    client = installed("gemini")
    assert client is not None
    gemini_settings(machine)
    trusted = {str(HOOKS / "gemini-cli"): "TRUST_FOLDER"}
    (machine.home / ".gemini" / "trustedFolders.json").write_text(json.dumps(trusted))
    (machine.home / ".gemini" / "tmp").mkdir(exist_ok=True)
    for words in (("validate",), ("install", "--consent", "--skip-settings")):
        ran = run(
            machine, [client, "extensions", *words, str(HOOKS / "gemini-cli")], cwd=machine.home, extra={"GEMINI_API_KEY": "x"}
        )
        assert ran.code == 0, ran.out + ran.err
    with gemini_server(lambda asked: [said_by_gemini("Understood.")]) as server:
        ran = gemini(machine, ASKS, server=server.url, cwd=machine.home / "orchard")

        assert ran.code == 0, ran.err
        assert blocks(server.requests)
    assert "the plugin runs the hooks already" in machine.kmem("hooks", "install", "--agent", "gemini-cli", "--yes").err
