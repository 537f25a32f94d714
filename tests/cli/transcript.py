"""Console transcripts: what a person types and what they see, as a test and as a description of the program.

    # a remark
    $ kmem recall "which port"
    a line on stdout
    2> a line on stderr
    ? 1

``…`` stands for any text within a line, and alone on a line for any lines. Without ``?`` the exit code is 0. Blank lines at the
end of an output do not count. The home folder is ``~``. Most plain ``kmem …`` lines are carried out in this process, for speed;
whatever else a shell understands goes to one. ``cd`` and ``export`` last, ``claude`` leaves two invented sessions behind, and
``claude works`` two more, in which something is done.
"""

import difflib
import io
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from kite_memory.cli.everyday import leave_transcripts
from kite_memory.cli.main import main
from tests.e2e.kmem import Machine, Ran
from tests.fakes.work import leave_work

_FOR_A_SHELL = re.compile(r"[|&;<>$`*~()]")
_STARTERS = (["up"], ["edit"], ["open"])
"""Commands that start processes of their own, which would be this one's children."""

_ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


@dataclass(slots=True, kw_only=True)
class Step:
    line: int
    command: str
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    code: int = 0


def steps(text: str) -> Iterator[Step]:
    step: Step | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("$ ", "# ")) or line == "#":
            if step is not None:
                yield step
            step = Step(line=number, command=line[2:]) if line.startswith("$ ") else None
        elif step is None:
            assert not line, f"line {number} belongs to no command"
        elif line.startswith("2> "):
            step.err.append(line[3:])
        elif re.fullmatch(r"\? \d+", line):
            step.code = int(line[2:])
        else:
            step.out.append(line)
    if step is not None:
        yield step


class Player:
    """Plays one transcript on one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._cwd = machine.home
        self._exported: dict[str, str] = {}

    def play(self, text: str) -> None:
        for step in steps(text):
            ran = self.carry_out(step.command)
            listed = [*self._seen(step.out, ran.out, ""), *self._seen(step.err, ran.err, "2> ")]
            if ran.code != step.code:
                listed.append(f"- ? {step.code}\n+ ? {ran.code}")
            if listed:
                everything = "\n".join([*self._lines(ran.out), *(f"2> {line}" for line in self._lines(ran.err)), f"? {ran.code}"])
                raise AssertionError(f"line {step.line}: $ {step.command}\n" + "\n".join(listed) + f"\n\nin full:\n{everything}")

    def _seen(self, expected: list[str], actual: str, mark: str) -> list[str]:
        while expected and not expected[-1]:
            expected = expected[:-1]
        lines = self._lines(actual)
        if matches(expected, lines):
            return []
        return [line[:2] + mark + line[2:] for line in difflib.ndiff(expected, lines) if not line.startswith("?")]

    def _lines(self, text: str) -> list[str]:
        return text.replace(str(self._machine.home), "~").rstrip("\n").splitlines()

    def carry_out(self, command: str) -> Ran:
        """One line as it is typed."""
        words = [] if _FOR_A_SHELL.search(command) else shlex.split(command)
        environment = dict(self._exported)
        while words and _ASSIGNMENT.fullmatch(words[0]):
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        match words:
            case ["kmem", *arguments] if arguments[:1] not in _STARTERS:
                return in_this_process(self._machine, arguments, cwd=self._cwd, environment=environment)
            case ["claude"]:
                leave_transcripts(self._machine.home / ".claude", self._cwd)
                return Ran(code=0, out="", err="")
            case ["claude", "works"]:
                leave_work(self._machine.home / ".claude", self._cwd)
                return Ran(code=0, out="", err="")
            case ["cd", folder]:
                self._cwd = (self._cwd / folder).resolve()
                return Ran(code=0, out="", err="")
            case ["export", assignment]:
                name, _, value = assignment.partition("=")
                self._exported[name] = value
                return Ran(code=0, out="", err="")
            case _:
                return self._machine.shell(command, cwd=self._cwd, extra=self._exported)


def matches(expected: list[str], actual: list[str]) -> bool:
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*?") + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in actual)) is not None


def in_this_process(
    machine: Machine, arguments: list[str], *, cwd: Path, environment: dict[str, str] | None = None, input: str = ""
) -> Ran:
    """As `Machine.kmem`, without the interpreter's start."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", write_through=True) for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(input.encode("utf-8", "surrogateescape")), encoding="utf-8")
    with (
        mock.patch.dict(os.environ, machine.env(environment or {}), clear=True),
        mock.patch.multiple("sys", stdin=given, stdout=out, stderr=err),
        _standing_in(cwd),
    ):
        code = main(arguments)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err) if isinstance(stream.buffer, io.BytesIO)]
    return Ran(code=code, out=texts[0], err=texts[1])


@contextmanager
def _standing_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    umask = os.umask(0o077)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.umask(umask)
