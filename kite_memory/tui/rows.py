"""A session as lines to read: what people said by itself, what tools did folded to a line for each call."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kite_memory.timeline.resume import cut, inside

Json = Mapping[str, Any]

_SHOWN = 200
_NAME = 60
_UNFOLDED = 60
"""Lines of a call: more of them are in the transcript."""
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
_TELLS_MORE = ("tool_call", "command", "tool_result", "file_action")
JUMPS = {
    "errors": frozenset({"error"}),
    "decisions": frozenset({"decision"}),
    "tests": frozenset({"test_result"}),
    "prompts": frozenset({"user_message"}),
    "notes": frozenset({"note"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``reference`` is the citation of its event, ``note`` the path of a note that was made from it, where the row is about one.

    ``folds`` is the name of what can be unfolded there, or empty; ``holds`` are the citations of all that is folded there.
    """

    kind: str
    text: str
    status: str = ""
    reference: str = ""
    note: str = ""
    folds: str = ""
    holds: tuple[str, ...] = ()


def rows(events: Sequence[Json], notes: Sequence[Json] = (), cwd: str = "", unfolded: Collection[str] = ()) -> Iterator[Row]:
    """In the events' order. ``unfolded`` names the rows that are shown with all there is of them."""
    made: dict[str, list[str]] = {}
    for note in notes:
        for reference in note["evidence"]:
            made.setdefault(reference, []).append(note["path"])
    of_call: dict[str, list[Json]] = {}
    for event in events:
        if event["call"] and event["type"] in _TELLS_MORE:
            of_call.setdefault(event["call"], []).append(event)
    begun: set[str] = set()
    for event in events:
        call = event["call"]
        if event["type"] in _BY_THEMSELVES:
            folds = event["id"] if _has_more(event["text"]) else ""
            yield _row(event, cut(event["text"], _SHOWN), event["status"], folds)
            if event["id"] in unfolded:
                yield from _whole(event, event["text"])
        elif not call:
            yield _row(event, cut(event["command"] or inside(event["path"], cwd) or event["text"], _SHOWN), event["status"])
        elif call not in begun:
            begun.add(call)
            yield _folded(event, of_call[call], cwd)
            if call in unfolded:
                for part in of_call[call]:
                    yield from _whole(part, part["command"] or part["text"])
        for path in made.pop(event["reference"], ()):
            yield Row(kind="note", text=f"{'':23}note     {path}", reference=event["reference"], note=path)


def place_of(told: Sequence[Row], cited: str) -> int | None:
    """Where an event stands; ``cited`` may name its session by the beginning of its id. Folded, it stands where its call does."""
    session, _, event = cited.rpartition("#")

    def is_it(reference: str) -> bool:
        return reference.startswith(session) and reference.endswith(f"#{event}")

    by_itself = (at for at, row in enumerate(told) if row.reference and is_it(row.reference))
    folded = (at for at, row in enumerate(told) if any(map(is_it, row.holds)))
    return next(by_itself, next(folded, None))


def following(told: Sequence[Row], at: int, kinds: Collection[str], *, backwards: bool = False) -> int | None:
    """The next row of such a kind; ``None`` where there is none that way."""
    places = range(at - 1, -1, -1) if backwards else range(at + 1, len(told))
    return next((place for place in places if told[place].kind in kinds), None)


def _folded(event: Json, parts: Sequence[Json], cwd: str) -> Row:
    what = next((part["command"] for part in parts if part["command"]), "") or inside(event["path"], cwd) or event["text"]
    status = next((part["status"] for part in reversed(parts) if part["status"]), "")
    name = cut(event["tool"], _NAME) or event["type"].replace("_", " ")
    row = _row(event, f"{name}: {cut(what, _SHOWN)}", status, event["call"])
    return replace(row, holds=tuple(dict.fromkeys(part["reference"] for part in parts)))


def _row(event: Json, text: str, status: str, folds: str = "") -> Row:
    ended = f"  ({status})" if status not in ("", "ok") and event["type"] != "error" else ""
    at = event["at"][5:16].replace("T", " ")
    return Row(
        kind=event["type"],
        text=f"{at}  #{event['id'][:8]:8}  {_MARKS.get(event['type'], ''):8} {text}{ended}",
        status=status,
        reference=event["reference"],
        folds=folds,
    )


def _has_more(text: str) -> bool:
    return "\n" in text.strip() or len(text) > _SHOWN


def _whole(event: Json, text: str) -> Iterator[Row]:
    lines = text.strip("\n").split("\n")
    for line in lines[:_UNFOLDED]:
        yield Row(kind="more", text=f"{'':32}{line}", status=event["status"], reference=event["reference"])
    if len(lines) > _UNFOLDED:
        yield Row(kind="more", text=f"{'':32}… {len(lines) - _UNFOLDED} more lines", reference=event["reference"])


def session_row(each: Json) -> Row:
    """A session in a list of them."""
    parts = [f"{each['prompts']:>3}p", f"{each['errors']}e" if each["errors"] else "", f"{each['tests']}t" if each["tests"] else ""]
    counts = " ".join(filter(None, parts))
    text = f"{each['last'][5:16].replace('T', ' ')}  {each['project'] or '-':14.14}  {counts:12}  {each['title'] or each['branch']}"
    status = "failed" if each["failed_tests"] else ""
    return Row(kind="session", text=text, status=status, reference=f"{each['provider']}:{each['id']}")


def matching(sessions: Sequence[Json], typed: str) -> list[Json]:
    """Those that have every word that was typed, in any of what is known of them."""
    words = typed.casefold().split()
    return [each for each in sessions if all(word in _known(each) for word in words)]


def _known(each: Json) -> str:
    return " ".join((each["title"], each["project"], each["provider"], each["id"], each["branch"], each["last"][:10])).casefold()
