"""What the administrator of a team's server can list, undelete, back up and restore; and what the audit can and cannot lose."""

import gzip
import json
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from kite_memory.errors import UsageError
from kite_memory.model.note import NoteKind, Scope
from kite_memory.team.postgres import AuditEntry, AuditTrail, PostgresStore, migrate, open_postgres
from kite_memory.team.postgres.backup import BackupDamaged
from kite_memory.team.postgres.connections import Connections, settings_of
from kite_memory.tools.declarations import observed
from kite_memory.tools.store import (
    EVERYBODY,
    OWNER,
    Asker,
    Grant,
    JsonValue,
    MemoryPlace,
    MemoryQuery,
    NotAllowed,
    NoteQuery,
    StoreUnavailable,
)
from kite_memory.wiring.team import audit_entry
from tests.contract.bridge_store_contract import CHAT, ORCHARD, conversation, state
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.postgres_server import PostgresServer, eventually

EMBEDDER = HashingEmbedder()
GLOBAL = MemoryPlace(scope=Scope.GLOBAL)
ADA, BEN = Grant(name="ada-laptop", person="ada"), Grant(name="ben-ci", person="ben", write=False)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@contextmanager
def opened(url: str, tenant: str = "", **more: Any) -> Iterator[PostgresStore]:
    store = open_postgres(url, embedder=EMBEDDER, tenant=tenant or uuid.uuid4().hex, **more)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with opened(url) as store:
        yield store


def entry(**changed: Any) -> AuditEntry:
    fields = {
        "at": datetime.now(UTC), "person": "ada", "token": "ada-laptop", "ai": "codex", "project": "orchard",
        "tool": "write_memory", "key": "project.port", "outcome": "ok", "took_ms": 2.0,
    }  # fmt: skip
    return AuditEntry(**{**fields, **changed})


def test_calls_are_found_by_person_tool_key_and_time(store: PostgresStore) -> None:
    now = datetime.now(UTC)
    listed = [
        entry(at=now - timedelta(days=3)),
        entry(at=now - timedelta(hours=2), person="ben", tool="forget", key="N1", outcome="not_allowed"),
        entry(at=now - timedelta(hours=1), key="project.host"),
    ]
    store.audit.record(listed)

    assert store.audit.entries(since=LONG_AGO) == listed[::-1]
    assert store.audit.entries(since=now - timedelta(days=1)) == [listed[2], listed[1]]
    assert store.audit.entries(since=LONG_AGO, person="ben") == [listed[1]]
    assert store.audit.entries(since=LONG_AGO, tool="write_memory", key="project.port") == [listed[0]]
    assert store.audit.entries(since=LONG_AGO, limit=1) == [listed[2]]
    assert [(each.person, each.calls, each.writes, each.refused, each.days) for each in store.audit.usage(since=LONG_AGO)] == [
        ("ada", 2, 2, 0, 2),
        ("ben", 1, 0, 1, 1),
    ]


def test_each_call_of_the_server_is_recorded_by_name_and_without_what_was_said(store: PostgresStore) -> None:
    def perform(tool: str, arguments: dict[str, Any], asker: Asker) -> dict[str, Any]:
        if not asker.grant.write:
            raise NotAllowed("this token may only read")
        return {"id": "N7"} if tool == "remember" else {}

    trail = AuditTrail(store.audit.record, pause=0)
    performed = observed(perform, lambda call: trail.note(audit_entry(call)))
    performed("write_memory", {"key": "project.port", "value": "a secret plan"}, Asker(grant=ADA, project="orchard", ai="codex"))
    performed("remember", {"text": "a secret plan"}, Asker(grant=ADA))
    with pytest.raises(NotAllowed):
        performed("delete_memory", {"key": "project.port"}, Asker(grant=BEN))
    trail.close()

    found = store.audit.entries(since=LONG_AGO)
    assert [(each.person, each.token, each.tool, each.key, each.outcome) for each in found] == [
        ("ben", "ben-ci", "delete_memory", "project.port", "not_allowed"),
        ("ada", "ada-laptop", "remember", "N7", "ok"),
        ("ada", "ada-laptop", "write_memory", "project.port", "ok"),
    ]
    assert "secret plan" not in str(found)


def test_an_entry_says_what_was_acted_on_by_whatever_name_and_holds_no_secret() -> None:
    secret = "ghp_" + "a8Xk2Lq9Zt4Vw7Rb1Nc6Ym3Pd5Hs0Jf8Gu2E"

    def entered(tool: str, result: dict[str, Any], **arguments: Any) -> tuple[str, str, str]:
        noted: list[AuditEntry] = []
        performed = observed(lambda *call: result, lambda call: noted.append(audit_entry(call)))
        performed(tool, arguments, Asker(grant=ADA, project="orchard"))
        return noted[0].tool, noted[0].key, noted[0].project

    assert entered("forget", {"project": "harbour"}, id="N1") == ("forget", "N1", "harbour")
    assert entered("show_notes", {}, ids=["N1", "N2", 3]) == ("show_notes", "N1, N2", "orchard")
    assert entered("delete_memory", {}, key="port", project_path="harbour") == ("delete_memory", "port", "harbour")
    assert entered("ai_state_transfer", {}, from_session="one", to_session="two") == ("ai_state_transfer", "one", "orchard")
    assert entered("write_memory", {"project": ""}, key="port", scope="global") == ("write_memory", "port", "orchard")
    assert entered("save_conversation", {"claude_conversation_uuid": "C1"}, notes=["the plan"], key="the plan")[1] == "C1"
    assert entered("remember", {}, text="the plan", note="the plan")[1] == ""
    assert len(entered("show_notes", {}, notes=["a long title " * 1000] * 100)[1]) == 1000
    assert secret not in str([entered("write_memory", {}, key=f"token {secret}"), entered(f"x {secret}", {}, key="k")])
    assert entered("write_memory", {}, key=f"token {secret}")[1] == "token [redacted:github-token]"


def test_entries_wait_for_a_store_that_does_not_answer() -> None:
    written: list[str] = []
    away = [True]

    def write(entries: Any) -> None:
        if away[0]:
            raise StoreUnavailable("away")
        written.extend(each.key for each in entries)

    trail = AuditTrail(write, pause=0.01)
    for number in range(20):
        trail.note(entry(key=str(number)))
    away[0] = False
    came = eventually(lambda: len(written) == 20)
    trail.close()

    assert came
    assert written == [str(number) for number in range(20)]


def test_what_is_more_than_can_wait_is_counted() -> None:
    written: list[AuditEntry] = []
    away = [True]

    def write(entries: Any) -> None:
        if away[0]:
            raise StoreUnavailable("away")
        written.extend(entries)

    trail = AuditTrail(write, pause=0.01)
    for _ in range(10_300):
        trail.note(entry())
    away[0] = False
    trail.close()

    assert written[-1].outcome == "300 calls not recorded"
    assert len(written) == 10_001


@contextmanager
def as_app(url: str, grant: Grant, tenant: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL ROLE kite_app")
        for name, value in settings_of(grant, tenant, 10).items():
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        yield connection
        connection.rollback()


@pytest.mark.parametrize("change", ["UPDATE kite.audit SET person = 'eve'", "DELETE FROM kite.audit", "TRUNCATE kite.audit"])
def test_the_server_s_own_role_cannot_change_the_audit(url: str, change: str) -> None:
    with opened(url, "kept") as store:
        store.audit.record([entry()])
    with as_app(url, EVERYBODY, "kept") as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute(change.encode())


@pytest.mark.parametrize("grant", [OWNER, ADA], ids=["owner", "ada"])
def test_no_token_sees_the_audit(url: str, grant: Grant) -> None:
    with opened(url, "unseen") as store:
        store.audit.record([entry()])
    with as_app(url, grant, "unseen") as connection:
        assert connection.execute("SELECT * FROM kite.audit").fetchall() == []


def test_another_tenant_s_audit_is_not_there_and_is_not_dropped(url: str) -> None:
    old = datetime.now(UTC) - timedelta(days=400)
    with opened(url, "theirs") as theirs, opened(url, "ours", keep_days=7) as ours:
        theirs.audit.record([entry(at=old)])
        ours.sweep()

        assert ours.audit.entries(since=LONG_AGO) == []
        assert len(theirs.audit.entries(since=LONG_AGO)) == 1


def test_what_is_older_than_the_days_that_are_kept_goes(url: str) -> None:
    tenant = uuid.uuid4().hex
    now = datetime.now(UTC)
    with opened(url, tenant, keep_days=7) as store:
        store.audit.record([entry(at=now - timedelta(days=8), key="old"), entry(at=now - timedelta(days=6), key="new")])
        for key in ("old", "new"):
            store.write_memory(ADA, key, f"{key} words", GLOBAL)
            store.delete_memory(ADA, key, GLOBAL)
        with psycopg.connect(url) as connection:
            connection.execute(
                "UPDATE kite.trash SET at = now() - interval '8 days' WHERE tenant = %s AND note ->> 'key' = 'old'", (tenant,)
            )

        store.sweep()

        assert [each.key for each in store.audit.entries(since=LONG_AGO)] == ["new"]
        assert store.undelete("new", by="admin").name == "new"
        with pytest.raises(UsageError, match="nothing that was deleted"):
            store.undelete("old", by="admin")


def test_even_one_day_is_kept_whatever_the_caller_asks_for(url: str) -> None:
    with opened(url, "one-day") as store:
        store.audit.record([entry(at=datetime.now(UTC) - timedelta(hours=20)), entry(at=datetime.now(UTC) - timedelta(hours=30))])
    with as_app(url, EVERYBODY, "one-day") as connection:
        connection.execute("SELECT kite.drop_audit(0), kite.drop_audit(-5)")

        assert len(connection.execute("SELECT 1 FROM kite.audit").fetchall()) == 1


@pytest.mark.parametrize("minutes", [-10, 0, 10])
def test_a_memory_lasts_as_long_as_was_asked_whatever_the_server_s_clock_says(url: str, minutes: int) -> None:
    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(minutes=minutes)

    with closing(PostgresStore(Connections(url, tenant=uuid.uuid4().hex), embedder=EMBEDDER, clock=clock)) as store:
        written = store.write_memory(ADA, "lock", 1, ORCHARD, expires=clock() + timedelta(minutes=1))

        assert [memory.value for memory in store.memories(ADA, MemoryQuery())] == [1]
        assert written.expires is not None
        assert timedelta(seconds=50) < written.expires - datetime.now(UTC) < timedelta(seconds=70)


def test_a_deleted_memory_comes_back_whole_and_as_a_new_version(store: PostgresStore) -> None:
    store.write_memory(ADA, "port", {"n": 1}, ORCHARD, tags=["net"])
    store.write_memory(ADA, "port", {"n": 2, "odd": "\0\ud800"}, ORCHARD)
    store.delete_memory(ADA, "port", ORCHARD)
    assert store.memories(ADA, MemoryQuery(pattern="port")) == []

    result = store.undelete("port", by="admin")

    assert (result.name, result.place) == ("port", "project of orchard")
    (memory,) = store.memories(ADA, MemoryQuery(pattern="port"))
    assert (memory.value, memory.version, memory.created_by) == ({"n": 2, "odd": "\0\ud800"}, 3, "ada-laptop")
    assert [(each.version, each.by) for each in store.versions(ADA, "port", ORCHARD)] == [
        (3, "admin"),
        (2, "ada-laptop"),
        (1, "ada-laptop"),
    ]
    assert store.write_memory(ADA, "port", 3, ORCHARD, expected=3).version == 4
    with pytest.raises(UsageError, match="nothing that was deleted"):
        store.undelete("port", by="admin")


@pytest.mark.parametrize("first", [9, 10**23], ids=["later", "no number of a version"])
@pytest.mark.parametrize("key", ["weir", 'odd "key" \\ ü'])
def test_its_versions_come_back_whenever_they_were_written(url: str, store: PostgresStore, key: str, first: int) -> None:
    three: JsonValue = {"odd": "\0\ud800", "version": 1, "first_version": first}
    values: tuple[JsonValue, ...] = ("one", "two", three)
    for value in values:
        store.write_memory(ADA, key, value, ORCHARD)
    with psycopg.connect(url) as connection:
        for table, at in (("memory_version", "at"), ("note", "created")):
            connection.execute(f"UPDATE kite.{table} SET {at} = now() - interval '40 days' WHERE key = %s", (key,))
    store.delete_memory(ADA, key, ORCHARD)

    store.sweep()
    store.undelete(key, by="admin")

    assert [each.value for each in store.versions(ADA, key, ORCHARD)] == [three, three, "two", "one"]
    store.delete_memory(ADA, key, ORCHARD)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE kite.trash SET at = now() - interval '31 days'")
        connection.execute("UPDATE kite.memory_version SET at = now() - interval '31 days'")
    store.sweep()
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM kite.memory_version WHERE key = %s AND value::text <> 'null'"
        assert connection.execute(query, (key,)).fetchone() == (0,)


def test_a_deleted_memory_is_found_behind_many_others_that_hold_its_name(url: str, store: PostgresStore) -> None:
    store.write_memory(ADA, "version", "1.2", ORCHARD)
    store.delete_memory(ADA, "version", ORCHARD)
    store.write_memory(ADA, "other", "version", ORCHARD)
    store.delete_memory(ADA, "other", ORCHARD)
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO kite.trash (tenant, id, scope, project, at, note, person)"
            " SELECT tenant, id || number, scope, project, now() + interval '1 second', note, person"
            " FROM kite.trash, generate_series(1, 1001) AS number WHERE note ->> 'key' = 'other'"
        )

    assert store.undelete("version", by="admin").name == "version"


def test_a_forgotten_note_is_found_again_by_its_words(store: PostgresStore) -> None:
    note = store.remember(ADA, "Geese guard the orchard gate", NoteKind.FACT, ORCHARD)
    store.forget(ADA, note.id)
    assert store.search(ADA, NoteQuery(text="geese at the gate")) == []

    store.undelete(note.id, by="admin")

    assert [found.note.id for found in store.search(ADA, NoteQuery(text="geese at the gate"))] == [note.id]


def test_a_global_memory_comes_back_to_its_own_person_alone(store: PostgresStore) -> None:
    for grant in (ADA, Grant(name="ben", person="ben")):
        store.write_memory(grant, "editor", grant.name, GLOBAL)
        store.delete_memory(grant, "editor", GLOBAL)

    with pytest.raises(UsageError, match="global of ada, global of ben"):
        store.undelete("editor", by="admin")
    store.undelete("editor", by="admin", person="ada")

    assert [memory.value for memory in store.memories(ADA, MemoryQuery())] == ["ada-laptop"]
    assert store.memories(Grant(name="ben", person="ben"), MemoryQuery()) == []


def test_what_has_been_written_anew_is_not_overwritten(store: PostgresStore) -> None:
    store.write_memory(ADA, "port", "old", ORCHARD)
    store.delete_memory(ADA, "port", ORCHARD)
    store.write_memory(ADA, "port", "new", ORCHARD)

    with pytest.raises(UsageError, match="another memory"):
        store.undelete("port", by="admin")
    store.delete_memory(ADA, "port", ORCHARD)
    store.undelete("port", by="admin")

    assert [memory.value for memory in store.memories(ADA, MemoryQuery())] == ["new"]


def _filled(store: PostgresStore) -> None:
    store.write_memory(ADA, "editor", {"odd": "\0\ud800 ü\n"}, GLOBAL)
    store.write_memory(ADA, "port", 1, ORCHARD)
    store.write_memory(ADA, "port", 2, ORCHARD)
    store.remember(ADA, "Geese guard the orchard gate", NoteKind.FACT, ORCHARD)
    store.save_conversation(ADA, conversation(transcript="all of it"))
    store.save_state(ADA, state())
    store.write_memory(ADA, "gone", "x", ORCHARD)
    store.delete_memory(ADA, "gone", ORCHARD)
    store.write_memory(ADA, "größe \U0001f986", "x", ORCHARD)
    store.delete_memory(ADA, "größe \U0001f986", ORCHARD)
    store.write_memory(ADA, "nothing", None, ORCHARD)
    store.write_memory(ADA, "erased", None, ORCHARD)
    store.delete_memory(ADA, "erased", ORCHARD)
    store.memories(ADA, MemoryQuery(pattern="port"), touch=True)
    store.audit.record([entry()])


def _holds(store: PostgresStore) -> list[Any]:
    return [
        [(each.key, each.value, each.version, each.access_count) for each in store.memories(ADA, MemoryQuery())],
        [(each.version, each.value) for each in store.versions(ADA, "port", ORCHARD)],
        store.transcript(ADA, CHAT),
        store.states(ADA),
        [found.note.title for found in store.search(ADA, NoteQuery(text="geese at the gate"))],
        store.audit.entries(since=LONG_AGO),
    ]


def test_a_backup_that_is_restored_holds_all_that_there_was(url: str, store: PostgresStore, tmp_path: Path) -> None:
    _filled(store)
    store.write_memory(ADA, "long ago", 1, ORCHARD)
    store.delete_memory(ADA, "long ago", ORCHARD)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE kite.trash SET note = 'null' WHERE note::text LIKE '%long ago%'")  # as the sweep does
    file = tmp_path / "team.kite.gz"
    written = store.back_up(file)

    with opened(url) as other:
        read = other.restore(file)
        while other.catch_up():
            pass

        assert read == written
        assert _holds(other) == _holds(store)
        for key in ("gone", "größe \U0001f986", "erased"):
            assert other.undelete(key, by="admin").name == key
        assert other.write_memory(ADA, "port", 3, ORCHARD, expected=2).version == 3
    assert file.stat().st_mode & 0o077 == 0


def test_the_versions_of_what_was_deleted_outlive_a_restore(url: str, store: PostgresStore, tmp_path: Path) -> None:
    store.write_memory(ADA, "größe", "old", ORCHARD)
    store.write_memory(ADA, "größe", "new", ORCHARD)
    store.delete_memory(ADA, "größe", ORCHARD)
    store.back_up(tmp_path / "team.kite.gz")

    with opened(url) as other:
        other.restore(tmp_path / "team.kite.gz")
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE kite.memory_version SET at = now() - interval '40 days' WHERE key = 'größe'")
        other.sweep()
        other.undelete("größe", by="admin")

        assert [each.value for each in other.versions(ADA, "größe", ORCHARD)] == ["new", "new", "old"]


def test_a_backup_holds_one_tenant_alone_and_overwrites_nothing(url: str, store: PostgresStore, tmp_path: Path) -> None:
    _filled(store)
    with opened(url) as other:
        other.write_memory(ADA, "theirs", "not ours", ORCHARD)
        file = tmp_path / "team.kite.gz"
        store.back_up(file)

        assert b"not ours" not in gzip.decompress(file.read_bytes())
        with pytest.raises(UsageError, match="exists already"):
            store.back_up(file)
        with pytest.raises(UsageError, match="holds something already"):
            other.restore(file)


@pytest.mark.parametrize("damage", ["cut", "line", "end", "nothing", "text", "column"])
def test_a_damaged_backup_restores_nothing(url: str, store: PostgresStore, tmp_path: Path, damage: str) -> None:
    _filled(store)
    file = tmp_path / "team.kite.gz"
    store.back_up(file)
    whole = gzip.decompress(file.read_bytes())
    lines = whole.splitlines(keepends=True)
    damaged = {
        "cut": file.read_bytes()[:-40],
        "line": gzip.compress(b"".join(lines[:2] + lines[3:])),
        "end": gzip.compress(b"".join(lines[:-1])),
        "nothing": b"",
        "text": b"not a backup",
        "column": gzip.compress(whole.replace(b'"title":', b'"tit;le":')),
    }
    file.write_bytes(damaged[damage])

    with opened(url) as other:
        with pytest.raises(BackupDamaged):
            other.restore(file)
        assert other.memories(ADA, MemoryQuery()) == []


def test_a_backup_that_meets_what_is_there_already_is_refused_whole(url: str, store: PostgresStore, tmp_path: Path) -> None:
    store.write_memory(ADA, "port", 1, ORCHARD)
    file = tmp_path / "team.kite.gz"
    store.back_up(file)
    head, *rows, end = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    again = json.loads(end)
    again["end"]["note"] += 1
    note = next(row for row in rows if row.startswith(b'{"table":"note"'))
    twice = [head, *(each for row in rows for each in ([row, row] if row == note else [row])), json.dumps(again).encode()]
    forbidden = [head, *rows, end]
    for lines in (twice, [line.replace(b'"scope":"project"', b'"scope":"bogus"') for line in forbidden]):
        file.write_bytes(gzip.compress(b"".join(lines)))
        with opened(url) as other:
            with pytest.raises(BackupDamaged, match="does not fit"):
                other.restore(file)
            assert other.memories(ADA, MemoryQuery()) == []


def test_a_backup_of_earlier_columns_is_restored_with_their_defaults(url: str, store: PostgresStore, tmp_path: Path) -> None:
    store.write_memory(ADA, "port", 1, ORCHARD)
    file = tmp_path / "team.kite.gz"
    store.back_up(file)
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    for line in lines:
        line.get("row", {}).pop("context", None)
    file.write_bytes(gzip.compress("\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()))

    with opened(url) as other:
        other.restore(file)

        assert [(memory.value, dict(memory.context)) for memory in other.memories(ADA, MemoryQuery())] == [(1, {})]


def test_the_database_s_own_dump_restores_every_tenant(server: PostgresServer, tmp_path: Path) -> None:
    url = server.database()
    migrate(url, spaces=[EMBEDDER.space])
    with opened(url, "one") as one, opened(url, "two") as two:
        _filled(one)
        two.write_memory(ADA, "port", "two's", ORCHARD)
        expected = _holds(one)
    programs = server.programs
    dumped = subprocess.run([programs / "pg_dump", "-Fc", url], check=True, capture_output=True, timeout=60).stdout
    other = server.database()
    subprocess.run(
        [programs / "pg_restore", "--exit-on-error", "-d", other], input=dumped, check=True, capture_output=True, timeout=60
    )

    with opened(other, "one") as one, opened(other, "two") as two:
        assert _holds(one) == expected
        assert [memory.value for memory in two.memories(ADA, MemoryQuery())] == ["two's"]
    with psycopg.connect(other) as connection:
        forced = connection.execute(
            sql.SQL("SELECT bool_and(relforcerowsecurity) FROM pg_class WHERE oid = 'kite.note'::regclass")
        ).fetchone()
    assert forced == (True,)
