from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recall.house import Services


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Services]:
    house = Services(tmp_path)
    yield house
    house.recall.close()
