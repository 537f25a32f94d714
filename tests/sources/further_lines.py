"""Writes invented sessions of agents that append JSON lines, in the shapes that the agents write."""

import json
from collections.abc import Iterable
from typing import Any

CWD = "/home/ada/orchard"
NAME = "0a917070-0000-4000-8000-000000000001"


def lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in rows)


def at(second: int) -> str:
    return f"2026-03-02T09:{second // 60:02}:{second % 60:02}.000Z"


class Pi:
    """A session of Pi. Each line stands ten seconds after the one before it."""

    def __init__(self, **head: Any) -> None:
        self.rows: list[dict[str, Any]] = [
            {"type": "session", "version": 3, "id": NAME, "timestamp": at(0), "cwd": CWD, **head},
        ]

    def row(self, kind: str, **value: Any) -> None:
        number = len(self.rows)
        before = self.rows[-1]["id"] if number > 1 else None
        self.rows.append({"type": kind, "id": f"{number:08x}", "parentId": before, "timestamp": at(10 * number), **value})

    def message(self, role: str, **value: Any) -> None:
        self.row("message", message={"role": role, "timestamp": 1_772_442_000_000 + len(self.rows), **value})

    def user(self, words: str) -> None:
        self.message("user", content=[{"type": "text", "text": words}])

    def assistant(self, *blocks: dict[str, Any], stop: str = "stop") -> None:
        self.message("assistant", content=list(blocks), model="pear-1", provider="orchard", stopReason=stop)

    def result(self, call: str, words: str, *, failed: bool = False) -> None:
        content = [{"type": "text", "text": words}]
        self.message("toolResult", toolCallId=call, toolName="bash", content=content, isError=failed)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def a_pi_day() -> Pi:
    day = Pi()
    day.row("model_change", provider="orchard", modelId="pear-1")
    day.user("Why do the pears drop early?")
    day.assistant(
        {"type": "thinking", "thinking": "Perhaps water."},
        text("I run the tests."),
        {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "pytest -q"}},
        stop="toolUse",
    )
    day.result("c1", "FAILED tests/test_pears.py::test_ripe\n1 failed in 0.1s\n\nCommand exited with code 1", failed=True)
    day.assistant(
        {"type": "toolCall", "id": "c2", "name": "edit", "arguments": {"path": "pears.py", "newText": "x"}}, stop="toolUse"
    )
    day.result("c2", "Edited.")
    day.assistant(text("They were watered too late."))
    day.row("hologram")
    return day


class Qwen:
    """A session of Qwen Code. Each record stands ten seconds after the one before it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.now = 0

    def row(self, kind: str, *, after: int = 10, **value: Any) -> None:
        self.now += after
        number = len(self.rows) + 1
        self.rows.append(
            {
                "uuid": f"{number:08x}-0000-4000-8000-000000000000",
                "parentUuid": self.rows[-1]["uuid"] if self.rows else None,
                "sessionId": NAME,
                "timestamp": at(self.now),
                "type": kind,
                "cwd": CWD,
                "version": "0.15.10",
                "gitBranch": "main",
                **value,
            }
        )

    def user(self, *parts: str, **value: Any) -> None:
        self.row("user", message={"role": "user", "parts": [{"text": part} for part in parts]}, **value)

    def assistant(self, *parts: dict[str, Any]) -> None:
        self.row("assistant", model="pear-1", message={"role": "model", "parts": list(parts)})

    def result(self, call: str, tool: str, output: str, status: str = "success") -> None:
        part = {"functionResponse": {"id": call, "name": tool, "response": {"output": output}}}
        fields = {"callId": call, "status": status}
        self.row("tool_result", message={"role": "user", "parts": [part]}, toolCallResult=fields)

    def system(self, subtype: str, **payload: Any) -> None:
        self.row("system", subtype=subtype, systemPayload=payload)


def function(call: str, tool: str, **given: Any) -> dict[str, Any]:
    return {"functionCall": {"id": call, "name": tool, "args": given}}


def a_qwen_day() -> Qwen:
    day = Qwen()
    day.user("Why do the pears drop early?")
    day.system("ui_telemetry", uiEvent={"event.name": "qwen-code.api_response", "response_text": "I run the tests."})
    day.assistant(
        {"text": "Perhaps water.", "thought": True},
        {"text": "I run the tests."},
        function("c1", "run_shell_command", command="pytest -q"),
    )
    failure = "FAILED tests/test_pears.py::test_ripe\n1 failed in 0.1s"
    output = f"Command: pytest -q\nDirectory: (root)\nOutput: {failure}\nError: (none)\nExit Code: 1\nSignal: 0"
    day.result("c1", "run_shell_command", output)
    day.assistant(function("c2", "edit", file_path=f"{CWD}/pears.py", new_string="x"))
    day.result("c2", "edit", "Edited.")
    day.assistant({"text": "They were watered too late."})
    day.row("hologram")
    return day


class Droid:
    """A session of Factory Droid. Each line stands ten seconds after the one before it."""

    def __init__(self, **head: Any) -> None:
        self.rows: list[dict[str, Any]] = [
            {"type": "session_start", "id": NAME, "title": "Pears", "owner": "ada", "version": 2, "cwd": CWD, **head}
        ]

    def row(self, kind: str, **value: Any) -> None:
        number = len(self.rows)
        name = f"{number:08x}-0000-4000-8000-000000000000"
        self.rows.append({"type": kind, "id": name, "timestamp": at(10 * number), **value})

    def message(self, role: str, *blocks: dict[str, Any]) -> None:
        self.row("message", message={"role": role, "content": list(blocks)})


def a_droid_day() -> Droid:
    day = Droid()
    day.message("user", text("<system-reminder>Be brief.</system-reminder>"), text("Why do the pears drop early?"))
    day.message(
        "assistant",
        text("I run the tests."),
        {"type": "tool_use", "id": "c1", "name": "Execute", "input": {"command": "pytest -q"}},
    )
    failure = "FAILED tests/test_pears.py::test_ripe\n1 failed in 0.1s"
    day.message("user", {"type": "tool_result", "tool_use_id": "c1", "content": failure, "is_error": True})
    edit = {"type": "tool_use", "id": "c2", "name": "Edit", "input": {"file_path": f"{CWD}/pears.py", "new_str": "x"}}
    day.message("assistant", edit)
    day.message("user", {"type": "tool_result", "tool_use_id": "c2", "content": [text("Edited.")]})
    day.message("assistant", text("They were watered too late."))
    day.row("todo_state", todos={})
    day.row("hologram")
    return day
