"""Folders in memory where the system has such, and a vault for each test: both spare the disk a thousand waits."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.vault.vault import Vault
from tests.vault.building import MEMORY_DISK, vault_in


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="kmem-test-", dir=MEMORY_DISK))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("laid-out")
    vault_in(folder).close()
    return folder


@pytest.fixture
def vault(tmp_path: Path, laid_out: Path) -> Iterator[Vault]:
    shutil.copytree(laid_out, tmp_path, dirs_exist_ok=True)
    with vault_in(tmp_path, laid_out=False) as opened:
        yield opened
