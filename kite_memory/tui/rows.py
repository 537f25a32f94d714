"""Rows of a session: messages by themselves, tool calls folded to one line each."""

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kite_memory.text.display import clip_line
from kite_memory.timeline.progress import inside

Json = Mapping[str, Any]

_SHOWN = 200
_NAME = 60
_UNFOLDED = 60
"""Limit of lines for an unfolded call. The transcript has the rest."""
_MARKS = {
    "user_message": "you",
    "assistant_message": "agent",
    "tool_call": "  tool",
    "command": "  run",
    "file_action": "  file",
    "tool_result": "  result",
    "error": "  ERROR",
    "test_result": "  TEST",
    "decision": "DECIDED",
    "resume_point": "-",
}
_BY_THEMSELVES = frozenset({"user_message", "assistant_message", "decision", "error", "test_result", "resume_point"})
_WITH_DETAILS = ("tool_call", "command", "tool_result", "file_action")
_TALK = frozenset({"user_message", "assistant_message", "decision"})
_CHECKS = frozenset({"error", "test_result"})
VIEWS: Mapping[str, frozenset[str]] = {
    "everything": frozenset(),
    "talk": _TALK,
    "failures and tests": _CHECKS,
    "files and commands": frozenset({"tool_call", "command", "file_action", "tool_result"}),
    "notes": frozenset({"note", "decision"}),
}
"""Kinds that can be shown alone, in the order of switching. A failed event counts as a failure whatever its kind."""
JUMPS = {
    "errors": frozenset({"error"}),
    "decisions": frozenset({"decision"}),
    "tests": frozenset({"test_result"}),
    "prompts": frozenset({"user_message"}),
    "notes": frozenset({"note"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRow:
    """One line of the view.

    ``reference`` is the citation of its event, ``note`` the path of a note that was made from it, if the row is about one.
    ``folds`` is the name of what can be unfolded there, or empty; ``holds`` are the citations of all that is folded there.
    """

    kind: str
    text: str
    status: str = ""
    reference: str = ""
    note: str = ""
    folds: str = ""
    holds: tuple[str, ...] = ()


def rows(
    events: Sequence[Json],
    notes: Sequence[Json] = (),
    cwd: str = "",
    unfolded: Collection[str] = (),
    *,
    width: int = 0,
    ids: bool = True,
) -> Iterator[ViewRow]:
    """Yield the rows in the events' order.

    ``unfolded`` names the rows that are shown in full, wrapped if a width is given. Without ``ids`` a row has no id in it, which
    leaves more room for its text.
    """
    page = _Page(width=width, ids=ids)
    made: dict[str, list[str]] = {}
    for note in notes:
        for reference in note["evidence"]:
            made.setdefault(reference, []).append(note["path"])
    of_call: dict[str, list[Json]] = {}
    for event in events:
        if event["call"] and event["type"] in _WITH_DETAILS:
            of_call.setdefault(event["call"], []).append(event)
    begun: set[str] = set()
    for event in events:
        call = event["call"]
        if event["type"] in _BY_THEMSELVES:
            folds = event["id"] if _has_more(event["text"], page) else ""
            yield _row(event, clip_line(event["text"], _SHOWN), event["status"], page, folds)
            if event["id"] in unfolded:
                yield from _whole(event, event["text"], page)
        elif not call:
            yield _row(
                event, clip_line(event["command"] or inside(event["path"], cwd) or event["text"], _SHOWN), event["status"], page
            )
        elif call not in begun:
            begun.add(call)
            yield _folded(event, of_call[call], cwd, page)
            if call in unfolded:
                for part in of_call[call]:
                    yield from _whole(part, part["command"] or part["text"], page)
        for path in made.pop(event["reference"], ()):
            yield ViewRow(kind="note", text=f"{'':{page.indent - 9}}note     {path}", reference=event["reference"], note=path)


def place_of(rows: Sequence[ViewRow], cited: str) -> int | None:
    """Return the place of an event's row; for a folded event, that of its call.

    ``cited`` may name its session by the beginning of its id.
    """
    session, _, event = cited.rpartition("#")

    def is_it(reference: str) -> bool:
        return reference.startswith(session) and reference.endswith(f"#{event}")

    by_itself = (at for at, row in enumerate(rows) if row.reference and is_it(row.reference))
    folded = (at for at, row in enumerate(rows) if any(map(is_it, row.holds)))
    return next(by_itself, next(folded, None))


def following(rows: Sequence[ViewRow], at: int, kinds: Collection[str], *, backwards: bool = False) -> int | None:
    """Return the place of the next row of these kinds, or ``None``."""
    places = range(at - 1, -1, -1) if backwards else range(at + 1, len(rows))
    return next((place for place in places if rows[place].kind in kinds), None)


def _folded(event: Json, parts: Sequence[Json], cwd: str, page: "_Page") -> ViewRow:
    what = next((part["command"] for part in parts if part["command"]), "") or inside(event["path"], cwd) or event["text"]
    status = next((part["status"] for part in reversed(parts) if part["status"]), "")
    name = clip_line(event["tool"], _NAME) or event["type"].replace("_", " ")
    row = _row(event, f"{name}: {clip_line(what, _SHOWN)}", status, page, event["call"])
    return replace(row, holds=tuple(dict.fromkeys(part["reference"] for part in parts)))


def _row(event: Json, text: str, status: str, page: "_Page", folds: str = "") -> ViewRow:
    ended = f"  ({status})" if status not in ("", "ok") and event["type"] != "error" else ""
    at = event["at"][5:16].replace("T", " ")
    name = f"#{event['id'][:8]:8}  " if page.ids else ""
    return ViewRow(
        kind=event["type"],
        text=f"{at}  {name}{_MARKS.get(event['type'], ''):8} {text}{ended}",
        status=status,
        reference=event["reference"],
        folds=folds,
    )


def _has_more(text: str, page: "_Page") -> bool:
    return "\n" in text.strip() or len(text) > min(_SHOWN, page.seen)


def _whole(event: Json, text: str, page: "_Page") -> Iterator[ViewRow]:
    lines = [piece for line in text.strip("\n").split("\n") for piece in page.wrapped(line)]
    for line in lines[:_UNFOLDED]:
        yield ViewRow(kind="more", text=f"{'':{page.indent}}{line}", status=event["status"], reference=event["reference"])
    if len(lines) > _UNFOLDED:
        more = f"… {len(lines) - _UNFOLDED} more lines"
        yield ViewRow(kind="more", text=f"{'':{page.indent}}{more}", reference=event["reference"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    width: int
    ids: bool

    @property
    def indent(self) -> int:
        return 32 if self.ids else 22

    @property
    def seen(self) -> int:
        """The characters of a text that its row surely shows."""
        return max(_NARROWEST, self.width - self.indent) if self.width else _SHOWN

    def wrapped(self, line: str) -> list[str]:
        room = self.width - self.indent
        return [line] if room < _NARROWEST or len(line) <= room else textwrap.wrap(line, room, drop_whitespace=False) or [line]


_NARROWEST = 20


def in_view(rows: Sequence[ViewRow], kinds: Collection[str]) -> list[ViewRow]:
    """Return the rows of these kinds, with the unfolded ones below them; all rows if no kind is given."""
    if not kinds:
        return list(rows)
    kept: list[ViewRow] = []
    shown = False
    for row in rows:
        if row.kind != "more":
            shown = row.kind in kinds or (row.status == "failed" and kinds == _CHECKS)
        if shown:
            kept.append(row)
    return kept


def holding(events: Sequence[Json], typed: str) -> frozenset[str]:
    """Return the citations of events that hold all typed words, wherever a row may have folded them."""
    words = typed.casefold().split()
    return frozenset(
        event["reference"]
        for event in events
        if words and all(word in f"{event['text']} {event['command']} {event['path']}".casefold() for word in words)
    )


def next_holding(rows: Sequence[ViewRow], at: int, references: frozenset[str], *, backwards: bool = False) -> int | None:
    """Return the place of the next row for one of these events, starting again from the other end if needed."""
    places = [
        place
        for place, row in enumerate(rows)
        if row.kind != "more" and (row.reference in references or not references.isdisjoint(row.holds))
    ]
    if backwards:
        return next((place for place in reversed(places) if place < at), places[-1] if places else None)
    return next((place for place in places if place > at), places[0] if places else None)


def session_row(each: Json) -> ViewRow:
    """Return the row of a session in the list."""
    parts = [f"{each['prompts']:>3}p", f"{each['errors']}e" if each["errors"] else "", f"{each['tests']}t" if each["tests"] else ""]
    counts = " ".join(filter(None, parts))
    text = f"{each['last'][5:16].replace('T', ' ')}  {each['project'] or '-':14.14}  {counts:12}  {name_of(each)}"
    status = "failed" if each["failed_tests"] else ""
    return ViewRow(kind="session", text=text, status=status, reference=f"{each['provider']}:{each['id']}")


def name_of(each: Json) -> str:
    """Return the session's title, or else its first prompt."""
    return str(each["title"] or each.get("opening") or each["branch"])


def matching(sessions: Sequence[Json], typed: str) -> list[Json]:
    """Return the sessions that have every typed word in any of their fields."""
    words = typed.casefold().split()
    return [each for each in sessions if all(word in _known(each) for word in words)]


def _known(each: Json) -> str:
    return " ".join((name_of(each), each["project"], each["provider"], each["id"], each["branch"], each["last"][:10])).casefold()
