"""API keys of external services: found in the environment, the system's keyring, or the key file.

Never read from a repository's ``.env`` or the working folder, since the user has not chosen what a project contains. A key's value
leaves this module only for the call it is for; messages show only its last four characters.
"""

import importlib
import json
import os
import stat
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args

from kite_memory.errors import KiteError, UsageError
from kite_memory.system.private_files import make_folder, replace_file

KeyName = Literal["anthropic", "voyage", "openai", "team", "team-token"]
Place = Literal["environment", "keyring", "file"]

VARIABLES: Mapping[KeyName, str] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "voyage": "VOYAGE_API_KEY",
    "openai": "OPENAI_API_KEY",
    "team": "PGPASSWORD",
    "team-token": "KMEM_TEAM_TOKEN",
}

_SERVICE = "kite-memory"
_LONGEST_FILE = 1 << 16
_LONGEST_KEY = 4096
_PATIENCE = 5.0
_SHOWN = 4


_Answer = TypeVar("_Answer")


class KeyFileUnsafe(KiteError):
    """The key file is readable or writable by other users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    name: KeyName
    value: str = field(repr=False)
    place: Place

    @property
    def shown(self) -> str:
        """The key's printable form: its last four characters, or none for a short key."""
        return f"…{self.value[-_SHOWN:]}" if len(self.value) >= 4 * _SHOWN else "…"


class Keyring(Protocol):
    """The part of the `keyring` package that is used. Backends may raise any exception or hang."""

    def get_password(self, service: str, name: str, /) -> str | None: ...

    def set_password(self, service: str, name: str, value: str, /) -> None: ...

    def delete_password(self, service: str, name: str, /) -> None: ...


class Keys:
    """Keys of one user, and where they are stored.

    ``patience`` limits each call to the keyring, in seconds, since the keyring may wait for an absent user.
    """

    def __init__(self, file: Path, environment: Mapping[str, str], keyring: Keyring | None, *, patience: float = _PATIENCE) -> None:
        self._file = file
        self._environment = environment
        self._keyring = keyring
        self._patience = patience

    def find(self, name: KeyName) -> Key | None:
        """Return the key from the environment, else the keyring, else the file.

        Raises `KeyFileUnsafe` if the file is owned by or readable by others.
        """
        if value := self._environment.get(VARIABLES[name], "").strip():
            return Key(name=name, value=value, place="environment")
        if value := self._in_keyring(name):
            return Key(name=name, value=value, place="keyring")
        if value := self._in_file().get(name, ""):
            return Key(name=name, value=value, place="file")
        return None

    def where(self, name: KeyName) -> Place | None:
        found = self.find(name)
        return found.place if found else None

    def set(self, name: KeyName, value: str) -> Key:
        """Store a key in the keyring if a working one exists, else in the file; never in both.

        Raises `UsageError` if the value cannot be a key.
        """
        value = value.strip()
        if not _may_be(name, value):
            raise UsageError(
                "that does not look like a key", hint="paste it as the service shows it, on one line and without quotes"
            )
        known = self._in_file()
        keyring = self._keyring
        if keyring is not None:
            self._ask(lambda: keyring.set_password(_SERVICE, name, value))
            if self._in_keyring(name) == value:
                if known.pop(name, None):
                    self._write(known)
                return Key(name=name, value=value, place="keyring")
        self._write({**known, name: value})
        return Key(name=name, value=value, place="file")

    def remove(self, name: KeyName) -> tuple[Place, ...]:
        """Remove a key from keyring and file, and return where it was found.

        A key in the environment is not removed: `where` still returns it afterwards.
        """
        removed: list[Place] = []
        keyring = self._keyring
        if keyring is not None and self._in_keyring(name):
            if not _in_time(lambda: keyring.delete_password(_SERVICE, name), self._patience):
                raise KiteError("the system's keyring did not delete the key", hint="it is filed there under kite-memory")
            removed.append("keyring")
        known = self._in_file()
        if known.pop(name, None):
            self._write(known)
            removed.append("file")
        return tuple(removed)

    def _in_keyring(self, name: KeyName) -> str:
        keyring = self._keyring
        found = None if keyring is None else self._ask(lambda: keyring.get_password(_SERVICE, name))
        return found.strip() if isinstance(found, str) else ""

    def _ask(self, question: Callable[[], _Answer]) -> _Answer | None:
        """Call the keyring, and use it no more if it fails or hangs."""
        match _in_time(question, self._patience):
            case [answer]:
                return answer
            case _:
                self._keyring = None
                return None

    def _in_file(self) -> dict[str, str]:
        try:
            with self._file.open("rb") as file:
                _refuse_if_open_to_others(file.fileno(), self._file)
                table = tomllib.loads(file.read(_LONGEST_FILE).decode("utf-8-sig"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise KiteError(f"cannot read {self._file}: {error.strerror}", hint="see who owns it, or move it away") from error
        except (ValueError, RecursionError):  # its message would quote the line, and with it the key
            raise KiteError(f"{self._file} is not valid TOML", hint="remove it, and `kmem keys set` writes it anew") from None
        return {name: value.strip() for name, value in table.items() if isinstance(value, str)}

    def _write(self, table: Mapping[str, str]) -> None:
        lines = [f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in sorted(table.items())]
        try:
            make_folder(self._file.parent)
            replace_file(self._file, ("# Written by `kmem keys set`. It is a secret.\n" + "".join(lines)).encode())
        except OSError as error:
            raise KiteError(f"cannot write {self._file}: {error.strerror}") from error


def _may_be(name: KeyName, value: str) -> bool:
    """Return whether a value can be a key.

    A password can be any printable text. A key is one ASCII word, not quoted and not written as ``NAME=value``.
    """
    if not value or len(value) > _LONGEST_KEY or not value.isprintable():
        return False
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'`"
    return name == "team" or not (quoted or not value.isascii() or " " in value or value.startswith(f"{VARIABLES[name]}="))


def key_name(text: str) -> KeyName:
    """Return the key with that name or environment variable. Raises `UsageError` for an unknown service."""
    for name in get_args(KeyName):
        if text.lower() == name or text == VARIABLES[name]:
            known: KeyName = name
            return known
    raise UsageError(f"unknown key {text!r}", hint=f"known ones are: {', '.join(get_args(KeyName))}")


def key_file(config_file: Path) -> Path:
    """Return the path of the key file: beside the configuration, which people share, not in it."""
    return config_file.with_name("keys.toml")


def keys_beside(config_file: Path, environment: Mapping[str, str] = os.environ) -> Keys:
    """Return the keys from the environment, the system's keyring and the key file beside ``config_file``."""
    return Keys(key_file(config_file), environment, system_keyring())


def put(name: str, value: str, config_file: Path) -> str:
    """Store a key and return a message about where it is kept."""
    key = keys_beside(config_file).set(key_name(name), value)
    kept_in = "the system's keyring" if key.place == "keyring" else key_file(config_file)
    return f"the {key.name} key {key.shown} is kept in {kept_in}"


def remove(name: str, config_file: Path) -> str:
    """Remove a key and return a message that also reports one still set in the environment."""
    known = key_name(name)
    kept = keys_beside(config_file)
    places = kept.remove(known)
    done = f"the {known} key is removed from the {' and the '.join(places)}" if places else f"no {known} key was kept"
    return f"{done}; {VARIABLES[known]} is still set" if kept.where(known) == "environment" else done


def listing(config_file: Path) -> Iterator[str]:
    """Yield one line for each known service."""
    kept = keys_beside(config_file)
    for name in VARIABLES:
        key = kept.find(name)
        yield f"{name}: {key.shown} ({key.place})" if key else f"{name}: none"


def system_keyring() -> Keyring | None:
    """Return the `keyring` package if it is installed and has a backend that stores anything."""

    def load() -> Keyring | None:
        try:
            keyring: Any = importlib.import_module("keyring")
        except ImportError:
            return None
        found: Keyring | None = keyring if keyring.get_keyring().priority > 0 else None
        return found

    return next(iter(_in_time(load, _PATIENCE)), None)


def _in_time(question: Callable[[], _Answer], patience: float) -> list[_Answer]:
    """Return the answer in a list, or an empty list if the call fails or takes longer than ``patience`` seconds."""
    found: list[_Answer] = []

    def run() -> None:
        try:
            found.append(question())
        except Exception:  # noqa: BLE001, S110 - the edge of a thread: backends raise what their bus raises, and any failure means no keyring
            pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(patience)
    return found[:]


def _refuse_if_open_to_others(handle: int, path: Path) -> None:
    if sys.platform == "win32":
        return
    status = os.fstat(handle)
    if status.st_uid != os.getuid():
        raise KeyFileUnsafe(f"{path} belongs to another user", hint="remove it, and set the key again")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise KeyFileUnsafe(f"{path} can be read by others", hint=f"chmod 600 {path}; if others use this machine, replace the key")
