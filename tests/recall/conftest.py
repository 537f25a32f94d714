from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recall.house import House


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.recall.close()
