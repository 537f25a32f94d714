"""MCP over HTTP: who gets through, and who does not."""

import json
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from kite_memory.mcp_server.auth_middleware import LONGEST_BODY
from kite_memory.model.note import Scope
from kite_memory.tools.store import OWNER, Asker, Grant
from tests.fakes.performers import Performer
from tests.mcp_server.serving import HEADERS, Served, serving

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PATH = "/a-prefix-nobody-guesses/mcp"


@pytest.fixture
def performer() -> Performer:
    return Performer()


@pytest.fixture
def served(tmp_path: Path, performer: Performer) -> Iterator[Served]:
    with serving(tmp_path, performer.perform, path=PATH) as served:
        yield served


HOSTS = ("own", "localhost", "foreign", "look-alike")
ORIGINS = ("none", "own", "foreign")
PATHS = ("right", "wrong")
TOKENS = ("good", "none", "changed", "revoked", "in the url")
METHODS = ("POST", "GET")
CELLS = tuple(product(HOSTS, ORIGINS, PATHS, TOKENS, METHODS))


def test_of_240_cells_only_the_intended_answer(tmp_path: Path, performer: Performer) -> None:
    """Host × origin × path × token × method, over a real socket; the first thing wrong decides what is said."""
    with serving(tmp_path, performer.perform, path=PATH, failures_at_once=1_000) as served:
        result, expected = _cells(served)

    assert len(result) == 240
    assert result == expected
    assert {cell for cell in CELLS if result[cell] == 200} == set(product(HOSTS[:2], ORIGINS[:2], ["right"], ["good"], ["POST"]))


def _cells(served: Served) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]]:
    """What each cell answers, and what it should answer."""
    good, _ = served.tokens.create("good")
    revoked, _ = served.tokens.create("revoked")
    served.tokens.revoke("revoked")
    changed = good[:-1] + ("A" if good[-1] != "A" else "B")
    hosts = {
        "own": f"127.0.0.1:{served.port}",
        "localhost": f"localhost:{served.port}",
        "foreign": "evil.example",
        "look-alike": f"127.0.0.1.evil.example:{served.port}",
    }
    origins = {"none": {}, "own": {"origin": f"http://localhost:{served.port}"}, "foreign": {"origin": "https://evil.example"}}
    paths = {"right": PATH, "wrong": "/mcp"}
    headers = {
        "good": {"authorization": f"Bearer {good}"},
        "none": {},
        "changed": {"authorization": f"Bearer {changed}"},
        "revoked": {"authorization": f"Bearer {revoked}"},
        "in the url": {},
    }
    expected: dict[tuple[str, ...], int] = {}
    by_name: dict[tuple[str, ...], int] = {}

    for cell in CELLS:
        host, origin, path, token, method = cell
        query = f"?token={good}&authorization=Bearer+{good}" if token == "in the url" else ""
        by_name[cell], answer = served.request(
            method,
            paths[path] + query,
            {**HEADERS, **origins[origin], **headers[token]},
            PING if method == "POST" else b"",
            host=hosts[host],
        )
        assert good.encode() not in answer
        expected[cell] = (
            421
            if host in ("foreign", "look-alike")
            else 403
            if origin == "foreign"
            else 404
            if path == "wrong"
            else 401
            if token != "good"
            else 405
            if method != "POST"
            else 200
        )

    assert good not in (served.state / "logs" / "audit.log").read_text()
    return by_name, expected


def test_a_client_that_asks_for_a_stream_hears_that_none_exists_however_many_begin_at_once(served: Served) -> None:
    """As the official ones do by GET after `initialize`, and all of an office from one address."""
    good, _ = served.tokens.create("good")

    listed = {served.request("GET", PATH, {**HEADERS, "authorization": f"Bearer {good}"})[0] for _ in range(60)}

    assert listed == {405}


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
def test_no_other_method_is_answered(served: Served, method: str) -> None:
    good, _ = served.tokens.create("good")

    status, _ = served.request(method, PATH, {**HEADERS, "authorization": f"Bearer {good}"})

    assert status == 405


def _response_headers(served: Served, method: str, headers: dict[str, str], path: str = PATH) -> tuple[int, httpx2.Headers]:
    with httpx2.Client() as client:
        answer = client.request(
            method, f"http://127.0.0.1:{served.port}{path}", headers=headers, content=PING if method == "POST" else b""
        )
    return answer.status_code, answer.headers


def test_a_browser_lets_a_page_that_may_ask_read_its_answer(tmp_path: Path, performer: Performer) -> None:
    """It asks first, without the token, and shows the page nothing that does not name its origin."""
    page, wanted = "https://app.example.org", "authorization,content-type,kite-project"
    asks = {"access-control-request-method": "POST", "access-control-request-headers": wanted}
    with serving(tmp_path, performer.perform, path=PATH, origins=(page,)) as served:
        good, _ = served.tokens.create("good")

        before, allowed = _response_headers(served, "OPTIONS", {"origin": page, **asks})
        status, result = _response_headers(served, "POST", {**HEADERS, "origin": page, "authorization": f"Bearer {good}"})
        refused, why = _response_headers(served, "POST", {**HEADERS, "origin": page})

    assert (before, status, refused) == (204, 200, 401)
    assert allowed["access-control-allow-methods"] == "POST" and allowed["access-control-allow-headers"] == wanted
    assert {each["access-control-allow-origin"] for each in (allowed, result, why)} == {page}
    assert {each["vary"] for each in (allowed, result, why)} == {"Origin"}


def test_a_page_that_may_not_ask_is_not_given_permission(served: Served) -> None:
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    own = f"http://localhost:{served.port}"

    listed = [
        _response_headers(served, "OPTIONS", {"origin": "https://evil.example", **asks}),
        _response_headers(served, "OPTIONS", {"origin": own, **asks}, "/mcp"),
        _response_headers(served, "OPTIONS", {"origin": own, **asks, "access-control-request-method": "DELETE"}),
        _response_headers(served, "OPTIONS", asks),
    ]

    assert [status for status, _ in listed] == [403, 404, 401, 401]
    assert all("access-control-allow-methods" not in headers for _, headers in listed)
    assert "access-control-allow-origin" not in listed[0][1]


@pytest.mark.parametrize("twice", ["host", "authorization", "origin"])
def test_a_header_that_decides_may_not_be_said_twice(served: Served, twice: str) -> None:
    good, _ = served.tokens.create("good")
    lines = {
        "host": f"host: 127.0.0.1:{served.port}",
        "authorization": f"authorization: Bearer {good}",
        "origin": f"origin: http://127.0.0.1:{served.port}",
    }
    request = [f"POST {PATH} HTTP/1.1", *lines.values(), lines[twice], f"content-length: {len(PING)}"]
    request += ["content-type: application/json", "accept: application/json, text/event-stream", "connection: close", "", ""]

    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall("\r\n".join(request).encode() + PING)
        answer = connection.makefile("rb").readline()

    assert b" 400 " in answer


ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])


@ERAS
def test_the_official_client_reads_and_writes_with_a_token(served: Served, performer: Performer, era: str) -> None:
    good, _ = served.tokens.create("laptop", write=True, scopes=[Scope.PROJECT], projects=["mycelia"])

    async def asked() -> tuple[list[str], object, bool]:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {good}"}) as http,
            Client(streamable_http_client(served.url, http_client=http), mode=era) as client,
        ):
            tools = [tool.name for tool in (await client.list_tools()).tools]
            written = await client.call_tool("write_memory", {"key": "a", "value": 1})
            conflict = await client.call_tool("write_memory", {"key": "a", "value": 1, "expected_version": 1})
            return tools, written.structured_content, conflict.is_error

    tools, written, conflict = anyio.run(asked)

    assert "get_context" in tools
    assert written == {"key": "a", "scope": "project", "version": 1}
    assert conflict
    (_, _, asker), _ = performer.asked
    assert asker.grant == Grant(name="laptop", scopes=frozenset({Scope.PROJECT}), projects=frozenset({"mycelia"}))
    assert asker.project == "mycelia"


def test_a_token_that_is_revoked_in_the_middle_is_refused_from_then_on(served: Served) -> None:
    good, _ = served.tokens.create("laptop")
    before = served.call(good, "read_memory", key="a")

    served.tokens.revoke("laptop")
    after, _ = served.request("POST", PATH, {**HEADERS, "authorization": f"Bearer {good}"}, PING)

    assert before["result"]["structuredContent"] == {"key": "a", "value": 7}
    assert after == 401


def test_a_token_ends_on_time(tmp_path: Path, performer: Performer) -> None:
    now = [datetime(2026, 3, 2, tzinfo=UTC)]
    with serving(tmp_path, performer.perform, clock=lambda: now[0]) as served:
        good, _ = served.tokens.create("laptop", expires=now[0] + timedelta(hours=1))
        served.call(good, "read_memory", key="a")

        now[0] += timedelta(hours=1)
        status, _ = served.request("POST", "/mcp", {**HEADERS, "authorization": f"Bearer {good}"}, PING)

    assert status == 401


def test_the_log_shows_who_asked_for_what_and_how_it_ended_and_nothing_that_was_said(served: Served) -> None:
    good, _ = served.tokens.create("laptop")

    served.call(good, "write_memory", key="the-key", value="the-value")
    served.call(good, "write_memory", key="the-key", value="the-value", expected_version=1)
    served.call(good, "forget", note="the-note")
    served.request("POST", PATH, HEADERS, PING)

    listed = [(line["token"], line["address"], line["what"], line["outcome"]) for line in served.audit()]
    assert listed == [
        ("laptop", "127.0.0.1", "write_memory", "ok"),
        ("laptop", "127.0.0.1", "write_memory", "conflict"),
        ("laptop", "127.0.0.1", "forget", "failed: a bug"),
        ("", "127.0.0.1", "request", "token: none"),
    ]
    written = (served.state / "logs" / "audit.log").read_text()
    assert not any(secret in written for secret in (good, "the-key", "the-value", "the-note"))
    assert [type(error) for error in served.reported] == [ZeroDivisionError]


def test_who_asks_too_often_is_informed_and_others_are_not(tmp_path: Path, performer: Performer) -> None:
    with serving(tmp_path, performer.perform, rate=0.5) as served:
        busy, _ = served.tokens.create("busy")
        calm, _ = served.tokens.create("calm")

        statuses = [served.request("POST", "/mcp", {**HEADERS, "authorization": f"Bearer {busy}"}, PING)[0] for _ in range(3)]
        other, _ = served.request("POST", "/mcp", {**HEADERS, "authorization": f"Bearer {calm}"}, PING)

    assert statuses[0] == 200 and statuses[2] == 429
    assert other == 200


def test_who_guesses_is_slowed_down_and_does_not_fill_the_log(served: Served) -> None:
    statuses = [served.request("POST", PATH, {**HEADERS, "authorization": f"Bearer kmem_{n}"}, PING)[0] for n in range(60)]

    assert statuses[:20] == [401] * 20
    assert statuses.count(429) >= 30
    assert len(served.audit()) <= 30


def test_behind_a_proxy_its_word_for_the_address_counts_and_the_local_token_does_not(tmp_path: Path, performer: Performer) -> None:
    with serving(tmp_path, performer.perform, private=False, behind_proxy=True, names=("memory.example.org",)) as served:
        served.tokens.local(tmp_path / "local.token")
        local = (tmp_path / "local.token").read_text().strip()
        good, _ = served.tokens.create("laptop")
        forwarded = {**HEADERS, "x-forwarded-for": "203.0.113.9, 198.51.100.7"}

        inside, _ = served.request(
            "POST", "/mcp", {**forwarded, "authorization": f"Bearer {local}"}, PING, host="memory.example.org"
        )
        outside, _ = served.request(
            "POST", "/mcp", {**forwarded, "authorization": f"Bearer {good}"}, PING, host="memory.example.org"
        )
        other, _ = served.request("POST", "/mcp", {**HEADERS, "authorization": f"Bearer {good}"}, PING, host="other.example.org")

    assert (inside, outside, other) == (401, 200, 421)
    assert next((line["address"], line["outcome"]) for line in served.audit()) == ("198.51.100.7", "token: not here")


@pytest.mark.parametrize(
    ("expected", "address"),
    [
        ("198.51.100.7:50123", "198.51.100.7"),
        ("[2001:db8::7]:50123", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("unknown", "127.0.0.1"),
        ("[", "127.0.0.1"),
    ],
)
def test_a_proxy_that_shows_the_port_too_is_understood(tmp_path: Path, performer: Performer, expected: str, address: str) -> None:
    """Else all who come through it would be one address, with one address's patience."""
    with serving(tmp_path, performer.perform, private=False, behind_proxy=True, names=("memory.example.org",)) as served:
        served.request("POST", "/mcp", {**HEADERS, "x-forwarded-for": expected}, PING, host="memory.example.org")

    assert served.audit()[0]["address"] == address


def test_without_a_proxy_no_one_may_say_where_they_come_from(served: Served) -> None:
    served.request("POST", PATH, {**HEADERS, "x-forwarded-for": "203.0.113.9"}, PING)

    assert served.audit()[0]["address"] == "127.0.0.1"


def test_the_local_token_is_the_owners_and_says_for_which_project_in_a_header(served: Served, performer: Performer) -> None:
    served.tokens.local(served.state / "local.token")
    local = (served.state / "local.token").read_text().strip()

    served.call(local, "read_memory", {"kite-project": "mycelia"}, key="a")

    assert (performer.asked[0][2].grant, performer.asked[0][2].project) == (OWNER, "mycelia")


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_projects_name_in_a_header_may_have_any_letters(served: Served, performer: Performer, encoding: str) -> None:
    good, _ = served.tokens.create("laptop")

    served.call(good, "read_memory", {"kite-project": "café".encode(encoding).decode("latin-1")}, key="a")

    assert performer.asked[0][2].project == "café"


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_long_is_not_read_to_its_end(served: Served, announced: bool) -> None:
    good, _ = served.tokens.create("laptop")
    length = f"content-length: {LONGEST_BODY * 100}" if announced else "transfer-encoding: chunked"
    head = [f"POST {PATH} HTTP/1.1", f"host: 127.0.0.1:{served.port}", f"authorization: Bearer {good}", length]
    piece = b"x" * (1 << 16)
    chunk = piece if announced else b"%x\r\n" % len(piece) + piece + b"\r\n"
    sent = 0

    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*head, "content-type: application/json", "", ""]).encode())
        try:
            while sent < LONGEST_BODY * 3:
                connection.sendall(chunk)
                sent += len(piece)
        except OSError:
            pass  # it has hung up
        connection.settimeout(5)
        try:
            answer = connection.recv(100)
        except OSError:
            answer = b""

    assert b" 413 " in answer or sent < LONGEST_BODY * 3
    assert "too long" in served.audit()[-1]["outcome"]


@pytest.mark.parametrize(
    "body",
    [
        b"garbage",
        b"[]",
        b"{}",
        b'{"jsonrpc":"2.0"}',
        b"[" * 50_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        b'{"jsonrpc":"2.0","id":9.5,"method":"ping"}',
    ],
)
def test_a_body_that_is_no_request_is_refused_and_the_next_one_answered(served: Served, body: bytes) -> None:
    good, _ = served.tokens.create("laptop")

    status, answer = served.request("POST", PATH, {**HEADERS, "authorization": f"Bearer {good}"}, body)
    after = served.call(good, "read_memory", key="a")

    assert status == 400 or "error" in json.loads(answer)
    assert after["result"]["structuredContent"]["value"] == 7
    assert served.reported == []


@pytest.mark.parametrize(
    ("value", "status", "said"),
    [
        ('"' + "a" * 5_000_000 + '"', 413, "longer than 4,194,304 bytes"),
        ("[" * 200 + "]" * 200, 400, "nested too deeply"),
        ("[" * 50_000 + "]" * 50_000, 400, "nested too deeply"),
        ("9" * 5_000, 400, "thousands of digits"),
        ("[1,, 2]", 400, "not JSON"),
    ],
    ids=["5 MB", "200 levels", "50,000 levels", "5,000 digits", "comma"],
)
def test_a_request_that_cannot_be_taken_is_refused_under_its_own_id(served: Served, value: str, status: int, said: str) -> None:
    good, _ = served.tokens.create("laptop")
    params = '{"name": "write_memory", "arguments": {"key": "a", "value": %s}}'
    call = f'{{"method": "tools/call", "params": {params}, "id": "five", "jsonrpc": "2.0"}}'

    result, answer = served.request("POST", PATH, {**HEADERS, "authorization": f"Bearer {good}"}, (call % value).encode())

    refused = json.loads(answer)
    assert result == status
    assert refused["id"] == "five"
    assert said in refused["error"]["message"] and "\nhint: " in refused["error"]["message"]
    assert served.audit()[-1]["token"] == "laptop"


def test_half_a_character_costs_that_character_alone(served: Served, performer: Performer) -> None:
    good, _ = served.tokens.create("laptop")

    served.call(good, "write_memory", key="a", value="caf\u00e9 \ud83d")

    assert [arguments["value"] for _, arguments, _ in performer.asked] == ["caf\u00e9 ?"]


def test_the_official_client_hears_why_a_request_cannot_be_taken(served: Served) -> None:
    good, _ = served.tokens.create("laptop")
    deep: list[object] = []
    for _ in range(250):
        deep = [deep]

    async def ask() -> list[str]:
        said: list[str] = []
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {good}"}, timeout=30) as http,
            Client(streamable_http_client(served.url, http_client=http)) as client,
        ):
            for value in ("a" * 5_000_000, deep):
                with pytest.raises(MCPError) as refused, anyio.fail_after(20):
                    await client.call_tool("write_memory", {"key": "a", "value": value})
                said.append(str(refused.value))
        return said

    long, nested = anyio.run(ask)
    assert "longer than" in long
    assert "nested too deeply" in nested


def test_a_client_that_leaves_in_the_middle_costs_the_others_nothing(tmp_path: Path) -> None:
    performer = Performer(waiting=True)
    with serving(tmp_path, performer.perform) as served:
        good, _ = served.tokens.create("laptop")
        body = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_memory", "arguments": {"key": "a"}}}
        )
        head = [
            "POST /mcp HTTP/1.1",
            f"host: 127.0.0.1:{served.port}",
            f"authorization: Bearer {good}",
            f"content-length: {len(body)}",
        ]
        head += [f"{name}: {value}" for name, value in HEADERS.items()]
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
            connection.sendall("\r\n".join([*head, "", body]).encode())
            assert performer.held.acquire(timeout=30)

        other = served.call(good, "list_memories")
        performer.hold.set()

    assert other["result"]["structuredContent"] == {"memories": []}
    assert served.reported == []


@pytest.mark.parametrize("begun", [b"", b"POST ", b"POST /mcp HTTP/1.1\r\nhost: a\r\n", b"GET / HTTP/1.1\r\nhost: a\r\n\r\nPOST "])
def test_who_opens_a_connection_and_asks_for_nothing_is_let_go(tmp_path: Path, performer: Performer, begun: bytes) -> None:
    """Else two hundred of them would keep out everybody, without a token."""
    with (
        serving(tmp_path, performer.perform, seconds_to_ask=0.2) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=20) as silent,
    ):
        silent.sendall(begun)
        while silent.recv(4_096):
            pass


def test_who_is_answered_slowly_is_not_let_go(tmp_path: Path) -> None:
    def slow(tool: str, arguments: dict[str, object], asker: Asker) -> dict[str, object]:
        time.sleep(0.5)
        return {"found": False}

    with serving(tmp_path, slow, seconds_to_ask=0.2) as served:
        token, _ = served.tokens.create("ada")

        assert served.call(token, "read_memory", key="k")["result"]["structuredContent"] == {"found": False}
