"""`kmem statusline`: standard library only until an option is given, since status lines run it every few seconds."""

import os
import sys
from time import monotonic

_SECONDS = 0.3
_LONGEST_INPUT = 1 << 16


def print_segment() -> None:
    """Print the segment. Nothing without a daemon, and never an error."""
    if text := _segment(_input()):
        sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()


def _input() -> bytes:
    """Return what the agent wrote to standard input; empty on a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    return sys.stdin.buffer.read(_LONGEST_INPUT)


def _segment(asked: bytes) -> bytes:
    from kite_memory import endpoint, paths

    if os.environ.get("KITE_MEMORY_EXTRACTOR"):
        return b""
    try:
        end = monotonic() + _SECONDS
        word, answer = endpoint.exchange(endpoint.connect(paths.state_dir(), end), "statusline", asked, end, _LONGEST_INPUT)
    except (OSError, ValueError):
        return b""
    return answer if word == "ok" else b""


def snippet(program: str, fast: str) -> str:
    """Return the lines that put the segment into a program's status line. ``fast`` is the hook's command."""
    match program:
        case "claude-code":
            import json

            return json.dumps({"statusLine": {"type": "command", "command": f"{fast} --statusline"}}, indent=2, ensure_ascii=False)
        case "starship":
            return f"[custom.kite]\ncommand = '''{fast} --statusline < /dev/null'''\nwhen = true\nformat = '[$output]($style) '"
        case "tmux":
            import re

            quoted = re.sub(r'(["\\$])', r"\\\1", fast)
            return f'set -ag status-right " #({quoted} --statusline < /dev/null)"'
        case _:
            from kite_memory.errors import UsageError

            raise UsageError(f"unknown program {program!r}", hint="known ones are: claude-code, starship, tmux")
