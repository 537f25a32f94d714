"""Output of all commands: data on stdout, messages on stderr.

Titles, prompts and paths may hold arbitrary text, so all text is made safe for a terminal when printed. JSON keeps every character,
but escapes those that a terminal would act on.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from kite_memory.errors import KiteError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


def print_data(text: str = "") -> None:
    """Print data, one line or several."""
    _write(sys.stdout, text)


def print_marked(text: str, spans: Sequence[tuple[int, int]]) -> None:
    """Print a line of data with highlighted spans, on a terminal that supports it. The text is made safe first."""
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        print_data(text)
        return
    parts, last = [], 0
    for start, end in spans:
        parts += [_harmless(text[last:start]), "\x1b[1m", _harmless(text[start:end]), "\x1b[0m"]
        last = end
    sys.stdout.write("".join([*parts, _harmless(text[last:])]) + "\n")


def print_json(value: Any) -> None:
    import json

    print_written_json(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_found_json(value: Any, *, found: bool) -> None:
    """Print JSON as `print_json` does, and exit with 1 if nothing was ``found``, as without JSON."""
    import typer  # not needed by those that print alone

    print_json(value)
    if not found:
        raise typer.Exit(1)


def print_json_line(value: Any) -> None:
    """Print JSON as `print_json` does, on one line: for one of a stream of values."""
    import json

    print_written_json(json.dumps(value, ensure_ascii=False, default=str))


def print_written_json(text: str) -> None:
    """Print serialized JSON, one line or several."""
    import json

    if sys.stdout is None:
        return
    if not _is_harmless(text):
        encoding = sys.stdout.encoding or "utf-8"
        text = "".join(
            char if char == "\n" or (char.isprintable() and _has(encoding, char)) else json.dumps(char)[1:-1] for char in text
        )
    sys.stdout.write(text + "\n")


def _has(encoding: str, char: str) -> bool:
    try:
        return bool(char.encode(encoding))
    except UnicodeEncodeError:
        return False


def print_wrapped(text: str) -> None:
    """Print data for a person: on a terminal, lines that are too long are wrapped between words."""
    _write(sys.stdout, _wrapped(text, sys.stdout))


def print_message(text: str) -> None:
    """Print a message, one line or several. On a terminal, lines that are too long are wrapped between words."""
    _write(sys.stderr, _wrapped(text, sys.stderr))


def print_as_is(text: str) -> None:
    """Print a message whose line ends matter, such as a diff."""
    _write(sys.stderr, text)


def short_path(path: "Path") -> str:
    """Return a path with ``~`` for the user's home."""
    from pathlib import Path

    return str(Path("~") / path.relative_to(Path.home())) if path.is_relative_to(Path.home()) else str(path)


def print_error(error: KiteError) -> None:
    print_message(f"error: {error}")
    if error.hint:
        print_message(f"hint: {error.hint}")


def of_the_machine(error: OSError) -> tuple[str, str]:
    """Return the system's error message, and what to do about it."""
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


def print_warning(error: KiteError) -> None:
    """Print an error that affects only a part, while the rest continues."""
    print_message(f"note: {error}")
    if error.hint:
        print_message(f"hint: {error.hint}")


def stderr_console() -> "Console":
    """Return a rich console on stderr, with colour and progress only on a terminal."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@contextmanager
def working(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar with the estimated time left if a user watches and there is something to do."""
    with ExitStack() as shown:
        shows: list[Callable[[int, int], None]] = []

        def show_progress(done: int, total: int) -> None:
            if not shows:
                shows.append(_bar(title, shown))
            shows[0](done, total)

        yield show_progress


def _bar(title: str, shown: ExitStack) -> Callable[[int, int], None]:
    console = stderr_console()
    if not console.is_terminal:
        return lambda done, total: None
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    progress = shown.enter_context(Progress(*columns, console=console))
    task = progress.add_task(title, total=None)
    return lambda done, total: progress.update(task, completed=done, total=total)


def is_interactive() -> bool:
    """Return whether a user is there to answer a question."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def width() -> int:
    """Return the terminal's columns, or 80 without one."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def ask(question: str) -> bool:
    """Ask the user a yes/no question. Return false without a user."""
    return is_interactive() and read_answer(f"{question} [y/N]").lower() in {"y", "yes"}


def read_answer(question: str) -> str:
    """Return what the user types. Only call it when a user is there."""
    _write(sys.stderr, f"{question} ", end="")
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def choose(question: str) -> str:
    """Return the user's answer in lower case; "no" without a terminal, or at the end of the input."""
    if not is_interactive():
        return "no"
    _write(sys.stderr, f"{question} ", end="")
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.strip().lower() if line else "no"


def read_all(limit: int) -> str:
    """Read standard input to its end. Raises `KiteError` for more than ``limit`` bytes."""
    if sys.stdin is None:
        return ""
    content = sys.stdin.buffer.read(limit + 1)
    if len(content) > limit:
        raise KiteError(f"standard input is longer than {limit:,} bytes", hint="give it in parts")
    return content.decode("utf-8", "replace")


def named_folder(given: "Path | str | None" = None) -> str:
    """Return the whole path of a folder, without ``..``, by default the current one; empty if that was deleted."""
    try:
        return os.path.abspath(os.path.expanduser(given or os.curdir))  # noqa: PTH100, PTH111 - a path keeps its `..`
    except FileNotFoundError:
        return ""


def speak_any_encoding() -> None:
    """Let output never fail by its encoding: missing characters are printed as question marks.

    On Windows a pipe would have an old code page, which lacks most characters, and agents read UTF-8 from it.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            piped = sys.platform == "win32" and not stream.isatty() and "PYTHONIOENCODING" not in os.environ
            stream.reconfigure(errors="replace", **({"encoding": "utf-8"} if piped else {}))


def finish() -> None:
    """Flush stdout. Raises its write error here, not when the interpreter ends."""
    if sys.stdout is not None:
        sys.stdout.flush()


def fall_silent() -> None:
    """Write nothing more to stdout after it has failed, not even at exit."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _write(stream: TextIO | None, text: str, end: str = "\n") -> None:
    if stream is None:  # under pythonw, or after `>&-`
        return
    stream.write(_harmless(text) + end)


def _wrapped(text: str, stream: TextIO | None) -> str:
    if stream is None or not stream.isatty() or all(len(line) <= width() for line in text.split("\n")):
        return text
    import textwrap

    lines: list[str] = []
    for line in text.split("\n"):
        start = len(line) - len(line.lstrip(" "))
        label, gap, _ = line[start:].partition("  ")
        column = len(line) - len(line[start + len(label) :].lstrip(" "))
        indent = column if gap and column < width() // 2 else start + 2
        wrapped = textwrap.wrap(
            line,
            width(),
            subsequent_indent=" " * indent,
            replace_whitespace=False,
            expand_tabs=False,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += wrapped or [line]
    return "\n".join(lines)


def _harmless(text: str) -> str:
    if _is_harmless(text):
        return text
    from kite_memory.text.quoting import plain

    return plain(text)


def _is_harmless(text: str) -> bool:
    return text.isascii() and text.translate(_LAYOUT).isprintable()


_LAYOUT = {ord("\n"): None, ord("\t"): None}
