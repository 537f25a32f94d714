"""What the database itself keeps apart, whatever our own code asks it for."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from kite_memory.model.note import NoteKind, Scope
from kite_memory.team.postgres import NotPermitted, migrate, open_postgres
from kite_memory.team.postgres.connections import settings_of
from kite_memory.team.postgres.migrating import GUARDED
from kite_memory.tools.store import OWNER, Grant, MemoryQuery
from tests.contract.bridge_store_contract import GRANTS, ORCHARD, PLACES, conversation, state
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.postgres_server import PostgresServer

EMBEDDER = HashingEmbedder()
FINDING = ("words", "passage")


@pytest.fixture(scope="module")
def url(server: PostgresServer) -> str:
    """A database of two tenants that have the same things in all places."""
    url = server.database()
    migrate(url, spaces=[EMBEDDER.space])
    for tenant in ("ours", "theirs"):
        store = open_postgres(url, embedder=EMBEDDER, tenant=tenant)
        for place in PLACES:
            store.write_memory(OWNER, "quince", tenant, place)
            store.remember(OWNER, f"medlars of {tenant}", NoteKind.FACT, place)
        saved = store.save_conversation(OWNER, conversation(transcript="all of it"))
        store.forget(OWNER, saved.notes[0])
        store.save_state(OWNER, state())
        store.memories(OWNER, MemoryQuery(), touch=True)
        store.close()
    return url


@contextmanager
def as_app(url: str, grant: Grant | None, tenant: str = "ours") -> Iterator[psycopg.Connection[Any]]:
    """One transaction as the role that the store works under. Without a grant: nothing set."""
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL ROLE kite_app")
        for name, value in settings_of(grant, tenant, 10).items() if grant else ():
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        yield connection
        connection.rollback()


def rows(connection: psycopg.Connection[Any], table: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql.SQL("SELECT * FROM kite.{}").format(sql.Identifier(table))).fetchall()


@pytest.mark.parametrize("table", GUARDED)
def test_there_is_something_in_every_table_to_be_hidden(url: str, table: str) -> None:
    with psycopg.connect(url) as connection:  # as the superuser, whom no policy binds
        assert len(rows(connection, table)) >= 2


@pytest.mark.parametrize("table", GUARDED)
def test_without_settings_nothing_is_seen(url: str, table: str) -> None:
    with as_app(url, None) as connection:
        assert rows(connection, table) == []


@pytest.mark.parametrize("table", FINDING)
def test_what_finds_notes_cannot_be_read_at_all(url: str, table: str) -> None:
    with as_app(url, OWNER) as connection, pytest.raises(errors.InsufficientPrivilege):
        rows(connection, table)


def test_without_settings_nothing_is_found(url: str) -> None:
    with as_app(url, None) as connection:
        found = connection.execute(
            "SELECT * FROM kite.find('', '', 64, ARRAY['''quince'''], ARRAY['''quince'':A'], ARRAY[1]::real[], '', '{}',"
            " NULL, true, true, 100)"
        ).fetchall()
        about = connection.execute("SELECT * FROM kite.about(ARRAY['''quince'''], '', '{}', NULL, 1000)").fetchone()

    assert found == []
    assert about == (0, [], [])


@pytest.mark.parametrize("table", GUARDED)
def test_another_tenant_is_not_there(url: str, table: str) -> None:
    with as_app(url, OWNER, "ours") as connection:
        seen = {row[0] for row in rows(connection, table)}

    assert seen == {"ours"}


@pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.name or "owner")
def test_the_policy_is_the_grant(url: str, grant: Grant) -> None:
    with as_app(url, grant) as connection:
        seen = set(connection.execute("SELECT scope, project, session FROM kite.note WHERE conversation = ''").fetchall())
        found = connection.execute(
            "SELECT id FROM kite.find('', '', 64, ARRAY['''medlars''', '''quince'''], ARRAY['''medlars'':A', '''quince'':A'],"
            " ARRAY[1, 1]::real[], '', '{}', NULL, true, true, 100)"
        ).fetchall()
        about = connection.execute("SELECT notes FROM kite.about('{}', '', '{}', NULL, 1000)").fetchone()

    visible = {(place.scope.value, place.project, place.session) for place in PLACES if grant.sees(place.scope, place.project)}
    journals = int(grant.sees(Scope.PROJECT, "orchard"))
    assert seen == visible
    assert len(found) == 2 * len(visible)
    assert about == (2 * len(visible) + journals,)


@pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.name or "owner")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place.scope} {place.project}")
def test_the_policy_holds_for_writing(url: str, grant: Grant, place: Any) -> None:
    with as_app(url, grant) as connection:
        state_written = "INSERT INTO kite.trash (tenant, id, scope, project, at, note) VALUES ('ours', %s, %s, %s, now(), '{}')"
        values = (uuid.uuid4().hex, place.scope, place.project)
        if grant.write and grant.sees(place.scope, place.project):
            connection.execute(state_written, values)
        else:
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(state_written, values)


def test_no_one_writes_for_another_tenant(url: str) -> None:
    with as_app(url, OWNER) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute(
            "INSERT INTO kite.trash (tenant, id, scope, project, at, note) VALUES ('theirs', 'x', 'global', '', now(), '{}')"
        )


@pytest.mark.parametrize("change", ["DELETE FROM kite.note", "UPDATE kite.note SET title = 'x'", "DELETE FROM kite.words"])
def test_who_may_only_read_changes_no_row(url: str, change: str) -> None:
    with as_app(url, Grant(name="reader", write=False)) as connection:
        assert connection.execute(change.encode()).rowcount == 0


def test_a_row_is_not_moved_out_of_sight(url: str) -> None:
    with as_app(url, Grant(name="o", projects=frozenset({"orchard"}))) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("UPDATE kite.note SET project = 'harbour' WHERE project = 'orchard'")


def test_settings_end_with_their_transaction(url: str) -> None:
    store = open_postgres(url, embedder=EMBEDDER, tenant="ours", connections=1)

    everything = store.memories(OWNER, MemoryQuery())
    nothing = store.memories(Grant(name="n", scopes=frozenset()), MemoryQuery())
    store.close()

    assert len(everything) == len(PLACES)
    assert nothing == []


@pytest.mark.parametrize("name", ["{}", "orchard'--", '{"orchard"}', "orchard,harbour", "orchard\0", "[]", "\\", '"', "ö\ud800"])
def test_a_project_s_name_is_never_taken_for_more_than_one(url: str, name: str) -> None:
    store = open_postgres(url, embedder=EMBEDDER, tenant="ours")

    seen = store.memories(Grant(name="g", projects=frozenset({name}), scopes=frozenset({Scope.PROJECT})), MemoryQuery())
    store.close()

    assert seen == []


def test_the_role_is_bound_by_policies_and_owns_nothing(url: str) -> None:
    with psycopg.connect(url) as connection:
        role = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcanlogin, rolcreaterole FROM pg_roles WHERE rolname = 'kite_app'"
        ).fetchone()
        owned = connection.execute("SELECT relname FROM pg_class WHERE relowner = 'kite_app'::regrole").fetchall()
        forced = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'kite'::regnamespace AND relrowsecurity AND relforcerowsecurity"
        ).fetchall()

    assert role == (False, False, False, False)
    assert owned == []
    assert {name for (name,) in forced} == set(GUARDED)


def test_the_owner_of_the_tables_is_bound_as_well(server: PostgresServer) -> None:
    url = server.database()
    name = f"owner_{uuid.uuid4().hex[:8]}"
    database = url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE").format(sql.Identifier(name)))
        connection.execute(sql.SQL("GRANT kite_app TO {} WITH ADMIN OPTION").format(sql.Identifier(name)))
        connection.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(sql.Identifier(database), sql.Identifier(name)))
    theirs = url.replace("postgres@", f"{name}@")

    migrate(theirs, spaces=[EMBEDDER.space])
    store = open_postgres(theirs, embedder=EMBEDDER)
    store.write_memory(OWNER, "k", 1, ORCHARD)
    seen = store.memories(OWNER, MemoryQuery())
    store.close()
    with psycopg.connect(theirs) as connection:
        bare = rows(connection, "note")

    assert len(seen) == 1
    assert bare == []


def test_a_user_with_no_other_right_than_the_role_serves(server: PostgresServer, url: str) -> None:
    name = f"bridge_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT IN ROLE kite_app").format(sql.Identifier(name)))
    store = open_postgres(url.replace("postgres@", f"{name}@"), embedder=EMBEDDER, tenant=uuid.uuid4().hex)

    store.write_memory(OWNER, "k", {"v": 1}, ORCHARD)
    found = store.memories(OWNER, MemoryQuery())
    store.close()

    assert json.dumps(found[0].value) == '{"v": 1}'


def test_a_user_who_may_not_act_as_the_role_is_reported(url: str) -> None:
    name = f"stranger_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))

    with pytest.raises(NotPermitted) as result:
        open_postgres(url.replace("postgres@", f"{name}@"), embedder=EMBEDDER)

    assert "GRANT kite_app" in result.value.hint
