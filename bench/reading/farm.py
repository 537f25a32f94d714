"""Transcripts as they lie in a collection, laid out as the agents that wrote them have them, in a folder that stands for a home.

The sources stay inside their roots whatever links say, so the files are copied.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

CODEX_DAY = Path("2026", "01", "01")
CLINE, ROO = "saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"
_TASK_FILES = ("api_conversation_history.json", "ui_messages.json", "task_metadata.json", "history_item.json")


class Farm:
    """``home`` has every agent's folder where it would be on Linux with no variable set."""

    def __init__(self, collection: Path, home: Path) -> None:
        self.collection = collection
        self.home = home
        self.editor = home / ".config" / "Code" / "User" / "globalStorage"
        self.laid: dict[str, list[Path]] = {}
        """By provider, what is its to read."""
        self.real: set[Path] = set()
        """What people's agents wrote. The others were invented to test programs: their ids and words are the same on purpose."""

    def lay(self, provider: str, source: Path, place: Path, *, beside: bool = False) -> None:
        """Copy ``source`` to ``place`` below the home. ``beside`` is what is no transcript, but belongs to one."""
        target = self.home / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
        target.chmod(0o600)
        if not beside:
            self.laid.setdefault(provider, []).append(target)
        if "fixtures" not in source.relative_to(self.collection).parts[:1]:
            self.real.add(target)

    def database(self, provider: str, statements: Path, place: Path) -> None:
        target = self.home / place
        target.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(target)
        database.executescript(statements.read_text(encoding="utf-8"))
        database.close()
        self.laid.setdefault(provider, []).append(target)

    def size(self, provider: str) -> int:
        return sum(path.stat().st_size for path in self.laid.get(provider, ()))


def init_vault(collection: Path, home: Path) -> Farm:
    """Everything in ``collection`` that one of our providers reads: real transcripts, and the fixtures of other programs."""
    farm = Farm(collection, home)
    _claude_code(farm, collection)
    _codex(farm, collection)
    _gemini(farm, collection)
    _copilot(farm, collection)
    _tasks(farm, collection)
    _cursor(farm, collection)
    _aider(farm, collection)
    _opencode(farm, collection)
    _antigravity(farm, collection)
    return farm


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    return (path for path in sorted(folder.glob(pattern)) if path.is_file())


def _of_fixtures(collection: Path, agent: str, pattern: str) -> Iterator[Path]:
    """What lies below a folder of the agent's name among the fixtures."""
    for path in _files(collection / "fixtures", f"**/{pattern}"):
        if agent in path.relative_to(collection).parts[:-1]:
            yield path


def _flat(collection: Path, path: Path) -> str:
    """A folder's path as one name; the same file name stands in several collections."""
    return "-" + "-".join(path.relative_to(collection).parts[:-1]).replace("_", "-").replace(".", "-")[-120:]


def _claude_code(farm: Farm, collection: Path) -> None:
    projects = Path(".claude", "projects")
    for path in (*_files(collection / "claude-code", "**/*.jsonl"), *_claude_fixtures(collection)):
        place = projects / _flat(collection, path) / path.name
        if "subagents" in path.parts:
            session = path.parent.parent
            place = projects / _flat(collection, session) / session.name / "subagents" / path.name
        farm.lay("claude-code", path, place)


def _claude_fixtures(collection: Path) -> Iterator[Path]:
    for agent in ("claude", "claude-code"):
        yield from _of_fixtures(collection, agent, "*.jsonl")


def _codex(farm: Farm, collection: Path) -> None:
    folder = Path(".codex", "sessions") / CODEX_DAY
    real, fixtures = _files(collection / "codex", "*.jsonl"), _of_fixtures(collection, "codex", "*.jsonl")
    for number, path in enumerate((*real, *fixtures, *_files(collection / "fixtures", "**/Fixtures/*.jsonl"))):
        if path.name == "history.jsonl":
            continue
        name = path.name if path.name.startswith("rollout-") else f"rollout-2026-01-01T00-00-{number:02d}-{path.name}"
        farm.lay("codex", path, folder / f"{number:02d}" / name)


def _gemini(farm: Farm, collection: Path) -> None:
    real, fixtures = _files(collection / "gemini-cli", "**/*.json"), _of_fixtures(collection, "gemini", "*.json*")
    for number, path in enumerate((*real, *fixtures)):
        farm.lay("gemini-cli", path, Path(".gemini", "tmp", f"project-{number:02d}", "chats", path.name))


def _copilot(farm: Farm, collection: Path) -> None:
    for path in (*_files(collection / "copilot-cli", "**/*.jsonl"), *_of_fixtures(collection, "copilot", "*.jsonl")):
        name = f"{path.parent.name}/events.jsonl" if path.name == "events.jsonl" else path.name
        farm.lay("copilot-cli", path, Path(".copilot", "session-state", name))


def _tasks(farm: Farm, collection: Path) -> None:
    editor = farm.editor.relative_to(farm.home)
    for provider, extension, fixtures in (("roo-code", ROO, "roo"), ("cline", CLINE, "cline")):
        found = (*_files(collection / provider, "**/*.json"), *_of_fixtures(collection, fixtures, "*.json"))
        histories = {path.parent for path in found if path.name == _TASK_FILES[0]}
        for path in found:
            if path.name in _TASK_FILES:
                extra = path.name not in _TASK_FILES[:2] or (path.name == _TASK_FILES[1] and path.parent in histories)
                farm.lay(provider, path, editor / extension / "tasks" / path.parent.name / path.name, beside=extra)
            elif path.name == "taskHistory.json":
                farm.lay(provider, path, editor / extension / "state" / path.name, beside=True)
            elif "sessions" in path.parts:
                place = Path(".cline", "data", "sessions", path.parent.name, path.name)
                farm.lay(provider, path, place, beside=not path.name.endswith(".messages.json"))


def _cursor(farm: Farm, collection: Path) -> None:
    for path in _files(collection / "cursor", "**/state.vscdb"):
        farm.lay("cursor", path, Path(".config", "Cursor", "User", "workspaceStorage", "w0", path.name))
    for path in _of_fixtures(collection, "cursor", "*.jsonl"):
        folder = Path(".cursor", "projects", "orchard", "agent-transcripts", path.stem)
        if "subagents" in path.parts:
            folder = folder.parent / "parent" / "subagents"
        farm.lay("cursor", path, folder / path.name)


def _aider(farm: Farm, collection: Path) -> None:
    for number, path in enumerate(_files(collection, "**/.aider.chat.history.md")):
        farm.lay("aider", path, Path("projects", f"p{number}", path.name))


def _opencode(farm: Farm, collection: Path) -> None:
    root = Path(".local", "share", "opencode")
    for number, path in enumerate(_of_fixtures(collection, "opencode", "opencode.sql")):
        farm.database("opencode", path, root / ("opencode.db" if not number else f"opencode-{number}.db"))


def _antigravity(farm: Farm, collection: Path) -> None:
    for path in _of_fixtures(collection, "antigravity", "*.jsonl"):
        name = path.parent.parent.parent.name if path.name == "transcript.jsonl" else path.stem
        folder = Path(".gemini", "antigravity-cli", "brain", name, ".system_generated", "logs")
        farm.lay("antigravity", path, folder / "transcript.jsonl")
