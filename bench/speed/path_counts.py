"""How far data walks through the code: calls and files of ours on three paths.

    python -m bench.speed.path_counts

A line from a file event to a note on disk, a prompt from the hook's request to its block, and an agent's tool call that reads one
memory, each once in a small memory after one warm-up of the same kind, so that nothing is counted that is done once only. Counted
are calls of functions in this package's Python files, in all threads. Prints a table; asserts nothing.
"""

import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType

import orjson

import kite_memory
from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.distill.scheduler import ChunkHandled
from kite_memory.tools import declarations
from kite_memory.tools.store import OWNER, Asker
from kite_memory.wiring.services import Services, open_services

_OURS = str(Path(kite_memory.__file__).parent)
_SESSION = "5e551011-0000-4000-8000-0000000000aa"
_SAID = (
    "Remember that the walnut press is oiled every March before the first harvest, since dry bearings squeak.",
    "Remember that deployments of the orchard gateway need the staging certificate first, or the probe refuses them.",
)
_ASKS = ("when is the walnut press oiled, and why?", "what do deployments of the orchard gateway need first?")
_SETTLES = 1.5
"""Seconds until a session that was read may be cut into chunks."""


class Count:
    """Calls by file."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()

    @contextmanager
    def counting(self) -> Iterator[None]:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_OURS):
            self.files[frame.f_code.co_filename] += 1


def line_to_note(services: Services, transcript: Path, number: int) -> Count:
    """Append a person's line, and follow it as the daemon does after a file event."""
    at = datetime.now(UTC) - timedelta(days=1, minutes=-number)
    row = {
        "type": "user",
        "uuid": f"{number:08x}-0000-4000-8000-000000000000",
        "sessionId": _SESSION,
        "cwd": "/home/ada/orchard",
        "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "message": {"role": "user", "content": _SAID[number]},
    }
    with transcript.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    before = len(list(services.vault.notes.entries()))
    count = Count()
    with count.counting():
        for source, path in services.pipeline.sources_of([transcript]):
            services.pipeline.ingest_changed(source, path, None, stop=lambda: False)
    time.sleep(_SETTLES)
    with count.counting():
        services.pipeline.form_chunks()
        while isinstance(services.pipeline.distil(), ChunkHandled):
            pass
    if len(list(services.vault.notes.entries())) != before + 1:
        raise SystemExit("error: the line became no note")
    return count


def prompt_to_block(services: Services, number: int) -> Count:
    asked = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": f"asks-{number}",
        "cwd": "/home/ada/orchard",
        "prompt": _ASKS[number],
    }
    body = json.dumps(asked).encode()
    count = Count()
    with count.counting():
        answer = services.hooks.answer(body)
    if not answer:
        raise SystemExit("error: the prompt was given nothing")
    return count


def tool_read(services: Services) -> Count:
    def call(tool: str, arguments: dict[str, object]) -> dict[str, object]:
        asked = orjson.loads(declarations.request_body(tool, arguments, Asker(grant=OWNER, project="orchard")))
        return declarations.result_of(services.operations.perform("bridge", asked))

    call("write_memory", {"key": "press:oil", "value": "walnut oil"})
    count = Count()
    with count.counting():
        answer = call("read_memory", {"key": "press:oil"})
    if "walnut oil" not in json.dumps(answer):
        raise SystemExit("error: the memory was not read")
    return count


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kmem-paths-") as temporary:
        home = Path(temporary)
        transcript = home / "claude" / "projects" / "-home-ada-orchard" / f"{_SESSION}.jsonl"
        transcript.parent.mkdir(parents=True)
        config = Config(
            file=home / "config.toml",
            state=home / "state",
            vault=home / "memory",
            claude_root=home / "claude",
            extractor=ExtractorConfig(name="offline"),
            embedder=EmbedderConfig(name="local"),
        )
        with open_services(config) as services:
            services.init_vault()
            paths: dict[str, Callable[[int], Count]] = {
                "a line, from the watch to a note": lambda number: line_to_note(services, transcript, number),
                "a prompt, from the hook to its block": lambda number: prompt_to_block(services, number),
                "a memory read by an agent's tool call": lambda number: tool_read(services),
            }
            print(f"{'':40}{'calls':>8}{'files':>8}")
            for name, walk in paths.items():
                walk(0)
                counted = walk(1)
                print(f"{name:40}{counted.files.total():8,}{len(counted.files):8}")


if __name__ == "__main__":
    main()
