"""The real Codex and the real Gemini CLI, run on a machine of their own against a model on loopback."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from kite_memory.model.event import Event, Session
from kite_memory.timeline.store import Timeline
from tests.e2e.kmem import PROJECT, Machine, Ran


def installed(name: str) -> str | None:
    """Where `.ci/run` puts it, or on the path."""
    local = PROJECT / ".clients" / "node_modules" / ".bin" / name
    return str(local) if local.exists() else shutil.which(name)


def run(machine: Machine, command: list[str], *, cwd: Path, extra: Mapping[str, str], timeout: float = 120) -> Ran:
    """With nothing of the real environment but the path."""
    cwd.mkdir(parents=True, exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(machine.home), **extra}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, env=environment, capture_output=True, text=True, timeout=timeout, cwd=cwd
    )
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


def codex_settings(machine: Machine, server: str) -> None:
    """Made anew for each model server, and left alone while it is the same."""
    settings = machine.home / ".codex" / "config.toml"
    settings.parent.mkdir(exist_ok=True)
    if not settings.exists() or server not in settings.read_text():
        provider = f'name = "fake"\nbase_url = "{server}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
        settings.write_text(f'model = "gpt-5.5"\nmodel_provider = "fake"\n\n[model_providers.fake]\n{provider}')


def gemini_settings(machine: Machine) -> None:
    settings = machine.home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    if not settings.exists():
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        quiet = {"privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True}}
        settings.write_text(json.dumps({**auth, **quiet}, indent=2) + "\n")


def codex(machine: Machine, prompt: str, *, server: str, cwd: Path, how: tuple[str, ...] = (), trusting: bool = False) -> Ran:
    """``how`` comes before the prompt, as ``("resume", "--last")``. When ``trusting``, hooks run without having been agreed to."""
    client = installed("codex")
    assert client is not None
    codex_settings(machine, server)
    free = ["--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
    free += ["--dangerously-bypass-hook-trust"] if trusting else []
    return run(machine, [client, "exec", *how, *free, prompt], cwd=cwd, extra={"FAKE_KEY": "dummy"})


def gemini(machine: Machine, prompt: str, *, server: str, cwd: Path, how: tuple[str, ...] = ()) -> Ran:
    """``how`` comes before the prompt, as ``("--resume", "latest")``."""
    client = installed("gemini")
    assert client is not None
    gemini_settings(machine)
    command = [client, "-m", "gemini-2.5-pro", "--yolo", "--skip-trust", *how, "-p", prompt]
    return run(machine, command, cwd=cwd, extra={"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": server})


def read_of(machine: Machine, provider: str) -> list[tuple[Session, list[Event]]]:
    """What our timeline holds of an agent's sessions, oldest first."""
    if not (machine.state / "timeline.sqlite").exists():
        return []
    with closing(Timeline(machine.state / "timeline.sqlite")) as timeline:
        sessions = [state.session for state in timeline.sessions.states() if state.session.provider == provider]
        sessions.sort(key=lambda session: session.started)
        return [(session, timeline.events.of_session(provider, session.id)) for session in sessions]


def problems(machine: Machine, provider: str) -> int:
    """How much of an agent's transcripts was not understood."""
    sources = machine.kmem("status", "--json").json()["sources"]
    return sum(source["problems"] for source in sources if source["provider"] == provider)
