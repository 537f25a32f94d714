"""Division of a session into finished chunks."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kite_memory.model.event import Event, EventType, opens_turn

_WEIGHT_CAP = {
    EventType.USER_MESSAGE: 4000,
    EventType.ASSISTANT_MESSAGE: 1200,
    EventType.DECISION: 4000,
    EventType.RESUME_POINT: 1200,
    EventType.ERROR: 400,
    EventType.TEST_RESULT: 200,
    EventType.COMMAND: 160,
}
"""Approximate characters of an event once condensed. Results and plain calls are shortened or dropped there."""

_RESTING = (EventType.ASSISTANT_MESSAGE, EventType.RESUME_POINT)
_MESSAGES = (EventType.USER_MESSAGE, *_RESTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPolicy:
    """When a chunk ends. ``target`` and ``most`` are approximate characters of condensed text.

    The end of a turn past ``target`` closes a chunk; past ``most`` the next boundary between two messages does, past twice that any
    event. ``idle`` seconds of silence close a chunk that ends with the agent's message, if it is ``urgent`` or weighs ``target``;
    any other is closed by ``stalled`` seconds. With a paid model each chunk costs the fixed part of the prompt again, so only what
    a person explicitly asked to keep should be urgent.

    With ``at_pauses`` a past silence counts too: a session read afterwards is divided where it would have been divided live.
    """

    target: int = 14_000
    most: int = 40_000
    idle: float = 120.0
    stalled: float = 900.0
    urgent: Callable[[Sequence[Event]], bool] = lambda events: True
    at_pauses: bool = False


PAID = ChunkPolicy(target=56_000, most=72_000)
"""Policy for paid models: each call costs the fixed part of the prompt, and fifteen thousand tokens are read as well as four."""

FREE = ChunkPolicy(target=100_000, most=200_000, idle=3.0, at_pauses=True)
"""Policy for calls that cost nothing: soon after each pause, and with the same division for a session that is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Identity and bounds of a chunk, as the outbox stores them. Both ordinals are inclusive; the events' ids stay valid when
    ordinals change.
    """

    id: str
    provider: str
    session: str
    first: int
    last: int
    weight: int
    first_event: str = ""
    last_event: str = ""


def finished(events: Sequence[Event], policy: ChunkPolicy, *, quiet_for: float) -> Iterator[Span]:
    """Yield the finished chunks at the front of ``events``, in order; the rest is still in progress.

    ``events`` are one session's, in order, none of them in a chunk yet.
    """
    begin, weight = 0, 0
    for index, event in enumerate(events):
        if (event.type is EventType.USER_MESSAGE or opens_turn(event)) and weight >= policy.target:
            yield _span(events[begin:index], weight)
            begin, weight = index, 0
        weight += _weigh(event)
        following = events[index + 1].type if index + 1 < len(events) else None
        too_long = (weight >= policy.most and following in _MESSAGES) or weight >= 2 * policy.most
        if following is not None and (too_long or (policy.at_pauses and _paused(events, begin, index, policy))):
            yield _span(events[begin : index + 1], weight)
            begin, weight = index + 1, 0
    if begin < len(events) and quiet_for >= silence_needed(events[begin:], policy):
        yield _span(events[begin:], weight)


def _paused(events: Sequence[Event], begin: int, index: int, policy: ChunkPolicy) -> bool:
    """Return whether the silence after an event was long enough to close the events from ``begin`` to it."""
    silence = (events[index + 1].at - events[index].at).total_seconds()
    return silence >= policy.idle and silence >= silence_needed(events[begin : index + 1], policy)


def silence_needed(left_over: Sequence[Event], policy: ChunkPolicy) -> float:
    """Return the seconds of silence after which the remaining events count as finished.

    A pause between a person's message and the agent's reply, or between a call and its result, does not count as an end.
    """
    at_rest = bool(left_over) and left_over[-1].type in _RESTING and worth_asking(left_over)
    if at_rest and (sum(map(_weigh, left_over)) >= policy.target or policy.urgent(left_over)):
        return policy.idle
    return max(policy.idle, policy.stalled)


def _weigh(event: Event) -> int:
    return min(len(event.text) or len(event.command), _WEIGHT_CAP.get(event.type, 40)) + 12


def _span(events: Sequence[Event], weight: int) -> Span:
    first, last = events[0], events[-1]
    name = "\0".join((first.provider, first.session, first.id, last.id))
    return Span(
        id=hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        provider=first.provider,
        session=first.session,
        first=first.ordinal,
        last=last.ordinal,
        weight=weight,
        first_event=first.id,
        last_event=last.id,
    )


def middle(events: Sequence[Event]) -> int | None:
    """Return the ordinal at which to divide a chunk's ``events``: that of the message nearest to their middle; ``None`` for a
    single event.
    """
    if len(events) < 2:
        return None
    half = len(events) / 2
    places = [place for place in range(1, len(events)) if events[place].type in _MESSAGES] or list(range(1, len(events)))
    return events[min(places, key=lambda place: (abs(place - half), place))].ordinal


def worth_asking(events: Sequence[Event]) -> bool:
    """Return whether there is enough text to extract from; no call is made for "yes" and a file listing."""
    said = sum(
        len(event.text)
        for event in events
        if event.type in (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.DECISION, EventType.RESUME_POINT)
    )
    return said >= 80
