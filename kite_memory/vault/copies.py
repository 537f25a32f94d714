"""Copies that sync tools make where two devices have changed one note: told by their names, and where those do not tell, by ids."""

import re
from collections.abc import Callable, Container, Iterator

from kite_memory.vault.wording import words

REASON = "conflict copy of a sync tool"

_SAYS_SO = re.compile(
    r"\.sync-conflict-\d{8}-\d{6}(?:-\w{1,16})?"  # Syncthing
    r"|[ _]?\((?:[^()]*\b)?(?:"
    r"conflicted copy|case conflict|selective sync conflict|unicode encoding conflict"  # Dropbox, Nextcloud, Obsidian Sync
    r"|in konflikt stehende kopie|copie en conflit|copia en conflicto|copia in conflitto|cópia em conflito|conflicterende kopie"
    r")\b[^()]*\)"
    r"|_conflict-\d{8}-\d{6}"  # ownCloud
    r"|_[^_/]{1,64}_[A-Z][a-z]{2}-\d\d-\d{6}-\d{4}_Conflict"  # Synology Drive
    r"|\.Conflict(?=\.md$)"  # Resilio Sync
    r"| ?\[conflicted\]"  # pCloud
    r"| ?\(SFConflict [^()]*\)",  # Seafile
    re.IGNORECASE,
)
_MAY_SAY_SO = re.compile(
    r" (?:[2-9]|[1-9]\d)"  # iCloud
    r"| ?\((?:[1-9]|[1-9]\d)\)"  # Google Drive, MEGA
    r"|-[^\W_][^/]{0,62}"  # OneDrive: the other device's name
)
_BEGINS = re.compile(r"[ (-]")
_HELD, _SHARED = 0.8, 0.5


def says_so(name: str) -> str:
    """What the note is called of which a file of this name surely is such a copy; empty for any other file."""
    found = _SAYS_SO.search(name)
    return name[: found.start()] + name[found.end() :] if found is not None else ""


def may_be_of(path: str, there: Container[str]) -> Iterator[str]:
    """The notes beside it of which a file may be a copy, by its name: people give such names, too."""
    begins = path.rfind("/") + 2
    ends = path.rfind(".")
    for mark in _BEGINS.finditer(path, begins, max(begins, ends)):
        original = path[: mark.start()] + path[ends:]
        if original in there and _MAY_SAY_SO.fullmatch(path, mark.start(), ends):
            yield original


def is_copy(id: str, original: str, texts: Callable[[], tuple[str, str]]) -> bool:
    """Of a file that may be one, and of what it may be a copy of: by their ids, or by ``texts`` where neither has one."""
    if id or original:
        return id == original
    mine, theirs = map(words, texts())
    shared = len(mine & theirs)
    return shared > 0 and shared >= _HELD * min(len(mine), len(theirs)) and shared >= _SHARED * max(len(mine), len(theirs))
