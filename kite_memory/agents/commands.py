"""`/remember`, `/forget`, `/why` and `/resume-work` in each agent's form: whole files of ours beside a person's own.

The last line of a file of ours holds the hash of the rest as we wrote it. So a file that its owner has changed is recognised as
theirs, and an older one of ours is updated.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from kite_memory.agents.settings_edit import Edit, Nothing, Plan

NAMES = ("remember", "forget", "why", "resume-work")

_SIGNED = re.compile(
    r"(?P<said>.*\n)(?:<!-- kite-memory (?P<html>[0-9a-f]{12}) -->|(?:#|//) kite-memory (?P<hash>[0-9a-f]{12}))\n?", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFile:
    """A command's file.

    ``template`` is its path in the hooks folder of the package, ``place`` its path below the agent's own folder.
    """

    template: str
    place: str


_CLAUDE_CODE = (
    *(CommandFile(template=f"claude-code/commands/{name}.md", place=f"commands/{name}.md") for name in NAMES),
    CommandFile(template="claude-code/skills/kite-memory/SKILL.md", place="skills/kite-memory/SKILL.md"),
)
_CODEX = tuple(CommandFile(template=f"codex/skills/{name}/SKILL.md", place=f"skills/{name}/SKILL.md") for name in NAMES)
"""Codex has replaced custom prompts by skills: `$remember` there."""
_GEMINI_CLI = tuple(CommandFile(template=f"gemini-cli/commands/{name}.toml", place=f"commands/{name}.toml") for name in NAMES)

_FILES = {"claude-code": _CLAUDE_CODE, "codex": _CODEX, "gemini-cli": _GEMINI_CLI}


def files(agent: str) -> tuple[CommandFile, ...]:
    """Return an agent's command files; none for an agent without commands."""
    return _FILES.get(agent, ())


def written(template: Path) -> str:
    """Return the template as it is written into the agent's folder: with its hash in a comment, in its own syntax, as last line."""
    return signed(template.read_text(encoding="utf-8"), "# {}" if template.suffix == ".toml" else "<!-- {} -->")


def signed(said: str, comment: str) -> str:
    """Return the text with its hash as last line; ``comment`` is the syntax of a comment around it."""
    return f"{said}{comment.format(f'kite-memory {_digest(said)}')}\n"


def plan_add(text: str | None, ours: str, name: str) -> Plan:
    if text == ours:
        return Nothing(because=f"{name} is there already")
    if text is not None and not is_ours(text):
        return Nothing(because=f"there is a {name} of your own, which stays")
    return Edit(before=text, after=ours, because=f"adds {name}" if text is None else f"brings {name} up to date")


def plan_remove(text: str | None, name: str) -> Plan:
    if text is None:
        return Nothing(because=f"there is no {name} of ours")
    if not is_ours(text):
        return Nothing(because=f"{name} is your own, and stays")
    return Edit(before=text, after=None, because=f"removes {name}")


def is_ours(text: str) -> bool:
    """Return whether we wrote it, in any version, and it was not changed since."""
    signed = _SIGNED.fullmatch(text.replace("\r\n", "\n"))
    return signed is not None and _digest(signed["said"]) == (signed["html"] or signed["hash"])


def _digest(said: str) -> str:
    return hashlib.sha256(said.replace("\r\n", "\n").encode()).hexdigest()[:12]
