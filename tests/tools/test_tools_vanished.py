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


def unmounted(services: Services) -> None:
    (services.home / "vault").rename(services.home / "elsewhere")
    (services.home / "vault").mkdir()


def half_synced(services: Services) -> None:
    (services.home / "elsewhere").mkdir()
    for path in services.notes_on_disk():
        if "port" not in path.name:
            path.rename(services.home / "elsewhere" / path.name)


def all_but_laid_out(services: Services) -> None:
    (services.home / "elsewhere").mkdir()
    for path in services.notes_on_disk():
        path.rename(services.home / "elsewhere" / path.name)


ASKED: dict[str, Callable[[Services], object]] = {
    "write a new memory": lambda services: services.store.write_memory(OWNER, "host", "localhost", ORCHARD),
    "write a memory anew": lambda services: services.store.write_memory(OWNER, "port", 8081, ORCHARD),
    "delete a memory": lambda services: services.store.delete_memory(OWNER, "port", ORCHARD),
    "remember": lambda services: services.store.remember(OWNER, "The well is behind the barn.", NoteKind.FACT, ORCHARD),
    "remember again": lambda services: services.store.remember(OWNER, said_of("apple"), NoteKind.FACT, ORCHARD),
    "read a note": lambda services: services.store.note(OWNER, services.notes["apple"]),
    "forget a note": lambda services: services.store.forget(OWNER, services.notes["apple"]),
    "save a conversation": lambda services: services.store.save_conversation(OWNER, conversation(ELSE)),
    "save a conversation again": lambda services: services.store.save_conversation(OWNER, conversation(UUID)),
    "read a conversation": lambda services: services.store.conversation(OWNER, UUID),
}
OF_MEMORIES: dict[str, Callable[[Services], object]] = {
    "read a memory": lambda services: services.store.memories(OWNER, MemoryQuery(pattern="port")),
    "list memories": lambda services: services.store.memories(OWNER, MemoryQuery(pattern="*")),
}


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with local_store(tmp_path) as store:
        yield Services(tmp_path, store)


@pytest.mark.parametrize("vanishes", [unmounted, half_synced, all_but_laid_out], ids=lambda how: how.__name__)
@pytest.mark.parametrize("asked", ASKED)
def test_a_vault_that_has_vanished_is_neither_written_into_nor_said_to_hold_nothing(
    services: Services, asked: str, vanishes: Callable[[Services], None]
) -> None:
    vanishes(services)
    before = services.files()

    with pytest.raises(VaultMissing):
        ASKED[asked](services)

    assert services.files() == before


@pytest.mark.parametrize("vanishes", [unmounted, all_but_laid_out], ids=lambda how: how.__name__)
@pytest.mark.parametrize("asked", OF_MEMORIES)
def test_of_memories_whose_vault_has_vanished_no_one_says_that_none_exists(
    services: Services, asked: str, vanishes: Callable[[Services], None]
) -> None:
    vanishes(services)

    with pytest.raises(VaultMissing):
        OF_MEMORIES[asked](services)


@pytest.mark.parametrize("vanishes", [unmounted, half_synced, all_but_laid_out], ids=lambda how: how.__name__)
def test_a_vault_that_comes_back_is_as_if_it_had_never_been_gone(services: Services, vanishes: Callable[[Services], None]) -> None:
    paths = {path.name: path for path in services.notes_on_disk()}
    vanishes(services)
    for asked in ASKED.values():
        with pytest.raises(VaultMissing):
            asked(services)
    if vanishes is unmounted:
        (services.home / "vault").rmdir()
        (services.home / "elsewhere").rename(services.home / "vault")
    else:
        for path in (services.home / "elsewhere").iterdir():
            path.rename(paths[path.name])

    again = services.store.remember(OWNER, said_of("apple"), NoteKind.FACT, ORCHARD)

    assert again.id == services.notes["apple"]
    assert [memory.value for memory in services.store.memories(OWNER, MemoryQuery())] == [8080]
    assert services.store.conversation(OWNER, UUID) is not None
    assert services.store.transcript(OWNER, UUID) == "Hm."


def test_nothing_that_a_note_rests_on_is_let_go_while_the_note_cannot_be_forgotten(tmp_path: Path) -> None:
    let_go: list[str] = []
    with local_store(tmp_path, let_go=lambda note: let_go.append(note.id)) as store:
        services = Services(tmp_path, store)
        half_synced(services)

        with pytest.raises(VaultMissing):
            store.delete_memory(OWNER, "port", ORCHARD)

    assert let_go == []
    assert [path for path in services.notes_on_disk() if "port" in path.name]


def test_a_note_that_its_owner_has_just_moved_is_read_and_remembered_where_it_is(services: Services) -> None:
    path = next(path for path in services.notes_on_disk() if "apple" in path.name)
    path.rename(services.home / "vault" / "ideas" / "apples.md")

    again = services.store.remember(OWNER, said_of("apple"), NoteKind.FACT, ORCHARD)
    found = services.store.note(OWNER, services.notes["apple"])

    assert again.id == services.notes["apple"]
    assert found is not None and found.path == again.path == "ideas/apples.md"
