"""Anchors of notes to code: the files a note depends on, whether they have changed since, and the branch it holds for."""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from kite_memory.errors import KiteError
from kite_memory.model.event import Event, EvidenceReference, Session
from kite_memory.model.note import Chunk, Note, NoteKind, NoteStatus, Scope
from kite_memory.projects import USUAL, branch_of, merged, project_of, repository_around, repository_of
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Draft

_MOST = 4
_LARGEST = 1 << 20
_DIGITS = 12
_FRESH = timedelta(hours=12)
"""Longest age of a chunk for anchors. For older ones, the files' content at that time is unknown."""
_OF_A_BRANCH = frozenset({NoteKind.DECISION, NoteKind.FACT})
"""Kinds of notes that depend on whether a branch is merged. Preferences and histories do not."""
_LET_GO = timedelta(days=30)
"""Age at which a note loses its branch. A branch not merged by then is mostly squashed or abandoned."""
_TEXT = 20_000
_NAMED = re.compile(r"[\w.@+-]+(?:[/\\][\w.@+-]+)*\.\w{1,8}\b")
_LOOKED_AT = 60
_MOST_ON_BRANCHES = 300
_FOLDERS = 200
_EVERY = 600.0
_AT_REST = 60.0


class SessionFolders(Protocol):
    def get(self, provider: str, id: str) -> Session | None:
        """Same as `timeline.summaries.Sessions.get`."""
        ...

    def folders(self, project: str | None = None) -> list[str]:
        """Same as `timeline.summaries.Sessions.folders`."""
        ...


def anchored(drafts: Sequence[Draft], chunk: Chunk, now: datetime) -> list[Draft]:
    """Return the drafts with the files that their evidence touched or named, as these are now, and with their branch.

    Drafts of a chunk older than twelve hours are returned unchanged.
    """
    if not drafts or not chunk.events or now - chunk.events[-1].at > _FRESH:
        return list(drafts)
    events = {event.id: event for event in chunk.events}
    return [replace(draft, note=_anchored(draft.note, events, chunk)) for draft in drafts]


def _anchored(note: Note, events: Mapping[str, Event], chunk: Chunk) -> Note:
    branch = chunk.session.branch
    if branch in ("", "HEAD", *USUAL) or note.kind not in _OF_A_BRANCH or note.scope is not Scope.PROJECT:
        branch = ""
    root = folder_of(chunk.session.cwd)
    if root is None:
        return replace(note, branch=branch)
    evidence = [
        event
        for text in note.evidence
        if (reference := EvidenceReference.parse(text)) is not None
        for event in events.values()
        if event.id.startswith(reference.event)
    ]
    said = f"{note.title}\n{note.body}"[:_TEXT]
    anchors: dict[str, str] = {}
    for path in _paths(evidence, said):
        inside = within(root, path)
        if inside is not None and inside not in anchors and (found := digest_of(root / inside)):
            anchors[inside] = found
            if len(anchors) == _MOST:
                break
    return replace(note, branch=branch, anchors=tuple(f"{path}@{found}" for path, found in anchors.items()))


def _paths(evidence: Sequence[Event], said: str) -> Iterator[str]:
    """Yield the files that the evidence touched, then those that both the evidence and the note name."""
    for event in evidence:
        if event.path:
            yield event.path
    for event in evidence:
        for found in _NAMED.finditer(event.text[:_TEXT]):
            if found.group() in said:
                yield found.group()


def folder_of(cwd: str) -> Path | None:
    if not cwd or "\0" in cwd or cwd.startswith(("\\\\", "//")) or not Path(cwd).is_absolute():
        return None
    try:
        return Path(cwd).resolve(strict=True)
    except OSError:
        return None


def within(root: Path, path: str) -> str | None:
    """Return the file's path relative to ``root``, with ``/``. ``None`` if it lies outside, is no file, or is in ``.git``."""
    if "\0" in path or "@" in path or len(path) > 1_000:
        return None
    try:
        found = (root / path).resolve(strict=True).relative_to(root)
        return found.as_posix() if (root / found).is_file() and ".git" not in found.parts else None
    except (OSError, ValueError, RuntimeError):
        return None


def digest_of(file: Path) -> str:
    """Return the digest of a file's content, or an empty string if it cannot be read or is larger than 1 MiB."""
    try:
        if file.stat().st_size > _LARGEST:
            return ""
        return hashlib.sha256(file.read_bytes()).hexdigest()[:_DIGITS]
    except OSError:
        return ""


def has_drifted(note: Note, root: Path) -> bool:
    """Return whether a file that the note is anchored to has changed or is gone."""
    for anchor in note.anchors[:_MOST]:
        path, _, digest = anchor.rpartition("@")
        inside = within(root, path)
        if path and len(digest) == _DIGITS and (inside is None or digest_of(root / inside) != digest):
            return True
    return False


class CodeAnchors:
    """Periodic check of notes against their anchored files and branches, while agents are idle.

    Each round checks some notes and continues where the last one ended. Notes that wait for a merge are checked first, up to 300 a
    round.
    """

    def __init__(
        self,
        *,
        vault: Vault,
        sessions: SessionFolders,
        refresh: Callable[[set[str]], object],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vault = vault
        self._sessions = sessions
        self._refresh = refresh
        self._lock = vault.lock
        self._clock = clock
        self._monotonic = monotonic
        self._after = ""
        self._after_on_branches = ""
        self._next = 0.0
        self._merged: dict[tuple[str, str, str], bool] = {}
        self._repositories: dict[str, list[str]] = {}

    def maintain(self, *, quiet_for: float) -> list[str]:
        """Run a round if one is due, and return the paths of the notes that were marked."""
        if quiet_for < _AT_REST or self._monotonic() < self._next or self._vault.scanner.frozen:
            return []
        self._next = self._monotonic() + _EVERY
        self._merged.clear()
        self._repositories.clear()
        on_branches, self._after_on_branches = _ahead(self._vault.known.on_branches(), self._after_on_branches, _MOST_ON_BRANCHES)
        paths = [known.path for known in self._vault.known.all() if known.id and not known.duplicate and not known.problem]
        ahead, self._after = _ahead(paths, self._after, _LOOKED_AT)
        marked = [path for path in dict.fromkeys((*on_branches, *ahead)) if self._look_at(path)]
        if marked:
            self._refresh(set(marked))
        return marked

    def _look_at(self, path: str) -> bool:
        try:
            note = self._vault.notes.read(path)
            if note is None or not (note.anchors or note.branch) or note.status is NoteStatus.REJECTED:
                return False
            session = next((each for each in map(self._session, note.evidence) if each is not None and each.cwd), None)
            cwd = session.cwd if session is not None else ""
            drifted = note.drifted is not None
            if session is not None and self._is_comparable(note, session):
                drifted = has_drifted(note, Path(cwd).resolve())
            changes = self._changes(note, cwd, drifted=drifted)
            marks = drifted != (note.drifted is not None)
            if not (changes or marks):
                return False
            with self._lock:
                if marks:
                    today = self._clock().replace(hour=0, minute=0, second=0, microsecond=0)
                    self._vault.edits.mark_drift(note.id, today if drifted else None)
                return (bool(changes) and self._vault.edits.annotate(note.id, changes)) or marks
        except KiteError:
            return False  # the vault is missing or read-only: the next round tries again

    def _changes(self, note: Note, cwd: str, *, drifted: bool) -> dict[str, object]:
        """Return the changes to the note's properties. Earlier versions wrote ``drifted`` into the file."""
        changes: dict[str, object] = {"drifted": ""} if note.drifted is not None and not drifted else {}
        if note.branch and (self._clock() - note.created > _LET_GO or self._is_merged(cwd, note.project, note.branch)):
            changes["branch"] = ""
        return changes

    def _session(self, text: str) -> Session | None:
        reference = EvidenceReference.parse(text)
        return self._sessions.get(reference.provider, reference.session) if reference is not None else None

    def _is_comparable(self, note: Note, session: Session) -> bool:
        """Return whether the note's files can be compared with the checkout.

        They can if the note's branch is checked out, or the trunk into which it is merged.
        """
        if not note.anchors or folder_of(session.cwd) is None:
            return False
        if repository_of(session.cwd) is None:
            return True
        head, own = branch_of(session.cwd), note.branch or session.branch
        if head == own:
            return bool(head)
        if head not in USUAL or own in USUAL or note.branch:
            return False
        return own in ("", "HEAD") or self._is_merged(session.cwd, note.project, own)

    def _is_merged(self, cwd: str, project: str, branch: str) -> bool:
        """Return whether git finds the branch merged in the session's folder.

        If that folder is gone, in all existing repositories of its project.
        """
        asked = (cwd, project, branch)
        if asked not in self._merged:
            found = merged(cwd, branch, os.environ) if folder_of(cwd) is not None else None
            if found is None:
                answers = [merged(each, branch, os.environ) for each in self._living(cwd, project)]
                known = [each for each in answers if each is not None]
                found = bool(known) and all(known)
            self._merged[asked] = found
        return self._merged[asked]

    def _living(self, cwd: str, project: str) -> list[str]:
        """Return an existing folder in each repository of the project. A deleted folder may have been inside an existing one."""
        if not project:
            return []
        if project not in self._repositories:
            self._repositories[project] = [each for each in self._sessions.folders(project) if folder_of(each) is not None][
                :_FOLDERS
            ]
        found: dict[Path, str] = {}
        for folder in (cwd, *self._repositories[project]):
            repository = repository_around(folder, home=Path.home()) if project_of(folder) == project else None
            if repository is not None:
                found.setdefault(repository.kept, folder if folder_of(folder) is not None else str(repository.folder))
        return list(found.values())


def _ahead(paths: Sequence[str], after: str, most: int) -> tuple[list[str], str]:
    """Return the next ``most`` paths after ``after`` in order, and where to continue; empty to start again at the beginning."""
    ahead = sorted(path for path in paths if path > after)[:most]
    return ahead, ahead[-1] if len(ahead) == most else ""
