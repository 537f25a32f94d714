"""The vault as the bridge's store: what only it can promise, since a person and other processes are there as well."""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kite_memory.errors import StateNewer
from kite_memory.model.note import NoteKind, NoteStatus, Scope
from kite_memory.tools.local_state import VERSION, LocalState
from kite_memory.tools.local_store import LocalStore
from kite_memory.tools.store import (
    OWNER,
    Conflict,
    Grant,
    JsonValue,
    Memory,
    MemoryPlace,
    MemoryQuery,
    NotAllowed,
    NoteQuery,
    State,
    Todo,
)
from tests.fakes.clock import Clock
from tests.tools.local_stores import START, local_store

ORCHARD = MemoryPlace(scope=Scope.PROJECT, project="orchard")
SHARED = MemoryPlace(scope=Scope.SHARED)

_COUNT_UP = """
import sys
from pathlib import Path
from kite_memory.tools.store import OWNER
from kite_memory.tools.store import Conflict, MemoryPlace, MemoryQuery
from kite_memory.model.note import Scope
from tests.tools.local_stores import local_store
with local_store(Path(sys.argv[1])) as store:
    done = 0
    while done < int(sys.argv[2]):
        found = store.memories(OWNER, MemoryQuery(pattern="count", scope=Scope.SHARED))
        value, version = (found[0].value, found[0].version) if found else (0, 0)
        try:
            store.write_memory(OWNER, "count", value + 1, MemoryPlace(scope=Scope.SHARED), expected=version)
        except Conflict:
            continue
        done += 1
"""


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[LocalStore]:
    with local_store(tmp_path, clock=clock) as opened:
        yield opened


def one(store: LocalStore, key: str) -> Memory | None:
    found = store.memories(OWNER, MemoryQuery(pattern=key))
    return found[0] if found else None


def file_of(home: Path, key: str) -> Path:
    return next(path for path in (home / "vault").rglob("*.md") if f"\nkey: {key}\n" in path.read_text())


def test_a_memory_is_a_note_that_a_person_can_read(store: LocalStore, tmp_path: Path) -> None:
    store.write_memory(OWNER, "project.port", "The port is 8080.", ORCHARD, tags=["net"])

    text = file_of(tmp_path, "project.port").read_text()

    assert text.endswith("---\nThe port is 8080.\n")
    for line in ("title: project.port", "project: orchard", "scope: project", "tags: [net]"):
        assert f"\n{line}\n" in text


def test_a_memory_is_found_by_words_of_its_value_and_of_its_key(store: LocalStore) -> None:
    store.write_memory(OWNER, "project.seedlings", {"species": "walnut"}, ORCHARD)

    for words in ("walnut", "seedlings"):
        assert [found.note.key for found in store.search(OWNER, NoteQuery(text=words))] == ["project.seedlings"]


def test_what_a_person_types_is_read_at_once_and_wins(store: LocalStore, tmp_path: Path) -> None:
    store.write_memory(OWNER, "port", {"port": 80}, ORCHARD, by="codex")
    file = file_of(tmp_path, "port")
    file.write_text(file.read_text().replace('{"port": 80}', '{"port": 443}'))

    read = one(store, "port")

    assert read is not None
    assert (read.value, read.version) == ({"port": 443}, 2)
    for expected in (None, 1):
        with pytest.raises(Conflict) as conflict:
            store.write_memory(OWNER, "port", {"port": 81}, ORCHARD, expected=expected)
        assert (conflict.value.version, bool(conflict.value.hint)) == (2, True)
    assert [(each.version, each.by) for each in store.versions(OWNER, "port", ORCHARD)] == [(2, ""), (1, "codex")]


def test_the_owners_own_word_goes_over_what_is_there(store: LocalStore, tmp_path: Path) -> None:
    store.write_memory(OWNER, "port", "80", ORCHARD)
    file = file_of(tmp_path, "port")
    file.write_text(file.read_text().replace("\n80\n", "\n443\n"))

    assert store.keep("port", "8443", ORCHARD).body == "8443"
    assert [each.value for each in store.versions(OWNER, "port", ORCHARD)] == ["8443", "443", "80"]


def test_a_memory_whose_file_was_moved_or_deleted_is_followed(store: LocalStore, tmp_path: Path) -> None:
    for key in ("moved", "gone"):
        store.write_memory(OWNER, key, "x", ORCHARD)
    file_of(tmp_path, "moved").rename(tmp_path / "vault" / "elsewhere.md")
    file_of(tmp_path, "gone").unlink()

    assert one(store, "moved") is not None
    assert one(store, "gone") is None


def test_expiry_is_honoured_by_everything_at_once(store: LocalStore, clock: Clock) -> None:
    memory = store.write_memory(OWNER, "fleeting", "walnut", ORCHARD, expires=START + timedelta(hours=1))
    asked = NoteQuery(text="walnut")

    assert store.note(OWNER, memory.id) is not None
    clock.now += timedelta(hours=1)

    assert one(store, "fleeting") is None
    assert store.memories(OWNER, MemoryQuery()) == []
    assert store.search(OWNER, asked) == []
    assert store.note(OWNER, memory.id) is None
    assert store.recent(OWNER, "orchard", frozenset(), 10) == []
    assert store.versions(OWNER, "fleeting", ORCHARD) == []
    assert not store.delete_memory(OWNER, "fleeting", ORCHARD)


def test_the_same_words_for_another_scope_are_another_note(store: LocalStore) -> None:
    everybodys = store.remember(OWNER, "The walnut is old.", NoteKind.FACT, SHARED)
    bounded = Grant(name="narrow", scopes=frozenset({Scope.GLOBAL}))

    theirs = store.remember(bounded, "The walnut is old.", NoteKind.FACT, MemoryPlace(scope=Scope.GLOBAL))

    assert theirs.id != everybodys.id


@pytest.mark.parametrize(("scope", "project", "status"), [
    (Scope.SHARED, "", NoteStatus.PROPOSED),
    (Scope.GLOBAL, "", NoteStatus.PROPOSED),
    (Scope.SHARED, "orchard", NoteStatus.ACCEPTED),
])  # fmt: skip
def test_what_would_be_shown_in_every_project_waits_for_review(
    store: LocalStore, scope: Scope, project: str, status: NoteStatus
) -> None:
    place = MemoryPlace(scope=scope, project=project)
    note = store.remember(OWNER, "Walnuts are picked in October.", NoteKind.FACT, place)
    memory = store.write_memory(OWNER, "walnuts", "picked in October", place)
    changed = store.write_memory(OWNER, "walnuts", "picked in November", place)

    kept = store.note(OWNER, memory.id)
    assert kept is not None
    assert (note.status, kept.status, changed.version) == (status, status, 2)
    assert [each.value for each in store.memories(OWNER, MemoryQuery(pattern="walnuts"))] == ["picked in November"]


def test_reads_are_counted_also_those_of_an_earlier_process(tmp_path: Path) -> None:
    for _ in range(2):
        with local_store(tmp_path) as store:
            store.write_memory(OWNER, "port", "80", ORCHARD, by="codex")
            for _ in range(3):
                store.memories(OWNER, MemoryQuery(pattern="port"), touch=True)

    with local_store(tmp_path) as store:
        read = one(store, "port")

    assert read is not None
    assert (read.access_count, read.created_by, read.accessed is not None) == (6, "codex", True)


def test_nothing_of_a_forgotten_memory_is_kept_beside_the_vault(store: LocalStore, tmp_path: Path) -> None:
    store.write_memory(OWNER, "port", "80", ORCHARD, by="codex")
    store.memories(OWNER, MemoryQuery(), touch=True)

    assert store.delete_memory(OWNER, "port", ORCHARD)

    store.close()
    with sqlite3.connect(tmp_path / "state" / "bridge.sqlite") as database:
        assert database.execute("SELECT count(*) FROM memories").fetchone() == (0,)


@pytest.mark.parametrize("value", [5, "text", {"a": [1, None, True]}, [], "", "[[x]]", "```json\n1\n```"])
def test_any_value_comes_back_and_is_in_the_versions(store: LocalStore, value: JsonValue) -> None:
    store.write_memory(OWNER, "any", value, ORCHARD)

    read = one(store, "any")

    assert read is not None
    assert read.value == value
    assert [each.value for each in store.versions(OWNER, "any", ORCHARD)] == [value]


def test_two_processes_that_count_up_with_what_they_expect_lose_no_update(tmp_path: Path) -> None:
    with local_store(tmp_path):
        pass  # laid out

    counting = [
        subprocess.Popen([sys.executable, "-c", _COUNT_UP, str(tmp_path), "25"], cwd=Path(__file__).parents[2]) for _ in range(2)
    ]

    assert [process.wait(timeout=300) for process in counting] == [0, 0]
    with local_store(tmp_path) as store:
        read = one(store, "count")
        assert read is not None
        assert (read.value, read.version) == (50, 50)


def test_thirty_two_clients_that_count_up_lose_no_update(tmp_path: Path) -> None:
    with local_store(tmp_path) as store:

        def count_up(number: int) -> None:
            while True:
                found = store.memories(OWNER, MemoryQuery(pattern="count", scope=Scope.SHARED))
                value, version = (found[0].value, found[0].version) if found else (0, 0)
                assert isinstance(value, int)
                try:
                    store.write_memory(OWNER, "count", value + 1, SHARED, expected=version)
                except Conflict:
                    continue
                return

        with ThreadPoolExecutor(32) as clients:
            list(clients.map(count_up, range(64)))

        read = one(store, "count")
        assert read is not None
        assert (read.value, read.version) == (64, 64)


def test_of_clients_that_expect_nothing_every_value_is_a_version(tmp_path: Path) -> None:
    with local_store(tmp_path) as store, ThreadPoolExecutor(32) as clients:
        together = threading.Barrier(32)

        def write(number: int) -> None:
            together.wait(timeout=60)
            for turn in range(2):
                store.write_memory(OWNER, "mine", {"client": number, "turn": turn}, SHARED)

        list(clients.map(write, range(32)))

        versions = store.versions(OWNER, "mine", SHARED)
        assert [each.version for each in versions] == list(range(64, 0, -1))
        assert {json.dumps(each.value) for each in versions} == {
            json.dumps({"client": number, "turn": turn}) for number in range(32) for turn in range(2)
        }


def test_who_may_only_read_writes_nothing(store: LocalStore) -> None:
    with pytest.raises(NotAllowed):
        store.write_memory(Grant(name="reader", write=False), "port", "80", ORCHARD)

    assert store.memories(OWNER, MemoryQuery()) == []


def test_states_come_back_as_they_were_after_a_restart(tmp_path: Path) -> None:
    state = State(
        ai="codex",
        session="s1",
        project="orchard",
        todos=(Todo(text="Prune", status="in_progress"), Todo(text="Graft")),
        working_notes="ladder",
        context_summary="half done",
        saved=START,
    )
    with local_store(tmp_path) as store:
        store.save_state(OWNER, state)

    with local_store(tmp_path) as store:
        assert store.states(OWNER) == [state]


def test_what_its_owner_wrote_below_a_value_outlives_its_expiry(tmp_path: Path) -> None:
    clock = Clock(START)
    with local_store(tmp_path, clock=clock) as store:
        store.write_memory(OWNER, "port", {"http": 80}, ORCHARD, expires=START + timedelta(hours=1))
        (note,) = (tmp_path / "vault").rglob("*port*.md")
        note.write_text(note.read_text() + "\nThe printer has 8080.\n")
        clock.now += timedelta(hours=2)

        written = store.write_memory(OWNER, "port", {"http": 81}, ORCHARD, expected=0)

        assert written.value == {"http": 81}
        assert note.read_text().endswith("\nThe printer has 8080.\n")


def test_what_another_process_is_just_saving_of_a_state_is_not_lost(tmp_path: Path) -> None:
    empty = State(ai="codex", session="s1", project="orchard", todos=(), working_notes="", context_summary="", saved=START)
    with local_store(tmp_path) as store, closing(sqlite3.connect(tmp_path / "state" / "bridge.sqlite")) as other:
        store.save_state(OWNER, empty)
        other.execute("UPDATE states SET working_notes = 'in the cellar'")  # not committed yet
        saving = threading.Thread(
            target=lambda: store.save_state(OWNER, replace(empty, todos=(Todo(text="Graft"),)), only={"todos"})
        )
        saving.start()
        saving.join(0.2)
        other.commit()
        saving.join()

        (kept,) = store.states(OWNER)

    assert (kept.todos, kept.working_notes) == ((Todo(text="Graft"),), "in the cellar")


def test_a_clock_that_was_far_ahead_costs_no_state(tmp_path: Path) -> None:
    state = State(ai="codex", session="s1", project="orchard", todos=(), working_notes="x", context_summary="", saved=START)
    with local_store(tmp_path) as store:
        store.save_state(OWNER, state)

        store.save_state(OWNER, replace(state, session="s2", saved=START + timedelta(days=40_000)))

        assert [each.session for each in store.states(OWNER)] == ["s2", "s1"]


def test_of_very_many_states_the_newest_are_kept(tmp_path: Path) -> None:
    state = State(ai="codex", session="", project="orchard", todos=(), working_notes="", context_summary="", saved=START)
    with local_store(tmp_path) as store:
        for number in range(5_010):
            store.save_state(OWNER, replace(state, session=f"s{number}", saved=START + timedelta(seconds=number)))

        kept = store.states(OWNER, limit=10_000)

    assert len(kept) == 5_000
    assert (kept[0].session, kept[-1].session) == ("s5009", "s10")


def test_who_saves_very_many_states_displaces_none_of_another_project(tmp_path: Path) -> None:
    state = State(ai="codex", session="s", project="harbour", todos=(), working_notes="x", context_summary="", saved=START)
    bounded = Grant(name="orchardist", projects=frozenset({"orchard"}))
    with local_store(tmp_path) as store:
        store.save_state(OWNER, state)

        for number in range(5_001):
            later = START + timedelta(seconds=number + 1)
            store.save_state(bounded, replace(state, project="orchard", session=f"s{number}", saved=later))

        assert store.states(OWNER, project="harbour") == [state]
        assert len(store.states(OWNER, project="orchard", limit=10_000)) == 5_000


def test_what_a_newer_version_wrote_beside_the_vault_is_left_alone(tmp_path: Path) -> None:
    LocalState(tmp_path / "bridge.sqlite").close()
    with sqlite3.connect(tmp_path / "bridge.sqlite") as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")

    with pytest.raises(StateNewer):
        LocalState(tmp_path / "bridge.sqlite")


def test_a_damaged_file_beside_the_vault_is_laid_aside(tmp_path: Path) -> None:
    (tmp_path / "bridge.sqlite").write_bytes(b"this is no database" * 500)

    state = LocalState(tmp_path / "bridge.sqlite")

    assert list(state.states(ai="", session="", project="")) == []
    assert (tmp_path / "bridge.sqlite.damaged").read_bytes().startswith(b"this is no database")
    state.close()


@pytest.mark.parametrize(
    "key",
    [
        "yes",
        "null",
        "1e5",
        "0x10",
        "a: b",
        "- a",
        "#tag",
        "'",
        '"',
        "{a}",
        "[b]",
        "é ü 日本",
        "👩‍👩‍👧",
        "a|b>c&d!e%f@g`h",
        "key" * 60,
        "~",
    ],
)
def test_any_key_leads_back_to_its_memory(store: LocalStore, key: str) -> None:
    store.write_memory(OWNER, key, "x", ORCHARD)

    read = one(store, key)

    assert read is not None
    assert (read.key, read.version) == (key, 1)
    assert store.write_memory(OWNER, key, "y", ORCHARD, expected=1).id == read.id


def test_a_memory_that_is_written_is_informed_whatever_becomes_of_who_wrote_it(store: LocalStore, tmp_path: Path) -> None:
    """Else it would be there, and its writer would get the answer that nothing was changed."""
    with closing(sqlite3.connect(tmp_path / "state" / "bridge.sqlite")) as beside:
        beside.execute("CREATE TRIGGER full BEFORE INSERT ON memories BEGIN SELECT RAISE(FAIL, 'disk full'); END")

    memory = store.write_memory(OWNER, "k", "kept", ORCHARD, by="codex", expected=0)

    assert (memory.value, memory.version) == ("kept", 1)
    assert [found.note.key for found in store.search(OWNER, NoteQuery(text="kept"))] == ["k"]


def test_a_memory_that_is_deleted_takes_everything_with_it_whatever_cannot_be_noted_down(store: LocalStore, tmp_path: Path) -> None:
    store.write_memory(OWNER, "k", "kept", ORCHARD)
    with closing(sqlite3.connect(tmp_path / "state" / "bridge.sqlite")) as beside:
        beside.execute("CREATE TRIGGER full BEFORE DELETE ON memories BEGIN SELECT RAISE(FAIL, 'disk full'); END")

    assert store.delete_memory(OWNER, "k", ORCHARD)
    assert one(store, "k") is None
