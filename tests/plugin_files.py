"""The plugins' files, made from the code: `python -m tests.plugin_files` writes them."""

import json
from collections.abc import Mapping
from pathlib import Path

from kite_memory import __version__
from kite_memory.agents.claude_code import plan_install
from kite_memory.agents.mcp_entry import NAME
from kite_memory.agents.registry import CODEX_HOOKS, GEMINI_HOOKS, OPENCODE_FILE, opencode_plugin
from kite_memory.agents.settings_edit import Edit, Plan
from kite_memory.paths import asset_folder

BY_NAME = 'PATH="$PATH:$HOME/.local/bin" kmem-hook'
"""Shell line that finds the client by its name: on the PATH, or where `uv`, `pipx` and `kmem up` put it."""
_DESCRIPTION = "Local long-term memory: what was decided and found out in earlier sessions, given to the agent when it helps."
_AUTHOR = {"name": "Kite Memory"}
_START = 'PATH="$PATH:$HOME/.local/bin" exec kmem mcp'


def plugin_files() -> Mapping[str, str]:
    """Return the plugins' files that are made from code, by their path in the hooks folder."""
    about = {"name": NAME, "description": _DESCRIPTION, "version": __version__, "author": _AUTHOR, "license": "MIT"}
    server = {"command": "sh", "args": ["-c", _START]}
    listed = {"name": NAME, "description": _DESCRIPTION}
    return {
        "claude-code/.claude-plugin/plugin.json": _json(about),
        "claude-code/.claude-plugin/marketplace.json": _json(
            {"name": NAME, "owner": _AUTHOR, "description": _DESCRIPTION, "plugins": [{**listed, "source": "./"}]}
        ),
        "claude-code/hooks/hooks.json": _content_of(plan_install(None, BY_NAME)),
        "claude-code/.mcp.json": _json({"mcpServers": {NAME: server}}),
        "codex/.codex-plugin/plugin.json": _json({**about, "skills": "./skills/", "mcpServers": "./.mcp.json"}),
        "codex/hooks/hooks.json": _content_of(CODEX_HOOKS.plan_install(None, BY_NAME)),
        "codex/.mcp.json": _json({"mcpServers": {NAME: server}}),
        ".agents/plugins/marketplace.json": _json(
            {
                "name": NAME,
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
        f"opencode/{OPENCODE_FILE}": opencode_plugin(BY_NAME),
        "gemini-cli/hooks/hooks.json": _content_of(GEMINI_HOOKS.plan_install(None, BY_NAME)),
    }


def _content_of(plan: Plan) -> str:
    return plan.after or "" if isinstance(plan, Edit) else ""


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    for name, text in plugin_files().items():
        path = Path(asset_folder("hooks")) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
