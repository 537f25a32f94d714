"""Notes on several machines: nothing is lost, nothing doubled, and what was forgotten stays forgotten."""

import os
import sys
from datetime import UTC, date, timedelta, timezone, tzinfo
from pathlib import Path

import pytest

from kite_memory.app.syncing import purge
from kite_memory.cli.vault import _print_exchange
from kite_memory.errors import KiteError
from kite_memory.model.note import Create, Scope
from kite_memory.vault import consolidation
from kite_memory.vault.ledger import KeyPlace
from kite_memory.vault.made_pages import Grave, SharedFiles
from tests.sync.homes import Clock, Home, homes, open_home, settle


def alike(*machines: Home) -> dict[str, str]:
    """Return the notes, after checking that all have the same."""
    first, *others = (machine.files() for machine in machines)
    for other in others:
        assert other == first
    return first


def test_a_note_reaches_the_other_machine(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        id = laptop.remember("Postgres over SQLite for the job queue.")

        settle(laptop, desk)

        assert list(alike(laptop, desk)) == [laptop.services.vault.notes.find(id).path]
        assert desk.services.vault.notes.is_ours(desk.services.vault.notes.find(id))


def test_many_new_notes_wait_for_the_disk_together(tmp_path: Path) -> None:
    steps: list[str] = []
    with homes(tmp_path, "laptop", "desk") as (laptop, _):
        for row in range(40):
            laptop.remember(f"In row {row} of the orchard grows tree {row * 7919}.")
        laptop.sync()
    with open_home(tmp_path / "desk", tmp_path / "shared", Clock(), steps.append) as desk:
        desk.sync()

        assert len(desk.files()) == 40
    assert steps.count("publish") == 40
    assert sum(step.startswith("sync the") for step in steps) < 10


def test_one_note_that_cannot_be_written_holds_up_no_other(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        for folder in ("facts", "insights"):
            (laptop.vault / folder).mkdir(exist_ok=True)
            for row in range(3):
                (laptop.vault / folder / f"row {row}.md").write_text(f"Row {row} of the {folder}.\n")
        (tmp_path / "elsewhere").mkdir()
        (desk.vault / "insights").symlink_to(tmp_path / "elsewhere")

        laptop.sync()
        problems = desk.sync()["problems"]

        assert sorted(desk.files()) == ["facts/row 0.md", "facts/row 1.md", "facts/row 2.md"]
        assert len(problems) == 3
        assert list((tmp_path / "elsewhere").iterdir()) == []
        (desk.vault / "insights").unlink()
        settle(laptop, desk)
        assert len(alike(laptop, desk)) == 6


def test_both_write_at_once(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.remember("Frost covers come off in May.")
        desk.remember("The press needs forty bar.")

        settle(laptop, desk)

        assert len(alike(laptop, desk)) == 2


def test_the_same_words_on_both_are_one_note_of_each_name(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        ids = {laptop.remember("Frost covers come off in May."), desk.remember("Frost covers come off in May.")}

        settle(laptop, desk)

        assert {machine.services.vault.notes.find(id).id for machine in (laptop, desk) for id in ids} == ids
        assert len(laptop.files()) == len(desk.files()) == len(ids)


def test_a_change_and_a_new_name_while_apart_are_both_kept(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        id = laptop.remember("Frost covers come off in May.")
        settle(laptop, desk)

        laptop.write(id, "Unless it freezes.")
        desk.rename(id, "covers")
        settle(laptop, desk)

        files = alike(laptop, desk)
        assert [Path(path).name for path in files] == ["covers.md"]
        assert "Unless it freezes." in "".join(files.values())


def test_two_changes_while_apart_keep_both_texts(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        id = laptop.remember("Frost covers come off in May.")
        settle(laptop, desk)

        laptop.write(id, "Unless it freezes.")
        desk.write(id, "Or in June, on the hill.")
        os.utime(desk.path(id), (4e9, 4e9))
        settle(laptop, desk)

        files = alike(laptop, desk)
        assert len(files) == 2
        assert "Or in June" in laptop.path(id).read_text()
        (copy,) = (path for path in files if "conflicted copy laptop" in path)
        assert "Unless it freezes." in files[copy]


def test_a_copy_that_was_dealt_with_does_not_come_back(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        id = laptop.remember("Frost covers come off in May.")
        settle(laptop, desk)
        laptop.write(id, "Unless it freezes.")
        desk.write(id, "Or in June, on the hill.")
        settle(laptop, desk)

        (copy,) = (path for path in laptop.files() if "conflicted copy" in path)
        (laptop.vault / copy).unlink()
        settle(laptop, desk)

        assert len(alike(laptop, desk)) == 1


def test_a_note_deleted_on_one_and_changed_on_the_other_is_gone_and_its_text_in_the_trash(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        id = laptop.remember("Frost covers come off in May.")
        laptop.remember("The press needs forty bar.")
        settle(laptop, desk)

        laptop.services.vault.edits.forget(id)
        desk.write(id, "Unless it freezes.")
        settle(laptop, desk)

        assert len(alike(laptop, desk)) == 1
        assert "Unless it freezes." in desk.trashed()
        assert desk.services.vault.known.is_buried(id)


def test_the_same_note_renamed_here_and_deleted_there_is_gone(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        id = laptop.remember("Frost covers come off in May.")
        laptop.remember("The press needs forty bar.")
        settle(laptop, desk)

        laptop.rename(id, "covers")
        desk.delete(id)
        settle(laptop, desk)

        assert len(alike(laptop, desk)) == 1


def test_a_deleted_note_is_not_written_again_on_the_other_machine(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        id = laptop.remember("Frost covers come off in May.")
        laptop.remember("The press needs forty bar.")
        title = laptop.services.vault.notes.find(id).title
        laptop.services.vault.edits.forget(id)

        settle(laptop, desk)

        assert desk.services.vault.known.is_buried("", title)


def test_what_was_put_back_comes_back(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        id = laptop.remember("Frost covers come off in May.")
        laptop.remember("The press needs forty bar.")
        settle(laptop, desk)
        forgotten = laptop.services.vault.edits.forget(id)
        settle(laptop, desk)
        assert len(desk.files()) == 1

        (laptop.vault / forgotten.trashed).rename(laptop.vault / forgotten.path)
        settle(laptop, desk)

        assert len(alike(laptop, desk)) == 2
        assert not desk.services.vault.known.is_buried(id)


def test_a_name_taken_by_another_note_is_left_to_it(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        (laptop.vault / "plan.md").write_text("# Plan\n\nApples.\n")
        (desk.vault / "plan.md").write_text("# Plan\n\nPears.\n")

        settle(laptop, desk)

        texts = "".join(alike(laptop, desk).values())
        assert "Apples." in texts
        assert "Pears." in texts


def test_a_file_without_an_id_is_renamed_and_removed(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.remember("The press needs forty bar.")
        (laptop.vault / "plan.md").write_text("# Plan\n\nApples.\n")
        settle(laptop, desk)

        (desk.vault / "plan.md").rename(desk.vault / "orchard.md")
        settle(laptop, desk)

        assert sorted(path for path in alike(laptop, desk) if "/" not in path) == ["orchard.md"]


def test_three_machines_come_to_the_same(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk", "shed") as (laptop, desk, shed):
        id = laptop.remember("Frost covers come off in May.")
        settle(laptop, desk, shed)
        for machine in (laptop, desk, shed):
            machine.write(id, f"Said on the {machine.name}.")

        settle(shed, laptop, desk)

        files = alike(laptop, desk, shed)
        for machine in (laptop, desk, shed):
            assert f"Said on the {machine.name}." in "".join(files.values())


def test_a_note_with_a_secret_stays_where_it_is(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        secret = "ghp_" + "a8Kd03jfQz7LmW2xR5tYv9Bn4Hc6Ps1EgUo0"
        settle(laptop, desk)
        (laptop.vault / "keys.md").write_text(f"# Keys\n\nThe token is {secret}\n")

        tried, report = laptop.sync(dry_run=True), laptop.sync()
        desk.sync()

        assert tried["held_back"] == report["held_back"] == ["keys.md"]
        assert tried["secrets"] == report["secrets"] == [{"path": "keys.md", "line": 3, "kind": "github-token"}]
        assert tried["went"]["notes"] == report["went"]["notes"] == 0
        assert "keys.md" not in desk.files()


def test_hidden_characters_are_not_reported_as_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, _):
        (laptop.vault / "odd.md").write_text("# Odd\n\nThe gate\u200b is blue.\n")

        report = laptop.sync()
        _print_exchange(report, dry_run=False)

    assert report["secrets"] == [{"path": "odd.md", "line": 3, "kind": ""}]
    shown = capsys.readouterr()
    assert "stays here  odd.md  (line 3 holds invisible characters, which may hide text)" in shown.out
    assert "secret" not in shown.out + shown.err


def test_a_missing_vault_sends_no_deletions(tmp_path: Path) -> None:
    from kite_memory.errors import VaultMissing

    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        for number in range(5):
            laptop.remember(f"Row {number} of the orchard is planted with pears on quince.")
        settle(laptop, desk)
        laptop.vault.rename(tmp_path / "unmounted")

        try:
            laptop.sync()
            raise AssertionError("it was exchanged without a vault")
        except VaultMissing:
            pass
        desk.sync()

        assert len(desk.files()) == 5


def test_a_trial_changes_nothing(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.remember("Frost covers come off in May.")

        tried = laptop.sync(dry_run=True)

        assert tried["went"]["notes"] == 1
        assert laptop.sync()["went"]["notes"] == 1
        assert desk.sync(dry_run=True)["came"]["notes"] == 1
        assert desk.files() == {}


def test_a_note_beside_its_copy_can_be_renamed_and_deleted(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        ids = [laptop.remember(text) for text in ("Frost covers come off in May.", "The press needs forty bar.")]
        settle(laptop, desk)
        for id in ids:
            laptop.write(id, "Unless it freezes.")
            desk.write(id, "Or in June, on the hill.")
        settle(laptop, desk)
        assert len(alike(laptop, desk)) == 4

        laptop.rename(ids[0], "covers")
        laptop.delete(ids[1])
        settle(laptop, desk)

        notes = [Path(path).name for path in alike(laptop, desk) if "conflicted copy" not in path]
        assert notes == ["covers.md"]


def test_a_page_without_an_id_that_was_forgotten_stops_no_later_change(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        (laptop.vault / "boiler.md").write_text("# Boiler\n\nIt is serviced in May.\n")
        settle(laptop, desk)
        boiler = laptop.services.vault.notes.read("boiler.md")
        assert boiler is not None
        laptop.forgetting.forget_notes([boiler])
        laptop.remember("Frost covers come off in May.")

        settle(laptop, desk)

        assert list(alike(laptop, desk)) == [path for path in laptop.files() if "boiler" not in path]
        assert desk.sync()["problems"] == []


def test_a_page_that_the_others_never_saw_is_forgotten_without_a_word_to_them(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        (laptop.vault / "boiler.md").write_text("# Boiler\n\nIt is serviced in May.\n")
        laptop.services.vault.scanner.compare()
        boiler = laptop.services.vault.notes.read("boiler.md")
        assert boiler is not None
        laptop.forgetting.forget_notes([boiler])

        assert laptop.sync()["went"]["gone"] == 0
        assert desk.sync()["problems"] == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_a_note_whose_name_not_every_system_allows_stays_and_is_named(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        (laptop.vault / "Meeting: plan.md").write_text("# Plan\n\nPrune the pears.\n")
        laptop.remember("Frost covers come off in May.")

        report = laptop.sync()

        assert (report["odd_names"], report["problems"]) == (["Meeting: plan.md"], [])
        assert desk.sync()["problems"] == []
        assert len(desk.files()) == 1
        (laptop.vault / "Meeting: plan.md").rename(laptop.vault / "Meeting plan.md")
        settle(laptop, desk)
        assert "Meeting plan.md" in alike(laptop, desk)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
@pytest.mark.parametrize("by_hand", [True, False])
def test_a_note_renamed_as_not_every_system_allows_and_then_gone_is_gone_everywhere(tmp_path: Path, by_hand: bool) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        ids = [laptop.remember(f"{name} come off in May.") for name in ("Frost covers", "Nets", "Hoses")]
        settle(laptop, desk)
        laptop.rename(ids[0], "Covers: in May")
        laptop.sync()
        if by_hand:
            laptop.delete(ids[0])
        else:
            laptop.services.vault.edits.forget(ids[0])

        settle(laptop, desk)

        assert len(alike(laptop, desk)) == 2
        assert desk.services.vault.known.is_buried(ids[0])


def journal(home: Home, zone: tzinfo) -> None:
    """Write the pages of all days, as a consolidation does in this time zone."""
    vault = home.services.vault
    notes = [note for entry in vault.notes.entries() if (note := vault.notes.read(entry.path)) is not None]
    pages = consolidation.day_pages(notes, [], today=date(2099, 1, 1), zone=zone)
    for step in consolidation.days(pages, {note.id: note for note in notes}, vault.notes.is_ours):
        texts = {path: vault.notes.text(path) for path in consolidation.needed(step) if vault.notes.raw(path) is not None}
        for change in consolidation.changes(step, texts):
            if change.note is None:
                assert vault.edits.rewrite(change.path, change.before, change.after)
            else:
                vault.planner.carry_out([Create(note=change.note, because="the day is over")])


def test_the_days_of_the_journal_are_made_by_each_machine_and_neither_copied_nor_doubled(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        east, west = timezone(timedelta(hours=13)), timezone(timedelta(hours=-11))
        laptop.remember("The pump is serviced in May.")
        desk.remember("The loft is swept in June.")
        journal(laptop, east)
        journal(desk, west)
        settle(laptop, desk)
        for home, zone in ((laptop, east), (desk, west)) * 2:
            journal(home, zone)
            assert (home.sync()["went"]["notes"], home.sync()["copies"]) == (0, [])

        for home in (laptop, desk):
            days = [path for path in home.files() if path.startswith("journals/")]
            assert len(days) == 1
            assert "pump" in home.files()[days[0]] and "loft" in home.files()[days[0]]


def test_a_day_of_the_journal_that_its_owner_edited_reaches_the_others_and_stays(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.remember("The pump is serviced in May.")
        settle(laptop, desk)
        journal(laptop, UTC)
        journal(desk, UTC)
        settle(laptop, desk)
        (day,) = [path for path in laptop.files() if path.startswith("journals/")]
        (laptop.vault / day).write_text(laptop.files()[day] + "\nA good day.\n")
        settle(laptop, desk)
        journal(desk, UTC)

        assert desk.files() == laptop.files()
        assert "A good day." in desk.files()[day]


@pytest.mark.parametrize("erased", [True, False])
def test_a_day_of_the_journal_that_was_forgotten_on_one_machine_stays_on_the_others(tmp_path: Path, erased: bool) -> None:
    with homes(tmp_path, "laptop", "desk", "loft") as (laptop, desk, loft):
        laptop.remember("The pump is serviced in May.")
        settle(laptop, desk, loft)
        journal(laptop, UTC)
        journal(desk, UTC)
        settle(laptop, desk, loft)
        (day,) = [path for path in laptop.files() if path.startswith("journals/")]
        id = laptop.services.vault.notes.get(day).id
        laptop.services.vault.edits.forget(id)
        if erased:
            purge(laptop.root / "state", laptop.services.timeline, laptop.services.vault)

        settle(laptop, desk, loft)
        (tmp_path / "another").mkdir()
        laptop.syncing.sync(target=str(tmp_path / "another"))  # everything is sent again
        desk.syncing.sync(target=str(tmp_path / "another"), join=laptop.key())
        loft.syncing.sync(target=str(tmp_path / "another"), join=laptop.key())
        journal(loft, UTC)

        assert day not in laptop.files()
        assert day in desk.files() and day in loft.files()
        assert laptop.services.vault.known.is_buried(id) and not desk.services.vault.known.is_buried(id)


def test_a_day_that_an_earlier_version_forgot_leaves_the_page_made_here(tmp_path: Path) -> None:
    with homes(tmp_path, "laptop", "desk") as (laptop, desk):
        laptop.remember("The pump is serviced in May.")
        settle(laptop, desk)
        journal(desk, UTC)
        (day,) = [path for path in desk.files() if path.startswith("journals/")]
        id = desk.services.vault.notes.get(day).id
        laptop.services.vault.shared.bury(id, Grave(project="", titles=()))  # of a page that sync knows nothing of

        for home in (laptop, desk):
            home.sync()

        assert day in desk.files()


def test_what_was_forgotten_stays_so_though_it_was_moved_out_and_in_elsewhere(tmp_path: Path) -> None:
    with homes(tmp_path, "desk", "laptop") as (desk, laptop):
        id = desk.remember("The orchard gate code rotates every Friday at noon.")
        settle(desk, laptop)
        path = laptop.path(id)
        text = path.read_text()
        desk.services.vault.edits.forget(id)

        path.unlink()
        laptop.sync()
        path.write_text(text)
        settle(laptop, desk)

        assert [file for home in (desk, laptop) for file, said in home.files().items() if "gate code" in said] == []


def test_what_its_owner_puts_back_knowing_that_it_was_forgotten_comes_back(tmp_path: Path) -> None:
    with homes(tmp_path, "desk", "laptop") as (desk, laptop):
        id = desk.remember("The orchard gate code rotates every Friday at noon.")
        settle(desk, laptop)
        path = laptop.path(id)
        text = path.read_text()
        desk.services.vault.edits.forget(id)
        settle(desk, laptop)

        path.write_text(text)
        laptop.services.vault.scanner.compare()
        settle(laptop, desk)

        assert "gate code" in "".join(desk.files().values())


@pytest.mark.parametrize("name", ["\u82b1" * 80, "\u0436" * 115, "\U0001f33b" * 60])
def test_a_long_name_in_any_script_does_not_hold_up_the_others(tmp_path: Path, name: str) -> None:
    with homes(tmp_path, "desk", "laptop") as (desk, laptop):
        id = desk.remember("The orchard gate code rotates every Friday at noon.")
        desk.rename(id, name)
        settle(desk, laptop)
        desk.write(id, "edited on the desk")
        laptop.write(id, "edited on the laptop")
        settle(desk, laptop)
        desk.remember("Hedgehogs sleep in the barn.")

        problems = [problem for home in (desk, laptop, desk, laptop) for problem in home.sync()["problems"]]

        assert problems == []
        for home in (desk, laptop):
            said = "".join(home.files().values())
            assert all(each in said for each in ("edited on the desk", "edited on the laptop", "Hedgehogs"))


def test_a_copy_that_cannot_be_written_is_a_problem_and_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with homes(tmp_path, "desk", "laptop") as (desk, laptop):
        id = desk.remember("The orchard gate code rotates every Friday at noon.")
        settle(desk, laptop)
        desk.write(id, "edited on the desk")
        laptop.write(id, "edited on the laptop")
        desk.sync()
        put = SharedFiles.put

        def failing(files: SharedFiles, path: str, text: str, *, id: str, ours: bool) -> str:
            raise KiteError("no room")

        monkeypatch.setattr(SharedFiles, "put", failing)
        assert "no room" in "".join(laptop.sync()["problems"] + desk.sync()["problems"])
        monkeypatch.setattr(SharedFiles, "put", put)
        settle(desk, laptop)

        assert all("edited on the desk" in "".join(home.files().values()) for home in (desk, laptop))


class TestKeys:
    PORT = KeyPlace(key="db.port", scope=Scope.PROJECT, project="orchard")

    def value(self, home: Home) -> str | None:
        home.services.vault.scanner.compare()
        kept = home.services.vault.keys.find(self.PORT)
        return kept.note.body if kept is not None else None

    def test_a_key_that_two_machines_have_written_has_one_value_on_both(self, tmp_path: Path) -> None:
        with homes(tmp_path, "desk", "laptop") as (desk, laptop):
            desk.services.vault.keys.write(self.PORT, lambda before: "5432")
            laptop.services.vault.keys.write(self.PORT, lambda before: "6543")
            settle(desk, laptop)
            first = [self.value(home) for home in (desk, laptop)]
            desk.services.vault.keys.write(self.PORT, lambda before: "7777")
            settle(desk, laptop)
            second = [self.value(home) for home in (desk, laptop)]
            kept = laptop.services.vault.keys.find(self.PORT)
            assert kept is not None
            laptop.services.vault.edits.forget(kept.note.id)
            settle(desk, laptop)

            assert first[0] == first[1] is not None
            assert second == ["7777", "7777"]
            assert [self.value(home) for home in (desk, laptop)] == [None, None]
            desk.services.vault.keys.write(self.PORT, lambda before: "8888")
            settle(desk, laptop)
            assert [self.value(home) for home in (desk, laptop)] == ["8888", "8888"]

    def test_of_two_notes_of_one_key_both_machines_choose_the_same(self, tmp_path: Path) -> None:
        """As earlier versions wrote them, each with an id of its own."""
        with homes(tmp_path, "desk", "laptop") as (desk, laptop):
            for home, id, name in ((desk, "01KC0000000000000000000001", "b"), (laptop, "01KC0000000000000000000002", "a")):
                listed = f"---\nid: {id}\nkind: fact\ntitle: db.port\nproject: orchard\nkey: db.port\n---\non the {home.name}\n"
                (home.vault / f"{name}.md").write_text(listed)
            settle(desk, laptop)

            assert [self.value(home) for home in (desk, laptop)] == ["on the laptop", "on the laptop"]
            laptop.services.vault.keys.write(self.PORT, lambda before: "7777", overrule=True)
            settle(desk, laptop)
            assert [self.value(home) for home in (desk, laptop)] == ["7777", "7777"]


def test_a_segment_that_the_folder_lost_does_not_hold_up_the_others(tmp_path: Path) -> None:
    with homes(tmp_path, "desk", "laptop") as (desk, laptop):
        settle(desk, laptop)
        desk.remember("Hedgehogs sleep in the barn.")
        desk.sync()
        lost = max((desk.shared / "kite-sync").glob("desk-*/*.segment"))
        lost.unlink()
        desk.remember("Owls nest in the attic.")

        assert ["lost 1 segment" in problem for problem in desk.sync()["problems"]] == [True]
        assert laptop.sync()["problems"] == []
        assert desk.sync()["problems"] == []
        said = "".join(laptop.files().values())
        assert "Hedgehogs" in said
        assert "Owls" in said


def test_the_same_folder_by_another_name_is_the_same(tmp_path: Path) -> None:
    with homes(tmp_path, "desk", "laptop") as (desk, laptop):
        desk.remember("Hedgehogs sleep in the barn.")
        settle(desk, laptop)
        (tmp_path / "link").symlink_to(desk.shared)

        answer = desk.syncing.sync(target=str(tmp_path / "link"))

        assert (answer["went"]["notes"], answer["others"]) == (0, [])
        assert len(list((desk.shared / "kite-sync").glob("desk-*"))) == 1


def test_old_folders_hide_no_machine(tmp_path: Path) -> None:
    with homes(tmp_path, "desk", "zebra") as (desk, zebra):
        settle(desk, zebra)
        for number in range(70):
            (desk.shared / "kite-sync" / f"old-{number:08x}").mkdir()
        zebra.remember("Hedgehogs sleep in the barn.")
        settle(zebra, desk)
        assert "Hedgehogs" in "".join(desk.files().values())

        for number in range(200):
            (desk.shared / "kite-sync" / f"older-{number:08x}").mkdir()
        assert "left out" in "".join(desk.sync()["problems"])
