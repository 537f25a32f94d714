"""Run git on repositories that are not trusted: with its hooks off, within a time limit, and without asking anyone.

Commands that only read run no filter of a repository's own. `git add` runs those that its configuration defines.
"""

import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_SECONDS = 30.0
_OUTPUT = 32 * 1024 * 1024
_GUARDS = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "log.showSignature=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
)
_SETTINGS = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
}
NO_COMMITS = "no commits yet"


class GitFailed(Exception):
    """A git command failed. The message is a short reason that can be counted."""


class Git:
    """Runner for git commands.

    ``environment`` is the process's; its ``GIT_`` variables are not passed on, because they may point to another repository.
    """

    def __init__(self, environment: Mapping[str, str], *, seconds: float = _SECONDS, output: int = _OUTPUT) -> None:
        kept = {name: value for name, value in environment.items() if not name.upper().startswith("GIT_")}
        self._environment = {**kept, **_SETTINGS}
        self._program = shutil.which("git", path=environment.get("PATH"))
        self._seconds = seconds
        self._output = output

    def ask(self, folder: Path, words: Sequence[str], *, given: Sequence[str] = ()) -> bytes:
        """Return the output of git, run with each of ``given`` as a line of its standard input. Raises `GitFailed`.

        The repository is looked up in ``folder`` itself and in no parent, so that git refuses one that belongs to another user
        (``safe.directory``).
        """
        if self._program is None:
            raise GitFailed("git is not installed")
        environment = {**self._environment, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
        try:
            child = subprocess.Popen(
                [self._program, *_GUARDS, *words],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except (OSError, ValueError) as error:
            raise GitFailed("git cannot be started") from error
        late = threading.Event()

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(self._seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            return self._heard(child, "".join(f"{line}\n" for line in given).encode(), late)
        finally:
            timer.cancel()
            child.kill()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe is not None and not pipe.closed:
                    pipe.close()
            child.wait()

    def _heard(self, child: "subprocess.Popen[bytes]", given: bytes, late: threading.Event) -> bytes:
        if child.stdin is None or child.stdout is None or child.stderr is None:
            raise GitFailed("git cannot be started")
        complaint: list[bytes] = []
        listener = threading.Thread(target=_drain, args=(child.stderr, complaint), daemon=True)
        listener.start()
        try:
            child.stdin.write(given)
            child.stdin.close()
        except OSError:
            pass  # git ended before it read everything; its error output gives the reason
        output = child.stdout.read(self._output + 1)
        if len(output) > self._output:
            raise GitFailed("git says too much")
        code = child.wait()
        listener.join()
        if late.is_set():
            raise GitFailed("git took too long")
        if code:
            raise GitFailed(_reason(b"".join(complaint)))
        return output


def _drain(pipe: IO[bytes], complaint: list[bytes]) -> None:
    """Read all of standard error, so that git never blocks on it; keep the beginning."""
    while piece := pipe.read(4096):
        if len(complaint) < 4:
            complaint.append(piece)


def _reason(complaint: bytes) -> str:
    if b"dubious ownership" in complaint:
        return "another's repository"
    if b"not a git repository" in complaint:
        return "not a repository"
    if b"does not have any commits" in complaint or b"bad default revision" in complaint:
        return NO_COMMITS
    if b"missing" in complaint or b"promisor" in complaint or b"unable to read" in complaint or b"could not fetch" in complaint:
        return "objects are missing"
    return "git failed"
