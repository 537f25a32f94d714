"""State carried from earlier lines of a Codex rollout to later ones, small enough for a cursor."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from kite_memory.sources.common.event_builder import OpenCalls

_VERSION = 1
_HEADERS = 8
_MESSAGES = 48
_ANSWERED = 64
_PROCESSES = 8
_UNKNOWN = 32
_PATCHES = 6
_PATCHED_FILES = 16
EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(slots=True, kw_only=True)
class Header:
    """Session that lines belong to, from a ``session_meta``. ``sub_agent`` means that an agent writes the prompts.

    ``branch`` is the last known branch of the repository.
    """

    id: str
    started: datetime
    cwd: str = ""
    branch: str = ""
    parent: str = ""
    sub_agent: bool = False
    repository_url: str = ""


def created_ms(id: str) -> int | None:
    """Return the creation time in milliseconds in a UUIDv7; ``None`` for any other id."""
    if len(id) != 36 or id[14] != "7":
        return None
    try:
        return int(id[:8] + id[9:13], 16)
    except ValueError:
        return None


@dataclass(slots=True, kw_only=True)
class RolloutState:
    """State of a rollout at a line.

    A fork's rollout starts with its own header, then its parent's header and messages, then its own turns. ``headers`` has the
    file's own first; ``speaking`` is the index of the header whose turn is being read. ``messages`` counts recent messages in both
    of their renderings, as an item and as an event; ``answered`` names calls whose results have arrived. ``elsewhere`` are open
    calls that run in another folder than the session's. ``processes`` are commands that still run, by the name under which a later
    call requests their output.
    """

    headers: list[Header] = field(default_factory=list)
    speaking: int = 0
    turn: str = ""
    turns: int = 0
    agent_spoke: bool = False
    last_at: datetime = EPOCH
    ordinal: int = 0
    title: str = ""
    ours: bool = False
    message: str = ""
    calls: OpenCalls = field(default_factory=OpenCalls)
    patches: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    processes: dict[str, str] = field(default_factory=dict)
    messages: dict[str, list[int]] = field(default_factory=dict)
    answered: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def header(self) -> Header:
        return self.headers[self.speaking]

    def add(self, header: Header) -> None:
        """Add a header; ignore one that repeats another or cannot be an ancestor's.

        The first header is the file's own; those of the threads it was forked from follow before any turn.
        """
        own = self.headers[0] if self.headers else None
        known = next((each for each in self.headers if each.id == header.id), None)
        if own is None:
            self.headers.append(header)
        elif known is not None:
            known.cwd, known.branch = known.cwd or header.cwd, header.branch or known.branch
            known.repository_url = known.repository_url or header.repository_url
        elif not self._begun and len(self.headers) < _HEADERS:
            earlier, later = created_ms(header.id), created_ms(own.id)
            if earlier is not None and later is not None and earlier <= later:
                self.headers.append(header)
                self.speaking = len(self.headers) - 1

    @property
    def _begun(self) -> bool:
        """Whether any turn, message or call was read."""
        return bool(self.turn or self.messages or self.answered or self.calls.by_name)

    def owner(self, turn: str) -> int:
        """Return the index of the header that a turn belongs to: of the threads that existed when it began, the youngest."""
        at = created_ms(turn)
        if len(self.headers) < 2 or at is None:
            return self.speaking
        born_before = [(when, n) for n, each in enumerate(self.headers) if (when := created_ms(each.id)) is not None and when <= at]
        return max(born_before, default=(0, self.speaking))[1]

    def counted(self, key: str, rendering: int) -> int | None:
        """Return the message's number, counted from 0; ``None`` if its other rendering was read already."""
        counts = self.messages.pop(key, [0, 0])
        self.messages[key] = counts
        while len(self.messages) > _MESSAGES:
            del self.messages[next(iter(self.messages))]
        counts[rendering] += 1
        return counts[rendering] - 1 if counts[rendering] > counts[1 - rendering] else None

    def close(self, call: str) -> None:
        self.answered.append(call)
        del self.answered[:-_ANSWERED]

    def run_elsewhere(self, call: str) -> None:
        self.elsewhere.append(call)
        del self.elsewhere[:-_PROCESSES]

    def keep_process(self, name: str, command: str) -> None:
        self.processes.pop(name, None)
        self.processes[name] = command
        while len(self.processes) > _PROCESSES:
            del self.processes[next(iter(self.processes))]

    def keep_patch(self, call: str, files: tuple[tuple[str, str], ...]) -> None:
        self.patches[call] = list(files[:_PATCHED_FILES])
        while len(self.patches) > _PATCHES:
            del self.patches[next(iter(self.patches))]

    def new_to_us(self, what: str) -> bool:
        """Return whether this unknown name occurs for the first time."""
        if what in self.unknown or len(self.unknown) >= _UNKNOWN:
            return False
        self.unknown.append(what)
        return True

    def carried(self) -> str:
        return orjson.dumps(
            {
                "v": _VERSION,
                "headers": [
                    [each.id, each.started, each.cwd, each.branch, each.parent, each.sub_agent, each.repository_url]
                    for each in self.headers
                ],
                "speaking": self.speaking,
                "turn": [self.turn, self.turns, self.agent_spoke],
                "at": self.last_at,
                "ordinal": self.ordinal,
                "title": self.title,
                "ours": self.ours,
                "message": self.message,
                "calls": self.calls.carried(),
                "patches": self.patches,
                "processes": self.processes,
                "messages": [[key, *counts] for key, counts in self.messages.items()],
                "answered": self.answered,
                "elsewhere": self.elsewhere,
                "unknown": self.unknown,
            }
        ).decode()

    @staticmethod
    def resumed(carry: str) -> "RolloutState | None":
        """Parse what `carried` returned; return ``None`` if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(carry)
            if known["v"] != _VERSION:
                return None
            if not 0 <= known["speaking"] <= max(0, len(known["headers"]) - 1):
                return None
            return RolloutState(
                headers=[
                    Header(
                        id=id,
                        started=datetime.fromisoformat(started),
                        cwd=cwd,
                        branch=branch,
                        parent=parent,
                        sub_agent=sub,
                        repository_url=url[0] if url else "",
                    )
                    for id, started, cwd, branch, parent, sub, *url in known["headers"]
                ],
                speaking=known["speaking"],
                turn=known["turn"][0],
                turns=known["turn"][1],
                agent_spoke=known["turn"][2],
                last_at=datetime.fromisoformat(known["at"]),
                ordinal=known["ordinal"],
                title=known["title"],
                ours=known["ours"],
                message=known["message"],
                calls=OpenCalls.resumed(known["calls"]),
                patches={call: [(path, how) for path, how in files] for call, files in known["patches"].items()},
                processes=dict(known["processes"]),
                messages={key: [item, event] for key, item, event in known["messages"]},
                answered=list(known["answered"]),
                elsewhere=list(known.get("elsewhere", [])),
                unknown=list(known["unknown"]),
            )
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return None
