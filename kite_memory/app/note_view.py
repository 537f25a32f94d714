"""View of one note by its id, path or title, or the reason why it cannot be shown. Needs only the vault."""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kite_memory.errors import KiteError, NoteNotFound, UsageError, VaultMissing
from kite_memory.model.hit import Pointer, Quote
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.projects import project_of
from kite_memory.recall.prose import prose
from kite_memory.recall.rendering import in_brief, shortened
from kite_memory.text.quoting import plain, plain_line, quoted
from kite_memory.vault import Vault
from kite_memory.vault.known import KnownNotes
from kite_memory.vault.ledger import KnownFile, PageOfNotes
from kite_memory.vault.notefile import FOLDERS, body_of
from kite_memory.vault.review_page import version
from kite_memory.vault.usefulness import asked_and_said

if TYPE_CHECKING:
    from kite_memory.recall.select import Prompt, Weighed

Json = dict[str, Any]

_FILES = 4
_MOST_LISTED = 500
_BEGINNING = 220
_ARCHIVES = f"{FOLDERS[NoteKind.JOURNAL]}/archive-"
_PAST = frozenset({NoteStatus.SUPERSEDED.value, NoteStatus.REJECTED.value, NoteStatus.ARCHIVED.value})


TOKENS = 400
"""Limit of a note that an agent opens, unless it asks for more."""
_FEWEST, _MOST_TOKENS, _CHARACTERS = 40, 4_000, 9_500
_MOST = 20
_NAMED = 20
"""Projects that an error names."""

Conversation = Callable[[str], str]
"""Function from a citation, or its handle, to the conversation's text: its prompt and how it ended. Empty for anything else."""


def _nothing_said(called: str) -> str:
    return ""


class NoteView:
    """Operations that list and show notes. Thread-safe."""

    def __init__(self, *, vault: Vault, clock: Callable[[], datetime], conversation: Conversation = _nothing_said) -> None:
        self._vault = vault
        self._clock = clock
        self._conversation = conversation

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"show": self.show, "open": self.opened, "notes": self.notes, "around": self.around}

    def found(self, note: str) -> Note:
        if not self._vault.root.is_dir() and not self._vault.known.all():
            raise VaultMissing(f"there is no vault at {self._vault.root}", hint="`kmem up` makes one")
        try:
            return self._vault.notes.find(note)
        except NoteNotFound as error:
            if index_problems := self.index_problems():
                raise VaultMissing(index_problems[0], hint="bring it back, or see `kmem doctor`") from error
            raise

    def in_force(self, note: str) -> Note:
        found = self.found(note)
        if found.has_expired(self._clock()):
            raise NoteNotFound(f"{found.path} has expired", hint=f"`kmem edit {found.name}` opens it: without `expires` it stays")
        return found

    def index_problems(self) -> list[str]:
        """Return why results may be outdated or missing."""
        if frozen := self._vault.scanner.frozen:
            return [f"the vault is frozen: {frozen}"]
        return [] if self._vault.root.is_dir() else [f"there is no vault at {self._vault.root}"]

    def opened(self, *, notes: list[str], tokens: int = TOKENS) -> Json:
        """Return notes as an agent reads them, each in at most ``tokens``, or whole with 0; missing ones are listed with a hint."""
        briefs: list[Json] = []
        missing: list[Json] = []
        for called in notes[:_MOST]:
            try:
                briefs.append(self._in_brief(called, min(max(tokens, _FEWEST), _MOST_TOKENS)) if tokens else self._whole(called))
            except KiteError as error:
                missing.append({"note": plain_line(called), "reason": str(error), "hint": error.hint})
        return {"notes": briefs, "missing": missing, "text": "\n\n".join(each["text"] for each in briefs)}

    def _in_brief(self, called: str, tokens: int) -> Json:
        if said := self._conversation(called):
            return {"id": called, "path": "", "text": shortened(quoted(said), tokens=tokens, characters=_CHARACTERS)}
        note = self.in_force(called)
        return {"id": note.name, "path": note.path, "text": in_brief(note, tokens)}

    def _whole(self, called: str) -> Json:
        shown = self.show(note=called)
        return {"id": shown["id"] or shown["path"], "path": shown["path"], "text": shown["text"].rstrip("\n")}

    def show(self, *, note: str, history: bool = False, expired: bool = False, source: bool = False) -> Json:
        """Return one note. With ``history``, also all versions of a note under a key, newest first.

        With ``expired``, a note that has expired is returned as well. Without the two, ``note`` may be a conversation's citation.
        With ``source``, also its text as it is in the file, which is not for a terminal.
        """
        if not (history or expired) and (said := self._conversation(note)):
            return _conversation_json(note, said)
        found = self.found(note) if expired else self.in_force(note)
        file = self._vault.root / found.path
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise NoteNotFound(f"{found.path} cannot be read: {error.strerror}", hint="it has just been moved") from error
        view = {
            **note_json(found),
            "file": str(file),
            "text": plain(text),
            "body": plain(found.body),
            "tags": [plain_line(tag) for tag in found.tags],
            "version": version(found),
            "became": became_of(found),
        }
        if source:
            view["source"] = body_of(text)
        if history:
            view["versions"] = [
                {"version": each.version, "at": each.at.isoformat(), "by": plain_line(each.by), "text": plain(each.body)}
                for each in self._vault.keys.history(found)
            ]
        return view

    def notes(
        self, *, kind: str = "", project: str = "", status: str = "", since: str = "", start: int = 0, limit: int = 50
    ) -> Json:
        """List notes, those changed last first, and after them those that no longer hold. ``since`` is the earliest change, as an
        ISO date and time.

        Only the notes of the page are read. ``total`` counts those that match; ``kinds``, ``projects`` and ``statuses`` count all.
        """
        try:
            earliest = datetime.fromisoformat(since).timestamp() * 1e9 if since else 0.0
        except (ValueError, OverflowError, OSError) as error:
            raise UsageError(f"{since!r:.40} is not a date", hint="write it as 2026-03-01T00:00:00+00:00") from error
        asked = PageOfNotes(kind=kind, project=project, status=status, since=earliest, past=_PAST, archives=_ARCHIVES)
        known = self._vault.known
        found, total = known.page(asked, max(0, start), max(1, min(limit, _MOST_LISTED)))
        return {
            "notes": [_listed(each, self._vault.notes.read(each.path)) for each in found],
            "total": total,
            "kinds": dict(known.counts("kind")),
            "projects": {plain_line(name): number for name, number in known.counts("project")},
            "statuses": dict(known.counts("status")),
        }

    def around(self, *, note: str = "", limit: int = 40) -> Json:
        """Return a note with those that link to it and those that it links to, and the links among all these.

        Of each side at most ``limit`` notes, the most linked first. Without a note, the notes that most others link to.
        """
        limit = max(1, min(limit, _MOST_LISTED))
        if not note:
            hubs = {each.path: {**_brief(each), "links": links} for each, links in self._vault.known.most_linked(limit)}
            return {"note": None, "notes": list(hubs.values()), "arrows": self._arrows(hubs), "left_out": 0}
        found = self.found(note)
        centre = self._vault.known.at([found.path])
        sides = (self._vault.known.linking_to(found.path), self._vault.known.linked_by(found.path))
        links = {each.path: len(self._vault.known.linking_to(each.path)) for side in sides for each in (*centre, *side)}
        kept = {
            each.path: each for side in sides for each in sorted(side, key=lambda each: (-links[each.path], each.path))[:limit]
        } | {each.path: each for each in centre}
        return {
            "note": next(({**_brief(each), "links": links[each.path]} for each in centre), None),
            "notes": [{**_brief(each), "links": links[path]} for path, each in kept.items() if path != found.path],
            "arrows": self._arrows(kept),
            "left_out": len({each.path for side in sides for each in side} - kept.keys()),
        }

    def _arrows(self, paths: Collection[str]) -> list[Json]:
        """Return the links among these notes."""
        found = {(path, to.path) for path in paths for to in self._vault.known.linked_by(path) if to.path in paths}
        return [{"from": one, "to": to} for one, to in sorted(found)]


def _brief(known: KnownFile) -> Json:
    return {
        "id": known.id,
        "path": known.path,
        "kind": known.kind,
        "title": plain_line(known.title),
        "project": plain_line(known.project),
        "status": known.status,
    }


def _listed(known: KnownFile, note: Note | None) -> Json:
    """Return a note for a list. One that cannot be read any more has no beginning."""
    changed = datetime.fromtimestamp(known.mtime_ns / 1e9, UTC).isoformat()
    entry = {**_brief(known), "changed": changed, "created": changed, "begins": "", "origin": ""}
    if note is None:
        return entry
    begins = plain_line(asked_and_said(prose(note.body))[1], _BEGINNING)
    return {**entry, "created": note.created.isoformat(), "begins": begins, "origin": note.origin}


def became_of(note: Note) -> list[str]:
    """Return what happened to a note after it was written, one line each."""
    lines: list[str] = []
    if note.superseded_by:
        when = f" on {note.valid_until:%Y-%m-%d}" if note.valid_until is not None else ""
        lines.append(f"superseded{when} by {note.superseded_by}")
    if note.drifted is not None:
        files = ", ".join(anchor.rpartition("@")[0] or anchor for anchor in note.anchors[:_FILES])
        lines.append(f"the code it rests on has changed since, as seen on {note.drifted:%Y-%m-%d}: {files}")
    lines += [f"may contradict {other}; `kmem review` asks which holds" for other in note.conflicts[:_FILES]]
    return [plain_line(line, 500) for line in lines]


def known_project(known: KnownNotes, named: str) -> str:
    """Return the project as notes name it: by that very name, or by the one derived from its folder.

    Raises `UsageError` if ``named`` is not a project name.
    """
    if known.has_project(named):
        return named
    if not (project := project_of(named)):
        raise UsageError(f"{named!r} is not a project name", hint="give the name of its folder")
    return project


def project_with_notes(known: KnownNotes, named: str) -> str:
    """Return what `known_project` does. Raises `UsageError` if no note belongs to the project."""
    project = known_project(known, named)
    if not known.has_project(project):
        names = ", ".join(plain_line(name, 64) for name, _ in known.counts("project")[:_NAMED] if name)
        hint = f"known ones are: {names}" if names else "no note belongs to any project"
        raise UsageError(f"no note belongs to a project called {plain_line(project)}", hint=hint)
    return project


def _conversation_json(citation: str, said: str) -> Json:
    text = {"text": plain(said), "body": plain(said), "title": plain_line(said, _BEGINNING)}
    nothing = dict.fromkeys(("path", "project", "created", "status", "file", "version"), "")
    return {"id": citation, "kind": "conversation", "evidence": [citation], "tags": [], "became": [], **nothing, **text}


def note_json(note: Note) -> Json:
    return {
        "id": note.id,
        "path": note.path,
        "kind": note.kind.value,
        "title": plain_line(note.title),
        "project": plain_line(note.project),
        "created": note.created.isoformat(),
        "status": note.status.value,
        "evidence": list(note.evidence),
    }


def pointer_json(pointer: Pointer) -> Json:
    return {
        "id": pointer.id,
        "title": plain_line(pointer.title),
        "date": pointer.date.isoformat(),
        "score": round(pointer.score, 4),
        "evidence": list(pointer.evidence),
    }


def quote_json(quote: Quote) -> Json:
    return {"citation": quote.id, "text": quote.text, "date": quote.date.isoformat(), "evidence": list(quote.evidence)}


def explained_json(asked: "Prompt", weighed: "Weighed") -> Json:
    """Return the query, and what each part of it added to each candidate's score, in units of the logit."""
    from kite_memory.recall.gate import FEATURES  # imports numpy, which showing a note does not need
    from kite_memory.recall.lexical import essence

    around = asked.situation
    return {
        "query": {
            "prompt": essence(asked.text),
            "surroundings": {
                "exchange": around.exchange,
                "prompts": list(around.prompts),
                "files": list(around.files),
                "commands": list(around.commands),
                "errors": list(around.errors),
                "position": around.position,
            },
        },
        "candidates": [
            {
                "id": hit.note.name,
                "figures": dict(zip(FEATURES, map(float, figures), strict=True)),
                "parts": {part: round(value, 4) for part, value in parts.items()},
            }
            for hit, figures, parts in zip(weighed.candidates, weighed.figures, weighed.parts, strict=False)
        ],
    }
