"""The vault as Obsidian sees it: opened, edited, renamed and re-filed there, and written to by us in between."""

import importlib
import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import frontmatter
import pytest

from kite_memory.app.vault_pages import VaultPages
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.model.note import NoteKind, Rejected
from kite_memory.vault.drafting import Memo
from kite_memory.vault.vault import Vault
from tests.fakes.services import fake_services
from tests.sources.transcript import Transcript
from tests.vault.building import TEMPLATE, decision, fact, later, write
from tests.vault.person import Person

SAID = (
    (
        "Let's use PostgreSQL instead of SQLite for the job queue, because SQLite's single writer lock stalled the workers.",
        "PostgreSQL suits the job queue better. The root cause was that `claim_job()` in `orchard/queue.py` took SQLite's only "
        "write lock, so each of the eight workers waited for the others and `busy_timeout` only hid it. I verified it.",
    ),
    (
        "We should always migrate the PostgreSQL schema before the workers start. Never edit `orchard/queue.py` on the server.",
        "Understood. The workers check the schema version once when they start, which is why PostgreSQL must be migrated first.",
    ),
    (
        "From now on PostgreSQL is backed up before every migration, and `orchard/queue.py` never runs while that lasts.",
        "Understood. The backup of PostgreSQL takes four minutes, because `orchard/queue.py` holds no lock meanwhile.",
    ),
    (
        "Let's go with Redis rather than memcached for the session cache, because memcached cannot expire by tag.",
        "Redis it is. The problem was that `orchard/cache.py` asked memcached for every tag, and memcached has no tags.",
    ),
)

STORE = fact("PostgreSQL is the store", "It holds jobs.", entities=["PostgreSQL"])


def transcripts(home: Path) -> None:
    folder = home / "claude" / "projects" / "-home-ada-orchard"
    folder.mkdir(parents=True)
    for number, (asked, answered) in enumerate(SAID):
        session = f"{number}a0a0a0a-0000-4000-8000-000000000001"
        transcript = Transcript(session, first=0x0A000001 + (number << 16), cwd="/home/ada/orchard")
        transcript.user(asked)
        transcript.assistant(answered)
        transcript.user("Thanks, and why is that?")
        transcript.assistant(f"In short: {answered}")
        (folder / f"{session}.jsonl").write_bytes(transcript.bytes)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The vault of three invented sessions, with its page."""
    home = tmp_path_factory.mktemp("obsidian")
    transcripts(home)
    with fake_services(home, OfflineExtractor()) as services:
        services.run_until_idle()
        VaultPages(vault=services.vault, clock=later).synthesize()
        yield services.vault.root


@pytest.fixture(scope="module")
def opened(made: Path) -> Any:
    obsidian: Any = importlib.import_module("obsidiantools.api")  # untyped, and brings pandas along

    return obsidian.Vault(made).connect(show_nested_tags=True).gather()


def kinds(vault: Any) -> dict[str, str]:
    return {name: front.get("kind", "") for name, front in vault.front_matter_index.items()}


def test_every_link_of_a_distilled_vault_leads_somewhere(opened: Any) -> None:
    assert opened.nonexistent_notes == []
    assert sum(map(len, opened.wikilinks_index.values())) > 5


def test_names_of_several_sessions_have_a_page_that_is_linked_both_ways(opened: Any) -> None:
    pages = {name for name, kind in kinds(opened).items() if kind == NoteKind.ENTITY.value}

    assert {opened.front_matter_index[page]["title"] for page in pages} == {"PostgreSQL"}
    assert all(opened.get_backlinks(page) for page in pages)
    assert not pages & set(opened.isolated_notes)


def test_what_stands_alone_shares_its_name_with_nothing(opened: Any, made: Path) -> None:
    ours = {"Home", "README", "Daily", "Decision", "Note"}
    pages = {front["title"] for front in opened.front_matter_index.values() if front.get("kind") == NoteKind.ENTITY.value}

    for name in set(opened.isolated_notes) - ours:
        assert not pages & set(opened.front_matter_index[name].get("entities", []))


def test_every_note_has_properties_of_the_types_that_obsidian_is_reported(opened: Any) -> None:
    types = json.loads((TEMPLATE / ".obsidian" / "types.json").read_text())["types"]
    notes = [front for name, front in opened.front_matter_index.items() if front.get("id")]

    assert len(notes) > 5
    for front in notes:
        assert set(front) <= set(types)
        assert all(_is_of(types[name], value) for name, value in front.items())


def _is_of(sort: str, value: object) -> bool:
    match sort:
        case "datetime":
            return isinstance(value, datetime)
        case "date":
            return isinstance(value, date)
        case "number":
            return isinstance(value, int) and not isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case "multitext" | "aliases" | "tags":
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
        case _:
            return False


def test_a_note_is_found_by_its_title_as_an_alias(opened: Any) -> None:
    for name, front in opened.front_matter_index.items():
        if front.get("id") and front["kind"] != NoteKind.ENTITY.value:
            assert front["title"] in front["aliases"], name


TAG = re.compile(r"(?=.*[^\d/])[\w-]+(?:/[\w-]+)*")
"""What Obsidian takes for a tag: no blanks, not only digits, nested by slashes."""


def test_tags_are_tags_to_obsidian_nested_ones_too(vault: Vault) -> None:
    note = vault.edits.remember(
        Memo(text="Prune in March.", tags=["Fruit Trees", "garden/pruning", "2026", "#spring", "a//b", "C++"])
    )

    tags = properties_of(vault, note.path)["tags"]

    assert tags == ["fruit-trees", "garden/pruning", "spring", "a/b", "c"]
    assert all(TAG.fullmatch(tag) for tag in tags)


def properties_of(vault: Vault, path: str) -> dict[str, Any]:
    return frontmatter.loads((vault.root / path).read_text(encoding="utf-8")).metadata


CALLOUT = re.compile(r"> \[!(note|abstract|info|todo|tip|success|question|warning|failure|danger|bug|example|quote)\][+-]? \S")


def test_what_was_turned_down_is_a_callout_that_obsidian_draws(vault: Vault) -> None:
    (path,) = write(vault, decision(rejected=[Rejected(alternative="Apples [x]", reason="they bloom\nearly")]))
    body = vault.notes.find(path).body
    again = decision(rejected=[Rejected(alternative="Plums", reason="wasps")], evidence=3)

    write(vault, again, name="chunk-2", first=5)

    boxes = [block for block in vault.notes.find(path).body.split("\n\n") if block.startswith(">")]
    assert vault.notes.find(path).body.startswith(body)
    assert len(boxes) == 2 and all(CALLOUT.match(box) and "\n" not in box for box in boxes)
    assert vault.notes.is_ours(vault.notes.find(path))


# A person at work with it


@pytest.fixture(params=["truncates", "replaces"])
def person(vault: Vault, request: pytest.FixtureRequest) -> Person:
    return Person(vault.root, replaces=request.param == "replaces")


def test_an_edit_stays_and_what_we_learn_later_is_added_to_it(vault: Vault, person: Person) -> None:
    (path,) = write(vault, fact("Pear"))
    person.changes(path, lambda text: text + "\nMine.\n")

    write(vault, fact("Pear", "It bears late, and wholly otherwise than said.", evidence=3), name="chunk-2", first=5)

    text = person.reads(path)
    assert "\nMine.\n" in text and text.endswith("It bears late, and wholly otherwise than said.\n")
    assert len(vault.notes.find("Pear").evidence) == 2


def test_the_property_editor_may_write_all_of_them_anew(vault: Vault, person: Person) -> None:
    (path,) = write(vault, decision(entities=["Marcheweg"]))
    before = vault.notes.find(path)
    person.sets_properties(path, {"rating": 5, "cssclasses": ["wide"], "title": "Pears: yes, # and no"})

    vault.scanner.compare()
    after = vault.notes.find(path)
    vault.edits.mute(path)

    assert after.title == "Pears: yes, # and no"
    for name in ("id", "kind", "project", "created", "evidence", "entities", "aliases", "status", "importance", "body"):
        assert getattr(after, name) == getattr(before, name), name
    front = properties_of(vault, path)
    assert (front["rating"], front["cssclasses"], front["status"]) == (5, ["wide"], "muted")


def test_a_renamed_note_keeps_its_id_and_every_link_leads_to_it(vault: Vault, person: Person) -> None:
    write(vault, fact("One", "About PostgreSQL.", entities=["PostgreSQL"]), STORE)
    write(vault, fact("Two", "On PostgreSQL.", entities=["PostgreSQL"]), name="chunk-2", session="5e55-0002")
    id = vault.notes.find("topics/PostgreSQL.md").id
    person.renames("topics/PostgreSQL.md", "topics/Postgres.md")

    compared = vault.scanner.compare()
    write(vault, fact("Three", "Of PostgreSQL.", entities=["PostgreSQL"]), name="chunk-3", session="5e55-0003")

    assert compared.renamed == (("topics/PostgreSQL.md", "topics/Postgres.md"),)
    assert vault.notes.find("Postgres").id == id
    assert "[[Postgres|PostgreSQL]]" in vault.notes.find("Three").body
    assert vault.notes.unresolved_links() == []


def test_folders_may_be_filed_anew_and_what_comes_later_lands_where_the_note_is_now(vault: Vault, person: Person) -> None:
    (path,) = write(vault, fact("Pear"))
    person.renames(path, f"Orchard/Trees/{PurePosixPath(path).name}")

    write(vault, fact("Pear", "It bears late, and wholly otherwise than said.", evidence=3), name="chunk-2", first=5)

    assert [entry.path for entry in vault.notes.entries()] == [f"Orchard/Trees/{PurePosixPath(path).name}"]
    assert "It bears late" in person.reads(f"Orchard/Trees/{PurePosixPath(path).name}")


def test_a_renamed_note_that_replaces_another_is_still_named_by_it(vault: Vault, person: Person) -> None:
    from kite_memory.model.note import Supersede
    from tests.vault.building import drafts

    (path,) = write(vault, fact("Pear"))
    newer = drafts(fact("Quince"), name="chunk-2")[0].note
    vault.planner.carry_out([Supersede(note=newer, old_id=vault.notes.find(path).id, old_path=path, because="")])
    person.renames(vault.notes.find("Quince").path, "projects/Quinces.md")

    vault.scanner.compare()

    assert vault.notes.find(path).superseded_by == "Quinces"
    assert vault.notes.unresolved_links() == []


def test_links_to_what_was_renamed_outside_of_obsidian_lead_to_it_again(vault: Vault, person: Person) -> None:
    from kite_memory.model.note import Supersede
    from tests.vault.building import drafts

    path, _ = write(vault, fact("Pear", "About PostgreSQL.", entities=["PostgreSQL"]), STORE)
    write(vault, fact("Two", "On PostgreSQL.", entities=["PostgreSQL"]), name="chunk-2", session="5e55-0002")
    newer = drafts(fact("Quince"), name="chunk-3")[0].note
    vault.planner.carry_out([Supersede(note=newer, old_id=vault.notes.find(path).id, old_path=path, because="")])
    for old, new in (("topics/PostgreSQL.md", "topics/Postgres.md"), (vault.notes.find("Quince").path, "projects/Quinces.md")):
        (person.root / old).rename(person.root / new)

    vault.scanner.compare()
    asked = vault.scanner.links_outdated
    vault.scanner.mend_links()

    assert asked and not vault.scanner.links_outdated
    assert "[[Postgres]]" in vault.notes.find("Two").body
    assert vault.notes.find(path).superseded_by == "Quinces"
    assert vault.notes.unresolved_links() == []


def test_links_lead_to_the_copy_of_a_note_that_outlives_it(vault: Vault, person: Person) -> None:
    path, _ = write(vault, fact("Pear", "About PostgreSQL.", entities=["PostgreSQL"]), STORE)
    write(vault, fact("Two", "On PostgreSQL.", entities=["PostgreSQL"]), name="chunk-2", session="5e55-0002")
    copied = PurePosixPath(person.copies(path)).stem
    vault.scanner.compare()
    person.deletes(path)

    vault.scanner.compare()
    vault.scanner.mend_links()

    assert f"[[{copied}|Pear]]" in person.reads("topics/PostgreSQL.md")
    assert vault.notes.unresolved_links() == []


def test_a_rename_whose_links_obsidian_has_rewritten_leaves_nothing_to_mend(vault: Vault, person: Person) -> None:
    write(vault, fact("One", "About PostgreSQL.", entities=["PostgreSQL"]), STORE)
    write(vault, fact("Two", "On PostgreSQL.", entities=["PostgreSQL"]), name="chunk-2", session="5e55-0002")
    person.renames("topics/PostgreSQL.md", "topics/Postgres.md")

    vault.scanner.compare()

    assert not vault.scanner.links_outdated


def test_what_comes_back_from_the_trash_links_to_nothing_that_went_meanwhile(vault: Vault, person: Person) -> None:
    write(vault, fact("One", "About PostgreSQL.", entities=["PostgreSQL"]), STORE)
    *_, two = write(vault, fact("Two", "On PostgreSQL.", entities=["PostgreSQL"]), name="chunk-2", session="5e55-0002")
    trashed = person.throws_away(two)
    vault.scanner.compare()
    person.deletes("topics/PostgreSQL.md")
    vault.scanner.compare()
    vault.scanner.mend_links()
    person.renames(trashed, two)

    vault.scanner.compare()
    asked = vault.scanner.links_outdated
    vault.scanner.mend_links()

    assert asked
    assert "On PostgreSQL." in vault.notes.find("Two").body
    assert vault.notes.unresolved_links() == []


def test_what_goes_into_obsidians_trash_is_gone_and_comes_back_from_there(vault: Vault, person: Person) -> None:
    (path,) = write(vault, fact("Pear"))
    trashed = person.throws_away(path)

    gone = vault.scanner.compare()
    again = write(vault, fact("Pear"))
    person.renames(trashed, path)
    back = vault.scanner.compare()

    assert (gone.deleted, again, back.returned) == ((path,), [], (path,))


def test_a_copy_is_the_persons_and_the_original_stays_ours(vault: Vault, person: Person) -> None:
    (path,) = write(vault, fact("Pear"))
    copied = person.copies(path)

    compared = vault.scanner.compare()
    write(vault, fact("Pear", "It bears late, and wholly otherwise than said.", evidence=3), name="chunk-2", first=5)

    assert [problem.file for problem in compared.problems] == [copied]
    assert "It bears late" in person.reads(path)
    assert "It bears late" not in person.reads(copied)


def test_an_alias_that_a_person_gives_is_understood_in_what_comes_later(vault: Vault, person: Person) -> None:
    write(vault, fact("One", "About PostgreSQL.", entities=["PostgreSQL"]), STORE)
    write(vault, fact("Two", "On PostgreSQL.", entities=["PostgreSQL"]), name="chunk-2", session="5e55-0002")
    person.sets_properties("topics/PostgreSQL.md", {"aliases": ["PG"]})
    vault.scanner.compare()

    write(vault, fact("Three", "Jobs wait in PG.", entities=["PG"]), name="chunk-3", session="5e55-0003")

    assert vault.notes.find("Three").body == "Jobs wait in [[PostgreSQL|PG]]."
    assert vault.notes.find("PG").path == "topics/PostgreSQL.md"
    assert [entry.path for entry in vault.notes.entries() if "PG" in entry.path] == []
