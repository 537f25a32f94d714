"""`/remember`, `/forget`, `/why` and `/resume-work` in each agent's form, and marked blocks in its instructions.

The commands are whole files that we own. The last line of each holds the hash of the rest as we wrote it: an older one is updated,
and a changed file counts as the user's.

The blocks stand in the file that an agent reads before everything else. One holds two lines about the memory and when to use it;
the other, while it is needed, the brief of work that is handed over.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kite_memory.agents.settings_edit import Edit, Nothing, Plan, SettingsUnreadable

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


def plan_add_file(text: str | None, ours: str, name: str) -> Plan:
    if text is not None and text.replace("\r\n", "\n") == ours:
        return Nothing(because=f"{name} is there already")
    if text is not None and not is_ours(text):
        return Nothing(because=f"there is a {name} of your own, which stays")
    return Edit(before=text, after=ours, because=f"adds {name}" if text is None else f"brings {name} up to date")


def plan_remove_file(text: str | None, name: str) -> Plan:
    if text is None:
        return Nothing(because=f"{name} is not installed")
    if not is_ours(text):
        return Nothing(because=f"{name} is your own, and stays")
    return Edit(before=text, after=None, because=f"removes {name}")


def is_ours(text: str) -> bool:
    """Return whether we wrote it, in any version, and it was not changed since."""
    signed = _SIGNED.fullmatch(text.replace("\r\n", "\n"))
    return signed is not None and _digest(signed["said"]) == (signed["html"] or signed["hash"])


def _digest(said: str) -> str:
    return hashlib.sha256(said.replace("\r\n", "\n").encode()).hexdigest()[:12]


BEGIN, END = "<!-- kite-memory:begin -->", "<!-- kite-memory:end -->"
_HANDED_BEGIN, _HANDED_END = "<!-- kite-memory:handoff -->", "<!-- kite-memory:handoff:end -->"

LINES = (
    "The MCP server `kite-memory` holds what was decided and found out in earlier sessions, by any agent. Before starting on a "
    "task, and when earlier work is mentioned, look there: `smart_resume` for where work stopped, `get_context` for a subject.",
    "When something is decided, or a piece of work is done, keep it: `save_conversation` with the decisions, their reasons and "
    "what was rejected; `remember` for a single fact.",
)
BLOCK = "\n".join((BEGIN, *LINES, END)) + "\n"


def plan_add(text: str | None) -> Plan:
    """Plan to add our lines at the end, after an empty line. An older block is updated in place."""
    return _plan_add(text, BLOCK, "adds two lines", "the lines are there already")


def plan_remove(text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
    """Plan to remove our lines.

    ``earlier`` are the file's backups, latest first: one that our lines turn into this very text is restored to the byte.
    """
    return _plan_remove(text, BLOCK, earlier)


def plan_hand_over(text: str | None, brief: str) -> Plan:
    """Plan to add a brief, or to replace an earlier one."""
    return _plan_add(text, handed(brief), "adds the brief of the work that is handed over", "the brief is there already")


def plan_take_back(text: str | None) -> Plan:
    return _plan_remove(text, handed(""), ())


def handed(brief: str) -> str:
    """Return the block of a brief, escaped so that the brief cannot end its own block."""
    quoted = brief.replace("<!--", "<! --").replace("-->", "-- >").strip()
    heading = "## Work handed over\n\nAnother agent worked here and stopped. What it left, as its transcript shows (`kmem resume`):"
    return "\n".join((_HANDED_BEGIN, heading, "", quoted, _HANDED_END)) + "\n"


def present(text: str | None) -> bool:
    return text is not None and _place(text, BLOCK) is not None


def _plan_add(text: str | None, block: str, adds: str, there: str) -> Plan:
    after = _with(text or "", block)
    return Nothing(because=there) if after == text else Edit(before=text, after=after, because=adds)


def _plan_remove(text: str | None, block: str, earlier: Sequence[str | None]) -> Plan:
    if text is None or (place := _place(text, block)) is None:
        return Nothing(because="our lines are not in it")
    because = "removes our lines and nothing else"
    for old in earlier:
        if (old is None or _place(old, block) is None) and _with(old or "", block) == text:
            return Edit(before=text, after=old, because=because)
    start, end = place
    before, rest = text[:start], text[end:]
    for line_end in ("\n", "\r\n"):
        if before.endswith(line_end * 2) and not rest.strip():
            before = before.removesuffix(line_end)
    if not (before + rest).strip():
        return Edit(before=text, after=None, because=f"{because}; there is nothing else in it")
    return Edit(before=text, after=before + rest, because=because)


def _with(text: str, block: str) -> str:
    """Return the text with the block, with the line ends that are there."""
    place = _place(text, block)
    start, stop = place or (0, len(text))
    end = "\r\n" if "\r\n" in text[start:stop] else "\n"
    ours = block.replace("\n", end)
    if place or not text.strip():
        return text[:start] + ours + text[stop:]
    return text + ("" if text.endswith("\n") else end) + end + ours


def _place(text: str, block: str) -> tuple[int, int] | None:
    """Return the position from the first mark to the line's end after the last; ``None`` without both.

    Raises `SettingsUnreadable` where only one of them is left.
    """
    lines = block.split("\n")
    begin, last = lines[0], lines[-2]
    start, stop = text.find(begin), text.find(last)
    if start < 0 and stop < 0:
        return None
    if start < 0 or stop < start or text.find(begin, start + 1) >= 0:
        raise SettingsUnreadable(
            "the begin and end marks of kmem's lines do not match", hint=f"remove what is left of {begin} by hand"
        )
    end = stop + len(last)
    if text.startswith("\r\n", end):
        end += 2
    elif text.startswith("\n", end):
        end += 1
    return start, end
