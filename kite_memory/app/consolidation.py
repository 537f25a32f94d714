"""Consolidation of the vault step by step, and undo of the last one for all files that were not edited since."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Literal, assert_never

from kite_memory.app.vault_pages import VaultPages
from kite_memory.errors import KiteError, StateDamaged, StateNotWritten, VaultMissing
from kite_memory.model.event import EventType, EvidenceReference
from kite_memory.model.note import REVIEW_SPLIT, Create, Note, NoteKind
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.system.git import Git, GitFailed
from kite_memory.system.private_files import make_private_folder, replace_file, sync_file
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.summaries import Sessions
from kite_memory.vault import Vault, consolidation
from kite_memory.vault.consolidation import Archive, Day, EntityLinks, FileRewrite, Fold, Lapse, Merge, Split, Step, Worked
from kite_memory.vault.drafting import division, part_notes, remainder
from kite_memory.vault.memory_page import PAGE
from kite_memory.vault.notefile import FOLDERS, REVIEW
from kite_memory.vault.usefulness import NoteUse, is_junk
from kite_memory.vault.wording import digest
from kite_memory.vault.writing import AlreadyWritten, Written

_AUTHOR = ("-c", "user.name=Kite Memory", "-c", "user.email=kite-memory@localhost", "-c", "commit.gpgSign=false")
_EVERYTHING = ("--", ".", ":(exclude,top).trash", ":(exclude,glob,top)**/.kmem-*")


def commit(vault: Path, message: str, environment: Mapping[str, str]) -> str:
    """Commit the vault's changes and return a message about it, empty if nothing changed.

    No hook is run, nothing is pushed, and a repository around the vault is not used.
    """
    git = Git(environment)
    try:
        if not (vault / ".git").exists():
            if any((folder / ".git").exists() for folder in vault.parents):
                return "not committed: the vault is inside another repository"
            git.ask(vault, ["init", "--quiet", "--template="])
        git.ask(vault, ["add", "--all", *_EVERYTHING])
        if not git.ask(vault, ["diff", "--cached", "--name-only", "-z"]):
            return ""
        git.ask(vault, [*_AUTHOR, "commit", "--quiet", "--no-verify", "--message", message])
        return "committed"
    except GitFailed as error:
        return f"not committed: {error}"


Json = dict[str, Any]

log = logging.getLogger("kite_memory.app.consolidation")

_VERSION = 1
_MONTHS = 6
_EVERY = timedelta(hours=20)
_SPLIT = "split proposed: "
_LAST = "consolidated"
_WAITING, _ARCHIVED = "waiting since", "archived with"
_OPENING, _OPENING_AMONG = 400, 40
"""Characters of a session's first prompt, and the events among which it is looked for."""
_UNDONE, _MOST_UNDONE, _LARGEST_UNDONE = timedelta(days=30), 30, 20_000_000
"""How long consolidations can be undone, at most how many, and the bytes of their records."""
_AT_REST = 900.0
_OVERDUE, _OVERDUE_AT_REST = timedelta(days=3), 60.0
"""After so long, a shorter time without activity is enough to consolidate."""
_LET_GO = "delete it; what was done then stays done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A step that was carried out. ``pair`` holds the two merged notes, ``made`` the paths of new files."""

    changes: tuple[FileRewrite, ...]
    made: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    steps: tuple[Done, ...]
    page_before: str
    page_after: str
    noted: str
    at: str


def use_of_notes(sessions: Sessions, memory: SessionMemory) -> Callable[[Note], NoteUse]:
    """Return a function that gives when a note was last shown, used, and confirmed by another session."""
    shown, used = memory.report.last_shown(), memory.report.last_shown(used=True)

    def use(note: Note) -> NoteUse:
        found = filter(None, map(EvidenceReference.parse, note.evidence))
        cited = {(one.provider, one.session) for one in found}
        said = max((state.quiet_since for state in sessions.states_of(list(cited))), default=None)
        return NoteUse(
            shown=shown.get(note.id),
            used=used.get(note.id),
            said=datetime.fromtimestamp(said, UTC) if said is not None and len(cited) > 1 else None,
        )

    return use


def worked_on(timeline: Timeline) -> list[Worked]:
    """Return the sessions in which a person typed, for the journal; without what was forgotten."""
    found: list[Worked] = []
    for page in timeline.sessions.pages():
        for session in (state.session for state in page if not state.session.parent):
            events = timeline.events.offered(timeline.events.of_session(session.provider, session.id, limit=_OPENING_AMONG))
            first = next((event for event in events if event.type is EventType.USER_MESSAGE and event.text.strip()), None)
            if first is not None:
                name = f"{session.provider}:{session.id}"
                opening = first.text[:_OPENING]
                found.append(Worked(session=name, at=session.started, project=session.project, opening=opening))
    return found


class Consolidation:
    """Consolidation of one vault. Thread-safe.

    Each is recorded in ``folder``, step by step before it is carried out, so that the last ones can be undone. With ``daily``, a
    page is kept of each day that is over; ``worked_on`` returns the sessions that it names.
    """

    def __init__(
        self,
        *,
        vault: Vault,
        refresh: Callable[[set[str]], object],
        pages: VaultPages,
        folder: Path,
        clock: Callable[[], datetime],
        committed: Callable[[str], str] = lambda message: "",
        used: Callable[[], Callable[[Note], NoteUse]] = lambda: lambda note: NoteUse(),
        worked_on: Callable[[], Sequence[Worked]] = lambda: (),
        daily: bool = False,
        zone: tzinfo | None = None,
    ) -> None:
        self._vault = vault
        self._refresh = refresh
        self._pages = pages
        self._file = folder / "consolidated.json"
        self._lock = vault.lock
        self._clock = clock
        self._committed = committed
        self._used = used
        self._worked_on = worked_on
        self._daily = daily
        self._zone = zone

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"consolidate": self.consolidate, "undo": self.undo}

    def consolidate(self, *, dry_run: bool = False, months: int = _MONTHS) -> Json:
        """Carry out all steps that are due; only list them with ``dry_run``.

        Journals older than ``months`` are folded into their archive.
        """
        with self._lock:
            planned = self._planned(max(1, months))
            listed = [dict(zip(("doing", "path", "why"), consolidation.step_key(step), strict=True)) for step in planned]
            if dry_run:
                page = self._page_would_change()
                return {"steps": listed, "page": page, "done": 0, "left_alone": [], "git": "", "weak": self._weak()}
            done: list[Done] = []
            left: list[str] = []
            begun = False
            for place, step in enumerate(planned):
                found = self._ready(step)
                if found is not None:
                    begun = begun or self._begin()
                    self._note(place, found)
                if found is None or not self._carry_out(step, found):
                    left.append(consolidation.step_key(step)[1])
                    continue
                done.append(self._as_made(found))
                if found.made:
                    self._note(place, done[-1])
            touched = {change.path for each in done for change in each.changes}
            if touched:
                self._refresh(touched)
            page = self._page_would_change() and self._rewrite_page()
            if page and begun:
                self._append({"page_after": self._vault.pages.read(PAGE)})
            self._vault.pages.note_down(_LAST, self._clock().isoformat())
            message = f"Consolidate: {len(done)} {'step' if len(done) == 1 else 'steps'}"
            git = self._committed(message)
            return {"steps": listed, "page": page, "done": len(done), "left_alone": left, "git": git, "weak": []}

    def undo(self, *, dry_run: bool = False) -> Json:
        """Undo the last consolidation; called again, the one before it.

        A step with a note that was edited since is left as it is; so is the page. With ``dry_run`` the result says what would be
        done.
        """
        with self._lock:
            kept = self._kept()
            if dry_run:
                return self._to_undo(kept)
            if kept is None:
                return {"undone": 0, "left_alone": [], "page": False, "git": ""}
            left: list[str] = []
            undone = 0
            touched: set[str] = set()
            for each in reversed(kept.steps):
                taken_back = self._take_back(each)
                paths = [change.path for change in each.changes]
                if taken_back is None:
                    left += paths
                elif taken_back:
                    undone += 1
                    touched.update(paths)
            if touched:
                self._refresh(touched)
            page = self._pages.restore(before=kept.page_before, after=kept.page_after, noted=kept.noted)
            self._write_records(self._records()[:-1])
            git = self._committed("Undo the last consolidation") if undone or page else ""
            return {"undone": undone, "left_alone": left, "page": page, "git": git}

    def _to_undo(self, kept: _Kept | None) -> Json:
        if kept is None:
            return {"at": "", "steps": [], "left_alone": [], "page": False}
        steps: list[list[Json]] = []
        left: list[str] = []
        later: dict[str, str] = {}  # a file of several steps, as it will be by then
        for each in reversed(kept.steps):
            now = {change.path: later.get(change.path, self._text(change.path)) for change in each.changes}
            if any(now[change.path] not in (change.after, change.before) for change in each.changes):
                left += now
            elif any(now[change.path] == change.after for change in each.changes):
                steps.append([{"path": path, "removed": path in each.made} for path in now])
                later.update((change.path, change.before) for change in each.changes)
        page = kept.page_before != kept.page_after == self._vault.pages.read(PAGE)
        return {"at": kept.at, "steps": steps, "left_alone": left, "page": page}

    def erase_copies(self) -> None:
        """Delete what repeats forgotten text: the undo record, with the earlier text of notes, and openings in the journal."""
        with self._lock:
            self._file.unlink(missing_ok=True)
            self.write_days_again()

    def write_days_again(self) -> None:
        """Write the journal's pages that are there as they should be now, without what has been forgotten."""
        if not any(entry.path.startswith(f"{FOLDERS[NoteKind.JOURNAL]}/") for entry in self._vault.notes.entries()):
            return
        with self._lock:
            notes = self._read_all()
            pages = [note for note in notes if consolidation.DAY_TAG in note.tags]
            if not pages:
                return
            there = {page.id for page in pages}
            due = [page for page in self._days(notes) if page.id in there]
            for step in consolidation.days(due, {page.id: page for page in pages}, self._vault.notes.is_ours):
                if (found := self._ready(step)) is not None and self._carry_out(step, found):
                    self._refresh({step.page.path})

    def divide(self, note: Note) -> list[str]:
        """Split a note at its headings and return the paths of new and changed notes; `undo` reverses it.

        Raises `KiteError` if the note has no headings or cannot be changed.
        """
        with self._lock, self._vault.undisturbed():
            divided = division(note.body)
            text = self._vault.notes.text(note.path)
            if divided is None:
                raise KiteError(f"{note.path} has no headings to divide it at", hint="put one above each matter: ## …")
            planned = [FileRewrite(path=each.path, before="", after="", note=each) for each in part_notes(note, divided)]
            theirs = not self._vault.notes.is_ours(note)
            self._begin()
            done = Done(changes=tuple(planned), made=tuple(change.path for change in planned))
            self._note(0, done)
            for place, change in enumerate(planned):
                if not self._change(change):
                    self._all_back(self._as_made(replace(done, changes=done.changes[:place])))
                    raise KiteError(
                        f"{change.path} could not be written", hint="a note of this title was deleted: change its heading"
                    )
            done = self._as_made(done)
            parts = [part for change in done.changes if (part := self._vault.notes.read(change.path)) is not None]
            if theirs:
                for part in parts:
                    self._vault.edits.disown(part.id)
            after = remainder(text, divided, parts)
            whole = FileRewrite(path=note.path, before=text, after=after)
            self._note(0, replace(done, changes=(*done.changes, whole)))
            if not after or not self._vault.edits.rewrite(note.path, text, after):
                self._all_back(done)
                raise KiteError(f"{note.path} cannot be changed", hint="look at it again: `kmem review`")
            return sorted({note.path, *done.made})

    def _all_back(self, done: Done) -> None:
        for change in reversed(done.changes):
            self._change_back(change)

    def keep_whole(self, note: Note) -> None:
        """Record that the user wants the note undivided. They are not asked again until its text changes."""
        with self._lock:
            self._vault.edits.annotate(note.id, {REVIEW: ""})
            self._vault.pages.note_down(_SPLIT + note.id, digest(note.body))

    def maintain(self, *, quiet_for: float) -> bool:
        """Consolidate once a day, after a time without activity. Return whether any step was carried out."""
        now = self._clock()
        last = self._vault.pages.noted(_LAST)
        since = now - (datetime.fromisoformat(last) if last else datetime.fromtimestamp(0, UTC))
        if since < _EVERY or quiet_for < (_OVERDUE_AT_REST if since > _OVERDUE else _AT_REST):
            return False
        if self._vault.scanner.frozen or not self._vault.root.is_dir():
            return False
        try:
            return bool(self.consolidate()["done"])
        except KiteError as error:
            log.warning("the vault was not consolidated: %s", error)
            self._vault.pages.note_down(_LAST, now.isoformat())
            return False

    def _planned(self, months: int) -> list[Step]:
        if not self._vault.root.is_dir() and not self._vault.known.all():
            raise VaultMissing(f"there is no vault at {self._vault.root}", hint="`kmem up` makes one")
        notes = self._read_all()
        waiting, archived = self._waiting(notes), self._archived_with()
        found = consolidation.steps(
            notes,
            now=self._clock(),
            months=months,
            is_ours=self._vault.notes.is_ours,
            settled=self._vault.known.settled(),
            asked=lambda note: note.review == REVIEW_SPLIT or self._vault.pages.noted(_SPLIT + note.id) == digest(note.body),
            used=self._used(),
            waits_since=lambda note: waiting.get(note.id),
            stays=lambda note: archived.get(note.id) == len(note.evidence),
            due=self._days(notes) if self._daily else (),
        )
        return list(found)

    def _days(self, notes: Sequence[Note]) -> list[Note]:
        """Return the journal's pages as they should be, without those that the user deleted."""
        today = self._clock().astimezone(self._zone).date()
        pages = consolidation.day_pages(notes, self._worked_on(), today=today, zone=self._zone)
        return [page for page in pages if not self._vault.known.is_buried(page.id)]

    def _read_all(self) -> list[Note]:
        return [note for entry in self._vault.notes.entries() if (note := self._vault.notes.read(entry.path)) is not None]

    def _weak(self) -> list[Json]:
        """Return standing notes without value, such as earlier rules wrote: `kmem review --all` goes through them."""
        return [
            {"path": note.path, "title": note.title}
            for note in self._read_all()
            if is_junk(note) and self._vault.notes.is_ours(note)
        ]

    def _archived_with(self) -> dict[str, int]:
        """Return the evidence that each note had when it was archived: one that stands with no more of it was wanted back."""
        try:
            return dict(json.loads(self._vault.pages.noted(_ARCHIVED) or "{}"))
        except ValueError:
            return {}

    def _waiting(self, notes: Sequence[Note]) -> dict[str, datetime]:
        """Return when the user was first asked about each waiting note, which can be later than its creation."""
        try:
            before = json.loads(self._vault.pages.noted(_WAITING) or "{}")
        except ValueError:
            before = {}
        now = self._clock()
        asked = [note.id for note in notes if note.id and note.awaits_review]
        since = {id: str(before.get(id) or now.isoformat()) for id in asked}
        if since != before:
            self._vault.pages.note_down(_WAITING, json.dumps(since))
        return {id: datetime.fromisoformat(at) for id, at in since.items()}

    def _ready(self, step: Step) -> Done | None:
        """Return the step's changes to the current files. ``None`` if a file is gone, has changed, or cannot be changed safely."""
        made = consolidation.made_by(step)
        if made is not None and (there := self._vault.known.by_id(made.id)) is not None:
            step = consolidation.moved(step, there.path)
            made = replace(made, path=there.path)
        texts: dict[str, str] = {}
        for path in consolidation.needed(step):
            try:
                texts[path] = self._vault.notes.text(path)
            except KiteError:
                if made is None or path != made.path:
                    return None
        for note in _read_in(step):
            now = self._vault.notes.read(note.path)
            if now is None or now.body != note.body or now.status is not note.status:
                return None
        found = consolidation.changes(step, texts)
        pair = (step.keep.id, step.drop.id) if isinstance(step, Merge) else None
        new = tuple(change.path for change in found if change.note is not None)
        return Done(changes=found, made=new, pair=pair) if found else None

    def _carry_out(self, step: Step, done: Done) -> bool:
        for place, change in enumerate(done.changes):
            if not self._change(change):
                for earlier in reversed(done.changes[:place]):
                    self._change_back(earlier)
                return False
        if done.pair is not None:
            self._vault.known.ruled(*done.pair, "replaces")
        if isinstance(step, Archive):
            counts = {**self._archived_with(), **{note.id: len(note.evidence) for note in step.notes}}
            self._vault.pages.note_down(_ARCHIVED, json.dumps(counts))
        if isinstance(step, Split):
            self._vault.pages.note_down(_SPLIT + step.note.id, digest(step.note.body))
        return True

    def _change(self, change: FileRewrite) -> bool:
        if change.note is None:
            return self._vault.edits.rewrite(change.path, change.before, change.after)
        (outcome,) = self._vault.planner.carry_out([Create(note=change.note, because="old journals")])
        return isinstance(outcome, Written | AlreadyWritten)

    def _change_back(self, change: FileRewrite) -> bool:
        if change.note is not None or not change.before:
            return self._vault.edits.unmake(change.path, change.after)
        return self._vault.edits.rewrite(change.path, change.after, change.before)

    def _as_made(self, done: Done) -> Done:
        """Return the step with the actual path and text of each new file."""

        def real(change: FileRewrite) -> FileRewrite:
            known = self._vault.known.by_id(change.note.id) if change.note is not None else None
            return replace(change, path=known.path, after=self._vault.notes.text(known.path)) if known is not None else change

        changes = tuple(map(real, done.changes))
        return replace(done, changes=changes, made=tuple(change.path for change in changes if change.note is not None))

    def _take_back(self, done: Done) -> bool | None:
        """Undo a step wholly or not at all. Return ``None`` if a file was edited since, else whether there was anything to undo."""
        now = [self._text(change.path) for change in done.changes]
        if any(text not in (change.after, change.before) for text, change in zip(now, done.changes, strict=True)):
            return None
        if done.pair is not None:  # first: otherwise the restored note would look like a user's own change
            self._vault.known.ruled(*done.pair, "neither")
        waiting = [change for text, change in zip(now, done.changes, strict=True) if text == change.after]
        outcomes = [self._change_back(change) for change in reversed(waiting)]
        return bool(waiting) if all(outcomes) else None

    def _text(self, path: str) -> str:
        """Return the file's text, empty if it cannot be read."""
        try:
            return self._vault.notes.text(path)
        except KiteError:
            return ""

    def _page_would_change(self) -> bool:
        try:
            return bool(self._pages.synthesize(check=True)["changed"])
        except KiteError:
            return False

    def _rewrite_page(self) -> bool:
        try:
            return bool(self._pages.synthesize()["changed"])
        except KiteError as error:  # a user has edited it; `kmem synthesize` reports that
            log.info("%s was left alone: %s", PAGE, error)
            return False

    def _begin(self) -> Literal[True]:
        """Start a new undo record. Those of the last weeks stay, as far as they are small."""
        now = self._clock()
        header = {
            "version": _VERSION,
            "at": now.isoformat(),
            "page_before": self._vault.pages.read(PAGE),
            "noted": self._pages.noted(),
        }
        try:
            earlier = self._records()
        except StateDamaged as error:  # what it holds cannot be taken back any more; the new record still can
            log.warning("the earlier undo records are left out: %s", error)
            earlier = []
        since = (now - _UNDONE).isoformat()
        kept = [record for record in earlier[-_MOST_UNDONE:] if json.loads(record[0])["at"] >= since]
        while kept and sum(len(line) for record in kept for line in record) > _LARGEST_UNDONE:
            kept = kept[1:]
        self._write_records([*kept, [_line(header)]])
        return True

    def _records(self) -> list[list[bytes]]:
        """Return the lines of each undo record, the oldest first. An incomplete last line was never carried out."""
        try:
            *lines, torn = self._file.read_bytes().split(b"\n")
            read = [json.loads(line) for line in lines or [torn]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise StateDamaged(f"{self._file} cannot be read: {error}", hint=_LET_GO) from error
        records: list[list[bytes]] = []
        for line, value in zip(lines, read, strict=False):
            if isinstance(value, dict) and "version" in value:
                if value["version"] != _VERSION:
                    raise StateDamaged(f"{self._file} is not of this version", hint=_LET_GO)
                records.append([])
            if not records:
                raise StateDamaged(f"{self._file} is not of this version", hint=_LET_GO)
            records[-1].append(line + b"\n")
        return records

    def _write_records(self, records: Sequence[Sequence[bytes]]) -> None:
        if not records:
            self._file.unlink(missing_ok=True)
            return
        with self._written_down():
            make_private_folder(self._file.parent)
            replace_file(self._file, b"".join(line for record in records for line in record))

    def _note(self, place: int, done: Done) -> None:
        """Record a step before it is carried out, and again if a new file differs from the plan."""
        changes = [
            {"path": change.path, "before": change.before, "after": change.after, "made": change.path in done.made}
            for change in done.changes
        ]
        self._append({"place": place, "pair": list(done.pair) if done.pair else None, "changes": changes})

    def _append(self, entry: Json) -> None:
        with self._written_down(), self._file.open("ab") as file:
            file.write(_line(entry))
            file.flush()
            sync_file(file.fileno())

    @contextmanager
    def _written_down(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateNotWritten(f"cannot write {self._file}: {error.strerror}", hint="free some space, and try again") from error

    def _kept(self) -> _Kept | None:
        """Return the last consolidation's record."""
        records = self._records()
        if not records:
            return None
        header, *rest = [json.loads(line) for line in records[-1]]
        page = str(header["page_before"])
        steps = {each["place"]: _done_of(each) for each in rest if "place" in each}
        after = next((str(each["page_after"]) for each in rest if "page_after" in each), page)
        return _Kept(
            steps=tuple(steps.values()), page_before=page, page_after=after, noted=str(header["noted"]), at=str(header["at"])
        )


def _read_in(step: Step) -> Iterator[Note]:
    match step:
        case Merge(keep=keep, drop=drop):
            yield from (keep, drop)
        case Fold(note=note) | Split(note=note) | Lapse(note=note):
            yield note
        case Archive(notes=notes):
            yield from notes
        case EntityLinks(page=page):
            yield page
        case Day():
            return
        case _:
            assert_never(step)


def _line(entry: Json) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _done_of(entry: Json) -> Done:
    changes = tuple(FileRewrite(path=each["path"], before=each["before"], after=each["after"]) for each in entry["changes"])
    made = tuple(each["path"] for each in entry["changes"] if each["made"])
    pair = entry["pair"]
    return Done(changes=changes, made=made, pair=(pair[0], pair[1]) if pair else None)
