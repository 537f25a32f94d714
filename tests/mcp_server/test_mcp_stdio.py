"""Lines in, lines out: whatever comes, and however the client ends."""

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.mcp_server import stdio
from kite_memory.mcp_server.server import server_over
from kite_memory.mcp_server.stdio import InputLines, serve
from kite_memory.tools.store import OWNER, Asker
from tests.counts import examples
from tests.fakes.performers import Performer

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def call(number: int, tool: str, **arguments: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class Process:
    """The server on two pipes, in a thread."""

    def __init__(self, performer: Performer | None = None, *, longest: int = 1 << 16) -> None:
        self.performer = performer or Performer()
        self._theirs, self.input = os.pipe()
        self.output, self._ours = os.pipe()
        self._thread = threading.Thread(target=self._run, args=(longest,), daemon=True)
        self._thread.start()
        self._read = iter(InputLines(self.output))

    def _run(self, longest: int) -> None:
        server = server_over(self.performer.perform, lambda _: Asker(grant=OWNER), lambda error: None)
        try:
            anyio.run(lambda: serve(server, read_fd=self._theirs, write_fd=self._ours, longest=longest))
        finally:
            os.close(self._ours)

    def send(self, *messages: object) -> None:
        for message in messages:
            os.write(self.input, (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")

    def answer(self) -> dict[str, Any]:
        line = next(self._read)
        assert isinstance(line, bytes)
        content: dict[str, Any] = json.loads(line)
        return content

    def rest(self) -> list[dict[str, Any]]:
        """All that is still answered, once the input has ended."""
        os.close(self.input)
        return [json.loads(line) for line in self._read if isinstance(line, bytes)]

    def ended(self) -> bool:
        self._thread.join(30)
        return not self._thread.is_alive()


def test_what_was_asked_is_answered_before_it_ends() -> None:
    process = Process()
    process.send(INITIALIZE, *(call(number, "read_memory", key=f"k{number}") for number in range(1, 40)))

    remaining = process.rest()

    assert process.ended()
    assert sorted(each["id"] for each in remaining) == list(range(40))
    assert {each["id"]: each["result"]["structuredContent"]["key"] for each in remaining if each["id"]} == {
        number: f"k{number}" for number in range(1, 40)
    }


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"{",
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'"text"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"result":{}',
        b"\xff\xfe\x00",
        b"[" * 50_000,
        b'{"a":' * 12_000,
    ],
    ids=range(10),
)
def test_a_line_that_is_no_message_is_said_to_be_none_and_the_next_is_answered(line: bytes) -> None:
    process = Process()

    process.send(INITIALIZE)
    first = process.answer()
    process.send(line)
    refused = process.answer()
    process.send(call(5, "read_memory", key="a"))
    answered = process.answer()

    assert first["id"] == 0
    assert refused["id"] is None and refused["error"]["code"] in (-32700, -32600)
    assert refused["error"]["data"]["hint"]
    assert answered["result"]["structuredContent"]["value"] == 7
    process.rest()
    assert process.ended()


WRITING = '"method": "tools/call", "params": {"name": "write_memory", "arguments": {"key": "a", "value": %s}}'
ENVELOPES = ('{"jsonrpc": "2.0", "id": 5, %s}', '{%s, "jsonrpc": "2.0", "id": 5}')
"""As the SDK for Python writes it, and the one for TypeScript."""


@pytest.mark.parametrize("envelope", ENVELOPES, ids=["id first", "id last"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('"' + 'a\\"' * 100_000 + '"', "longer than 65,536 bytes"),
        ("[" * 40_000 + "]" * 40_000, "longer than 65,536 bytes"),
        ("[" * 200 + "]" * 200, "nested too deeply"),
        ("[" * 20_000 + "]" * 20_000, "nested too deeply"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "nested too deeply"),
        ("9" * 5_000, "thousands of digits"),
        ("[1,, 2]", "not JSON"),
        ("{]", "not JSON"),
    ],
    ids=["long text", "long and deep", "200 levels", "20,000 levels", "5,000 objects", "5,000 digits", "comma", "brackets"],
)
def test_a_request_that_cannot_be_taken_is_refused_under_its_own_id(envelope: str, value: str, said: str) -> None:
    process = Process()
    process.send(INITIALIZE)
    process.answer()

    process.send((envelope % (WRITING % value)).encode())
    refused = process.answer()
    process.rest()

    assert refused["id"] == 5
    assert said in refused["error"]["message"] and "\nhint: " in refused["error"]["message"]
    assert process.performer.asked == []
    assert process.ended()


def test_half_a_character_costs_that_character_alone() -> None:
    process = Process()
    process.send(INITIALIZE)
    process.answer()

    process.send((ENVELOPES[0] % (WRITING % '"caf\\u00e9 \\ud83d"')).encode())
    answered = process.answer()
    process.rest()

    assert answered["id"] == 5 and "result" in answered
    assert [arguments["value"] for _, arguments, _ in process.performer.asked] == ["caf\u00e9 ?"]
    assert process.ended()


@pytest.mark.parametrize("id", ["9.5", "null", "true", "[1]"])
def test_a_request_whose_id_is_none_is_answered_all_the_same(id: str) -> None:
    process = Process()

    process.send(INITIALIZE, f'{{"jsonrpc": "2.0", "id": {id}, "method": "tools/list"}}'.encode())
    remaining = process.rest()

    assert {json.dumps(each["id"]): each.get("error", {}).get("code") for each in remaining} == {"0": None, "null": -32600}


def test_what_was_refused_is_said_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    written = stdio._write_all

    def by_and_by(fd: int, line: bytes) -> bool:
        threading.Event().wait(0.2)
        return written(fd, line)

    monkeypatch.setattr(stdio, "_write_all", by_and_by)
    process = Process()

    process.send(INITIALIZE, b"garbage")

    assert {json.dumps(each["id"]) for each in process.rest()} == {"0", "null"}
    assert process.ended()


def test_a_notification_with_null_for_an_id_is_a_notification() -> None:
    process = Process()

    process.send(
        INITIALIZE, b'{"jsonrpc": "2.0", "id": null, "method": "notifications/initialized"}', call(1, "read_memory", key="a")
    )

    assert [each["id"] for each in process.rest()] == [0, 1]


def test_an_answer_that_cannot_be_read_is_no_ones_request() -> None:
    process = Process()

    process.send(INITIALIZE, b'{"jsonrpc": "2.0", "id": 7, "result": {"a": %s}}' % (b"[" * 5_000 + b"]" * 5_000))
    listed = {json.dumps(process.answer()["id"]) for _ in range(2)}
    process.rest()

    assert listed == {"0", "null"}


def test_a_line_without_end_takes_no_room_and_is_refused_when_it_ends() -> None:
    process = Process(longest=10_000)
    process.send(INITIALIZE)
    process.answer()

    process.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"' + b"x" * 3_000_000 + b'"}')
    refused = process.answer()
    process.send(call(5, "read_memory", key="a"))
    answered = process.answer()

    assert "10,000 bytes" in refused["error"]["message"]
    assert refused["id"] == 1
    assert answered["id"] == 5
    process.rest()
    assert process.ended()


@pytest.mark.parametrize("order", [["input", "output"], ["output", "input"]])
def test_a_client_that_dies_in_the_middle_of_a_call_leaves_nothing_behind(order: list[str]) -> None:
    performer = Performer(waiting=True)
    process = Process(performer)
    process.send(INITIALIZE, call(1, "read_memory", key="a"))
    process.answer()
    assert performer.held.acquire(timeout=30)

    for end in order:
        os.close(process.input if end == "input" else process.output)
    performer.hold.set()

    assert process.ended()
    assert [tool for tool, _, _ in performer.asked] == ["read_memory"]


def test_a_client_that_reads_no_more_ends_it_though_its_other_end_is_open() -> None:
    process = Process()
    process.send(INITIALIZE)
    process.answer()

    os.close(process.output)
    process.send(call(1, "read_memory", key="a"))

    assert process.ended()
    os.close(process.input)


def test_a_cancelled_call_is_not_waited_for_at_the_end() -> None:
    performer = Performer(waiting=True)
    process = Process(performer)
    process.send(INITIALIZE, call(1, "read_memory", key="a"))
    process.answer()
    assert performer.held.acquire(timeout=30)

    process.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    process.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    after = process.answer()
    performer.hold.set()

    assert after["id"] == 2
    assert process.rest() == []
    assert process.ended()


def test_no_more_calls_run_at_once_than_there_is_room_for() -> None:
    running, most, lock = 0, 0, threading.Lock()
    go = threading.Event()

    class Counting(Performer):
        def perform(self, tool: str, arguments: dict[str, Any], asker: Asker) -> dict[str, Any]:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
                if running == 8:
                    go.set()
            go.wait(30)
            with lock:
                running -= 1
            return {"key": "a"}

    process = Process(Counting())
    process.send(INITIALIZE, *(call(number, "read_memory", key="a") for number in range(1, 60)))

    remaining = process.rest()

    assert len(remaining) == 60
    assert most == 8


@pytest.mark.parametrize("kind", ["pipes", "sockets", "files"])
def test_all_is_answered_through_whatever_a_client_gives(kind: str, tmp_path: Path) -> None:
    """Agents give pipes, those written in JavaScript sockets, and a shell files."""
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in (INITIALIZE, *(_long(number) for number in range(1, 60))))
    (tmp_path / "in").write_bytes(lines)
    ends: tuple[int, int, int, int]
    match kind:
        case "pipes":
            ends = (*os.pipe(), *os.pipe())
        case "sockets":
            ends = tuple(end.detach() for _ in range(2) for end in socket.socketpair())  # type: ignore[assignment]
        case _:
            written = os.open(tmp_path / "out", os.O_CREAT | os.O_RDWR)
            ends = os.open(tmp_path / "in", os.O_RDONLY), -1, os.open(tmp_path / "out", os.O_RDONLY), written
    read_fd, send_fd, output, write_fd = ends
    server = server_over(Performer().perform, lambda _: Asker(grant=OWNER), lambda error: None)

    def answer() -> None:
        anyio.run(lambda: serve(server, read_fd=read_fd, write_fd=write_fd))
        os.close(write_fd)

    serving = threading.Thread(target=answer, daemon=True)
    serving.start()

    def send() -> None:
        left = memoryview(lines)
        while left:
            left = left[os.write(send_fd, left) :]
        os.close(send_fd)

    if send_fd >= 0:  # it sends all before it reads anything, so that neither end has room at times
        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        sending.join(1)
    else:
        serving.join(30)
    answers = [json.loads(line) for line in InputLines(output) if isinstance(line, bytes)]

    assert sorted(each["id"] for each in answers) == list(range(60))


def _long(number: int) -> dict[str, Any]:
    return call(number, "read_memory", key=f"{number} {'x' * (9_000 if number % 2 else 10)}")


PIECES = st.lists(st.binary(max_size=60), max_size=12)


@settings(max_examples=examples(60))
@given(pieces=PIECES, longest=st.integers(1, 40))
def test_lines_are_the_same_however_they_arrive(pieces: list[bytes], longest: int) -> None:
    everything = b"".join(pieces)
    expected = everything.split(b"\n")
    expected = expected if expected[-1] else expected[:-1]
    ours, theirs = os.pipe()

    def write() -> None:
        for piece in pieces:
            os.write(theirs, piece)
        os.close(theirs)

    thread = threading.Thread(target=write)
    thread.start()
    listed = list(InputLines(ours, longest))
    thread.join()
    os.close(ours)

    assert [line if isinstance(line, bytes) else None for line in listed] == [
        line if len(line) <= longest else None for line in expected
    ]
