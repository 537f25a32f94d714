"""List which files of the vault are notes, from their names alone."""

import json
import os
import re
import stat
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from kite_memory.errors import VaultMissing
from kite_memory.model.event import Problem
from kite_memory.model.note import Entry
from kite_memory.system.private_files import is_text
from kite_memory.text import lazy_regex
from kite_memory.vault.files import MAX_NOTE_BYTES, OWN_PREFIX, TRASH, CannotRead, Files, stamp_of
from kite_memory.vault.wording import stem_key, words

COPY_REASON = "conflict copy of a sync tool"

_SAYS_SO = lazy_regex(
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
_OF_KMEM_SYNC = lazy_regex(r" \(conflicted copy [a-z0-9-]+-[0-9a-f]{8} \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\)")
"""What `sync.rows.copy_path` puts behind a note's name. It is written once the note itself is there."""
_MAY_SAY_SO = lazy_regex(
    r" (?:[2-9]|[1-9]\d)"  # iCloud
    r"| ?\((?:[1-9]|[1-9]\d)\)"  # Google Drive, MEGA
    r"|-[^\W_][^/]{0,62}"  # OneDrive: the other device's name
)
_BEGINS = lazy_regex(r"[ (-]")
_HELD, _SHARED = 0.8, 0.5


def says_so(name: str) -> str:
    """Return the name of the note of which this file name marks a sync tool's conflict copy; empty for any other file."""
    if name.isascii() and "nfli" not in name.lower():  # what all these marks hold: searching takes longer
        return ""
    found = _SAYS_SO.search(name)
    return name[: found.start()] + name[found.end() :] if found is not None else ""


def may_be_of(path: str, there: Container[str]) -> Iterator[str]:
    """Yield the notes beside it of which a file may be a copy, by its name. People give such names, too."""
    begins = path.rfind("/") + 2
    ends = path.rfind(".")
    for mark in _BEGINS.finditer(path, begins, max(begins, ends)):
        original = path[: mark.start()] + path[ends:]
        if original in there and _MAY_SAY_SO.fullmatch(path, mark.start(), ends):
            yield original


def is_copy_of(id: str, original: str, texts: Callable[[], tuple[str, str]]) -> bool:
    """Return whether a file is a copy of another: by their ids, or by ``texts`` where neither has one."""
    if id or original:
        return id == original
    mine, theirs = map(words, texts())
    shared = len(mine & theirs)
    return shared > 0 and shared >= _HELD * min(len(mine), len(theirs)) and shared >= _SHARED * max(len(mine), len(theirs))


GENERATED = frozenset({"home.md", "review.md", "memory.md", "readme.md"})
"""Pages at the top of the vault that are made from notes, or lead to them, and are not notes themselves."""

_TEMPLATES = "templates"
_MAX_DEPTH = 32
_MAX_TRASHED = 10_000
_EVICTED = lazy_regex(r"\.(.+\.md)\.icloud", re.IGNORECASE)
"""What iCloud leaves in place of a file that it has moved off the disk to save space."""


@dataclass(slots=True, kw_only=True)
class Listing:
    """Files found in the vault.

    ``apart`` are markdown files that exist but are not listed as notes; whatever is below ``unseen`` is unknown.

    ``bare``: the folder is empty; ``marked``: it was opened with Obsidian, or prepared for it.
    """

    entries: list[Entry] = field(default_factory=list)
    apart: set[str] = field(default_factory=set)
    others: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    bare: bool = True
    marked: bool = False

    def sets_apart(self, paths: Collection[str], reason: str) -> None:
        """Take these files out of the notes, and report each as a problem."""
        self.entries = [entry for entry in self.entries if entry.path not in paths]
        self.apart |= set(paths)
        self.problems += (Problem(file=path, position=0, reason=reason) for path in sorted(paths))

    def hides(self, path: str) -> bool:
        """Return whether the file may exist although it is not listed."""
        return path in self.apart or any(not folder or path.startswith(f"{folder}/") for folder in self.unseen)


def listing(files: Files) -> Listing:
    """List the whole vault without opening a note. Raises `VaultMissing` where there is no such folder."""
    found = Listing()
    templates = {_TEMPLATES, _templates_folder(files)}
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            folders += _look_into(files, folder, found, templates)
        except FileNotFoundError:  # moved meanwhile: the next comparison finds it
            found.unseen.append(folder)
        except OSError:
            found.problems.append(Problem(file=folder, position=0, reason="folder cannot be opened"))
            found.unseen.append(folder)
    found.entries.sort(key=lambda entry: entry.path)
    found.problems += _alike(found.entries)
    return found


def is_below_hidden(path: PurePath) -> bool:
    """Return whether a path of the vault, from its root on, is in a folder that `listing` skips, such as `.obsidian` or `.git`."""
    return any(part.startswith(".") for part in path.parts[:-1])


def _alike(entries: Sequence[Entry]) -> Iterator[Problem]:
    """Yield notes whose names are equal on some file systems, where a sync tool may drop all but one."""
    first: dict[str, str] = {}
    for entry in entries:
        if (other := first.setdefault(stem_key(entry.path), entry.path)) != entry.path:
            yield Problem(file=entry.path, position=0, reason=f"name differs from {other} in case or composition alone")


def trashed_notes(files: Files) -> list[str]:
    """Return the notes in the vault's own trash, where Obsidian puts deleted notes, too, if it is set to."""
    try:
        with files.folder(TRASH) as opened, opened.scan() as names:
            found = sorted(name.name for name in names if name.name.lower().endswith(".md") and is_text(name.name))
    except (OSError, VaultMissing):
        return []
    return [f"{TRASH}/{name}" for name in found[:_MAX_TRASHED]]


def leftovers(files: Files, folder: str) -> tuple[str, ...]:
    """Return the temporary files that a crash left in a folder which `listing` does not enter."""
    try:
        with files.folder(folder) as opened, opened.scan() as names:
            return tuple(sorted(f"{folder}/{name.name}" for name in names if name.name.startswith(OWN_PREFIX)))
    except OSError:
        return ()


def _look_into(files: Files, folder: str, found: Listing, templates: set[str]) -> list[str]:
    prefix = f"{folder}/" if folder else ""
    below: list[str] = []
    with files.folder(folder) as opened, opened.scan() as scanned:
        names = sorted(scanned, key=lambda name: name.name)
        if folder and any(name.name == ".obsidian" for name in names):
            found.problems.append(Problem(file=folder, position=0, reason="another vault"))
            found.unseen.append(folder)
            return []
        for name in names:
            path = prefix + name.name
            found.bare = False
            if not is_text(name.name):
                found.problems.append(Problem(file=ascii(path)[1:-1], position=0, reason="file name is not text"))
            elif name.name.startswith(OWN_PREFIX):
                found.leftovers.append(path)
            elif name.name.startswith("."):
                found.marked |= name.name == ".obsidian"
                if evicted := _EVICTED.fullmatch(name.name):
                    found.problems.append(Problem(file=prefix + evicted[1], position=0, reason="not downloaded from iCloud"))
                    found.apart.add(prefix + evicted[1])
            elif name.is_symlink():
                found.problems.append(Problem(file=path, position=0, reason="symbolic link"))
                found.apart.add(path)
                found.unseen.append(path)
            elif not name.is_dir(follow_symlinks=False):
                try:
                    status = name.stat(follow_symlinks=False)
                except FileNotFoundError:  # a file that vanishes must not fail its folder
                    continue
                _file(path, status, found)
            elif path.count("/") >= _MAX_DEPTH:
                found.problems.append(Problem(file=path, position=0, reason="folder nested too deeply"))
                found.unseen.append(path)
            elif stem_key(path) not in templates:
                below.append(path)
    return below


def _file(path: str, status: os.stat_result, found: Listing) -> None:
    name = path.rpartition("/")[2]
    if not name.lower().endswith(".md"):
        found.others.append(path)
        return
    reason = ""
    if not stat.S_ISREG(status.st_mode):
        reason = "not a file"
    elif original := says_so(name):
        reason = COPY_REASON
        if not _OF_KMEM_SYNC.search(name[:-3]):
            found.apart.add(path.removesuffix(name) + original)  # which the sync tool may be about to write
    elif status.st_size > MAX_NOTE_BYTES:
        reason = "larger than 5 MB"
    if reason:
        found.problems.append(Problem(file=path, position=0, reason=reason))
        found.apart.add(path)
    elif path.lower() in GENERATED:
        found.others.append(path)
    else:
        stamp = stamp_of(status)
        found.entries.append(Entry(path, stamp.size, stamp.mtime_ns))


def _templates_folder(files: Files) -> str:
    """Return the folder that Obsidian's template plugin is set to use."""
    try:
        settings = json.loads(files.read(".obsidian/templates.json").data)
    except (OSError, CannotRead, ValueError, RecursionError):
        return _TEMPLATES
    folder = settings.get("folder") if isinstance(settings, dict) else None
    return stem_key(folder.strip("/")) if isinstance(folder, str) and folder.strip("/") else _TEMPLATES
