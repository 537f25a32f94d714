"""`kmem`: the front door. Commands live one file per section of the help."""

import os
import sys
from typing import Annotated

import typer

from kite_memory import __version__
from kite_memory.cli import care, everyday, memory, setup
from kite_memory.cli.console import complain, say, tell
from kite_memory.errors import KiteError

app = typer.Typer(
    name="kmem",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The memory that AI coding agents don't have: a daemon, a markdown vault, and two notes when they help.",
    epilog="Start with: kmem up",
)

for section in (everyday, memory, setup, care):
    section.add_to(app)

BUG = 70


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    if version:
        say(__version__)
        raise typer.Exit


def run() -> None:
    """The console script. Ends the process with the exit codes of the contract; tracebacks only with ``--debug``."""
    os.umask(0o077)  # every file made from here on is its owner's alone
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except KiteError as error:
        if debug:
            raise
        complain(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # whoever read our output has left; nothing more to say, also not at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if debug:
            raise
        tell(f"error: {type(error).__name__}: {error}")
        tell("hint: this is a bug of ours; run the command again with --debug and report what it prints")
        sys.exit(BUG)
