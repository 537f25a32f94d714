"""The process dies at every single step; afterwards nothing is torn, doubled, lost or left over."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kite_memory.errors import KiteError, NoteNotFound, VaultReadOnly
from kite_memory.model.note import Amend, Create, NoteStatus, Rejected, Scope, Skip, Supersede
from kite_memory.vault.drafting import Memo
from kite_memory.vault.folders import FolderPlace, KernelRenames, NotSupported, PlainRenames, Renames
from kite_memory.vault.ledger import KeyPlace
from kite_memory.vault.notefile import UnreadableNote, parse
from kite_memory.vault.vault import Vault
from tests.vault.building import (
    START,
    TEMPLATE,
    AtStep,
    contents,
    copy,
    decision,
    drafts,
    dying_at,
    fact,
    in_a_process_that_may_die,
    leftovers,
    note,
    vault_in,
    write,
)
from tests.vault.test_vault_files import ClaimingRenames

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

OLD = "projects/old-feb26.md"
THERE = ("old-feb26.md", "beside-feb26.md", "below-feb26.md")
MOST_STEPS = 200


def create(vault: Vault) -> None:
    made = drafts(
        decision(entities=["Pears", "person:Ada Frost"], rejected=[Rejected(alternative="Apples", reason="early")]), name="chunk-2"
    )
    frost = drafts(fact("Frost", entities=["person:Ada Frost"]), name="chunk-4", session="5e55-0002")
    vault.planner.carry_out(vault.planner.plan([*made, *frost]))


def amend(vault: Vault) -> None:
    vault.planner.carry_out(
        vault.planner.plan(drafts(fact("Old", "Wholly new words about it.", evidence=6), name="chunk-3", first=5))
    )


def supersede(vault: Vault) -> None:
    old = vault.notes.find(OLD)
    vault.planner.carry_out([Supersede(note=note("New"), old_id=old.id, old_path=old.path, because="")])


def forget(vault: Vault) -> None:
    try:
        vault.edits.forget("Old")
    except NoteNotFound:
        assert not (vault.root / OLD).exists()
    if vault.scanner.links_outdated:  # as the daemon does after it has compared
        vault.scanner.mend_links()


def mute(vault: Vault) -> None:
    vault.edits.mute("Old")


def remember(vault: Vault) -> None:
    vault.edits.remember(Memo(text="Port 80."))


def keep(vault: Vault) -> None:
    place = KeyPlace(key="port", scope=Scope.GLOBAL)
    vault.keys.write(place, lambda before: "Port 8080.")
    vault.keys.write(place, lambda before: "Port 8081.")


def lay_out(vault: Vault) -> None:
    vault.ensure(TEMPLATE)


SCENARIOS = pytest.mark.parametrize("scenario", [create, amend, supersede, forget, mute, remember, keep])
EVERY_WAY = pytest.mark.parametrize(
    "renames", [KernelRenames(), PlainRenames(), ClaimingRenames()], ids=["kernel", "links", "claims"]
)


@pytest.fixture
def start(tmp_path: Path, laid_out: Path) -> Path:
    """A vault with a note and two that link to it, one of which its owner has edited."""
    folder = copy(laid_out, tmp_path / "start")
    with vault_in(folder, laid_out=False) as vault:
        write(vault, fact("Old"), fact("Beside"), fact("Below"))
        edited = vault.root / "projects" / "beside-feb26.md"
        edited.write_text(edited.read_text() + "\nAn owner's line.\n")
        vault.scanner.compare()
    return folder


def each_death(start: Path, tmp_path: Path, scenario: Callable[[Vault], None], renames: Renames) -> list[Path]:
    """The folders in which it died at its first step, its second, and so on."""
    died: list[Path] = []
    for number in range(MOST_STEPS):
        folder = copy(start, tmp_path / f"died-{number}")

        def mortal(folder: Path = folder, number: int = number) -> None:
            with vault_in(folder, laid_out=False, renames=renames, step=dying_at(number)) as vault:
                scenario(vault)

        if not in_a_process_that_may_die(mortal):
            return died
        died.append(folder)
    raise AssertionError("it never ran to its end")


def assert_untorn(root: Path) -> None:
    for path, data in contents(root).items():
        if path.endswith(".md") and not path.startswith((".", "templates/")) and path not in ("Home.md", "README.md"):
            found = parse(data.decode(), path, created=START, updated=START)
            assert not isinstance(found, UnreadableNote), path
            assert found.id, path


@SCENARIOS
@EVERY_WAY
def test_a_repeat_after_any_death_ends_where_no_death_would_have(
    start: Path, tmp_path: Path, scenario: Callable[[Vault], None], renames: Renames
) -> None:
    undisturbed = copy(start, tmp_path / "undisturbed")
    with vault_in(undisturbed, laid_out=False, renames=renames) as vault:
        scenario(vault)
    expected = contents(undisturbed / "vault")

    died = each_death(start, tmp_path, scenario, renames)

    assert len(died) >= 5
    for folder in died:
        if not isinstance(renames, ClaimingRenames):  # there, a claimed name is an empty file until the next writer
            assert_untorn(folder / "vault")
        with vault_in(folder, laid_out=False, renames=renames) as vault:
            vault.scanner.compare()
            assert leftovers(vault.root) == []
            scenario(vault)
            comparison = vault.scanner.compare()
            assert (comparison.problems, comparison.rescued, comparison.deleted) == ((), (), ())
            assert contents(vault.root) == expected, folder.name


@SCENARIOS
def test_a_repeat_without_a_comparison_first_ends_there_too(start: Path, tmp_path: Path, scenario: Callable[[Vault], None]) -> None:
    undisturbed = copy(start, tmp_path / "undisturbed")
    with vault_in(undisturbed, laid_out=False) as vault:
        scenario(vault)
        expected = contents(undisturbed / "vault")

    for folder in each_death(start, tmp_path, scenario, KernelRenames()):
        with vault_in(folder, laid_out=False) as vault:
            scenario(vault)
            vault.scanner.compare()
            assert contents(vault.root) == expected, folder.name


def test_what_was_published_and_deleted_before_the_next_start_stays_deleted(start: Path, tmp_path: Path) -> None:
    seen = 0
    for folder in each_death(start, tmp_path, create, KernelRenames()):
        root = folder / "vault"
        new = [path for path in contents(root) if path.endswith("-feb26.md") and not path.endswith(THERE)]
        for path in new:
            (root / path).unlink()
            seen += 1

        with vault_in(folder, laid_out=False) as vault:
            vault.scanner.compare()
            create(vault)
            vault.scanner.compare()

            assert not set(new) & set(contents(root)), folder.name
            assert vault.notes.unresolved_links() == []
    assert seen > 5


def test_what_was_published_and_renamed_before_the_next_start_is_not_doubled(start: Path, tmp_path: Path) -> None:
    for folder in each_death(start, tmp_path, create, KernelRenames()):
        root = folder / "vault"
        new = [path for path in contents(root) if path.endswith("-feb26.md") and not path.endswith(THERE)]
        for number, path in enumerate(new):
            (root / path).rename(root / f"renamed {number}.md")

        with vault_in(folder, laid_out=False) as vault:
            create(vault)
            vault.scanner.compare()

            ids = [found.id for entry in vault.notes.entries() if (found := vault.notes.read(entry.path))]
            assert len(ids) == len(set(ids))
            titles = [vault.notes.find(id).title for id in ids]
            assert sorted(titles) == sorted(
                ["Old", "Beside", "Below", "Pears over apples for the north field", "Frost", "Ada Frost"]
            )


def test_an_edit_before_the_next_start_is_kept(start: Path, tmp_path: Path) -> None:
    for scenario in (create, amend, supersede):
        for folder in each_death(start, tmp_path / scenario.__name__, scenario, KernelRenames()):
            root = folder / "vault"
            edited = {path: data + b"\nBy hand.\n" for path, data in contents(root).items() if path.endswith("-feb26.md")}
            for path, data in edited.items():
                (root / path).write_bytes(data)

            with vault_in(folder, laid_out=False) as vault:
                vault.scanner.compare()
                scenario(vault)

                for path in edited:
                    assert b"\nBy hand.\n" in (root / path).read_bytes()
                    assert not vault.notes.is_ours(vault.notes.find(path))


def test_laying_out_can_be_repeated_after_any_death(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with vault_in(tmp_path / "whole") as vault:
        expected = contents(vault.root)

    died = each_death(tmp_path / "nothing", tmp_path, lay_out, KernelRenames())

    assert len(died) > 20
    for folder in died:
        with vault_in(folder) as vault:
            vault.scanner.compare()
            assert contents(vault.root) == expected, folder.name


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EROFS])
@SCENARIOS
def test_a_disk_that_says_no_at_any_step_is_said_and_a_repeat_puts_it_right(
    start: Path, tmp_path: Path, scenario: Callable[[Vault], None], error: int
) -> None:
    undisturbed = copy(start, tmp_path / "undisturbed")
    with vault_in(undisturbed, laid_out=False) as vault:
        scenario(vault)
        expected = contents(undisturbed / "vault")

    def refuse() -> None:
        raise OSError(error, os.strerror(error))

    for number in range(MOST_STEPS):
        folder = copy(start, tmp_path / f"failed-{number}")
        step = AtStep(number, refuse, unless=("commit", "clear"))
        with vault_in(folder, laid_out=False, step=step) as vault:
            try:
                scenario(vault)
            except VaultReadOnly as failed:
                assert failed.hint
            else:
                assert not step.reached
                assert contents(vault.root) == expected
                return
        with vault_in(folder, laid_out=False) as vault:
            assert_untorn(vault.root)
            scenario(vault)
            vault.scanner.compare()
            assert contents(vault.root) == expected, number
    raise AssertionError("it never ran to its end")


def saves_in_place(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\nBy hand.\n")


def saves_by_rename(path: Path) -> None:
    other = path.with_name("editor.tmp")
    other.write_bytes(path.read_bytes() + b"\nBy hand.\n")
    other.replace(path)


def renames_it(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\nBy hand.\n")
    path.rename(path.with_name("renamed.md"))


def deletes_it(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("act", [saves_in_place, saves_by_rename, renames_it, deletes_it])
@pytest.mark.parametrize("scenario", [amend, supersede, mute, forget])
def test_whatever_its_owner_does_between_any_two_steps_is_kept(
    start: Path, tmp_path: Path, act: Callable[[Path], None], scenario: Callable[[Vault], None]
) -> None:
    acted = 0
    for number in range(MOST_STEPS):
        folder = copy(start, tmp_path / f"at-{number}")
        path = folder / "vault" / OLD
        there: list[bool] = []

        def once(path: Path = path, there: list[bool] = there) -> None:
            if path.exists():
                act(path)
                there.append(True)

        step = AtStep(number, once)
        with vault_in(folder, laid_out=False, step=step) as vault:
            try:
                scenario(vault)
            except KiteError as refused:
                assert refused.hint
            vault.scanner.compare()
            assert leftovers(vault.root) == []
            found = contents(vault.root)
            if there and act is deletes_it:
                assert OLD not in found, number
                assert isinstance(vault.planner.plan(drafts(fact("Old")))[0], Skip)
            elif there:
                assert any(b"\nBy hand.\n" in data for data in found.values()), (number, sorted(found))
        acted += len(there)
        if not step.reached:
            assert acted >= 2
            return
    raise AssertionError("it never ran to its end")


def test_without_a_ledger_a_deletion_would_come_back(start: Path, tmp_path: Path) -> None:
    """The control of the tests above: this is what they would see if nothing remembered."""
    folder = copy(start, tmp_path / "control")
    with vault_in(folder, laid_out=False) as vault:
        create(vault)
        (vault.root / "projects" / "frost-feb26.md").unlink()
    shutil.rmtree(folder / "state")

    with vault_in(folder, laid_out=False) as vault:
        vault.scanner.compare()
        create(vault)

        assert (vault.root / "projects" / "frost-feb26.md").exists()


class DyingBetween(PlainRenames):
    """Dies after the first half of a rename that takes two steps, the ``number``-th time."""

    def __init__(self, number: int, *, claims: bool) -> None:
        self._left = number
        self._claims = claims

    def link(self, source: FolderPlace, target: FolderPlace) -> None:
        if self._claims:
            raise NotSupported
        super().link(source, target)
        self._die()

    def claim(self, target: FolderPlace) -> None:
        super().claim(target)
        self._die()

    def _die(self) -> None:
        if not self._left:
            os._exit(17)
        self._left -= 1


@pytest.mark.parametrize("claims", [False, True], ids=["links", "claims"])
@pytest.mark.parametrize("scenario", [create, supersede, remember, forget])
def test_a_death_in_the_middle_of_a_plain_rename_is_put_right(
    start: Path, tmp_path: Path, scenario: Callable[[Vault], None], claims: bool
) -> None:
    undisturbed = copy(start, tmp_path / "undisturbed")
    with vault_in(undisturbed, laid_out=False) as vault:
        scenario(vault)
        expected = contents(undisturbed / "vault")

    for number in range(MOST_STEPS):
        folder = copy(start, tmp_path / f"died-{number}")

        def mortal(folder: Path = folder, number: int = number) -> None:
            with vault_in(folder, laid_out=False, renames=DyingBetween(number, claims=claims)) as vault:
                scenario(vault)

        if not in_a_process_that_may_die(mortal):
            assert number
            return
        with vault_in(folder, laid_out=False, renames=PlainRenames()) as vault:
            vault.scanner.compare()
            scenario(vault)
            assert vault.scanner.compare().problems == ()
            assert contents(vault.root) == expected
    raise AssertionError("it never ran to its end")


def test_a_note_is_accepted_after_any_repeat(start: Path, tmp_path: Path) -> None:
    for folder in each_death(start, tmp_path, supersede, KernelRenames()):
        with vault_in(folder, laid_out=False) as vault:
            supersede(vault)
            vault.scanner.compare()

            assert vault.notes.find("New").status is NoteStatus.ACCEPTED
            assert vault.notes.find("Old").superseded_by == "new-feb26"
            assert vault.notes.unresolved_links() == []


def test_actions_alone_can_be_repeated(start: Path, tmp_path: Path) -> None:
    """Without planning again: what the outbox of a dead process holds."""
    actions = [Create(note=note("One"), because=""), Create(note=note("Two", "[[one-feb26]]"), because="")]

    def carry_out(vault: Vault) -> None:
        old = vault.notes.find(OLD)
        vault.planner.carry_out([*actions, Amend(id=old.id, path=old.path, evidence=("a:b#c",), addition="More.", because="")])

    undisturbed = copy(start, tmp_path / "undisturbed")
    with vault_in(undisturbed, laid_out=False) as vault:
        carry_out(vault)
        expected = contents(vault.root)

    for folder in each_death(start, tmp_path, carry_out, KernelRenames()):
        with vault_in(folder, laid_out=False) as vault:
            carry_out(vault)
            vault.scanner.compare()
            assert contents(vault.root) == expected
