"""What the team knows of a prompt: asked over HTTP, one question at a time, in time or not at all."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.event import RedactedText
from kite_memory.model.note import NoteKind
from kite_memory.redaction import redact
from kite_memory.team.search import MARGIN, SCORE, CircuitBreaker, Team, TeamRecall, hits_of, note_of, standing_out
from kite_memory.tools import note_tools
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.store import OWNER
from tests.contract.bridge_store_contract import HARBOUR, MORNING, ORCHARD
from tests.fakes.memory_store import MemoryStore
from tests.mcp_server.serving import serving
from tests.team.test_team_search import Open

PATIENT = 30.0
"""Seconds that a question has in these tests, all of which end sooner."""
ASKS = redact("geese guard the gate")

Json = dict[str, Any]
Answer = tuple[int, bytes]


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def found(id: str = "n1", score: float = 0.9, **more: object) -> Json:
    return {
        "id": id, "path": "", "kind": "decision", "title": "Geese guard the gate", "project": "orchard", "scope": "project",
        "status": "accepted", "created": "2026-03-02T10:00:00+00:00", "score": score, "why": "", "snippet": "Geese.",
    } | more  # fmt: skip


def whole(id: str = "n1", body: str = "Geese guard the gate, since dogs sleep.") -> Json:
    frame = "<vault-context>\n[Relevant vault context: a quoted note from this user's own memory]"
    return {"id": id, "text": f"{frame}\n--- Geese --- guard · decision ---\n{body}\n</vault-context>"}


def content(value: object) -> Answer:
    return 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": value}}).encode()


@dataclass
class Server:
    """Answers each tool as it is asked to; ``None`` is to hang until the test is over."""

    answers: dict[str, Callable[[], Answer | None]]
    asked: list[tuple[str, Json]] = field(default_factory=list)
    bearers: list[str] = field(default_factory=list)
    connections: set[object] = field(default_factory=set)
    heard: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def team(self, scheme: str = "http", host: str = "127.0.0.1") -> Team:
        return Team(address=f"{scheme}://{host}:{self.port}/mcp", token="secret-token")


@contextmanager
def answering(trust: ssl.SSLContext | None = None, **answers: Callable[[], Answer | None]) -> Iterator[Server]:
    server = Server(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            called = json.loads(self.rfile.read(int(self.headers["content-length"])))["params"]
            server.asked.append((called["name"], called["arguments"]))
            server.bearers.append(self.headers["authorization"])
            server.connections.add(self.client_address)
            server.heard.set()
            answer = server.answers[called["name"]]()
            if answer is None:
                server.over.wait(PATIENT)
                self.close_connection = True
                return
            self.send_response(answer[0])
            self.send_header("content-length", str(len(answer[1])))
            if 300 <= answer[0] < 400:
                self.send_header("location", "/elsewhere")
            self.end_headers()
            self.wfile.write(answer[1])

        def do_GET(self) -> None:
            server.asked.append(("GET", {}))

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        http.handle_error = lambda *_: None  # type: ignore[method-assign]  # who hung up is none of the test's
        if trust is not None:
            http.socket = trust.wrap_socket(http.socket, server_side=True)
        server.port = http.server_port
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            http.shutdown()
            thread.join(PATIENT)


def hits_for(colleagues: TeamRecall, query: RedactedText = ASKS, until: float = PATIENT) -> list[tuple[str, str]]:
    telling = colleagues.ask(query, "orchard", until=until)
    assert telling is not None
    return [(hit.note.id, hit.note.body) for hit in telling.hits()]


def ended() -> None:
    for thread in threading.enumerate():
        if thread.name == "ask-team":
            thread.join(PATIENT)


def test_without_a_thread_the_team_is_asked_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    recall = TeamRecall(Team(address="http://127.0.0.1:9/mcp", token="t"), clock=Clock())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        assert recall.ask(ASKS, "orchard", until=PATIENT) is None

    assert recall.ask(ASKS, "orchard", until=PATIENT) is not None


def test_what_a_served_team_knows_comes_with_its_text(tmp_path: Path) -> None:
    store = MemoryStore()
    tools = note_tools.tools(store, LocalContext(), gate=Open(), age=lambda text, now: None, clock=lambda: datetime.now(UTC))
    note = store.remember(OWNER, "Geese guard the gate, since\nthe dogs sleep.", NoteKind.DECISION, ORCHARD)
    store.remember(OWNER, "Geese guard the gate in the harbour", NoteKind.FACT, HARBOUR)
    store.remember(OWNER, "Geese guard the gate this morning", NoteKind.FACT, MORNING)
    with serving(tmp_path, ToolDispatcher(tools).perform) as served:
        token, _ = served.tokens.create("colleague", write=False, projects=["orchard"])
        telling = TeamRecall(Team(address=served.url, token=token), clock=Clock()).ask(ASKS, "orchard", until=PATIENT)
        assert telling is not None
        (hit,) = telling.hits()

        nothing = hits_for(TeamRecall(Team(address=served.url, token=token), clock=Clock()), redact("who feeds the carp?"))
        revoked = hits_for(TeamRecall(Team(address=served.url, token="nobody's"), clock=Clock()))

    assert (hit.note.id, hit.note.kind, hit.score) == (f"team:{note.id}", NoteKind.DECISION, 1.0)
    assert hit.note.body == "Geese guard the gate, since\nthe dogs sleep."
    assert hit.note.created == note.created
    assert nothing == revoked == []


def test_a_question_takes_one_connection() -> None:
    with answering(
        search_notes=lambda: content({"hits": [found("a"), found("b")]}),
        get_note=iter([content(whole("a")), content(whole("b"))]).__next__,
    ) as server:
        assert [id for id, _ in hits_for(TeamRecall(server.team(), clock=Clock()))] == ["team:a", "team:b"]

    assert [tool for tool, _ in server.asked] == ["search_notes", "get_note", "get_note"]
    assert server.asked[0][1] == {"query": ASKS, "project": "orchard", "limit": 8}
    assert len(server.connections) == 1


NO_ANSWERS = [
    (401, b'{"error": "unauthorized"}'),
    (302, b""),
    (500, b""),
    (200, b"nonsense"),
    (200, b"[" * 100_000),
    (200, b'{"result": {"structuredContent": {"hits": [], "x": "' + b"x" * (1 << 21) + b'"}}}'),
    (200, b'{"error": {"code": 1, "message": "no"}}'),
    content([]),
    content({"notes": []}),
    content({"hits": "all of them"}),
]


@pytest.mark.parametrize("answer", NO_ANSWERS, ids=range(len(NO_ANSWERS)))
def test_after_three_that_are_no_answers_the_team_is_left_in_peace_for_a_while(answer: Answer) -> None:
    clock = Clock()
    with answering(search_notes=lambda: answer) as server:
        colleagues = TeamRecall(server.team(), clock=clock)
        assert [hits_for(colleagues) for _ in range(3)] == [[], [], []]

        asked_again = colleagues.ask(ASKS, "orchard", until=PATIENT)
        clock.now = 301.0
        later = hits_for(colleagues, until=400.0)

    assert asked_again is None
    assert later == []
    assert [tool for tool, _ in server.asked] == ["search_notes"] * 4  # and no redirect was followed


def test_no_one_there_is_nothing() -> None:
    assert hits_for(TeamRecall(Team(address="http://127.0.0.1:9/mcp", token="t"), clock=Clock())) == []


def test_a_team_that_hangs_is_not_waited_for_and_not_asked_twice() -> None:
    clock = Clock()
    with answering(search_notes=lambda: None) as server:
        colleagues = TeamRecall(server.team(), clock=clock)
        telling = colleagues.ask(ASKS, "orchard", until=PATIENT)
        assert telling is not None and server.heard.wait(PATIENT)

        meanwhile = [colleagues.ask(ASKS, "orchard", until=PATIENT) for _ in range(20)]
        clock.now = PATIENT
        hits = telling.hits()

        assert sum(thread.name == "ask-team" for thread in threading.enumerate()) == 1
    ended()

    assert hits == ()
    assert meanwhile == [None] * 20
    assert len(server.asked) == 1
    assert colleagues.ask(ASKS, "orchard", until=PATIENT + 1) is not None  # it has hung up: one failure is none
    ended()


def test_what_comes_too_late_is_a_failure_although_it_is_an_answer() -> None:
    clock = Clock()

    def late() -> Answer:
        clock.now += 1
        return content({"hits": []})

    with answering(search_notes=late) as server:
        colleagues = TeamRecall(server.team(), clock=clock)
        for _ in range(3):
            hits_for(colleagues, until=clock.now + 0.5)
            ended()

        assert colleagues.ask(ASKS, "orchard", until=PATIENT) is None


def test_a_note_that_does_not_come_in_time_is_left_out_and_the_first_is_kept() -> None:
    clock = Clock()
    second = threading.Event()

    def notes() -> Answer | None:
        if not second.is_set():
            second.set()
            return content(whole("a"))
        clock.now = PATIENT
        return None

    with answering(search_notes=lambda: content({"hits": [found("a"), found("b")]}), get_note=notes) as server:
        colleagues = TeamRecall(server.team(), clock=clock)
        telling = colleagues.ask(ASKS, "orchard", until=PATIENT)
        assert telling is not None
        while clock.now < PATIENT:
            second.wait(0.01)

        assert [hit.note.id for hit in telling.hits()] == ["team:a"]
    ended()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        whole("other"),
        {"id": "n1"},
        {"id": "n1", "text": "no frame"},
        {"id": "n1", "text": 7},
        whole(body=""),
        whole(body=" \n "),
    ],
)
def test_a_note_that_does_not_read_as_one_is_none(answer: Json) -> None:
    assert note_of(found(), answer) is None


def test_a_note_cannot_grow_beyond_bounds() -> None:
    note = note_of(found(), whole(body="word " * 50_000))

    assert note is not None and len(note.body) <= 10_000


@pytest.mark.parametrize(
    "odd",
    [
        {"status": "proposed"}, {"status": "superseded"}, {"status": "muted"}, {"kind": "journal"}, {"kind": "entity"},
        {"kind": "x"}, {"scope": "session"}, {"scope": ""}, {"id": ""}, {"score": SCORE - 0.01},
    ],
)  # fmt: skip
def test_what_may_not_be_said_of_ones_own_notes_is_not_said_of_the_team_s(odd: Json) -> None:
    assert standing_out([found()]) == [found()]
    assert standing_out([found() | odd]) == []


def test_among_many_alike_none_stands_out() -> None:
    alike = [found(str(number), 0.9 - number / 100) for number in range(8)]

    assert standing_out(alike) == []
    assert standing_out([found("best", 0.83 + MARGIN), *alike[:6], found("last", 0.82)]) == [found("best", 0.83 + MARGIN)]


def test_two_are_the_most() -> None:
    assert [hit["id"] for hit in standing_out([found(str(number), 0.9 - number / 100) for number in range(5)])] == ["0", "1"]


@pytest.mark.parametrize("failures", range(6))
def test_only_failures_in_a_row_keep_away(failures: int) -> None:
    reliance = CircuitBreaker()
    for _ in range(failures):
        reliance = reliance.after(answered=False, now=100.0)

    assert reliance.may_ask(101.0) is (failures < 3)
    assert reliance.may_ask(400.0)
    assert reliance.after(answered=True, now=100.0).after(answered=False, now=100.0).may_ask(100.0)


wild = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["accepted", "fact", "project"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@given(hit=st.dictionaries(st.sampled_from(sorted(found())), wild), more=wild, text=st.text() | wild, body=st.text())
def test_whatever_comes_is_a_note_or_nothing(hit: Json, more: object, text: object, body: str) -> None:
    hits = hits_of({"hits": [found() | hit, more]})

    for each in standing_out(hits):
        for answer in ({"id": each["id"], "text": text}, whole(each["id"], body)):
            note = note_of(each, answer)
            assert note is None or (note.id.startswith("team:") and note.created.tzinfo is UTC)


def test_a_server_that_no_one_vouches_for_hears_nothing(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    pem = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    hidden = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "both.pem").write_bytes(pem + hidden)
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(tmp_path / "both.pem")

    with answering(shown, search_notes=lambda: content({"hits": []})) as server:
        assert hits_for(TeamRecall(server.team("https", "localhost"), clock=Clock())) == []

    assert server.asked == []


def test_the_token_goes_in_a_header_alone() -> None:
    with answering(search_notes=lambda: content({"hits": []})) as server:
        hits_for(TeamRecall(server.team(), clock=Clock()))

    assert server.bearers == ["Bearer secret-token"]
    assert "secret-token" not in json.dumps(server.asked)
