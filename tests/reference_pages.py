"""Makes the pages in `docs/reference/` from the program itself: ``make reference``."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

from typer.main import get_command

from kite_memory import config as configuration
from kite_memory.cli.main import app, every_help
from kite_memory.tools.declarations import MORE_TOOLS, TOOLS

FOLDER = Path(__file__).parent.parent / "docs" / "reference"

_MADE = "Made from the program by `make reference`, and checked by `tests/test_reference_pages.py`: do not edit it.\n"


def pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    return {"commands.md": _commands(), "settings.md": _settings(), "mcp-tools.md": _tools()}


def _commands() -> str:
    helps = [f"## {name}\n\n```text\n{text}\n```\n" for name, text in every_help(get_command(app))]
    return "\n".join([f"# Commands\n\n{_MADE}\n`kmem COMMAND --help` says the same.\n", *helps])


def _settings() -> str:
    defaults: dict[str, object] = {
        "vault": "~/.kite/memory",
        "vault.git": False,
        "vault.journal": False,
        "judge": "late",
        "git_history": True,
        "extensions": True,
    }
    choices: dict[str, tuple[str, ...]] = {"judge": ("late", "wait", "off")}
    for section, kind in (
        ("extractor", configuration.ExtractorConfig),
        ("embedder", configuration.EmbedderConfig),
        ("recall", configuration.RecallConfig),
        ("daemon", configuration.DaemonConfig),
        ("team", configuration.TeamConfig),
    ):
        for setting in dataclasses.fields(kind):
            defaults[f"{section}.{setting.name}"] = setting.default
            if allowed := configuration.CHOICES.get((kind, setting.name)):
                choices[f"{section}.{setting.name}"] = allowed
    rows = [
        f"| `{name}` | {_default(defaults.get(name))} | {meaning}{_among(choices.get(name, ()))} |"
        for name, meaning in configuration.DESCRIPTIONS.items()
    ]
    return (
        f"# Settings\n\n{_MADE}\n"
        "The file is `~/.config/kite-memory/config.toml`. `kmem config show` prints all settings in force, "
        "`kmem config get NAME` one,\nand `kmem config set NAME VALUE` changes one. `extractor.name` is `name` in the section "
        "`[extractor]`.\n\n"
        "| setting | default | what it does |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _default(value: object) -> str:
    if value is None or value in ("", ()):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _among(choices: tuple[str, ...]) -> str:
    return f": {', '.join(f'`{each}`' for each in choices)}" if choices else ""


def _tools() -> str:
    rarer = ", ".join(f"`{tool.name}`" for tool in TOOLS.values() if not tool.daily)
    about = (
        "The tools that `kmem mcp` and `kmem serve` offer. An argument in bold is required. By default agents see the "
        f"daily tools and\n`{MORE_TOOLS.name}`, with which they can call the others: {rarer}.\n`--tools all` lists all. A tool can "
        "also be called by its older names."
    )
    parts = [f"# MCP tools\n\n{_MADE}\n{about}\n"]
    for tool in (*TOOLS.values(), MORE_TOOLS):
        required = tool.schema.get("required", [])
        rows = [
            f"| {f'**`{name}`**' if name in required else f'`{name}`'} | {_kind(schema)} | {_cell(schema.get('description', ''))} |"
            for name, schema in tool.schema["properties"].items()
        ]
        table = "\n| argument | type | what it is |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
        older = f"\nOlder name: `{tool.aliases[0]}`.\n" if tool.aliases else ""
        parts.append(f"## {tool.name}\n\n{tool.description}\n{older}{table}")
    return "\n".join(parts)


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
        sys.stderr.write(f"{name}: {text.count(chr(10))} lines\n")
