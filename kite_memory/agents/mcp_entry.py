"""Our entry among an agent's MCP servers, and where every agent that we can connect keeps its servers and instructions.

An entry is added or removed without changing another byte of the settings.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from kite_memory.agents import settings_edit
from kite_memory.agents.settings_edit import Array, Edit, Nothing, NotJson, Object, Plan, SettingsUnreadable, String, Value
from kite_memory.errors import UsageError

NAME = "kite-memory"
"""The server's name in the agent's settings and before the names of its tools."""

_BLANK = "\ufeff \t\r\n"
_UNTOUCHED = "nothing was changed"
_PLACES = frozenset({"KMEM_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"})
"""Variables that we may set. The rest in an entry's environment is the person's."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """How the agent starts our server."""

    command: str
    args: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpDialect:
    """How one agent stores MCP servers.

    ``key`` is the property that holds them. ``jsonc`` is JSON with comments. ``extra`` are further properties of an entry.
    ``whole_command`` is for agents that take command and arguments as one list.
    """

    title: str
    key: str
    language: Literal["json", "jsonc", "toml"] = "json"
    extra: Mapping[str, Value] = field(default_factory=dict)
    environment: str = "env"
    whole_command: bool = False

    def entry(self, server: ServerCommand) -> dict[str, Value]:
        command: dict[str, Value] = (
            {"command": [server.command, *server.args]}
            if self.whole_command
            else {"command": server.command, "args": list(server.args)}
        )
        environment: dict[str, Value] = {self.environment: dict(server.environment)} if server.environment else {}
        return {**self.extra, **command, **environment}

    def plan_add(self, text: str | None, server: ServerCommand) -> Plan:
        """Plan to add our entry.

        Raises `SettingsUnreadable` for what is not understood, and for an entry of our name that is not ours.
        """
        try:
            after = self._with(text, server)
        except SettingsUnreadable as error:
            written = json.dumps({NAME: self.entry(server)}, ensure_ascii=False)
            raise SettingsUnreadable(str(error), hint=f"{error.hint}; by hand it goes under `{self.key}`: {written}") from error
        if after == text:
            return Nothing(because="the server is there already")
        return Edit(before=text, after=after, because="adds our MCP server")

    def plan_remove(self, text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
        """Plan to remove our entry.

        ``earlier`` are the file's backups, latest first: one that our entry turns into this very text is restored to the byte.
        """
        if text is None or (entry := self._entry_in(text)) is None or not is_ours(entry):
            return Nothing(because="our server is not in it")
        because = "removes our MCP server and nothing else"
        after = self._without(text)
        if self._entry_in(after) is not None:
            raise SettingsUnreadable(
                f"our server in {self.title}'s settings is not in a table of its own",
                hint=f"delete {NAME} below `{self.key}` by hand",
            )
        server = _server_of(entry, self.environment)
        for old in earlier:
            if server is not None and self._became(old, text, server):
                return Edit(before=text, after=old, because=because)
        return Edit(before=text, after=after, because=because)

    def connected(self, text: str | None) -> bool:
        return text is not None and is_ours(self._entry_in(text))

    def command_in(self, text: str | None) -> tuple[str, ...]:
        """Return the command and arguments of our entry; nothing without one."""
        entry = None if text is None else self._entry_in(text)
        server = _server_of(entry, self.environment) if is_ours(entry) else None
        return () if server is None else (server.command, *server.args)

    def _with(self, text: str | None, server: ServerCommand) -> str:
        entry = self.entry(server)
        existing = None if text is None else self._entry_in(text)
        if existing is not None and not is_ours(existing):
            raise SettingsUnreadable(
                f"{self.title} has another MCP server called {NAME}", hint="nothing was changed; give that one another name"
            )
        theirs = {name: value for name, value in existing.items() if name not in self._own} if isinstance(existing, dict) else {}
        variables = existing.get(self.environment) if isinstance(existing, dict) else None
        if isinstance(variables, dict) and (kept := {name: value for name, value in variables.items() if name not in _PLACES}):
            entry[self.environment] = {**kept, **server.environment}
        if text is not None and existing == {**theirs, **entry}:
            return text
        if text is not None and existing is not None:
            if self.language == "toml":
                return self._updated_toml(text, entry, theirs)
            text, entry = self._without(text), {**entry, **theirs}
        return self._added_toml(text or "", entry) if self.language == "toml" else self._added_json(text, entry)

    @property
    def _own(self) -> frozenset[str]:
        """Properties of an entry that we set. The rest is the person's: limits, what may run unasked, being off."""
        return frozenset({*self.extra, "command", "args", self.environment})

    def _without(self, text: str) -> str:
        return self._removed_toml(text) if self.language == "toml" else self._removed_json(text)

    def _became(self, old: str | None, text: str, server: ServerCommand) -> bool:
        try:
            return not self.connected(old) and self._with(old, server) == text
        except SettingsUnreadable:
            return False

    def _entry_in(self, text: str) -> object:
        if self.language == "toml":
            servers = self._toml(text).get(self.key)
            return servers.get(NAME) if isinstance(servers, dict) else None
        servers_node = self._root(text).get(self.key) if text.strip(_BLANK) else None
        node = servers_node.get(NAME) if isinstance(servers_node, Object) else None
        return None if node is None else _plain(node)

    def _added_json(self, text: str | None, entry: dict[str, Value]) -> str:
        now = "{}\n" if text is None or not text.strip(_BLANK) else text
        root = self._root(now)
        match root.get(self.key):
            case None:
                return settings_edit.add_member(now, root, self.key, {NAME: entry})
            case Object() as servers:
                return settings_edit.add_member(now, servers, NAME, entry)
            case _:
                raise SettingsUnreadable(f"`{self.key}` in {self.title}'s settings is not an object", hint=_UNTOUCHED)

    def _removed_json(self, text: str) -> str:
        root = self._root(text)
        servers = root.get(self.key)
        if isinstance(servers, Object) and (at := servers.member(NAME)) is not None:
            if len(servers.members) > 1 or settings_edit.holds_remarks(text, servers):
                return settings_edit.remove(text, servers, at)
            if (outer := root.member(self.key)) is not None:
                return settings_edit.remove(text, root, outer)
        return text

    def _root(self, text: str) -> Object:
        try:
            root = settings_edit.read(text, comments=self.language == "jsonc")
        except NotJson as error:
            raise SettingsUnreadable(
                f"{self.title}'s settings are not {'plain ' if self.language == 'json' else ''}JSON: {error}", hint=_UNTOUCHED
            ) from error
        if not isinstance(root, Object):
            raise SettingsUnreadable(f"{self.title}'s settings are not a JSON object", hint=_UNTOUCHED)
        return root

    def _toml(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise SettingsUnreadable(f"{self.title}'s settings are not TOML: {error}", hint=_UNTOUCHED) from error

    def _added_toml(self, text: str, entry: dict[str, Value]) -> str:
        """Add our table at the end, where it can belong to no table of the person's."""
        lines = [f"[{self.key}.{NAME}]", *(f"{_toml_name(name)} = {_toml_value(value)}" for name, value in entry.items())]
        gap = "" if not text.strip(_BLANK) else "\n" if text.endswith("\n") else "\n\n"
        return self._checked(text, text + gap + "\n".join(lines) + "\n")

    def _updated_toml(self, text: str, entry: dict[str, Value], theirs: dict[str, Any]) -> str:
        """Change our table in its place, with the person's comments and ``theirs`` in it."""
        import tomlkit

        document = tomlkit.parse(text.removeprefix("\ufeff"))
        ours: Any = document[self.key][NAME]
        for name in self._own - entry.keys():
            ours.pop(name, None)
        for name, value in entry.items():
            now = ours.get(name)
            if isinstance(now, dict) and isinstance(value, dict):
                for variable in set(now) - value.keys():
                    del now[variable]
                now.update({variable: each for variable, each in value.items() if now.get(variable) != each})
            elif isinstance(value, dict):  # on a line: lines of a table here could take in what follows
                ours[name] = tomlkit.inline_table()
                ours[name].update(value)
            elif now != value:
                ours[name] = value
        after = self._checked(text, ("\ufeff" if text.startswith("\ufeff") else "") + tomlkit.dumps(document))
        if self._entry_in(after) != {**theirs, **entry}:
            raise SettingsUnreadable(f"{self.title}'s settings cannot be changed safely", hint=_UNTOUCHED)
        return after

    def _removed_toml(self, text: str) -> str:
        """Remove our table and those below it, up to the next table that is not ours and the comments before that."""
        ours = re.compile(rf"\[\s*{re.escape(self.key)}\s*\.\s*[\"']?{NAME}[\"']?\s*[.\]]")
        kept: list[str] = []
        passed: list[str] = []
        inside = False
        for line in text.splitlines(keepends=True):
            if line.lstrip().startswith("["):
                inside = ours.match(line.lstrip()) is not None
                kept += [] if inside else passed
                passed = []
            if not inside:
                kept.append(line)
            elif line.strip() and not line.lstrip().startswith("#"):
                passed = []
            else:
                passed.append(line)
        after = "".join([*kept, *passed])
        if not passed and after.endswith("\n\n"):
            after = after[:-1]
        return self._checked(text, after)

    def _checked(self, before: str, after: str) -> str:
        """Return ``after`` if everything but our entry has the same values as before. Raises `SettingsUnreadable` otherwise."""
        rest: list[dict[str, Any]] = []
        try:
            both = self._toml(before), self._toml(after)
        except SettingsUnreadable as error:
            raise SettingsUnreadable(f"{self.title}'s settings cannot be changed safely", hint=_UNTOUCHED) from error
        for settings in both:
            servers = settings.pop(self.key, {})
            if not isinstance(servers, dict):
                raise SettingsUnreadable(f"`{self.key}` in {self.title}'s settings is not a table", hint=_UNTOUCHED)
            rest.append({**settings, self.key: {name: each for name, each in servers.items() if name != NAME}})
        if rest[0] != rest[1]:
            raise SettingsUnreadable(f"{self.title}'s settings cannot be changed safely", hint=_UNTOUCHED)
        return after


def is_ours(entry: object) -> bool:
    """Return whether an entry starts `kmem mcp`, or this package by its path."""
    match entry:
        case {"command": [*words]}:
            pass
        case {"command": str(command), "args": [*args]}:
            words = [command, *args]
        case _:
            return False
    texts = [word for word in words if isinstance(word, str)]
    if "mcp" not in texts[1:]:
        return False
    paths = [PurePosixPath(word.replace("\\", "/")) for word in texts]
    return paths[0].stem.lower() == "kmem" or any(path.parts[-2:] == ("kite_memory", "__main__.py") for path in paths[1:])


def _toml_value(value: Value) -> str:
    """Return a value as TOML: as in JSON, with equals signs. Names are in quotes where a bare one is not allowed."""
    match value:
        case dict():
            members = (f"{_toml_name(name)} = {_toml_value(each)}" for name, each in value.items())
            return "{ " + ", ".join(members) + " }" if value else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_toml_value, value))}]"
        case str() | int() | float():
            return json.dumps(value, ensure_ascii=False)
        case _:  # a date, say: no agent keeps one here
            raise SettingsUnreadable("our entry holds what cannot be written again", hint=_UNTOUCHED)


def _toml_name(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _server_of(entry: object, environment: str) -> ServerCommand | None:
    match entry:
        case {"command": [str(command), *args], **rest}:
            pass
        case {"command": str(command), "args": [*args], **rest}:
            pass
        case _:
            return None
    variables = rest.get(environment, {})
    return ServerCommand(
        command=command,
        args=tuple(str(each) for each in args),
        environment={str(name): str(value) for name, value in variables.items()} if isinstance(variables, dict) else {},
    )


def _plain(node: settings_edit.Node) -> object:
    match node:
        case String(value=value):
            return value
        case Array(items=items):
            return [_plain(item) for item in items]
        case Object(members=members):
            return {member.key: _plain(member.value) for member in members}
        case settings_edit.Literal(written=written):
            return json.loads(written)


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
            # in seconds: its command line tool otherwise gives up after three, and a busy machine needs longer for the first start
            dialect=McpDialect(title="Cline", key="mcpServers", extra={"timeout": 60}),
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
