"""`kmem help` and `kmem completion`: what the program says of itself, for a person, `man`, and a shell."""

import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from kite_memory import __version__
from kite_memory.cli.console import say
from kite_memory.cli.help import add
from kite_memory.errors import UsageError

SHELLS = ("bash", "zsh", "fish", "powershell")
_VARIABLE = "_KMEM_COMPLETE"
"""Set by a shell's script when it asks for completions."""


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
