"""Codex rollouts that are too large to be held in memory."""

import json
from pathlib import Path
from typing import Any

_BLOCK = "A line of what a build prints, 0123456789abcdef, and its paths: /home/ada/orchard/src/queue.py:42\n" * 40
_META = {"cwd": "/home/ada/orchard", "cli_version": "0.140.0", "source": "cli"}


def huge_rollout(path: Path, size: int) -> None:
    """Turns with a prompt, calls with long outputs, and an answer, again and again."""
    path.parent.mkdir(parents=True)
    written = turn = 0
    with path.open("wb") as file:

        def line(kind: str, payload: dict[str, Any]) -> int:
            at = f"2026-03-{1 + turn // 86_400 % 28:02d}T{turn // 3600 % 24:02d}:{turn // 60 % 60:02d}:{turn % 60:02d}.000Z"
            return file.write(_line(at, kind, payload))

        written += line("session_meta", {"id": path.stem[-36:], **_META})
        while written < size:
            turn += 1
            written += line("event_msg", {"type": "user_message", "message": f"Please mend queue number {turn} of the orchard."})
            for call in range(4):
                name = f"call_{turn}_{call}"
                asked = json.dumps({"cmd": f"pytest tests/test_queue_{turn}.py -k round_{call}"})
                called = {"type": "function_call", "name": "exec_command", "arguments": asked, "call_id": name}
                written += line("response_item", called)
                text = f"Process exited with code {call // 3}\nOutput:\n{_BLOCK * 8}{turn} passed"
                written += line("response_item", {"type": "function_call_output", "call_id": name, "output": text})
            said = {"type": "agent_message", "message": f"Queue {turn} works again; its lock is taken before the index is read."}
            written += line("event_msg", said)


def long_line(path: Path, size: int) -> None:
    """A prompt of ``size`` characters between the session's header and another prompt."""
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.write(_line("2026-03-01T00:00:00Z", "session_meta", {"id": path.stem[-36:], **_META}))
        file.write(b'{"timestamp":"2026-03-01T00:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"')
        piece = b"x" * 1_000_000
        for _ in range(size // len(piece)):
            file.write(piece)
        file.write(b'"}}\n')
        said = {"type": "user_message", "message": "What stands behind the long line is still heard."}
        file.write(_line("2026-03-01T00:00:02Z", "event_msg", said))


def _line(at: str, kind: str, payload: dict[str, Any]) -> bytes:
    return json.dumps({"timestamp": at, "type": kind, "payload": payload}).encode() + b"\n"
