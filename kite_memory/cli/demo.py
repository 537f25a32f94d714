"""Two invented sessions in a house of their own: what the real thing does, in ten seconds and without a trace."""

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.cli.console import say
from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.distill.scheduler import Asked

_SESSION = "d3300000-0000-4000-8000-{:012d}"
_START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)

_FIRST = (
    (
        "user",
        "Let's use PostgreSQL instead of SQLite for the job queue, because SQLite's single-writer lock stalls the workers.",
    ),
    (
        "assistant",
        "Decided: the job queue moves to PostgreSQL, because its row-level locks let the workers write side by side."
        " I rejected SQLite since its single-writer lock stalled them.",
    ),
    ("user", "And always run the linter from the src folder, never from the repository root: the config is only found there."),
    ("assistant", "Understood. I will run the linter from src from now on."),
)
_SECOND = (
    ("user", "The worker tests hang in CI. Find out why."),
    (
        "assistant",
        "The root cause was the connection pool: its size was 1, so the second worker waited for ever in `acquire()`."
        " Raising `POOL_SIZE` to 8 fixed the hanging tests.",
    ),
)

_PROMPTS = (
    "which database should the job queue migration target?",
    "the worker tests hang again, in acquire",
    "write a haiku about the sea",
)


def play() -> None:
    """Transcript, notes, injection: shown on stdout, nothing kept."""
    from kite_memory.wiring import open_house

    with tempfile.TemporaryDirectory(prefix="kmem-demo-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        project = home / "mycelia"
        (project / ".git").mkdir(parents=True)
        config = Config(
            file=home / "config.toml",
            state=home / "state",
            vault=home / "memory",
            claude_root=home / "claude",
            extractor=ExtractorConfig(name="offline"),
            embedder=EmbedderConfig(name="local"),
        )
        say("1. An agent leaves transcripts behind:")
        leave_transcripts(config.claude_root, project)
        for role, text in (*_FIRST, *_SECOND):
            say(f"   {role:>9}: {text}")
        with open_house(config) as house:
            house.lay_out()
            house.pipeline.ingest_many([(source, path) for source, path, _ in house.pipeline.unread()])
            house.pipeline.open_sessions()
            house.pipeline.form_chunks()
            while isinstance(house.pipeline.distil(), Asked):
                pass
            say()
            say("2. Notes appear in the vault, each with its evidence:")
            for entry in house.vault.entries():
                note = house.vault.read(entry.path)
                if note is not None and note.evidence:
                    say(f"   {note.path}  ({note.kind}, evidence {note.evidence[0]})")
            say()
            say("3. Later prompts are given what helps, or nothing:")
            for prompt in _PROMPTS:
                answer: dict[str, Any] = house.operations.recall(prompt=prompt, cwd=str(project))
                say(f"   > {prompt}")
                for line in answer["block"].splitlines() or [f"(silence: {answer['reason']})"]:
                    say(f"     {line}")


def leave_transcripts(root: Path, project: Path) -> None:
    """As Claude Code would have, had it worked in ``project`` twice."""
    for number, turns in enumerate((_FIRST, _SECOND)):
        _write(root, project, number, turns)


def _write(root: Path, project: Path, number: int, turns: tuple[tuple[str, str], ...]) -> None:
    session = _SESSION.format(number + 1)
    lines = []
    for turn, (role, text) in enumerate(turns):
        lines.append(
            json.dumps(
                {
                    "type": role,
                    "uuid": f"{number + 1:04x}{turn + 1:04x}-0000-4000-8000-000000000000",
                    "parentUuid": None,
                    "sessionId": session,
                    "cwd": str(project),
                    "gitBranch": "main",
                    "version": "2.1.328",
                    "isSidechain": False,
                    "userType": "external",
                    "timestamp": (_START + timedelta(days=number, minutes=turn)).isoformat().replace("+00:00", "Z"),
                    "message": {
                        "role": role,
                        "content": text if role == "user" else [{"type": "text", "text": text}],
                    },
                }
            )
        )
    folder = root / "projects" / "-mycelia"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
