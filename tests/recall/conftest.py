from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recall.services import Services


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    services = Services(tmp_path)
    yield services
    services.recall.close()
