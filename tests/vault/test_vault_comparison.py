"""Judging a vault from values alone."""

from dataclasses import replace

import pytest

from kite_memory.model.note import Entry, Note
from kite_memory.vault.files import Stamp
from kite_memory.vault.ledger import KnownFile
from kite_memory.vault.listing import Listing
from kite_memory.vault.notefile import UnreadableNote
from kite_memory.vault.scanning import VaultDiff, diff_vault, to_read
from tests.vault.building import note


def known(path: str, id: str, *, size: int = 1, twin: bool = False) -> KnownFile:
    return KnownFile(
        path=path, id=id, duplicate=twin, kind="fact", title=path, project="", status="accepted", size=size, mtime_ns=1
    )


def entry(path: str, *, size: int = 1, mtime_ns: int = 1) -> Entry:
    return Entry(path=path, size=size, mtime_ns=mtime_ns)


def listing(*entries: Entry) -> Listing:
    return Listing(entries=list(entries), bare=not entries, marked=bool(entries))


def judged(before: list[KnownFile], found: Listing, ids: dict[str, str | None] | None = None, **options: bool) -> VaultDiff:
    """``ids`` are of the files that had to be read; ``None`` for one that cannot be."""
    read: dict[str, tuple[Note | UnreadableNote, Stamp]] = {}
    for one in to_read(before, found):
        id = (ids or {}).get(one.path, "")
        content = UnreadableNote(path=one.path, reason="broken") if id is None else replace(note(), id=id, path=one.path)
        read[one.path] = (content, Stamp(size=one.size, mtime_ns=one.mtime_ns))
    return diff_vault(before, found, read, buried_ids={"DEAD-1"}, **options)


def test_nothing_new_means_nothing_to_do() -> None:
    found = judged([known("a.md", "A")], listing(entry("a.md")))

    assert (found.comparison.added, found.seen, found.forgotten, found.buried) == ((), (), (), ())


def test_an_id_in_a_new_place_is_a_rename() -> None:
    found = judged([known("a.md", "A"), known("x.md", "X")], listing(entry("b.md"), entry("x.md")), {"b.md": "A"})

    assert found.comparison.renamed == (("a.md", "b.md"),)
    assert found.buried == ()


def test_a_file_without_an_id_is_followed_by_size_and_time() -> None:
    found = judged([known("a.md", "", size=7), known("x.md", "X")], listing(entry("b.md", size=7), entry("x.md")), {"b.md": ""})

    assert found.comparison.renamed == (("a.md", "b.md"),)


def test_of_two_claims_to_a_new_id_the_older_file_has_it() -> None:
    found = judged([], listing(entry("new.md", mtime_ns=9), entry("old.md", mtime_ns=5)), {"new.md": "A", "old.md": "A"})

    assert {sight.path: sight.duplicate for sight in found.seen} == {"new.md": True, "old.md": False}


def test_an_original_that_cannot_be_seen_keeps_its_id() -> None:
    hidden = replace_apart(listing(entry("copy.md")), "a.md")

    found = judged([known("a.md", "A")], hidden, {"copy.md": "A"})

    assert [sight.duplicate for sight in found.seen] == [True]
    assert found.comparison.renamed == ()
    assert found.comparison.deleted == ()


def replace_apart(found: Listing, path: str) -> Listing:
    found.apart.add(path)
    return found


def test_an_id_taken_out_by_hand_is_kept_unless_another_file_has_it() -> None:
    kept = judged([known("a.md", "A")], listing(entry("a.md", size=2)), {"a.md": ""})
    moved = judged([known("a.md", "A")], listing(entry("a.md", size=2), entry("b.md")), {"a.md": "", "b.md": "A"})

    assert [sight.id for sight in kept.seen] == ["A"]
    assert {sight.path: sight.id for sight in moved.seen} == {"a.md": "", "b.md": "A"}
    assert kept.buried == moved.buried == ()


def test_an_id_changed_by_hand_is_the_end_of_the_old_one() -> None:
    found = judged([known("a.md", "A")], listing(entry("a.md", size=2)), {"a.md": "B"})

    assert [one.id for one in found.buried] == ["A"]


def test_the_dead_who_are_back_are_alive() -> None:
    found = judged([known("x.md", "X")], listing(entry("x.md"), entry("a.md")), {"a.md": "DEAD-1"})

    assert (found.lifted, found.comparison.returned) == (("DEAD-1",), ("a.md",))


def test_a_broken_file_keeps_its_id_and_is_a_problem() -> None:
    found = judged([known("a.md", "A")], listing(entry("a.md", size=2)), {"a.md": None})

    assert [(sight.id, sight.duplicate) for sight in found.seen] == [("A", False)]
    assert [problem.reason for problem in found.comparison.problems] == ["broken"]


@pytest.mark.parametrize(
    ("total", "gone", "marked", "frozen"),
    [
        (1, 1, True, False),
        (1, 1, False, True),
        (3, 3, True, False),
        (4, 4, True, True),
        (11, 10, True, False),
        (12, 11, True, True),
        (100, 30, True, False),
        (100, 31, True, True),
    ],
)
def test_when_deletions_are_too_many_to_be_believed(total: int, gone: int, marked: bool, frozen: bool) -> None:
    before = [known(f"{number}.md", f"ID{number}") for number in range(total)]
    found = Listing(entries=[entry(one.path) for one in before[gone:]], bare=False, marked=marked)

    judgement = judged(before, found)

    assert bool(judgement.comparison.frozen) == frozen
    assert len(judgement.buried) == (0 if frozen else gone)
    assert len(judged(before, found, accept=True).buried) == gone
