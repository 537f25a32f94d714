"""The bridge's tools over a team's store, as `kmem serve --store` puts them together."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kite_memory.config import Config, TeamConfig, check
from kite_memory.errors import ConfigInvalid, NoteNotFound, UsageError
from kite_memory.model.note import NoteKind
from kite_memory.team.postgres import Housekeeping, SchemaMissing, migrate, open_postgres
from kite_memory.tools.store import OWNER, Asker, Conflict, Grant, StoreUnavailable
from kite_memory.wiring.team import migrate_store, team_bridge
from tests.contract.bridge_store_contract import CHAT, ORCHARD
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.postgres_server import PostgresServer, eventually

OURS = Asker(grant=OWNER, project="orchard", session="morning", ai="claude")
THEIRS = Asker(grant=Grant(name="harbour", projects=frozenset({"harbour"})), project="harbour", session="noon", ai="codex")
RECORD = {
    "claude_conversation_uuid": CHAT,
    "source": "claude_code",
    "project": "orchard",
    "conversation_type": "single_topic",
    "topic": "keeping deer out",
    "categories": ["garden"],
    "decisions": [{"decision": "Plant hawthorn hedges around the orchard", "reasoning": "deer jump every fence we tried"}],
    "open_questions": ["How tall must hawthorn hedges grow?"],
    "related_entities": ["hawthorn"],
    "summary": "We talked about deer and settled on hawthorn hedges.",
}


def configured(folder: Path, **team: Any) -> Config:
    return Config(
        file=folder / "config.toml", state=folder / "state", vault=folder / "vault", claude_root=folder, team=TeamConfig(**team)
    )


@contextmanager
def tools(config: Config, url: str) -> Iterator[Any]:
    bridge = team_bridge(config, url)
    perform, close = bridge.perform, bridge.close
    try:
        yield perform
    finally:
        close()


@pytest.fixture(scope="module")
def url(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    url = server.database()
    migrate_store(configured(tmp_path_factory.mktemp("migrating")), url)
    return url


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configured(tmp_path, tenant=uuid.uuid4().hex)


def test_memories_are_written_compared_and_read(config: Config, url: str) -> None:
    with tools(config, url) as perform:
        perform("write_memory", {"key": "project.port", "value": {"port": 5432}}, OURS)
        perform("write_memory", {"key": "project.port", "value": {"port": 5433}, "expected_version": 1}, OURS)
        with pytest.raises(Conflict) as result:
            perform("write_memory", {"key": "project.port", "value": 0, "expected_version": 1}, OURS)
        read = perform("read_memory", {"key": "project.*"}, OURS)
        hidden = perform("read_memory", {"key": "*"}, THEIRS)
        resumed = perform("smart_resume", {}, OURS)

    assert result.value.version == 2
    assert [(memory["key"], memory["value"], memory["version"]) for memory in read["memories"]] == [
        ("project.port", {"port": 5433}, 2)
    ]
    assert hidden["memories"] == []
    assert "5433" in str(resumed["context"])


def test_a_conversation_that_one_saves_comes_to_another_as_context(config: Config, url: str) -> None:
    with tools(config, url) as perform:
        saved = perform("save-conversation", RECORD, OURS)
    with tools(config, url) as perform:
        context = perform(
            "get-context", {"query": "what did we decide about deer"}, Asker(grant=OWNER, project="orchard", ai="codex")
        )
        nothing = perform("get-context", {"query": "what did we decide about deer"}, THEIRS)
        found = perform("search_notes", {"query": "hawthorn"}, OURS)
        note = perform("get_note", {"note": found["hits"][0]["id"]}, OURS)
        perform("forget", {"note": found["hits"][0]["id"]}, OURS)
        with pytest.raises(NoteNotFound):
            perform("get_note", {"note": found["hits"][0]["id"]}, OURS)

    assert saved
    assert "hawthorn hedges" in context["text"]
    assert "deer jump every fence" in context["text"]
    assert "hawthorn" not in nothing["text"]
    assert "hawthorn" in note["text"]


def test_a_state_is_handed_over(config: Config, url: str) -> None:
    with tools(config, url) as perform:
        perform("ai_state_save", {"ai_id": "claude", "todos": ["water the seedlings"], "working_notes": "the pump is loud"}, OURS)
        perform("ai_state_transfer", {"ai_id": "claude", "from_session": "morning", "to_session": "evening"}, OURS)
        got = perform("ai_state_get", {"ai_id": "claude", "session_id": "evening"}, OURS)

    assert "water the seedlings" in str(got)


def test_the_store_that_the_configuration_names_is_called_team(config: Config, tmp_path: Path, url: str) -> None:
    with tools(configured(tmp_path, store=url, tenant="named"), "team") as perform:
        perform("write_memory", {"key": "k", "value": 1}, OURS)
        assert perform("read_memory", {"key": "k*"}, OURS)["memories"]


@pytest.mark.parametrize("value", ["team", "mysql://host/db", "localhost", "file:///x"])
def test_what_is_no_store_is_refused(config: Config, value: str) -> None:
    for call in (team_bridge, migrate_store):
        with pytest.raises(UsageError) as refusal:
            call(config, value)

        assert "postgresql://" in refusal.value.hint


def test_a_url_of_another_database_learns_what_it_is(config: Config) -> None:
    with pytest.raises(UsageError, match="PostgreSQL, and 'mysql' is not"):
        team_bridge(config, "mysql://host/db")


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("postgresql://ada:hunter2@127.0.0.1:1/kite", "127.0.0.1:1: Connection refused"),
        ("postgresql://ada:hunter2@no-such-host.invalid/kite", "no-such-host.invalid: "),
    ],
)
def test_who_serves_a_store_that_does_not_answer_learns_which_and_why(config: Config, url: str, where: str) -> None:
    for call in (team_bridge, migrate_store):
        with pytest.raises(StoreUnavailable) as away:
            call(config, url)

        assert f"does not answer, at {where}" in str(away.value)
        assert "hunter2" not in str(away.value)


def test_a_database_that_is_not_set_up_is_reported(config: Config, server: PostgresServer) -> None:
    with pytest.raises(SchemaMissing):
        team_bridge(config, server.database())


def test_a_password_is_taken_from_the_keys(
    config: Config, server: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE with_password LOGIN PASSWORD 'opensesame' IN ROLE kite_app")
    rules = server.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all with_password scram-sha-256\n{before}")
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_reload_conf()")
    theirs = url.replace("postgres@", "with_password@")
    keys = config.file.with_name("keys.toml")
    keys.touch(mode=0o600)

    keys.write_text('team = "wrong"\n')
    assert eventually(lambda: _refused(config, theirs) != "")
    refused = _refused(config, theirs)
    keys.write_text('team = "opensesame"\n')
    with tools(config, theirs) as perform:
        read = perform("read_memory", {"key": "*"}, OURS)
    rules.write_text(before)

    assert "password" in refused
    assert "wrong" not in refused
    assert read["memories"] == []


def _refused(config: Config, url: str) -> str:
    try:
        close = team_bridge(config, url).close
    except StoreUnavailable as error:
        return f"{error} {error.hint}"
    close()
    return ""


def test_housekeeping_gives_vectors_and_sweeps(server: PostgresServer) -> None:
    url = server.database()
    migrate(url)
    old = open_postgres(url, embedder=HashingEmbedder(version="old"))
    old.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)
    new = open_postgres(url, embedder=HashingEmbedder(version="new"))

    keeping = Housekeeping(new)
    caught_up = eventually(lambda: _spaces(url) == {HashingEmbedder(version="new").space.tag})
    keeping.close()
    old.close()
    new.close()

    assert caught_up


def _spaces(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {space for (space,) in connection.execute("SELECT space FROM kite.passage")}


@pytest.mark.parametrize(
    "line",
    [
        'store = "postgresql://ada:hunter2@db/kite"',
        'store = "postgresql://ada@db/kite?password=hunter2"',
        'bridge = "https://ada:hunter2@memory.example.org/mcp"',
        'endpoint = "https://ada:hunter2@objects.example.org"',
    ],
)
def test_a_configuration_that_holds_a_password_is_refused_without_repeating_it(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigInvalid) as refusal:
        check(f"[team]\n{line}\n".encode(), tmp_path / "config.toml")

    assert "hunter2" not in f"{refusal.value}{refusal.value.hint}"
    assert "kmem keys set team" in refusal.value.hint


def test_a_team_is_configured_in_a_section_of_its_own(tmp_path: Path) -> None:
    text = '[team]\nstore = "postgresql://kite@db/kite"\ntenant = "orchardists"\nbucket = "b"\nendpoint = "https://objects.example.org"\n'

    team = check(text.encode(), tmp_path / "config.toml").team

    assert (team.store, team.tenant, team.bucket, team.ask) == ("postgresql://kite@db/kite", "orchardists", "b", "off")


@pytest.mark.parametrize("line", ["store = 7", 'ask = "always"', 'surprise = "x"', 'bridge = "http://[x"'])
def test_a_team_s_settings_are_checked(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigInvalid):
        check(f"[team]\n{line}\n".encode(), tmp_path / "config.toml")
