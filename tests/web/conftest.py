"""One memory and one server for all tests of the page that only read."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kite_memory.wiring.services import Services
from tests.fakes.lived_in import lived_in
from tests.web.browsing import Site, served


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with lived_in(tmp_path_factory.mktemp("lived-in"), datetime.now(UTC)) as opened:
        yield opened


@pytest.fixture(scope="session")
def site(services: Services) -> Iterator[Site]:
    with served(services) as link:
        yield Site(link)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Services]:
    """A memory of the test's own, to change."""
    with lived_in(tmp_path, datetime.now(UTC)) as opened:
        yield opened
