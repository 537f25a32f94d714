"""The Responses API on loopback: enough of it for the real Codex to hold a session."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.fakes.anthropic_server import Json, Raw
from tests.fakes.model_server import ModelServer, model_server

Turn = Callable[[Json], Sequence[Json]]
"""From a request to the items that the model answers with (see `said`, `command`, `patch`)."""

_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 15,
}


def said(text: str) -> Json:
    return {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": text}]}


def command(line: str, *, call: str) -> Json:
    return {"type": "function_call", "id": "fc_1", "name": "exec_command", "call_id": call, "arguments": json.dumps({"cmd": line})}


def patch(text: str, *, call: str) -> Json:
    return {"type": "custom_tool_call", "id": "ctc_1", "name": "apply_patch", "call_id": call, "input": text}


def results(asked: Json) -> list[str]:
    """The names of the calls whose results the model is shown, oldest first; only those of the last prompt."""
    answered: list[str] = []
    for item in asked.get("input", []):
        if item.get("type") == "message" and item.get("role") == "user":
            answered = []
        elif str(item.get("type")).endswith("_call_output"):
            answered.append(item["call_id"])
    return answered


@contextmanager
def openai_responses_server(turn: Turn) -> Iterator[ModelServer]:
    def answer(path: str, asked: Json) -> Raw | None:
        if not path.partition("?")[0].endswith("/responses"):
            return None
        number = len(server.requests)
        events: list[Json] = [{"type": "response.created", "response": {"id": f"resp_{number}"}}]
        events += [
            {"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(turn(asked))
        ]
        events.append({"type": "response.completed", "response": {"id": f"resp_{number}", "usage": _USAGE}})
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return Raw(body=body, headers={"content-type": "text/event-stream"})

    with model_server(answer) as server:
        yield server
