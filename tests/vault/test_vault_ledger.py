"""What is known beside the notes themselves."""

import contextlib
import os
import sqlite3
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kite_memory.errors import KiteError, StateDamaged, StateNewer, VaultReadOnly
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.system.private_files import WriterLock
from kite_memory.system.sqlite import migrate
from kite_memory.vault.files import Stamp
from kite_memory.vault.ledger import Intent, Ledger
from kite_memory.vault.ledger.database import MIGRATIONS, VERSION
from tests.vault.building import START


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()

    with pytest.raises(StateNewer) as newer:
        Ledger(path)
    assert newer.value.hint


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be taken for one" * 40, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_a_damaged_ledger_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(content)

    with pytest.raises(StateDamaged) as damaged:
        Ledger(tmp_path / "ledger.sqlite")
    assert ".trash" in damaged.value.hint


def test_a_text_that_is_invalid_any_more_is_said(tmp_path: Path) -> None:
    """Of such damage SQLite knows nothing, and Python's error for it has no code."""
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    ledger.set("x", "y")
    ledger._database.run("UPDATE settings SET value = CAST(x'ff9f' AS TEXT)")

    with pytest.raises(StateDamaged, match="is damaged"):
        ledger.setting("x")
    ledger.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_it_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        ledger = Ledger(tmp_path / "state" / "deep" / "ledger.sqlite")
        ledger.set("x", "y")
    finally:
        os.umask(before)

    for path in (tmp_path / "state").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    ledger.close()


def test_a_change_that_fails_leaves_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")

    with pytest.raises(ZeroDivisionError), ledger.changing():
        ledger.set("x", "y")
        ledger.relations.absorb("draft", "note")
        raise ZeroDivisionError

    assert (ledger.setting("x"), ledger.relations.absorbed_by("draft")) == ("", "")
    ledger.set("x", "z")
    assert ledger.setting("x") == "z"
    ledger.close()


def test_a_full_disk_is_said_in_our_words(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger._database.run("PRAGMA max_page_count = 1")

    with pytest.raises(VaultReadOnly, match="no space left"), ledger.changing():
        for number in range(2_000):
            ledger.relations.absorb(f"draft {number}" * 20, "note")

    assert ledger.relations.absorbed_by("draft 0" * 20) == ""
    ledger.close()


def test_a_state_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(VaultReadOnly) as refused:
        Ledger(tmp_path / "file" / "ledger.sqlite")
    assert refused.value.hint


def test_a_change_that_could_not_begin_leaves_the_next_one_as_lasting_as_ever(tmp_path: Path) -> None:
    one, two = Ledger(tmp_path / "ledger.sqlite"), Ledger(tmp_path / "ledger.sqlite")
    one._database.run("PRAGMA busy_timeout = 1")
    with two.changing(), pytest.raises(KiteError), one.changing(lasting=False):
        pass

    with one.changing():
        (synchronous,) = one._database.run("PRAGMA synchronous")[0]

    assert synchronous == 2  # FULL
    one.close()
    two.close()


def test_what_was_begun_is_known_to_the_next_process(tmp_path: Path) -> None:
    intent = Intent(id="ID", doing="create", path="a.md", temporary=".kmem-fill-1", title="A", project="")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.intend(intent)
    ledger.close()

    again = Ledger(tmp_path / "ledger.sqlite")

    assert again.intents() == [intent]
    again.done("ID")
    assert again.intents() == []
    again.close()


def test_the_dead_are_known_by_id_and_by_every_title(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.tombstones.bury("ID", ("Late Frost", "cold"), "orchard", at=START, because="deleted")

    assert ledger.tombstones.is_buried("ID")
    assert ledger.tombstones.is_title_buried("late frost!", "orchard") and ledger.tombstones.is_title_buried("COLD", "orchard")
    assert not ledger.tombstones.is_title_buried("late frost", "meadow")
    ledger.tombstones.lift("ID")
    assert not ledger.tombstones.is_buried("ID") and not ledger.tombstones.is_title_buried("cold", "orchard")
    ledger.close()


def test_a_state_folder_that_may_not_be_written_to_is_said(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger._database.run("PRAGMA query_only = ON")

    with pytest.raises(VaultReadOnly):
        ledger.set("x", "y")
    ledger.close()


def test_two_writers_wait_for_each_other_and_say_when_it_takes_too_long(tmp_path: Path) -> None:
    one, two = Ledger(tmp_path / "ledger.sqlite"), Ledger(tmp_path / "ledger.sqlite")
    two._database.run("PRAGMA busy_timeout = 1")

    with one.changing():
        one.set("x", "y")
        with pytest.raises(KiteError, match="busy"):
            two.set("x", "z")
    two.set("x", "z")

    assert one.setting("x") == "z"
    one.close()
    two.close()


def test_a_lock_that_cannot_be_had_is_said(tmp_path: Path) -> None:
    with pytest.raises(VaultReadOnly), WriterLock(tmp_path / "nowhere" / "x.lock").held():
        raise AssertionError("not locked")


def test_a_lock_is_for_one_at_a_time_and_may_be_taken_again_by_who_has_it(tmp_path: Path) -> None:
    mine, theirs = WriterLock(tmp_path / "x.lock"), WriterLock(tmp_path / "x.lock")
    entered = threading.Event()

    def wait() -> None:
        with theirs.held():
            entered.set()

    waiting = threading.Thread(target=wait)
    with mine.held() as outermost, mine.held() as inner:
        waiting.start()
        assert (outermost, inner) == (True, False)
        assert not entered.wait(0.05)
    waiting.join()

    assert entered.is_set()


def test_a_ledger_of_the_second_version_learns_of_rulings(tmp_path: Path) -> None:
    from kite_memory.vault.ledger.database import _VERSION_1, _VERSION_2

    file = tmp_path / "vault.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as database:
        for statement in (*_VERSION_1, *_VERSION_2):
            database.execute(statement)
        database.execute("PRAGMA user_version = 2")
        database.commit()

    with contextlib.closing(Ledger(file)) as ledger:
        ledger.relations.rule("NEW", "OLD", "replaces")

        assert ledger.relations.settled(["OLD"]) == {("NEW", "OLD")}


def test_what_waits_is_known_without_a_look_at_the_rest(tmp_path: Path) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    stamp = Stamp(size=1, mtime_ns=1)
    plain = Note(id="A", path="a.md", kind=NoteKind.FACT, title="a", body="a", created=at, updated=at)
    with contextlib.closing(Ledger(tmp_path / "vault.sqlite")) as ledger:
        with ledger.changing():
            ledger.notes.see(plain, stamp, id="A")
            ledger.notes.see(replace(plain, id="B", path="b.md", status=NoteStatus.PROPOSED), stamp, id="B")
            ledger.notes.see(replace(plain, id="C", path="c.md", conflicts=("[[a]]",)), stamp, id="C")
            ledger.notes.see(replace(plain, id="D", path="d.md", review="split"), stamp, id="D")
            ledger.notes.see(replace(plain, id="E", path="e.md", review="split", status=NoteStatus.SUPERSEDED), stamp, id="E")
            ledger.notes.see(replace(plain, id="B", path="b copy.md", status=NoteStatus.PROPOSED), stamp, id="B", duplicate=True)
        assert [each.path for each in ledger.notes.waiting()] == ["b.md", "c.md", "d.md"]

        ledger.notes.see(replace(plain, id="C", path="c.md"), stamp, id="C")

        assert [each.path for each in ledger.notes.waiting()] == ["b.md", "d.md"]


def test_a_title_that_is_not_to_be_made_again_is_kept_unreadable(tmp_path: Path) -> None:
    file = tmp_path / "vault.sqlite"
    with contextlib.closing(Ledger(file)) as ledger:
        ledger.tombstones.bury("A", ["Zanzibar pepper"], "orchard", at=datetime(2026, 3, 1, tzinfo=UTC), because="forgotten")
        assert ledger.tombstones.is_title_buried("zanzibar Pepper!", "orchard")
        ledger._database.run("UPDATE buried_titles SET title_key = 'zanzibar pepper'")  # as the fourth version had it
        ledger._database.run("DROP INDEX files_by_time")
        ledger._database.run("PRAGMA user_version = 6")

    with contextlib.closing(Ledger(file)) as ledger:
        assert ledger.tombstones.is_title_buried("zanzibar Pepper!", "orchard")
        ledger.purge()
        assert [path.name for path in tmp_path.iterdir() if b"zanzibar" in path.read_bytes()] == []
        ledger.tombstones.lift_title("Zanzibar pepper", "orchard")
        assert not ledger.tombstones.is_title_buried("Zanzibar pepper", "orchard")


def test_a_ledger_of_the_third_version_has_what_may_ask_read_again(tmp_path: Path) -> None:
    from kite_memory.vault.ledger.database import _VERSION_1, _VERSION_2, _VERSION_3

    file = tmp_path / "vault.sqlite"
    rows = [("a.md", "A", "accepted"), ("b.md", "B", "proposed"), ("c.md", "", "accepted")]
    with contextlib.closing(sqlite3.connect(file)) as database:
        for statement in (*_VERSION_1, *_VERSION_2, *_VERSION_3):
            database.execute(statement)
        for path, id, status in rows:
            database.execute(
                "INSERT INTO files (path, id, twin, kind, title, title_key, stem_key, body_key, project, status, size, mtime_ns,"
                " problem) VALUES (?, ?, 0, 'insight', '', '', '', '', '', ?, 1, 1, '')",
                (path, id, status),
            )
        database.execute("PRAGMA user_version = 3")
        database.commit()

    with contextlib.closing(Ledger(file)) as ledger:
        known = {each.path: each.size for each in ledger.notes.everything()}

        assert known == {"a.md": -1, "b.md": 1, "c.md": 1}
        assert [each.path for each in ledger.notes.waiting()] == ["b.md"]


def test_a_ledger_of_the_fourth_version_has_what_may_be_of_a_branch_read_again(tmp_path: Path) -> None:
    file = tmp_path / "vault.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as database:
        migrate(database, {version: MIGRATIONS[version] for version in range(1, 5)}, named="the ledger")
        for number, kind in enumerate(("decision", "fact", "insight")):
            database.execute(
                "INSERT INTO files (path, id, twin, kind, title, title_key, stem_key, body_key, project, status, size, mtime_ns,"
                " problem) VALUES (?, ?, 0, ?, '', '', '', '', '', 'accepted', 1, 1, '')",
                (f"{kind}.md", f"ID{number}", kind),
            )
        database.commit()

    with contextlib.closing(Ledger(file)) as ledger:
        known = {each.path: each.size for each in ledger.notes.everything()}

    assert known == {"decision.md": -1, "fact.md": -1, "insight.md": 1}


def test_a_ledger_of_the_seventh_version_has_bodies_read_again_whose_key_lacked_signs(tmp_path: Path) -> None:
    file = tmp_path / "vault.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as database:
        migrate(database, {version: MIGRATIONS[version] for version in range(1, 8)}, named="the ledger")
        for path, body in (("a.md", "0" * 32), ("b.md", "")):
            database.execute(
                "INSERT INTO files (path, id, twin, kind, title, title_key, stem_key, body_key, project, status, size, mtime_ns,"
                " problem) VALUES (?, '', 0, 'fact', '', '', '', ?, '', 'accepted', 1, 1, '')",
                (path, body),
            )
        database.commit()

    with contextlib.closing(Ledger(file)) as ledger:
        assert {each.path: each.size for each in ledger.notes.everything()} == {"a.md": -1, "b.md": 1}
