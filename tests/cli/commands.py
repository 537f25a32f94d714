"""Every command there is, as the help knows them."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from kite_memory.cli.main import app


def every_command() -> Iterator[tuple[str, Any]]:
    """``("hooks install", command)`` and so on; groups themselves are left out."""
    for name, command in getattr(get_command(app), "commands").items():  # noqa: B009 - the type of a typer command has none
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {each}", subcommand) for each, subcommand in inner.items())
