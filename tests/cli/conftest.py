"""A fresh machine for each test, with everything in the usual places."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.prepared import remove_home
from tests.e2e.kmem import Machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Under a short path, as homes are: sockets have little room for theirs."""
    folder = Path(tempfile.mkdtemp(prefix="kmem-")).resolve()
    machine = Machine(folder / "ada", usual_places=True)
    try:
        yield machine
    finally:
        remove_home(machine.home)
        folder.rmdir()
