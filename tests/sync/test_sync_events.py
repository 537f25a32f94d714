"""Conversations, forgetting and counts on several machines."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kite_memory.app.syncing import purge
from kite_memory.recall.uptake import Tally
from kite_memory.sync.rows import Row, UptakeRow, written
from kite_memory.sync.segments import SharedFolder, SyncKey, pack, unpack
from kite_memory.sync.state import NAMES, SyncState
from tests.sync.homes import Clock, Home, homes, open_home, said, session_of, settle

LAPTOP, DESK = session_of("1"), session_of("2")
WORDS = "the gate code is plum tart"


def everything(home: Home, *, state: bool = True) -> bytes:
    """Return all that is in the shared folder, unpacked, and in the ``state`` folder."""
    key = SyncKey.parse(home.key())
    folder = home.shared / "kite-sync"
    shared = SharedFolder(root=home.shared)
    rows = [row for each in shared.machines() for number in shared.numbers(each) for row in shared.rows(each, number, key)[0]]
    assert folder.is_dir()
    files = sorted((home.root / "state").rglob("*")) if state else []
    return b"".join(path.read_bytes() for path in files if path.is_file()) + b"".join(map(written, rows))


def test_conversations_of_both_are_on_both(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.read(said(0, "why pears?", LAPTOP), said(1, "they keep", LAPTOP), session=LAPTOP)
        desk.read(said(5, "why plums?", DESK), session=DESK)

        settle(laptop, desk)

        for home in (laptop, desk):
            assert home.texts(LAPTOP) == ["why pears?", "they keep"]
            assert home.texts(DESK) == ["why plums?"]


def test_what_comes_from_elsewhere_is_not_distilled_here(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.read(*(said(number, f"row {number}", LAPTOP) for number in range(5)), session=LAPTOP)
        desk.read(said(5, "why plums?", DESK), session=DESK)
        settle(laptop, desk)

        assert desk.services.pipeline.open_count() == 1
        assert desk.services.pipeline.passed_over() == []
        laptop.read(said(7, "row 7", LAPTOP), session=LAPTOP)
        settle(laptop, desk)
        assert desk.services.pipeline.open_count() == 1
        assert desk.services.pipeline.passed_over() == []


def test_an_event_that_an_agent_rewrites_is_rewritten_there(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        first = said(0, "why pe", LAPTOP)
        laptop.read(first, session=LAPTOP)
        settle(laptop, desk)

        laptop.read(replace(first, text="why pears?"), session=LAPTOP, amends=True)
        settle(laptop, desk)

        assert desk.texts(LAPTOP) == ["why pears?"]


def test_a_note_can_be_written_while_the_events_are_sent(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    free: list[bool] = []

    def look(doing: str) -> None:
        if doing == "send":
            with ThreadPoolExecutor(1) as another:
                free.append(another.submit(laptop.services.vault.lock.acquire, blocking=False).result())
                if free[-1]:
                    another.submit(laptop.services.vault.lock.release).result()

    with open_home(tmp_path / "laptop", tmp_path / "shared", Clock(), look) as laptop:
        laptop.remember("Frost covers come off in May.")
        laptop.read(said(0, "why pears?", LAPTOP), session=LAPTOP)
        laptop.sync()

    assert free == [False, True]


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.read(said(0, "why pears?", LAPTOP), session=LAPTOP)
        laptop.remember("Frost covers come off in May.")
        settle(laptop, desk)
        before = sorted((path, path.stat().st_mtime_ns) for path in laptop.shared.rglob("*"))

        laptop.sync()
        desk.sync()

        assert sorted((path, path.stat().st_mtime_ns) for path in laptop.shared.rglob("*")) == before


def test_what_is_erased_on_one_is_erased_on_the_other_and_in_the_folder(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        event = said(0, f"remember: {WORDS}", LAPTOP)
        laptop.read(event, said(1, "noted", LAPTOP), session=LAPTOP)
        settle(laptop, desk)
        assert WORDS.encode() in everything(desk)

        laptop.forgetting.forget_events(laptop.forgetting.ground(laptop.services.timeline.events.citation(event.id)), blank=True)
        laptop.forgetting.purge_files({})
        settle(laptop, desk)

        for home in (laptop, desk):
            assert WORDS not in "".join(home.texts(LAPTOP))
            assert WORDS.encode() not in everything(home)


def test_what_is_forgotten_leaves_the_state_of_sync_at_once_even_if_it_is_not_in_the_folder_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        kept, gone = laptop.remember("Frost covers come off in May."), laptop.remember(f"In short, {WORDS}.")
        settle(laptop, desk)
        event, other = said(0, f"remember: {WORDS}", LAPTOP), said(1, "the pears keep", LAPTOP)
        laptop.read(event, other, session=LAPTOP)
        laptop.write(gone, f"Once more, {WORDS}.")
        laptop.write(kept, "Or in June.")
        with monkeypatch.context() as unreachable:
            unreachable.setattr(SharedFolder, "put", unreadable)
            for _ in range(2):
                with pytest.raises(OSError, match="unreachable"):
                    laptop.sync()
        timeline, vault = laptop.services.timeline, laptop.services.vault
        laptop.forgetting.forget_events(laptop.forgetting.ground(timeline.events.citation(event.id)), blank=True)
        laptop.forgetting.forget_notes([vault.notes.find(gone)])

        assert laptop.forgetting.purge_files({"sync.sqlite": partial(purge, laptop.root / "state", timeline, vault)}) == []

        with closing(SyncState(laptop.root / "state" / "sync.sqlite")) as state:
            key = SyncKey.parse(laptop.key())
            waiting = [unpack(content, key=key, machine=state.machine, number=number)[0] for number, content in state.pending.all()]
        assert waiting and WORDS not in repr(waiting)
        assert b"plum-tart" not in (laptop.root / "state" / "sync.sqlite").read_bytes()
        settle(laptop, desk)
        assert WORDS.encode() not in everything(laptop)
        assert (desk.texts(LAPTOP), "Or in June." in "".join(desk.files().values())) == ([other.text], True)


def unreadable(*_: object) -> None:
    raise OSError("unreachable")


def test_what_is_erased_leaves_the_folder_under_a_former_name_of_this_machine_too(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        event, note = said(0, f"remember: {WORDS}", LAPTOP), laptop.remember(f"In short, {WORDS}.")
        laptop.read(event, session=LAPTOP)
        settle(laptop, desk)
        key = laptop.key()
        for file in (laptop.root / "state").glob("sync.sqlite*"):  # as its error of damage advises
            file.unlink()
        laptop.sync(join=key)
        laptop.forgetting.forget_events(laptop.forgetting.ground(laptop.services.timeline.events.citation(event.id)), blank=True)
        laptop.services.vault.edits.forget(note)

        settle(laptop, desk)

        assert len(SharedFolder(root=laptop.shared).machines()) == 2
        assert WORDS.encode() not in everything(laptop, state=False)


def test_the_name_from_before_an_upgrade_is_kept_when_the_exchange_begins_anew(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        note = laptop.remember(f"In short, {WORDS}.")
        settle(laptop, desk)
        (laptop.root / "state" / NAMES).unlink()  # earlier versions wrote none
        (tmp_path / "another").mkdir()
        laptop.syncing.sync(target=str(tmp_path / "another"))
        laptop.sync(join=laptop.key())
        laptop.services.vault.edits.forget(note)

        settle(laptop, desk)

        assert WORDS.encode() not in everything(laptop, state=False)


def test_own_segments_are_not_rewritten_for_rows_that_only_another_version_understands(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        note = laptop.remember("Frost covers come off in May.")
        settle(laptop, desk)
        machine = laptop.syncing.status(target=str(laptop.shared))["machine"]
        odd: list[Row] = [UptakeRow(note="a\nb", shown=1, used=0, ignored=0)]
        segment = pack(odd, key=SyncKey.parse(laptop.key()), machine=machine, number=99)
        SharedFolder(root=laptop.shared).put(machine, 99, segment)
        (file,) = laptop.shared.glob(f"kite-sync/{machine}/00000099.segment")
        as_written = file.read_bytes()
        with closing(SyncState(laptop.root / "state" / "sync.sqlite")) as state, state.changing():
            state.pending.add(99, segment)
        laptop.services.vault.edits.forget(note)

        laptop.sync()

        assert file.read_bytes() == as_written
        assert b"Frost" not in everything(laptop, state=False)


def test_a_note_forgotten_as_another_comes_back_leaves_the_folder(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        first, second = laptop.remember("Frost covers come off in May."), laptop.remember(f"In short, {WORDS}.")
        settle(laptop, desk)
        forgotten = laptop.services.vault.edits.forget(first)
        settle(laptop, desk)

        (laptop.vault / forgotten.trashed).rename(laptop.vault / forgotten.path)
        laptop.services.vault.edits.forget(second)
        settle(laptop, desk)

        assert WORDS.encode() not in everything(laptop, state=False)


def test_what_was_erased_before_it_was_read_here_is_not_read_here(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        event = said(0, f"remember: {WORDS}", LAPTOP)
        laptop.read(event, session=LAPTOP)
        settle(laptop, desk)
        desk.forgetting.forget_events(desk.forgetting.ground(desk.services.timeline.events.citation(event.id)), blank=True)
        settle(laptop, desk)

        for home in (laptop, desk):
            home.read(event, session=LAPTOP)
        settle(laptop, desk)

        assert WORDS not in "".join(laptop.texts(LAPTOP) + desk.texts(LAPTOP))


def test_a_machine_that_was_away_never_gets_what_was_erased_meanwhile(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk", "shed") as (laptop, desk, shed):
        event = said(0, f"remember: {WORDS}", LAPTOP)
        laptop.read(event, session=LAPTOP)
        id = laptop.remember(f"In short, {WORDS}.")
        settle(laptop, desk)

        laptop.forgetting.forget_events(laptop.forgetting.ground(laptop.services.timeline.events.citation(event.id)), blank=True)
        desk.services.vault.edits.forget(id)
        settle(laptop, desk)
        settle(laptop, desk, shed)

        assert WORDS.encode() not in everything(shed)
        assert shed.files() == {}


def test_counts_of_all_machines_are_added_up_once(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.services.recall.memory.hear_tallies("before", {})
        connection = laptop.services.recall.memory._connection
        connection.execute("INSERT INTO tally (note, shown, used, ignored) VALUES ('n', 5, 2, 1)")
        desk.services.recall.memory._connection.execute("INSERT INTO tally (note, shown, used, ignored) VALUES ('n', 1, 1, 0)")
        settle(laptop, desk)
        settle(laptop, desk)
        connection.execute("UPDATE tally SET shown = 6 WHERE note = 'n'")
        settle(laptop, desk)

        for home in (laptop, desk):
            assert home.services.recall.memory.tallies()["n"] == Tally(shown=7, used=3, ignored=1)


def test_a_timeline_made_anew_is_filled_again(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.read(said(0, "why pears?", LAPTOP), session=LAPTOP)
        settle(laptop, desk)
    for path in (tmp_path / "desk" / "state").glob("timeline.sqlite*"):
        path.unlink()

    from tests.sync.homes import Clock, open_home

    with open_home(tmp_path / "desk", tmp_path / "shared", Clock()) as desk:
        desk.sync()

        assert desk.texts(LAPTOP) == ["why pears?"]


def test_lost_state_of_the_exchange_doubles_nothing(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.read(said(0, "why pears?", LAPTOP), session=LAPTOP)
        id = laptop.remember("Frost covers come off in May.")
        settle(laptop, desk)
        key = desk.key()
        (tmp_path / "desk" / "state" / "sync.sqlite").unlink()
        desk.write(id, "Unless it freezes.")

        desk.sync(join=key)
        settle(laptop, desk)

        assert laptop.texts(LAPTOP) == desk.texts(LAPTOP) == ["why pears?"]
        assert laptop.files() == desk.files()
        assert "Unless it freezes." in "".join(laptop.files().values())
