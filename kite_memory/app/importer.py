"""Import of other memories into the vault: read, planned like all notes, then carried out or only listed."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, assert_never

from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.errors import UsageError
from kite_memory.exchange import ImportFormat
from kite_memory.exchange.foreign import MOST_BODY, Foreign, NotImported, ReimportedNote, drafts, references
from kite_memory.exchange.importing import Pieces, format_of, pieces
from kite_memory.model.note import Amend, Create, Note, NoteStatus, Skip, Supersede
from kite_memory.projects import project_of
from kite_memory.vault import Vault, links
from kite_memory.vault.drafting import Draft
from kite_memory.vault.ledger import KeyPlace, KnownFile
from kite_memory.vault.links import Link
from kite_memory.vault.notefile import body_of, with_body
from kite_memory.vault.wording import body_key
from kite_memory.vault.writing import Amended, LeftAlone, Skipped, Superseded, Written

Json = dict[str, Any]

_AT_ONCE = 200
_HERE = "already in this vault"


class Importer:
    """The operation `import`: notes of another memory become notes of this vault. Thread-safe."""

    def __init__(self, *, vault: Vault, indexer: NoteIndexer) -> None:
        self._vault = vault
        self._indexer = indexer
        self._lock = vault.lock

    def operations(self) -> Mapping[str, Callable[..., Json]]:
        return {"import": self.import_part}

    def import_part(
        self, *, path: str, sort: str = "", project: str = "", accepted: bool = False, dry_run: bool = False, start: int = 0
    ) -> Json:
        """Import a part of the memory at ``path``, from piece ``start``.

        ``next`` of the result is where to continue, ``None`` at the end.
        """
        file = Path(path)
        which = _sort(sort) if sort else format_of(file)
        if (file.is_dir() or file.suffix.casefold() == ".md") and file.resolve().is_relative_to(self._vault.root.resolve()):
            raise UsageError(f"{path} belongs to the vault itself", hint="its notes are known already; name another memory")
        named = project_of(project) or project if project else ""
        part = list(islice(pieces(file, which, project=named, project_of=project_of), start, start + _AT_ONCE + 1))
        more = len(part) > _AT_ONCE
        part = part[:_AT_ONCE]
        if which is ImportFormat.KMEM:
            part = [self._unless_here(piece) for piece in part]
        made = drafts((piece for piece in part if not isinstance(piece, NotImported)), accepted=accepted)
        passed = Counter(piece.reason for piece in part if isinstance(piece, NotImported))
        if cut := sum(isinstance(piece, Foreign) and piece.origin != "user" and len(piece.body) > MOST_BODY for piece in part):
            passed[f"the rest of a note of more than {MOST_BODY:,} characters"] = cut
        alone = nullcontext() if dry_run else self._vault.undisturbed()
        with self._lock, alone:
            actions = self._vault.planner.plan([self._without_taken_key(each) for each in made])
            reported = [_action_json(action) for action in actions]
            if not dry_run:
                outcomes = self._vault.planner.carry_out(actions)
                reported = [_outcome(outcome, line) for outcome, line in zip(outcomes, reported, strict=True)]
                paths = {each["path"] for each in reported if each["doing"] in ("create", "amend")}
                if not more and which is ImportFormat.KMEM:
                    taken = pieces(file, which, project=named, project_of=project_of)
                    paths |= self._led(taken, accepted=accepted)
                if not more and which in (ImportFormat.KMEM, ImportFormat.MARKDOWN):
                    paths |= self._linked(lambda: pieces(file, which, project=named, project_of=project_of), accepted=accepted)
                if paths:
                    self._indexer.refresh(paths)
        return {
            "from": which.value,
            "actions": reported,
            "passed_over": [{"reason": reason, "count": count} for reason, count in sorted(passed.items())],
            "next": start + _AT_ONCE if more else None,
        }

    def _unless_here(self, piece: Foreign | ReimportedNote | NotImported) -> Foreign | ReimportedNote | NotImported:
        """Skip a user's own page in an export if this vault holds it, in the same place or moved since."""
        if not isinstance(piece, Foreign):
            return piece
        said = {body_key(piece.body), body_key(f"# {piece.title}\n{piece.body}")}  # its heading became its title
        there = self._vault.notes.raw(piece.name)
        stands = there is not None and body_key(body_of(there.decode(errors="replace"))) in said
        return NotImported(name=piece.name, reason=_HERE) if stands or any(map(self._vault.known.holds_words, said)) else piece

    def _without_taken_key(self, draft: Draft) -> Draft:
        """Return the draft without its key if another note has that here: it would answer in place of what is kept."""
        there = self._vault.keys.find(KeyPlace.of(draft.note)) if draft.note.key else None
        if there is None or there.note.id == draft.note.id:
            return draft
        return replace(draft, note=replace(draft.note, key=""))

    def _led(self, taken: Iterable[Foreign | ReimportedNote | NotImported], *, accepted: bool) -> set[str]:
        """Restore the references between imported notes once all are here, and return the paths of changed notes.

        A reference is what a note replaces, is replaced by, or may contradict. Pairs that a user has decided between are skipped,
        and so are notes whose text differs from the import; an accepted note is changed only if ``accepted``.
        """
        kept = {piece.note.id: piece for piece in taken if isinstance(piece, ReimportedNote)}
        settled = self._vault.known.settled()
        changed = set()
        for id, said in references(kept.values()).items():
            known = self._vault.known.by_id(id)
            note = self._vault.notes.read(known.path) if known is not None and known.id == id else None
            if note is None or (note.status is NoteStatus.ACCEPTED and not accepted):
                continue
            if body_key(note.body) != body_key(kept[id].note.body):
                continue
            changes: dict[str, object] = {}
            for name, ids in said.items():
                there = [PurePosixPath(known.path).stem for each in ids if (known := self._there(id, each, settled))]
                stems = [f"[[{stem}]]" for stem in there if links.holds(stem)]
                if stems and not getattr(note, name):
                    changes[name] = stems[0] if name == "superseded_by" else stems
            if changes and self._vault.edits.annotate(id, changes):
                changed.add(note.path)
        return changed

    def _linked(self, taken: Callable[[], Pieces], *, accepted: bool) -> set[str]:
        """Restore the links between imported notes once all are here, and return the paths of changed notes.

        Only notes that still have the imported text and were not edited by a user are changed.
        """
        called = _Called(taken(), accepted=accepted)
        changed = set()
        for piece in taken():
            if not isinstance(piece, Foreign) or "[[" not in piece.body:
                continue
            (draft,) = drafts([piece], accepted=accepted)
            known = self._vault.known.by_id(draft.note.id)
            note = self._vault.notes.read(known.path) if known is not None and known.id == draft.note.id else None
            if note is None or not self._vault.notes.is_ours(note):
                continue
            body = self._relinked(draft.note.body, note.body, called)
            text = self._vault.notes.text(note.path)
            after = with_body(text, f"{body}\n")
            if body != note.body and self._vault.edits.rewrite(note.path, text, after):
                changed.add(note.path)
        return changed

    def _relinked(self, came: str, stands: str, called: "_Called") -> str:
        """Return the imported text with links to the notes' current places.

        Any other link is kept as it ``stands``, or written as plain text if the note has none there.
        """
        if links.replace(came, lambda link: link.shown) != links.unlinked(stands):  # edited, or nested links
            return stands
        held = {len(links.unlinked(stands[: link.start])): stands[link.start : link.end] for link in links.find(stands)}

        def led(link: Link) -> str:
            known = self._vault.known.by_id(called.id(link.target))
            stem = PurePosixPath(known.path).stem if known is not None else ""
            if not links.holds(stem):
                return held.get(len(links.unlinked(came[: link.start])), link.shown)
            place = f"{stem}#{link.heading}" if link.heading else stem
            return "!" * link.embed + links.write(place, link.shown)

        return links.replace(came, led)

    def _there(self, one: str, other: str, settled: Collection[tuple[str, str]]) -> KnownFile | None:
        return None if (one, other) in settled or (other, one) in settled else self._vault.known.by_id(other)


class _Called:
    """Imported notes by the names that links use: a path, a file name, or a title."""

    def __init__(self, taken: Pieces, *, accepted: bool) -> None:
        self._ids: dict[str, str] = {}
        notes: list[Note] = []
        for piece in taken:
            match piece:
                case Foreign(name=path):
                    note = drafts([replace(piece, body="")], accepted=accepted)[0].note
                case ReimportedNote(note=note, stem=stem):
                    path = f"{stem}.md"
                case NotImported():
                    continue
                case _:
                    assert_never(piece)
            self._ids.setdefault(path, note.id)
            notes.append(replace(note, path=path, body=""))
        self._resolver = links.Resolver(notes)

    def id(self, target: str) -> str:
        """Return the id of the note that a link's target becomes, or an empty string."""
        return self._ids.get(self._resolver.follow(target) or "", "")


def _sort(named: str) -> ImportFormat:
    try:
        return ImportFormat(named)
    except ValueError:
        raise UsageError(f"unknown memory {named!r}", hint=f"choose one of: {', '.join(ImportFormat)}") from None


def _action_json(action: Create | Amend | Supersede | Skip) -> Json:
    match action:
        case Create(note=note):
            return {"doing": "create", "title": note.title, "path": note.path, "because": "", "status": note.status.value}
        case Amend(path=path, because=because):
            return {"doing": "amend", "title": "", "path": path, "because": because, "status": ""}
        case Supersede(note=note, because=because):
            return {"doing": "create", "title": note.title, "path": note.path, "because": because, "status": note.status.value}
        case Skip(title=title, because=because):
            return {"doing": "skip", "title": title, "path": "", "because": because, "status": ""}
        case _:
            assert_never(action)


def _outcome(outcome: object, action: Json) -> Json:
    match outcome:
        case Written(path=path) | Superseded(path=path):
            return {**action, "doing": "create", "path": path}
        case Amended(path=path):
            return {**action, "doing": "amend", "path": path}
        case Skipped(because=because) | LeftAlone(because=because):
            return {**action, "doing": "skip", "because": because}
        case _:
            return {**action, "doing": "skip", "because": action["because"] or "already written"}
