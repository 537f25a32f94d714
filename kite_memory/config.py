"""Configuration: read from one file, overridden by environment variables. Only entry points read it."""

import dataclasses
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from kite_memory import paths
from kite_memory.errors import ConfigInvalid

_EDITORS = (
    "Code",
    "Code - Insiders",
    "Code - OSS",
    "VSCodium",
    "VSCodium - Insiders",
    "Cursor",
    "Windsurf",
)
_SERVERS = (
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscode-remote",
    ".vscode-server-oss",
    ".vscodium-server",
    ".cursor-server",
    ".windsurf-server",
)


def extension_storages(extension: str, *, environment: Mapping[str, str], home: Path, platform: str) -> tuple[Path, ...]:
    """Return the folders that ``extension`` may have, whether or not they exist. ``platform`` is the value of ``sys.platform``.

    Respects the editors' own variables ``VSCODE_PORTABLE`` and ``VSCODE_APPDATA``.
    """
    applications = _folder_named(environment, "VSCODE_APPDATA") or _applications(environment, home, platform)
    users = [applications / editor / "User" for editor in _EDITORS]
    users += [home / server / "data" / "User" for server in _SERVERS]
    users.append(home / ".local" / "share" / "code-server" / "User")
    if portable := _folder_named(environment, "VSCODE_PORTABLE"):
        users.insert(0, portable / "user-data" / "User")
    return tuple(user / "globalStorage" / extension for user in users)


def user_folder(editor: str, *, environment: Mapping[str, str], home: Path, platform: str) -> Path:
    """Return the folder of one editor's user settings on this machine."""
    return _applications(environment, home, platform) / editor / "User"


def _applications(environment: Mapping[str, str], home: Path, platform: str) -> Path:
    match platform:
        case "darwin":
            return home / "Library" / "Application Support"
        case "win32":
            return _folder_named(environment, "APPDATA") or home / "AppData" / "Roaming"
        case _:
            return _folder_named(environment, "XDG_CONFIG_HOME") or home / ".config"


def _folder_named(environment: Mapping[str, str], name: str) -> Path | None:
    folder = Path(environment.get(name) or "")
    return folder if folder.is_absolute() else None


EXTRACTORS = ("auto", "anthropic", "claude-cli", "openai", "offline")
EMBEDDERS = ("auto", "local", "multilingual", "voyage")
JudgeMode = Literal["late", "wait", "off"]
Dial = Literal["quiet", "normal", "eager"]
AskTeam = Literal["off", "search", "prompt"]
LogLevel = Literal["debug", "info", "warning", "error"]
ExtensionKind = Literal["extractor", "embedder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorConfig:
    """Settings of the language model that extracts notes.

    ``calls_per_day`` and ``dollars_per_day`` limit spending; beyond them, chunks wait for the next UTC day. The judge uses the same
    model; ``judge_share`` is the part of both limits that it may use. Without ``dollars_per_million_in`` and
    ``dollars_per_million_out``, the vendor's prices for the model count.
    """

    name: str = "auto"
    model: str = "claude-haiku-5-5"
    openai_model: str = "gpt-4.1-mini"
    base_url: str = ""
    dollars_per_day: float = 1.0
    calls_per_day: int = 500
    dollars_per_million_in: float | None = None
    dollars_per_million_out: float | None = None
    judge_share: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderConfig:
    name: str = "auto"
    voyage_model: str = "voyage-3-lite"
    voyage_base_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallConfig:
    """Settings of recall at each prompt.

    ``dial`` sets how readily notes are shown. A ``threshold`` for the plain score, if set, overrides it. ``notes_per_prompt`` and
    ``tokens_per_prompt`` can be lowered from the defaults, not raised.
    """

    dial: Dial = "normal"
    threshold: float | None = None
    notes_per_prompt: int = 2
    tokens_per_prompt: int = 1600


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonConfig:
    """Settings of the daemon.

    After ``idle_seconds`` without a new line, a chunk ends if it is worth extracting (see `distill.condense.ChunkPolicy`).
    ``compare_seconds`` is the pause between full comparisons. ``log_level`` is the lowest level that is logged and that `kmem logs`
    can find.
    """

    idle_seconds: float = 20.0
    compare_seconds: float = 300.0
    log_level: LogLevel = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamConfig:
    """Settings for serving a team's store and for asking a team's server.

    A machine that serves a team sets ``store``: ``postgresql://…`` without a password (`keys` holds it), opened by ``kmem serve
    --store team`` under ``tenant``. Long transcripts are stored in ``bucket`` at the S3-compatible ``endpoint``.

    A member of a team sets ``bridge``: the address of the team's ``kmem serve``. ``kmem search`` asks it as well if ``ask`` is
    ``search`` or ``prompt``; every prompt asks it if ``ask`` is ``prompt``.

    With ``oidc_issuer``, the server also accepts that issuer's tokens for ``oidc_audience``. ``oidc_person`` names the claim that
    holds the person. A token without claims for scopes and projects gets ``oidc_scopes`` and ``oidc_projects``, both separated by
    spaces; ``*`` stands for all projects. ``keep_days`` is how long a server keeps deleted notes and its audit.
    """

    store: str = ""
    tenant: str = "team"
    bucket: str = ""
    endpoint: str = ""
    region: str = ""
    prefix: str = "kite-memory"
    bridge: str = ""
    ask: AskTeam = "off"
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_person: str = "sub"
    oidc_scopes: str = ""
    oidc_projects: str = ""
    keep_days: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncConfig:
    """Settings of the exchange with the person's other machines. ``target`` is a folder or the address of a git repository."""

    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration. All paths are absolute, since the daemon runs in another folder than the command that starts it.

    An agent whose root is ``None`` is not read. ``aider_roots`` are projects to look for Aider in, besides those that other agents
    have worked in. ``own_histories`` are folders whose Aider history belonged to the user before it was first read. With
    ``vault_git``, each consolidation of the vault is a separate commit; with ``vault_journal``, it keeps a page of each day.
    """

    file: Path
    state: Path
    vault: Path
    claude_root: Path
    extractor: ExtractorConfig = field(default_factory=ExtractorConfig)
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    recall: RecallConfig = field(default_factory=RecallConfig)
    daemon: DaemonConfig = field(default_factory=DaemonConfig)
    team: TeamConfig = field(default_factory=TeamConfig)
    sync: SyncConfig = field(default_factory=SyncConfig)
    judge: JudgeMode = "late"
    codex_root: Path | None = None
    gemini_root: Path | None = None
    copilot_root: Path | None = None
    cline_roots: tuple[Path, ...] = ()
    roo_roots: tuple[Path, ...] = ()
    aider_roots: tuple[Path, ...] | None = None
    aider_history: str = ""
    own_histories: tuple[Path, ...] = ()
    opencode_root: Path | None = None
    cursor_root: Path | None = None
    cursor_cli_root: Path | None = None
    antigravity_root: Path | None = None
    kilo_root: Path | None = None
    pi_root: Path | None = None
    qwen_root: Path | None = None
    goose_roots: tuple[Path, ...] = ()
    droid_root: Path | None = None
    git_history: bool = False
    extensions: bool = False
    vault_git: bool = False
    vault_journal: bool = False


DESCRIPTIONS = {
    "vault": "the folder of the notes",
    "vault.git": "commit each consolidation of the vault on its own",
    "vault.journal": "keep a page in `journals/` of each day on which a note was made",
    "extractor.name": "who writes the notes; `auto` is Claude Haiku if there is an Anthropic key, and the offline rules if not",
    "extractor.model": "the model for `anthropic`; `claude-cli` always uses Claude Haiku",
    "extractor.openai_model": "the model for `openai`",
    "extractor.base_url": "the address of the model's service, if it is not the vendor's own",
    "extractor.dollars_per_day": "the most that models may cost in a day (UTC)",
    "extractor.calls_per_day": "the most calls to models in a day (UTC)",
    "extractor.dollars_per_million_in": "the price of a million input tokens, if not the vendor's; 0 for a model on this machine",
    "extractor.dollars_per_million_out": "the price of a million output tokens, if not the vendor's",
    "extractor.judge_share": "the part of both daily limits for the judge, `kmem ask` and `--polish` together",
    "embedder.name": "what makes the vectors; `auto` is Voyage if there is a key for it, else the built-in model, which is English",
    "embedder.voyage_model": "the model for `voyage`",
    "embedder.voyage_base_url": "the address of Voyage's service, if it is not the vendor's own",
    "recall.dial": "how readily notes are shown",
    "recall.threshold": "the least score of a note that is shown in full; overrides the dial",
    "recall.notes_per_prompt": "the most notes shown in full with a prompt",
    "recall.tokens_per_prompt": "the most tokens shown with a prompt",
    "daemon.idle_seconds": "how many seconds after its last line a chunk of a session is finished",
    "daemon.compare_seconds": "the seconds between two full comparisons of vault, timeline and index",
    "daemon.log_level": "the lowest level that is logged",
    "team.store": "`postgresql://…` of a team's store, without a password, on the machine that serves it",
    "team.tenant": "the team's name in that store",
    "team.bucket": "the bucket for long transcripts",
    "team.endpoint": "the address of that object storage, if it is not Amazon's",
    "team.region": "its region",
    "team.prefix": "the beginning of the names of objects in the bucket",
    "team.bridge": "the address of the team's `kmem serve`, for its members",
    "team.ask": "when that server is asked as well: never, by `kmem search`, or also with each prompt",
    "sync.target": "the folder or git repository through which `kmem sync` exchanges this memory with your other machines",
    "team.oidc_issuer": "the OpenID Connect issuer whose tokens `kmem serve` accepts beside its own",
    "team.oidc_audience": "the audience that such a token must name",
    "team.oidc_person": "the claim that holds the person",
    "team.oidc_scopes": "the scopes of a token without the claim `kmem_scopes`, separated by spaces; without any it is refused",
    "team.oidc_projects": "the projects of a token without the claim `kmem_projects`, separated by spaces; `*` for all",
    "team.keep_days": "the days for which a team's server keeps deleted notes, and its audit of calls",
    "judge": "whether a model decides where the recall gate is unsure: while the agent works, before it starts, or not at all",
    "projects": "further folders in which to look for Aider's history",
    "own_histories": "folders in which Aider's history counts as yours even before it was first read",
    "extensions": "use the sources that other installed packages add",
    "git_history": "read the commits of the repositories that agents have worked in",
}
"""What each setting of the configuration file does, by its name in `kmem config`."""

_Section = TypeVar("_Section", ExtractorConfig, EmbedderConfig, RecallConfig, DaemonConfig, TeamConfig, SyncConfig)

_Chosen = TypeVar("_Chosen", ExtractorConfig, EmbedderConfig)

CHOICES: dict[tuple[type, str], tuple[str, ...]] = {
    (ExtractorConfig, "name"): EXTRACTORS,
    (EmbedderConfig, "name"): EMBEDDERS,
    (RecallConfig, "dial"): get_args(Dial),
    (TeamConfig, "ask"): get_args(AskTeam),
    (DaemonConfig, "log_level"): get_args(LogLevel),
}
_BOUNDS: dict[tuple[type, str], tuple[float, float]] = {
    (ExtractorConfig, "judge_share"): (0, 1),
    (RecallConfig, "notes_per_prompt"): (0, 2),
    (RecallConfig, "tokens_per_prompt"): (0, 1600),
    (RecallConfig, "threshold"): (0, 1),
    (DaemonConfig, "compare_seconds"): (1, 86_400),  # less would be polling
    (DaemonConfig, "idle_seconds"): (0, 86_400),
    (TeamConfig, "keep_days"): (1, 36_500),
}
_EXTENSIONS: dict[tuple[type, str], ExtensionKind] = {
    (ExtractorConfig, "name"): "extractor",
    (EmbedderConfig, "name"): "embedder",
}
_ANY_AMOUNT = (0.0, 1e9)

SETTINGS = (
    "vault",
    "extractor",
    "embedder",
    "recall",
    "daemon",
    "team",
    "sync",
    "judge",
    "projects",
    "own_histories",
    "git_history",
    "extensions",
)


def load() -> Config:
    """Read the configuration from its file and the environment.

    Raises `ConfigInvalid` if the file cannot be read, is not TOML, or holds an unknown setting or a value of the wrong kind.
    """
    file = Path(paths.config_file())
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        content = b""
    except OSError as error:
        raise ConfigInvalid(f"cannot read {file}: {error.strerror}", hint="see who owns it, or move it away") from error
    return check(content, file)


def load_or_default() -> Config:
    """Read the configuration, or return the defaults if its file is invalid: for what must be possible even then."""
    try:
        return load()
    except ConfigInvalid:
        return check(b"", Path(paths.config_file()))


def check(content: bytes, file: Path) -> Config:
    """Return the configuration that `load` would read if its file held ``content``. Raises the same errors."""
    _refuse_homes_unreplaced()
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number of too many digits
        raise ConfigInvalid(f"{file} is not valid TOML: {error}", hint="correct it, or move it away for the defaults") from error
    if unknown := sorted(set(table) - set(SETTINGS)):
        raise ConfigInvalid(f"unknown setting {unknown[0]!r} in {file}", hint=f"known ones are: {', '.join(SETTINGS)}")
    extractor = _section(ExtractorConfig, table.get("extractor", {}), "extractor", file)
    embedder = _section(EmbedderConfig, table.get("embedder", {}), "embedder", file)
    judge = table.get("judge", "late")
    if isinstance(judge, dict):
        if unknown := sorted(set(judge) - {"mode"}):
            raise ConfigInvalid(f"unknown setting {unknown[0]!r} in [judge] of {file}", hint="known ones are: mode")
        judge = judge.get("mode", "late")
    vault = table.get("vault", "")
    if not isinstance(vault, dict):
        vault = {"path": vault}
    if unknown := sorted(set(vault) - {"path", "git", "journal"}):
        raise ConfigInvalid(f"unknown setting {unknown[0]!r} in [vault] of {file}", hint="known ones are: path, git, journal")
    return Config(
        file=file,
        state=Path(paths.state_dir()).absolute(),
        vault=_vault(vault.get("path", ""), file),
        vault_git=_yes_or_no(vault.get("git", False), f"`git` in [vault] of {file}"),
        vault_journal=_yes_or_no(vault.get("journal", False), f"`journal` in [vault] of {file}"),
        claude_root=_whole(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"),
        extractor=_named(extractor, "KMEM_EXTRACTOR"),
        embedder=_named(embedder, "KMEM_EMBEDDER"),
        recall=_section(RecallConfig, table.get("recall", {}), "recall", file),
        daemon=_section(DaemonConfig, table.get("daemon", {}), "daemon", file),
        team=_team(table.get("team", {}), file),
        sync=_section(SyncConfig, table.get("sync", {}), "sync", file),
        judge=_choice(
            os.environ.get("KMEM_JUDGE") or judge,
            get_args(JudgeMode),
            "KMEM_JUDGE" if os.environ.get("KMEM_JUDGE") else f"`judge` in {file}",
        ),
        codex_root=_whole(os.environ.get("CODEX_HOME") or "~/.codex"),
        gemini_root=_whole(os.environ.get("GEMINI_CLI_HOME") or "~") / ".gemini",
        copilot_root=_whole(os.environ.get("COPILOT_HOME") or "~/.copilot"),
        cline_roots=(*_storages("saoudrizwan.claude-dev"), _whole(os.environ.get("CLINE_DIR") or "~/.cline") / "data"),
        roo_roots=_storages("rooveterinaryinc.roo-cline"),
        aider_roots=_projects(table.get("projects", []), file),
        own_histories=_projects(table.get("own_histories", []), file, "own_histories"),
        aider_history=os.environ.get("AIDER_CHAT_HISTORY_FILE", ""),
        opencode_root=_whole(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "opencode",
        cursor_root=user_folder("Cursor", environment=os.environ, home=_whole("~"), platform=sys.platform),
        cursor_cli_root=_whole("~/.cursor"),
        antigravity_root=_whole("~/.gemini"),
        kilo_root=_whole(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "kilo",
        pi_root=_whole(os.environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"),
        qwen_root=_whole(os.environ.get("QWEN_RUNTIME_DIR") or os.environ.get("QWEN_HOME") or "~/.qwen"),
        goose_roots=tuple(folder / "sessions" for folder in goose_folders(sys.platform)),
        droid_root=_whole("~/.factory"),
        git_history=_yes_or_no(table.get("git_history", True), f"`git_history` in {file}"),
        extensions=_yes_or_no(table.get("extensions", True), f"`extensions` in {file}"),
    )


def _refuse_homes_unreplaced() -> None:
    """Raise `ConfigInvalid` if a folder variable begins with a literal ``~``.

    The shell leaves a quoted ``~`` as it is, and a folder called ``~`` would be made below the working folder.
    """
    for name in ("KMEM_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        value = os.environ.get(name, "")
        if value == "~" or value.startswith(("~/", "~\\")):
            raise ConfigInvalid(f"{name} begins with an unexpanded ~: {value}", hint="write the whole path, from / on")


def _vault(value: object, file: Path) -> Path:
    """Return the vault's path from the configuration. A set ``KMEM_HOME`` overrides it with its own vault."""
    if not isinstance(value, str) or "\0" in value:
        raise ConfigInvalid(f"`vault` in {file} is not a path in quotes", hint='write vault = "~/notes/kite"')
    vault = _whole(value or paths.default_vault(), made_whole=not value)
    if not vault.is_absolute():
        raise ConfigInvalid(f"`vault` in {file} is not a whole path: {value}", hint="write it from / or ~ on")
    return Path(paths.default_vault()).absolute() if os.environ.get("KMEM_HOME") else vault


def _team(table: object, file: Path) -> TeamConfig:
    """Read the ``[team]`` section. Raises `ConfigInvalid` for an address with a password: people share this file."""
    team = _section(TeamConfig, table, "team", file)
    for name, address in (
        ("store", team.store),
        ("endpoint", team.endpoint),
        ("bridge", team.bridge),
        ("oidc_issuer", team.oidc_issuer),
    ):
        if not address:
            continue
        from urllib.parse import urlsplit  # imported here: it takes milliseconds, and only teams need it

        try:
            holds_password = urlsplit(address).password is not None or "password=" in address
        except ValueError:
            raise ConfigInvalid(f"`{name}` in [team] of {file} is not a URL") from None
        if holds_password:
            raise ConfigInvalid(f"`{name}` in [team] of {file} holds a password", hint="take it out; `kmem keys set team` keeps it")
    _check_issuer(team, file)
    return team


def _check_issuer(team: TeamConfig, file: Path) -> None:
    if not team.oidc_issuer:
        return
    from urllib.parse import urlsplit

    parts = urlsplit(team.oidc_issuer)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")):
        raise ConfigInvalid(f"`oidc_issuer` in [team] of {file} does not begin with https", hint="its keys could be exchanged")
    if not team.oidc_audience:
        raise ConfigInvalid(
            f"`oidc_audience` is missing in [team] of {file}",
            hint="without it a token that the issuer made for another service would be accepted",
        )
    known = {"global", "project", "session", "shared"}
    if unknown := set(team.oidc_scopes.split()) - known:
        raise ConfigInvalid(
            f"`oidc_scopes` in [team] of {file} holds {min(unknown)!r:.60}", hint=f"choose from: {', '.join(sorted(known))}"
        )


def _projects(value: object, file: Path, name: str = "projects") -> tuple[Path, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and "\0" not in each for each in value):
        raise ConfigInvalid(f"`{name}` in {file} is not a list of paths in quotes", hint=f'write {name} = ["~/work/orchard"]')
    found = tuple(_whole(each, made_whole=False) for each in value)
    for each in found:
        if not each.is_absolute():
            raise ConfigInvalid(f"a project in {file} is not a whole path: {each}", hint="write it from / or ~ on")
    return found


def _yes_or_no(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigInvalid(f"{name} should be true or false, not {value!r:.60}")
    return value


def _storages(extension: str) -> tuple[Path, ...]:
    return extension_storages(extension, environment=os.environ, home=_whole("~"), platform=sys.platform)


def goose_folders(platform: str) -> tuple[Path, ...]:
    """Return the folders that Goose may keep its data in. On macOS they differ between its versions."""
    root = Path(os.environ.get("GOOSE_PATH_ROOT", ""))
    if root.is_absolute():
        return (root / "data",)
    if platform == "win32":
        return (_whole(os.environ.get("APPDATA") or "~/AppData/Roaming") / "Block" / "goose" / "data",)
    folder = _whole(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "goose"
    if platform == "darwin":
        return (folder, _whole("~/Library/Application Support/Block/goose"))
    return (folder,)


def _whole(path: str, *, made_whole: bool = True) -> Path:
    try:
        expanded = Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigInvalid(f"no such home folder: {path}", hint="write the path from / on") from error
    return expanded.absolute() if made_whole else expanded


def _section(kind: type[_Section], table: object, name: str, file: Path) -> _Section:
    if not isinstance(table, dict):
        raise ConfigInvalid(f"`{name}` in {file} is not a section", hint=f"write it as [{name}]")
    defaults = {setting.name: setting.default for setting in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in defaults:
            raise ConfigInvalid(f"unknown setting {key!r} in [{name}] of {file}", hint=f"known ones are: {', '.join(defaults)}")
        values[key] = _value(kind, key, value, defaults[key], f"`{key}` in [{name}] of {file}")
    return kind(**values)


def _value(kind: type, key: str, value: object, default: object, name: str) -> object:
    if choices := CHOICES.get((kind, key)):
        return _choice(value, choices, name, extension=_EXTENSIONS.get((kind, key)))
    if isinstance(default, str):
        if not isinstance(value, str):
            raise ConfigInvalid(f"{name} should be like {default!r}, not {value!r:.60}")
        return value
    whole = isinstance(default, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ConfigInvalid(f"{name} should be {'a whole number' if whole else 'a number'}, not {value!r:.60}")
    least, most = _BOUNDS.get((kind, key), _ANY_AMOUNT)
    if not least <= value <= most:  # as nan never is
        raise ConfigInvalid(f"{name} cannot be {value!r:.60}", hint=f"choose from {least:g} to {most:g}")
    return value if whole else float(value)


def _named(section: _Chosen, variable: str) -> _Chosen:
    value = os.environ.get(variable)
    if not value:
        return section
    setting = (type(section), "name")
    return dataclasses.replace(section, name=_choice(value, CHOICES[setting], variable, extension=_EXTENSIONS[setting]))


def _choice(value: object, choices: tuple[str, ...], name: str, *, extension: ExtensionKind | None = None) -> Any:
    if value in choices or (extension is not None and isinstance(value, str) and _is_installed(extension, value)):
        return value
    raise ConfigInvalid(f"{name} cannot be {value!r:.60}", hint=f"choose one of: {', '.join(choices)}")


def _is_installed(kind: ExtensionKind, name: str) -> bool:
    from kite_memory import extensions  # imported here: looking at every installed package takes milliseconds

    return any(each.name == name for each in extensions.found(kind))
