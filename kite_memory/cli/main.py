"""Entry point of `kmem`. Commands are in one file per section of the help."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from kite_memory import __version__
from kite_memory.cli.console import fall_silent, finish, of_the_machine, print_data, print_error, print_message, speak_any_encoding
from kite_memory.cli.help import LazySections, prepare_completion
from kite_memory.errors import KiteError, UsageError

app = typer.Typer(
    name="kmem",
    cls=LazySections,
    rich_markup_mode=None,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Long-term memory for AI coding agents: markdown notes on your machine, shown when they help.",
    epilog="kmem up",
)

BUG = 70
INTERRUPTED = 130


@app.callback()
def kmem(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; works with every command.")] = False,
) -> None:
    if version:
        print_data(f"kite-memory {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print_data(context.get_help())


def run() -> None:
    """Run `kmem` as the console script."""
    os.umask(0o077)  # new files are accessible to their owner only
    speak_any_encoding()
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run a command, and return the exit code of the contract. With ``--debug``, tracebacks are printed before error messages."""
    words, debug = _without_debug(arguments)
    code = _ended(words, debug=debug)
    try:
        finish()
    except OSError as error:
        fall_silent()
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
            return code
        if code == 0:
            _complain_of_the_machine(error)
        return code or 1
    return code


def _ended(words: list[str], *, debug: bool) -> int:
    try:
        return _run(words)
    except KiteError as error:
        if debug:
            traceback.print_exc()
        print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if debug:
            traceback.print_exc()
        _complain_of_the_machine(error)
        return 1
    except Exception as error:  # noqa: BLE001 - the edge of the process
        if debug:
            traceback.print_exc()
        print_message(f"error: {type(error).__name__}: {error}")
        print_message("hint: this is a bug in kmem; run the command again with --debug and report what it prints")
        return BUG


def _complain_of_the_machine(error: OSError) -> None:
    said, what_to_do = of_the_machine(error)
    print_message(f"error: {said}")
    print_message(f"hint: {what_to_do}; --debug shows what it was for")


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Return the arguments without ``--debug``, and whether it was there. It may be anywhere before ``--``."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--debug"]
    return kept + words[end:], len(kept) < end


def _run(words: list[str]) -> int:
    prepare_completion()
    try:
        code = app(words, prog_name="kmem", standalone_mode=False)
    except typer.TyperException as error:
        said = error.format_message().replace("Value error, ", "").rstrip(".")
        raise UsageError(said, hint=f"`{_command_in(words)} --help` shows how to use it") from error
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        fall_silent()
        return 0  # Typer ends so when the reader has closed the pipe
    return code if isinstance(code, int) else 0


def _command_in(words: Sequence[str]) -> str:
    """Return ``kmem`` and the leading words that name a known command."""
    command: Any = typer.main.get_command(app)
    known = ["kmem"]
    for word in words:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        known.append(word)
    return " ".join(known)
