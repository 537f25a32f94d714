"""Hooks of the agents beside Claude Code: those that store them as it does, Copilot CLI's file, OpenCode's plugin, Cline's script.

Copilot's, OpenCode's and Cline's are whole files that we own, next to the user's.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kite_memory.agents import claude_code, instructions, settings_edit
from kite_memory.agents.claude_code import TIMEOUT_SECONDS, Hook, Status, is_ours
from kite_memory.agents.settings_edit import Array, Edit, Literal, Nothing, Object, Plan, SettingsUnreadable, String

COPILOT = "copilot-cli"
COPILOT_FILE = "kite-memory.json"
COPILOT_EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse")
"""Under these names Copilot gives hooks the same input as Claude Code does."""

_COPILOT_FILE_STAYS = f"{COPILOT_FILE} is your own, and stays"


def plan_copilot_install(text: str | None, command: str) -> Plan:
    entry = {"type": "command", "command": f"{command} --agent {COPILOT}", "timeout": TIMEOUT_SECONDS}
    ours = json.dumps({"version": 1, "hooks": {event: [entry] for event in COPILOT_EVENTS}}, indent=2, ensure_ascii=False) + "\n"
    if text == ours:
        return Nothing(because="the hooks are there already")
    if text is not None and not copilot_status(text).hooks:
        return Nothing(because=_COPILOT_FILE_STAYS)
    return Edit(before=text, after=ours, because=f"runs the hook on {', '.join(COPILOT_EVENTS[:-1])} and {COPILOT_EVENTS[-1]}")


def plan_copilot_uninstall(text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
    """``earlier`` is not needed: the file is ours alone."""
    if text is None:
        return Nothing(because="our hooks are not installed")
    return (
        Edit(before=text, after=None, because=f"removes {COPILOT_FILE}")
        if copilot_status(text).hooks
        else Nothing(because=_COPILOT_FILE_STAYS)
    )


def copilot_status(text: str | None) -> Status:
    """Return our hooks; none for a file that also holds anything else."""
    hooks = _hooks(text or "")
    wired = {hook.event for hook in hooks}
    return Status(hooks=hooks, missing=tuple(event for event in COPILOT_EVENTS if event not in wired))


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


OPENCODE = "opencode"
OPENCODE_FILE = "kite-memory.js"
_EVENT = "chat.message"
_COMMAND = re.compile(r'^const COMMAND = (".*")$', re.MULTILINE)

_PLUGIN = """\
// Passes what a person asks to Kite Memory, and the notes that it finds to the model. Silent where no daemon runs.
import { spawn } from "node:child_process"

const COMMAND = @COMMAND@
const LIMIT_MS = 5000

const noteFor = (input) =>
  new Promise((resolve) => {
    const child = spawn(COMMAND, { shell: true, timeout: LIMIT_MS, stdio: ["pipe", "pipe", "ignore"] })
    let printed = ""
    child.stdout.setEncoding("utf8").on("data", (piece) => (printed += piece))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      try {
        resolve(JSON.parse(printed).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(input))
  })

export const KiteMemory = async ({ directory }) => ({
  "chat.message": async ({ sessionID }, { message, parts }) => {
    const asked = parts.filter((part) => part.type === "text" && !part.synthetic)
    if (asked.length === 0) return
    const text = await noteFor({
      hook_event_name: "UserPromptSubmit",
      session_id: sessionID,
      prompt_id: message.id,
      cwd: directory,
      prompt: asked.map((part) => part.text).join("\\n"),
    })
    if (!text) return
    const id = `${parts.at(-1).id}z` // parts are read in the order of their ids
    parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
  },
})
"""


def opencode_plugin(command: str) -> str:
    """Return the plugin's text with the hook's command in it."""
    return _PLUGIN.replace("@COMMAND@", json.dumps(f"{command} --agent {OPENCODE}", ensure_ascii=False))


def plan_opencode_install(text: str | None, command: str) -> Plan:
    plan = instructions.plan_add_file(text, instructions.signed(opencode_plugin(command), "// {}"), OPENCODE_FILE)
    return replace(plan, because=f"{plan.because}, which runs the hook on {_EVENT}") if isinstance(plan, Edit) else plan


def plan_opencode_uninstall(text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
    """``earlier`` is not needed: the file is ours alone."""
    return instructions.plan_remove_file(text, OPENCODE_FILE)


def opencode_status(text: str | None) -> Status:
    found = _COMMAND.search(text or "")
    if text is None or not instructions.is_ours(text) or found is None:
        return Status(hooks=(), missing=(_EVENT,))
    return Status(hooks=(Hook(event=_EVENT, command=json.loads(found[1])),), missing=())


_THEIRS = "Claude Code"
_THEIR_FILE = "settings.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookDialect:
    """How one agent's hooks differ from Claude Code's.

    ``timeout`` is a hook's limit in the agent's own unit; ``flat`` settings have none of ours. ``note`` is what a person must know
    besides.

    The command names the agent, so that the answer has that agent's format. ``comments`` may stand in its settings.
    """

    name: str
    title: str
    file: str
    events: tuple[str, ...]
    timeout: int = 0
    note: str = ""
    comments: bool = False
    flat: bool = False

    def plan_install(self, text: str | None, command: str) -> Plan:
        try:
            ours = f"{command} --agent {self.name}"
            plan = claude_code.plan_install(text, ours, self.events, comments=self.comments, flat=self.flat)
            timed = self._timed((plan.after if isinstance(plan, Edit) else text) or "")
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error
        if timed == (text or "") or not timed:
            return Nothing(because="the hooks are there already")
        because = plan.because if isinstance(plan, Edit) else "corrects the time limit of our hooks"
        return Edit(before=text, after=timed, because=f"{because}{self.note and '; '}{self.note}")

    def plan_uninstall(self, text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
        try:
            plan = claude_code.plan_uninstall(text, comments=self.comments)
            command = next((hook.command for hook in self.status(text).hooks), "").removesuffix(f" --agent {self.name}")
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error
        if isinstance(plan, Nothing):
            return plan
        for old in earlier:
            if self._became(old, text, command):
                return Edit(before=text, after=old, because=plan.because)
        return plan

    def status(self, text: str | None) -> Status:
        try:
            return claude_code.status(text, self.events, comments=self.comments)
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error

    def _became(self, old: str | None, text: str | None, command: str) -> bool:
        try:
            match self.plan_install(old, command):
                case Edit(after=after) if after == text:
                    return not self.status(old).hooks
                case _:
                    return False
        except SettingsUnreadable:
            return False

    def _timed(self, text: str) -> str:
        """Return the settings with our hooks' limits in this agent's unit."""
        while wrong := next((limit for limit in _limits(text, self.comments) if limit.written != str(self.timeout)), None):
            text = text[: wrong.start] + str(self.timeout) + text[wrong.end :]
        return text

    def _as_ours(self, error: SettingsUnreadable) -> SettingsUnreadable:
        hint = error.hint.replace(_THEIR_FILE, self.file)
        return SettingsUnreadable(str(error).replace(_THEIRS, self.title), hint=hint)


def _limits(text: str, comments: bool) -> Iterator[Literal]:
    """Yield the ``timeout`` of each of our hooks."""
    root = settings_edit.read(text, comments=comments) if text.strip("\ufeff \t\r\n") else None
    hooks = root.get("hooks") if isinstance(root, Object) else None
    for member in hooks.members if isinstance(hooks, Object) else ():
        for group in member.value.items if isinstance(member.value, Array) else ():
            inner = group.get("hooks") if isinstance(group, Object) else None
            for hook in inner.items if isinstance(inner, Array) else ():
                command = hook.get("command") if isinstance(hook, Object) else None
                limit = hook.get("timeout") if isinstance(hook, Object) else None
                if isinstance(command, String) and is_ours(command.value) and isinstance(limit, Literal):
                    yield limit


CLINE = "cline"
CLINE_EVENT = "UserPromptSubmit"
"""Also the name of the hook's file. Cline runs one file for each event."""

_CLINE_SCRIPT = """\
#!/bin/sh
# Gives Cline what Kite Memory knows about a prompt. Silent where no daemon runs.
exec @COMMAND@
"""
_CLINE_COMMAND = re.compile(r"^exec (.+)$", re.MULTILINE)


def plan_cline_install(text: str | None, command: str) -> Plan:
    script = instructions.signed(_CLINE_SCRIPT.replace("@COMMAND@", f"{command} --agent {CLINE}"), "# {}")
    plan = instructions.plan_add_file(text, script, f"the hook {CLINE_EVENT}")
    if isinstance(plan, Nothing):
        return plan
    because = f"{plan.because}; Cline runs it while hooks are enabled in its settings"
    return replace(plan, because=because, executable=True)


def plan_cline_uninstall(text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
    """``earlier`` is not needed: the file is ours alone."""
    return instructions.plan_remove_file(text, f"the hook {CLINE_EVENT}")


def cline_status(text: str | None) -> Status:
    command = _CLINE_COMMAND.search(text or "")
    if text is None or not instructions.is_ours(text) or command is None:
        return Status(hooks=(), missing=(CLINE_EVENT,))
    return Status(hooks=(Hook(event=CLINE_EVENT, command=command[1]),), missing=())
