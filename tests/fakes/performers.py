"""Stand-ins for the bridge behind an MCP server."""

import threading
from dataclasses import dataclass, field

from kite_memory.errors import NoteNotFound
from kite_memory.tools.declarations import Json
from kite_memory.tools.store import Asker, Conflict

NOTE = {"id": "n1", "path": "topics/tea-mar26.md", "title": "Tea & biscuits", "kind": "fact", "project": "mycelia"}


@dataclass(slots=True)
class Performer:
    """Answers each tool with something of its shape, and keeps what it was asked. ``hold`` keeps `read_memory` waiting."""

    asked: list[tuple[str, Json, Asker]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    held: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    waiting: bool = False

    def perform(self, tool: str, arguments: Json, asker: Asker) -> Json:
        self.asked.append((tool, arguments, asker))
        match tool:
            case "write_memory" if arguments.get("expected_version") == 1:
                raise Conflict("somebody has written since", version=2, hint="read_memory shows it")
            case "write_memory":
                return {"key": arguments["key"], "scope": "project", "version": 1}
            case "read_memory":
                if self.waiting:
                    self.held.release()
                    self.hold.wait(30)
                return {"key": arguments["key"], "value": 7}
            case "forget":
                raise ZeroDivisionError("a bug")
            case "get_note" if arguments["note"] == "n1":
                return {**NOTE, "text": "# Tea\n\nWith biscuits."}
            case "get_note":
                raise NoteNotFound("no such note", hint="search_notes finds its id")
            case "recent_notes":
                return {"notes": [NOTE]}
            case "smart_resume":
                return {
                    "briefing": f"You were brewing {arguments.get('session_id', 'tea')}.",
                    "context": {"current": {"current.kettle": "on"}},
                    "token_count": 5,
                }
            case "list_memories":
                return {"memories": []}
            case "search_notes":
                return {"hits": [{"id": str(number), "snippet": "x" * 1_000} for number in range(100)]}
            case _:
                return {"text": f"{tool} was asked"}
