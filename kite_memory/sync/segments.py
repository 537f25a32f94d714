"""The shared folder: numbered files of rows, each written once by one machine, signed, and read by the others.

``kite-sync/<machine>/<number>.segment`` is signed with the key that the machines of one person share, and encrypted if they
want that. The folder may be a branch of a git repository that is only ever added to.
"""

import base64
import hashlib
import hmac
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kite_memory.errors import KiteError, UsageError
from kite_memory.sync.rows import Malformed, Row, parsed, written
from kite_memory.system.private_files import folders_in, make_folder, names_in, replace_file

_PREFIX = "kmem-sync-"
_SIZE = 32
_MAY_BE = "a key looks like `kmem-sync-…`; `kmem sync --key` shows it on a machine that is in already"


class NotDecrypted(Exception):
    """Raised for what was encrypted for another key, or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SyncKey:
    """``identity`` is an age identity, or empty if nothing is encrypted."""

    secret: bytes
    identity: str = ""

    @classmethod
    def make(cls, *, encrypted: bool) -> "SyncKey":
        identity = str(_pyrage().x25519.Identity.generate()) if encrypted else ""
        return cls(secret=secrets.token_bytes(_SIZE), identity=identity)

    @classmethod
    def parse(cls, text: str) -> "SyncKey":
        """Parse what `text` returned. Raises `UsageError`."""
        secret, _, identity = text.strip().removeprefix(_PREFIX).partition("+")
        try:
            found = base64.b32decode(secret.upper() + "=" * (-len(secret) % 8))
        except ValueError as error:
            raise UsageError("that is not a `kmem sync` key", hint=_MAY_BE) from error
        if len(found) != _SIZE or not text.strip().startswith(_PREFIX):
            raise UsageError("that is not a `kmem sync` key", hint=_MAY_BE)
        if identity:
            _identity(identity)
        return cls(secret=found, identity=identity)

    def text(self) -> str:
        """Return the key as its owner copies it to another machine."""
        secret = base64.b32encode(self.secret).decode().rstrip("=").lower()
        return f"{_PREFIX}{secret}" + (f"+{self.identity}" if self.identity else "")

    def mark(self) -> str:
        """Return a fingerprint of the key that does not reveal it. The shared folder holds it."""
        return hmac.new(self.secret, b"folder", hashlib.sha256).hexdigest()[:32]

    def signature(self, head: bytes, body: bytes) -> str:
        return hmac.new(self.secret, head + b"\n" + body, hashlib.sha256).hexdigest()

    def sealed(self, body: bytes) -> bytes:
        """Return the body encrypted, if this key encrypts."""
        if not self.identity:
            return body
        found: bytes = _pyrage().encrypt(body, [_identity(self.identity).to_public()])
        return found

    def opened(self, body: bytes) -> bytes:
        """Reverse `sealed`. Raises `NotDecrypted`."""
        if not self.identity:
            return body
        try:
            found: bytes = _pyrage().decrypt(body, [_identity(self.identity)])
        except _pyrage().DecryptError as error:
            raise NotDecrypted from error
        return found


def _identity(text: str) -> Any:
    try:
        return _pyrage().x25519.Identity.from_str(text)
    except _pyrage().IdentityError as error:
        raise UsageError("the part of the key that decrypts is damaged", hint=_MAY_BE) from error


def _pyrage() -> Any:
    try:
        import pyrage
    except ImportError as error:
        raise KiteError(
            "encryption needs the package pyrage", hint="install it: `pip install 'kite-memory[age]'`, or with pipx inject"
        ) from error
    return pyrage


BRANCH = "kite-sync"

_REMOTE = re.compile(r"(?:https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")
_SECONDS = 600.0
_ATTEMPTS = 5
_OPTIONS = (
    *("-c", "user.name=Kite Memory", "-c", "user.email=kite-memory@localhost", "-c", "commit.gpgsign=false"),
    *("-c", f"core.hooksPath={os.devnull}", "-c", f"core.attributesFile={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.symlinks=false", "-c", "core.autocrlf=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
)
_SETTINGS = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
_PASSED_ON = frozenset({"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_SSL_CAINFO", "GIT_CONFIG_GLOBAL"})


class _Failed(Exception):
    """A git command failed; the text is the last line that it wrote about it."""


def is_remote(target: str) -> bool:
    """Return whether this is the address of a git repository, not a folder."""
    return _REMOTE.fullmatch(target) is not None


class GitRemote:
    """A clone of one branch, below ``home``."""

    def __init__(self, home: Path, url: str, environment: Mapping[str, str]) -> None:
        if re.match(r"\w+://[^/@]*:[^/@]*@", url):
            raise UsageError("this address holds a password", hint="let git's credential helper keep it")
        self._url = url
        self.folder = home / hashlib.sha256(url.encode()).hexdigest()[:16]
        kept = {name: value for name, value in environment.items() if not name.startswith("GIT_") or name in _PASSED_ON}
        self._environment = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **kept, **_SETTINGS}

    def fetch(self) -> None:
        """Bring the clone up to date; make it at the first time."""
        try:
            if not (self.folder / ".git").is_dir():
                make_folder(self.folder)
                self._git("init", "--quiet", "--template=")
                self._git("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
                self._git("remote", "add", "origin", self._url)
            self._rebase()
        except _Failed as error:
            raise self._error("cannot be read", error) from error

    def exchange(self, write: Callable[[], None]) -> None:
        """Let ``write`` change the folder, then commit and push. Others may push at the same time."""
        write()
        try:
            for left in reversed(range(_ATTEMPTS)):
                self._commit()
                if not self._has_commits():
                    return
                try:
                    self._git("push", "--quiet", "origin", f"HEAD:refs/heads/{BRANCH}")
                    return
                except _Failed:
                    if not left:
                        raise
                self._rebase()
        except _Failed as error:
            raise self._error("cannot be written to", error) from error

    def _rebase(self) -> None:
        """Put what is here on top of what the others have pushed. No two machines write one file."""
        if any((self.folder / ".git" / name).exists() for name in ("rebase-merge", "rebase-apply")):
            self._git("rebase", "--abort")
        (self.folder / ".git" / "index.lock").unlink(missing_ok=True)  # this clone is ours alone, and its lock is held
        self._commit()
        if not self._git("ls-remote", "--heads", "origin", BRANCH).strip():
            return
        self._git("fetch", "--quiet", "origin", f"+refs/heads/{BRANCH}:refs/remotes/origin/{BRANCH}")
        if not self._has_commits():
            self._git("reset", "--quiet", "--hard", f"refs/remotes/origin/{BRANCH}")
            return
        try:
            self._git("rebase", "--quiet", f"refs/remotes/origin/{BRANCH}")
        except _Failed:
            self._git("rebase", "--abort")
            raise

    def _commit(self) -> None:
        self._git("add", "--all", "--force", ".")
        if self._git("status", "--porcelain").strip():
            self._git("commit", "--quiet", "--no-verify", "--message", "Sync")

    def _has_commits(self) -> bool:
        try:
            self._git("rev-parse", "--quiet", "--verify", "HEAD")
        except _Failed:
            return False
        return True

    def _git(self, *words: str) -> str:
        environment = {**self._environment, "GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        try:
            ran = subprocess.run(
                ["git", *_OPTIONS, *words],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            raise KiteError("git is not installed", hint="install it, or share a folder instead") from error
        except subprocess.TimeoutExpired as error:
            raise _Failed("git took too long") from error
        if ran.returncode:
            lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
            raise _Failed(lines[-1][:200] if lines else "git failed")
        return ran.stdout.decode("utf-8", "replace")

    def _error(self, what: str, error: _Failed) -> KiteError:
        hint = f"try it by hand: git ls-remote {self._url}; the daemon may lack your ssh agent: `kmem down` first, then sync"
        return KiteError(f"{self._url} {what}: {error}", hint=hint)


FOLDER = "kite-sync"
_FORMAT = "kite-sync-1"
_KEY_MARK = "key"
_SUFFIX = ".segment"
_NAME = re.compile(r"(\d{8})\.segment")
_MACHINE = re.compile(r"[a-z0-9-]{1,24}-[0-9a-f]{8}")
_MOST_BYTES = 64 * 1024 * 1024
_MOST_UNPACKED = 256 * 1024 * 1024
MOST_MACHINES = 256

ROWS_BYTES = 4 * 1024 * 1024
"""About how much one segment holds, before compression."""


class NotWhole(Exception):
    """Raised for a segment that is not as one of this person's machines wrote it: damaged, incomplete, or a stranger's."""


def new_machine(name: str) -> str:
    """Return an id for this machine that begins like its name."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.partition(".")[0].lower()).strip("-")[:24].strip("-")
    return f"{plain or 'machine'}-{secrets.token_hex(4)}"


def pack(rows: Iterable[Row], *, key: SyncKey, machine: str, number: int) -> bytes:
    """Return the content of a segment."""
    body = key.sealed(_zstd().compress(b"".join(map(written, rows))))
    head = f"{_FORMAT} {machine} {number}".encode()
    return head + b" " + key.signature(head, body).encode() + b"\n" + body


def unpack(content: bytes, *, key: SyncKey, machine: str, number: int) -> tuple[list[Row], int]:
    """Return the rows of a segment, and how many more are malformed, which must not stop all others. Raises `NotWhole`."""
    import hmac

    first, newline, body = content.partition(b"\n")
    head = f"{_FORMAT} {machine} {number}".encode()
    named, _, signature = first.rpartition(b" ")
    if not newline or named != head or not hmac.compare_digest(signature, key.signature(head, body).encode()):
        raise NotWhole
    try:
        lines = _unpacked(key.opened(body)).splitlines()
    except NotDecrypted as error:
        raise NotWhole from error
    rows: list[Row] = []
    for line in lines:
        with suppress(Malformed):
            rows.append(parsed(line))
    return rows, len(lines) - len(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFolder:
    """The shared folder ``root`` with every machine's segments, which a sync tool or git copies between them."""

    root: Path

    @property
    def _home(self) -> Path:
        return self.root / FOLDER

    def key_mark(self) -> str:
        """Return the mark of the key that is used here; empty in a new folder."""
        try:
            return (self._home / _KEY_MARK).read_bytes()[:64].decode("ascii", "replace").strip()
        except FileNotFoundError:
            return ""

    def claim(self, key: SyncKey) -> None:
        make_folder(self._home)
        replace_file(self._home / _KEY_MARK, key.mark().encode() + b"\n")

    def machines(self) -> list[str]:
        """Return the machines by name, at most `MOST_MACHINES`; `passed_over` is how many more there are."""
        return self._found()[:MOST_MACHINES]

    def passed_over(self) -> int:
        return max(0, len(self._found()) - MOST_MACHINES)

    def _found(self) -> list[str]:
        return [folder.name for folder in folders_in(self._home) if _MACHINE.fullmatch(folder.name)]

    def numbers(self, machine: str) -> list[int]:
        """Return the numbers of a machine's segments, in order."""
        return sorted(int(found[1]) for name in names_in(self._home / machine) if (found := _NAME.fullmatch(name)))

    def content(self, machine: str, number: int) -> bytes:
        """Return a segment's content, still signed and encrypted. Raises `NotWhole` if it is too large or not a file."""
        path = self._path(machine, number)
        if path.is_symlink() or not path.is_file():
            raise NotWhole
        with path.open("rb") as file:
            found = file.read(_MOST_BYTES + 1)
        if len(found) > _MOST_BYTES:
            raise NotWhole
        return found

    def rows(self, machine: str, number: int, key: SyncKey) -> tuple[list[Row], int]:
        """Return the rows of a segment, and how many more are malformed. Raises `NotWhole`."""
        return unpack(self.content(machine, number), key=key, machine=machine, number=number)

    def put(self, machine: str, number: int, content: bytes) -> None:
        """Write a segment; a repeat changes nothing."""
        path = self._path(machine, number)
        make_folder(path.parent)
        replace_file(path, content)

    def size(self, machine: str) -> int:
        return sum(self._path(machine, number).stat().st_size for number in self.numbers(machine))

    def _path(self, machine: str, number: int) -> Path:
        return self._home / machine / f"{number:08}{_SUFFIX}"


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Divide rows into segments."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(written(row))
        if size >= ROWS_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _unpacked(data: bytes) -> bytes:
    zstd = _zstd()
    try:
        unpacker = zstd.ZstdDecompressor()
        found: bytes = unpacker.decompress(data, max_length=_MOST_UNPACKED)
    except zstd.ZstdError as error:
        raise NotWhole from error
    if not unpacker.eof or unpacker.unused_data:
        raise NotWhole
    return found


@cache
def _zstd() -> Any:
    """Import zstd on first use."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def refuse_nested(root: Path, state: Path) -> None:
    """Raise `KiteError` if the folder to be shared is inside the state folder, or holds it: databases must not be synchronized."""
    target, home = root.resolve(), state.resolve()
    if target == home or target in home.parents or home in target.parents:
        raise KiteError(f"{root} and the state folder {state} lie in each other", hint="name another folder to share")
