"""A PostgreSQL server for each file of tests, and a database with the present schema."""

from collections.abc import Iterator

import pytest

from kite_memory.team.postgres import migrate
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def url(server: PostgresServer) -> str:
    url = server.database()
    migrate(url, spaces=[HashingEmbedder().space])
    return url
