"""A person's search asks the team's bridge as well: over HTTP, in time or not at all."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kite_memory.cli.memory import team_search
from kite_memory.config import Config, TeamConfig
from kite_memory.errors import UsageError
from kite_memory.model.note import NoteKind, Origin, RecordItem
from kite_memory.redaction import redact
from kite_memory.team.search import Asking, Team, TeamConnection, ranked, together
from kite_memory.tools import note_tools
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.store import OWNER
from tests.cli.transcript import in_this_process
from tests.contract.bridge_store_contract import HARBOUR, ORCHARD
from tests.e2e.kmem import Machine
from tests.fakes.memory_store import MemoryStore
from tests.mcp_server.serving import Served, serving

GEESE = redact("geese")
A_LONG_TIME = 30.0
NO_TIME = 0.0


class Open:
    def item(self, item: RecordItem, evidence: object, /) -> str:
        return ""

    def text(self, text: str, /) -> str:
        return ""

    def says_nothing(self, text: str, /) -> str:
        return ""

    def origin_of(self, item: RecordItem, heard: object, provenance: object, /) -> Origin:
        return item.origin


@contextmanager
def team_at(state: Path) -> Iterator[tuple[Served, Team, MemoryStore]]:
    store = MemoryStore()
    tools = note_tools.tools(store, LocalContext(), gate=Open(), age=lambda text, now: None, clock=lambda: datetime.now(UTC))
    with serving(state, ToolDispatcher(tools).perform) as served:
        token, _ = served.tokens.create("colleague", write=False, projects=["orchard"])
        yield served, Team(address=served.url, token=token), store


@contextmanager
def somebody_who_answers(answer: bytes) -> Iterator[Team]:
    """Whatever is asked; with nothing to say, not at all."""
    listening = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def run() -> None:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.recv(65_536)
            if answer:
                connection.sendall(answer)
            else:
                done.wait(A_LONG_TIME)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield Team(address=f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", token="token")
    finally:
        done.set()
        listening.close()


def http(body: object, status: str = "200 OK") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(content), content)


def response_with(*hits: object) -> bytes:
    return http({"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"hits": hits}}})


def test_the_team_s_notes_come_with_the_search(tmp_path: Path) -> None:
    with team_at(tmp_path) as (_, team, store):
        note = store.remember(OWNER, "Geese guard the gate", NoteKind.DECISION, ORCHARD)
        store.remember(OWNER, "Geese swim in the harbour", NoteKind.FACT, HARBOUR)

        hits = Asking(team, GEESE, seconds=A_LONG_TIME).hits()

    assert [(hit["id"], hit["title"], hit["kind"], hit["team"]) for hit in hits] == [(note.id, note.title, "decision", True)]


def test_a_kind_is_kept_to(tmp_path: Path) -> None:
    with team_at(tmp_path) as (_, team, store):
        store.remember(OWNER, "Geese guard the gate", NoteKind.DECISION, ORCHARD)

        hits = Asking(team, GEESE, kinds=["fact"], seconds=A_LONG_TIME).hits()

    assert hits == []


def test_without_a_token_that_counts_there_is_nothing(tmp_path: Path) -> None:
    with team_at(tmp_path) as (served, _, store):
        store.remember(OWNER, "Geese guard the gate", NoteKind.DECISION, ORCHARD)

        hits = Asking(Team(address=served.url, token="nobody's"), GEESE, seconds=A_LONG_TIME).hits()

    assert hits == []


def test_no_one_is_waited_for() -> None:
    with somebody_who_answers(b"") as team:
        assert Asking(team, GEESE, seconds=NO_TIME).hits() == []


def test_no_one_there_is_nothing() -> None:
    assert Asking(Team(address="http://127.0.0.1:9/mcp", token="t"), GEESE, seconds=A_LONG_TIME).hits() == []


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense",
        http(b"[" * 100_000),
        http({"result": []}),
        http({"error": {"code": 1, "message": "no"}}),
        response_with("hit", None, 7, []),
        response_with({"id": "x"}, {"id": "x", "score": "high"}, {"id": "x", "score": 7}, {"id": "x", "score": -1}),
        http({"result": {"structuredContent": {"hits": [{"id": "x", "score": 1}]}}}, "500 No"),
        http(b"", "301 Moved"),
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    ],
)
def test_what_is_no_answer_is_nothing(answer: bytes) -> None:
    with somebody_who_answers(answer) as team:
        assert Asking(team, GEESE, seconds=A_LONG_TIME).hits() == []


def test_what_comes_is_somebody_else_s_text() -> None:
    with somebody_who_answers(
        response_with({"id": "x" * 999, "score": 0.5, "title": "a\x1b[31mb\nc\u202e", "path": 7, "extra": "y"})
    ) as team:
        (hit,) = Asking(team, GEESE, seconds=A_LONG_TIME).hits()

    assert len(hit["id"]) <= 80
    assert "\x1b" not in hit["title"]
    assert "\n" not in hit["title"]
    assert "\u202e" not in hit["title"]
    assert hit["path"] == ""
    assert "extra" not in hit


@pytest.mark.parametrize("address", ["http://memory.example.org/mcp", "ftp://127.0.0.1/mcp", "memory", "", "https://"])
def test_a_token_is_not_sent_where_others_can_read_it(address: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Team(address=address, token="hunter2")

    assert "hunter2" not in f"{refusal.value}{refusal.value.hint}"


@pytest.mark.parametrize(
    "address",
    [
        "https://m.example.org:abc/mcp",
        "https://m.example.org:99999/mcp",
        "https://m.example.org:0/mcp",
        "https://[::1/mcp",
        "https://a b/mcp",
    ],
)
def test_what_cannot_be_asked_is_said_before_anybody_asks(address: str) -> None:
    with pytest.raises(UsageError, match="invalid team address"):
        Team(address=address, token="t")


@pytest.mark.parametrize(
    ("address", "at"), [("http://[::1]/mcp", ("::1", 80)), ("https://[2001:db8::1]/mcp", ("2001:db8::1", 443))]
)
def test_an_address_of_six_needs_no_port(address: str, at: tuple[str, int]) -> None:
    line = TeamConnection(Team(address=address, token="t"), seconds=1)

    assert (line._connection.host, line._connection.port) == at


def test_a_team_does_not_show_its_token() -> None:
    assert "hunter2" not in repr(Team(address="https://memory.example.org/mcp", token="hunter2"))


def test_the_best_of_both_come_first_and_nothing_twice() -> None:
    ours = [{"id": "a", "score": 0.9}, {"id": "b", "score": 0.3}]
    theirs = [{"id": "c", "score": 0.6, "team": True}, {"id": "b", "score": 0.8, "team": True}]

    assert together(ours, theirs, 10) == [
        {"id": "a", "score": 0.9},
        {"id": "c", "score": 0.6, "team": True},
        {"id": "b", "score": 0.3},
    ]
    assert [hit["id"] for hit in together(ours, theirs, 2)] == ["a", "c"]


def test_every_rank_is_given_once_and_ours_keep_their_order() -> None:
    hits = [
        {"id": "t", "score": 0.9},
        {"id": "a", "score": 0.7, "rank": 2},
        {"id": "u", "score": 0.5},
        {"id": "b", "score": 0.3, "rank": 3},
    ]
    events = [{"id": "e", "rank": 1}, {"id": "f", "rank": 4}]

    ranked([*hits, {"id": "v", "score": 0.1}, {"id": "w", "score": 0.1}], events)

    assert {each["id"]: each["rank"] for each in [*hits, *events]} == {"e": 1, "t": 2, "a": 3, "u": 4, "b": 5, "f": 6}


def test_a_hit_of_the_team_is_opened_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with team_at(tmp_path / "server") as (_, team, store):
        note = store.remember(OWNER, "Geese guard the gate", NoteKind.DECISION, ORCHARD)
        machine = Machine(tmp_path / "ada", environment={"KMEM_TEAM_TOKEN": team.token}, usual_places=True)
        machine.configure(f'[team]\nbridge = "{team.address}"\nask = "search"\n')

        opened = [
            in_this_process(machine, ["show", note.id, *how], cwd=machine.home) for how in ([], ["--json"], ["--tokens", "0"])
        ]
        unknown = in_this_process(machine, ["show", note.id[:-1] + "0"], cwd=machine.home)

    assert [(each.code, "Geese guard the gate" in each.out) for each in opened] == [(0, True)] * 3, opened[0].err
    assert unknown.code == 1


@pytest.mark.parametrize("mode", ["keyword", "semantic"])
def test_the_team_is_not_asked_in_a_mode_in_which_it_does_not_search(tmp_path: Path, mode: str) -> None:
    with somebody_who_answers(response_with({"id": "x", "score": 0.5, "title": "Geese guard the gate"})) as team:
        machine = Machine(tmp_path / "ada", environment={"KMEM_TEAM_TOKEN": team.token}, usual_places=True)
        machine.configure(f'[team]\nbridge = "{team.address}"\nask = "search"\n')

        found = in_this_process(machine, ["search", "geese", "--mode", mode, "--json"], cwd=machine.home)

    assert found.json()["hits"] == []


def test_who_did_not_ask_for_it_asks_no_one(tmp_path: Path) -> None:
    hits = [{"id": "a", "score": 0.9}]
    for team in (TeamConfig(), TeamConfig(bridge="http://127.0.0.1:9/mcp"), TeamConfig(ask="search")):
        config = Config(file=tmp_path / "config.toml", state=tmp_path, vault=tmp_path, claude_root=tmp_path, team=team)

        assert team_search(config, GEESE, project="", limit=10)(hits) == hits


def test_who_did_asks_with_the_key_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with team_at(tmp_path / "server") as (_, team, store):
        note = store.remember(OWNER, "Geese guard the gate", NoteKind.DECISION, ORCHARD)
        monkeypatch.setenv("KMEM_TEAM_TOKEN", team.token)
        config = Config(
            file=tmp_path / "config.toml", state=tmp_path, vault=tmp_path, claude_root=tmp_path,
            team=TeamConfig(ask="search", bridge=team.address),
        )  # fmt: skip

        found = team_search(config, "decision: geese", project="", limit=10, seconds=A_LONG_TIME)([])
        events_alone = team_search(config, "error: geese", project="", limit=10, seconds=A_LONG_TIME)([])

    assert [hit["id"] for hit in found] == [note.id]
    assert events_alone == []


def test_nothing_secret_goes_out_with_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "ghp_" + "a1B2" * 9
    asked_for: list[bytes] = []

    class Hearing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked_for.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hearing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("KMEM_TEAM_TOKEN", "token")
        team = TeamConfig(ask="search", bridge=f"http://127.0.0.1:{server.server_port}/mcp")
        config = Config(file=tmp_path / "config.toml", state=tmp_path, vault=tmp_path, claude_root=tmp_path, team=team)

        team_search(config, f"geese {secret} <private>the gander</private>", project="", limit=10, seconds=A_LONG_TIME)([])
        server.shutdown()

    (body,) = asked_for
    assert b"geese" in body
    assert secret.encode() not in body
    assert b"gander" not in body
