"""The HTTP server on a port of its own, in a thread."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio

from kite_memory.mcp_server.auth_middleware import AccessRules, Admission, Audit, Readiness, TokenIssuer
from kite_memory.mcp_server.http import RequestLimits, serve
from kite_memory.mcp_server.tokens import Tokens
from kite_memory.tools.declarations import Perform

HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@dataclass(slots=True, kw_only=True)
class Served:
    port: int
    path: str
    tokens: Tokens
    state: Path
    reported: list[BaseException] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, host: str | None = None
    ) -> tuple[int, bytes]:
        """With exactly these headers; ``host`` goes before our own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("host", host if host is not None else f"127.0.0.1:{self.port}")
            for name, value in headers.items():
                connection.putheader(name, value)
            if body:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def call(self, token: str, tool: str, headers: Mapping[str, str] = {}, **arguments: object) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        status, answer = self.request(
            "POST", self.path, {**HEADERS, "authorization": f"Bearer {token}", **headers}, json.dumps(body).encode()
        )
        assert status == 200, (status, answer)
        content: dict[str, Any] = json.loads(answer)
        return content

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.state / "logs" / "audit.log").read_text().splitlines()]


@contextmanager
def serving(
    state: Path,
    perform: Perform,
    *,
    path: str = "/mcp",
    private: bool = True,
    behind_proxy: bool = False,
    names: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    rate: float = 10_000.0,
    failures_at_once: float = 20.0,
    clock: Callable[[], datetime] | None = None,
    seconds_to_ask: float = 30.0,
    starting: Callable[[], str] = lambda: "",
    health: Callable[[], str] = lambda: "",
    team: bool = False,
    issuer: TokenIssuer | None = None,
) -> Iterator[Served]:
    tokens = Tokens(state) if clock is None else Tokens(state, clock=clock)
    listening = socket.create_server(("127.0.0.1", 0))
    port = int(listening.getsockname()[1])
    rules = AccessRules.of(
        host="127.0.0.1", port=port, names=names, origins=origins, path=path, private=private, behind_proxy=behind_proxy
    )
    served = Served(port=port, path=path, tokens=tokens, state=state)
    stopping: list[Callable[[], None]] = []
    ready = threading.Event()

    def started(stop: Callable[[], None]) -> None:
        stopping.append(stop)
        ready.set()

    async def run() -> None:
        await serve(
            perform,
            listening=listening,
            admission=Admission(rules=rules, tokens=tokens, audit=Audit(state / "logs" / "audit.log"), issuer=issuer),
            report=served.reported.append,
            limits=RequestLimits(rate=rate, failures_at_once=failures_at_once, seconds_to_ask=seconds_to_ask),
            readiness=Readiness(starting=starting, health=health),
            team=team,
            started=started,
        )

    thread = threading.Thread(target=lambda: anyio.run(run), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield served
    finally:
        stopping[0]()
        thread.join(30)
        listening.close()
        tokens.close()
    assert not thread.is_alive()
