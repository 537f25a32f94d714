"""A home that is prepared once and restored for each test: reading transcripts takes longer than most commands."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine


@contextmanager
def prepared_home(prepare: Callable[[Machine], None]) -> Iterator[Callable[[], Machine]]:
    """Yield a function that restores the home as ``prepare`` left it. Its path stays the same, since its state names it."""
    folder = Path(tempfile.mkdtemp(prefix="kmem-")).resolve()
    home, saved = folder / "ada", folder / "saved"
    prepare(Machine(home, usual_places=True))
    home.rename(saved)

    def restored() -> Machine:
        remove_home(home)
        shutil.copytree(saved, home, symlinks=True)
        return Machine(home, usual_places=True)

    try:
        yield restored
    finally:
        remove_home(home)
        shutil.rmtree(folder)


def remove_home(home: Path) -> None:
    """Remove the home, and first stop the daemon that runs there."""
    machine = Machine(home, usual_places=True)
    if (machine.state / "daemon.sock").exists():
        in_this_process(machine, ["down"], cwd=home)
    shutil.rmtree(home)
