"""Writes invented Codex rollouts, line by line, in the shapes that its versions use."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, Event, ReadResult
from kite_memory.sources.codex.source import Codex

BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CWD = "/home/ada/orchard"


def uuid7(at: datetime, number: int) -> str:
    milliseconds = f"{int(at.timestamp() * 1000):012x}"
    return f"{milliseconds[:8]}-{milliseconds[8:]}-7000-8000-{number:012d}"


THREAD = uuid7(BEGIN, 1)


class Rollout:
    """Each line stands a second after the one before it. ``paginated`` writes messages as the newest clients do."""

    def __init__(self, thread: str = THREAD, *, begin: datetime = BEGIN, paginated: bool = False, **meta: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self.thread = thread
        self.begin = begin
        self._paginated = paginated
        self._turn = 0
        self.turn = ""
        fields = {"id": thread, "timestamp": self._now(), "cwd": CWD, "originator": "codex-tui", "cli_version": "0.144.0"}
        self.row(
            "session_meta",
            {**fields, "source": "cli", "git": {"branch": "main"}, "base_instructions": {"text": "Be kind."}, **meta},
        )

    def _now(self) -> str:
        at = self.begin + timedelta(seconds=len(self.rows))
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def row(self, kind: str, payload: dict[str, Any]) -> None:
        self.rows.append({"timestamp": self._now(), "type": kind, "payload": payload})

    def item(self, kind: str, **payload: Any) -> None:
        self.row("response_item", {"type": kind, **payload})

    def event(self, kind: str, **payload: Any) -> None:
        self.row("event_msg", {"type": kind, **payload})

    def begin_turn(self, turn: str | None = None) -> str:
        self._turn += 1
        self.turn = turn or uuid7(self.begin + timedelta(seconds=len(self.rows)), 1000 + self._turn)
        self.event("task_started", turn_id=self.turn)
        self.row("turn_context", {"turn_id": self.turn, "cwd": CWD, "model": "gpt-5.5"})
        return self.turn

    def user_item(self, *texts: str, origins: Iterable[str] = ()) -> None:
        content = [{"type": "input_text", "text": text} for text in texts]
        parts = [{"provenance": {"type": origin}} for origin in origins]
        beside = {"internal_chat_message_metadata_passthrough": {"content_item_metadata": parts}} if parts else {}
        self.item("message", role="user", content=content, **beside)

    def prompt(self, text: str) -> None:
        self.user_item(text)
        if self._paginated:
            self.event(
                "item_completed", turn_id=self.turn, item={"type": "UserMessage", "content": [{"type": "text", "text": text}]}
            )
        else:
            self.event("user_message", message=text, images=[])

    def answer(self, text: str) -> None:
        said = {"role": "assistant", "content": [{"type": "output_text", "text": text}]}
        if self._paginated:
            self.event(
                "item_completed", turn_id=self.turn, item={"type": "AgentMessage", "content": [{"type": "Text", "text": text}]}
            )
            self.item("message", **said)
        else:
            self.event("agent_message", message=text)
            self.item("message", **said)

    def ask(self, question: str, answer: str) -> None:
        """A whole turn."""
        self.begin_turn()
        self.prompt(question)
        self.answer(answer)
        self.event("task_complete", turn_id=self.turn)

    def call(self, call: str, tool: str, **given: Any) -> None:
        self.item("function_call", name=tool, arguments=json.dumps(given), call_id=call)

    def custom_call(self, call: str, tool: str, text: str) -> None:
        self.item("custom_tool_call", name=tool, input=text, call_id=call)

    def output(self, call: str, output: Any, *, custom: bool = False) -> None:
        self.item("custom_tool_call_output" if custom else "function_call_output", call_id=call, output=output)

    def run(self, call: str, command: str, output: str, code: int = 0) -> None:
        self.call(call, "exec_command", cmd=command, yield_time_ms=1000)
        self.output(call, f"Chunk ID: abc123\nWall time: 0.1000 seconds\nProcess exited with code {code}\nOutput:\n{output}")

    def forked(self, thread: str, begin: datetime, **meta: Any) -> "Rollout":
        """A rollout that repeats all of this one, its times set to the moment of the fork, as 0.118 wrote them."""
        fork = Rollout(thread, begin=begin, forked_from_id=self.thread, **meta)
        stamp = fork.rows[0]["timestamp"]
        fork.rows += [{**row, "timestamp": stamp} for row in self.rows]
        fork._turn = 100
        return fork

    @property
    def bytes(self) -> bytes:
        return b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in self.rows)


class Home:
    """An agent's folder, and a source that reads it."""

    def __init__(self, folder: Path, *, line_limit: int = 32 * 1024 * 1024) -> None:
        self.root = folder / "codex"
        self.own_state = folder / "state"
        self.source = Codex(self.root, own_state=self.own_state, line_limit=line_limit)

    def place(self, thread: str = THREAD, at: datetime = BEGIN) -> Path:
        return self.root / "sessions" / f"{at:%Y/%m/%d}" / f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"

    def write(self, rollout: Rollout | bytes, path: Path | None = None) -> Path:
        if path is None:
            path = self.place(rollout.thread, rollout.begin) if isinstance(rollout, Rollout) else self.place()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rollout if isinstance(rollout, bytes) else rollout.bytes)
        return path

    def read(self, path: Path, cursor: Cursor | None = None, *, budget: int = 4 * 1024 * 1024) -> ReadResult:
        return self.source.read(path, cursor, budget=budget)

    def look(self, rollout: Rollout | bytes) -> ReadResult:
        return self.read(self.write(rollout))

    def events(self, rollout: Rollout | bytes) -> tuple[Event, ...]:
        return self.look(rollout).events

    def read_on(self, path: Path, cursor: Cursor | None = None, *, budget: int = 4 * 1024 * 1024) -> list[ReadResult]:
        """Looks until one reaches the end."""
        looks = [self.read(path, cursor, budget=budget)]
        while looks[-1].more:
            looks.append(self.read(path, looks[-1].cursor, budget=budget))
        return looks


def a_day() -> Rollout:
    """A short session that has something of everything."""
    day = Rollout()
    day.begin_turn()
    day.user_item("<environment_context>\n  <cwd>/home/ada/orchard</cwd>\n</environment_context>")
    day.prompt("Graft the pear onto the quince — schön langsam 🍐")
    day.item("reasoning", summary=[], encrypted_content="x")
    day.answer("I run the tests first.")
    day.call("call_1", "exec_command", cmd="pytest -q")
    day.event("exec_command_end", call_id="call_1", command=["bash", "-lc", "pytest -q"], exit_code=1, aggregated_output="…")
    day.output("call_1", "Chunk ID: 1\nProcess exited with code 1\nOutput:\nE   AssertionError: dry\n1 failed, 2 passed in 0.10s")
    day.custom_call("call_2", "apply_patch", "*** Begin Patch\n*** Update File: pear.py\n@@\n-dry\n+wet\n*** End Patch\n")
    day.output(
        "call_2", "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM pear.py\n", custom=True
    )
    day.event("thread_name_updated", thread_id=day.thread, thread_name="Pears on quinces")
    day.answer("Done: the pear is grafted.")
    day.row("surprise", {"type": "?"})
    day.event("task_complete", turn_id=day.turn)
    day.begin_turn()
    day.prompt("and water it")
    day.event("turn_aborted", turn_id=day.turn, reason="interrupted")
    return day
