"""The commands for extensions: which are installed, and whether they keep their contract."""

from pathlib import Path
from typing import Annotated

import typer

from kite_memory import config as configuration
from kite_memory.cli.console import say, say_json, tell
from kite_memory.cli.help import Command, group
from kite_memory.errors import UsageError

extensions = group(
    help="List sources, extractors and embedders that other packages add, and check them.", example="kmem extensions list"
)


@extensions.command("list", cls=Command)
def list_extensions(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the extensions that are installed, and why one is not used.

    Example: kmem extensions list
    """
    import dataclasses

    from kite_memory.extensions import installed
    from kite_memory.wiring.sources import PROVIDERS

    found = installed.every(Path.home(), own_state=configuration.load().state, taken=PROVIDERS)
    if as_json:
        say_json([dataclasses.asdict(each) for each in found])
        return
    for each in found:
        say(
            f"{each.kind} {each.name}, from {each.package} {each.version}" + (f": not used, {each.problem}" if each.problem else "")
        )
    if not found:
        tell("no extensions are installed; docs/extending.md shows how one is made")


@extensions.command("check", cls=Command)
def check_extensions(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Only the contract of this name.")] = "",
) -> None:
    """Run the contract suites that installed extensions name. Needs pytest.

    Example: kmem extensions check
    """
    from importlib.util import find_spec

    from kite_memory.extensions import installed

    chosen = [each for each in installed.found("contract") if name in ("", each.name)]
    if name and not chosen:
        raise UsageError(f"no extension names a contract {name!r}", hint="`kmem extensions list` shows those that are there")
    if not chosen:
        tell("no installed extension names a contract")
        return
    if find_spec("pytest") is None:
        raise UsageError("pytest is not installed", hint="install it beside this package: `pip install pytest`")
    import pytest

    modules = sorted({each.module for each in chosen})
    raise typer.Exit(int(pytest.main(["-q", "-p", "no:cacheprovider", "--pyargs", *modules])))


def add_to(app: typer.Typer) -> None:
    app.add_typer(extensions, name="extensions", rich_help_panel="Care")
