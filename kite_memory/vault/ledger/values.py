"""Values that the ledger returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

from kite_memory.model.note import Note
from kite_memory.vault.files import Stamp
from kite_memory.vault.ledger.database import LedgerDatabase
from kite_memory.vault.notefile import UnreadableNote
from kite_memory.vault.wording import digest, stem_key


class KnownFile(NamedTuple):
    """A file as of the last comparison. ``twin``: a copy of a note whose id belongs to an older file.

    A plain tuple, since a query may return one for every note of the vault.
    """

    path: str
    id: str
    twin: bool
    kind: str
    title: str
    project: str
    status: str
    size: int
    mtime_ns: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A change of the vault that was about to be made when this was committed."""

    id: str
    doing: Literal["create", "forget"]
    path: str
    temporary: str
    title: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A file that was opened: its note, or why it has none. ``known`` is what was known of it before."""

    path: str
    stamp: Stamp
    note: Note | UnreadableNote
    id: str
    twin: bool
    known: KnownFile | None = None

    def as_known(self) -> KnownFile:
        """Return the row of a file. Of one that cannot be read any more, everything that was known is kept."""
        return KnownFile(
            path=self.path,
            id=self.id,
            twin=self.twin,
            kind=self.known.kind if self.known else "",
            title=self.known.title if self.known else PurePosixPath(self.path).stem,
            project=self.known.project if self.known else "",
            status=self.known.status if self.known else "",
            size=self.stamp.size,
            mtime_ns=self.stamp.mtime_ns,
            problem=self.note.reason if isinstance(self.note, UnreadableNote) else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A file with a key, as of the last comparison. ``expires`` is ISO 8601, or empty."""

    key: str
    scope: str
    project: str
    session: str
    tags: tuple[str, ...]
    expires: str
    known: KnownFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The text of a keyed note from ``at`` on. ``by`` is empty where it is unknown: mostly a person in an editor."""

    version: int
    at: datetime
    by: str
    body: str


def link_key(target: str) -> str:
    """Return a key that is equal for a link's target and the file it leads to."""
    return stem_key(target.rpartition("/")[2].removesuffix(".md"))


def place_digest(scope: str, project: str, session: str, key: str) -> str:
    """Return a digest of what a key is unique within: it is kept when the key itself is forgotten."""
    return digest("\0".join((scope, project, session, key)))


_COLUMNS = "path, id, twin, kind, title, project, status, size, mtime_ns, problem"
FILE_COLUMNS = ", ".join(f"f.{name}" for name in _COLUMNS.split(", "))
"""Of the table ``files AS f``, as `known` reads them."""


def known_where(database: LedgerDatabase, where: str, *values: object, limit: int = -1) -> list[KnownFile]:
    """Return the rows that match, originals before copies, then by path."""
    rows = database.run(f"SELECT {_COLUMNS} FROM files WHERE {where} ORDER BY twin, path LIMIT ?", *values, limit)  # noqa: S608 - `where` is ours
    return list(map(known, rows))


def known(row: Sequence[Any]) -> KnownFile:
    path, id, twin, *rest = row
    return KnownFile(path, id, bool(twin), *rest)
