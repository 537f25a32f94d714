"""Notes that rest on files know them, and are marked when these change; notes of a branch stay with it until it is merged."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.app import code_anchors
from kite_memory.app.code_anchors import CodeAnchors, anchored, digest_of, folder_of, has_drifted, within
from kite_memory.model.event import Event, EventType, Session, Where
from kite_memory.model.note import Chunk, Decision, Fact, Insight, Note, Record, RecordItem, Topic
from kite_memory.paths import asset_folder
from kite_memory.projects import branch_of, merged
from kite_memory.vault import Vault
from kite_memory.vault.drafting import Memo, draft

NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "press").mkdir(parents=True)
    (folder / "press" / "bar.py").write_text("BAR = 40\n")
    (folder / "other.py").write_text("x\n")
    (tmp_path / "secret.txt").write_text("s\n")
    return folder


def event(text: str = "", *, path: str = "") -> Event:
    return Event(
        id="0a0a0a0a-0001", session="s1", provider="claude-code", ordinal=1, at=NOW, role="user", type=EventType.USER_MESSAGE,
        text=text, path=path, where=Where(file="t", start=0, end=1),
    )  # fmt: skip


def made(
    work: Path,
    event: Event,
    *,
    branch: str = "",
    body: str = "It runs at forty bar.",
    kind: type[RecordItem] = Fact,
    now: datetime = NOW,
) -> Note:
    session = Session(id="s1", provider="claude-code", started=NOW, project="orchard", cwd=str(work), branch=branch)
    chunk = Chunk(id="c1", session=session, events=(event,))
    item = kind(title="The press", body=body, evidence=(event.id,), importance=2, origin="user")
    record = Record(topics=(Topic(name="the press", summary="", items=(item,)),))
    (drafted,) = anchored(draft(record, chunk), chunk, now)
    return drafted.note


def test_a_file_that_the_evidence_touched_is_known_by_its_hash(work: Path) -> None:
    note = made(work, event(path=str(work / "press" / "bar.py")))

    assert note.anchors == (f"press/bar.py@{digest_of(work / 'press' / 'bar.py')}",)


def test_a_file_that_evidence_and_note_name_is_known(work: Path) -> None:
    note = made(work, event("see press/bar.py and other.py"), body="It is set in press/bar.py.")

    assert [anchor.partition("@")[0] for anchor in note.anchors] == ["press/bar.py"]


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/hostname", "press", "gone.py", "", "a\0b", "link.txt", ".git/HEAD"])
def test_what_lies_elsewhere_or_is_no_file_is_no_anchor(work: Path, path: str) -> None:
    (work / "link.txt").symlink_to(work.parent / "secret.txt")
    (work / ".git").mkdir()
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    assert made(work, event(path=path)).anchors == ()


def test_of_an_old_session_no_one_knows_what_the_files_said(work: Path) -> None:
    assert made(work, event(path=str(work / "other.py")), now=NOW + timedelta(days=2)).anchors == ()


@pytest.mark.parametrize(
    ("branch", "kind", "kept"),
    [
        ("fix/press", Fact, "fix/press"),
        ("fix/press", Decision, "fix/press"),
        ("fix/press", Insight, ""),
        ("main", Fact, ""),
        ("", Fact, ""),
    ],
)
def test_decisions_and_facts_of_a_branch_carry_it(work: Path, branch: str, kind: type[RecordItem], kept: str) -> None:
    assert made(work, event(), branch=branch, kind=kind).branch == kept


@given(st.text(max_size=40))
def test_any_path_is_looked_at_without_harm(path: str) -> None:
    root = folder_of("/")
    assert root is not None
    found = within(root, path)

    assert found is None or not found.startswith("..")


def test_a_note_has_drifted_when_its_file_says_something_else_or_is_gone(work: Path) -> None:
    note = made(work, event(path=str(work / "other.py")))
    same = has_drifted(note, work.resolve())
    (work / "other.py").write_text("y\n")
    changed = has_drifted(note, work.resolve())
    (work / "other.py").unlink()

    assert (same, changed, has_drifted(note, work.resolve())) == (False, True, True)
    assert not has_drifted(replace(note, anchors=("nonsense", "@", "x@y")), work.resolve())


class Known:
    """The one session that there was."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self.others: list[Path] = []
        self.branch = ""

    def get(self, provider: str, id: str) -> Session | None:
        return Session(id=id, provider=provider, started=NOW, cwd=str(self._cwd), branch=self.branch)

    def folders(self, project: str | None = None) -> list[str]:
        return [str(folder) for folder in (self._cwd, *self.others)]


class Rounds:
    """A vault, and someone who looks at it every ten minutes."""

    def __init__(self, folder: Path, cwd: Path) -> None:
        self.vault = Vault(folder / "vault", folder / "vault.sqlite")
        self.vault.ensure(Path(asset_folder("vault_template")))
        self.seconds = 0.0
        self.refreshed: list[set[str]] = []
        self.now = NOW
        self.sessions = Known(cwd)
        self._anchoring = CodeAnchors(
            vault=self.vault, sessions=self.sessions, refresh=self.refreshed.append, clock=lambda: self.now,
            monotonic=lambda: self.seconds,
        )  # fmt: skip

    @property
    def branch(self) -> str:
        """That the session stood on."""
        return self.sessions.branch

    @branch.setter
    def branch(self, name: str) -> None:
        self.sessions.branch = name

    def write(self, note: Note) -> str:
        from kite_memory.model.note import Create

        self.vault.planner.carry_out([Create(note=note, because="")])
        return note.id

    def look(self, *, quiet_for: float = 3_600) -> list[str]:
        self.seconds += 601
        return self._anchoring.maintain(quiet_for=quiet_for)


@contextmanager
def closing_rounds(folder: Path, cwd: Path) -> Iterator[Rounds]:
    rounds = Rounds(folder, cwd)
    yield rounds
    rounds.vault.close()


@pytest.fixture
def rounds(tmp_path: Path, work: Path) -> Iterator[Rounds]:
    with closing_rounds(tmp_path, work) as rounds:
        yield rounds


def test_a_note_is_marked_when_its_code_changes_and_not_when_it_is_as_it_was(rounds: Rounds, work: Path) -> None:
    id = rounds.write(made(work, event(path=str(work / "other.py"))))
    body = rounds.vault.notes.find(id).body
    before = rounds.look()
    (work / "other.py").write_text("y\n")

    marked = rounds.look()
    drifted = rounds.vault.notes.find(id)
    again = rounds.look()
    (work / "other.py").write_text("x\n")
    rounds.look()

    assert (before, marked, again) == ([], [drifted.path], [])
    assert drifted.drifted == NOW.replace(hour=0)
    assert drifted.body == body
    assert rounds.refreshed[0] == {drifted.path}
    assert rounds.vault.notes.find(id).drifted is None


def test_a_checkout_rewrites_no_note_and_marks_none(rounds: Rounds, work: Path) -> None:
    git(work, "init")
    git(work, "add", ".")
    git(work, "commit", "-m", "one")
    git(work, "checkout", "-b", "queue")
    (work / "other.py").write_text("queue\n")
    git(work, "commit", "-am", "two")
    rounds.branch = "queue"
    touched = event(path=str(work / "other.py"))
    ids = [rounds.write(made(work, touched, branch="queue", kind=kind, body=f"A {kind.__name__}.")) for kind in (Fact, Insight)]
    files = [rounds.vault.root / rounds.vault.notes.find(id).path for id in ids]
    before = [file.read_bytes() for file in files]

    marked = []
    for branch in ("main", "queue", "main", "queue"):
        git(work, "checkout", branch)
        marked += rounds.look()
    assert (marked, [file.read_bytes() for file in files]) == ([], before)

    (work / "other.py").write_text("another\n")
    rounds.look()
    drifted = [rounds.vault.notes.find(id).drifted for id in ids]
    assert (drifted, [file.read_bytes() for file in files]) == ([NOW.replace(hour=0)] * 2, before)


def test_a_note_is_compared_with_the_trunk_once_its_branch_is_merged(rounds: Rounds, work: Path) -> None:
    git(work, "init")
    git(work, "add", ".")
    git(work, "commit", "-m", "one")
    git(work, "checkout", "-b", "queue")
    git(work, "commit", "--allow-empty", "-m", "two")
    rounds.branch = "queue"
    id = rounds.write(made(work, event(path=str(work / "other.py")), branch="queue", kind=Insight))
    git(work, "checkout", "main")
    git(work, "merge", "--no-ff", "--no-edit", "queue")
    (work / "other.py").write_text("another\n")

    assert rounds.look() == [rounds.vault.notes.find(id).path]
    assert rounds.vault.notes.find(id).drifted is not None


def test_a_note_that_an_earlier_version_called_drifted_is_put_right(rounds: Rounds, work: Path) -> None:
    note = made(work, event(path=str(work / "other.py")))
    id = rounds.write(replace(note, drifted=NOW))
    assert rounds.vault.notes.find(id).drifted is not None

    assert rounds.look() == [rounds.vault.notes.find(id).path]

    assert rounds.vault.notes.find(id).drifted is None
    assert 'drifted: ""' in (rounds.vault.root / rounds.vault.notes.find(id).path).read_text()


def test_no_one_looks_while_agents_work_or_twice_in_ten_minutes(rounds: Rounds, work: Path) -> None:
    rounds.write(made(work, event(path=str(work / "other.py"))))
    (work / "other.py").write_text("y\n")

    assert rounds.look(quiet_for=10) == []
    assert rounds.look() != []
    rounds.seconds -= 601
    (work / "other.py").write_text("x\n")
    assert rounds.look() == []


def test_a_folder_that_is_gone_says_nothing_about_its_files(rounds: Rounds, work: Path) -> None:
    rounds.write(made(work, event(path=str(work / "other.py"))))
    shutil.rmtree(work)

    assert rounds.look() == []


def git(folder: Path, *words: str) -> None:
    asked = [
        "git",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "commit.gpgSign=false",
        *words,
    ]
    subprocess.run(asked, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(work: Path) -> Path:
    git(work, "init")
    git(work, "add", ".")
    git(work, "commit", "-m", "one")
    git(work, "checkout", "-b", "fix/press")
    git(work, "commit", "--allow-empty", "-m", "two")
    return work


def test_a_branch_is_reported_without_asking_git(repository: Path) -> None:
    assert branch_of(str(repository / "press")) == "fix/press"
    git(repository, "worktree", "add", str(repository.parent / "tree"), "main")
    assert branch_of(str(repository.parent / "tree")) == "main"
    git(repository, "checkout", "--detach")
    assert branch_of(str(repository)) == ""
    assert branch_of("") == branch_of("relative") == branch_of("/\0") == ""


def test_a_branch_is_merged_when_the_default_one_has_it(repository: Path) -> None:
    before = merged(str(repository), "fix/press", os.environ)
    git(repository, "checkout", "main")
    git(repository, "merge", "--no-ff", "--no-edit", "fix/press")

    assert (before, merged(str(repository), "fix/press", os.environ)) == (False, True)
    assert merged(str(repository), "never-was", os.environ) is True
    assert merged(str(repository.parent / "nowhere"), "fix/press", os.environ) is None


def test_a_branch_that_is_known_from_the_origin_alone_is_not_merged_before_the_default_one_has_it(repository: Path) -> None:
    git(repository.parent, "clone", str(repository), "laptop")
    laptop = repository.parent / "laptop"
    git(laptop, "checkout", "-b", "other", "origin/main")
    git(laptop, "branch", "-D", "fix/press")

    assert merged(str(laptop), "fix/press", os.environ) is False
    git(repository, "checkout", "main")
    git(repository, "merge", "--no-ff", "--no-edit", "fix/press")
    git(laptop, "fetch")
    assert merged(str(laptop), "fix/press", os.environ) is True


def test_a_branch_that_has_only_just_begun_is_not_merged(repository: Path) -> None:
    git(repository, "checkout", "main")
    git(repository, "checkout", "-b", "fix/cider")

    begun = merged(str(repository), "fix/cider", os.environ)

    assert begun is False


def test_a_note_leaves_its_branch_when_it_is_merged_or_a_month_old(rounds: Rounds, repository: Path) -> None:
    id = rounds.write(made(repository, event(), branch="fix/press"))
    still = rounds.look()
    kept = rounds.vault.notes.find(id).branch
    git(repository, "checkout", "main")
    git(repository, "merge", "fix/press")

    rounds.look()

    assert (still, kept, rounds.vault.notes.find(id).branch) == ([], "fix/press", "")


def merge(repository: Path, branch: str) -> None:
    git(repository, "merge", "--no-ff", "--no-edit", branch)


def removed_worktree(repository: Path, tree: Path) -> Path:
    """Of a branch with a commit of its own."""
    git(repository, "checkout", "main")
    git(repository, "worktree", "add", "-b", "fix/cider", str(tree))
    git(tree, "commit", "--allow-empty", "-m", "three")
    git(repository, "worktree", "remove", str(tree))
    return tree


@pytest.mark.parametrize("place", ["elsewhere", "work/.claude/worktrees/cider"])
@pytest.mark.parametrize("deleted", [False, True], ids=["kept", "deleted"])
def test_a_branch_whose_worktree_is_gone_is_asked_of_a_living_folder_of_its_repository(
    tmp_path: Path, repository: Path, place: str, deleted: bool
) -> None:
    tree = removed_worktree(repository, tmp_path / place)
    with closing_rounds(tmp_path, tree) as rounds:
        rounds.sessions.others = [] if place.startswith("work") else [tmp_path / "gone", repository / "press"]
        id = rounds.write(replace(made(repository, event(), branch="fix/cider"), project="work", anchors=()))
        rounds.look()
        before = rounds.vault.notes.find(id).branch
        merge(repository, "fix/cider")
        if deleted:
            git(repository, "branch", "-d", "fix/cider")

        rounds.look()

        assert (before, rounds.vault.notes.find(id).branch) == ("fix/cider", "")


def test_a_repository_of_another_project_says_nothing_about_a_branch(tmp_path: Path, repository: Path) -> None:
    tree = removed_worktree(repository, tmp_path / "elsewhere")
    other = tmp_path / "meadow"
    other.mkdir()
    git(other, "init")
    git(other, "commit", "--allow-empty", "-m", "one")
    with closing_rounds(tmp_path, tree) as rounds:
        rounds.sessions.others = [other]
        id = rounds.write(replace(made(repository, event(), branch="fix/cider"), project="work", anchors=()))

        rounds.look()

        assert rounds.vault.notes.find(id).branch == "fix/cider"


def test_a_merged_branch_is_noticed_at_the_next_look_however_many_notes_there_are(
    rounds: Rounds, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_anchors, "_LOOKED_AT", 2)
    id = rounds.write(made(repository, event(), branch="fix/press"))
    for number in range(8):
        rounds.vault.edits.remember(Memo(text=f"Nothing waits for number {number}, it is a fact.", project="orchard"))
    rounds.vault.scanner.compare()
    rounds.look()
    merged_now = rounds.vault.notes.find(id)
    git(repository, "checkout", "main")
    merge(repository, "fix/press")

    marked = rounds.look()

    assert merged_now.branch == "fix/press"
    assert merged_now.path in marked
    assert rounds.vault.notes.find(id).branch == ""
    assert rounds.vault.known.on_branches() == []
