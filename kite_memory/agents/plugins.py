"""Files of our plugin for each agent that has plugins, and whether an agent has it installed.

The hooks are those that `kmem hooks install` writes, with a command that finds the program by its name.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from kite_memory import __version__
from kite_memory.agents import claude_code, opencode
from kite_memory.agents.hook_command import BY_NAME
from kite_memory.agents.like_claude_code import HookDialect
from kite_memory.agents.mcp_entry import NAME
from kite_memory.agents.settings_edit import Edit, Plan, SettingsUnreadable, read_settings

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
        f"opencode/{opencode.FILE}": opencode.plugin(BY_NAME),
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
