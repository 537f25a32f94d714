"""What came of a prompt: a summary in a line or two of the calls that an agent made until the next prompt."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from kite_memory.model.event import PLANNING, Event, EventType, Status, Where
from kite_memory.timeline.resume import changed_files, cut
from kite_memory.timeline.runs import Run, bare, commits, runs

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a query with its values and returns all rows."""

_CALLS = 400
"""Most events read per prompt; of more, the last ones, which show how it ended."""
_READ = 2_000
_FILES = 6
_COMMANDS = 4
_PATH, _COMMAND, _FAILURE, _SUBJECT = 80, 80, 100, 80
_PROMPT, _ANSWER, _TALK = 350, 300, 900
"""Lengths in characters. Plain conversation has no outcome besides the answer, so more of the answer is kept."""

OPENS = f"({{0}}.type = 'user_message' OR {{0}}.type = 'decision' AND {{0}}.role = 'user' AND {{0}}.tool = '{PLANNING}')"
"""The same as `model.event.opens_turn`."""
_PROMPTED = (
    "SELECT e.session, e.ordinal, COALESCE((SELECT n.ordinal FROM events AS n"  # noqa: S608 - ours
    " WHERE n.session = e.session AND n.ordinal > e.ordinal"
    f" AND {OPENS.format('n')} ORDER BY n.ordinal LIMIT 1), 1 << 62), SUBSTR(e.text, 1, ?), s.cwd, s.id, s.provider"
    f" FROM events AS e JOIN sessions AS s ON s.key = e.session WHERE e.seq = ? AND {OPENS.format('e')}"
)
_FOLLOWED = (
    "SELECT id, ordinal, at, type, SUBSTR(text, 1, ?), tool, SUBSTR(command, 1, 4000), path, status, parent, call FROM events"
    " WHERE session = ? AND ordinal > ? AND ordinal < ? AND type <> 'tool_call' AND id NOT IN (SELECT event FROM let_go)"
    " ORDER BY ordinal DESC, seq DESC LIMIT ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOutcome:
    """What came of a prompt.

    ``came`` is a one-line summary, empty for plain conversation; ``answer`` is the agent's last message.
    """

    prompt: str
    came: str
    answer: str

    @property
    def text(self) -> str:
        return "\n".join(filter(None, (self.prompt, self.came, self.answer)))


def prompt_outcome(rows: Rows, prompt: int, *, talk: int = 0) -> PromptOutcome | None:
    """Return what came of the prompt, or ``None``.

    ``None`` is returned if the row is not a prompt, or if nothing was changed, checked or committed after it and no failure has a
    message of its own. With ``talk``, an answer of at least that many characters is enough.
    """
    for session, ordinal, until, text, cwd, name, provider in rows(_PROMPTED, (_PROMPT, prompt)):
        followed = [_event(row, name, provider) for row in rows(_FOLLOWED, (_READ, session, ordinal, until, _CALLS))][::-1]
        came = "; ".join(_result_lines(followed, cwd))
        said = (event.text for event in reversed(followed) if event.type is EventType.ASSISTANT_MESSAGE)
        answer = next((text for text in said if text.strip()), "")
        if came or 0 < talk <= len(answer):
            return PromptOutcome(prompt=cut(text, _PROMPT), came=came, answer=cut(answer, _ANSWER if came else _TALK))
    return None


def steps(rows: Rows, prompt: int) -> list[int]:
    """Return the rows of the events that the prompt led to; empty if the row is not a prompt."""
    return [
        step
        for session, ordinal, until, *_ in rows(_PROMPTED, (0, prompt))
        for (step,) in rows(
            "SELECT seq FROM events WHERE session = ? AND ordinal > ? AND ordinal < ? ORDER BY ordinal DESC LIMIT ?",
            (session, ordinal, until, _CALLS),
        )
    ]


def _result_lines(events: Sequence[Event], cwd: str) -> Iterator[str]:
    files, done, made = changed_files(events, cwd), runs(events, cwd), commits(events)
    if not (files or made or any(run.is_check or (run.outcome == "failed" and run.signature) for run in done if run.purposes)):
        return
    by_action: dict[str, list[str]] = {}
    for file in files[:_FILES]:
        by_action.setdefault(file.action, []).append(_end(file.path))
    for action, paths in by_action.items():
        yield f"{action} {', '.join(paths)}"
    ran: dict[str, list[Run]] = {}
    for run in done:
        if run.purposes and run.outcome != "unknown" and (command := cut(bare(run.command), _COMMAND)):
            ran.setdefault(command, []).append(run)
    weightiest = sorted(ran, key=lambda command: (not ran[command][-1].is_check, -ran[command][-1].place))[:_COMMANDS]
    for command in sorted(weightiest, key=lambda command: ran[command][0].place):
        yield f"ran {command}: {_ended(ran[command])}"
    for commit in made[-1:]:
        yield f"committed {cut(commit.subject, _SUBJECT)}"


def _end(path: str) -> str:
    line = " ".join(path[-8 * _PATH :].split())
    return line if len(line) <= _PATH else f"…{line[1 - _PATH :]}"


def _ended(same: Sequence[Run]) -> str:
    """Describe the outcome of a command that was run several times, and whether it failed before."""
    failed = [run for run in same if run.outcome == "failed"]
    why = next((cut(run.signature, _FAILURE) for run in reversed(failed) if run.signature), "")
    because = f" ({why})" if why else ""
    if same[-1].outcome == "failed":
        return f"failed{because}"
    return f"went well, having failed before{because}" if failed else "went well"


def _event(row: Sequence[Any], session: str, provider: str) -> Event:
    """Build an event with the fields used here."""
    return Event(
        id=row[0],
        session=session,
        provider=provider,
        ordinal=row[1],
        at=datetime.fromisoformat(row[2]),
        role="tool",
        type=EventType(row[3]),
        text=row[4],
        where=Where(file="", start=0, end=0),
        tool=row[5],
        command=row[6],
        path=row[7],
        status=cast(Status, row[8]),
        parent=row[9],
        call=row[10],
    )
