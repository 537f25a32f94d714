"""Start of `kmem`: sends frequent commands to the daemon before the rest of the command line is loaded.

Standard library only, since status lines run `kmem statusline` every few seconds.
"""

import atexit
import gc
import os
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any

_STATUS_LINE_SECONDS = 0.3
_LONGEST_INPUT = 1 << 16


def print_segment() -> None:
    """Print the segment. Nothing without a daemon, and never an error."""
    if text := _segment(_input()):
        sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()


def _input() -> bytes:
    """Return what the agent wrote to standard input in time, even if it has not closed it; empty on a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    from threading import Thread

    read: list[bytes] = []
    reader = Thread(target=_read_all, args=(sys.stdin.fileno(), read), daemon=True)
    reader.start()
    reader.join(_STATUS_LINE_SECONDS)
    return b"".join(read)


def _read_all(file: int, read: list[bytes]) -> None:
    left = _LONGEST_INPUT
    while left and (piece := os.read(file, left)):
        read.append(piece)
        left -= len(piece)


def _segment(asked: bytes) -> bytes:
    from kite_memory import endpoint, paths

    if os.environ.get("KITE_MEMORY_EXTRACTOR"):
        return b""
    try:
        end = monotonic() + _STATUS_LINE_SECONDS
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


_SECONDS = 2.0
_STATUS_SECONDS = 10.0
_MOST = 20
_OBJECTS = 200_000
"""New objects between two collections of garbage. By default it is 700, so that imports alone cause a hundred in vain."""
_GO_ON = (["up"], ["daemon"], ["mcp"], ["serve"], ["web"])
"""Commands that may run for days, whose garbage is collected as usual."""


_exit_codes: list[int] = []


def run() -> None:
    """Run `kmem` as the console script."""
    if sys.argv[1:2] not in _GO_ON:
        gc.set_threshold(_OBJECTS)
    atexit.register(_leave)
    try:
        answered = _answered(sys.argv[1:])
        if not answered:
            from kite_memory.cli.main import run as run_any  # Typer alone takes twice as long as all of the above

            run_any()
        _exit_codes.append(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as end:
        if isinstance(end.code, int):
            _exit_codes.append(end.code)
        raise


def _leave() -> None:
    """End the process without taking down its modules one by one, which takes as long as importing a fifth of them.

    As the first function that is registered, it runs after all others and when no thread is left to wait for. Does nothing if
    the process ends unexpectedly, nor if the output cannot be written, which the interpreter then reports.
    """
    if not _exit_codes:
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, or missing
            return
    os._exit(_exit_codes[0])


def _answered(words: list[str]) -> bool:
    """Print the daemon's answer to one of the frequent commands. Return ``False`` for another command, or without an answer."""
    if words == ["statusline"]:
        print_segment()
        return True
    if words[:1] == ["show"] and 1 < len(words) <= _MOST and not any(word.startswith("-") for word in words):
        reply = _asked("open", {"notes": words[1:]}, _SECONDS)
        if not reply.get("missing", True) and (text := str(reply.get("text", ""))):
            from kite_memory.cli.console import print_data

            _print(lambda: print_data(text))
            return True
    if words in (["status"], ["status", "--json"]) and (reply := _asked("status", {}, _STATUS_SECONDS) or _status_alone()):
        from kite_memory.cli.results import print_status

        _print(lambda: print_status(reply, as_json="--json" in words))
        return True
    return False


def _print(write: Callable[[], object]) -> None:
    from kite_memory.cli import console

    console.speak_any_encoding()
    try:
        write()
        console.finish()
    except OSError as error:
        console.fall_silent()
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
            return
        said, what_to_do = console.of_the_machine(error)
        console.print_message(f"error: {said}")
        console.print_message(f"hint: {what_to_do}")
        sys.exit(1)


def _status_alone() -> dict[str, Any]:
    """Return the status of a machine on which no daemon runs. Empty otherwise."""
    from kite_memory import config
    from kite_memory.cli.backend import daemon_runs, status_alone
    from kite_memory.errors import KiteError

    try:
        return {} if daemon_runs() else status_alone(config.load())
    except (KiteError, OSError):  # the full command reports it
        return {}


def _asked(op: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the daemon's answer. Empty without an answer or for an error: the full command then reports why."""
    import json

    from kite_memory import endpoint, paths

    try:
        end = monotonic() + seconds
        word, answer = endpoint.exchange(endpoint.connect(paths.state_dir(), end), op, json.dumps(arguments).encode(), end)
        reply = json.loads(answer) if word == "ok" else {}
    except (OSError, ValueError):
        return {}
    return reply if isinstance(reply, dict) else {}
