"""Whatever a person and the daemon do to one vault, in whatever order: nothing of the person's is lost, and what they threw
away stays away."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kite_memory.vault.files import Files, Stamp
from tests.vault.building import MEMORY_DISK
from tests.vault.two_hands import Sitting, prepare, sit

ALL = 10_000
IN_A_BATCH = 100


@pytest.fixture(scope="module")
def prepared() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kmem-test-", dir=MEMORY_DISK) as folder:
        yield prepare(Path(folder))


@pytest.mark.parametrize("batch", range(ALL // 100 // IN_A_BATCH))
def test_a_person_and_the_daemon_at_one_vault(prepared: Path, batch: int) -> None:
    wrong = {number: result for number in range(batch * IN_A_BATCH, (batch + 1) * IN_A_BATCH) if (result := sit(prepared, number))}

    assert wrong == {}


@pytest.mark.moonshot
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("batch", range(ALL // 100 // IN_A_BATCH, ALL // IN_A_BATCH))
def test_all_the_others(prepared: Path, batch: int) -> None:
    test_a_person_and_the_daemon_at_one_vault(prepared, batch)


class Careless(Files):
    """Writes over whatever is there by then."""

    def __init__(self, root: Path, *, step: Callable[[str], None]) -> None:
        super().__init__(root, step=step)
        self._tell = step

    def replace(self, path: str, data: bytes, *, expected: str, beforehand: Callable[[], None] | None = None) -> Stamp | None:
        if beforehand is not None:
            beforehand()
        self._tell("swap")
        try:
            (self.root / path).write_bytes(data)
        except OSError:
            return None
        return self.read(path).stamp


def careless(root: Path, step: Callable[[str], None]) -> Files:
    return Careless(root, step=step)


def forgetful(sitting: Sitting) -> None:
    """The daemon loses its ledger, and starts again."""
    sitting.daemon.close()
    for file in (sitting.folder / "state").glob("vault.sqlite*"):
        file.unlink()
    sitting.daemon.restarts()


def test_a_daemon_that_does_not_look_before_it_writes_is_caught(prepared: Path) -> None:
    wrong = (line for number in range(300) for line in sit(prepared, number, files=careless))

    assert any(line.startswith("lost what the person wrote") for line in wrong)


def test_a_daemon_that_forgets_what_was_deleted_is_caught(prepared: Path) -> None:
    wrong = (line for number in range(300) for line in sit(prepared, number, before_the_end=forgetful))

    assert any(line.startswith("deleted, and back") for line in wrong)
