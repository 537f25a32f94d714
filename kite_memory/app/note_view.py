"""View of one note by its id, path or title, or the reason why there is none. Needs only the vault."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kite_memory.errors import KiteError, NoteNotFound, VaultMissing
from kite_memory.model.event import EvidenceReference
from kite_memory.model.note import Note
from kite_memory.recall.rendering import in_brief, plain, plain_line, quoted, shortened
from kite_memory.vault import Vault

Json = dict[str, Any]

_FILES = 4


TOKENS = 400
"""Limit of a note that an agent opens, unless it asks for more."""
_FEWEST, _MOST_TOKENS, _CHARACTERS = 40, 4_000, 9_500
_MOST = 20

Conversation = Callable[[EvidenceReference], str]
"""Function from a citation to the conversation's text: its prompt and how it ended. Empty for an unknown one."""


def _nothing_said(reference: EvidenceReference) -> str:
    return ""


class NoteView:
    """Thread-safe."""

    def __init__(self, *, vault: Vault, clock: Callable[[], datetime], conversation: Conversation = _nothing_said) -> None:
        self._vault = vault
        self._clock = clock
        self._conversation = conversation

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"show": self.show, "open": self.opened}

    def found(self, note: str) -> Note:
        if not self._vault.root.is_dir() and not self._vault.known.all():
            raise VaultMissing(f"there is no vault at {self._vault.root}", hint="`kmem up` makes one")
        try:
            return self._vault.find(note)
        except NoteNotFound as error:
            if index_problems := self.index_problems():
                raise VaultMissing(index_problems[0], hint="bring it back, or see `kmem doctor`") from error
            raise

    def in_force(self, note: str) -> Note:
        found = self.found(note)
        if found.has_expired(self._clock()):
            raise NoteNotFound(
                f"{found.path} has expired", hint=f"`kmem edit {found.id or found.path}` opens it: without `expires` it stays"
            )
        return found

    def index_problems(self) -> list[str]:
        """Return why results may be outdated or missing."""
        if frozen := self._vault.frozen:
            return [f"the vault is frozen: {frozen}"]
        return [] if self._vault.root.is_dir() else [f"there is no vault at {self._vault.root}"]

    def opened(self, *, notes: list[str], tokens: int = TOKENS) -> Json:
        """Return notes as an agent reads them, each in at most ``tokens``; missing ones are listed with a hint."""
        told: list[Json] = []
        missing: list[Json] = []
        for called in notes[:_MOST]:
            try:
                told.append(self._in_brief(called, min(max(tokens, _FEWEST), _MOST_TOKENS)))
            except KiteError as error:
                missing.append({"note": plain_line(called), "reason": str(error), "hint": error.hint})
        return {"notes": told, "missing": missing, "text": "\n\n".join(each["text"] for each in told)}

    def _in_brief(self, called: str, tokens: int) -> Json:
        reference = EvidenceReference.parse(called)
        if reference is not None and (said := self._conversation(reference)):
            return {"id": called, "path": "", "text": shortened(quoted(said), tokens=tokens, characters=_CHARACTERS)}
        note = self.in_force(called)
        return {"id": note.id or note.path, "path": note.path, "text": in_brief(note, tokens)}

    def show(self, *, note: str, history: bool = False, expired: bool = False) -> Json:
        """Return one note. With ``history``, also all versions of a note under a key, newest first.

        With ``expired``, a note that has expired is returned as well.
        """
        found = self.found(note) if expired else self.in_force(note)
        file = self._vault.root / found.path
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise NoteNotFound(f"{found.path} cannot be read: {error.strerror}", hint="somebody has just moved it") from error
        told = {**note_json(found), "file": str(file), "text": plain(text), "became": became_of(found)}
        if history:
            told["versions"] = [
                {"version": each.version, "at": each.at.isoformat(), "by": plain_line(each.by), "text": plain(each.body)}
                for each in self._vault.keys.history(found)
            ]
        return told


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
