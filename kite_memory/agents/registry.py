"""Every agent whose settings we can edit, by the name that ``--agent`` takes; its plugin, and how it resumes a session.

A plugin's hooks are those that `kmem hooks install` writes, with a command that finds our program on any machine.
"""

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kite_memory import __version__
from kite_memory.agents import claude_code, other_agents
from kite_memory.agents.claude_code import BY_NAME, Status
from kite_memory.agents.mcp_entry import NAME
from kite_memory.agents.other_agents import (
    CLINE,
    CLINE_EVENT,
    HookDialect,
    cline_status,
    plan_cline_install,
    plan_cline_uninstall,
)
from kite_memory.agents.settings_edit import Edit, Plan, SettingsUnreadable, read_settings
from kite_memory.errors import KiteError, UsageError

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


_DESCRIPTION = "Local long-term memory: what was decided and found out in earlier sessions, given to the agent when it helps."
_AUTHOR = {"name": "Kite Memory"}
_MARKETPLACE = NAME
_KEY = f"{NAME}@{_MARKETPLACE}"
_START = 'PATH="$PATH:$HOME/.local/bin" exec kmem mcp'


def files(codex: HookDialect, gemini: HookDialect) -> Mapping[str, str]:
    """Return the plugins' files that are made from code, by their path in the hooks folder."""
    about = {"name": NAME, "description": _DESCRIPTION, "version": __version__, "author": _AUTHOR, "license": "MIT"}
    server = {"command": "sh", "args": ["-c", _START]}
    listed = {"name": NAME, "description": _DESCRIPTION}
    return {
        "claude-code/.claude-plugin/plugin.json": _json(about),
        "claude-code/.claude-plugin/marketplace.json": _json(
            {"name": _MARKETPLACE, "owner": _AUTHOR, "description": _DESCRIPTION, "plugins": [{**listed, "source": "./"}]}
        ),
        "claude-code/hooks/hooks.json": _hooks(claude_code.plan_install(None, BY_NAME)),
        "claude-code/.mcp.json": _json({"mcpServers": {NAME: server}}),
        "codex/.codex-plugin/plugin.json": _json({**about, "skills": "./skills/", "mcpServers": "./.mcp.json"}),
        "codex/hooks/hooks.json": _hooks(codex.plan_install(None, BY_NAME)),
        "codex/.mcp.json": _json({"mcpServers": {NAME: server}}),
        ".agents/plugins/marketplace.json": _json(
            {
                "name": _MARKETPLACE,
                "plugins": [
                    {
                        "name": NAME,
                        "source": {"source": "local", "path": "./codex"},
                        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                        "category": "Productivity",
                    }
                ],
            }
        ),
        "gemini-cli/gemini-extension.json": _json(
            {"name": NAME, "version": __version__, "description": _DESCRIPTION, "mcpServers": {NAME: server}}
        ),
        f"opencode/{other_agents.OPENCODE_FILE}": other_agents.opencode_plugin(BY_NAME),
        "gemini-cli/hooks/hooks.json": _hooks(gemini.plan_install(None, BY_NAME)),
    }


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


def _hooks(plan: Plan) -> str:
    return plan.after or "" if isinstance(plan, Edit) else ""


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


GEMINI_HOOKS = HookDialect(
    name="gemini-cli",
    title="Gemini CLI",
    file="settings.json",
    events=("BeforeAgent", "AfterTool"),
    timeout=5_000,
    comments=True,
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
    events=("sessionStart", "beforeSubmitPrompt"),
    note="before version 3.20 Cursor passes on what it is given at a session's start alone",
    flat=True,
)


_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,6})(?:[-+].{0,60})?")
_LONGEST_MANIFEST = 1 << 16
_PACKAGE = "@anthropic-ai/claude-code"


def claude_version(command: str | None = None) -> tuple[int, ...] | None:
    """Return the version of the ``claude`` that a shell would start; ``None`` if it is not installed, or its version is unknown."""
    found = command or shutil.which("claude")
    if not found:
        return None
    try:
        program = Path(found).resolve()
    except (OSError, RuntimeError):
        return None
    return _of_package(program) or _named(program)


def _of_package(program: Path) -> tuple[int, ...] | None:
    """Return the version from the npm package that holds the program."""
    for folder in list(program.parents)[:3]:
        try:
            with (folder / "package.json").open("rb") as file:
                manifest = json.loads(file.read(_LONGEST_MANIFEST))
        except (OSError, ValueError, RecursionError):
            continue
        match manifest:
            case {"name": str(name), "version": str(version)} if name.startswith(_PACKAGE):
                return _version(version)
            case _:
                return None
    return None


def _named(program: Path) -> tuple[int, ...] | None:
    """Return the version from the name of the program or its folder, as its own installer and Homebrew set it."""
    return _version(program.name) or _version(program.parent.name)


def _version(text: str) -> tuple[int, ...] | None:
    found = _VERSION.fullmatch(text)
    return tuple(map(int, found.groups())) if found else None


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


def agents(
    *,
    claude_root: Path,
    codex_root: Path | None = None,
    gemini_root: Path | None = None,
    copilot_root: Path | None = None,
    opencode_root: Path | None = None,
    cursor_root: Path | None = None,
    cline_root: Path | None = None,
) -> tuple[Agent, ...]:
    """Return the agents whose roots are given. ``opencode_root`` holds OpenCode's settings, ``cline_root`` Cline's hooks."""
    events = claude_code.events_for(claude_version())
    return (
        Agent(
            name="claude-code",
            title="Claude Code",
            settings=claude_root / "settings.json",
            plan_install=partial(claude_code.plan_install, events=events, allow=claude_code.OPENS_NOTES),
            plan_uninstall=claude_code.plan_uninstall,
            status=partial(claude_code.status, events=events),
            has_plugin=partial(in_claude_code, claude_root),
        ),
        *([] if codex_root is None else [_of(CODEX_HOOKS, codex_root, in_codex)]),
        *([] if gemini_root is None else [_of(GEMINI_HOOKS, gemini_root, in_gemini_cli)]),
        *([] if copilot_root is None else [_copilot_cli(copilot_root)]),
        *([] if opencode_root is None else [_opencode(opencode_root)]),
        *([] if cursor_root is None else [_of(CURSOR_HOOKS, cursor_root)]),
        *([] if cline_root is None else [_cline(cline_root)]),
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
        name=other_agents.COPILOT,
        title="Copilot CLI",
        settings=root / "hooks" / other_agents.COPILOT_FILE,
        plan_install=other_agents.plan_copilot_install,
        plan_uninstall=other_agents.plan_copilot_uninstall,
        status=other_agents.copilot_status,
    )


def _opencode(root: Path) -> Agent:
    return Agent(
        name=other_agents.OPENCODE,
        title="OpenCode",
        settings=root / "plugins" / other_agents.OPENCODE_FILE,
        plan_install=other_agents.plan_opencode_install,
        plan_uninstall=other_agents.plan_opencode_uninstall,
        status=other_agents.opencode_status,
    )


def _cline(root: Path) -> Agent:
    return Agent(
        name=CLINE,
        title="Cline",
        settings=root / CLINE_EVENT,
        plan_install=plan_cline_install,
        plan_uninstall=plan_cline_uninstall,
        status=cline_status,
    )


def agent(
    name: str,
    *,
    claude_root: Path,
    codex_root: Path | None = None,
    gemini_root: Path | None = None,
    copilot_root: Path | None = None,
    opencode_root: Path | None = None,
    cursor_root: Path | None = None,
    cline_root: Path | None = None,
) -> Agent:
    """Return an agent by name. Raises `UsageError`, which lists the known names."""
    found = agents(
        claude_root=claude_root,
        codex_root=codex_root,
        gemini_root=gemini_root,
        copilot_root=copilot_root,
        opencode_root=opencode_root,
        cursor_root=cursor_root,
        cline_root=cline_root,
    )
    known = {each.name: each for each in found}
    if name not in known:
        raise UsageError(f"unknown agent {name!r}", hint=f"known ones are: {', '.join(known)}")
    return known[name]
