"""What leaves the program by its own two mouths: data on stdout, talk on stderr. Every command prints through here.

Titles, prompts and paths may hold anything that anybody wrote, so all text is made fit for a terminal on its way out.
JSON keeps every character, but spells out those that a terminal would act upon.
"""

import errno
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from kite_memory.errors import KiteError

if TYPE_CHECKING:
    from rich.console import Console


def say(text: str = "") -> None:
    """A line of data, or several."""
    _write(sys.stdout, text)


def say_marked(text: str, spans: Sequence[tuple[int, int]]) -> None:
    """A line of data in which some stretches stand out, on a terminal that may show it; the text is made harmless first."""
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        say(text)
        return
    parts, last = [], 0
    for start, end in spans:
        parts += [_harmless(text[last:start]), "\x1b[1m", _harmless(text[start:end]), "\x1b[0m"]
        last = end
    sys.stdout.write("".join([*parts, _harmless(text[last:])]) + "\n")


def say_json(value: Any) -> None:
    import json

    say_written_json(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def say_json_line(value: Any) -> None:
    """As `say_json`, on one line: for one of a stream of values."""
    import json

    say_written_json(json.dumps(value, ensure_ascii=False, default=str))


def say_written_json(text: str) -> None:
    """JSON, or several lines of it, that is written already."""
    import json

    if not _is_harmless(text):
        text = "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")


def tell(text: str) -> None:
    """A line of talk, or several."""
    _write(sys.stderr, text)


def complain(error: KiteError) -> None:
    tell(f"error: {error}")
    if error.hint:
        tell(f"hint: {error.hint}")


def of_the_machine(error: OSError) -> tuple[str, str]:
    """What the system says, and what to do about it."""
    said = f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}"
    return said, _WHAT_TO_DO.get(error.errno or 0, "is the disk full, or something not yours?")


_NO_FOLDER = "a file lies where a folder should be: see KMEM_HOME and `vault` in the configuration"
_NOT_YOURS = "it is not yours to read or write: see who owns it"
_WHAT_TO_DO = {
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "your share of the disk is full: make room",
    errno.ENOENT: "no such folder can be made there: see KMEM_HOME and `vault` in the configuration",
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
    errno.EACCES: _NOT_YOURS,
    errno.EPERM: _NOT_YOURS,
    errno.EROFS: "its disk is mounted for reading only",
}


def remark(error: KiteError) -> None:
    """What stands in the way of a part, while the rest goes on."""
    tell(f"note: {error}")
    if error.hint:
        tell(f"hint: {error.hint}")


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def talk() -> "Console":
    """A rich console on stderr: colour and progress only where a person watches."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def watched() -> bool:
    """Whether a person is there to be asked."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def width() -> int:
    """Columns of the terminal; 80 where there is none."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def ask(question: str) -> bool:
    """A yes or a no from a person; no where nobody is there."""
    return watched() and reply(f"{question} [y/N]").lower() in {"y", "yes"}


def reply(question: str) -> str:
    """What a person types, of whom it is known that they are there."""
    _write(sys.stderr, f"{question} ", end="")
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def choose(question: str) -> str:
    """What a person answers, in small letters; "no" without a terminal, or where the input ends."""
    if not watched():
        return "no"
    _write(sys.stderr, f"{question} ", end="")
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.strip().lower() if line else "no"


def read_all(limit: int) -> str:
    """Standard input to its end. Raises `KiteError` for more than ``limit`` bytes."""
    if sys.stdin is None:
        return ""
    told = sys.stdin.buffer.read(limit + 1)
    if len(told) > limit:
        raise KiteError(f"standard input is longer than {limit:,} bytes", hint="give it in parts")
    return told.decode("utf-8", "replace")


def speak_any_encoding() -> None:
    """No text is beyond us: what a stream's encoding does not have is written as a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def finish() -> None:
    """Raises what writing to stdout has failed with: it would otherwise only come up when the interpreter ends."""
    if sys.stdout is not None:
        sys.stdout.flush()


def fall_silent() -> None:
    """After stdout has failed, nothing more is written to it, also not at exit."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _write(stream: TextIO | None, text: str, end: str = "\n") -> None:
    if stream is None:  # as under pythonw, or after `>&-`
        return
    stream.write(_harmless(text) + end)


def _harmless(text: str) -> str:
    if _is_harmless(text):
        return text
    from kite_memory.text.quoting import plain

    return plain(text)


def _is_harmless(text: str) -> bool:
    return text.isascii() and text.translate(_LAYOUT).isprintable()


_LAYOUT = {ord("\n"): None, ord("\t"): None}
