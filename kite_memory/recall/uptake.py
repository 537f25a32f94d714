"""Whether a note that was shown was taken up, read from what the agent said and did next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Note
from kite_memory.recall.note_fingerprint import Sign, leveled, signs_of, telling

Outcome = Literal["used", "ignored", "unknown"]

_TEXT_READ = 20_000
_NAMED = 3
_SAID_LENGTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Uptake:
    """``why`` names what the agent took from the note, or says why that cannot be told."""

    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    sign: Sign
    event: Event


def uptake(note: Note, *, before: Sequence[Event], after: Iterable[Event]) -> Uptake:
    """``before`` is what the session had heard when the note was shown, its prompt included; ``after`` the turn that followed.

    Used means that the agent was the first to come out with something that the note knows, and that nobody had mentioned in
    this session: not before the showing, and not between it and the agent's word (a tool that printed it tells as well as
    the note). What somebody else said first proves nothing, either way.
    """
    signs = signs_of(note)
    if not telling(signs.own):
        return Uptake(outcome="unknown", why="nothing in it is distinctive")
    after = list(after)
    if not any(_is_agents(event) for event in after):
        return Uptake(outcome="unknown", why="the agent has not done anything since")
    first, second = _met((*signs.own, *signs.rejected), after)
    unheard = set(_unheard([met.sign for met in (*first, *second)], before))
    first = [met for met in first if met.sign in unheard]
    taken = [met for met in first if met.sign in signs.own]
    if telling([met.sign for met in taken]):
        return Uptake(outcome="used", why=_named(taken))
    echoed = [*taken, *(met for met in second if met.sign in unheard and met.sign in signs.own)]
    if telling([met.sign for met in echoed]):
        return Uptake(outcome="unknown", why=f"the agent had just been told of it: {_named(echoed)}")
    against = [met for met in first if met.sign in signs.rejected]
    if telling([met.sign for met in against]):
        return Uptake(outcome="unknown", why=f"what it rejects came up, for or against: {_named(against)}")
    if echoed:
        return Uptake(outcome="unknown", why=f"too little of it to tell from chance: {_named(echoed)}")
    if not telling(_unheard(signs.own, before)):
        return Uptake(outcome="unknown", why="all that is distinctive in it had been said before")
    return Uptake(outcome="ignored", why="nothing of it appears in what the agent did next")


def _met(signs: Sequence[Sign], after: Sequence[Event]) -> tuple[list[_Met], list[_Met]]:
    """Where the agent first came out with each sign: those nobody had met since the showing, and those that somebody had."""
    first: list[_Met] = []
    second: list[_Met] = []
    unmet, told = list(signs), list[Sign]()
    for event in after:
        text = _text_of(event)
        now = [sign for sign in unmet if sign.within(text)]
        unmet = [sign for sign in unmet if sign not in now]
        if _is_agents(event):
            first += [_Met(sign=sign, event=event) for sign in now]
            repeated = [sign for sign in told if sign.within(text)]
            second += [_Met(sign=sign, event=event) for sign in repeated]
            told = [sign for sign in told if sign not in repeated]
        else:
            told += now
    return first, second


def _unheard(signs: Sequence[Sign], before: Iterable[Event]) -> list[Sign]:
    left = list(signs)
    for event in before:
        if not left:
            break
        text = _text_of(event)
        left = [sign for sign in left if not sign.within(text)]
    return left


def _is_agents(event: Event) -> bool:
    return event.role == "assistant"


def _text_of(event: Event) -> str:
    return leveled(f"{event.text[:_TEXT_READ]}\n{event.command}\n{event.path}")


def _named(taken: Sequence[_Met]) -> str:
    named: list[_Met] = []
    for met in sorted(taken, key=lambda met: not met.sign.rare):
        if not any(met.sign.form in other.sign.form for other in named):
            named.append(met)
    return ", ".join(f"“{met.sign.said[:_SAID_LENGTH]}” in {_place(met.event)}" for met in named[:_NAMED])


def _place(event: Event) -> str:
    match event.type:
        case EventType.COMMAND:
            return "a command"
        case EventType.TOOL_CALL:
            return f"a call of {event.tool}" if event.tool else "a tool call"
        case _:
            return "what it said"
