"""A loopback stand-in for a model that streams its answers; the wire's own shape is what its users add."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.fakes.anthropic_server import Json, Loopback, Raw, serving

Answer = Callable[[str, Json], Raw | None]
"""From a request's path and JSON to the reply; ``None`` for any other path."""


@dataclass(slots=True)
class ModelServer:
    """``requests`` holds the JSON of every request that the model answered, in order; ``paths`` every path asked for."""

    answer: Answer
    url: str = ""
    requests: list[Json] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Event = field(default_factory=threading.Event)


@contextmanager
def model_server(answer: Answer) -> Iterator[ModelServer]:
    with serving(ModelServer(answer=answer), _Handler) as state:
        yield state


class _Handler(Loopback):
    def do_POST(self) -> None:
        asked, state = self.asked(), self.server_state
        answer: Raw | None = state.answer(self.path, asked)
        with state.lock:
            state.paths.append(self.path)
            if answer is not None:
                state.requests.append(asked)
        self.send(answer or Raw(body="{}"))

    def do_GET(self) -> None:
        self.close_connection = True
        with self.server_state.lock:
            self.server_state.paths.append(self.path)
        self.send(Raw(body="{}"))
