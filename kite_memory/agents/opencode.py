"""OpenCode's plugin: one file of ours in its plugins folder, which runs the hook at every prompt."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from kite_memory.agents import commands
from kite_memory.agents.claude_code import Hook, Status
from kite_memory.agents.settings_edit import Edit, Plan

NAME = "opencode"
FILE = "kite-memory.js"
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


def plugin(command: str) -> str:
    """Return the plugin's text with the hook's command in it."""
    return _PLUGIN.replace("@COMMAND@", json.dumps(f"{command} --agent {NAME}", ensure_ascii=False))


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
