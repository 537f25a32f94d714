"""One note, for whoever names it: what there is to see of it, or why there is nothing. Needs of the house the vault alone."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kite_memory.errors import NoteNotFound, VaultMissing
from kite_memory.model.note import Note
from kite_memory.recall.rendering import plain, plain_line
from kite_memory.vault import Vault

Json = dict[str, Any]


class Showing:
    """Thread-safe."""

    def __init__(self, *, vault: Vault, clock: Callable[[], datetime]) -> None:
        self._vault = vault
        self._clock = clock

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"show": self.show}

    def found(self, note: str) -> Note:
        if not self._vault.root.is_dir() and not self._vault.known.all():
            raise VaultMissing(f"there is no vault at {self._vault.root}", hint="`kmem up` makes one")
        try:
            return self._vault.find(note)
        except NoteNotFound as error:
            if hindrances := self.hindrances():
                raise VaultMissing(hindrances[0], hint="bring it back, or see `kmem doctor`") from error
            raise

    def in_force(self, note: str) -> Note:
        found = self.found(note)
        if found.has_expired(self._clock()):
            raise NoteNotFound(
                f"{found.path} has expired", hint=f"`kmem edit {found.id or found.path}` opens it: without `expires` it stays"
            )
        return found

    def hindrances(self) -> list[str]:
        """Why what is found may be old, or nothing."""
        if frozen := self._vault.frozen:
            return [f"the vault is frozen: {frozen}"]
        return [] if self._vault.root.is_dir() else [f"there is no vault at {self._vault.root}"]

    def show(self, *, note: str, history: bool = False, expired: bool = False) -> Json:
        """With ``history`` also all that a note under a key has said, the newest first; with ``expired`` also one that has."""
        found = self.found(note) if expired else self.in_force(note)
        file = self._vault.root / found.path
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise NoteNotFound(f"{found.path} cannot be read: {error.strerror}", hint="somebody has just moved it") from error
        told = {**note_told(found), "file": str(file), "text": plain(text)}
        if history:
            told["versions"] = [
                {"version": each.version, "at": each.at.isoformat(), "by": plain_line(each.by), "text": plain(each.body)}
                for each in self._vault.keys.history(found)
            ]
        return told


def note_told(note: Note) -> Json:
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
