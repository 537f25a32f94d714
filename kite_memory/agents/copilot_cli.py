"""Copilot CLI's hooks: a file of ours beside a person's own, in the hooks folder of Copilot's home."""

import json
from collections.abc import Sequence

from kite_memory.agents.claude_code import TIMEOUT_SECONDS, Hook, Status
from kite_memory.agents.hook_command import is_ours
from kite_memory.agents.settings_edit import Edit, Nothing, Plan

NAME = "copilot-cli"
FILE = "kite-memory.json"
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse")
"""Under these names Copilot gives hooks the same input as Claude Code does."""

_THEIRS = f"{FILE} is your own, and stays"


def plan_install(text: str | None, command: str) -> Plan:
    entry = {"type": "command", "command": f"{command} --agent {NAME}", "timeout": TIMEOUT_SECONDS}
    ours = json.dumps({"version": 1, "hooks": {event: [entry] for event in EVENTS}}, indent=2, ensure_ascii=False) + "\n"
    if text == ours:
        return Nothing(because="the hooks are there already")
    if text is not None and not status(text).hooks:
        return Nothing(because=_THEIRS)
    return Edit(before=text, after=ours, because=f"runs the hook on {', '.join(EVENTS[:-1])} and {EVENTS[-1]}")


def plan_uninstall(text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
    """``earlier`` is not needed: the file is ours alone."""
    if text is None:
        return Nothing(because="there are no hooks of ours")
    return Edit(before=text, after=None, because=f"removes {FILE}") if status(text).hooks else Nothing(because=_THEIRS)


def status(text: str | None) -> Status:
    """Return our hooks; none for a file that also holds anything else."""
    hooks = _hooks(text or "")
    wired = {hook.event for hook in hooks}
    return Status(hooks=hooks, missing=tuple(event for event in EVENTS if event not in wired))


def _hooks(text: str) -> tuple[Hook, ...]:
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    found: list[Hook] = []
    for event, entries in (
        settings["hooks"].items() if isinstance(settings, dict) and isinstance(settings.get("hooks"), dict) else ()
    ):
        for entry in entries if isinstance(entries, list) else [None]:
            command = entry.get("command") if isinstance(entry, dict) else None
            if not isinstance(command, str) or not is_ours(command):
                return ()
            found.append(Hook(event=event, command=command))
    return tuple(found)
