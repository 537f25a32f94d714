"""A vault that has vanished, whole or in large part: nothing is written into what is left of it, and nothing is said to be gone."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kite_memory.errors import VaultMissing
from kite_memory.model.note import NoteKind, Record, Scope
from kite_memory.tools.local_store import LocalStore
from kite_memory.tools.store import OWNER, MemoryPlace, MemoryQuery, SavedConversation
from tests.tools.local_stores import local_store

ORCHARD = MemoryPlace(scope=Scope.PROJECT, project="orchard")
UUID, ELSE = "0b9a9c1e-2f3d-4c55-9a6b-7d8e9f001122", "5e0f3b52-9f7c-4d0e-8a3a-112233445566"
TREES = ["apple", "pear", "plum", "quince", "medlar", "cherry", "walnut", "hazel", "almond", "peach"]


def said_of(tree: str) -> str:
    return f"The {tree} trees stand in a row of their own behind the barn."


def conversation(uuid: str) -> SavedConversation:
    at = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
    return SavedConversation(
        uuid=uuid,
        source="gemini_cli",
        project="orchard",
        record=Record(topics=()),
        overall="Which trees stand where.",
        created=at,
        updated=at,
        transcript="Hm.",
    )


class Services:
    def __init__(self, home: Path, store: LocalStore) -> None:
        self.home, self.store = home, store
        self.let_go: list[str] = []
        store.write_memory(OWNER, "port", 8080, ORCHARD)
        self.notes = {tree: store.remember(OWNER, said_of(tree), NoteKind.FACT, ORCHARD).id for tree in TREES}
        store.save_conversation(OWNER, conversation(UUID))

    def notes_on_disk(self) -> list[Path]:
        folders = ("decisions", "ideas", "journals", "people", "projects", "topics")
        return sorted(path for folder in folders for path in (self.home / "vault" / folder).rglob("*.md"))

    def files(self) -> set[Path]:
        return {path for path in (self.home / "vault").rglob("*") if path.is_file()}


def unmounted(house: Services) -> None:
    (house.home / "vault").rename(house.home / "elsewhere")
    (house.home / "vault").mkdir()


def half_synced(house: Services) -> None:
    (house.home / "elsewhere").mkdir()
    for path in house.notes_on_disk():
        if "port" not in path.name:
            path.rename(house.home / "elsewhere" / path.name)


def all_but_laid_out(house: Services) -> None:
    (house.home / "elsewhere").mkdir()
    for path in house.notes_on_disk():
        path.rename(house.home / "elsewhere" / path.name)


ASKED: dict[str, Callable[[Services], object]] = {
    "write a new memory": lambda house: house.store.write_memory(OWNER, "host", "localhost", ORCHARD),
    "write a memory anew": lambda house: house.store.write_memory(OWNER, "port", 8081, ORCHARD),
    "delete a memory": lambda house: house.store.delete_memory(OWNER, "port", ORCHARD),
    "remember": lambda house: house.store.remember(OWNER, "The well is behind the barn.", NoteKind.FACT, ORCHARD),
    "remember again": lambda house: house.store.remember(OWNER, said_of("apple"), NoteKind.FACT, ORCHARD),
    "read a note": lambda house: house.store.note(OWNER, house.notes["apple"]),
    "forget a note": lambda house: house.store.forget(OWNER, house.notes["apple"]),
    "save a conversation": lambda house: house.store.save_conversation(OWNER, conversation(ELSE)),
    "save a conversation again": lambda house: house.store.save_conversation(OWNER, conversation(UUID)),
    "read a conversation": lambda house: house.store.conversation(OWNER, UUID),
}
OF_MEMORIES: dict[str, Callable[[Services], object]] = {
    "read a memory": lambda house: house.store.memories(OWNER, MemoryQuery(pattern="port")),
    "list memories": lambda house: house.store.memories(OWNER, MemoryQuery(pattern="*")),
}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Services]:
    with local_store(tmp_path) as store:
        yield Services(tmp_path, store)


@pytest.mark.parametrize("vanishes", [unmounted, half_synced, all_but_laid_out], ids=lambda how: how.__name__)
@pytest.mark.parametrize("asked", ASKED)
def test_a_vault_that_has_vanished_is_neither_written_into_nor_said_to_hold_nothing(
    house: Services, asked: str, vanishes: Callable[[Services], None]
) -> None:
    vanishes(house)
    before = house.files()

    with pytest.raises(VaultMissing):
        ASKED[asked](house)

    assert house.files() == before


@pytest.mark.parametrize("vanishes", [unmounted, all_but_laid_out], ids=lambda how: how.__name__)
@pytest.mark.parametrize("asked", OF_MEMORIES)
def test_of_memories_whose_vault_has_vanished_no_one_says_that_none_exists(
    house: Services, asked: str, vanishes: Callable[[Services], None]
) -> None:
    vanishes(house)

    with pytest.raises(VaultMissing):
        OF_MEMORIES[asked](house)


@pytest.mark.parametrize("vanishes", [unmounted, half_synced, all_but_laid_out], ids=lambda how: how.__name__)
def test_a_vault_that_comes_back_is_as_if_it_had_never_been_gone(house: Services, vanishes: Callable[[Services], None]) -> None:
    paths = {path.name: path for path in house.notes_on_disk()}
    vanishes(house)
    for asked in ASKED.values():
        with pytest.raises(VaultMissing):
            asked(house)
    if vanishes is unmounted:
        (house.home / "vault").rmdir()
        (house.home / "elsewhere").rename(house.home / "vault")
    else:
        for path in (house.home / "elsewhere").iterdir():
            path.rename(paths[path.name])

    again = house.store.remember(OWNER, said_of("apple"), NoteKind.FACT, ORCHARD)

    assert again.id == house.notes["apple"]
    assert [memory.value for memory in house.store.memories(OWNER, MemoryQuery())] == [8080]
    assert house.store.conversation(OWNER, UUID) is not None
    assert house.store.transcript(OWNER, UUID) == "Hm."


def test_nothing_that_a_note_rests_on_is_let_go_while_the_note_cannot_be_forgotten(tmp_path: Path) -> None:
    let_go: list[str] = []
    with local_store(tmp_path, let_go=lambda note: let_go.append(note.id)) as store:
        house = Services(tmp_path, store)
        half_synced(house)

        with pytest.raises(VaultMissing):
            store.delete_memory(OWNER, "port", ORCHARD)

    assert let_go == []
    assert [path for path in house.notes_on_disk() if "port" in path.name]


def test_a_note_that_its_owner_has_just_moved_is_read_and_remembered_where_it_is(house: Services) -> None:
    path = next(path for path in house.notes_on_disk() if "apple" in path.name)
    path.rename(house.home / "vault" / "ideas" / "apples.md")

    again = house.store.remember(OWNER, said_of("apple"), NoteKind.FACT, ORCHARD)
    found = house.store.note(OWNER, house.notes["apple"])

    assert again.id == house.notes["apple"]
    assert found is not None and found.path == again.path == "ideas/apples.md"
