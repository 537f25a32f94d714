"""Formatting and reading of log files, the same for every process that writes them."""

import logging
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import get_args

from kite_memory.config import LogLevel

LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)

BACKUPS = 3
LARGEST = 1 << 20
"""Size limit of one log file in bytes. At this size the file is rotated, and the oldest of `BACKUPS` is deleted."""

_HEAD = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z (DEBUG|INFO|WARNING|ERROR|CRITICAL) (\S+) (.*)", re.ASCII)


class OneLine(logging.Formatter):
    """Log formatter that redacts secrets, removes terminal controls and keeps each message on one line.

    Errors may quote untrusted text.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        return " ".join(_fit_to_keep(super().formatMessage(record)).split("\n"))

    def formatException(self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]) -> str:
        return "\n".join(f"  {line}" for line in _fit_to_keep(super().formatException(ei)).split("\n"))


def _fit_to_keep(text: str) -> str:
    from kite_memory.redaction import redact  # its patterns take a moment, and most processes never log
    from kite_memory.text.quoting import plain

    return redact(plain(text))


def dated() -> OneLine:
    """Return the format of log files, which `LogFile` parses."""
    formatter = OneLine("%(asctime)sZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    return formatter


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One log entry. ``text`` holds the message, with a traceback on further lines."""

    at: datetime
    level: LogLevel
    logger: str
    text: str

    def is_at_least(self, level: LogLevel) -> bool:
        return LEVELS.index(self.level) >= LEVELS.index(level)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%dT%H:%M:%S}Z {self.level.upper()} {self.logger} {self.text}"


class LogFile:
    """A log file and its rotated predecessors. It is closed between calls, so that Windows can rename it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._position = 0
        self._identity: tuple[int, int] | None = None

    def entries(self) -> list[LogEntry]:
        """Return all entries, oldest first. `new` continues from here."""
        self._identity, self._position = _identity(self._file), 0
        older = (_text(_numbered(self._file, number)) for number in range(BACKUPS, 0, -1))
        return list(_parsed("".join((*older, self._unread()))))

    def new(self) -> list[LogEntry]:
        """Return the entries written since the last call, even if the file was rotated or truncated in between."""
        identity = _identity(self._file)
        missed = ""
        if identity != self._identity:
            before = _numbered(self._file, 1)
            if self._identity is not None and _identity(before) == self._identity:
                missed = _text(before, self._position)
            self._identity, self._position = identity, 0
        elif identity is not None and self._file.stat().st_size < self._position:
            self._position = 0
        return list(_parsed(missed + self._unread()))

    def _unread(self) -> str:
        """Return the unread whole lines. An incomplete last line is still being written."""
        content = _bytes(self._file, self._position)
        whole = content[: content.rfind(b"\n") + 1]
        self._position += len(whole)
        return whole.decode("utf-8", "replace")


def last(entries: list[LogEntry], *, level: LogLevel, since: datetime | None, most: int) -> list[LogEntry]:
    """Return the newest ``most`` entries of at least ``level`` and not older than ``since``, oldest first."""
    fitting = (entry for entry in entries if entry.is_at_least(level) and (since is None or entry.at >= since))
    return list(deque(fitting, maxlen=most))


def _parsed(text: str) -> Iterator[LogEntry]:
    """Yield the entries in ``text``. Lines before the first head belong to an entry that was rotated away, and are dropped."""
    entry: LogEntry | None = None
    for line in text.split("\n"):
        if match := _HEAD.fullmatch(line):
            if entry is not None:
                yield entry
            entry = _entry(match)
        elif entry is not None and line:
            entry = replace(entry, text=f"{entry.text}\n{line}")
    if entry is not None:
        yield entry


def _entry(match: re.Match[str]) -> LogEntry | None:
    try:
        at = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError:
        return None
    level = match[2].lower()
    return LogEntry(at=at, level=next((each for each in LEVELS if each == level), "error"), logger=match[3], text=match[4])


def _numbered(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _text(file: Path, start: int = 0) -> str:
    return _bytes(file, start).decode("utf-8", "replace")


def _bytes(file: Path, start: int) -> bytes:
    try:
        with file.open("rb") as opened:
            opened.seek(start, os.SEEK_SET)
            return opened.read()
    except FileNotFoundError:
        return b""
