"""Search of the team's server alongside a person's own search, within a time limit. For prompts, see `team.recall`.

The query runs in a thread of its own while the local answer is computed. An answer that is late is ignored. Nothing is raised, and
results are treated as foreign text.
"""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kite_memory.errors import UsageError
from kite_memory.model.redacted import RedactedText
from kite_memory.recall.rendering import plain_line

if TYPE_CHECKING:
    from ssl import SSLContext

_LONGEST: Final = 1 << 20
_MOST: Final = 50
_TEXTS: Final = {
    "id": 80,
    "path": 400,
    "kind": 40,
    "title": 200,
    "project": 200,
    "scope": 40,
    "created": 40,
    "status": 40,
    "why": 300,
    "snippet": 300,
}
_HERE: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Access to a team's server: the ``address`` of a ``kmem serve`` with its path, and a ``token`` for it."""

    address: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        """Raise `UsageError` for an invalid address or token, or one that would send the token unencrypted to another machine."""
        not_one = UsageError("the team's address is not one", hint="set `bridge` in [team], as https://memory.example.org/mcp")
        try:
            parts = urlsplit(self.address)
            host = parts.hostname or ""
            is_one = parts.scheme in ("http", "https") and host and host.isprintable() and " " not in host and parts.port != 0
        except ValueError:  # an unclosed bracket, or an invalid port
            raise not_one from None
        if not is_one:
            raise not_one
        if parts.scheme == "http" and host not in _HERE:
            raise UsageError("the team's address does not begin with https", hint="a token would be sent in the open")
        if not self.token.isascii() or not self.token.isprintable():
            raise UsageError("the team's token is not one", hint="`kmem keys set team-token` keeps it")


class TeamConnection:
    """One connection to the team's server for the calls of one query. ``seconds`` limits each step.

    TLS is verified, by the system's certificate authorities unless ``trusted`` is given. Redirects are not followed.
    """

    def __init__(self, team: Team, *, seconds: float, trusted: "SSLContext | None" = None) -> None:
        import http.client  # imported late: needed only with a team

        parts = urlsplit(team.address)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)  # else http.client may take it from an IPv6 address
        self._failures = (OSError, http.client.HTTPException, ValueError)
        self._path = parts.path or "/mcp"
        self._token = team.token
        self._connection = (
            http.client.HTTPSConnection(host, port, timeout=seconds, context=trusted)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=seconds)
        )

    @property
    def goes_to(self) -> tuple[str, int]:
        return self._connection.host, self._connection.port

    def close(self) -> None:
        self._connection.close()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Call a tool and return its result; ``None`` on any failure. Does not raise."""
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        try:
            self._connection.request(
                "POST",
                self._path,
                body=json.dumps(request).encode(),
                headers={
                    "Authorization": f"Bearer {self._token}",
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                },
            )
            answer = self._connection.getresponse()
            response = json.loads(answer.read(_LONGEST)) if answer.status == 200 else None
        except (*self._failures, RecursionError):
            return None  # counts as no answer
        match response:
            case {"result": {"structuredContent": dict(content)}}:
                return content
            case _:
                return None


class Asking:
    """A running query."""

    def __init__(
        self, team: Team, query: RedactedText, *, kinds: Sequence[str] = (), project: str = "", limit: int = 10, seconds: float
    ) -> None:
        self._until = time.monotonic() + seconds
        self._answer: dict[str, Any] | None = None
        arguments: dict[str, Any] = {"query": query[:4_000], "limit": max(1, min(limit, _MOST))}
        if kinds:
            arguments["kinds"] = list(kinds)
        if project:
            arguments["project"] = project
        thread = threading.Thread(target=self._ask, args=(team, arguments, seconds), name="ask-team", daemon=True)
        thread.start()
        self._thread = thread

    def hits(self) -> list[dict[str, Any]]:
        """Return hits as `kmem search --json` shows them, each with ``"team": true``; empty if no answer came in time."""
        self._thread.join(max(0.0, self._until - time.monotonic()))
        return [] if self._thread.is_alive() else hits_of(self._answer)

    def _ask(self, team: Team, arguments: dict[str, Any], seconds: float) -> None:
        line = TeamConnection(team, seconds=seconds)
        try:
            self._answer = line.call("search_notes", arguments)
        finally:
            line.close()


def together(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return the best of both lists; a hit in both is returned as the local one."""
    known = {hit["id"] for hit in ours}
    both = [*ours, *(hit for hit in theirs if hit["id"] not in known)]
    return sorted(both, key=lambda hit: -hit["score"])[:limit]


def hits_of(answer: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the hits of a `search_notes` answer that can be parsed, each text limited in length."""
    listed = answer.get("hits") if answer is not None else None
    return list(_hits(listed)) if isinstance(listed, list) else []


def _hits(listed: list[Any]) -> Iterator[dict[str, Any]]:
    for hit in listed[:_MOST]:
        if isinstance(hit, dict) and isinstance(score := hit.get("score"), int | float) and 0 <= score <= 1:
            yield {"score": float(score), "team": True} | {
                name: plain_line(value, longest) if isinstance(value := hit.get(name), str) else ""
                for name, longest in _TEXTS.items()
            }
