"""Every agent that can be connected over MCP: where it keeps its servers, and where it reads instructions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kite_memory.agents.mcp_entry import McpDialect
from kite_memory.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """An agent's files.

    ``instructions`` is the person's own file, ``None`` where the agent has none; ``in_project`` is a project's.
    """

    name: str
    dialect: McpDialect
    settings: Path
    instructions: Path | None
    in_project: str

    @property
    def title(self) -> str:
        return self.dialect.title


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFolders:
    """Folders of the agents, whether or not they exist. ``claude_apart``: Claude Code was given another folder."""

    home: Path
    claude: Path
    claude_apart: bool
    codex: Path
    gemini: Path
    cline: Sequence[Path]
    roo: Sequence[Path]
    vscode: Path
    environment: Mapping[str, str]


def connections(places: AgentFolders) -> tuple[Connection, ...]:
    home = places.home
    opencode = _named(places.environment, "XDG_CONFIG_HOME", home / ".config") / "opencode"
    return (
        Connection(
            name="claude-code",
            dialect=McpDialect(title="Claude Code", key="mcpServers", extra={"type": "stdio"}),
            settings=(places.claude if places.claude_apart else home) / ".claude.json",
            instructions=places.claude / "CLAUDE.md",
            in_project="CLAUDE.md",
        ),
        Connection(
            name="codex",
            dialect=McpDialect(title="Codex", key="mcp_servers", language="toml"),
            settings=places.codex / "config.toml",
            instructions=places.codex / "AGENTS.md",
            in_project="AGENTS.md",
        ),
        Connection(
            name="gemini-cli",
            dialect=McpDialect(title="Gemini CLI", key="mcpServers", language="jsonc"),
            settings=places.gemini / "settings.json",
            instructions=places.gemini / "GEMINI.md",
            in_project="GEMINI.md",
        ),
        Connection(
            name="cursor",
            dialect=McpDialect(title="Cursor", key="mcpServers"),
            settings=home / ".cursor" / "mcp.json",
            instructions=None,
            in_project="AGENTS.md",
        ),
        Connection(
            name="cline",
            dialect=McpDialect(title="Cline", key="mcpServers"),
            settings=_used(places.cline, "settings/cline_mcp_settings.json"),
            instructions=home / ".cline" / "rules" / "kite-memory.md",
            in_project="AGENTS.md",
        ),
        Connection(
            name="roo",
            dialect=McpDialect(title="Roo Code", key="mcpServers"),
            settings=_used(places.roo[::-1], "settings/mcp_settings.json"),
            instructions=home / ".roo" / "rules" / "kite-memory.md",
            in_project="AGENTS.md",
        ),
        Connection(
            name="vscode",
            dialect=McpDialect(title="VS Code", key="servers", language="jsonc", extra={"type": "stdio"}),
            settings=places.vscode / "mcp.json",
            instructions=None,
            in_project="AGENTS.md",
        ),
        Connection(
            name="opencode",
            dialect=McpDialect(
                title="OpenCode",
                key="mcp",
                language="jsonc",
                extra={"type": "local"},
                environment="environment",
                whole_command=True,
            ),
            settings=_existing(opencode / "opencode.json", opencode / "opencode.jsonc"),
            instructions=opencode / "AGENTS.md",
            in_project="AGENTS.md",
        ),
    )


def connection(name: str, places: AgentFolders) -> Connection:
    """Return an agent's connection by name. Raises `UsageError`, which lists the known names."""
    known = {each.name: each for each in connections(places)}
    if name not in known:
        raise UsageError(f"unknown agent {name!r}", hint=f"known ones are: {', '.join(known)}")
    return known[name]


def _used(roots: Sequence[Path], file: str) -> Path:
    """Return the last file that exists, else that of the last existing root, else of the last root: newer places come later."""
    files = [root / file for root in roots]
    there = [path for path in files if path.is_file()] or [root / file for root in roots if root.is_dir()]
    return (there or files)[-1]


def _existing(first: Path, second: Path) -> Path:
    return second if second.is_file() and not first.is_file() else first


def _named(environment: Mapping[str, str], name: str, usual: Path) -> Path:
    folder = Path(environment.get(name) or "")
    return folder if folder.is_absolute() else usual
