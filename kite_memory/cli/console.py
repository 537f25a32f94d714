"""What leaves the program by its own two mouths: data on stdout, talk on stderr. Every command prints through here."""

import sys
from typing import TYPE_CHECKING, Any

from kite_memory.errors import KiteError

if TYPE_CHECKING:
    from rich.console import Console


def say(text: str = "") -> None:
    """A line of data."""
    sys.stdout.write(text + "\n")


def say_json(value: Any) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode("utf-8", "replace") + "\n")


def tell(text: str) -> None:
    """A line of talk."""
    sys.stderr.write(text + "\n")


def complain(error: KiteError) -> None:
    tell(f"error: {error}")
    if error.hint:
        tell(f"hint: {error.hint}")


def talk() -> "Console":
    """A rich console on stderr: colour and progress only where a person watches."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def page() -> "Console":
    """A rich console on stdout, for tables on a terminal."""
    from rich.console import Console

    return Console(highlight=False)


def watched() -> bool:
    """Whether a person is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """A yes or a no from a person; no where nobody is there."""
    if not watched():
        return False
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
