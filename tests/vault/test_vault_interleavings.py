"""A person and the daemon at one vault, in any order."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kite_memory.errors import VaultMissing
from kite_memory.vault.vault import Vault
from tests.counts import examples
from tests.vault.building import MEMORY_DISK, contents, drafts, fact, leftovers, vault_in, write

PREPARED = Path(tempfile.mkdtemp(prefix="kmem-test-", dir=MEMORY_DISK))
atexit.register(shutil.rmtree, PREPARED, ignore_errors=True)
THOUGHTS = st.integers(0, 7)
PICKS = st.integers(0, 30)


def identity(thought: int) -> str:
    return drafts(fact(f"Thought {thought}"), name=f"chunk-{thought}")[0].note.id


class OneVault(RuleBasedStateMachine):
    """``kept`` are words that a person has put into a note and not taken out; ``gone`` thoughts that they threw away."""

    def __init__(self) -> None:
        super().__init__()
        if not (PREPARED / "vault").exists():
            vault_in(PREPARED).close()
        self.folder = Path(tempfile.mkdtemp(prefix="kmem-test-", dir=MEMORY_DISK))
        shutil.copytree(PREPARED, self.folder, dirs_exist_ok=True)
        self.vault = vault_in(self.folder, laid_out=False)
        self.kept: set[bytes] = set()
        self.gone: set[str] = set()
        self.copied: dict[str, int] = {}
        self.binned: list[tuple[str, bytes]] = []
        self.turn = 0

    def teardown(self) -> None:
        self.vault.close()
        shutil.rmtree(self.folder)

    @property
    def notes(self) -> list[str]:
        return [
            path
            for path in contents(self.vault.root)
            if path.endswith(".md") and path[0] != "." and path not in ("Home.md", "README.md")
        ]

    def pick(self, number: int) -> Path:
        return self.vault.root / self.notes[number % len(self.notes)]

    def says(self, data: bytes) -> set[bytes]:
        return {line.strip() for line in data.splitlines() if line.strip().startswith(b"By hand ")}

    def ids(self, data: bytes) -> str:
        lines = data.split(b"\n")
        return lines[1].removeprefix(b"id: ").decode() if len(lines) > 1 and lines[1].startswith(b"id: ") else ""

    @rule(thought=THOUGHTS)
    def writes(self, thought: int) -> None:
        said = fact(f"Thought {thought}", entities=["Marcheweg"])
        self._unless_frozen(lambda vault: write(vault, said, name=f"chunk-{thought}", session=f"5e55-{thought:04}"))

    @rule(thought=THOUGHTS, other=st.integers(10, 12))
    def hears_it_again(self, thought: int, other: int) -> None:
        again = fact(f"thought {thought}!", f"Thought {thought}, said anew.", evidence=3)
        self._unless_frozen(lambda vault: write(vault, again, name=f"chunk-{thought}-{other}", first=other))

    @rule()
    def compares(self) -> None:
        if self.vault.scanner.compare().frozen:
            self.vault.scanner.accept_disappearance()

    @rule()
    def starts_again(self) -> None:
        self.vault.close()
        self.vault = vault_in(self.folder, laid_out=False)

    @rule()
    def mends_links(self) -> None:
        self._unless_frozen(lambda vault: vault.scanner.mend_links())

    def _unless_frozen(self, work: Callable[[Vault], object]) -> None:
        try:
            work(self.vault)
        except VaultMissing:
            self.vault.scanner.accept_disappearance()
            work(self.vault)

    @precondition(lambda self: self.notes)
    @rule(number=PICKS)
    def edits(self, number: int) -> None:
        self.turn += 1
        line = f"By hand {self.turn}".encode()
        path = self.pick(number)
        path.write_bytes(path.read_bytes() + b"\n" + line + b"\n")
        self.kept.add(line)

    @precondition(lambda self: self.notes)
    @rule(number=PICKS)
    def rewrites(self, number: int) -> None:
        path = self.pick(number)
        data = path.read_bytes()
        head, _, _ = data.partition(b"\n---\n")
        self.turn += 1
        line = f"By hand {self.turn}".encode()
        path.write_bytes(head + b"\nown: [x,   y]\n---\n\n   " + line + b"\n" if data.startswith(b"---\n") else line)
        self._drop(data)
        self.kept.add(line)

    @precondition(lambda self: self.notes)
    @rule(number=PICKS, name=st.sampled_from(["a", "B", "deep/c"]))
    def renames(self, number: int, name: str) -> None:
        target = self.vault.root / f"{name}.md"
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            self.pick(number).rename(target)

    @precondition(lambda self: self.notes)
    @rule(number=PICKS)
    def deletes(self, number: int) -> None:
        path = self.pick(number)
        data = path.read_bytes()
        path.unlink()
        self.binned.append((path.relative_to(self.vault.root).as_posix(), data))
        self._drop(data)
        id = self.ids(data)
        if self.copied.get(id):
            self.copied[id] -= 1
        elif id:
            self.gone.add(id)

    @precondition(lambda self: self.binned)
    @rule()
    def puts_back(self) -> None:
        self.compares()
        path, data = self.binned.pop()
        target = self.vault.root / path
        if target.exists() or any(self.ids((self.vault.root / note).read_bytes()) == self.ids(data) != "" for note in self.notes):
            return
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
        self.kept |= self.says(data)
        self.gone.discard(self.ids(data))
        self.compares()

    @precondition(lambda self: self.notes)
    @rule(number=PICKS)
    def copies(self, number: int) -> None:
        self.turn += 1
        path = self.pick(number)
        shutil.copy2(path, self.vault.root / f"copy {self.turn}.md")
        id = self.ids(path.read_bytes())
        self.copied[id] = self.copied.get(id, 0) + 1

    @rule()
    def makes_a_note(self) -> None:
        self.turn += 1
        line = f"By hand {self.turn}".encode()
        (self.vault.root / f"own {self.turn}.md").write_bytes(line + b"\n")
        self.kept.add(line)

    def _drop(self, data: bytes) -> None:
        """What a person takes out of one note may still stand in a copy of it."""
        self.kept -= self.says(data) - {line for note in self.notes for line in self.says((self.vault.root / note).read_bytes())}

    @invariant()
    def no_word_of_the_persons_is_lost(self) -> None:
        lines = {line.strip() for data in contents(self.vault.root).values() for line in data.splitlines()}
        assert self.kept <= lines

    @invariant()
    def nothing_that_was_deleted_is_back_and_nothing_is_doubled(self) -> None:
        found = [self.ids((self.vault.root / note).read_bytes()) for note in self.notes]
        for id in filter(None, set(found)):
            assert id not in self.gone
            assert found.count(id) <= 1 + self.copied.get(id, 0)

    @invariant()
    def nothing_is_left_over(self) -> None:
        assert leftovers(self.vault.root) == []


class ManyTimes(OneVault):
    pass


OneVault.TestCase.settings = settings(
    max_examples=examples(40), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)
ManyTimes.TestCase.settings = settings(OneVault.TestCase.settings, max_examples=10_000)
TestInterleavings = OneVault.TestCase
TestTenThousandInterleavings = pytest.mark.timeout(7_200)(pytest.mark.moonshot(ManyTimes.TestCase))
