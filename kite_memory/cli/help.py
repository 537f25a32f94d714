"""Help as plain text, the same on every terminal. It ends with an example to paste."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_EXAMPLE = "Example: "


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
        """Without a command, show the help and end well."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
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
