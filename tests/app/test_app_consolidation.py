"""The vault made tidier by a plan that is printed, done and taken back; people's words stay whatever happens."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kite_memory.app.consolidation import Consolidation, commit, worked_on
from kite_memory.app.vault_pages import VaultPages
from kite_memory.errors import KiteError
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Role, Session, Where
from kite_memory.model.note import Create, Note, NoteKind, NoteStatus, Scope
from kite_memory.paths import asset_folder
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.consolidation import Worked
from kite_memory.vault.wording import note_id
from tests.fakes.clock import Clock
from tests.fakes.hashing_embedder import HashingEmbedder

NOW = datetime(2026, 9, 1, 2, 30, tzinfo=UTC)
FLOODS = "Old pear varieties are grafted on quince stock because meadow floods drown pear roots."
FLOODS_AGAIN = "Because meadow floods drown pear roots, old pear varieties are grafted on quince stock."


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock(NOW)
        self.vault = Vault(folder / "vault", folder / "state" / "vault.sqlite", clock=self.clock)
        self.vault.ensure(Path(asset_folder("vault_template")))
        index = Index(folder / "index", embedder=HashingEmbedder(dim=16))
        self.recall = Recall(index=index, memory=SessionMemory(folder / "shown.sqlite"), clock=self.clock)
        self.committed: list[str] = []
        self.consolidating = Consolidation(
            vault=self.vault,
            refresh=lambda paths: self.recall.refresh(self.vault.notes, hint=paths),
            pages=VaultPages(vault=self.vault, clock=self.clock),
            folder=folder / "state",
            clock=self.clock,
            committed=self._commit,
        )

    def _commit(self, message: str) -> str:
        self.committed.append(message)
        return ""

    def write(self, title: str, body: str, **given: Any) -> Note:
        kind = given.pop("kind", NoteKind.FACT)
        at = given.pop("created", NOW - timedelta(days=3))
        note = Note(
            id=note_id(at, title, body),
            path=f"{given.pop('folder', 'projects')}/{title.lower().replace(' ', '-')}.md",
            kind=kind,
            title=title,
            body=body,
            created=at,
            updated=at,
            project="orchard",
            **given,
        )
        self.vault.planner.carry_out([Create(note=note, because="")])
        return self.vault.notes.find(note.id)

    def files(self) -> dict[str, bytes]:
        root = self.vault.root
        found = (path for path in sorted(root.rglob("*")) if path.is_file() and ".trash" not in path.parts)
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}

    def close(self) -> None:
        self.recall.close()
        self.vault.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.close()


def doubled(home: Home) -> tuple[Note, Note]:
    return (
        home.write("Pears on quince", FLOODS, evidence=("claude-code:a#1",), created=NOW - timedelta(days=9)),
        home.write("Quince stock", FLOODS_AGAIN, evidence=("claude-code:b#1",), importance=3),
    )


def everything(home: Home) -> None:
    """One of each kind of step."""
    doubled(home)
    home.write("Long", "Rows of trees, and what grew in them. " * 200)
    home.write("Marcheweg", "", kind=NoteKind.ENTITY, folder="topics")
    home.write("The gate", "It sticks at Marcheweg.", entities=("Marcheweg",))
    spoken = "\n\n".join(
        f"## Part {number}\n\nWe spoke of row {number} and of the hail. " + "And so on. " * 60 for number in range(4)
    )
    home.write(
        "A long talk", f"We spoke of hail.\n\n{spoken}", kind=NoteKind.JOURNAL, folder="journals", created=NOW - timedelta(days=300)
    )
    home.write(
        "Another talk", f"And of frost.\n\n{spoken}", kind=NoteKind.JOURNAL, folder="journals", created=NOW - timedelta(days=301)
    )


def test_a_dry_run_says_what_would_be_done_and_does_nothing(home: Home) -> None:
    everything(home)
    before = home.files()

    report = home.consolidating.consolidate(dry_run=True)

    assert sorted(step["doing"] for step in report["steps"]) == ["fold", "fold", "mention", "merge", "split"]
    assert home.files() == before
    assert home.consolidating.undo()["undone"] == 0


def test_all_that_was_done_is_taken_back_to_the_byte(home: Home) -> None:
    everything(home)
    before = home.files()

    done = home.consolidating.consolidate()
    changed = home.files()
    undone = home.consolidating.undo()

    assert (done["done"], done["left_alone"], undone["undone"], undone["left_alone"]) == (5, [], 5, [])
    assert changed != before
    assert home.files() == before
    assert home.consolidating.undo() == {"undone": 0, "left_alone": [], "page": False, "git": ""}


def test_a_dry_run_says_what_would_be_taken_back_and_what_was_edited_since(home: Home) -> None:
    assert home.consolidating.undo(dry_run=True) == {"at": "", "steps": [], "left_alone": [], "page": False}
    everything(home)
    home.consolidating.consolidate()
    changed = home.files()

    planned = home.consolidating.undo(dry_run=True)

    assert (len(planned["steps"]), planned["left_alone"], planned["at"][:10]) == (5, [], f"{NOW:%Y-%m-%d}")
    assert home.files() == changed
    edited = next(step[0]["path"] for step in planned["steps"] if len(step) == 1)
    (home.vault.root / edited).write_bytes(changed[edited] + b"\nAnd plums.\n")
    planned = home.consolidating.undo(dry_run=True)
    assert len(planned["steps"]) == 4 and edited in planned["left_alone"]
    assert home.consolidating.undo()["undone"] == 4


def test_a_second_time_there_is_nothing_to_do_and_the_first_can_still_be_taken_back(home: Home) -> None:
    everything(home)
    before = home.files()
    home.consolidating.consolidate()
    home.vault.scanner.compare()

    again = home.consolidating.consolidate()

    assert (again["steps"], again["page"], again["done"]) == ([], False, 0)
    home.consolidating.undo()
    assert home.files() == before


def test_of_two_that_say_the_same_one_stays_with_what_both_rest_on(home: Home) -> None:
    older, newer = doubled(home)

    home.consolidating.consolidate()

    kept, gone = home.vault.notes.find(older.id), home.vault.notes.find(newer.id)
    assert (kept.evidence, kept.importance, kept.supersedes) == (("claude-code:a#1", "claude-code:b#1"), 3, ("quince-stock",))
    assert "Quince stock" in kept.aliases
    assert (gone.status, gone.superseded_by, gone.body) == (NoteStatus.SUPERSEDED, "pears-on-quince", newer.body)


def test_a_file_name_that_no_link_can_hold_is_not_linked(home: Home) -> None:
    """`[[C# on quince]]` leads to a note named C."""
    older, newer = doubled(home)
    path = home.vault.root / newer.path
    path.rename(path.with_name("C# on quince.md"))
    home.vault.scanner.compare()

    home.consolidating.consolidate()

    kept = home.vault.notes.find(older.id)
    assert kept.supersedes == ()
    assert "Quince stock" in kept.aliases


def test_what_was_taken_back_is_not_merged_again(home: Home) -> None:
    doubled(home)
    home.consolidating.consolidate()

    home.consolidating.undo()
    home.vault.scanner.compare()

    assert home.vault.relations.bring_in_line() == []
    assert home.consolidating.consolidate(dry_run=True)["steps"] == []


def test_a_note_that_its_owner_edited_is_never_the_one_that_goes(home: Home) -> None:
    older, newer = doubled(home)
    file = home.vault.root / newer.path
    file.write_text(file.read_text() + "\nGrandfather said so.\n")
    home.vault.scanner.compare()

    home.consolidating.consolidate()

    assert home.vault.notes.find(newer.id).status is NoteStatus.ACCEPTED
    assert "Grandfather said so." in home.vault.notes.find(newer.id).body
    assert home.vault.notes.find(older.id).superseded_by == "quince-stock"


def test_two_that_their_owner_edited_are_both_left(home: Home) -> None:
    for note in doubled(home):
        file = home.vault.root / note.path
        file.write_text(file.read_text() + "\nGrandfather said so.\n")
    home.vault.scanner.compare()

    assert [step["doing"] for step in home.consolidating.consolidate(dry_run=True)["steps"]] == []


def test_other_projects_keys_figures_and_conflicts_are_no_repetition(home: Home) -> None:
    home.write("Pears on quince", FLOODS)
    home.write("Pears on quince 7", FLOODS.replace("floods", "floods of 1911"), conflicts=("pears-on-quince",))
    home.write("A kept one", FLOODS, key="stock")

    assert home.consolidating.consolidate(dry_run=True)["steps"] == []


@pytest.mark.parametrize(
    "changes",
    [{"expires": NOW + timedelta(days=3)}, {"branch": "fix/press"}, {"scope": Scope.SESSION, "session": "before"}],
    ids=["ends", "branch", "session"],
)
def test_what_holds_for_a_while_or_in_one_place_takes_in_nothing_that_holds_on(home: Home, changes: dict[str, Any]) -> None:
    home.write("Pears on quince", FLOODS, evidence=("claude-code:a#1",), created=NOW - timedelta(days=9), **changes)
    home.write("Quince stock", FLOODS_AGAIN, evidence=("claude-code:b#1",))

    assert "merge" not in [step["doing"] for step in home.consolidating.consolidate(dry_run=True)["steps"]]


def test_a_step_whose_note_was_edited_since_is_not_taken_back(home: Home) -> None:
    everything(home)
    older = home.vault.notes.find("Pears on quince")
    home.consolidating.consolidate()
    file = home.vault.root / older.path
    file.write_text(file.read_text() + "\nMine.\n")

    report = home.consolidating.undo()

    assert report["undone"] == 4
    assert sorted(report["left_alone"]) == ["projects/pears-on-quince.md", "projects/quince-stock.md"]
    assert file.read_text().endswith("\nMine.\n")
    assert home.vault.notes.find("projects/quince-stock.md").status is NoteStatus.SUPERSEDED


def test_old_journals_keep_their_beginning_and_their_words_are_found_in_the_archive(home: Home) -> None:
    everything(home)

    home.consolidating.consolidate()

    talk = home.vault.notes.find("A long talk")
    archives = [path for path in home.files() if "archive" in path]
    assert talk.body == f"We spoke of hail.\n\n**Archived:** [[{Path(archives[0]).stem}]]"
    archive = home.vault.notes.find(archives[0])
    assert len(archives) == 1
    assert "### Part 3" in archive.body
    assert "And of frost." in archive.body
    assert (archive.kind, archive.project) == (NoteKind.JOURNAL, "orchard")
    assert home.vault.notes.unresolved_links() == []


def test_a_persons_own_journal_is_never_folded(home: Home) -> None:
    file = home.vault.root / "journals" / "2025-01-01.md"
    file.write_text("---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ncreated: 2025-01-01\n---\n" + "Hail again. " * 400)
    home.vault.scanner.compare()

    assert home.consolidating.consolidate(dry_run=True)["steps"] == []


def test_a_page_learns_who_speaks_of_it(home: Home) -> None:
    everything(home)

    home.consolidating.consolidate()

    assert home.vault.notes.find("Marcheweg").body == "**Related:** [[the-gate|The gate]]"


def test_a_page_that_its_owner_wrote_on_is_only_added_to(home: Home) -> None:
    everything(home)
    page = home.vault.root / home.vault.notes.find("Marcheweg").path
    theirs = page.read_text() + "My road.\n\n**Related:** [[A long talk]]\n"
    page.write_text(theirs)
    home.vault.scanner.compare()

    home.consolidating.consolidate()

    assert page.read_text() == theirs + "\n**Related:** [[the-gate|The gate]]\n"


def test_a_split_is_proposed_once(home: Home) -> None:
    everything(home)
    home.consolidating.consolidate()
    file = home.vault.root / home.vault.notes.find("Long").path
    assert "review: split\n" in file.read_text()
    file.write_text(file.read_text().replace("review: split\n", ""))
    home.vault.scanner.compare()

    assert home.consolidating.consolidate(dry_run=True)["steps"] == []


def test_a_consolidation_that_was_cut_off_is_taken_back_as_far_as_it_came(tmp_path: Path) -> None:
    home = Home(tmp_path)
    everything(home)
    before = home.files()
    home.consolidating.consolidate()
    journal = tmp_path / "state" / "consolidated.json"
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join(lines[:3]) + b'\n{"place": 2, "pai')

    report = home.consolidating.undo()
    home.close()

    assert report["undone"] == 2
    assert before.keys() <= home.files().keys()


@pytest.mark.parametrize("kept", [b"{", b"[]\n", b'{"version": 99}\n', b"\xff\n"])
def test_a_damaged_record_of_it_is_said(home: Home, kept: bytes) -> None:
    from kite_memory.errors import StateDamaged

    (home.folder / "state" / "consolidated.json").write_bytes(kept)

    with pytest.raises(StateDamaged, match="consolidated"):
        home.consolidating.undo()


def test_the_daemon_does_it_once_a_day_at_whatever_hour_it_is_at_rest(home: Home) -> None:
    doubled(home)

    busy = home.consolidating.maintain(quiet_for=5)
    first = home.consolidating.maintain(quiet_for=3_600)
    for number, title in enumerate(("Pears on seedlings", "Seedlings")):
        home.write(title, "Pears on seedlings bear after nine years, and rooks eat most of them.", evidence=(f"a:{number}#1",))
    home.clock.now += timedelta(hours=9)
    soon = home.consolidating.maintain(quiet_for=3_600)
    home.clock.now += timedelta(hours=12)
    at_work = home.consolidating.maintain(quiet_for=60)
    by_day = home.consolidating.maintain(quiet_for=3_600)

    assert (busy, first, soon, at_work, by_day) == (False, True, False, False, True)


def test_a_machine_that_is_never_left_alone_for_long_is_tidied_after_three_days(home: Home) -> None:
    home.consolidating.maintain(quiet_for=3_600)
    doubled(home)
    home.clock.now += timedelta(days=3, hours=1)

    assert home.consolidating.maintain(quiet_for=90)


def test_what_has_had_its_time_is_archived_beside_its_month_and_comes_back_by_undo(home: Home) -> None:
    bug = home.write("The press fails on line 12", "It hangs.", origin="assistant", created=NOW - timedelta(days=50))

    home.consolidating.consolidate()
    archived = home.vault.notes.find(bug.id).status
    archive = next(home.vault.notes.find(known.id) for known in home.vault.known.all() if known.title.startswith("Archive of"))
    home.consolidating.undo()

    assert (archived, archive.links) == (NoteStatus.ARCHIVED, ("the-press-fails-on-line-12",))
    assert home.vault.notes.find(bug.id).status is NoteStatus.ACCEPTED
    assert home.vault.known.by_id(archive.id) is None


def test_what_was_archived_and_is_wanted_back_is_not_archived_again(home: Home) -> None:
    bug = home.write("The press fails on line 12", "It hangs.", origin="assistant", created=NOW - timedelta(days=50))
    leak = home.write(
        "The barrel is broken", "It leaks.", origin="assistant", created=NOW - timedelta(days=50), evidence=("claude-code:a#1",)
    )

    home.consolidating.consolidate()
    home.consolidating.undo()
    taken_back = home.consolidating.consolidate(dry_run=True)["steps"]
    for note in (bug, leak):
        home.vault.edits.annotate(note.id, {"status": "archived"})
        home.vault.edits.annotate(note.id, {"status": "accepted"})
    by_hand = home.consolidating.consolidate(dry_run=True)["steps"]
    home.vault.edits.annotate(leak.id, {"evidence": ["claude-code:a#1", "claude-code:b#1"]})
    said_again = home.consolidating.consolidate(dry_run=True)["steps"]

    assert (taken_back, by_hand) == ([], [])
    assert [step["why"] for step in said_again] == ["1 no longer shown or used: the-barrel-is-broken"]


def test_each_of_the_last_consolidations_can_be_taken_back(home: Home) -> None:
    before = home.files()
    doubled(home)
    between = home.files()
    home.consolidating.consolidate()
    home.clock.now += timedelta(days=1)
    home.write("Long", "Rows of trees, and what grew in them. " * 200)
    home.consolidating.consolidate()
    home.clock.now += timedelta(days=1)
    home.write("Row 4 is never watered", "It lies low.")
    home.consolidating.consolidate()  # of which only the page is another

    undone = [home.consolidating.undo()["undone"] for _ in range(3)]

    assert undone == [1, 1, 0]
    assert {path: home.files()[path] for path in between} == between
    assert before.keys() < between.keys()


def test_a_record_that_is_old_is_let_go(home: Home) -> None:
    doubled(home)
    home.consolidating.consolidate()
    home.clock.now += timedelta(days=31)
    home.write("Long", "Rows of trees, and what grew in them. " * 200)
    home.consolidating.consolidate()

    assert [home.consolidating.undo()["undone"] for _ in range(2)] == [1, 0]


def test_no_more_wait_than_a_person_goes_through_and_the_weightiest_stay(home: Home) -> None:
    for number in range(34):
        heavy = {"importance": 3} if number < 2 else {}
        doubted = home.write(f"Perhaps row {number}", f"Nothing grows in {number}.", **heavy)
        home.vault.edits.mark(doubted.id, NoteStatus.PROPOSED)  # as a person does it, who may exceed the number

    steps = home.consolidating.consolidate()["steps"]

    waiting = [known.title for known in home.vault.known.to_review()]
    assert ([step["doing"] for step in steps], len(waiting)) == (["lapse"] * 4, 30)
    assert {"Perhaps row 0", "Perhaps row 1"} <= set(waiting)


def test_what_waits_for_a_month_is_asked_about_no_more_however_old_it_was_when_it_came(home: Home) -> None:
    late = NOW - timedelta(days=400)
    waiting = home.write("Perhaps the gate sticks", "A tool said so.", status=NoteStatus.PROPOSED, created=late)
    home.write("The press", "It runs at 40 bar.")
    differs = home.write("The press runs at 55 bar", "It does.", conflicts=("the-press",), created=late)

    home.consolidating.consolidate()
    asked = [home.vault.notes.find(each.id) for each in (waiting, differs)]
    home.clock.now += timedelta(days=31)
    home.consolidating.consolidate()
    after = [home.vault.notes.find(each.id) for each in (waiting, differs)]

    assert [(note.status, note.review) for note in asked] == [(NoteStatus.PROPOSED, ""), (NoteStatus.ACCEPTED, "")]
    assert [(note.status, note.review) for note in after] == [(NoteStatus.ARCHIVED, ""), (NoteStatus.ACCEPTED, "lapsed")]
    assert after[1].conflicts == ("the-press",)
    assert home.vault.known.review_count() == 0


class TestGit:
    def log(self, folder: Path) -> list[str]:
        asked = ["git", "-C", str(folder), "log", "--format=%an <%ae> %cn: %s"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()

    def test_a_vault_becomes_a_repository_with_one_commit_and_no_trash(self, home: Home) -> None:
        home.write("Frost", "It comes late.")
        home.vault.edits.forget(home.write("Gone", "Away with it.").id)

        first = commit(home.vault.root, "One", os.environ)
        second = commit(home.vault.root, "Two", os.environ)

        assert (first, second) == ("committed", "")
        assert self.log(home.vault.root) == ["Kite Memory <kite-memory@localhost> Kite Memory: One"]
        files = subprocess.run(["git", "ls-files"], cwd=home.vault.root, capture_output=True, text=True, check=True).stdout
        assert "projects/frost.md" in files
        assert ".trash" not in files

    def test_no_hook_of_the_repository_is_run(self, home: Home) -> None:
        subprocess.run(["git", "init", "--quiet"], cwd=home.vault.root, check=True)
        hook = home.vault.root / ".git" / "hooks" / "pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\ntouch ran\nexit 1\n")
        hook.chmod(0o755)

        assert commit(home.vault.root, "One", os.environ) == "committed"
        assert not (home.vault.root / "ran").exists()

    def test_a_repository_around_the_vault_is_left_alone(self, home: Home) -> None:
        subprocess.run(["git", "init", "--quiet"], cwd=home.folder, check=True)

        assert "another repository" in commit(home.vault.root, "One", os.environ)
        assert not (home.vault.root / ".git").exists()

    def test_without_git_it_is_said(self, home: Home) -> None:
        assert commit(home.vault.root, "One", {"PATH": str(home.folder)}) == "not committed: git is not installed"


def test_a_note_is_its_own_after_a_merge_too(home: Home) -> None:
    """What was ours before stays ours, so that it can be added to later."""
    older, _ = doubled(home)

    home.consolidating.consolidate()

    assert home.vault.notes.is_ours(home.vault.notes.find(older.id))
    assert not home.vault.notes.is_ours(replace(older, path="projects/nowhere.md"))


PARTS = "Rows.\n\n" + "\n\n".join(f"## What row {row} holds\n\n" + f"Trees of row {row}. " * 200 for row in range(3))


def test_a_division_is_taken_back_to_the_byte(home: Home) -> None:
    note = home.write("Long", PARTS)
    before = home.files()

    changed = home.consolidating.divide(note)
    divided = home.files()
    undone = home.consolidating.undo()

    assert len(changed) == 4 and divided != before
    assert undone["undone"] == 1 and home.files() == before
    assert home.consolidating.divide(home.vault.notes.find(note.id)) == changed


def test_a_division_of_which_a_part_was_edited_since_is_not_taken_back(home: Home) -> None:
    note = home.write("Long", PARTS)
    part = next(path for path in home.consolidating.divide(note) if path != note.path)
    with (home.vault.root / part).open("a") as file:
        file.write("And mine.\n")
    home.vault.scanner.compare()
    divided = home.files()

    undone = home.consolidating.undo()

    assert undone["undone"] == 0 and part in undone["left_alone"]
    assert home.files() == divided


def test_what_was_a_persons_stays_theirs_in_every_part(home: Home) -> None:
    file = home.vault.root / "projects" / "mine.md"
    file.write_text(PARTS)
    home.vault.scanner.compare()

    home.consolidating.consolidate()
    changed = home.consolidating.divide(home.vault.notes.find("projects/mine.md"))

    assert len(changed) == 4
    assert not any(home.vault.notes.is_ours(home.vault.notes.find(path)) for path in changed)


def test_a_persons_links_and_pictures_are_in_the_parts_to_the_letter(home: Home) -> None:
    said = ("![[arch.png]] by [[Future Plan]]", "See [[Rows of old]] and ![[missing.png]].", "`[[code]]` and [[#Row 2]]")
    body = "\n\n".join(f"## Row {row}\n\n{each}\n\n" + "Trees. " * 600 for row, each in enumerate(said))
    (home.vault.root / "arch.png").write_bytes(b"\x89PNG")
    note = home.write("Rows of old", "It leads nowhere by this name.")
    (home.vault.root / "projects" / "mine.md").write_text(f"---\ntitle: {'The long tale of all rows, ' * 4}\n---\n{body}")
    home.vault.scanner.compare()
    home.consolidating.consolidate()

    changed = home.consolidating.divide(home.vault.notes.find("projects/mine.md"))

    parts = [home.vault.notes.find(path) for path in changed if path != "projects/mine.md"]
    assert sorted(part.title[-7:] for part in parts) == [": Row 0", ": Row 1", ": Row 2"]
    for part, each in zip(sorted(parts, key=lambda part: part.title[-1]), said, strict=True):
        assert part.body == f"{each}\n\n{('Trees. ' * 600).strip()}\n\n**Related:** [[mine]]"
    assert home.vault.notes.find(note.id).path not in changed


def test_where_a_part_cannot_be_written_nothing_is_divided(home: Home) -> None:
    gone = home.write("What row 1 holds", "Nothing.")
    home.vault.edits.forget(gone.id)
    note = home.write("Long", PARTS)
    before = home.files()

    with pytest.raises(KiteError, match="could not be written"):
        home.consolidating.divide(note)

    assert home.files() == before


def test_a_note_that_its_owner_has_gone_on_writing_is_asked_about_no_second_time(home: Home) -> None:
    note = home.write("Long", PARTS)
    home.consolidating.consolidate()
    with (home.vault.root / note.path).open("a") as file:
        file.write("And mine.\n")
    home.vault.scanner.compare()

    report = home.consolidating.consolidate()

    assert (report["steps"], report["left_alone"]) == ([], [])


def journal_of(home: Home, *worked: Worked, daily: bool = True) -> Consolidation:
    return Consolidation(
        vault=home.vault,
        refresh=lambda paths: home.recall.refresh(home.vault.notes, hint=paths),
        pages=VaultPages(vault=home.vault, clock=home.clock),
        folder=home.folder / "state",
        clock=home.clock,
        worked_on=lambda: worked,
        daily=daily,
        zone=UTC,
    )


GRAFTING = Worked(
    session="claude-code:a", at=NOW - timedelta(days=3, hours=1), project="orchard", opening="Why do [[pears]] drown?\nSay."
)


def test_a_day_on_which_something_was_kept_has_a_page_if_the_person_wants_it(home: Home) -> None:
    note = home.write("Pears on quince", FLOODS, evidence=("claude-code:a#1",))
    home.write("Today", "Still going on.", created=NOW)
    home.write("Maybe", "Only a tool said it.", status=NoteStatus.PROPOSED)

    assert journal_of(home, GRAFTING, daily=False).consolidate()["done"] == 0
    before = home.files()
    journal = journal_of(home, GRAFTING)
    done = journal.consolidate()

    page = home.vault.notes.find("journals/2026-08-29.md")
    assert [(step["doing"], step["path"]) for step in done["steps"]] == [("journal", page.path)]
    assert page.body == "**orchard**\n\n- Why do pears drown? Say.\n\n**Related:** [[pears-on-quince|Pears on quince]]"
    assert home.vault.notes.unresolved_links() == []
    assert journal.consolidate(dry_run=True)["steps"] == []
    journal.undo()
    assert home.files() == before
    assert home.vault.notes.find(note.id)


def test_a_page_of_a_day_follows_its_notes_unless_the_person_wrote_on_it_or_deleted_it(home: Home) -> None:
    home.write("Pears on quince", FLOODS)
    journal = journal_of(home, GRAFTING)
    journal.consolidate()
    home.write("Quince stock", "It is cut in May.")

    assert [step["doing"] for step in journal.consolidate()["steps"]] == ["journal"]
    assert "[[quince-stock|Quince stock]]" in home.vault.notes.find("journals/2026-08-29.md").body

    file = home.vault.root / "journals" / "2026-08-29.md"
    file.write_text(file.read_text() + "\nA good day.\n")
    home.write("Third", "The gate sticks.")
    home.vault.scanner.compare()
    assert journal.consolidate()["steps"] == []
    home.vault.edits.forget(home.vault.notes.find("journals/2026-08-29.md").id)
    assert journal.consolidate()["steps"] == []


def test_what_is_forgotten_is_gone_from_the_journal_even_where_that_is_kept_no_more(home: Home) -> None:
    note = home.write("Pears on quince", FLOODS)
    journal_of(home, GRAFTING).consolidate()
    home.vault.edits.forget(note.id)

    journal_of(home, daily=False).erase_copies()

    assert home.vault.notes.find("journals/2026-08-29.md").body == ""


def said_in(session: str, text: str, at: datetime) -> RedactedResult:
    where = Where(file=f"/t/{session}.jsonl", start=0, end=9)
    role: Role
    type, role = (EventType.USER_MESSAGE, "user") if text else (EventType.COMMAND, "assistant")
    event = Event(
        id=f"{session}-1", session=session, provider="claude-code", ordinal=1, at=at, role=role, type=type, text=text, where=where
    )
    whole = Session(id=session, provider="claude-code", started=at, project="orchard")
    cursor = Cursor(position=9, size=9, mtime_ns=1)
    return RedactedResult(ReadResult(path=where.file, session=whole, events=(event,), problems=(), cursor=cursor))


def test_the_daily_page_names_sessions_by_what_their_user_said_first(tmp_path: Path) -> None:
    at = datetime(2026, 8, 29, 9, tzinfo=UTC)
    with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
        timeline.commit([said_in("typed", "Why do pears drown?", at), said_in("silent", "", at)], "claude-code")

        assert worked_on(timeline) == [Worked(session="claude-code:typed", at=at, project="orchard", opening="Why do pears drown?")]
