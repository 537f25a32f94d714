"""A stand-in for the `claude` command: a script that notes how it was called and says what it was asked to say."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCRIPT = """#!{python}
import json, os, sys
asked = sys.stdin.read()
with open({note!r}, "w") as note:
    json.dump({{"argv": sys.argv[1:], "env": dict(os.environ), "stdin": asked, "cwd": os.getcwd(), "pid": os.getpid()}}, note)
{body}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCommand:
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}:/usr/bin:/bin", "HOME": str(self.folder)}

    def called_with(self) -> dict[str, Any]:
        """How it was last called: ``argv``, ``env``, ``stdin``, ``cwd`` and ``pid``."""
        noted: dict[str, Any] = json.loads((self.folder / "called.json").read_text())
        return noted

    @property
    def was_called(self) -> bool:
        return (self.folder / "called.json").exists()


def claude_command(folder: Path, body: str) -> ClaudeCommand:
    """``body`` is Python; ``asked`` holds what came in on standard input."""
    script = folder / "claude"
    script.write_text(_SCRIPT.format(python=sys.executable, note=str(folder / "called.json"), body=body))
    script.chmod(0o700)
    return ClaudeCommand(folder=folder)


def saying(result: object, *, code: int = 0, **more: object) -> str:
    """The body of a command that prints the client's JSON; ``result`` is its structured output, or its text."""
    content: dict[str, object] = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "stop_reason": "end_turn",
        "total_cost_usd": 0.01,
        "usage": {"input_tokens": 900, "output_tokens": 100},
    }
    if isinstance(result, dict):
        content["structured_output"] = result
        content["result"] = json.dumps(result)
    else:
        content["result"] = result
    return f"print({json.dumps(content | more)!r})\nsys.exit({code})"
