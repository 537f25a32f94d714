"""A loopback stand-in for the Anthropic API: enough of it for the real package and for the real client."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeVar

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A reply that is not the API's: any status, headers and body; or none at all.

    ``hang`` keeps the connection open without a word for so many seconds. ``drip`` sends the body a byte at a time with
    that pause, ``drip_head`` headers without end. ``reset`` closes the connection without an answer.
    """

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: float = 0.0
    drip: float = 0.0
    drip_head: float = 0.0
    reset: bool = False


Reply = Callable[[Json], "Json | Raw"]
"""From a request's JSON to a message's JSON (see `text_message`, `tool_message`), or to a `Raw` one."""


Ended = Callable[[Json], "Json | None"]
"""From one request of a batch to its result; ``None`` leaves it out of the results."""


@dataclass(slots=True)
class AnthropicServer:
    """``requests`` holds the JSON of every ``POST /v1/messages``, ``paths`` every request's method and path, in order.

    ``reply`` may be exchanged at any time. It is called in the request's own thread, and for each request of a batch once the
    results are fetched, unless ``ended`` says otherwise. ``batches`` holds every batch by its id; they are all over once
    ``batches_over``. ``on_batch`` answers in place of the service once a batch has arrived, or before if it ``loses`` it.
    """

    reply: Reply
    ended: Ended | None = None
    batches: dict[str, list[Json]] = field(default_factory=dict)
    batches_over: bool = False
    batches_created: str = "2026-03-01T12:00:00Z"
    on_batch: Raw | None = None
    loses: bool = False
    url: str = ""
    requests: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Event = field(default_factory=threading.Event)


def text_message(text: str, *, stop_reason: str = "end_turn", usage: Mapping[str, int] | None = None) -> Json:
    return message([{"type": "text", "text": text}], stop_reason=stop_reason, usage=usage)


def tool_message(name: str, input: Json, *, text: str = "", id: str = "toolu_fake_1") -> Json:
    """The model wants a tool called: what makes the real client run a command or edit a file."""
    said: list[Json] = [{"type": "text", "text": text}] if text else []
    return message([*said, {"type": "tool_use", "id": id, "name": name, "input": input}], stop_reason="tool_use")


def message(content: Sequence[Json], *, stop_reason: str = "end_turn", usage: Mapping[str, int] | None = None) -> Json:
    return {
        "id": "msg_fake_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-fake",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": dict(usage or {"input_tokens": 100, "output_tokens": 20}),
    }


def api_error(status: int, kind: str, said: str, *, code: str = "", headers: Mapping[str, str] | None = None) -> Raw:
    error: Json = {"type": kind, "message": said}
    if code:
        error["details"] = {"error_code": code}
    return Raw(status=status, body=json.dumps({"type": "error", "error": error}), headers=headers or {})


@contextmanager
def anthropic_server(reply: Reply) -> Iterator[AnthropicServer]:
    """Listens on a free port of 127.0.0.1 until the block ends; then every connection is closed and every thread is done."""
    with serving(AnthropicServer(reply=reply), _Handler) as state:
        yield state


_State = TypeVar("_State", bound="Served")


class Served(Protocol):
    url: str
    stopping: threading.Event


@contextmanager
def serving(state: _State, handler: type["Loopback"]) -> Iterator[_State]:
    """``handler`` over a free port of 127.0.0.1, with ``state`` at hand."""
    bound: type[Loopback] = type("Bound", (handler,), {"server_state": state})

    class Server(ThreadingHTTPServer):
        daemon_threads = False
        request_queue_size = 32

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up is part of the play."""

    server = Server(("127.0.0.1", 0), bound)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="loopback")
    thread.start()
    try:
        yield state
    finally:
        state.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Loopback(BaseHTTPRequestHandler):
    """Sends what a `Raw` reply says, in whatever manner it says it."""

    server_state: Any
    protocol_version = "HTTP/1.1"
    timeout = 30

    def asked(self) -> Json:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.close_connection = True
        try:
            content: Json = json.loads(body or b"{}")
        except ValueError:
            return {}
        return content

    def send(self, answer: Raw) -> None:
        stopping = self.server_state.stopping
        if answer.hang:
            stopping.wait(answer.hang)
        if answer.hang or answer.reset:
            return
        body = answer.body.encode()
        if answer.drip_head:
            self.wfile.write(f"HTTP/1.1 {answer.status} OK\r\nx-slow: ".encode())
            while not stopping.wait(answer.drip_head):
                self.wfile.write(b"x")
            return
        self.send_response(answer.status)
        fields = {
            "content-type": "application/json",
            "request-id": "req_fake_1",
            **{k.lower(): v for k, v in answer.headers.items()},
        }
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        if not answer.drip:
            self.wfile.write(body)
            return
        for at in range(len(body)):
            self.wfile.write(body[at : at + 1])
            if stopping.wait(answer.drip):
                return

    def log_message(self, format: str, *args: object) -> None:
        """What a test wants to know of requests is kept by the server's state."""


class _Handler(Loopback):
    def do_POST(self) -> None:
        asked = self.asked()
        path = self.path.partition("?")[0].rstrip("/")
        state = self.server_state
        with state.lock:
            state.paths.append(f"POST {self.path}")
            if path.endswith("/v1/messages"):
                state.requests.append(asked)
                state.headers.append({name.lower(): value for name, value in self.headers.items()})
        if path.endswith("/v1/messages/batches"):
            self._take_batch(asked)
        elif path.endswith("/count_tokens"):
            self.send(Raw(body=json.dumps({"input_tokens": max(1, len(json.dumps(asked)) // 4)})))
        elif path.endswith("/v1/messages"):
            answer = state.reply(asked)
            if isinstance(answer, Raw):
                self.send(answer)
            elif asked.get("stream"):
                self.send(Raw(body=_events(answer), headers={"content-type": "text/event-stream; charset=utf-8"}))
            else:
                self.send(Raw(body=json.dumps(answer)))
        else:
            self.send(Raw(body="{}"))

    def _take_batch(self, asked: Json) -> None:
        state = self.server_state
        with state.lock:
            name = f"msgbatch_{len(state.batches) + 1}"
            if not state.loses:
                state.batches[name] = asked["requests"]
        self.send(state.on_batch or Raw(body=json.dumps(self._batch(name))))

    def _batch(self, name: str) -> Json:
        state = self.server_state
        count, over = len(state.batches.get(name, [])), state.batches_over
        counts = {"processing": 0 if over else count, "succeeded": count if over else 0, "errored": 0, "canceled": 0, "expired": 0}
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended" if over else "in_progress",
            "request_counts": counts,
            "created_at": state.batches_created,
            "expires_at": state.batches_created,
            "ended_at": state.batches_created if over else None,
            "results_url": "http://elsewhere.invalid/results" if over else None,
        }

    def _results(self, requests: Sequence[Json]) -> str:
        state = self.server_state
        rows = []
        for each in reversed(requests):  # in no order, as the service has it
            ended = state.ended(each) if state.ended else {"type": "succeeded", "message": state.reply(each["params"])}
            if ended is not None:
                rows.append(json.dumps({"custom_id": each["custom_id"], "result": ended}) + "\n")
        return "".join(rows)

    def do_GET(self) -> None:
        state, (path, *_) = self.server_state, self.path.split("?")
        _, _, rest = path.partition("/v1/messages/batches")
        name, _, results = rest.lstrip("/").partition("/")
        if "/v1/messages/batches" not in path:
            self._harmless()
            return
        self.close_connection = True
        with state.lock:
            state.paths.append(f"GET {self.path}")
        if not name:
            listed = [self._batch(each) for each in reversed(state.batches)]
            self.send(Raw(body=json.dumps({"data": listed, "has_more": False, "first_id": None, "last_id": None})))
        elif name not in state.batches:
            self.send(api_error(404, "not_found_error", f"no batch {name}"))
        elif results:
            self.send(Raw(body=self._results(state.batches[name]), headers={"content-type": "application/x-jsonl"}))
        else:
            self.send(Raw(body=json.dumps(self._batch(name))))

    def do_HEAD(self) -> None:
        self._harmless()

    def _harmless(self) -> None:
        self.close_connection = True
        with self.server_state.lock:
            self.server_state.paths.append(f"{self.command} {self.path}")
        self.send(Raw(body="{}"))


def _events(answer: Json) -> str:
    """A message as the API streams it: opened, its blocks one after the other, closed."""
    opening = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    entries: list[Json] = [{"type": "message_start", "message": opening}]
    for index, block in enumerate(answer["content"]):
        match block:
            case {"type": "text", "text": str(text)}:
                start: Json = {"type": "text", "text": ""}
                delta: Json = {"type": "text_delta", "text": text}
            case {"type": "tool_use", "input": input}:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(input)}
            case _:
                raise ValueError(f"cannot stream a block of type {block.get('type')!r}")
        entries.append({"type": "content_block_start", "index": index, "content_block": start})
        entries.append({"type": "content_block_delta", "index": index, "delta": delta})
        entries.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    entries.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": answer["usage"]["output_tokens"]}})
    entries.append({"type": "message_stop"})
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in entries)


def wait_for(condition: Callable[[], bool], *, seconds: float = 20.0) -> bool:
    """Whether ``condition`` came true in time; for what another process is about to do."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
