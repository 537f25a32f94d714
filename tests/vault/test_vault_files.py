"""Touching the disk: inside the vault, whole, and never over somebody else's bytes."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kite_memory.errors import VaultMissing, VaultReadOnly
from kite_memory.vault.files import MAX_NOTE_BYTES, CannotRead, Files
from kite_memory.vault.folders import FolderPlace, KernelRenames, NotSupported, OutsideVault, PlainRenames, Renames
from kite_memory.vault.wording import digest
from tests.vault.building import contents, leftovers

ESCAPES = ["../x.md", "a/../../x.md", "/etc/x.md", "a//x.md", "./x.md", "a/./x.md", "", "a/", "x\0.md", ".."]


class ClaimingRenames(PlainRenames):
    """A disk without hard links: a name is claimed by an empty file first."""

    def link(self, source: FolderPlace, target: FolderPlace) -> None:
        raise NotSupported


EVERY_WAY = pytest.mark.parametrize(
    "renames", [KernelRenames(), PlainRenames(), ClaimingRenames()], ids=["kernel", "links", "claims"]
)


def files_in(root: Path, renames: Renames | None = None, step: Callable[[str], None] = lambda doing: None) -> Files:
    root.mkdir(exist_ok=True)
    return Files(root, renames=renames, step=step)


def create(files: Files, path: str, text: str) -> None:
    files.publish(files.fill(path, text.encode()))


@pytest.fixture(params=["descriptors", "whole paths"])
def ways_to_folders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach files below open folders, and by whole paths, as Windows has to."""
    if request.param == "whole paths":
        monkeypatch.setattr("kite_memory.vault.folders._BY_DESCRIPTOR", False)


@pytest.mark.usefixtures("ways_to_folders")
@EVERY_WAY
def test_a_new_file_is_there_whole_and_nothing_beside_it(tmp_path: Path, renames: Renames) -> None:
    files = files_in(tmp_path / "v", renames)

    create(files, "a/b/x.md", "text")

    assert contents(tmp_path / "v") == {"a/b/x.md": b"text"}
    assert files.read("a/b/x.md").data == b"text"


@pytest.mark.usefixtures("ways_to_folders")
@EVERY_WAY
def test_a_name_that_is_taken_stays_as_it_is(tmp_path: Path, renames: Renames) -> None:
    files = files_in(tmp_path / "v", renames)
    create(files, "x.md", "theirs")
    filled = files.fill("x.md", b"ours")

    with pytest.raises(FileExistsError):
        files.publish(filled)
    files.discard(filled.temporary)

    assert contents(tmp_path / "v") == {"x.md": b"theirs"}


@EVERY_WAY
def test_only_the_file_that_was_meant_is_replaced(tmp_path: Path, renames: Renames) -> None:
    files = files_in(tmp_path / "v", renames)
    create(files, "x.md", "old")

    replaced = files.replace("x.md", b"new", expected=digest("old"))
    refused = files.replace("x.md", b"newer", expected=digest("old"))

    assert replaced == files.read("x.md").stamp
    assert refused is None
    assert contents(tmp_path / "v") == {"x.md": b"new"}


@EVERY_WAY
def test_what_was_deleted_is_not_replaced(tmp_path: Path, renames: Renames) -> None:
    files = files_in(tmp_path / "v", renames)

    assert files.replace("x.md", b"new", expected=digest("old")) is None
    assert contents(tmp_path / "v") == {}


class Interrupting(KernelRenames):
    """Somebody does something in the very instant before an exchange."""

    def __init__(self, *doings: Callable[[], object]) -> None:
        super().__init__()
        self._doings = list(doings)

    def exchange(self, one: FolderPlace, other: FolderPlace) -> None:
        if self._doings:
            self._doings.pop(0)()
        super().exchange(one, other)


def saved_in_place(path: Path, text: str) -> Callable[[], object]:
    return lambda: path.write_text(text)


def saved_by_rename(path: Path, text: str) -> Callable[[], object]:
    def save() -> None:
        other = path.with_name("editor.tmp")
        other.write_text(text)
        other.replace(path)

    return save


@pytest.mark.skipif(KernelRenames()._call is None, reason="no exchange of files here")
@pytest.mark.parametrize("save", [saved_in_place, saved_by_rename])
@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_a_save_in_the_last_instant_wins(tmp_path: Path, save: Callable[[Path, str], Callable[[], object]], times: int) -> None:
    path = tmp_path / "v" / "x.md"
    saves = [save(path, f"theirs {number}") for number in range(times)]
    files = files_in(tmp_path / "v", Interrupting(*saves))
    create(files, "x.md", "old")

    replaced = files.replace("x.md", b"ours", expected=digest("old"))

    assert replaced is None
    assert path.read_text() == f"theirs {times - 1}"
    rescued = files.sweep(tuple(leftovers(tmp_path / "v")))
    assert leftovers(tmp_path / "v") == []
    assert all((tmp_path / "v" / one).read_text().startswith("theirs") for one in rescued)


@pytest.mark.skipif(KernelRenames()._call is None, reason="no exchange of files here")
def test_a_deletion_in_the_last_instant_wins(tmp_path: Path) -> None:
    path = tmp_path / "v" / "x.md"
    files = files_in(tmp_path / "v", Interrupting(path.unlink))
    create(files, "x.md", "old")

    assert files.replace("x.md", b"ours", expected=digest("old")) is None
    assert contents(tmp_path / "v") == {}


@pytest.mark.skipif(KernelRenames()._call is None, reason="no exchange of files here")
def test_a_deletion_right_after_a_save_leaves_the_save_in_the_trash(tmp_path: Path) -> None:
    path = tmp_path / "v" / "x.md"
    files = files_in(tmp_path / "v", Interrupting(saved_in_place(path, "theirs"), path.unlink))
    create(files, "x.md", "old")

    replaced = files.replace("x.md", b"ours", expected=digest("old"))
    (rescued,) = files.sweep(tuple(leftovers(tmp_path / "v")))

    assert replaced is None
    assert contents(tmp_path / "v") == {rescued: b"theirs"}


@EVERY_WAY
def test_trash_keeps_all_that_is_thrown_into_it(tmp_path: Path, renames: Renames) -> None:
    files = files_in(tmp_path / "v", renames)
    for text in ("one", "two", "three"):
        create(files, "a/x.md", text)
        files.to_trash("a/x.md")

    assert contents(tmp_path / "v") == {".trash/x.md": b"one", ".trash/x-2.md": b"two", ".trash/x-3.md": b"three"}
    with pytest.raises(FileNotFoundError):
        files.to_trash("a/x.md")


@pytest.mark.parametrize("path", ESCAPES)
def test_nothing_outside_has_a_path(tmp_path: Path, path: str) -> None:
    files = files_in(tmp_path / "v")

    for touch in (
        lambda: files.fill(path, b"x"),
        lambda: files.read(path),
        lambda: files.replace(path, b"x", expected=""),
        lambda: files.to_trash(path),
        lambda: files.make_folder(path) if path else files.read(path),
    ):
        with pytest.raises(OutsideVault):
            touch()
    assert contents(tmp_path) == {}


def test_links_below_the_vault_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    files = files_in(tmp_path / "v")
    (tmp_path / "v" / "folder").symlink_to(outside)
    (tmp_path / "v" / "note.md").symlink_to(outside / "secret.md")
    (tmp_path / "v" / "dangling.md").symlink_to(outside / "new.md")

    for path in ("folder/secret.md", "note.md"):
        with pytest.raises(CannotRead, match="symbolic link"):
            files.read(path)
    for write in (
        lambda: files.fill("folder/x.md", b"x"),
        lambda: files.make_folder("folder/deeper"),
        lambda: files.replace("folder/secret.md", b"x", expected=digest("secret")),
        lambda: files.to_trash("folder/secret.md"),
    ):
        with pytest.raises(VaultReadOnly) as refused:
            write()
        assert "link" in str(refused.value)
    with pytest.raises(FileExistsError):
        files.publish(files.fill("dangling.md", b"x"))
    assert files.replace("note.md", b"x", expected=digest("secret")) is None
    assert contents(outside) == {"secret.md": b"secret"}


def test_a_trash_that_is_a_link_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    files = files_in(tmp_path / "v")
    create(files, "x.md", "text")
    (tmp_path / "v" / ".trash").symlink_to(tmp_path / "outside")

    with pytest.raises(VaultReadOnly):
        files.to_trash("x.md")
    assert files.read("x.md").data == b"text"


def test_the_vault_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "v").symlink_to(tmp_path / "real")

    create(Files(tmp_path / "v"), "x.md", "text")

    assert contents(tmp_path / "real") == {"x.md": b"text"}


def test_only_ordinary_files_of_a_bearable_size_are_read(tmp_path: Path) -> None:
    files = files_in(tmp_path / "v")
    os.mkfifo(tmp_path / "v" / "pipe.md")
    (tmp_path / "v" / "folder.md").mkdir()
    (tmp_path / "v" / "large.md").write_bytes(b"x" * (MAX_NOTE_BYTES + 1))
    (tmp_path / "v" / "just.md").write_bytes(b"x" * MAX_NOTE_BYTES)

    for name, reason in (("pipe.md", "not a file"), ("folder.md", "not a file"), ("large.md", "larger than 5 MB")):
        with pytest.raises(CannotRead, match=reason):
            files.read(name)
    assert len(files.read("just.md").data) == MAX_NOTE_BYTES
    with pytest.raises(FileNotFoundError):
        files.read("none.md")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o770])
def test_files_and_folders_have_the_vaults_mode_whatever_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v").chmod(mode)
    before = os.umask(umask)
    try:
        create(Files(tmp_path / "v"), "a/x.md", "text")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "v" / "a").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "v" / "a" / "x.md").stat().st_mode) == mode & 0o666


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_a_vault_that_we_make_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    root = tmp_path / "new" / "v"
    before = os.umask(umask)
    try:
        Files(root).make_root()
    finally:
        os.umask(before)

    assert [stat.S_IMODE(path.stat().st_mode) for path in (root, root.parent)] == [0o700, 0o700]


def test_a_replaced_file_keeps_its_own_mode(tmp_path: Path) -> None:
    files = files_in(tmp_path / "v")
    create(files, "x.md", "old")
    (tmp_path / "v" / "x.md").chmod(0o640)

    files.replace("x.md", b"new", expected=digest("old"))

    assert stat.S_IMODE((tmp_path / "v" / "x.md").stat().st_mode) == 0o640


class Failing:
    """The disk says no at one step."""

    def __init__(self, number: int, error: int) -> None:
        self.steps: list[str] = []
        self._number = number
        self._error = error

    def __call__(self, doing: str) -> None:
        self.steps.append(doing)
        if len(self.steps) == self._number + 1:
            raise OSError(self._error, os.strerror(self._error))


def everything(files: Files) -> list[object]:
    """One of each change; stops at the first that fails."""
    create(files, "a/new.md", "new")
    replaced = files.replace("old.md", b"changed", expected=digest("old"))
    trashed = files.to_trash("b/thrown.md")
    return [replaced, trashed]


def prepared(root: Path) -> Path:
    files = files_in(root)
    create(files, "old.md", "old")
    create(files, "b/thrown.md", "thrown")
    return root


def count_steps(tmp_path: Path, renames: Renames) -> int:
    counting = Failing(-1, 0)
    everything(Files(prepared(tmp_path / "counted"), renames=renames, step=counting))
    return len(counting.steps)


@EVERY_WAY
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EMFILE, errno.EDQUOT])
def test_a_failure_at_any_step_is_said_and_tears_nothing(tmp_path: Path, error: int, renames: Renames) -> None:
    for number in range(count_steps(tmp_path, renames)):
        root = prepared(tmp_path / f"v{number}")
        failing = Failing(number, error)
        try:
            everything(Files(root, renames=renames, step=failing))
        except VaultReadOnly as failed:
            assert failed.hint
            assert ("no space left" in str(failed)) == (error in (errno.ENOSPC, errno.EDQUOT))
        else:
            assert failing.steps[number] == "clear", "only tidying up may fail quietly: the sweep does it later"

        rescued = Files(root).sweep(tuple(leftovers(root)))

        assert not rescued
        found = contents(root)
        assert set(found.values()) <= {b"new", b"old", b"changed", b"thrown"}
        assert sorted(found.values()).count(b"thrown") == 1
        assert found["old.md"] in (b"old", b"changed")


def test_short_writes_go_on_until_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:3])))

    create(files_in(tmp_path / "v"), "x.md", "a text of some length")

    assert (tmp_path / "v" / "x.md").read_text() == "a text of some length"


@pytest.mark.parametrize("name", ["fsync", "close"])
def test_what_the_disk_refuses_at_the_last_moment_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = files_in(tmp_path / "v")
    real: Callable[[int], None] = getattr(os, name)

    def refuse(descriptor: int) -> None:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if name == "close" or not is_file:
            real(descriptor)
        if is_file:
            raise OSError(errno.EIO, "the cable")

    monkeypatch.setattr(os, name, refuse)

    with pytest.raises(VaultReadOnly):
        create(files, "x.md", "text")
    monkeypatch.undo()
    assert contents(tmp_path / "v") == {}


def test_a_vault_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(VaultMissing) as missing:
        create(Files(tmp_path / "v"), "x.md", "text")
    assert missing.value.hint
    (tmp_path / "file").write_text("")
    with pytest.raises(VaultMissing):
        Files(tmp_path / "file").fill("x.md", b"")


def test_the_sweep_takes_what_is_ours_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "v"
    files = files_in(root)
    old, new = digest("old")[:32], digest("new")[:32]
    (root / ".kmem-fill-0123").write_text("half a no")
    (root / f".kmem-swap-{new}-{old}-000000000001").write_text("old")
    (root / f".kmem-swap-{new}-{old}-000000000002").write_text("new")
    (root / f".kmem-swap-{new}-{old}-000000000003").write_text("a person's")
    (root / ".kmem-mine").write_text("who knows")
    (root / "x.md").write_text("note")

    rescued = files.sweep(tuple(leftovers(root)))

    assert rescued == (".trash/rescued-000000000003.md",)
    assert contents(root) == {".kmem-mine": b"who knows", ".trash/rescued-000000000003.md": b"a person's", "x.md": b"note"}


def test_only_our_own_names_can_be_discarded(tmp_path: Path) -> None:
    files = files_in(tmp_path / "v")
    create(files, "x.md", "text")

    with pytest.raises(OutsideVault):
        files.discard("x.md")
    files.discard(".kmem-fill-gone")
    assert contents(tmp_path / "v") == {"x.md": b"text"}


def test_plain_renames_cannot_exchange() -> None:
    with contextlib.suppress(NotSupported):
        PlainRenames().exchange(FolderPlace(folder=None, name="a"), FolderPlace(folder=None, name="b"))
        raise AssertionError("it should have said so")


def test_folders_swapped_for_links_while_we_write_lead_nowhere(tmp_path: Path) -> None:
    """Between every two steps a folder is a link that leads out, or is one again."""
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "v"
    (root / "a").mkdir(parents=True)
    state = {"linked": False}

    def swap(doing: str) -> None:
        if state["linked"]:
            (root / "a").unlink()
            (root / "real").rename(root / "a")
        else:
            (root / "a").rename(root / "real")
            (root / "a").symlink_to(outside)
        state["linked"] = not state["linked"]

    files = Files(root, step=swap)
    for number in range(50):
        with contextlib.suppress(VaultReadOnly, FileNotFoundError, CannotRead):
            create(files, f"a/{number}.md", "text")
        with contextlib.suppress(VaultReadOnly, FileNotFoundError, CannotRead):
            files.replace(f"a/{number}.md", b"new", expected=digest("text"))
        with contextlib.suppress(VaultReadOnly, FileNotFoundError, CannotRead):
            files.to_trash(f"a/{number}.md")

    assert contents(outside) == {}


def test_what_is_missing_is_counted_as_it_is_looked_for_one_by_one(tmp_path: Path) -> None:
    files = files_in(tmp_path / "vault")
    for path in ("topics/a.md", "topics/b.md", "decisions/c.md", "d.md"):
        create(files, path, "x")
    (tmp_path / "vault" / "topics" / "dangling.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "vault" / "file").write_text("no folder")
    (tmp_path / "vault" / "linked").symlink_to(tmp_path / "vault" / "topics")
    paths = ["topics/a.md", "topics/gone.md", "topics/dangling.md", "decisions/c.md", "ideas/e.md", "d.md", "f.md"]
    paths += ["file/g.md", "linked/a.md", "linked/h.md"]

    assert files.count_missing(paths) == sum(not files.exists(path) for path in paths) == 4
    assert files.count_missing([]) == 0
    (tmp_path / "vault").rename(tmp_path / "away")
    with pytest.raises(VaultMissing):
        files.count_missing(paths)
