"""`kmem statusline`, and the segment it prints."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kite_memory import hook_client
from kite_memory.app.session_context import session_of
from kite_memory.app.usage_report import Figures, segment
from kite_memory.cli.opening import snippet
from kite_memory.errors import UsageError


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        (Figures(notes=0), "kite: ready"),
        (Figures(notes=1, took_ms=12.4), "kite: 1 note · 12 ms"),
        (Figures(notes=3, took_ms=8.0, dollars=0.041), "kite: 3 notes · 8 ms · $0.04"),
        (Figures(notes=3, dollars=0.004, paused=True), "kite: 3 notes · paused"),
    ],
)
def test_the_segment_names_what_there_is(figures: Figures, text: str) -> None:
    assert segment(figures) == text


def test_the_session_is_read_from_claude_codes_json() -> None:
    fields = {"session_id": "5e551011", "workspace": {"current_dir": "/orchard"}, "model": {"display_name": "Sonnet"}}

    assert session_of(json.dumps(fields).encode()) == "5e551011"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"session_id": 7}', b'"x"', b"\xff", b"[" * 70_000])
def test_anything_else_names_no_session(body: bytes) -> None:
    assert session_of(body) == ""


@pytest.mark.parametrize("command", [["-m", "kite_memory", "statusline"], ["-I", "-S", hook_client.__file__, "--statusline"]])
def test_without_a_daemon_it_prints_nothing(tmp_path: Path, command: list[str]) -> None:
    environment = {"KMEM_HOME": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(Path(hook_client.__file__).parent.parent)}

    done = subprocess.run([sys.executable, *command], input=b"{}", capture_output=True, env=environment, timeout=30, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_it_does_not_wait_for_the_end_of_its_input(tmp_path: Path) -> None:
    environment = {"KMEM_HOME": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(Path(hook_client.__file__).parent.parent)}
    command = [sys.executable, "-m", "kite_memory", "statusline"]

    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ) as asked:
        assert asked.wait(30) == 0
        assert asked.stdout is not None and asked.stdout.read() == b""


def test_it_loads_neither_typer_nor_the_vault() -> None:
    listed = "import sys; import kite_memory.cli.opening as s; s._segment(b''); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, timeout=30, check=True).stdout.split()

    assert {"typer", "orjson", "sqlite3", "kite_memory.config"}.isdisjoint(loaded)


def test_the_snippets_are_what_the_programs_read() -> None:
    fast = "/usr/bin/python3 -I -S '/opt/a b/kite_memory/hook_client.py'"

    assert json.loads(snippet("claude-code", fast))["statusLine"] == {"type": "command", "command": f"{fast} --statusline"}
    assert tomllib.loads(snippet("starship", fast))["custom"]["kite"]["command"].startswith(fast)
    assert snippet("tmux", fast) == f'set -ag status-right " #({fast} --statusline < /dev/null)"'
    assert snippet("tmux", 'python3 "$HOME/x"').startswith(r'set -ag status-right " #(python3 \"\$HOME/x\" --statusline')


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(UsageError):
        snippet("zellij", "kmem-hook")
