"""The Gemini API on loopback: enough of it for the real Gemini CLI to hold a session."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.fakes.anthropic_server import Json, Raw
from tests.fakes.model_server import ModelServer, model_server

Turn = Callable[[Json], Sequence[Json]]
"""From a request to the parts that the model answers with (see `said`, `called`)."""


def said(text: str) -> Json:
    return {"text": text}


def called(tool: str, **args: object) -> Json:
    return {"functionCall": {"name": tool, "args": args}}


def results(asked: Json) -> list[str]:
    """The tools whose results the model is shown, oldest first; only those of the last prompt."""
    answered: list[str] = []
    for content in asked.get("contents", []):
        parts = content.get("parts", [])
        if content.get("role") == "user" and any("text" in part for part in parts):
            answered = []
        answered += [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
    return answered


@contextmanager
def gemini_server(turn: Turn) -> Iterator[ModelServer]:
    def answer(path: str, asked: Json) -> Raw | None:
        if "enerateContent" not in path:
            return None
        content = {"role": "model", "parts": list(turn(asked))}
        fields = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
            "modelVersion": "gemini-2.5-pro",
        }
        if "streamGenerateContent" not in path:
            return Raw(body=json.dumps(fields))
        return Raw(body=f"data: {json.dumps(fields)}\r\n\r\n", headers={"content-type": "text/event-stream"})

    with model_server(answer) as server:
        yield server
