"""Hook command that agents run at every prompt: sends stdin to the daemon and writes its answer to stdout.

It ends within milliseconds, writes nothing if in doubt, and always exits with 0, so that it never stops the agent (2 would block
the user's prompt). It is run as a file by a bare interpreter, or as ``kmem-hook``.
"""

import os
import sys
from time import monotonic, sleep

_DEADLINE_MS = 300
_LONGEST_INPUT = 4 << 20
_LONGEST_ANSWER = 1 << 16  # also what a pipe holds, so that writing it never waits
_TO_WRITE = 1.0


def main() -> None:
    try:
        _answer()
    finally:
        os._exit(0)  # no traceback, no flushing of a closed pipe, no finalisers


def _answer() -> None:
    if os.environ.get("KITE_MEMORY_EXTRACTOR") or sys.stdin is None or sys.stdout is None:
        return
    import _thread  # here, for the `finally` above to cover it

    end = [monotonic() + _deadline_seconds()]
    _thread.start_new_thread(_leave_at, (end,))  # bounds what has no timeout: a stdin that stays open, a stuck disk
    asked = _read_all(0)

    from kite_memory import endpoint, paths

    state = paths.state_dir()
    if not os.environ.get("KMEM_HOOK_DEADLINE_MS"):
        end[0] += endpoint.patience(state)
    connection = endpoint.connect(state, end[0])
    word, answer = endpoint.exchange(connection, _operation(sys.argv), asked, end[0], _LONGEST_ANSWER)
    if word == "ok" and monotonic() < end[0]:
        end[0] += _TO_WRITE  # a block written by half is worse than a late one
        _write_all(1, answer)
        endpoint.acknowledge(connection)  # only now does the daemon record the notes as shown


def _deadline_seconds() -> float:
    configured = os.environ.get("KMEM_HOOK_DEADLINE_MS", "")
    return min(int(configured) if configured.isdecimal() else _DEADLINE_MS, 60_000) / 1000


def _leave_at(end: list[float]) -> None:
    while (left := end[0] - monotonic()) > 0:
        sleep(left)
    os._exit(0)


def _operation(argv: list[str]) -> str:
    if argv[1:] == ["--statusline"]:
        return "statusline"
    if len(argv) == 3 and argv[1] == "--agent" and argv[2].replace("-", "").isalnum() and argv[2].isascii():
        return "hook:" + argv[2][:32].lower()
    return "hook"


def _read_all(file: int) -> bytes:
    """Read a file to its end, so that the agent never meets a closed pipe. Bytes over the limit are dropped."""
    kept, size = [], 0
    while piece := os.read(file, 1 << 16):
        kept.append(piece[: _LONGEST_INPUT - size])
        size += len(kept[-1])
    return b"".join(kept)


def _write_all(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]


if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(__file__)))  # `-I -S` know only the standard library
    main()
