"""Help as plain text, the same on every terminal, as a manual page, and for a shell that completes.

The help of a command ends with an example to paste.
"""

import os
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kite_memory import __version__
from kite_memory.cli.console import say
from kite_memory.errors import UsageError

_EXAMPLE = "Example: "
SHELLS = ("bash", "zsh", "fish", "powershell")
_VARIABLE = "_KMEM_COMPLETE"
"""Set by a shell's script when it asks for completions."""


class Command(TyperCommand):
    """The last paragraph of the docstring, ``Example: …``, comes last in the help, on a line of its own."""

    def __init__(self, name: str | None, *, help: str | None = None, epilog: str | None = None, **rest: Any) -> None:
        said, _, example = (help or "").rpartition(f"\n\n{_EXAMPLE}")
        super().__init__(name, help=said or help, epilog=epilog or example, **rest)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        params = self.get_params(ctx)
        arguments = [param for param in params if param.param_type_name == "argument"]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(param.metavar or param.name, getattr(param, "help", "")) for param in arguments])
        _write_options(params, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_example(self.epilog, formatter)


class Sections(TyperGroup):
    """Command group that lists commands under the headings of their sections, each with the first sentence of its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Show the help and exit with success if there is no command."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            say(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                heading = getattr(command, "rich_help_panel", None) or "Commands"
                sections.setdefault(heading, []).append((name, first_sentence(command.help or "")))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_example(self.epilog, formatter)


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
        say(_manual(root.command).rstrip("\n"))
        return
    found: Any = root.command
    for word in command or []:
        found = getattr(found, "commands", {}).get(word)
        if found is None:
            raise UsageError(f"there is no command {' '.join(command or [])!r}", hint="`kmem help` lists them")
    say(help_of(found, " ".join(["kmem", *(command or [])])))


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
    say(get_completion_script(prog_name="kmem", complete_var=_VARIABLE, shell=shell))


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
