"""How others start us: the commands that agents and service managers run, and what of our environment goes with them."""

import os
import sys
from pathlib import Path

from kite_memory.config import Config


def daemon_command() -> tuple[str, ...]:
    """By the path of the package and with ``-P``, so that no folder it is started in can come in between."""
    return (sys.executable, "-P", str(Path(__file__).resolve().parent.parent / "__main__.py"), "daemon")


def mcp_command() -> tuple[str, ...]:
    """What agents start; as the daemon is started."""
    return (*daemon_command()[:-1], "mcp")


def mcp_environment(config: Config) -> dict[str, str]:
    """What an agent must hand on for us to find the same house: many give a server an environment of their own making."""
    known = daemon_environment(config)
    return {name: known[name] for name in ("KMEM_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME") if name in known}


def daemon_environment(config: Config) -> dict[str, str]:
    """Our own variables, for a daemon that runs in another folder: paths are made whole."""
    kept = {name: os.environ[name] for name in _OWN_VARIABLES if os.environ.get(name)}
    for name in _OWN_FOLDERS:
        if os.environ.get(name):
            kept[name] = str(Path(os.environ[name]).expanduser().absolute())
    if os.environ.get("CLAUDE_CONFIG_DIR"):
        kept["CLAUDE_CONFIG_DIR"] = str(config.claude_root)
    return kept


_OWN_VARIABLES = (
    "KMEM_EXTRACTOR",
    "KMEM_EMBEDDER",
    "KMEM_JUDGE",
    "ANTHROPIC_BASE_URL",
    "VOYAGE_BASE_URL",
    "OPENAI_BASE_URL",
    "AIDER_CHAT_HISTORY_FILE",
)
_OWN_FOLDERS = (
    "KMEM_HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "COPILOT_HOME",
    "CLINE_DIR",
    "VSCODE_PORTABLE",
    "VSCODE_APPDATA",
)
