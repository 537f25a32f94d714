"""Review of notes that wait for a user: listed, judged one by one, and kept on a page of the vault with boxes to tick."""

import json
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.app.note_view import note_json
from kite_memory.errors import KiteError, NoteNotFound, UsageError, VaultMissing
from kite_memory.model.event import EvidenceReference
from kite_memory.model.note import REVIEW_LAPSED, REVIEW_SPLIT, SPOKEN_KINDS, Note, NoteKind, NoteStatus
from kite_memory.recall.recall import Recall
from kite_memory.recall.search import Query
from kite_memory.system import utc_now
from kite_memory.text.quoting import plain, plain_line
from kite_memory.timeline.rows import StoredEvents
from kite_memory.vault import Vault, consolidation, lifecycle, review_page
from kite_memory.vault.drafting import division
from kite_memory.vault.ledger import KnownFile, link_key
from kite_memory.vault.notefile import REVIEW
from kite_memory.vault.review_page import PAGE, ReviewVerdict, WaitingNote, version
from kite_memory.vault.usefulness import NoteUse, is_junk, strength
from kite_memory.vault.wording import words

Json = dict[str, Any]

log = logging.getLogger("kite_memory.app.review")

_OURS = "review page"
_KEPT = "kept in triage"
_SORTED = {
    "keep": NoteStatus.ACCEPTED,
    "stand": NoteStatus.ACCEPTED,
    "archive": NoteStatus.ARCHIVED,
    "reject": NoteStatus.REJECTED,
}
_ATTEMPTS = 3
_MOST_READ = 500
"""Limit of waiting notes that are read. With more, the user decides about these first."""
_CANDIDATES = 8
_ALIKE = 0.4
"""Least share of words in common for one note to be offered for merging into another."""
_ASKED = 600
_QUOTED = 240
_QUOTES = 3
_LOOKED_FOR_AGAIN = 4
"""Notes of the page whose nearest note is searched for again at each look, in turn."""


class NoteChanged(KiteError):
    """The note has changed since it was judged."""


class Dividing(Protocol):
    """Splitting of a note that holds several topics; see `app.consolidation`."""

    def divide(self, note: Note) -> Sequence[str]: ...

    def keep_whole(self, note: Note) -> None: ...


class Review:
    """The questions that wait for the user, and what their answers do to the notes. Thread-safe."""

    def __init__(
        self,
        *,
        vault: Vault,
        recall: Recall,
        indexer: NoteIndexer,
        events: StoredEvents,
        dividing: Dividing,
        used: Callable[[], Callable[[Note], NoteUse]] = lambda: lambda note: NoteUse(),
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._used = used
        self._clock = clock
        self._vault = vault
        self._dividing = dividing
        self._recall = recall
        self._indexer = indexer
        self._events = events
        self._lock = vault.lock
        self._beside: frozenset[str] = frozenset()
        self._last: tuple[int, str] | None = None
        self._notes: dict[str, tuple[KnownFile, Note]] = {}
        self._nearby: dict[str, tuple[KnownFile, Note | None, Sequence[KnownFile]]] = {}

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {
            "review": self.review,
            "judge": self.judge,
            "review_page": self.keep_page,
            "sweep": self.sweep,
            "triage": self.triage,
            "sort": self.sort,
        }

    def review(self, *, limit: int = 200) -> Json:
        """Return the waiting notes, the most important first. ``version`` identifies the text that was judged."""
        queue, more = self._queue(self._vault.known.to_review())
        waiting_notes = [self._waiting_json(self._surrounded(note)) for note in queue[: max(1, min(limit, _MOST_READ))]]
        return {"notes": waiting_notes, "waiting": len(queue) + more}

    def judge(self, *, note: str, verdict: str, into: str = "", seen: str = "") -> Json:
        """Carry out a verdict. ``into`` is the other note for verdicts on two.

        With ``seen``, only the text of that `version` is judged.
        """
        known = next((each for each in review_page.VERDICTS if each == verdict), None)
        if known is None:
            raise UsageError(f"unknown verdict {verdict!r}", hint=f"choose one of: {', '.join(review_page.VERDICTS)}")
        with self._lock:
            judged = self._judge(self._vault.notes.find(note), known, self._vault.notes.find(into) if into else None, seen)
        self.keep_page()
        return judged

    def sweep(self, *, days: int) -> Json:
        """Reject all notes that have waited longer than ``days``. Of two that may contradict, both stay."""
        before = self._clock() - timedelta(days=max(1, days))
        done: list[Json] = []
        with self._lock:
            for file in self._vault.known.to_review():
                note = self._read(file)
                if note is None or not note.awaits_review or note.created > before:
                    continue
                if note.status is NoteStatus.PROPOSED:
                    self._vault.edits.mark(note.name, NoteStatus.REJECTED)
                else:
                    self._vault.edits.annotate(note.id, {REVIEW: REVIEW_LAPSED})
                done.append({"id": note.id, "path": note.path, "title": plain_line(note.title)})
            if done:
                self._indexer.refresh({each["path"] for each in done})
        self.keep_page()
        return {"done": done}

    def triage(self, *, limit: int = 200, project: str = "") -> Json:
        """Return accepted notes without those that were kept in an earlier triage.

        First come those without value, then what no agent was shown or has used; of these what names the fewest things, and the
        oldest.
        """
        kept = self._kept()
        found = [
            note
            for file in self._vault.known.all()
            if file.id and file.status == NoteStatus.ACCEPTED.value and project in ("", file.project) and not file.duplicate
            if (note := self._vault.notes.read(file.path)) is not None
            if note.kind in SPOKEN_KINDS and not note.key and kept.get(note.id) != version(note)
        ]
        use_of = self._used()
        uses = {note.path: use_of(note) for note in found}

        def shown(note: Note) -> bool:
            return bool(uses[note.path].shown or uses[note.path].used)

        found.sort(key=lambda note: (not is_junk(note), shown(note), len(note.entities), note.created, note.path))
        first = found[: max(1, min(limit, _MOST_READ))]
        asked = [
            {
                **note_json(each),
                "body": plain(each.body),
                "version": version(each),
                "strength": round(strength(each), 1),
                "shown": shown(each),
            }
            for each in first
        ]
        return {"notes": asked, "left": len(found)}

    def sort(self, *, note: str, verdict: str, into: str = "") -> Json:
        """Carry out a verdict on an accepted note: ``keep``, ``archive``, ``reject``, or ``stand`` to restore it.

        ``merge`` adds what it says to the note ``into``, which it leads to from then on.
        """
        status = _SORTED.get(verdict)
        if status is None and verdict != "merge":
            raise UsageError(f"unknown verdict {verdict!r}", hint=f"choose one of: {', '.join((*_SORTED, 'merge'))}")
        with self._lock:
            found = self._vault.notes.find(note)
            if status is None:
                other = _needed(self._vault.notes.find(into) if into else None, found)
                self._indexer.refresh(self._merge(found, other))
                return {"id": other.id, "path": other.path, "verdict": verdict}
            kept = self._kept()
            if found.status is not status:
                found = self._vault.edits.mark(found.name, status)
                self._indexer.refresh({found.path})
            if verdict == "keep":
                kept[found.id] = version(found)
            else:
                kept.pop(found.id, None)
            self._vault.pages.note_down(_KEPT, json.dumps(kept))
        return {"id": found.id, "path": found.path, "verdict": verdict}

    def _kept(self) -> dict[str, str]:
        try:
            return dict(json.loads(self._vault.pages.noted(_KEPT) or "{}"))
        except ValueError:
            return {}

    def keep_page(self) -> Json:
        """Carry out the ticked boxes of `Review.md`, then update the page. Nothing is written if nothing changed."""
        if self._vault.scanner.frozen or not self._vault.root.is_dir():
            return {"done": [], "changed": False}
        before = self._page()
        if self._last == (self._stamp(self._vault.known.waiting()), before):
            return {"done": [], "changed": False}
        for path in list(self._nearby)[:_LOOKED_FOR_AGAIN]:
            self._nearby.pop(path, None)
        done: list[Json] = []
        for _ in range(_ATTEMPTS):
            with self._lock:
                before = self._page()
                done += [outcome for each in review_page.ticked(before) if (outcome := self._obeyed(each)) is not None]
            waiting = self._vault.known.waiting()
            to_review = self._vault.known.to_review()
            queue, more = self._queue(to_review)
            files = {each.path: each for each in to_review}
            shown = [self._surrounded(note, files[note.path]) for note in queue[: review_page.MOST_SHOWN]]
            made = review_page.page(shown, more=more + len(queue) - len(shown))
            after = self._renewed(before, made, anything=bool(queue))
            if after is not None:
                beside = (other.path for each in shown for other in (each.nearest, each.contested) if other is not None)
                self._beside = frozenset(beside)
                self._notes = {path: known for path, known in list(self._notes.items()) if path in files}
                drawn = {each.note.path for each in shown}
                self._nearby = {path: known for path, known in list(self._nearby.items()) if path in drawn}
                self._last = self._stamp(waiting), after
                return {"done": done, "changed": bool(done) or after != before}
        raise KiteError(f"{PAGE} is being changed by another program", hint="try again when it is saved")

    def _stamp(self, waiting: Sequence[KnownFile]) -> int:
        """Return a hash of the waiting notes and of those beside them on the page.

        Other notes that have become nearer do not count: the next change shows them.
        """
        groups = (waiting, self._vault.known.at(sorted(self._beside)))
        return hash(tuple(tuple((each.path, each.size, each.mtime_ns) for each in group) for group in groups))

    def _renewed(self, before: str, made: str, *, anything: bool) -> str | None:
        """Write the page and return it; ``None`` if it differs from ``before``, and may have been ticked since.

        A page that its owner has deleted is written again when it has something new.
        """
        with self._lock:
            ours = self._vault.pages.noted(_OURS)
            if not before and (made == ours or not anything):
                return before
            after = review_page.renewed(before, made, ours)
            if after != before and not self._vault.pages.put(PAGE, after, before=before):
                return None
            if made != ours:
                self._vault.pages.note_down(_OURS, made)
            return after

    def _page(self) -> str:
        return self._vault.pages.read(PAGE)

    def _obeyed(self, tick: review_page.Ticked) -> Json | None:
        """Carry out a ticked box; ``None`` for one that is outdated. It is drawn again for the note's current text."""
        try:
            note = self._called(tick.name)
            into = self._called(tick.into) if tick.into else None
            return self._judge(note, tick.verdict, into, tick.version)
        except (NoteNotFound, UsageError, NoteChanged):
            return None
        except VaultMissing:
            raise
        except KiteError as error:
            log.warning("a box on %s could not be obeyed: %s", PAGE, error)
            return None

    def _called(self, name: str) -> Note:
        note = self._vault.notes.called(name)
        if note is None:
            raise NoteNotFound(f"no note is called {name!r}")
        return note

    def _judge(self, note: Note, verdict: ReviewVerdict, into: Note | None, seen: str) -> Json:
        if not note.awaits_review:
            raise UsageError(f"{note.path} does not wait for review: it is {note.status}", hint="`kmem review` shows what does")
        about_length = WaitingNote(note=note).is_long and not note.conflicts
        of_length = verdict in ("divide", "whole")
        if (of_length and note.review != REVIEW_SPLIT) or (about_length and not of_length):
            only = "make several notes of it, or leave it whole" if about_length else "is not asked whether to divide it"
            raise UsageError(f"{note.path} does not wait for that verdict: {only}", hint="`kmem review` shows what each waits for")
        if verdict == "accept" and note.status is not NoteStatus.PROPOSED:
            choices = ", ".join(choice for choice, _ in self._surrounded(note).choices())
            raise UsageError(
                f"{note.path} does not wait for that verdict: it is accepted, and may contradict another",
                hint=f"choose one of: {choices}",
            )
        if seen and seen != version(note):
            raise NoteChanged(f"{note.path} has changed since it was shown", hint="look at it again: `kmem review`")
        changed = {note.path}
        match verdict:
            case "accept":
                changed |= self._accept(note)
            case "reject":
                self._vault.edits.mark(note.name, NoteStatus.REJECTED)
            case "merge":
                changed |= self._merge(note, _needed(into, note))
            case "replace" | "both":
                changed |= self._settle(note, _needed(into, note), verdict == "replace")
            case "divide":
                changed.update(self._dividing.divide(note))
            case "whole":
                self._dividing.keep_whole(note)
        self._indexer.refresh(changed)
        return {"id": note.id, "path": note.path, "title": plain_line(note.title), "verdict": verdict, "changed": sorted(changed)}

    def _accept(self, note: Note) -> set[str]:
        """Accept a note, and the proposed pages that it links to, which are no more doubtful."""
        self._vault.edits.mark(note.name, NoteStatus.ACCEPTED)
        linked = set(map(link_key, note.links))
        pages = [each for each in self._proposed() if each.kind == NoteKind.ENTITY.value and link_key(each.path) in linked]
        for page in pages:
            self._vault.edits.mark(page.id or page.path, NoteStatus.ACCEPTED)
        return {page.path for page in pages}

    def _merge(self, note: Note, into: Note) -> set[str]:
        """Add what the note adds to the other. The note leads to that one from now on, so that links to it still work."""
        step = consolidation.Merge(keep=into, drop=note, whole=True)
        texts = {path: self._vault.notes.text(path) for path in (into.path, note.path)}
        changes = consolidation.changes(step, texts)
        if not changes:
            raise KiteError(
                f"{note.path} cannot go into {into.path}", hint="their properties cannot be changed safely: repair them"
            )
        for change in changes:
            if not self._vault.edits.rewrite(change.path, change.before, change.after):
                raise NoteChanged(f"{change.path} has just been changed", hint="look at it again: `kmem review`")
        if note.id and into.id:
            self._vault.known.ruled(into.id, note.id, "replaces")
        return {change.path for change in changes}

    def _settle(self, note: Note, other: Note, replaces: bool) -> set[str]:
        """Let the newer of the two replace the older, whichever of them waits."""
        if not (note.id and other.id):
            raise UsageError("a note without an id replaces none", hint="give both an `id`")
        newer, older = (other, note) if other.created > note.created else (note, other)
        return set(self._vault.relations.settle(newer.id, older.id, "replaces" if replaces else "neither"))

    def _queue(self, files: Sequence[KnownFile]) -> tuple[list[Note], int]:
        """Return the waiting notes, and how many more there are."""
        found = [note for file in files[:_MOST_READ] if (note := self._read(file)) is not None and note.awaits_review]
        return sorted(found, key=lambda note: (-note.importance, note.created, note.path)), max(0, len(files) - _MOST_READ)

    def _read(self, file: KnownFile) -> Note | None:
        kept = self._notes.get(file.path)
        if kept is not None and kept[0] == file:
            return kept[1]
        if (note := self._vault.notes.read(file.path)) is not None:
            self._notes[file.path] = (file, note)
        return note

    def _proposed(self) -> list[KnownFile]:
        return [each for each in self._vault.known.waiting() if each.status == NoteStatus.PROPOSED.value]

    def _surrounded(self, note: Note, file: KnownFile | None = None) -> WaitingNote:
        named = filter(None, map(self._vault.known.led_to, note.conflicts))
        contested = next(filter(None, (self._vault.notes.read(each.path) for each in named)), None)
        divided = division(note.body) if note.review == REVIEW_SPLIT else None
        return WaitingNote(
            note=note,
            nearest=self._near(note, file) if note.status is NoteStatus.PROPOSED or contested is not None else None,
            contested=contested,
            quotes=self._quotes(note),
            parts=tuple(part.heading for part in divided.parts) if divided is not None else (),
        )

    def _near(self, note: Note, file: KnownFile | None) -> Note | None:
        """Return `_nearest`, cached while neither of the two notes has changed."""
        kept = self._nearby.get(note.path)
        if kept is not None and kept[0] == file and list(kept[2]) == self._known(kept[1]):
            return kept[1]
        nearest = self._nearest(note)
        if file is not None:
            self._nearby[note.path] = (file, nearest, self._known(nearest))
        return nearest

    def _known(self, note: Note | None) -> list[KnownFile]:
        return self._vault.known.at([note.path]) if note is not None else []

    def _nearest(self, note: Note) -> Note | None:
        """Return the nearest note by words alone, so that the result is stable while the vault is."""
        if note.kind not in SPOKEN_KINDS:
            return None
        said = words(lifecycle.text_of(note))
        query = Query(text=f"{note.title} {note.body}"[:_ASKED], mode="keyword", project=note.project, limit=_CANDIDATES)
        best: tuple[float, Note] | None = None
        for hit in self._recall.search(query):
            other = self._vault.notes.read(hit.note.path)
            if other is None or other.status is not NoteStatus.ACCEPTED or other.kind not in SPOKEN_KINDS or other.key:
                continue
            if other.project not in ("", note.project) or other.name == note.name:
                continue
            theirs = words(lifecycle.text_of(other))
            alike = len(said & theirs) / max(1.0, (len(said) * len(theirs)) ** 0.5)
            if alike >= _ALIKE and (best is None or (alike, other.path) > (best[0], best[1].path)):
                best = alike, other
        return best[1] if best is not None else None

    def _quotes(self, note: Note) -> tuple[str, ...]:
        return tuple(self._quote(reference) for reference in note.evidence[:_QUOTES])

    def _quote(self, text: str) -> str:
        reference = EvidenceReference.parse(text)
        try:
            events = [] if reference is None else self._events.offered(self._events.evidence(reference))
        except (sqlite3.Error, UnicodeError):
            return ""
        return plain_line(events[0].text, _QUOTED) if events else ""

    def _waiting_json(self, waiting: WaitingNote) -> Json:
        note = waiting.note
        return {
            **note_json(note),
            "origin": note.origin,
            "importance": note.importance,
            "body": plain(note.body),
            "version": version(note),
            "evidence": [
                {"reference": plain_line(reference), "text": quoted}
                for reference, quoted in zip(note.evidence, [*waiting.quotes, *[""] * len(note.evidence)], strict=False)
            ],
            "parts": [plain_line(heading) for heading in waiting.parts],
            "because": waiting.because,
            "long": waiting.is_long,
            "choices": [verdict for verdict, _ in waiting.choices()],
            "nearest": _named(waiting.nearest),
            "contested": _named(waiting.contested),
        }


def _named(note: Note | None) -> Json | None:
    if note is None:
        return None
    return {"id": note.id, "path": note.path, "title": plain_line(note.title), "body": plain(note.body)}


def _needed(into: Note | None, note: Note) -> Note:
    if into is None or into.name == note.name:
        raise UsageError("no other note is named", hint="name the one that this is about")
    return into
