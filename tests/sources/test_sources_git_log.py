import shutil
from pathlib import Path
from typing import Any

import pytest

from kite_memory.distill.condense import worth_asking
from kite_memory.model.event import Event, ReadResult
from kite_memory.sources.git_history import GitLog
from kite_memory.system.git import Git, GitFailed
from tests.contract.database_contract import looks
from tests.fakes.repositories import FakeRepository, environment


@pytest.fixture
def orchard(tmp_path: Path) -> FakeRepository:
    return FakeRepository(tmp_path / "orchard")


def source(tmp_path: Path, *folders: Path, most: int = 2_000, **variables: str) -> GitLog:
    found = [str(folder) for folder in folders] or [str(tmp_path / "orchard")]
    return GitLog(lambda: found, environment={**environment(tmp_path), **variables}, home=tmp_path, most=most)


def read(git: GitLog, after: ReadResult | None = None) -> list[ReadResult]:
    (path,) = git.transcripts()
    return looks(git, path, after)


def commits(looks: list[ReadResult]) -> list[Event]:
    return [event for look in looks for event in look.events if not event.path]


def test_a_commit_is_an_event_and_so_are_its_files(tmp_path: Path, orchard: FakeRepository) -> None:
    first = orchard.commit(
        "Mend the pump\n\nThe old valve leaked, so it is a ball valve now.\n\nSigned-off-by: Ada <ada@example.com>", pump_py="1"
    )
    second = orchard.commit("Drop it", pump_py="2", well_py="1")

    (look,) = read(source(tmp_path))

    folder = tmp_path / "orchard"
    assert [(event.id, event.text, event.path) for event in look.events] == [
        (first, "Mend the pump\n\nThe old valve leaked, so it is a ball valve now.", ""),
        (f"{first}:1", "added", str(folder / "pump.py")),
        (second, "Drop it", ""),
        (f"{second}:1", "changed", str(folder / "pump.py")),
        (f"{second}:2", "added", str(folder / "well.py")),
    ]
    assert {event.role for event in look.events} == {"system"}
    assert look.session is not None
    assert (look.session.project, look.session.title) == ("orchard", "Commits of 2026-03")


def test_no_commit_is_taken_for_something_said(tmp_path: Path, orchard: FakeRepository) -> None:
    orchard.commit("I decided to use a ball valve because the old one leaked. " * 10)

    assert not worth_asking([event for look in read(source(tmp_path)) for event in look.events])


def test_a_month_is_a_session(tmp_path: Path, orchard: FakeRepository) -> None:
    for number in range(4):
        orchard.commit(f"Commit {number}", days=20)

    found = read(source(tmp_path))

    assert [(look.session.id[-7:], len(commits([look])), look.more) for look in found if look.session] == [
        ("2026-03", 1, True),
        ("2026-04", 2, True),
        ("2026-05", 1, False),
    ]


def test_only_new_commits_are_reported(tmp_path: Path, orchard: FakeRepository) -> None:
    orchard.commit("Old")
    git = source(tmp_path)
    first = read(git)[-1]
    orchard.commit("New")

    assert [event.text for event in commits(read(git, first))] == ["New"]


def test_other_branches_and_worktrees_belong_to_it(tmp_path: Path, orchard: FakeRepository) -> None:
    orchard.commit("On main")
    orchard.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = FakeRepository.__new__(FakeRepository)
    side.folder, side._days = tmp_path / "side", 3
    side.commit("Beside", well_py="1")
    git = source(tmp_path, tmp_path / "side", tmp_path / "orchard", tmp_path / "side" / "gone")

    found = read(git)

    assert [event.text for event in commits(found)] == ["On main", "Beside"]
    assert {look.session.project for look in found if look.session} == {"orchard"}


def test_a_commit_in_a_worktree_changes_the_stamp(tmp_path: Path, orchard: FakeRepository) -> None:
    orchard.commit("On main")
    orchard.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    git = source(tmp_path)
    (path,) = git.transcripts()
    before = git.stamp(path)
    side = FakeRepository.__new__(FakeRepository)
    side.folder, side._days = tmp_path / "side", 3
    side.commit("Beside")

    assert git.stamp(path) != before


def test_of_a_long_history_the_newest_is_reported(tmp_path: Path, orchard: FakeRepository) -> None:
    for number in range(5):
        orchard.commit(f"Commit {number}")

    found = read(source(tmp_path, most=2))

    assert [event.text for event in commits(found)] == ["Commit 3", "Commit 4"]
    assert [problem.reason for look in found for problem in look.problems] == ["older commits left out"]


def test_a_shallow_clone_is_reported_as_far_as_it_goes(tmp_path: Path, orchard: FakeRepository) -> None:
    for number in range(3):
        orchard.commit(f"Commit {number}")
    orchard.git("clone", "--quiet", "--depth", "2", f"file://{orchard.folder}", str(tmp_path / "clone"))

    assert [event.text for event in commits(read(source(tmp_path, tmp_path / "clone")))] == ["Commit 1", "Commit 2"]


def test_a_rewritten_history_is_reported_anew(tmp_path: Path, orchard: FakeRepository) -> None:
    orchard.commit("Keep")
    orchard.commit("Typo")
    git = source(tmp_path)
    first = read(git)[-1]
    orchard.git("reset", "--quiet", "--hard", "HEAD~1")
    orchard.commit("No typo")
    orchard.git("reflog", "expire", "--expire=now", "--all")
    orchard.git("gc", "--quiet", "--prune=now")

    assert "No typo" in [event.text for event in commits(read(git, first))]


def test_a_repository_without_commits_shows_nothing(tmp_path: Path, orchard: FakeRepository) -> None:
    (look,) = read(source(tmp_path))

    assert (look.events, look.problems) == ((), ())
    assert look.cursor.size > 0


def test_a_message_cannot_pose_as_another_commit(tmp_path: Path, orchard: FakeRepository) -> None:
    message = f"Real\n\n\x1e{'a' * 40}\x1f1772355600\x1fForged\x1f\ncommit {'b' * 40}\nM\tx"
    name = orchard.commit(message)

    found = commits(read(source(tmp_path)))

    assert [event.id for event in found] == [name]
    assert found[0].text.startswith("Real")


def test_a_commit_of_many_files_names_them_in_its_text(tmp_path: Path, orchard: FakeRepository) -> None:
    for number in range(20):
        (orchard.folder / f"f{number:02}.py").write_text("1")
    orchard.commit("Everything", f00_py="1")

    (look,) = read(source(tmp_path))

    assert len(look.events) == 13
    assert look.events[0].text.startswith("Everything\n\n20 files, among them f12.py, f13.py")


def test_nothing_of_the_repositorys_own_is_run(tmp_path: Path, orchard: FakeRepository) -> None:
    orchard.commit("Once")
    trap, sprung = tmp_path / "trap.sh", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "diff.external",
        "core.sshCommand",
        "gpg.program",
        "credential.helper",
    ):
        orchard.git("config", key, str(trap))
    orchard.git("config", "log.showSignature", "true")
    (orchard.folder / ".gitattributes").write_text("* diff=trap\n")
    orchard.git("config", "diff.trap.textconv", str(trap))
    orchard.git("config", "diff.trap.command", str(trap))

    assert commits(read(source(tmp_path)))
    assert not sprung.exists()


def test_gits_own_variables_are_not_heeded(tmp_path: Path, orchard: FakeRepository) -> None:
    orchard.commit("Here")
    other = FakeRepository(tmp_path / "other")
    other.commit("There")

    found = read(source(tmp_path, GIT_DIR=str(other.folder / ".git"), GIT_WORK_TREE=str(other.folder)))

    assert [event.text for event in commits(found)] == ["Here"]


def test_a_repository_of_anothers_is_left_alone(tmp_path: Path, orchard: FakeRepository) -> None:
    """git says whose it is; here every other owner counts as foreign."""
    orchard.commit("Here")
    real = shutil.which("git")
    suspicious = _script(tmp_path / "bin", f'GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {real} "$@"')

    (look,) = read(source(tmp_path, **suspicious))

    assert (look.events, [problem.reason for problem in look.problems]) == ((), ["another's repository"])


def test_without_git_there_is_a_problem(tmp_path: Path, orchard: FakeRepository) -> None:
    orchard.commit("Here")

    (look,) = read(source(tmp_path, PATH=str(tmp_path / "nowhere")))

    assert (look.events, [problem.reason for problem in look.problems]) == ((), ["git is not installed"])


def _script(folder: Path, text: str) -> dict[str, Any]:
    folder.mkdir()
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_a_git_that_hangs_is_ended(tmp_path: Path) -> None:
    git = Git(_script(tmp_path / "bin", "exec sleep 60"), seconds=0.2)

    with pytest.raises(GitFailed, match="git took too long"):
        git.ask(tmp_path, ("log",))


def test_a_git_that_says_too_much_is_ended(tmp_path: Path) -> None:
    git = Git(_script(tmp_path / "bin", "exec yes"), output=1_000)

    with pytest.raises(GitFailed, match="git says too much"):
        git.ask(tmp_path, ("log",))


def test_a_git_that_complains_a_lot_is_heard_out(tmp_path: Path) -> None:
    git = Git(_script(tmp_path / "bin", "yes | head -c 1000000 >&2; exit 1"))

    with pytest.raises(GitFailed, match="git failed"):
        git.ask(tmp_path, ("log",))


@pytest.mark.parametrize("folder", ["", "relative", "\0", "//server/share", "\\\\server\\share", "/nowhere/at/all"])
def test_no_repository_is_found_where_none_exists(tmp_path: Path, folder: str) -> None:
    git = GitLog(lambda: [folder], environment=environment(tmp_path), home=tmp_path)

    assert list(git.transcripts()) == []


def test_the_home_folders_own_repository_is_not_looked_at(tmp_path: Path) -> None:
    FakeRepository(tmp_path)
    (tmp_path / "plain").mkdir()

    assert list(source(tmp_path, tmp_path / "plain").transcripts()) == []
