"""Tokens for `kmem serve`: created once, shown once, and verified by a signature and a hash.

A token holds its id and expiry, signed with this machine's key; its grant is stored beside its hash in a file. So a forged token is
refused without a lookup, and a reader of the file cannot recover any token.
"""

import base64
import hashlib
import hmac
import json
import secrets
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from kite_memory.errors import KiteError, StateDamaged, UsageError
from kite_memory.model.note import Scope
from kite_memory.system import sqlite, utc_now
from kite_memory.system.private_files import make_private_folder, replace_file
from kite_memory.tools.store import OWNER, Grant

LOCAL = "local"
"""Name of the token that `kmem serve` creates for this machine's own agents. It is valid on loopback only."""

PREFIX = "kmem_"
_LONGEST = 512
_LONGEST_NAME = 60
_MOST_PROJECTS = 100
_KEY_BYTES = 32
_SCHEMA = """
CREATE TABLE token (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, hash BLOB NOT NULL, may_write INTEGER NOT NULL, scopes TEXT NOT NULL,
    projects TEXT NOT NULL, local INTEGER NOT NULL, created REAL NOT NULL, expires REAL
) STRICT
"""
_MIGRATIONS = {1: (_SCHEMA,), 2: ("ALTER TABLE token ADD COLUMN person TEXT NOT NULL DEFAULT ''",)}

Turned = Literal["none", "malformed", "forged", "unknown", "expired", "not here", "no grant", "issuer away"]
"""Why a token is refused. For the log; the client learns only that it was refused."""


class NoSuchToken(KiteError):
    """No token has that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """The stored data of a token. ``None`` means all for ``scopes`` and ``projects``, and never for ``expires``.

    ``person`` is empty if none was given, as for tokens of earlier versions.
    """

    id: str
    name: str
    write: bool
    scopes: frozenset[Scope] | None
    projects: frozenset[str] | None
    created: datetime
    expires: datetime | None
    local: bool = False
    person: str = ""

    @property
    def grant(self) -> Grant:
        """The grant on this machine's vault, where a token without a person is the owner's.

        The local token acts as the owner: what it writes is attributed to the owner's agent.
        """
        return OWNER if self.local else self._grant(self.person)

    @property
    def team_grant(self) -> Grant:
        """The grant on a team's store, where a token without a person is a person of its own."""
        return OWNER if self.local else self._grant(self.person or self.name)

    def _grant(self, person: str) -> Grant:
        return Grant(name=self.name, write=self.write, scopes=self.scopes, projects=self.projects, person=person)


class Tokens:
    """Store of tokens. Thread-safe, and safe beside other processes: a token revoked by one is refused by all from then on."""

    def __init__(self, folder: Path, *, clock: Callable[[], datetime] = utc_now) -> None:
        make_private_folder(folder)
        self._clock = clock
        self._lock = threading.Lock()
        self._file = folder / "tokens.sqlite"
        self._key = _key(folder / "tokens.key")
        if not self._file.exists():
            self._file.touch(0o600)
        with self._asking():
            self._database = sqlite.open_store(
                self._file, _MIGRATIONS, named=str(self._file), timeout=10.0, journal="DELETE", synchronous="FULL"
            )

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def create(
        self,
        name: str,
        *,
        write: bool = True,
        scopes: Collection[Scope] | None = None,
        projects: Collection[str] | None = None,
        expires: datetime | None = None,
        local: bool = False,
        person: str = "",
    ) -> tuple[str, StoredToken]:
        """Create a token and return it with its data; it cannot be shown again.

        Raises `UsageError` if the name is taken or invalid.
        """
        _check(name, projects)
        if person:
            _check(person, None, what="person")
        if name == LOCAL and not local:
            raise UsageError(f"{LOCAL!r} is what this machine's own token is called", hint="choose another name")
        now = self._clock()
        if expires is not None and expires <= now:
            raise UsageError("a token that has ended already would be of no use", hint="give an age as 90d")
        kept = StoredToken(
            id=secrets.token_hex(8),
            name=name,
            write=write,
            scopes=None if scopes is None else frozenset(scopes),
            projects=None if projects is None else frozenset(projects),
            created=now,
            expires=expires,
            local=local,
            person=person,
        )
        token = self._signed(kept.id, secrets.token_urlsafe(24), int(expires.timestamp()) if expires else 0)
        row = (kept.id, name, _hash(token), int(write), _listed(kept.scopes), _listed(kept.projects), int(local))
        times = now.timestamp(), None if expires is None else expires.timestamp()
        try:
            with self._asking():
                self._database.execute("INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, *times, person))
        except sqlite3.IntegrityError as error:
            raise UsageError(f"there is a token called {name!r} already", hint="revoke it first, or choose another name") from error
        return token, kept

    def find(self, token: str, *, loopback: bool) -> StoredToken | Turned:
        """Return the token's data, or why it is refused. ``loopback`` means that only this machine can have sent it."""
        if not token:
            return "none"
        signed, _, signature = token.rpartition(".")
        id, secret, ends = _parts(signed)
        if not (id and secret and ends.isdecimal()) or len(token) > _LONGEST or not token.isascii():
            return "malformed"
        if not hmac.compare_digest(self._signature(signed), signature):
            return "forged"
        with self._asking():
            row = self._database.execute("SELECT * FROM token WHERE id = ?", (id,)).fetchone()
        if row is None or not hmac.compare_digest(_hash(token), bytes(row[2])):
            return "unknown"
        kept = _kept(row)
        now = self._clock()
        if (int(ends) and now.timestamp() >= int(ends)) or (kept.expires is not None and now >= kept.expires):
            return "expired"
        return "not here" if kept.local and not loopback else kept

    def all(self) -> list[StoredToken]:
        """Return all tokens, oldest first, including expired ones."""
        with self._asking():
            return [_kept(row) for row in self._database.execute("SELECT * FROM token ORDER BY created, id")]

    def living(self) -> list[StoredToken]:
        now = self._clock()
        return [kept for kept in self.all() if kept.expires is None or now < kept.expires]

    def revoke(self, name: str) -> StoredToken:
        """Revoke a token by name, or if no token has the name, by id. Raises `NoSuchToken`."""
        known = self.all()
        found = next((kept for kept in known if kept.name == name), None) or next((kept for kept in known if kept.id == name), None)
        if found is None:
            raise NoSuchToken(f"there is no token {name!r}", hint="`kmem token list` shows them")
        with self._asking():
            self._database.execute("DELETE FROM token WHERE id = ?", (found.id,))
        return found

    def local(self, file: Path) -> None:
        """Make sure that ``file`` holds the local token: keep a valid one, else write a new one."""
        try:
            held = file.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            held = ""
        if isinstance(self.find(held, loopback=True), StoredToken):
            return
        with suppress(NoSuchToken):
            self.revoke(LOCAL)
        token, _ = self.create(LOCAL, local=True)
        replace_file(file, f"{token}\n".encode())

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.IntegrityError:
                raise
            except sqlite3.DatabaseError as error:
                raise StateDamaged(
                    f"{self._file} cannot be used: {error}", hint="move it away; then create all tokens again"
                ) from error

    def _signed(self, id: str, secret: str, ends: int) -> str:
        signed = f"{PREFIX}{id}.{secret}.{ends}"
        return f"{signed}.{self._signature(signed)}"

    def _signature(self, signed: str) -> str:
        return _letters(hmac.digest(self._key, signed.encode("utf-8", "replace"), "sha256"))


def _check(name: str, projects: Collection[str] | None, *, what: str = "token") -> None:
    if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise UsageError(f"a {what} needs a name of up to 60 characters", hint="name it after who will use it, as ci or laptop")
    if projects is not None and (len(projects) > _MOST_PROJECTS or not all(each and each.isprintable() for each in projects)):
        raise UsageError("a token reaches named projects, at most 100", hint="leave --project out for all of them")


def _parts(signed: str) -> tuple[str, str, str]:
    match signed.removeprefix(PREFIX).split("."):
        case [id, secret, ends] if signed.startswith(PREFIX):
            return id, secret, ends
        case _:
            return "", "", ""


def _hash(token: str) -> bytes:
    """Return a plain hash, which suffices: a token has 192 random bits and cannot be guessed from it."""
    return hashlib.sha256(token.encode()).digest()


def _letters(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def _listed(values: Collection[str] | None) -> str:
    return json.dumps(None if values is None else sorted(values), ensure_ascii=False)


def _kept(row: tuple[str, str, bytes, int, str, str, int, float, float | None, str]) -> StoredToken:
    id, name, _, write, scopes, projects, local, created, expires, person = row
    scope_names, project_names = json.loads(scopes), json.loads(projects)
    return StoredToken(
        id=id,
        name=name,
        write=bool(write),
        scopes=None if scope_names is None else frozenset(map(Scope, scope_names)),
        projects=None if project_names is None else frozenset(project_names),
        created=datetime.fromtimestamp(created, UTC),
        expires=None if expires is None else datetime.fromtimestamp(expires, UTC),
        local=bool(local),
        person=person,
    )


def _key(file: Path) -> bytes:
    """Return this machine's key, created if needed. Without it, every earlier token counts as forged."""
    for _ in range(2):
        try:
            key = file.read_bytes()
        except FileNotFoundError:
            _publish(file)
            continue
        if len(key) != _KEY_BYTES:
            raise StateDamaged(f"{file} is not a key", hint="move it away; then create all tokens again")
        return key
    raise KiteError(f"cannot keep a key in {file}")


def _publish(file: Path) -> None:
    """Create the key file. If two processes do so at the same time, both use the first one's key."""
    aside = file.with_name(f".kmem-{secrets.token_hex(8)}")
    replace_file(aside, secrets.token_bytes(_KEY_BYTES))
    try:
        file.hardlink_to(aside)
    except FileExistsError:
        pass
    finally:
        aside.unlink()
