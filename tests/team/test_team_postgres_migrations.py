"""From nothing, and from each earlier schema, to the one that this version works with."""

import threading
from pathlib import Path

import psycopg
import pytest

from kite_memory.distill.saving import SaveChecker
from kite_memory.errors import StateNewer, UsageError
from kite_memory.model.note import Scope
from kite_memory.team.postgres import PostgresStore, SchemaMissing, migrate, open_postgres
from kite_memory.team.postgres.connections import Connections
from kite_memory.team.postgres.migrating import PERSONS_SINCE, VERSION, index_name
from kite_memory.text.display import age
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.note_tools import all_tools
from kite_memory.tools.store import OWNER, Grant, MemoryPlace, MemoryQuery, NoteQuery, StoreUnavailable
from kite_memory.wiring.models import OfflineRules
from tests.contract.bridge_store_contract import CHAT, ORCHARD
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.postgres_server import PostgresServer, eventually
from tests.mcp_server.serving import serving

EMBEDDER = HashingEmbedder()
RUNS_SINCE = 6
"""The oldest schema that this version's queries run on, as long as no one asks for the audit."""

ROWS_OF_THE_FIRST = """
INSERT INTO kite.note (tenant, id, path, kind, title, body, scope, project, session, tags, status, more, created, updated,
                       created_by, conversation, key, value, version, first_version)
VALUES ('team', 'N1', 'projects/pond-n1.md', 'fact', 'project.pond', 'bottomless', 'project', 'orchard', '', '{water}', 'accepted',
        '{"links":[],"aliases":[],"triggers":[],"entities":[],"supersedes":[],"evidence":[],"valid_from":null,"superseded_by":"",
          "origin":"assistant","importance":2}',
        '2026-03-02 09:00+00', '2026-03-02 09:00+00', 'claude', '', 'project.pond', '"bottomless"', 2, 1);
INSERT INTO kite.memory_version (tenant, key, scope, project, session, version, at, author, value)
VALUES ('team', 'project.pond', 'project', 'orchard', '', 1, '2026-03-01 09:00+00', 'codex', '"shallow"'),
       ('team', 'project.pond', 'project', 'orchard', '', 2, '2026-03-02 09:00+00', 'claude', '"bottomless"');
INSERT INTO kite.conversation (tenant, uuid, scope, project, source, record, overall, created, updated, created_by, transcript)
VALUES ('team', '5f0c9a52-6d7e-4c1b-9a3e-0b6f2d1c8e47', 'project', 'orchard', 'claude_code',
        '{"topics":[],"cross_topic_insights":[]}',
        '"About deer."', '2026-03-02 09:00+00', '2026-03-02 09:00+00', 'claude', 'all of it');
INSERT INTO kite.state (tenant, ai, session, project, saved, body)
VALUES ('team', 'claude', 'morning', 'orchard', '2026-03-02 09:00+00',
        '{"todos":[["water","pending"]],"working_notes":"","context_summary":"","transferred_from":"","transferred_at":null}');
"""
"""As version 1 of the schema would hold them; what later versions add has no rows yet."""


@pytest.fixture
def url(server: PostgresServer) -> str:
    return server.database()


def test_nothing_becomes_the_newest(url: str) -> None:
    before = migrate(url, spaces=[EMBEDDER.space])
    again = migrate(url, spaces=[EMBEDDER.space])

    assert (before, again) == (0, VERSION)
    open_postgres(url, embedder=EMBEDDER).close()


def test_what_was_deleted_keeps_its_person_whatever_it_held(url: str) -> None:
    migrate(url, to=PERSONS_SINCE - 1)
    held = {
        "nul": r'{"body":"\"created_by\":\"eve\"","created_by":"ada","key":"k","value":{"odd":"\u0000","created_by":"eve"}}',
        "quoted": r'{"created_by":"a\"d\\a","key":"k"}',
        "nobody": '{"key":"k"}',
        "erased": "null",
    }
    with psycopg.connect(url) as connection:
        for id, note in held.items():
            connection.execute(
                "INSERT INTO kite.trash (tenant, id, scope, project, at, note) VALUES ('team', %s, 'global', '', now(), %s)",
                (id, note),
            )

    migrate(url, spaces=[EMBEDDER.space])

    with psycopg.connect(url) as connection:
        found: dict[str, str] = dict(connection.execute("SELECT id, person FROM kite.trash").fetchall())
    assert found == {"nul": "ada", "quoted": 'a"d\\a', "nobody": "", "erased": ""}


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_what_an_earlier_schema_holds_is_there_in_the_newest(url: str, version: int) -> None:
    migrate(url, to=version)
    with psycopg.connect(url) as connection:
        connection.execute(ROWS_OF_THE_FIRST)

    before = migrate(url, spaces=[EMBEDDER.space])
    store = open_postgres(url, embedder=EMBEDDER)
    caught_up = store.catch_up()

    assert before == version
    assert caught_up == 1
    (memory,) = store.memories(OWNER, MemoryQuery())
    assert (memory.value, memory.version, memory.tags, memory.created_by) == ("bottomless", 2, ("water",), "claude")
    assert [each.value for each in store.versions(OWNER, "project.pond", ORCHARD)] == ["bottomless", "shallow"]
    assert [found.note.id for found in store.search(OWNER, NoteQuery(text="bottomless pond"))] == ["N1"]
    assert store.transcript(OWNER, CHAT) == "all of it"
    assert [state.session for state in store.states(OWNER)] == ["morning"]
    assert store.write_memory(OWNER, "project.pond", "drained", ORCHARD, expected=2).version == 3
    store.close()


def test_what_was_global_for_all_becomes_theirs_who_wrote_it_and_that_is_said(url: str) -> None:
    migrate(url, to=PERSONS_SINCE - 1)
    with psycopg.connect(url) as connection:
        connection.execute(ROWS_OF_THE_FIRST.replace("'project', 'orchard', ''", "'global', '', ''"))
    said: list[str] = []

    migrate(url, spaces=[EMBEDDER.space], tell=said.append)

    assert said == ["1 global notes and memories of 'team' now belong to 'claude', who wrote them"]
    store = open_postgres(url, embedder=EMBEDDER)
    claude, other = Grant(name="laptop", person="claude"), Grant(name="codex", person="codex")
    store.catch_up()
    assert [memory.value for memory in store.memories(claude, MemoryQuery())] == ["bottomless"]
    assert [each.value for each in store.versions(claude, "project.pond", MemoryPlace(scope=Scope.GLOBAL))] == [
        "bottomless",
        "shallow",
    ]
    assert [found.note.id for found in store.search(claude, NoteQuery(text="bottomless pond"))] == ["N1"]
    for no_one in (other, OWNER):
        assert store.memories(no_one, MemoryQuery()) == []
        assert store.search(no_one, NoteQuery(text="bottomless pond")) == []
    store.close()


def test_many_at_once_are_as_one(url: str) -> None:
    found: list[int | BaseException] = []

    def run() -> None:
        try:
            found.append(migrate(url, spaces=[EMBEDDER.space]))
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: the test looks at it
            found.append(error)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(str, found)) == ["0", *[str(VERSION)] * 5]


def test_a_step_that_fails_leaves_the_schema_where_it_was(url: str) -> None:
    migrate(url, to=1)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kite.passage (in_the_way text)")
    with pytest.raises(psycopg.errors.DuplicateTable):
        migrate(url)
    with psycopg.connect(url) as connection:
        there = connection.execute("SELECT to_regclass('kite.words'), max(version) FROM kite.migration").fetchone()
        connection.execute("DROP TABLE kite.passage")

    before = migrate(url)

    assert there == (None, 1)
    assert before == 1


def test_an_index_that_was_broken_off_is_built_again(url: str) -> None:
    migrate(url, spaces=[EMBEDDER.space])
    name = index_name(EMBEDDER.space)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", (f'kite."{name}"',))

    migrate(url, spaces=[EMBEDDER.space])

    with psycopg.connect(url) as connection:
        valid = connection.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f'kite."{name}"',))
        assert valid.fetchall() == [(True,)]


def test_a_database_without_our_tables_is_reported(url: str) -> None:
    with pytest.raises(SchemaMissing) as result:
        open_postgres(url, embedder=EMBEDDER)

    assert "--migrate" in result.value.hint


def test_a_database_of_an_earlier_version_is_reported(url: str) -> None:
    migrate(url, to=1)

    with pytest.raises(SchemaMissing, match=f"is of version 1, this kmem needs {VERSION}"):
        open_postgres(url, embedder=EMBEDDER)


def test_a_database_of_a_later_version_is_left_alone(url: str) -> None:
    migrate(url)
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO kite.migration (version, at) VALUES (99, now())")

    for call in (lambda: open_postgres(url, embedder=EMBEDDER), lambda: migrate(url)):
        with pytest.raises(StateNewer):
            call()


def test_no_one_there_is_reported_without_the_address(tmp_path: Path) -> None:
    url = f"postgresql://someone:hunter2@/{'x' * 8}?host={tmp_path}"

    for call in (lambda: open_postgres(url, embedder=EMBEDDER), lambda: migrate(url)):
        with pytest.raises(StoreUnavailable) as result:
            call()

        assert "hunter2" not in f"{result.value} {result.value.hint}"
        assert str(tmp_path) not in f"{result.value} {result.value.hint}"


@pytest.mark.parametrize("url", ["postgresql://a:hunter2@b/c?nonsense=hunter2", "nonsense hunter2", "postgresql://[hunter2/"])
def test_what_is_no_url_is_reported_without_repeating_it(url: str) -> None:
    for call in (lambda: open_postgres(url, embedder=EMBEDDER), lambda: migrate(url)):
        with pytest.raises(UsageError) as result:
            call()

        assert "hunter2" not in f"{result.value} {result.value.hint}"


@pytest.mark.parametrize("version", [RUNS_SINCE])
def test_the_schema_is_upgraded_while_a_server_answers(url: str, tmp_path: Path, version: int) -> None:
    """The server is one that was started before, so it has not looked at the version since."""
    migrate(url, to=version, spaces=[EMBEDDER.space])
    store = PostgresStore(Connections(url, tenant="team", most=8), embedder=EMBEDDER)
    tools = all_tools(store, LocalContext(), saving=SaveChecker(rules=OfflineRules()), age=age)
    failed: list[object] = []
    counts: dict[int, int] = {}
    stop = threading.Event()
    going = threading.Barrier(5)

    with serving(tmp_path, ToolDispatcher(tools).perform, private=False, names=("127.0.0.1",), team=True) as served:
        token, _ = served.tokens.create("ada")

        def client(number: int) -> None:
            going.wait(30)
            key = f"counter.{number}"
            while not stop.is_set():
                answers = [
                    served.call(token, "write_memory", key=key, value=counts.get(number, 0) + 1, scope="shared"),
                    served.call(token, "read_memory", key=key),
                    served.call(token, "search_notes", query="counter"),
                ]
                if wrong := [answer for answer in answers if answer.get("result", {}).get("isError", True)]:
                    failed.extend(wrong)
                    return
                counts[number] = counts.get(number, 0) + 1

        threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        going.wait(30)
        assert eventually(lambda: len(counts) == 4 or bool(failed))
        before = dict(counts)
        assert migrate(url, spaces=[EMBEDDER.space]) == version
        assert eventually(lambda: bool(failed) or all(counts[number] > before[number] + 1 for number in before))
        stop.set()
        for thread in threads:
            thread.join(30)
    newer = open_postgres(url, embedder=EMBEDDER)  # as the server of the next version, beside the old one

    assert failed == []
    assert {memory.key: memory.value for memory in newer.memories(OWNER, MemoryQuery())} == {
        f"counter.{number}": count for number, count in counts.items()
    }
    newer.close()
    store.close()
