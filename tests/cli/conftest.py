"""A fresh machine for each test, with everything in the usual places."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Under a short path, as homes are: sockets have little room for theirs."""
    folder = Path(tempfile.mkdtemp(prefix="kmem-")).resolve()
    machine = Machine(folder / "ada", usual_places=True)
    try:
        yield machine
    finally:
        if (machine.state / "daemon.sock").exists():
            in_this_process(machine, ["down"], cwd=machine.home)
        shutil.rmtree(folder)
