"""Delivery of what was selected: notes are claimed for their session, and the occasion is logged, once the reply has arrived."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from kite_memory.model.hit import Injection
from kite_memory.recall.session_memory import Occasion, SessionMemory


class Delivery:
    """Actions to run once a reply has arrived, or once it is lost. Whichever of the two comes first takes effect; the other does
    nothing.
    """

    def __init__(self) -> None:
        self._arrived: list[Callable[[], object]] = []
        self._lost: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        """Return whether any action is registered."""
        return bool(self._arrived or self._lost)

    def when(self, *, arrived: Callable[[], object] = lambda: None, lost: Callable[[], object] = lambda: None) -> None:
        self._arrived.append(arrived)
        self._lost.append(lost)

    def arrived(self) -> None:
        self._end(self._arrived)

    def lost(self) -> None:
        self._end(self._lost)

    def _end(self, steps: Sequence[Callable[[], object]]) -> None:
        steps = tuple(steps)
        self._arrived.clear()
        self._lost.clear()
        with ExitStack() as each:  # a failing step does not prevent the others
            for step in reversed(steps):
                each.callback(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a reply is to show. ``claimed`` are the notes that count as shown with it. Without an ``occasion`` nothing is logged."""

    injection: Injection
    occasion: Occasion | None = None
    claimed: tuple[str, ...] = ()


def silence(reason: str) -> Injection:
    return Injection(block="", hits=(), reason=reason)


def deliver(select: Callable[[], Selection], memory: SessionMemory, delivery: Delivery | None = None) -> Injection:
    """Select what to show, claim it for the session and log the occasion, as `give` does. Raises nothing.

    If another reply of the session has claimed one of the notes first, nothing is shown. A prompt is logged nevertheless, since
    silent prompts are counted.
    """
    try:
        selection = select()
        occasion = selection.occasion
        if occasion is None or give(memory, selection.claimed, occasion, delivery):
            return selection.injection
        silent = silence("already shown in this session")
        if occasion.moment == "prompt":
            give(memory, (), replace(occasion, given=(), reason=silent.reason), delivery)
    except sqlite3.Error as error:
        return silence(f"the memory of what was shown cannot be used: {error}")
    return silent


def give(memory: SessionMemory, notes: Sequence[str], occasion: Occasion, delivery: Delivery | None = None) -> bool:
    """Claim the notes for the occasion's session and log it: all of them, or none if another reply has claimed one first.

    With a ``delivery`` this happens once it arrives; until then the notes are reserved. Whatever the occasion gives beyond
    ``notes`` counts as shown by title only and may be shown again.
    """
    session = occasion.session
    if delivery is None:
        if session and notes and not memory.claim(session, notes, occasion.at):
            return False
        memory.log(notes, occasion)
        return True
    if not memory.reserve(session, notes):
        return False
    delivery.when(arrived=partial(memory.confirm, notes, occasion), lost=partial(memory.release, session, notes))
    return True
