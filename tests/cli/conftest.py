"""A fresh machine for each test, with everything in the usual places."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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
            machine.kmem("down")
        shutil.rmtree(folder)
