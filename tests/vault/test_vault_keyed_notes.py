"""Notes under a key: what they say now, what they said before, and who may say something else."""

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kite_memory.errors import KiteError
from kite_memory.model.note import NoteStatus, Scope
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Memo
from kite_memory.vault.keyed_notes import KeyConflict, KeyedNote
from kite_memory.vault.ledger import KeyPlace, Ledger
from kite_memory.vault.ledger.database import VERSION
from kite_memory.vault.wording import note_id
from tests.fakes.clock import Clock
from tests.vault.building import START, TEMPLATE


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def vault(tmp_path: Path, clock: Clock) -> Iterator[Vault]:
    with Vault(tmp_path / "vault", tmp_path / "ledger.sqlite", clock=clock) as opened:
        opened.ensure(TEMPLATE)
        yield opened


PORT = KeyPlace(key="port", scope=Scope.PROJECT, project="orchard")


def keep(vault: Vault, said: str, place: KeyPlace = PORT, **given: object) -> KeyedNote:
    return vault.keys.write(place, lambda before: said, **given)  # type: ignore[arg-type]  # each test's own few


def now(vault: Vault, place: KeyPlace = PORT) -> tuple[str, int] | None:
    kept = vault.keys.find(place)
    return (kept.note.body, kept.version) if kept else None


def put(vault: Vault, path: str, text: str) -> None:
    (vault.root / path).write_text(text)


def paths(vault: Vault) -> list[str]:
    return [entry.path for entry in vault.notes.entries()]


def edited(vault: Vault, kept: KeyedNote, old: str, new: str) -> None:
    put(vault, kept.note.path, (vault.root / kept.note.path).read_text().replace(old, new))


def test_a_key_says_the_newest_in_one_note(vault: Vault) -> None:
    first = keep(vault, "80")
    second = keep(vault, "8080")

    assert (second.note.id, second.note.path, second.note.title) == (first.note.id, first.note.path, "port")
    assert now(vault) == ("8080", 2)
    assert paths(vault) == [first.note.path]


def test_a_key_is_another_in_another_place(vault: Vault) -> None:
    places = [
        PORT,
        KeyPlace(key="port", scope=Scope.PROJECT, project="meadow"),
        KeyPlace(key="port", scope=Scope.SESSION, project="orchard", session="one"),
        KeyPlace(key="port", scope=Scope.SESSION, project="orchard", session="two"),
        KeyPlace(key="port", scope=Scope.GLOBAL),
        KeyPlace(key="port", scope=Scope.SHARED),
    ]
    for number, place in enumerate(places):
        keep(vault, str(number), place)

    assert [now(vault, place) for place in places] == [(str(number), 1) for number in range(len(places))]


def test_the_same_again_is_no_new_version_but_takes_tags_and_an_end(vault: Vault) -> None:
    keep(vault, "80", tags=["net"])

    again = keep(vault, "80", tags=["web"], expires=START + timedelta(days=1))

    assert (again.version, again.note.tags, again.note.expires) == (1, ("web",), START + timedelta(days=1))
    assert keep(vault, "80").note.expires is None


def test_what_was_said_before_is_known_newest_first(vault: Vault) -> None:
    for said, by in (("80", "codex"), ("81", "claude"), ("82", "codex")):
        kept = keep(vault, said, by=by)

    assert [(one.version, one.body, one.by) for one in vault.keys.versions(kept.note)] == [
        (3, "82", "codex"),
        (2, "81", "claude"),
        (1, "80", "codex"),
    ]


def test_not_everything_is_known_for_ever(vault: Vault) -> None:
    for number in range(105):
        kept = keep(vault, f"port {number}")
    large = KeyPlace(key="large", scope=Scope.GLOBAL)
    for letter in "abcde":
        big = keep(vault, letter * 600_000, large)

    assert [one.version for one in vault.keys.versions(kept.note)] == list(range(105, 5, -1))
    assert [one.version for one in vault.keys.versions(big.note)] == [5, 4, 3]


@pytest.mark.parametrize(("expected", "there"), [(0, 2), (1, 2), (3, 2)])
def test_what_is_expected_must_be_there(vault: Vault, expected: int, there: int) -> None:
    keep(vault, "80")
    keep(vault, "81")

    with pytest.raises(KeyConflict) as changed:
        keep(vault, "82", expected=expected)

    assert (changed.value.version, now(vault)) == (there, ("81", 2))
    assert keep(vault, "82", expected=there).version == 3


def test_nothing_can_be_expected_too(vault: Vault) -> None:
    with pytest.raises(KeyConflict) as changed:
        keep(vault, "80", expected=1)

    assert changed.value.version == 0
    assert keep(vault, "80", expected=0).version == 1


def test_what_its_owner_types_is_the_next_version_and_wins(vault: Vault) -> None:
    kept = keep(vault, "80", by="codex")
    edited(vault, kept, "80", "443")

    assert now(vault) == ("443", 2)
    for expected in (None, 1):
        with pytest.raises(KeyConflict) as changed:
            keep(vault, "81", expected=expected)
        assert changed.value.version == 2
    assert now(vault) == ("443", 2)


def test_who_has_read_what_its_owner_typed_may_replace_it(vault: Vault) -> None:
    edited(vault, keep(vault, "80"), "80", "443")

    assert keep(vault, "8443", expected=2).version == 3
    assert keep(vault, "8444").version == 4


def test_two_edits_that_no_one_compared_are_two_versions_for_who_read_both(vault: Vault) -> None:
    kept = keep(vault, "80")
    edited(vault, kept, "80", "443")
    first = now(vault)
    edited(vault, kept, "443", "444")

    assert (first, now(vault)) == (("443", 2), ("444", 3))


def test_what_its_owner_saves_while_a_key_is_written_is_not_written_over(vault: Vault) -> None:
    kept = keep(vault, "8080")

    def meanwhile(before: str) -> str:
        edited(vault, kept, "8080", "mine")
        return "9090"

    with pytest.raises(KeyConflict, match="edited by its owner"):
        vault.keys.write(PORT, meanwhile)

    assert now(vault) == ("mine", 2)


def test_its_owner_may_overrule_himself(vault: Vault) -> None:
    edited(vault, keep(vault, "80"), "80", "443")

    assert keep(vault, "81", overrule=True).version == 3


def test_a_key_that_its_owner_gave_a_note_by_hand_is_one(vault: Vault) -> None:
    put(vault, "mine.md", "---\nkey: port\nproject: orchard\n---\n8080\n")
    vault.scanner.compare()

    assert now(vault) == ("8080", 1)
    assert keep(vault, "8081", expected=1).note.path == "mine.md"


def test_a_note_that_was_moved_is_found_under_its_key(vault: Vault) -> None:
    kept = keep(vault, "80")
    (vault.root / kept.note.path).rename(vault.root / "moved.md")

    assert now(vault) == ("80", 1)
    assert keep(vault, "81", expected=1).note.path == "moved.md"


def test_what_its_owner_deleted_is_not_there_and_its_versions_never_come_again(vault: Vault) -> None:
    kept = keep(vault, "80")
    keep(vault, "81")
    keep(vault, "9", KeyPlace(key="other", scope=Scope.GLOBAL))
    (vault.root / kept.note.path).unlink()

    assert now(vault) is None
    with pytest.raises(KeyConflict):
        keep(vault, "82", expected=2)
    assert keep(vault, "82", expected=0).version == 3


def test_what_is_forgotten_leaves_none_of_its_words_behind(vault: Vault, tmp_path: Path) -> None:
    kept = keep(vault, "a word of no other note")
    vault.edits.forget(kept.note.id)
    vault.close()

    with sqlite3.connect(tmp_path / "ledger.sqlite") as database:
        assert database.execute("SELECT count(*) FROM versions").fetchone() == (0,)


@pytest.mark.parametrize("again", ["80", "81"])
def test_what_has_expired_is_none_and_begins_anew(vault: Vault, clock: Clock, again: str) -> None:
    first = keep(vault, "80", expires=clock() + timedelta(hours=1))
    clock.now += timedelta(hours=2)

    assert now(vault) is None
    assert vault.keys.versions(first.note) == []
    assert vault.keys.count() == 0
    second = keep(vault, again, expected=0)
    assert (second.version, second.note.path, second.is_new) == (2, first.note.path, True)
    assert second.note.created > first.note.created
    assert [one.version for one in vault.keys.versions(second.note)] == [2]


def test_what_its_owner_wrote_is_still_known_when_the_key_is_written_anew(vault: Vault, clock: Clock) -> None:
    kept = keep(vault, "80", expires=clock() + timedelta(hours=1))
    edited(vault, kept, "80", "80, and never 8080: the printer has that")
    clock.now += timedelta(hours=2)

    again = keep(vault, "8080", expected=0)

    assert [(one.version, one.body) for one in vault.keys.history(again.note)] == [
        (3, "8080"),
        (2, "80, and never 8080: the printer has that"),
        (1, "80"),
    ]
    assert [one.version for one in vault.keys.versions(again.note)] == [3]


def test_a_clock_that_was_far_ahead_costs_no_version(vault: Vault, clock: Clock) -> None:
    keep(vault, "80", expires=clock() + timedelta(days=365))
    keep(vault, "81", expires=clock() + timedelta(days=365))
    clock.now += timedelta(days=40_000)
    keep(vault, "82")
    clock.now = START

    written = keep(vault, "83")

    assert [one.body for one in vault.keys.history(written.note)] == ["83", "82", "81", "80"]


def test_what_was_turned_down_is_no_memory(vault: Vault) -> None:
    kept = keep(vault, "80")
    vault.edits.mark(kept.note.id, NoteStatus.REJECTED)

    assert now(vault) is None
    again = keep(vault, "81", expected=0)
    assert (again.note.id != kept.note.id, again.version) == (True, 2)


def test_a_copy_of_a_note_is_not_a_second_memory(vault: Vault) -> None:
    kept = keep(vault, "80")
    put(vault, "copy.md", (vault.root / kept.note.path).read_text())
    vault.scanner.compare()

    assert [one.known.path for one in vault.keys.listed()] == [kept.note.path]


def test_a_note_whose_id_is_of_its_place_alone_counts_before_one_whose_id_had_a_time(vault: Vault) -> None:
    kept = keep(vault, "8080")
    text = (vault.root / kept.note.path).read_text()
    put(vault, "former.md", text.replace(kept.note.id, note_id(START, "kept", PORT.digest, "0")).replace("8080", "80"))
    vault.scanner.compare()

    assert now(vault) == ("8080", 1)


def test_a_key_whose_note_is_broken_is_said(vault: Vault) -> None:
    kept = keep(vault, "80")
    edited(vault, kept, "title: port", "title: a: b")

    with pytest.raises(KiteError) as refused:
        keep(vault, "81")
    assert refused.value.hint


def test_keys_are_listed_in_order_by_their_beginning(vault: Vault) -> None:
    for key in ("b.two", "a.one", "b.one", "c"):
        keep(vault, key, KeyPlace(key=key, scope=Scope.GLOBAL))

    assert [one.place.key for one in vault.keys.listed("b.")] == ["b.one", "b.two"]
    assert [one.place.key for one in vault.keys.listed()] == ["a.one", "b.one", "b.two", "c"]


def test_the_same_words_remembered_do_not_touch_a_key(vault: Vault) -> None:
    kept = keep(
        vault,
        "Frost comes late.",
        expires=START + timedelta(hours=1),
        kind=vault.edits.remember(Memo(text="Frost comes late.")).kind,
    )

    again = vault.edits.remember(Memo(text="Frost comes late.", tags=["fruit"], scope=Scope.PROJECT, project="orchard"))

    assert again.id != kept.note.id
    assert now(vault) == ("Frost comes late.", 1)


def test_what_is_remembered_again_after_it_has_expired_is_there_to_stay(vault: Vault, clock: Clock) -> None:
    first = vault.edits.remember(Memo(text="Frost comes late.", expires=clock() + timedelta(hours=1)))
    clock.now += timedelta(hours=2)

    again = vault.edits.remember(Memo(text="Frost comes late."))

    assert (again.id, again.expires) == (first.id, None)


@pytest.fixture
def first_ledger(tmp_path: Path) -> Iterator[Path]:
    """As version 1 of the ledger had a key."""
    from kite_memory.vault.ledger.database import _VERSION_1

    path = tmp_path / "first.sqlite"
    with sqlite3.connect(path) as database:
        for table in _VERSION_1:
            database.execute(table)
        database.execute(
            "INSERT INTO files VALUES (7, 'projects/port.md', 'ID7', 0, 'fact', 'Port', 'port', 'port', '', 'orchard', 'accepted',"
            " 9, 9, '')"
        )
        database.execute("INSERT INTO names VALUES (7, 'key', ?)", ("project\0orchard\0port",))
        database.execute("PRAGMA user_version = 1")
    yield path


def test_a_ledger_of_version_1_keeps_its_keys(first_ledger: Path) -> None:
    ledger = Ledger(first_ledger)

    (known,) = ledger.keys.keyed(PORT)

    assert (known.id, known.size) == ("ID7", -1)
    ledger.close()
    with sqlite3.connect(first_ledger) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert database.execute("SELECT count(*) FROM names WHERE role = 'key'").fetchone() == (0,)


def test_what_an_agent_writes_over_a_persons_words_is_the_agents(vault: Vault) -> None:
    keep(vault, "8080", origin="user")

    written = keep(vault, "9090", origin="assistant").note
    again = keep(vault, "7070", origin="user", overrule=True).note

    assert (written.origin, again.origin) == ("assistant", "user")


EVERYWHERE = KeyPlace(key="index", scope=Scope.GLOBAL, project="")


def test_what_an_agent_says_for_every_project_waits_for_review_and_can_be_read(vault: Vault) -> None:
    kept = keep(vault, "http://press.example", EVERYWHERE, origin="assistant")

    assert kept.note.status is NoteStatus.PROPOSED
    assert now(vault, EVERYWHERE) == ("http://press.example", 1)


def test_a_value_for_every_project_that_was_accepted_waits_again_when_an_agent_changes_it(vault: Vault) -> None:
    mine = keep(vault, "our own", EVERYWHERE, origin="user").note
    same = keep(vault, "our own", EVERYWHERE, origin="assistant").note
    theirs = keep(vault, "http://press.example", EVERYWHERE, origin="assistant").note
    back = keep(vault, "our own", EVERYWHERE, origin="user", overrule=True).note

    statuses = [note.status.value for note in (mine, same, theirs, back)]
    assert statuses == ["accepted", "accepted", "proposed", "accepted"]


def test_a_key_that_its_owner_took_from_a_note_can_be_written_again(vault: Vault) -> None:
    kept = keep(vault, "8080")
    file = vault.root / kept.note.path
    file.write_text(file.read_text().replace("key: port", "key: gate"))
    vault.scanner.compare()

    again = keep(vault, "9090")

    assert again.note.id != kept.note.id
    assert now(vault) == ("9090", 1)
    assert now(vault, KeyPlace(key="gate", scope=PORT.scope, project=PORT.project)) == ("8080", 1)
