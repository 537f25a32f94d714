"""The command line as a whole: its sections of commands, help and completion, and the exit code of what is run.

Help is plain text, the same on every terminal, and ends with an example to paste. Commands are in one file per section.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from enum import Enum
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_name, get_group

from kite_memory import __version__
from kite_memory.cli.console import fall_silent, finish, of_the_machine, print_data, print_error, print_message, speak_any_encoding
from kite_memory.errors import KiteError, UsageError

_EXAMPLE = "Example: "
SHELLS = ("bash", "zsh", "fish", "powershell")
_VARIABLE = "_KMEM_COMPLETE"
"""Set by a shell's script when it asks for completions."""


class Command(TyperCommand):
    """The last paragraph of the docstring, ``Example: …``, comes last in the help, on a line of its own."""

    def __init__(self, name: str | None, *, help: str | None = None, epilog: str | None = None, **rest: Any) -> None:
        said, _, example = (help or "").rpartition(f"\n\n{_EXAMPLE}")
        super().__init__(name, help=said or help, epilog=epilog or example, **rest)

    def get_params(self, ctx: Any) -> Any:
        return _taking_plain_values(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        return super().parse_args(ctx, _with_known_names(args, self.get_params(ctx)))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        shown = [param for param in self.get_params(ctx) if not getattr(param, "hidden", False)]
        return [self.options_metavar or "", *(piece for param in shown for piece in param.get_usage_pieces(ctx))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        params = self.get_params(ctx)
        arguments = [param for param in params if param.param_type_name == "argument" and not param.hidden]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(param.metavar or param.name, getattr(param, "help", "")) for param in arguments])
        _write_options(params, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_example(self.epilog, formatter)


_SAME = (("--limit", "--lines", "--last"), ("--agent", "--source", "--to", "--for"), ("--yes", "-y"))
"""Names of options that mean the same thing in different commands."""


def _with_known_names(args: list[str], params: Any) -> list[str]:
    """Return the arguments with the command's own name for an option in place of another command's name for it."""
    known = {name for param in params if param.param_type_name == "option" for name in param.opts}
    own = {other: name for names in _SAME for name in names if name in known for other in names if other not in known}
    options = args[: args.index("--")] if "--" in args else args
    renamed = [own.get(name, name) + given + value for name, given, value in (each.partition("=") for each in options)]
    return renamed + args[len(options) :]


def _taking_plain_values(params: Any) -> Any:
    """Return the parameters, which from now on take words, small numbers and choices as they are.

    Typer coerces every value by pydantic, which takes longer to import than most commands take to run.
    """
    for param in params:
        if "get_runtime_param" not in vars(param):
            descriptor = param.type_descriptor
            param.get_runtime_param = partial(_Coercion, descriptor.annotation, descriptor.parameter_info, param.get_runtime_param)
    return params


class _Coercion:
    def __init__(self, annotation: Any, limits: Any, of_pydantic: Callable[[], Any]) -> None:
        self._annotation = annotation
        self._limits = limits
        self._of_pydantic = of_pydantic

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._limits.parser is None:
            if self._annotation is str and type(value) is str:
                return value
            if self._annotation == list[str] and type(value) is tuple and all(type(each) is str for each in value):
                return list(value)
            if isinstance(self._annotation, type) and issubclass(self._annotation, Enum) and value in list(self._annotation):
                return self._annotation(value)
            if self._annotation is int and (number := _small_number(value)) is not None and self._allows(number):
                return number
        return self._of_pydantic().coerce(value, param=param, ctx=ctx)

    def _allows(self, number: int) -> bool:
        least, most = self._limits.min, self._limits.max
        return (least is None or least <= number) and (most is None or number <= most)


def _small_number(value: object) -> int | None:
    if type(value) is int:
        return value
    return int(value) if isinstance(value, str) and len(value) < 10 and value.isascii() and value.isdecimal() else None


class Sections(TyperGroup):
    """Command group that lists commands under the headings of their sections, each with the first sentence of its help."""

    def get_params(self, ctx: Any) -> Any:
        return _taking_plain_values(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Show the help and exit with success if there is no command."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            print_data(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, rows in self.listing(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def listing(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the names of the commands and their first sentences, by heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                heading = getattr(command, "rich_help_panel", None) or "Commands"
                sections.setdefault(heading, []).append((name, first_sentence(command.help or "")))
        return sections

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_example(self.epilog, formatter)


class LazySections(Sections):
    """The group of all commands. The module of a command is imported when the command is asked for, and for the help none is."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands = _CommandsByName(self.commands)

    def listing(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        return {heading: [(name, sentence) for name, _, sentence in rows] for heading, rows in COMMANDS.items()}


class _CommandsByName(MutableMapping[str, Any]):
    def __init__(self, loaded: MutableMapping[str, Any]) -> None:
        self._loaded = loaded
        self._modules = {name: module for rows in COMMANDS.values() for name, module, _ in rows}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load_command(name, self._modules[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in self._loaded

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._modules, *self._loaded)))

    def __len__(self) -> int:
        return len({*self._modules, *self._loaded})

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]


def _load_command(name: str, module: str) -> Any:
    """Import the module and build this one of its commands: building all of them takes longer than many a command."""
    section = group(help="", example="")
    import_module(f"kite_memory.cli.{module}").add_to(section)
    section.registered_commands = [each for each in section.registered_commands if _name_of(each) == name]
    section.registered_groups = [each for each in section.registered_groups if each.name == name]
    return get_group(section).commands[name]


def _name_of(command: Any) -> str:
    return str(command.name or get_command_name(command.callback.__name__))


COMMANDS = {
    "Everyday": (
        ("up", "everyday", "Set everything up and start"),
        ("down", "everyday", "Stop the daemon"),
        ("status", "everyday", "Show whether the daemon runs, what is read and what waits, and today's costs"),
        ("web", "everyday", "Read, edit and review the memory in a browser"),
    ),
    "Memory": (
        ("search", "memory", "Search notes and transcripts, by meaning and by words"),
        ("recall", "memory", "Show exactly what the prompt hook would give the agent, and why"),
        ("show", "memory", "Show notes as an agent sees them when it opens one"),
        ("edit", "memory", "Open a note in $VISUAL or $EDITOR"),
        ("remember", "memory", "Write a note at once"),
        ("forget", "memory", "Move notes to the vault's trash, and out of every index at once"),
        ("mute", "memory", "Never give a note to an agent again"),
        ("why", "memory", "Show the lines of the transcript that a note rests on"),
        ("open", "memory", "Open a note in your desktop's markdown program"),
    ),
    "History": (
        ("timeline", "history", "Show what happened in a session, in order"),
        ("trace", "history", "Show what became of each part of a session, and why"),
        ("resume", "history", "Summarise where the last session stopped"),
        ("handoff", "history", "Write a session's brief into the file that the next agent reads"),
        ("threads", "history", "List work threads: sessions that continued one another's work, and the reasons"),
        ("how", "history", "Show how a tool was used here, and with what result"),
        ("fix", "history", "Show where an error occurred before, and how it was fixed"),
        ("blame", "history", "Show which prompts changed a file, newest first, and their commits"),
        ("ask", "history", "Answer a question from notes and events"),
    ),
    "Agents": (
        ("connect", "bridging", "Register the MCP server with an agent"),
        ("mcp", "bridging", "Serve MCP on standard input and output"),
        ("serve", "bridging", "Serve MCP over HTTP, for several agents or a team"),
        ("token", "bridging", "Create, list and revoke the tokens that `kmem serve` asks for"),
        ("admin", "serving", "Administer a team's store: audit, usage, undelete, backup and restore"),
    ),
    "Vault": (
        ("synthesize", "vault", "Rewrite MEMORY.md, a summary of the vault on one page of at most 200 lines"),
        ("graph", "vault", "Show which notes link to which"),
        ("consolidate", "vault", "Tidy up the vault; `kmem undo` reverts it"),
        ("undo", "vault", "Revert the last consolidation, except where you have written since"),
        ("export", "vault", "Write every note into one file that other programs can read"),
        ("import", "vault", "Import another memory, or a folder of notes"),
        ("sync", "vault", "Exchange this memory with your other machines"),
        ("review", "reviewing", "Review notes that wait for you: doubtful, contradictory or overlong ones"),
    ),
    "Set-up": (
        ("statusline", "setup", "Print a segment for a status line"),
        ("daemon", "setup", "Run the daemon in this process"),
        ("uninstall", "care", "Remove Kite Memory from your agents and stop its daemon"),
        ("hooks", "setup", "Add, remove and show hooks in your agents' settings"),
        ("service", "setup", "Start the daemon whenever you log in"),
        ("keys", "setup", "Manage API keys, which are optional, and values to redact"),
        ("config", "setup", "Show and change settings"),
    ),
    "Care": (
        ("backfill", "care", "Read every existing transcript and make notes of it"),
        ("logs", "care", "Print the daemon's log"),
        ("doctor", "care", "Check for problems that keep Kite Memory from working, and suggest fixes"),
        ("verify", "care", "Check timeline, index and vault against each other"),
        ("rebuild", "care", "Rebuild the index from the vault"),
        ("demo", "care", "Show two invented sessions, their notes, and what the agent is then given"),
        ("help", "main", "Show help about a command, or everything as a manual page"),
        ("completion", "main", "Print the script that lets a shell complete commands and options"),
        ("extensions", "care", "List sources, extractors and embedders that other packages add, and check them"),
    ),
}
"""By heading: the name of each command, its module, and the first sentence of its help."""


def group(*, help: str, example: str, **rest: Any) -> typer.Typer:
    return typer.Typer(cls=Sections, rich_markup_mode=None, help=help, epilog=example, **rest)


def add(app: typer.Typer, *commands: Callable[..., None], panel: str, name: str | None = None) -> None:
    for command in commands:
        app.command(name, cls=Command, rich_help_panel=panel)(command)


def _write_options(params: Any, ctx: Any, formatter: Any) -> None:
    records = [param.get_help_record(ctx) for param in params if param.param_type_name == "option"]
    if rows := [record for record in records if record]:
        with formatter.section("Options"):
            formatter.write_dl(rows)


def _write_example(example: str | None, formatter: Any) -> None:
    if example:
        formatter.write(f"\nExample:\n  {example}\n")  # not wrapped: it is for pasting


def first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".")


def help_(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The command; without one, all are listed.")
    ] = None,
    man: Annotated[bool, typer.Option("--man", help="Print everything as a page for man.")] = False,
) -> None:
    """Show help about a command, or everything as a manual page.

    Example: kmem help search
    """
    root = context.find_root()
    if man:
        print_data(_manual(root.command).rstrip("\n"))
        return
    found: Any = root.command
    for word in command or []:
        found = getattr(found, "commands", {}).get(word)
        if found is None:
            raise UsageError(f"there is no command {' '.join(command or [])!r}", hint="`kmem help` lists them")
    print_data(help_of(found, " ".join(["kmem", *(command or [])])))


def completion(shell: Annotated[str, typer.Argument(metavar="SHELL", help=f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]}.")]) -> None:
    """Print the script that lets a shell complete commands and options.

    For bash, add `source <(kmem completion bash)` to ~/.bashrc, and for zsh the same to ~/.zshrc. For fish, write it to
    ~/.config/fish/completions/kmem.fish. For PowerShell, add
    `kmem completion powershell | Out-String | Invoke-Expression` to $PROFILE.

    Example: kmem completion bash
    """
    from typer._completion_shared import get_completion_script  # Typer offers it only as an option that edits start-up files

    if shell not in SHELLS:
        raise UsageError(f"there is no completion for {shell!r}", hint=f"choose one of: {', '.join(SHELLS)}")
    print_data(get_completion_script(prog_name="kmem", complete_var=_VARIABLE, shell=shell))


def prepare_completion() -> None:
    """Register how each shell asks for completions, if one is asking."""
    if _VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()


def help_of(command: Any, name: str) -> str:
    """Return the help of a command that is called ``name``, without the last newline."""
    with command.make_context(name, [], resilient_parsing=True, help_option_names=["-h", "--help"]) as context:
        return str(command.get_help(context)).strip()


def every_help(root: Any, name: str = "kmem") -> Iterator[tuple[str, str]]:
    """Yield the whole name and the help of every command, groups before what is in them."""
    yield name, help_of(root, name)
    for inner_name, inner in getattr(root, "commands", {}).items():
        if not inner.hidden:
            yield from every_help(inner, f"{name} {inner_name}")


def _manual(root: Any) -> str:
    """Return the manual page in roff: the text of every command's help, in literal blocks."""
    lines = [f'.TH KMEM 1 "" "kite-memory {__version__}"', ".SH NAME", "kmem \\- a memory for AI coding agents"]
    for name, text in every_help(root):
        lines += [f'.SH "{name}"', ".nf", *map(_roff, text.splitlines())]
        lines.append(".fi")
    return "\n".join(lines)


def _roff(line: str) -> str:
    escaped = line.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def add_to(app: typer.Typer) -> None:
    add(app, help_, panel="Care", name="help")
    add(app, completion, panel="Care")


app = typer.Typer(
    name="kmem",
    cls=LazySections,
    rich_markup_mode=None,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Long-term memory for AI coding agents: markdown notes on your machine, given to the agent when they help.",
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
