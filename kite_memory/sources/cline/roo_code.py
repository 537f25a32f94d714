"""Roo Code's tasks."""

from collections.abc import Iterable
from pathlib import Path

from kite_memory.sources.cline.tasks import VscodeTasks

PROVIDER = "roo-code"
EXTENSION = "rooveterinaryinc.roo-cline"


class RooCode(VscodeTasks):
    """``storages`` are the folders named `EXTENSION` that editors keep."""

    def __init__(self, storages: Iterable[Path], *, own_state: Path) -> None:
        super().__init__(PROVIDER, storages, own_state=own_state)
