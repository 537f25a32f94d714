"""OpenCode's plugin: one file of ours in its plugins folder, which runs the hook at every prompt."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from kite_memory import assets
from kite_memory.agents import commands
from kite_memory.agents.claude_code import Hook, Status
from kite_memory.agents.settings_edit import Edit, Plan

NAME = "opencode"
FILE = "kite-memory.js"
_EVENT = "chat.message"
_COMMAND = re.compile(r'^const COMMAND = (".*")$', re.MULTILINE)


def plugin(command: str) -> str:
    """Return the plugin's text with the hook's command in it."""
    template = (assets.folder("hooks") / NAME / FILE).read_text(encoding="utf-8")
    line = f"const COMMAND = {json.dumps(f'{command} --agent {NAME}', ensure_ascii=False)}"
    return _COMMAND.sub(lambda _: line, template, count=1)


def plan_install(text: str | None, command: str) -> Plan:
    plan = commands.plan_add(text, commands.signed(plugin(command), "// {}"), FILE)
    return replace(plan, because=f"{plan.because}, which runs the hook on {_EVENT}") if isinstance(plan, Edit) else plan


def plan_uninstall(text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
    """``earlier`` is not needed: the file is ours alone."""
    return commands.plan_remove(text, FILE)


def status(text: str | None) -> Status:
    found = _COMMAND.search(text or "")
    if text is None or not commands.is_ours(text) or found is None:
        return Status(hooks=(), missing=(_EVENT,))
    return Status(hooks=(Hook(event=_EVENT, command=json.loads(found[1])),), missing=())
