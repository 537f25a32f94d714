"""Makes `docs/internals/schema.md` from the databases that the program creates: ``make schema``."""

import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from textwrap import dedent

from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.mcp_server.tokens import Tokens
from kite_memory.sync.state import SyncState
from kite_memory.team.postgres import migrating as postgres
from kite_memory.wiring.services import open_services

PAGE = Path(__file__).parent.parent / "docs" / "internals" / "schema.md"

_HEAD = """\
# Schema of each database

Made from the code by `make schema`, and checked by `tests/test_schema_page.py`: do not edit it. What each file is for, and what
is lost without it, is in [ARCHITECTURE.md](../../ARCHITECTURE.md). An older file is brought up to the version named here when it
is opened; a newer one is refused.
"""


def page() -> str:
    with tempfile.TemporaryDirectory() as folder:
        parts = list(_databases(Path(folder)))
    migrations = f"## PostgreSQL, for a team\n\nVersion {postgres.VERSION}, as its migrations make it.\n\n" + "\n".join(
        f"```sql\n-- version {number}\n{dedent(migration).strip()}\n```\n"
        for number, migration in enumerate(postgres.MIGRATIONS, 1)
    )
    return "\n".join([_HEAD, *parts, migrations])


def _databases(folder: Path) -> Iterator[str]:
    config = Config(
        file=folder / "config.toml",
        state=folder / "state",
        vault=folder / "vault",
        claude_root=folder / "claude",
        extractor=ExtractorConfig(name="offline"),
        embedder=EmbedderConfig(name="local"),
        judge="off",
    )
    with open_services(config) as services:
        services.init_vault()
        services.operations.perform("remember", {"text": "The index and the bridge are made at the first use.", "cwd": str(folder)})
        services.operations.perform("recall", {"prompt": "When is the index made, and when the bridge?"})
    Tokens(config.state).close()
    SyncState(config.state / "sync.sqlite").close()
    for path in sorted(path for path in config.state.rglob("*") if path.suffix in (".sqlite", ".db")):
        yield _described(path, path.relative_to(config.state).as_posix())


def _described(path: Path, name: str) -> str:
    with closing(sqlite3.connect(path)) as database:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        shadows = {name for _, name, kind, *_ in database.execute("PRAGMA table_list") if kind == "shadow"}
        statements = [
            f"{dedent(sql).strip()};"
            for kind, table, sql in database.execute(
                "SELECT type, name, sql FROM sqlite_master WHERE sql <> '' ORDER BY tbl_name, type <> 'table', name"
            )
            if table not in shadows and not table.startswith("sqlite_")
        ]
    return f"## `{name}`\n\nVersion {version}.\n\n```sql\n" + "\n".join(statements) + "\n```\n"


if __name__ == "__main__":
    written = page()
    PAGE.write_text(written, encoding="utf-8", newline="\n")
    sys.stderr.write(f"{PAGE.name}: {written.count('CREATE TABLE')} tables\n")
