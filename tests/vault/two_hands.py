"""A person and the daemon at one vault, in an order drawn from a number: the same number, the same sitting."""

import contextlib
import os
import random
import re
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from kite_memory.app.vault_pages import VaultPages
from kite_memory.errors import KiteError, VaultMissing
from kite_memory.model.note import NoteStatus, Scope, Supersede
from kite_memory.vault.files import Files
from kite_memory.vault.ledger import KeyPlace
from kite_memory.vault.vault import Vault
from kite_memory.vault.wording import title_key
from tests.vault.building import MEMORY_DISK, contents, drafts, fact, later, leftovers, vault_in, write
from tests.vault.person import Front, Person

THOUGHTS = 6
KEYS = ("current.focus", "conventions.tests")
_TOKEN = re.compile(rb"byhand\d+x")
_ID = re.compile(rb"^id: ?\"?([0-9A-HJKMNP-TV-Z]{26})\"?\r?$", re.MULTILINE)
_PAGES = ("Home.md", "README.md", "MEMORY.md")


def identity(thought: int) -> str:
    return drafts(fact(f"Thought {thought}"), name=f"chunk-{thought}")[0].note.id


class Daemon:
    """What the service does to a vault, each of it one step; what it may not do just then, it leaves."""

    def __init__(
        self, folder: Path, dice: random.Random, files: Callable[[Path, Callable[[str], None]], Files], *, seconds: int = 0
    ) -> None:
        self._folder = folder
        self._seconds = seconds
        self._files = files
        self.dice = dice
        self.during: Callable[[str], None] = lambda doing: None
        self.forgotten: set[str] = set()
        self.asked_for: set[str] = set()
        self.vault = self._open()

    def _open(self) -> Vault:
        def step(doing: str) -> None:
            self.during(doing)

        root = self._folder / "vault"
        return Vault(root, self._folder / "state" / "vault.sqlite", files=self._files(root, step), clock=self._now, step=step)

    def _now(self) -> datetime:
        self._seconds += 1
        return later() + timedelta(seconds=self._seconds)

    def close(self) -> None:
        self.vault.close()

    def restarts(self) -> None:
        self.vault.close()
        self.vault = self._open()

    def publishes(self) -> None:
        self.publish(self.dice.randrange(THOUGHTS))

    def publish(self, thought: int) -> None:
        said = fact(f"Thought {thought}", entities=["PostgreSQL", "orchard.py"])
        self.unless_frozen(lambda vault: write(vault, said, name=f"chunk-{thought}", session=f"5e55-{thought:04}"))

    def hears_it_again(self) -> None:
        thought, other = self.dice.randrange(THOUGHTS), self.dice.randrange(10, 13)
        again = fact(f"thought {thought}!", f"Thought {thought}, said anew.", evidence=3)
        self.unless_frozen(lambda vault: write(vault, again, name=f"chunk-{thought}-{other}", first=other))

    def supersedes(self) -> None:
        thought = self.dice.randrange(THOUGHTS)
        newer = drafts(fact(f"Second thought {thought}"), name=f"chunk-{thought}-newer")[0].note
        known = self.vault.known.by_id(identity(thought))
        path = known.path if known else ""
        action = Supersede(note=newer, old_id=identity(thought), old_path=path, because="it is newer")
        self.unless_frozen(lambda vault: vault.planner.carry_out([action]))

    def compares(self) -> None:
        if self.vault.scanner.compare().frozen:
            self.vault.scanner.accept_disappearance()

    def mends_links(self) -> None:
        self.unless_frozen(lambda vault: vault.scanner.mend_links())

    def marks(self) -> None:
        if path := self._any():
            self.unless_frozen(
                lambda vault: vault.edits.mute(path) if self.dice.random() < 0.5 else vault.edits.mute(path, undo=True)
            )

    def forgets(self) -> None:
        path = self._any()
        if path:
            with contextlib.suppress(KiteError):
                gone = self.vault.edits.forget(path)
                if gone.trashed:
                    self.forgotten.add(gone.trashed)

    def keeps(self) -> None:
        place = KeyPlace(key=self.dice.choice(KEYS), scope=Scope.GLOBAL)
        said = f"Kept {self.dice.randrange(1000)}."
        self.unless_frozen(lambda vault: self.asked_for.add(vault.keys.write(place, lambda before: said).note.id))

    def synthesizes(self) -> None:
        pages = VaultPages(vault=self.vault, clock=later)
        self.unless_frozen(lambda vault: pages.synthesize())

    def _any(self) -> str:
        known = self.vault.known.all()
        return self.dice.choice(known).path if known else ""

    def unless_frozen(self, work: Callable[[Vault], object]) -> None:
        try:
            work(self.vault)
        except VaultMissing:
            self.vault.scanner.accept_disappearance()
            with contextlib.suppress(KiteError):
                work(self.vault)
        except KiteError:
            pass

    DOES = (
        publishes, publishes, publishes, hears_it_again, hears_it_again, supersedes, compares, compares, mends_links, marks,
        forgets, keeps, synthesizes, restarts,
    )  # fmt: skip


def _with_line(mark: str) -> Callable[[str], str]:
    return lambda text: f"{text}\nAnd {mark}.\n"


class Sitting:
    """``kept`` are the marks that the person has put into the vault and not taken out again; ``gone`` the ids they threw away."""

    def __init__(self, folder: Path, number: int, files: Callable[[Path, Callable[[str], None]], Files]) -> None:
        self.dice = random.Random(number)
        self.folder = folder
        self.person = Person(folder / "vault", replaces=self.dice.random() < 0.5)
        self.daemon = Daemon(folder, random.Random(number + 1), files)
        self.kept: set[bytes] = set()
        self.in_page: set[bytes] = set()
        self.gone: set[str] = set()
        self.copied: Counter[str] = Counter()
        self.binned: list[str] = []
        self.stale: tuple[str, str] | None = None
        self.steps: list[str] = []
        self._marks = 0
        self._nested = False
        self.daemon.during = self._meanwhile

    def _meanwhile(self, doing: str) -> None:
        """Once in a while the person does something just before the next change to the disk."""
        if self._nested:
            return
        self._nested = True
        if "swap" in doing and self.dice.random() < 0.1:
            self.steps.append(f"person saves_everything before: {doing}")
            self.saves_everything()
        elif self.dice.random() < 0.06:
            self.acts(doing)
        self._nested = False

    def acts(self, before: str = "") -> None:
        act = self.dice.choice(self.MAY_DO)
        self.steps.append(f"person {act.__name__}" + (f" before: {before}" if before else ""))
        act(self)

    def daemon_acts(self) -> None:
        act = self.daemon.dice.choice(Daemon.DOES)
        self.steps.append(f"daemon {act.__name__}")
        act(self.daemon)
        for trashed in sorted(self.daemon.forgotten):
            self._has_lost(self._ids(self._bytes(trashed)))
            self.binned.append(trashed)
        self.daemon.forgotten.clear()
        self.gone -= self.daemon.asked_for

    # What the person may do

    def edits(self) -> None:
        if path := self._any():
            mark = self._mark()
            self._changes(path, lambda text: f"{text}\nI say {mark}.\n", mark)

    def saves_everything(self) -> None:
        """Among it what we are just about to put something else in the place of."""
        for path in self._notes():
            mark = self._mark()
            self._changes(path, _with_line(mark), mark)

    def edits_within(self) -> None:
        if path := self._any():
            mark = self._mark()

            def within(text: str) -> str:
                head, fence, body = text.rpartition("\n---\n")
                at = body.find(" ") if body.find(" ") > 0 else len(body)
                return f"{head}{fence}{body[:at]} {mark}{body[at:]}"

            self._changes(path, within, mark)

    def rewrites(self) -> None:
        if path := self._any():
            mark = self._mark()
            self._changes(path, lambda text: f"{text.rpartition(chr(10) + '---' + chr(10))[0]}\n---\n{mark}\n", mark)

    def edits_properties(self) -> None:
        if path := self._any():
            mark = self._mark()
            said: list[Front] = [{"rating": mark}, {"cssclasses": [mark, "wide"]}, {"title": f"Mine, {mark}"}]
            what = self.dice.choice(said)
            self._lets_go(path, lambda: self.person.sets_properties(path, what), mark)

    def breaks_properties(self) -> None:
        if path := self._any():
            mark = self._mark()

            def broken(text: str) -> str:
                return text.replace("---\n", f"---\n{mark}: [a: b\n", 1) if text.startswith("---\n") else text + mark

            self._changes(path, broken, mark)

    def renames(self) -> None:
        if path := self._any():
            name = self.dice.choice(["a", "B", "deep/c", "decisions/d", "Ä"])
            self.person.renames(path, f"{name}.md")

    def moves(self) -> None:
        if path := self._any():
            self.person.renames(path, f"{self.dice.choice(['filed', 'projects', 'filed/away'])}/{path.rpartition('/')[2]}")

    def throws_away(self) -> None:
        if path := self._any():
            ids = self._ids(self._bytes(path))
            if trashed := self.person.throws_away(path):
                self.binned.append(trashed)
                self._has_lost(ids)

    def deletes(self) -> None:
        if path := self._any():
            ids = self._ids(self._bytes(path))
            self._lets_go(path, lambda: self.person.deletes(path), "")
            self._has_lost(ids)

    def puts_back(self) -> None:
        if not self.binned or self._nested:
            return
        trashed = self.binned.pop()
        source = self.folder / "vault" / trashed
        if not source.exists():
            return
        ids = self._ids(source.read_bytes())
        if ids & {id for path in self.person.notes() for id in self._ids(self._bytes(path))}:
            return
        self._changes_to_disk_are_seen()
        if self.person.renames(trashed, f"back {len(self.steps)}.md"):
            self.gone -= ids

    def copies(self) -> None:
        if path := self._any():
            ids = self._ids(self._bytes(path))
            if self.person.copies(path):
                self.copied.update(ids)

    def writes_their_own(self) -> None:
        mark = self._mark()
        name = self.dice.choice(["own", "filed/own", "people/own"])
        self.person.saves(f"{name} {self._marks}.md", f"# Mine\n\n{mark}, and [[a]], [[PostgreSQL]]\n")
        self.kept.add(mark.encode())

    def opens(self) -> None:
        """A note, to save it some time later, over whatever has become of it."""
        if path := self._any():
            with contextlib.suppress(FileNotFoundError):
                self.stale = (path, self.person.reads(path))

    def saves_late(self) -> None:
        if self.stale is None or not (self.folder / "vault" / self.stale[0]).exists():
            return
        path, text = self.stale
        if self._ids(text.encode()) != self._ids(self._bytes(path)):
            return  # another note by now: no editor has it open under this name
        mark = self._mark()
        self._lets_go(path, lambda: self.person.changes(path, lambda now: f"{text}\n{mark}\n"), mark)

    def writes_into_the_page(self) -> None:
        if not (self.folder / "vault" / "MEMORY.md").exists():
            return
        mark = self._mark()
        at = self.dice.choice(["above", "between", "under"])

        def written(text: str) -> str:
            lines = text.split("\n")
            lines.insert({"above": 0, "between": len(lines) // 2, "under": len(lines)}[at], mark)
            return "\n".join(lines)

        self.person.changes("MEMORY.md", written)
        self.in_page.add(mark.encode())

    MAY_DO = (
        edits, edits, edits, edits_within, rewrites, edits_properties, edits_properties, breaks_properties, renames, renames, moves,
        moves, throws_away, deletes, puts_back, copies, writes_their_own, opens, saves_late, writes_into_the_page,
    )  # fmt: skip

    def _notes(self) -> list[str]:
        return [path for path in self.person.notes() if path not in _PAGES and not path.startswith("templates/")]

    def _any(self) -> str:
        notes = self._notes()
        return self.dice.choice(notes) if notes else ""

    def _mark(self) -> str:
        self._marks += 1
        return f"byhand{self._marks}x"

    def _changes(self, path: str, change: Callable[[str], str], mark: str) -> None:
        self._lets_go(path, lambda: self.person.changes(path, change), mark)

    def _lets_go(self, path: str, work: Callable[[], bool], mark: str) -> None:
        """What a person takes out of one note may still stand in another."""
        before = set(_TOKEN.findall(self._bytes(path)))
        try:
            if not work():
                return
        except (UnicodeDecodeError, ValueError):  # they see that it is no text, or that its properties are broken
            return
        if mark:
            self.kept.add(mark.encode())
        lost = before - set(_TOKEN.findall(self._bytes(path)))
        if lost:
            self.kept -= lost - self._found()

    def _found(self) -> set[bytes]:
        """The marks in notes and in the trash. What our page repeats of a note, or a write has not cleared away, is no copy."""
        everything = contents(self.folder / "vault").items()
        counted = [data for path, data in everything if path != "MEMORY.md" and ".kmem-" not in path]
        return {token for data in counted for token in _TOKEN.findall(data)}

    def _bytes(self, path: str) -> bytes:
        try:
            return (self.folder / "vault" / path).read_bytes()
        except OSError:
            return b""

    def _ids(self, data: bytes) -> set[str]:
        return {found[1].decode()} if (found := _ID.search(data)) else set()

    def _has_lost(self, ids: set[str]) -> None:
        for id in ids:
            if self.copied[id]:
                self.copied[id] -= 1
            else:
                self.gone.add(id)

    def _changes_to_disk_are_seen(self) -> None:
        """A note comes back after the daemon has seen it go: else it was never away."""
        self._nested = True
        self.daemon.compares()
        self._nested = False

    # What has to be true when both are done

    def ends(self) -> None:
        self._nested = True
        for thought in range(THOUGHTS):  # a repeat of everything, as after a crash
            self.daemon.publish(thought)
        for _ in range(2):
            self.daemon.compares()
            self.daemon.mends_links()
        self.daemon.synthesizes()

    def wrongs(self) -> Iterator[str]:
        vault = self.daemon.vault
        everything = contents(self.folder / "vault")
        page = everything.get("MEMORY.md", b"")
        if lost := self.kept - self._found() | self.in_page - set(_TOKEN.findall(page)):
            yield f"lost what the person wrote: {sorted(lost)}"
        ids = Counter(id for path in self.person.notes() for id in self._ids(everything[path]))
        if back := self.gone & set(ids):
            yield f"deleted, and back: {sorted(back)}"
        if doubled := {id for id, count in ids.items() if count > 1 + self.copied[id]}:
            yield f"one id in several notes: {sorted(doubled)}"
        holding = (
            known for known in vault.known.all() if known.id and not known.duplicate and known.status != NoteStatus.SUPERSEDED
        )
        titles = (title_key(known.title) for known in holding)  # what was replaced, and is said again later, holds in a new note
        thoughts = Counter(title for title in titles if title.startswith("thought "))
        if twice := {title for title, count in thoughts.items() if count > 1}:
            yield f"one thought in several notes: {sorted(twice)}"
        if left := leftovers(self.folder / "vault"):
            yield f"left over: {left}"
        if dangling := [link for link in vault.notes.unresolved_links() if link.ours]:
            yield f"our links that lead nowhere: {dangling}"
        self.daemon.synthesizes()
        if page and self._bytes("MEMORY.md") != page:
            yield "the page of an unchanged vault has changed"


def ordinary(root: Path, step: Callable[[str], None]) -> Files:
    return Files(root, step=step)


def sit(
    prepared: Path,
    number: int,
    *,
    files: Callable[[Path, Callable[[str], None]], Files] = ordinary,
    before_the_end: Callable[[Sitting], None] = lambda sitting: None,
) -> list[str]:
    """What was wrong afterwards and what had happened; empty if all was well.

    Every tenth has a second daemon in a process of its own.
    """
    folder = Path(tempfile.mkdtemp(prefix="kmem-test-", dir=MEMORY_DISK))
    try:
        shutil.copytree(prepared, folder, dirs_exist_ok=True)
        other = _other_daemon(folder, number) if number % 10 == 0 else 0  # before we open a database: SQLite is not for forking
        sitting = Sitting(folder, number, files)
        try:
            for _ in range(sitting.dice.randint(8, 24)):
                if sitting.dice.random() < 0.5:
                    sitting.acts()
                else:
                    sitting.daemon_acts()
            wrong = [f"the other process failed: {code}"] if other and (code := os.waitpid(other, 0)[1]) else []
            before_the_end(sitting)
            sitting.ends()
            wrong += sitting.wrongs()
            return [*wrong, *sitting.steps] if wrong else []
        finally:
            sitting.daemon.close()
    finally:
        shutil.rmtree(folder)


def _other_daemon(folder: Path, number: int) -> int:
    """Deletes nothing: no one could say afterwards whether the person had saved a note before it went, or after."""
    if child := os.fork():
        return child
    status = 70
    try:
        daemon = Daemon(folder, random.Random(-number - 1), ordinary, seconds=3_600)
        for _ in range(8):
            act = daemon.dice.choice([each for each in Daemon.DOES if each.__name__ != "forgets"])
            act(daemon)
        daemon.close()
        status = 0
    finally:
        if status:
            traceback.print_exc()
        os._exit(status)


def prepare(folder: Path) -> Path:
    """A vault that is laid out, to be copied for each sitting."""
    vault_in(folder).close()
    return folder
