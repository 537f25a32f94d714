import shutil
from pathlib import Path

import pytest

from kite_memory.projects import branch_of, project_of, project_with_remote, repository_around


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    return folder


def repository(folder: Path) -> Path:
    (folder / ".git" / "worktrees").mkdir(parents=True)
    return folder


def worktree(of: Path, folder: Path, *, kept: Path | None = None) -> Path:
    folder.mkdir(parents=True)
    (folder / ".git").write_text(f"gitdir: {kept or of / '.git'}/worktrees/{folder.name}\n", encoding="utf-8")
    return folder


def test_a_repository_gives_its_name_to_every_folder_in_it(home: Path) -> None:
    orchard = repository(home / "orchard")
    (orchard / "trees" / "pears").mkdir(parents=True)

    assert project_of(str(orchard)) == "orchard"
    assert project_of(str(orchard / "trees" / "pears")) == "orchard"


def test_a_path_with_steps_upwards_is_followed(home: Path) -> None:
    orchard = repository(home / "orchard")
    (orchard / "trees").mkdir()
    (home / "shed").mkdir()

    assert project_of(f"{orchard}/trees/..") == "orchard"
    assert project_of(f"{home}/shed/../orchard") == "orchard"
    assert project_of(f"{home}/shed/..") == ""


def test_a_folder_that_is_gone_belongs_to_the_repository_it_was_in(home: Path) -> None:
    orchard = repository(home / "orchard")

    assert project_of(str(orchard / "gone" / "deeper")) == "orchard"


def test_the_nearest_repository_counts(home: Path) -> None:
    inner = repository(repository(home / "orchard") / "vendor" / "ladder")

    assert project_of(str(inner)) == "ladder"


def test_a_repository_that_comes_into_being_or_goes_is_noticed_at_once(home: Path) -> None:
    inner = home / "orchard" / "trees"
    inner.mkdir(parents=True)
    named = [project_of(str(inner))]

    repository(home / "orchard")
    named.append(project_of(str(inner)))
    repository(inner)
    named.append(project_of(str(inner)))
    shutil.rmtree(inner / ".git")
    named.append(project_of(str(inner)))

    assert named == ["trees", "orchard", "trees", "orchard"]


def test_a_worktree_that_is_attached_to_another_repository_follows_it(home: Path) -> None:
    orchard, meadow = repository(home / "orchard"), repository(home / "meadow-by-the-river")
    tree = worktree(orchard, home / "grafting")
    assert project_of(str(tree)) == "orchard"

    (tree / ".git").write_text(f"gitdir: {meadow / '.git'}/worktrees/grafting\n", encoding="utf-8")

    assert project_of(str(tree)) == "meadow-by-the-river"


def test_a_worktree_is_the_same_project(home: Path) -> None:
    orchard = repository(home / "orchard")

    assert project_of(str(worktree(orchard, home / "elsewhere" / "grafting"))) == "orchard"
    assert project_of(str(worktree(orchard, orchard / ".claude" / "worktrees" / "b"))) == "orchard"


def test_a_worktree_may_name_its_repository_relatively(home: Path) -> None:
    repository(home / "orchard")
    tree = home / "grafting"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: ../orchard/.git/worktrees/grafting\n", encoding="utf-8")

    assert project_of(str(tree)) == "orchard"


@pytest.mark.parametrize(("kept", "name"), [("orchard.git", "orchard"), ("orchard/.bare", "orchard")])
def test_a_worktree_of_a_bare_repository_has_its_name(home: Path, kept: str, name: str) -> None:
    tree = worktree(home, home / "grafting", kept=home / kept)

    assert project_of(str(tree)) == name


def test_a_submodule_is_a_repository_of_its_own(home: Path) -> None:
    orchard = repository(home / "orchard")
    (orchard / "ladder").mkdir()
    (orchard / "ladder" / ".git").write_text("gitdir: ../.git/modules/ladder\n", encoding="utf-8")

    assert project_of(str(orchard / "ladder")) == "ladder"


@pytest.mark.parametrize("content", ["", "nonsense", "gitdir:", "gitdir: \x01"])
def test_a_git_file_that_says_nothing_leaves_the_folder_its_name(home: Path, content: str) -> None:
    (home / "orchard").mkdir()
    (home / "orchard" / ".git").write_text(content, encoding="utf-8")

    assert project_of(str(home / "orchard")) == "orchard"


@pytest.mark.parametrize("below", [".claude/worktrees/b", ".claude/worktrees/b/src", ".worktrees/2"])
def test_a_worktree_that_is_gone_is_known_by_its_path(home: Path, below: str) -> None:
    assert project_of(str(home / "orchard" / below)) == "orchard"


def test_a_folder_without_a_repository_has_its_own_name(home: Path) -> None:
    (home / "letters").mkdir()

    assert project_of(str(home / "letters")) == "letters"
    assert project_of("/nowhere/at/all") == "all"


def test_home_is_no_project_even_with_dotfiles_in_git(home: Path) -> None:
    repository(home)
    (home / "letters").mkdir()

    assert project_of(str(home)) == ""
    assert project_of(f"{home}/") == ""
    assert project_of(str(home / "letters")) == "letters"


def test_home_behind_a_link_is_no_project_by_either_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = repository(tmp_path / "data" / "ann")
    (real / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (real / "letters").mkdir()
    home = tmp_path / "home"
    home.symlink_to(real)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))

    assert project_of(str(home)) == project_of(str(real)) == ""
    assert project_of(str(home / "letters")) == project_of(str(real / "letters")) == "letters"
    assert repository_around(str(real / "letters"), home=home) is None


def test_a_branch_that_git_keeps_in_a_reftable_is_unknown(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")

    assert branch_of(str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("D:\\work\\Plum-Tree Press", "plum-tree-press"),
        ("\\\\server\\share\\orchard", "orchard"),
        ("//server/share/orchard", "orchard"),
        ("C:\\orchard\\.claude\\worktrees\\b", "orchard"),
        ("relative/orchard", "orchard"),
        ("/x/My App (v2)!", "my-app-v2"),
        ("/x/..", ""),
        ("/", ""),
        ("", ""),
        ("/x/\0", ""),
        ("/" + "x" * 5000, ""),
        ("/x/" + "y" * 300, "y" * 64),
        ("/x/gärten", "gärten"),
        ("/x/-.-", ""),
    ],
)
def test_a_name_is_fit_for_a_file_whatever_the_folder_is_called(home: Path, cwd: str, name: str) -> None:
    assert project_of(cwd) == name


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/ada/Orchard.git",
        "https://github.com/ada/orchard/",
        "git@github.com:ada/orchard.git",
        "ssh://git@host:22/orchard",
        "C:\\repos\\orchard.git",
    ],
)
def test_a_copy_in_a_folder_of_another_name_belongs_to_the_repository_it_came_from(url: str) -> None:
    assert project_with_remote("/gone/worktrees/ab12", url) == "orchard"


def test_a_repository_that_is_here_is_named_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "pears" / ".git").mkdir(parents=True)

    assert project_with_remote(str(tmp_path / "pears"), "https://github.com/ada/orchard.git") == "pears"
    assert project_with_remote("/gone/pears", "") == "pears"
    assert project_with_remote("/gone/pears", "https://") == "pears"
