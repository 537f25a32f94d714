"""What has changed in the vault since the last comparison: decided from what is known, what is listed and what was read."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from kite_memory.model.note import Entry, Note
from kite_memory.model.read_result import Problem
from kite_memory.vault.files import Stamp
from kite_memory.vault.ledger import KnownFile, OpenedFile
from kite_memory.vault.listing import Listing
from kite_memory.vault.notefile import UnreadableNote

_FEW = 10
_SHARE = 0.3
_A_HANDFUL = 3
_ENOUGH_TO_LOOK = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Changes in the vault. Paths are present ones; ``renamed`` holds old and new.

    ``returned`` are notes that their owner had deleted and put back. ``frozen`` is why so much is missing that nothing was
    concluded from it; the rest is then empty. ``rescued`` is text not written by us that an interrupted write had left, now in the
    trash.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    deleted: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    rescued: tuple[str, ...] = ()
    frozen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A comparison, and what the ledger should record of it."""

    comparison: Comparison
    forgotten: tuple[str, ...]
    seen: tuple[OpenedFile, ...]
    originals: tuple[str, ...]
    buried: tuple[KnownFile, ...]
    lifted: tuple[str, ...]


def to_read(known: Sequence[KnownFile], found: Listing) -> list[Entry]:
    """Return the files that differ from what is known of them."""
    stamps = {one.path: (one.size, one.mtime_ns) for one in known}
    return [entry for entry in found.entries if stamps.get(entry.path) != (entry.size, entry.mtime_ns)]


def missing_too_many(known: Sequence[KnownFile], gone: int, found: Listing) -> str:
    """Return why this looks like an unmounted disk rather than like deleted notes; empty if it does not."""
    total = sum(not one.twin for one in known)
    if gone and gone == total and (found.bare or not found.marked or total > _A_HANDFUL):
        return f"none of the {total} known notes is there" if total > 1 else "the only known note is not there, nor anything else"
    if gone > max(_FEW, _SHARE * total):
        return f"{gone} of the {total} known notes are gone at once"
    return ""


def missing_some(sample: int, gone: int) -> bool:
    """Return whether `missing_too_many` may hold, judged by a sample of the known notes."""
    return gone > max(_A_HANDFUL, _ENOUGH_TO_LOOK * sample) or (gone == sample and sample > 0)


def judge(
    known: Sequence[KnownFile],
    found: Listing,
    read: Mapping[str, tuple[Note | UnreadableNote, Stamp]],
    *,
    buried_ids: Container[str],
    accept: bool = False,
) -> Judgement:
    """Compare by ids: a known id in a new place is a renamed note, one in two places a copy, one in none a deleted note.

    A file that lost its id, or cannot be read any more, keeps the id it had. With ``accept``, any number of notes may be missing.
    """
    before = {one.path: one for one in known}
    listed = {entry.path: entry for entry in found.entries if entry.path in before or entry.path in read}
    ids, twins = _identities(before, listed, read, found)
    holders = {id: path for path, id in ids.items() if id and path not in twins}

    absent = [one for one in known if one.path not in listed and not found.hides(one.path)]
    renamed: list[tuple[str, str]] = []
    gone: list[KnownFile] = []
    nameless = {  # files without an id are followed by size and time, which a rename keeps
        (entry.size, entry.mtime_ns): path
        for path, entry in listed.items()
        if path not in before and (not ids[path] or path in twins)
    }
    for one in absent:
        new = holders.get(one.id) if one.id and not one.twin else nameless.pop((one.size, one.mtime_ns), None)
        if new is not None:
            renamed.append((one.path, new))
        else:
            gone.append(one)

    frozen = "" if accept else missing_too_many(known, sum(not one.twin for one in gone), found)
    if frozen:
        return Judgement(comparison=Comparison(frozen=frozen), forgotten=(), seen=(), originals=(), buried=(), lifted=())

    moved_to = {new for _, new in renamed}
    seen = tuple(
        OpenedFile(path=path, stamp=stamp, note=note, id=ids[path], twin=path in twins, known=before.get(path))
        for path, (note, stamp) in read.items()
        if path in listed
    )
    originals = tuple(path for path in listed if path not in read and before[path].twin and path not in twins)
    buried = tuple(one for one in gone if one.id and not one.twin)
    changed_ids = tuple(one for one in known if one.id and not one.twin and one.path in listed and one.id not in holders)
    lifted = tuple(id for id in holders if id in buried_ids)
    comparison = Comparison(
        added=tuple(path for path in read if path in listed and path not in before and path not in moved_to),
        changed=tuple(path for path in read if path in listed and path in before),
        renamed=tuple(renamed),
        deleted=tuple(one.path for one in gone),
        returned=tuple(holders[id] for id in lifted),
        problems=(
            *found.problems,
            *(Problem(file=path, position=0, reason="same id as another note") for path in sorted(twins)),
            *(Problem(file=one.path, position=0, reason=one.note.reason) for one in seen if isinstance(one.note, UnreadableNote)),
            *(
                Problem(file=path, position=0, reason=before[path].problem)
                for path in listed
                if path not in read and before[path].problem
            ),
        ),
    )
    return Judgement(
        comparison=comparison,
        forgotten=(*(one.path for one in absent), *(one.path for one in seen)),
        seen=seen,
        originals=originals,
        buried=(*buried, *changed_ids),
        lifted=lifted,
    )


def _identities(
    before: Mapping[str, KnownFile],
    listed: Mapping[str, Entry],
    read: Mapping[str, tuple[Note | UnreadableNote, Stamp]],
    found: Listing,
) -> tuple[dict[str, str], set[str]]:
    """Return the id of each listed file, and which of them are copies of another."""
    ids: dict[str, str] = {}
    firm: dict[str, list[str]] = {}
    kept: dict[str, str] = {}
    for path in listed:
        known = before.get(path)
        note = read[path][0] if path in read else None
        ids[path] = note.id if isinstance(note, Note) else known.id if known and note is None else ""
        if ids[path]:
            firm.setdefault(ids[path], []).append(path)
        elif known and known.id and not known.twin:
            kept[path] = known.id
    for path, id in kept.items():
        if id not in firm:
            ids[path] = id
            firm[id] = [path]
    home = {one.id: one.path for one in before.values() if one.id and not one.twin}
    twins: set[str] = set()
    for id, paths in firm.items():
        if len(paths) == 1 and home.get(id) in (None, paths[0]):
            continue
        old = home.get(id, "")
        if old in paths:
            original = old
        elif old and found.hides(old):
            original = ""
        else:
            original = min(paths, key=lambda path: (listed[path].mtime_ns, len(path), path))
        twins.update(path for path in paths if path != original)
    return ids, twins
