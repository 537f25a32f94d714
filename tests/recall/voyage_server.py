"""A loopback stand-in for Voyage's embeddings endpoint: enough of it for the real package."""

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kite_memory.recall.embedder import Vectors
from tests.fakes.hashing_embedder import HashingEmbedder

KEY = "pa-a-key-for-tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """Any status, headers and body. ``cut`` announces more than it sends; ``hang`` waits for so many seconds first."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    cut: bool = False
    hang: float = 0.0


Reply = Callable[[dict[str, Any]], Raw]


@dataclass(slots=True)
class VoyageServer:
    """``requests`` holds the JSON of every request; ``reply`` may be exchanged at any time."""

    url: str
    reply: Reply
    requests: list[dict[str, Any]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


def embeddings(dim: int) -> Reply:
    """As the service answers: rows in base64, an error for a blank text or for more than 1000 of them."""
    embedder = HashingEmbedder(dim)

    def reply(request: dict[str, Any]) -> Raw:
        texts = request["input"]
        if not texts or len(texts) > 1000 or not all(text.strip() for text in texts):
            return Raw(status=400, body=json.dumps({"detail": "The request body is not valid JSON, or some arguments."}).encode())
        return answer(embedder.embed(texts, "document"))

    return reply


def answer(vectors: Vectors) -> Raw:
    """Rows twice as long as they should be: what comes back is ours to normalise."""
    rows = [
        {"object": "embedding", "index": number, "embedding": base64.b64encode((2 * row).tobytes()).decode()}
        for number, row in enumerate(vectors)
    ]
    body = {"object": "list", "data": rows, "model": "voyage-3-lite", "usage": {"total_tokens": 7}}
    return Raw(body=json.dumps(body).encode())


@contextmanager
def voyage_server(reply: Reply | None = None) -> Iterator[VoyageServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append(request)
            if self.path != "/v1/embeddings":
                self._send(Raw(status=404, body=b'{"detail": "Not Found"}'))
            elif self.headers["Authorization"] != f"Bearer {KEY}":
                self._send(Raw(status=401, body=b'{"detail": "Provided API key is invalid."}'))
            else:
                self._send(server.reply(request))

        def _send(self, raw: Raw) -> None:
            if raw.hang:
                server.stopping.wait(raw.hang)
            self.send_response(raw.status)
            for name, value in raw.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw.body) + (1000 if raw.cut else 0)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(raw.body)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = VoyageServer(url=f"http://127.0.0.1:{http.server_port}/v1", reply=reply or embeddings(512))
        thread = threading.Thread(target=http.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            http.shutdown()
            thread.join()
