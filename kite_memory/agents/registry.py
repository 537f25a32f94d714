"""Every agent whose settings we can edit, by the name that ``--agent`` takes: its hooks, its plugin, and how it resumes a session.

Copilot's, OpenCode's and Cline's hooks are whole files that we own, next to the user's. A plugin's hooks are those that `kmem hooks
install` writes, with a command that finds our program on any machine.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kite_memory.agents import claude_code, instructions
from kite_memory.agents.claude_code import TIMEOUT_SECONDS, Hook, HookDialect, Status, claude_version, is_ours
from kite_memory.agents.mcp_entry import NAME
from kite_memory.agents.settings_edit import Edit, Nothing, Plan, SettingsUnreadable, read_settings
from kite_memory.errors import KiteError, UsageError

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
    return Edit(before=text, after=ours, because=claude_code.when_it_runs(COPILOT_EVENTS))


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
    hooks = _copilot_hooks(text or "")
    wired = {hook.event for hook in hooks}
    return Status(hooks=hooks, missing=tuple(event for event in COPILOT_EVENTS if event not in wired))


def _copilot_hooks(text: str) -> tuple[Hook, ...]:
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
const NOTE = "kite-memory"

const noteFor = (session_id, prompt_id, cwd, prompt) =>
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
    child.stdin.end(JSON.stringify({ hook_event_name: "UserPromptSubmit", session_id, prompt_id, cwd, prompt }))
  })

// OpenCode 1: a part of the message that the person did not write.
const server = async ({ directory }) => ({
  "chat.message": async ({ sessionID }, { message, parts }) => {
    const asked = parts.filter((part) => part.type === "text" && !part.synthetic)
    if (asked.length === 0) return
    const text = await noteFor(sessionID, message.id, directory, asked.map((part) => part.text).join("\\n"))
    if (!text) return
    const id = `${parts.at(-1).id}z` // parts are read in the order of their ids
    parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
  },
})

const folderOf = async (ctx, sessionID) => {
  const session = await ctx.session.get({ sessionID }).catch(() => undefined)
  return session?.location?.directory ?? ctx.location?.directory ?? ""
}

// OpenCode 2: kept in the message's metadata, so that every later request has the same note at the same place.
const setup = async (ctx) => {
  await ctx.session.hook("prompt", async (event) => {
    if (!event.prompt?.text?.trim()) return
    const cwd = await folderOf(ctx, event.sessionID)
    const text = await noteFor(event.sessionID, event.messageID, cwd, event.prompt.text)
    if (text) event.metadata = { ...event.metadata, [NOTE]: text }
  })
  await ctx.session.hook("context", (event) => {
    event.messages = event.messages.map((message) => {
      const text = message.role === "user" && Array.isArray(message.content) && message.metadata?.[NOTE]
      if (typeof text !== "string") return message
      return { ...message, content: [...message.content, { type: "text", text: `\\n\\n${text}` }] }
    })
  })
}

export default { id: NOTE, server, setup }
"""


def opencode_plugin(command: str) -> str:
    """Return the plugin's text with the hook's command in it."""
    return _PLUGIN.replace("@COMMAND@", json.dumps(f"{command} --agent {OPENCODE}", ensure_ascii=False))


def plan_opencode_install(text: str | None, command: str) -> Plan:
    plan = instructions.plan_add_file(text, instructions.signed(opencode_plugin(command), "// {}"), OPENCODE_FILE)
    return (
        replace(plan, because=f"{plan.because}, which gives the agent notes with each prompt") if isinstance(plan, Edit) else plan
    )


def plan_opencode_uninstall(text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
    """``earlier`` is not needed: the file is ours alone."""
    return instructions.plan_remove_file(text, OPENCODE_FILE)


def opencode_status(text: str | None) -> Status:
    found = _COMMAND.search(text or "")
    if text is None or not instructions.is_ours(text) or found is None:
        return Status(hooks=(), missing=(_EVENT,))
    return Status(hooks=(Hook(event=_EVENT, command=json.loads(found[1])),), missing=())


CLINE = "cline"
CLINE_EVENT = "UserPromptSubmit"
CLINE_CLI_EVENT = "PostToolUse"
"""Also the names of the hooks' files. Cline runs one file for each event, its command line tool none for a prompt."""
_CLINE_SCRIPT = """\
#!/bin/sh
# Gives Cline what Kite Memory knows about a prompt. Silent where no daemon runs.
exec @COMMAND@
"""
_CLINE_COMMAND = re.compile(r"^exec (.+)$", re.MULTILINE)


def plan_cline_install(text: str | None, command: str, event: str = CLINE_EVENT) -> Plan:
    script = instructions.signed(_CLINE_SCRIPT.replace("@COMMAND@", f"{command} --agent {CLINE}"), "# {}")
    plan = instructions.plan_add_file(text, script, f"the hook {event}")
    if isinstance(plan, Nothing):
        return plan
    when = "when a tool has ended" if event == CLINE_CLI_EVENT else "while hooks are enabled in its settings"
    return replace(plan, because=f"{plan.because}; Cline runs it {when}", executable=True)


def plan_cline_uninstall(text: str | None, earlier: Sequence[str | None] = (), *, event: str = CLINE_EVENT) -> Plan:
    """``earlier`` is not needed: the file is ours alone."""
    return instructions.plan_remove_file(text, f"the hook {event}")


def cline_status(text: str | None, event: str = CLINE_EVENT) -> Status:
    command = _CLINE_COMMAND.search(text or "")
    if text is None or not instructions.is_ours(text) or command is None:
        return Status(hooks=(), missing=(event,))
    return Status(hooks=(Hook(event=event, command=command[1]),), missing=())


_TAKES_UP = {
    "claude-code": ("claude", "--resume"),
    "codex": ("codex", "resume"),
    "gemini-cli": ("gemini", "--resume"),
    "copilot-cli": ("copilot", "--resume"),
    "opencode": ("opencode", "--session"),
}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""What may be put on a command line: the id comes from a transcript and is not trusted."""


class CannotGoOn(KiteError):
    """Raised for a session that can be read, but that no agent can resume."""


def command_for(provider: str, session: str) -> tuple[str, ...]:
    """Return the command that resumes a session. Raises `CannotGoOn` for an agent that cannot be started with one."""
    if provider not in _TAKES_UP:
        raise CannotGoOn(f"{provider} cannot resume a session", hint="`kmem handoff --to AGENT` gives its brief to another")
    if _ID.fullmatch(session) is None:
        raise CannotGoOn(f"the id {session!r:.80} cannot be given to an agent")
    return (*_TAKES_UP[provider], session)


_KEY = f"{NAME}@{NAME}"
"""Our plugin in the settings of Codex: its name, and its marketplace's."""


def in_claude_code(root: Path) -> bool:
    """Return whether Claude Code has the plugin enabled for the user; from its own marketplace or another one."""
    enabled = _object(root / "settings.json").get("enabledPlugins")
    return isinstance(enabled, dict) and any(
        isinstance(key, str) and key.partition("@")[0] == NAME and value is not False for key, value in enabled.items()
    )


def in_codex(root: Path) -> bool:
    try:
        settings = tomllib.loads(read_settings(root / "config.toml") or "")
    except (SettingsUnreadable, ValueError, RecursionError):
        return False
    plugins = settings.get("plugins")
    found = plugins.get(_KEY) if isinstance(plugins, dict) else None
    return isinstance(found, dict) and found.get("enabled") is not False


def in_gemini_cli(root: Path) -> bool:
    return (root / "extensions" / NAME / "gemini-extension.json").is_file() or (
        root / "extensions" / NAME / ".gemini-extension-install.json"
    ).is_file()


def _object(path: Path) -> Mapping[str, object]:
    try:
        content = json.loads((read_settings(path) or "{}").removeprefix("\ufeff"))
    except (SettingsUnreadable, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


GEMINI_HOOKS = HookDialect(
    name="gemini-cli",
    title="Gemini CLI",
    file="settings.json",
    events=("BeforeAgent", "AfterTool"),
    timeout=5_000,
    comments=True,
    powershell=True,
)
"""Without `SessionStart`: its output is put in front of the person's first prompt, and a client that is resumed (0.61) takes every
prompt that begins so for one of its own and drops it. The output of `BeforeAgent` stands behind the prompt."""


CODEX_HOOKS = HookDialect(
    name="codex",
    title="Codex",
    file="hooks.json",
    events=("SessionStart", "UserPromptSubmit", "PostToolUse"),
    timeout=5,
    note="Codex asks once whether you trust new hooks",
)


CURSOR_HOOKS = HookDialect(
    name="cursor",
    title="Cursor",
    file="hooks.json",
    events=("sessionStart", "beforeSubmitPrompt", "postToolUse"),
    note="before version 3.20 the answer to a prompt comes with the first tool's result",
    flat=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent with hooks. ``settings`` is the file that holds them, whether or not it exists.

    ``has_plugin`` says whether our plugin, which brings the same hooks, is installed and enabled there.
    """

    name: str
    title: str
    settings: Path
    plan_install: Callable[[str | None, str], Plan]
    plan_uninstall: Callable[[str | None, Sequence[str | None]], Plan]
    status: Callable[[str | None], Status]
    has_plugin: Callable[[], bool] = bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRoots:
    """Folders of the agents that can have hooks; ``None`` for an agent that is left out.

    ``opencode`` holds OpenCode's settings, ``cline`` the hooks of Cline's extension, ``cline_cli`` those of its command line tool.
    """

    claude: Path
    codex: Path | None = None
    gemini: Path | None = None
    copilot: Path | None = None
    opencode: Path | None = None
    cursor: Path | None = None
    cline: Path | None = None
    cline_cli: Path | None = None


def agents(roots: AgentRoots) -> tuple[Agent, ...]:
    """Return the agents whose roots are given."""
    events = claude_code.events_for(claude_version())
    return (
        Agent(
            name="claude-code",
            title="Claude Code",
            settings=roots.claude / "settings.json",
            plan_install=partial(claude_code.plan_install, events=events, allow=claude_code.OPENS_NOTES),
            plan_uninstall=claude_code.plan_uninstall,
            status=partial(claude_code.status, events=events),
            has_plugin=partial(in_claude_code, roots.claude),
        ),
        *([] if roots.codex is None else [_of(CODEX_HOOKS, roots.codex, in_codex)]),
        *([] if roots.gemini is None else [_of(GEMINI_HOOKS, roots.gemini, in_gemini_cli)]),
        *([] if roots.copilot is None else [_copilot_cli(roots.copilot)]),
        *([] if roots.opencode is None else [_opencode(roots.opencode)]),
        *([] if roots.cursor is None else [_of(CURSOR_HOOKS, roots.cursor)]),
        *([] if roots.cline is None else [_cline(roots.cline, CLINE, "Cline", CLINE_EVENT)]),
        *([] if roots.cline_cli is None else [_cline(roots.cline_cli, "cline-cli", "Cline CLI", CLINE_CLI_EVENT)]),
    )


def _no_plugin(root: Path) -> bool:
    return False


def _of(hooks: HookDialect, root: Path, has_plugin: Callable[[Path], bool] = _no_plugin) -> Agent:
    return Agent(
        name=hooks.name,
        title=hooks.title,
        settings=root / hooks.file,
        plan_install=hooks.plan_install,
        plan_uninstall=hooks.plan_uninstall,
        status=hooks.status,
        has_plugin=partial(has_plugin, root),
    )


def _copilot_cli(root: Path) -> Agent:
    return Agent(
        name=COPILOT,
        title="Copilot CLI",
        settings=root / "hooks" / COPILOT_FILE,
        plan_install=plan_copilot_install,
        plan_uninstall=plan_copilot_uninstall,
        status=copilot_status,
    )


def _opencode(root: Path) -> Agent:
    return Agent(
        name=OPENCODE,
        title="OpenCode",
        settings=root / "plugins" / OPENCODE_FILE,
        plan_install=plan_opencode_install,
        plan_uninstall=plan_opencode_uninstall,
        status=opencode_status,
    )


def _cline(root: Path, name: str, title: str, event: str) -> Agent:
    return Agent(
        name=name,
        title=title,
        settings=root / event,
        plan_install=partial(plan_cline_install, event=event),
        plan_uninstall=partial(plan_cline_uninstall, event=event),
        status=partial(cline_status, event=event),
    )


def agent(name: str, roots: AgentRoots) -> Agent:
    """Return an agent by name. Raises `UsageError`, which lists the known names."""
    known = {each.name: each for each in agents(roots)}
    if name not in known:
        raise UsageError(f"unknown agent {name!r}", hint=f"known ones are: {', '.join(known)}")
    return known[name]
