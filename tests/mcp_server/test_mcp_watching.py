"""What `kmem serve` shows its administrator, and how it stays there for others under a crowd of connections."""

import asyncio
import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from kite_memory.mcp_server.http import IdleConnections
from tests.fakes.performers import Performer
from tests.mcp_server.serving import HEADERS, serving

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()


def test_an_answer_is_sent_without_waiting_for_an_acknowledgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Nagle's algorithm the second packet of an answer waits some 40 ms for the client's delayed ACK."""
    transports: list[asyncio.Transport] = []
    made = H11Protocol.connection_made

    def connection_made(self: H11Protocol, transport: asyncio.Transport) -> None:
        transports.append(transport)
        made(self, transport)

    monkeypatch.setattr(H11Protocol, "connection_made", connection_made)
    with serving(tmp_path, Performer().perform) as served, socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        assert connection.recv(1) == b"H"
        accepted = transports[0].get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_250_connections_that_ask_for_nothing_turn_no_one_away(tmp_path: Path) -> None:
    with serving(tmp_path, Performer().perform) as served, ExitStack() as silent:
        token, _ = served.tokens.create("ada")
        for number in range(250):
            connection = silent.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            if number % 2:
                connection.sendall(b"POST /mcp HTTP/1.1\r\nhost: a\r\n")

        assert served.call(token, "list_memories")["result"]["structuredContent"] == {"memories": []}


def test_of_those_who_wait_the_address_with_most_gives_up_its_oldest() -> None:
    waiting, closed = IdleConnections(most=3), list[str]()
    for name, address in (("patient", "192.0.2.1"), ("first", "192.0.2.9"), ("second", "192.0.2.9"), ("third", "192.0.2.9")):
        waiting.add(address, name, lambda name=name: closed.append(name))  # type: ignore[misc]
    assert closed == ["first"]

    waiting.remove("192.0.2.9", "second")
    waiting.add("192.0.2.5", "newest", lambda: closed.append("newest"))

    assert closed == ["first"]
    assert len(waiting) == 3


def test_health_is_reported_without_a_token_and_by_any_name(tmp_path: Path) -> None:
    ails = [""]
    with serving(tmp_path, Performer().perform, health=lambda: ails[0]) as served:
        assert served.request("GET", "/healthz", {}, host="10.1.2.3:80") == (200, b'{"status": "ok"}')

        ails[0] = "the team's store does not answer"
        status, result = served.request("GET", "/healthz", {})

        assert (status, json.loads(result)) == (503, {"status": "unavailable", "reason": "the team's store does not answer"})
        assert served.request("POST", "/healthz", {}, b"{}")[0] == 405


def test_until_the_store_is_there_calls_learn_why_and_then_answered(tmp_path: Path) -> None:
    missing = ["the team's store does not answer yet"]
    with serving(tmp_path, Performer().perform, starting=lambda: missing[0]) as served:
        token, _ = served.tokens.create("ada")
        headers = {**HEADERS, "authorization": f"Bearer {token}"}

        assert served.request("POST", "/mcp", headers, PING) == (503, b"the team's store does not answer yet")
        assert served.request("POST", "/mcp", HEADERS, PING)[0] == 401
        assert served.request("GET", "/healthz", {})[0] == 503
        assert b"kmem_ready 0.0" in served.request("GET", "/metrics", {})[1]

        missing[0] = ""
        assert served.request("POST", "/mcp", headers, PING)[0] == 200


def test_metrics_count_calls_and_refusals_and_name_no_one(tmp_path: Path) -> None:
    with serving(tmp_path, Performer().perform) as served:
        token, _ = served.tokens.create("ada-lovelace")
        served.call(token, "read_memory", key="project.secret")
        served.request("POST", "/mcp", HEADERS, PING)

        status, result = served.request("GET", "/metrics", {})

    lines = result.decode().splitlines()
    assert status == 200
    assert 'kmem_tool_calls_total{outcome="ok",tool="read_memory"} 1.0' in lines
    assert 'kmem_tool_seconds_count{tool="read_memory"} 1.0' in lines
    assert 'kmem_http_requests_total{outcome="token"} 1.0' in lines
    assert "ada-lovelace" not in result.decode()
    assert "project.secret" not in result.decode()


def test_metrics_of_a_server_that_others_reach_take_a_token(tmp_path: Path) -> None:
    with serving(tmp_path, Performer().perform, private=False, names=("127.0.0.1",)) as served:
        token, _ = served.tokens.create("prometheus", write=False)

        assert served.request("GET", "/metrics", {})[0] == 401
        assert served.request("GET", "/metrics", {"authorization": f"Bearer {token}"})[0] == 200
        assert served.request("GET", "/metrics", {}, host="rebound.example.org")[0] == 421


@pytest.mark.parametrize(("team", "persons"), [(True, ["ada", "ada", "ci"]), (False, ["ada", "ada", ""])])
def test_a_token_asks_for_its_person(tmp_path: Path, team: bool, persons: list[str]) -> None:
    performer = Performer()
    with serving(tmp_path, performer.perform, team=team) as served:
        for name, person in (("phone", "ada"), ("laptop", "ada"), ("ci", "")):
            token, _ = served.tokens.create(name, person=person)
            served.call(token, "list_memories")

    assert [asker.grant.person for _, _, asker in performer.asked] == persons
