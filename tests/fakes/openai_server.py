"""A loopback stand-in for whatever speaks OpenAI's chat completions, as picky about how it is asked as a test wants it."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.fakes.anthropic_server import Json, Loopback, Raw, serving

Reply = Callable[[Json], "Json | Raw"]
"""From a request's JSON to a completion's JSON (see `completion`), or to a `Raw` one."""


@dataclass(slots=True)
class OpenAiServer:
    """``requests`` holds the JSON of every ``POST …/chat/completions``; ``paths`` every request's path, in order."""

    reply: Reply
    url: str = ""
    requests: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Event = field(default_factory=threading.Event)


def completion(text: object, *, finish: str = "stop", usage: Mapping[str, object] | None = None, **message: object) -> Json:
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "model": "fake",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}],
        "usage": dict(usage or {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}),
    }


def failure(status: int, said: str, *, kind: str = "invalid_request_error", code: str | None = None, **headers: str) -> Raw:
    error = {"message": said, "type": kind, "param": None, "code": code}
    by_name = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw(status=status, body=json.dumps({"error": error}), headers=by_name)


@contextmanager
def openai_server(reply: Reply) -> Iterator[OpenAiServer]:
    """``url`` ends in ``/v1``, as a base URL does."""
    with serving(OpenAiServer(reply=reply), _Handler) as state:
        state.url += "/v1"
        yield state


class _Handler(Loopback):
    def do_POST(self) -> None:
        asked = self.asked()
        state = self.server_state
        with state.lock:
            state.paths.append(self.path)
            if self.path == "/v1/chat/completions":
                state.requests.append(asked)
                state.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.path != "/v1/chat/completions":
            self.send(Raw(status=404, body="404 page not found"))
            return
        answer = state.reply(asked)
        if not isinstance(answer, Raw):
            answer = _streamed(answer) if asked.get("stream") is True else Raw(body=json.dumps(answer))
        self.send(answer)


def _streamed(answer: Json) -> Raw:
    """The whole answer as one piece of a stream, and its end as another."""
    choice = answer["choices"][0]
    pieces: tuple[tuple[Json, str | None], ...] = ((choice["message"], None), ({}, choice["finish_reason"]))
    chunks = [
        {**answer, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in pieces
    ]
    lines = [*map(json.dumps, chunks), "[DONE]"]
    return Raw(body="".join(f"data: {line}\n\n" for line in lines), headers={"content-type": "text/event-stream"})
