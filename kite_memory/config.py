"""The configuration: a file, the environment on top, and nothing else. Read once, by the entry points."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from kite_memory import paths
from kite_memory.errors import ConfigInvalid

ExtractorName = Literal["auto", "anthropic", "claude-cli", "openai", "offline"]
EmbedderName = Literal["auto", "local", "voyage"]
JudgeMode = Literal["late", "wait", "off"]

_Choice = TypeVar("_Choice", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorConfig:
    """``calls_per_day`` and ``dollars_per_day`` bound what is spent; over them, chunks wait for the next UTC day."""

    name: ExtractorName = "auto"
    model: str = "claude-haiku-4-5"
    base_url: str = ""
    dollars_per_day: float = 1.0
    calls_per_day: int = 500
    dollars_per_million_in: float = 1.0
    dollars_per_million_out: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderConfig:
    name: EmbedderName = "auto"
    voyage_model: str = "voyage-3-lite"
    voyage_base_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallConfig:
    """``threshold`` of ``None`` means the embedder's own, fitted one."""

    threshold: float | None = None
    notes_per_prompt: int = 2
    tokens_per_prompt: int = 1600


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonConfig:
    """``idle_seconds`` without a new line ends a chunk; ``compare_seconds`` is the pause between full comparisons."""

    idle_seconds: float = 30.0
    compare_seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    file: Path
    state: Path
    vault: Path
    claude_root: Path
    extractor: ExtractorConfig = field(default_factory=ExtractorConfig)
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    recall: RecallConfig = field(default_factory=RecallConfig)
    daemon: DaemonConfig = field(default_factory=DaemonConfig)
    judge: JudgeMode = "late"


def load(environment: Mapping[str, str] = os.environ) -> Config:
    """Raises `ConfigInvalid` for a file that is not TOML, an unknown setting or a value of the wrong kind."""
    file = Path(paths.config_file())
    table = _read(file)
    known = {"vault", "extractor", "embedder", "recall", "daemon", "judge"}
    if unknown := sorted(set(table) - known):
        raise ConfigInvalid(f"unknown setting {unknown[0]!r} in {file}", hint=f"known ones are: {', '.join(sorted(known))}")
    extractor = _section(ExtractorConfig, table.get("extractor", {}), "extractor", file)
    embedder = _section(EmbedderConfig, table.get("embedder", {}), "embedder", file)
    vault = table.get("vault", "") if not environment.get("KMEM_HOME") else ""
    if not isinstance(vault, str):
        raise ConfigInvalid(f"`vault` in {file} is not a path in quotes")
    judge = table.get("judge", {})
    judge_mode = judge.get("mode", "late") if isinstance(judge, dict) else judge
    return Config(
        file=file,
        state=Path(paths.state_dir()),
        vault=Path(vault or paths.default_vault()).expanduser(),
        claude_root=Path(environment.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser(),
        extractor=_with_choice(extractor, "name", environment.get("KMEM_EXTRACTOR"), ExtractorName, "KMEM_EXTRACTOR"),
        embedder=_with_choice(embedder, "name", environment.get("KMEM_EMBEDDER"), EmbedderName, "KMEM_EMBEDDER"),
        recall=_section(RecallConfig, table.get("recall", {}), "recall", file),
        daemon=_section(DaemonConfig, table.get("daemon", {}), "daemon", file),
        judge=_choice(environment.get("KMEM_JUDGE") or judge_mode, JudgeMode, "judge"),
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"{file} is not valid TOML: {error}", hint="mend it, or move it away for the defaults") from error
    except OSError as error:
        raise ConfigInvalid(f"cannot read {file}: {error.strerror}") from error


_Section = TypeVar("_Section", ExtractorConfig, EmbedderConfig, RecallConfig, DaemonConfig)

_CHOICES: dict[tuple[type, str], Any] = {(ExtractorConfig, "name"): ExtractorName, (EmbedderConfig, "name"): EmbedderName}


def _section(kind: type[_Section], table: object, name: str, file: Path) -> _Section:
    if not isinstance(table, dict):
        raise ConfigInvalid(f"`{name}` in {file} is not a section", hint=f"write it as [{name}]")
    defaults = kind()
    values: dict[str, Any] = {}
    for key, value in table.items():
        if not hasattr(defaults, key):
            known = ", ".join(kind.__slots__)
            raise ConfigInvalid(f"unknown setting `{key}` in [{name}] of {file}", hint=f"known ones are: {known}")
        default = getattr(defaults, key)
        if isinstance(value, int) and not isinstance(value, bool) and (default is None or isinstance(default, float)):
            value = float(value)
        if default is not None and (type(value) is not type(default)):
            raise ConfigInvalid(f"`{key}` in [{name}] of {file} should be like {default!r}, not {value!r}")
        if isinstance(value, int | float) and value < 0:
            raise ConfigInvalid(f"`{key}` in [{name}] of {file} cannot be negative")
        if choice := _CHOICES.get((kind, key)):
            _choice(value, choice, f"{name}.{key}")
        values[key] = value
    return kind(**values)


def _with_choice(section: _Section, key: str, value: str | None, choices: Any, name: str) -> _Section:
    import dataclasses

    return dataclasses.replace(section, **{key: _choice(value, choices, name)}) if value else section


def _choice(value: Any, choices: Any, name: str) -> Any:
    if value not in get_args(choices):
        raise ConfigInvalid(f"{name} cannot be {value!r}", hint=f"choose one of: {', '.join(get_args(choices))}")
    return value
