"""Antigravity's transcripts, invented."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

_START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Steps:
    """Steps, a second apart."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, kind: str, content: str | None = None, *, source: str = "MODEL", status: str = "DONE", **fields: Any) -> None:
        at = (_START + timedelta(seconds=len(self.rows))).strftime("%Y-%m-%dT%H:%M:%SZ")
        row = {"step_index": len(self.rows), "source": source, "type": kind, "status": status, "created_at": at, **fields}
        self.rows.append(row if content is None else {**row, "content": content})

    def prompt(self, text: str, around: str = "") -> None:
        self.add("USER_INPUT", f"<USER_REQUEST>\n{text}\n</USER_REQUEST>{around}", source="USER_EXPLICIT")

    def plan(self, content: str | None = None, **calls: dict[str, Any]) -> None:
        self.add("PLANNER_RESPONSE", content, tool_calls=[{"name": name, "args": given} for name, given in calls.items()])

    @property
    def bytes(self) -> bytes:
        return b"".join(json.dumps(row).encode() + b"\n" for row in self.rows)


def a_morning() -> Steps:
    """A prompt, an answer with a test run and an edit, a step of a kind that no one knows."""
    steps = Steps()
    steps.prompt("Why does the pump test fail?", "\n<USER_SETTINGS_CHANGE>\nThe model is another.\n</USER_SETTINGS_CHANGE>")
    steps.add("CONVERSATION_HISTORY", source="SYSTEM")
    steps.plan("Let me look.", run_command={"CommandLine": "pytest -q", "Cwd": "/home/ada/orchard"})
    steps.add(
        "RUN_COMMAND",
        "Created At: x\nCompleted At: y\n\n"
        "\t\t\t\tThe command failed with exit code: 1\n\t\t\t\tOutput:\n\t\t\t\t1 failed in 0.1s\n",
    )
    steps.plan(write_to_file={"TargetFile": "/home/ada/orchard/pump.py", "CodeContent": "a"})
    steps.add("CODE_ACTION", "Created file file:///home/ada/orchard/pump.py with requested content.")
    steps.add("WEATHER_REPORT", "fair", source="SYSTEM")
    return steps
