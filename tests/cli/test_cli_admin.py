"""`kmem admin` on a team's store: what it prints, in words and as JSON."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kite_memory.model.note import Scope
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.team.postgres import AuditEntry, migrate, open_postgres
from kite_memory.tools.store import Grant, MemoryPlace, MemoryQuery
from tests.cli.test_cli_json import Number, fits
from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine, Ran
from tests.fakes.postgres_server import PostgresServer, postgres_server

ADA = Grant(name="ada-laptop", person="ada")
ORCHARD = MemoryPlace(scope=Scope.PROJECT, project="orchard")
AUDIT = dict.fromkeys(("at", "person", "token", "ai", "project", "tool", "key", "outcome"), str) | {"took_ms": Number}
USAGE = {"person": str, "calls": int, "writes": int, "refused": int, "days": int, "last": str}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def team(machine: Machine, server: PostgresServer) -> Machine:
    """A machine that serves a team, in whose store Ada has written and deleted a memory."""
    url = server.database()
    embedder = LocalEmbedder()
    migrate(url, spaces=[embedder.space])
    machine.environment = {"KMEM_STORE": url}
    store = open_postgres(url, embedder=embedder)
    store.write_memory(ADA, "project.port", 5432, ORCHARD)
    store.delete_memory(ADA, "project.port", ORCHARD)
    store.audit.record(
        [
            AuditEntry(
                at=datetime.now(UTC), person="ada", token="ada-laptop", ai="codex", project="orchard", tool="write_memory",
                key="project.port", outcome="ok", took_ms=2.0,
            ),
            AuditEntry(
                at=datetime.now(UTC), person="", token="", ai="", project="", tool="forget", key="\x1b[2Jgone", outcome="not_found",
                took_ms=1.0,
            ),
        ]
    )  # fmt: skip
    store.close()
    return machine


def admin(machine: Machine, *arguments: str) -> Ran:
    return in_this_process(machine, ["admin", *arguments], cwd=machine.home)


def test_the_audit_says_who_what_and_how_it_ended(team: Machine) -> None:
    said = admin(team, "audit").out.splitlines()
    ada = admin(team, "audit", "--person", "ada", "--since", "1h").out.splitlines()

    assert [line.partition("  ")[2] for line in ada] == ["ada [ada-laptop, codex]  write_memory  project.port"]
    assert len(said) == 2
    assert "the server's owner  forget" in said[0]
    assert "(not_found)" in said[0]
    assert "\x1b" not in said[0]


def test_both_lists_are_json_too(team: Machine) -> None:
    audit, usage = admin(team, "audit", "--json").json(), admin(team, "usage", "--json").json()

    assert fits(audit, [AUDIT]) == []
    assert fits(usage, [USAGE]) == []
    assert [(each["person"], each["writes"], each["refused"]) for each in usage] == [("", 0, 1), ("ada", 1, 0)]
    assert admin(team, "audit", "--person", "nobody", "--json").json() == []


def test_usage_is_a_line_for_each_person(team: Machine) -> None:
    assert "ada  1 calls on 1 days, 1 writes, 0 refused; last " in admin(team, "usage").out


def test_a_memory_is_undeleted_once(team: Machine) -> None:
    back = admin(team, "undelete", "project.port", "--project", "orchard")
    again = admin(team, "undelete", "project.port")

    assert back.code == 0
    assert "project.port is back (project of orchard)" in back.err
    assert again.code == 2
    assert "nothing that was deleted is called 'project.port'" in again.err
    assert "kept for 30 days" in again.err


def test_a_backup_is_restored_into_another_tenant(team: Machine) -> None:
    admin(team, "undelete", "project.port")
    written = admin(team, "backup", "team.kite.gz")
    full = admin(team, "restore", "team.kite.gz")
    team.config.parent.mkdir(parents=True, exist_ok=True)
    team.config.write_text('[team]\ntenant = "another"\n')
    read = admin(team, "restore", "team.kite.gz")

    assert "team.kite.gz holds 1 notes and memories, 0 conversations, 0 AI states, 2 lines of the audit" in written.err
    assert full.code == 2
    assert "holds something already" in full.err
    assert read.code == 0, read.err
    store = open_postgres(team.environment["KMEM_STORE"], embedder=LocalEmbedder(), tenant="another")
    assert [memory.value for memory in store.memories(ADA, MemoryQuery())] == [5432]
    store.close()


@pytest.mark.parametrize("command", ["audit", "usage", "undelete x", "backup x", "restore x"])
def test_without_a_team_s_store_the_reason_is_said(machine: Machine, command: str) -> None:
    ran = admin(machine, *command.split())

    assert ran.code == 2
    assert "a team's store is named by a URL" in ran.err
    assert not Path(machine.home / "x").exists()
