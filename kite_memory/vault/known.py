"""What is known of the vault's notes as of the last comparison, without opening any."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from kite_memory.model.note import NoteStatus
from kite_memory.vault.files import OWN_PREFIX
from kite_memory.vault.finding import inside
from kite_memory.vault.ledger import KnownFile, Ledger, link_key
from kite_memory.vault.scanning import Scanner
from kite_memory.vault.wording import body_key


class KnownNotes:
    """Queries answered from the ledger alone."""

    def __init__(self, root: Path, ledger: Ledger, scanner: Scanner) -> None:
        self._root = root
        self._ledger = ledger
        self._scanner = scanner

    def all(self) -> list[KnownFile]:
        """Return every note as of the last comparison, unread."""
        return self._ledger.notes.everything()

    def waiting(self) -> list[KnownFile]:
        """Return the notes that may await their owner's decision, as of the last comparison, unread.

        Raises `VaultMissing` if all are gone.
        """
        if not self._ledger.is_empty():
            self._scanner.must_be_there()
        return self._ledger.notes.waiting()

    def on_branches(self) -> list[str]:
        """Return the paths of the notes that hold only on a branch, as of the last comparison."""
        return [known.path for known in self._ledger.notes.on_branches() if known.id]

    def to_review(self) -> list[KnownFile]:
        """Return the notes that a person is asked about, one by one; see `Ledger.to_review`.

        Raises `VaultMissing` as `waiting` does.
        """
        if not self._ledger.is_empty():
            self._scanner.must_be_there()
        return self._ledger.notes.to_review()

    def review_count(self) -> int:
        """Return how many a person is asked about, as of the last comparison; also of a vault that is not mounted."""
        return len(self._ledger.notes.to_review())

    def at(self, paths: Iterable[str]) -> list[KnownFile]:
        """Return what is known of these files, where anything is."""
        return [known for path in paths if (known := self._ledger.notes.at(path)) is not None]

    def is_unchanged(self, path: Path) -> bool:
        """Return whether a file of the vault is as it was last seen, or is one that we are just writing."""
        if path.name.startswith(OWN_PREFIX):
            return True
        try:
            status = path.lstat()
        except OSError:
            status = None
        place = inside(self._root, str(path))
        known = self._ledger.notes.at(place) if place else None
        if known is None or status is None:
            return False
        return (known.size, known.mtime_ns) == (status.st_size, status.st_mtime_ns)

    def has_project(self, project: str) -> bool:
        """Return whether a note belongs to it, as of the last comparison."""
        return self._ledger.notes.has_project(project)

    def of_session(self, provider: str, session: str) -> list[str]:
        """Return the paths of the notes whose evidence is in a session."""
        return sorted(known.path for known in self._ledger.notes.named("session", f"{provider}:{session}"))

    def by_id(self, id: str) -> KnownFile | None:
        """Return the note of this id as of the last comparison, or the one that it was merged into; unread."""
        return self._ledger.notes.by_id(id) or self._ledger.notes.by_id(self._ledger.relations.absorbed_by(id))

    def saying(self, text: str) -> KnownFile | None:
        """Return an accepted or proposed note with exactly this text, unread."""
        standing = (NoteStatus.ACCEPTED.value, NoteStatus.PROPOSED.value)
        return next((one for one in self._ledger.notes.by_body(body_key(text)) if one.id and one.status in standing), None)

    def holds_words(self, key: str) -> bool:
        """Return whether any note, a person's own as well, has this `wording.body_key`."""
        return bool(self._ledger.notes.by_body(key))

    def led_to(self, target: str) -> KnownFile | None:
        """Return the note that a link to ``target`` leads to, unread."""
        return self._ledger.notes.by_stem(link_key(target))

    def linking_to(self, path: str) -> list[KnownFile]:
        """Return the notes that link to this one, unread."""
        return [known for known in self._ledger.notes.named("link", link_key(path)) if known.path != path]

    def linked_by(self, path: str) -> list[KnownFile]:
        """Return the notes that this one links to, unread."""
        return [known for known in self._ledger.notes.linked_by(path) if known.path != path]

    def most_linked(self, limit: int) -> list[tuple[KnownFile, int]]:
        """Return the notes that most others link to, unread, and how many do."""
        found = [(self._ledger.notes.by_stem(name), links) for name, links in self._ledger.notes.most_linked(limit)]
        return [(known, links) for known, links in found if known is not None]

    def is_buried(self, id: str, title: str = "", project: str = "") -> bool:
        """Return whether its owner has deleted the note of this id, the one that it was merged into, or one of this title."""
        gone = self._ledger.tombstones.is_buried(id) or self._ledger.tombstones.is_buried(self._ledger.relations.absorbed_by(id))
        return gone or (bool(title) and self._ledger.tombstones.is_title_buried(title, project))

    def settled(self) -> frozenset[tuple[str, str]]:
        """Return all pairs of note ids for which it was decided before what the newer does to the older."""
        return self._ledger.relations.all_settled()

    def ruled(self, newer: str, older: str, ruling: Literal["replaces", "neither"]) -> None:
        """Record a ruling on a pair. The notes themselves are not changed: they already agree with it."""
        self._ledger.relations.rule(newer, older, ruling)
