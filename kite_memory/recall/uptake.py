"""Detection of whether a shown note was used, from what the agent said and did next; counts by note and by week."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Literal

from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Note
from kite_memory.recall.prose import prose
from kite_memory.text import lazy_regex
from kite_memory.text.stems import STOP_WORDS

_BODY_READ = 20_000
_SIGNS = 64
_LONGEST = 80
_SHORTEST_NAME = 4
_SHORTEST_RARE = 5
_SHORTEST_WORD = 4
_PLACES = 50
"""Occurrences checked in one text before a sign is taken for a part of a longer word everywhere."""
_STEM = 6
"""Letters that two forms of one word must share."""

_REJECTED = lazy_regex(r"^\*\*Rejected:\*\*[^\n]*", re.MULTILINE)
_CODE = lazy_regex(r"`+([^`\n]*)`+")
_TOKEN = lazy_regex(r"[^\s`'\"“”‘’()\[\]{}<>,;|=*]{3,120}")
_CLAUSE_END = lazy_regex(r"[^\w\s-]+|\s-\s|\n")
_WORD = lazy_regex(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BLANKS = lazy_regex(r"\s+")
_EDGES = ".:!?/-…–—"

_PROGRAM_NAMES = """
apt brew bun bundle cargo cmake composer conda curl deno docker dotnet flutter gh git gradle helm journalctl kubectl mise mvn mypy
npm npx php pip pipx pnpm poetry psql pytest python python3 ruff rustup ssh systemctl terraform tox uv uvx vite yarn
"""
_PROGRAMS = frozenset(_PROGRAM_NAMES.split())
_COMMAND = lazy_regex(
    rf"(?<![\w./-])((?:{'|'.join(sorted(_PROGRAMS))})|go(?= (?:build|fmt|get|mod|run|test|tool|vet|work)\b))"
    r" ([a-z][\w:-]{1,40})(?: (-{1,2}[a-z][\w-]{1,40}))?"
)
"""Commands within prose, so only programs whose names are not words."""
_FIRST_WORDS = {
    "git": "add branch checkout clone commit diff fetch init log merge pull push rebase reset restore revert show stash status",
    "gh": "api issue pr",
    "go": "build fmt get mod run test vet",
    "npm": "ci install run start test",
    "pnpm": "install run test",
    "yarn": "add install run test",
    "pip": "install",
    "uv": "run sync",
    "cargo": "build check fmt run test",
    "docker": "build compose exec logs ps run",
}
_USUAL = frozenset(f"{program} {first}" for program, words in _FIRST_WORDS.items() for first in words.split())
_USUAL_WORDS = 4
"""Words of a command that any session may run; one of this many words or fewer is not distinctive."""

_UNDERSCORED = lazy_regex(r"[^\W_][\w-]*_+[^\W_]|__\w+__")
_CAMEL = lazy_regex(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2,}")
_DOTTED = lazy_regex(r"[^\W\d_][\w-]*(?:\.|::|->|#)[^\W\d_][\w-]+")
_NUMBERED = lazy_regex(r"[^\W\d_]{2,}[-_.:]?\d{2,}|\d+[^\W\d_]+\d+")
_PLAIN_FILE = lazy_regex(
    r"[a-z][a-z0-9-]*\.(?:c|cc|cpp|cs|css|go|h|html|ini|java|js|json|jsonl|jsx|kt|lock|log|md|mod|php|py|rb|rs|sh|sql|sum|toml|ts|tsx"
    r"|txt|xml|ya?ml)"
)
"""A file named by one word, which other projects may have too."""
_EVERYBODYS_NAMES = """
github gitlab bitbucket javascript typescript postgresql mysql sqlite mongodb graphql macos oauth vscode stackoverflow youtube
openai chatgpt linkedin devops jetbrains intellij webassembly node.js next.js nuxt.js vue.js
readme.md claude.md agents.md changelog.md package.json package-lock.json tsconfig.json go.mod go.sum main.go main.py index.ts
index.js index.html app.py app.ts pyproject.toml cargo.toml cargo.lock requirements.txt setup.py conftest.py __init__.py
__main__.py settings.json config.json config.toml config.yaml sha256 base64 int64 int32 uint64 float64 http2
json.loads json.dumps console.log fmt.errorf os.path
"""
_EVERYBODYS = frozenset(_EVERYBODYS_NAMES.split())
"""Tokens that look rare but are in general use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A distinctive expression. ``said`` is the note's spelling, ``form`` the form to search for. One ``rare`` sign is enough by
    itself.
    """

    said: str
    form: str
    rare: bool

    def within(self, text: str) -> bool:
        """Return whether it occurs in ``text`` (`leveled`), and not only as a part of a longer word."""
        at = -1
        for _ in range(_PLACES):
            at = text.find(self.form, at + 1)
            if at < 0:
                return False
            end = at + len(self.form)
            if not (_joined(text[at - 1 : at], self.form[0]) or _joined(self.form[-1], text[end : end + 1])):
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Signs of a note. ``rejected`` are those that occur only in its rejected alternatives."""

    own: tuple[Sign, ...]
    rejected: tuple[Sign, ...] = ()


def signs_of(note: Note) -> Signs:
    """Return a note's signs, rare ones first, at most sixty-four."""
    body = prose(note.body[:_BODY_READ])
    kept = f"{note.title}\n{_REJECTED.sub('', body)}"
    turned_down = "\n".join(_REJECTED.findall(body)).replace("**Rejected:**", "")
    in_kept, in_rejected = leveled(kept), leveled(turned_down)
    entities = [entity for entity in note.entities if leveled(entity) in in_kept or leveled(entity) not in in_rejected]
    own = _chosen(_signs(kept, entities))
    forms = {sign.form for sign in own}
    return Signs(own=own, rejected=tuple(sign for sign in _chosen(_signs(turned_down, ())) if sign.form not in forms))


def beyond_chance(signs: Sequence[Sign]) -> bool:
    """Return whether these signs together are more than chance: a rare one, or two that share no word."""
    if any(sign.rare for sign in signs):
        return True
    words = [frozenset(word[:_STEM] for word in _WORD.findall(sign.form)) for sign in signs]
    return any(one.isdisjoint(other) for number, one in enumerate(words) for other in words[:number])


def leveled(text: str) -> str:
    """Return the text in lower case and with single blanks, for searching signs."""
    return _BLANKS.sub(" ", text.strip()).casefold()


def is_rare(token: str) -> bool:
    """Return whether a token looks specific: a path, an identifier, a code."""
    if len(token) < _SHORTEST_RARE or token.casefold() in _EVERYBODYS or not any(char.isalpha() for char in token):
        return False
    folder, slash, last = token.rpartition("/")
    if slash:
        return "." in last or "/" in folder
    if _PLAIN_FILE.fullmatch(token):
        return False
    return any(shape.search(token) for shape in (_UNDERSCORED, _CAMEL, _DOTTED, _NUMBERED))


def _chosen(signs: Iterable[Sign]) -> tuple[Sign, ...]:
    found: dict[str, Sign] = {}
    for sign in signs:
        if sign.form and (sign.form not in found or sign.rare):
            found[sign.form] = sign
    return tuple(sorted(found.values(), key=lambda sign: not sign.rare))[:_SIGNS]


def _signs(text: str, entities: Iterable[str]) -> Iterator[Sign]:
    for span in _CODE.findall(text):
        if " " in (said := span.strip()):
            yield from _command(said, quoted=True)
    for parts in _COMMAND.findall(text):
        if parts[1] not in STOP_WORDS:
            yield from _command(" ".join(filter(None, parts)))
    for token in _TOKEN.findall(text):
        yield from _named_terms(token.strip(_EDGES))
    for entity in entities:
        words, name = entity.split(), leveled(entity)
        if len(words) == 1:
            yield from _named_terms(entity)
        elif words and words[0] in _PROGRAMS:
            yield from _command(entity)
        if (
            _SHORTEST_NAME <= len(entity) <= _LONGEST
            and _WORD.search(entity)
            and (len(words) > 1 or "-" in entity or entity != name)
        ):
            yield Sign(said=entity, form=name, rare=False)
    for clause in _CLAUSE_END.split(text):
        for one, other in pairwise(clause.split()):
            if _is_distinctive(one) and _is_distinctive(other):
                yield Sign(said=f"{one} {other}", form=leveled(f"{one} {other}"), rare=False)


def _command(said: str, *, quoted: bool = False) -> Iterator[Sign]:
    """Yield the sign of a command. In prose, two words need not be a command: «git hooks» is not."""
    words = said.split()
    if " ".join(words[:2]) in _USUAL:
        rare = len(words) > _USUAL_WORDS
    else:
        rare = quoted or len(words) > 2 or "-" in words[1] or ":" in words[1]
    if len(said) <= _LONGEST:
        yield Sign(said=said, form=leveled(said), rare=rare)


def _named_terms(token: str) -> Iterator[Sign]:
    if is_rare(token):
        yield Sign(said=token, form=leveled(token), rare=True)
    if "/" in token:
        for part in token.split("/"):
            yield from _named_terms(part.strip(_EDGES))
    elif _PLAIN_FILE.fullmatch(token) and token not in _EVERYBODYS:
        yield Sign(said=token, form=token, rare=False)


def _is_distinctive(word: str) -> bool:
    return len(word) >= _SHORTEST_WORD and _WORD.fullmatch(word) is not None and word.casefold() not in STOP_WORDS


def _joined(one: str, other: str) -> bool:
    return (one.isalnum() or one == "_") and (other.isalnum() or other == "_")


Outcome = Literal["used", "ignored", "unknown"]

_TEXT_READ = 20_000
_NAMED = 3
_SAID_LENGTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Uptake:
    """Result of the detection. ``why`` names what the agent used of the note, or why the outcome is unknown."""

    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    sign: Sign
    event: Event


def uptake(note: Note, *, before: Sequence[Event], after: Iterable[Event]) -> Uptake:
    """Determine whether a note was used. ``before`` is the session up to the showing, including its prompt; ``after`` the following
    turn.

    Used means that the agent was the first in this session to mention something that the note contains: no one had mentioned it
    before the showing, nor between the showing and the agent's message (a tool's output could be the source as well as the note).
    What was mentioned by others first proves nothing.
    """
    signs = signs_of(note)
    if not beyond_chance(signs.own):
        return Uptake(outcome="unknown", why="nothing in it is distinctive")
    after = list(after)
    if not any(_is_agents(event) for event in after):
        return Uptake(outcome="unknown", why="the agent has not done anything since")
    first, second = _met((*signs.own, *signs.rejected), after)
    unheard = set(_unheard([met.sign for met in (*first, *second)], before))
    first = [met for met in first if met.sign in unheard]
    taken = [met for met in first if met.sign in signs.own]
    if beyond_chance([met.sign for met in taken]):
        return Uptake(outcome="used", why=_named(taken))
    echoed = [*taken, *(met for met in second if met.sign in unheard and met.sign in signs.own)]
    if beyond_chance([met.sign for met in echoed]):
        return Uptake(outcome="unknown", why=f"the agent had just been given it: {_named(echoed)}")
    against = [met for met in first if met.sign in signs.rejected]
    if beyond_chance([met.sign for met in against]):
        return Uptake(outcome="unknown", why=f"what it rejects came up, for or against: {_named(against)}")
    if echoed:
        return Uptake(outcome="unknown", why=f"too little of it to tell from chance: {_named(echoed)}")
    if not beyond_chance(_unheard(signs.own, before)):
        return Uptake(outcome="unknown", why="all that is distinctive in it had been said before")
    return Uptake(outcome="ignored", why="nothing of it appears in what the agent did next")


def _met(signs: Sequence[Sign], after: Sequence[Event]) -> tuple[list[_Met], list[_Met]]:
    """Return where the agent first used each sign: those not mentioned since the showing, and those mentioned by others before."""
    first: list[_Met] = []
    second: list[_Met] = []
    unmet, matched = list(signs), list[Sign]()
    for event in after:
        text = _text_of(event)
        now = [sign for sign in unmet if sign.within(text)]
        unmet = [sign for sign in unmet if sign not in now]
        if _is_agents(event):
            first += [_Met(sign=sign, event=event) for sign in now]
            repeated = [sign for sign in matched if sign.within(text)]
            second += [_Met(sign=sign, event=event) for sign in repeated]
            matched = [sign for sign in matched if sign not in repeated]
        else:
            matched += now
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


Moment = Literal["prompt", "start", "pointer", "quote", "opened", "action", "late", "team"]
"""How something was shown. "prompt": in full, with a prompt; "start", "pointer": by title, at a session's start or with a prompt;
"quote": a quoted conversation; "opened": opened by the agent; "action": with a tool call; "late": later in the turn, after a
judge's verdict; "team": with a prompt, from a team.
"""

BY_TITLE = frozenset[Moment]({"start", "pointer"})
"""Moments at which the agent was shown the title only. The note counts as used if the agent opened it."""

Standing = Outcome | Literal["open"]

_PRIOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often a note was shown, used and ignored. The remaining showings are unknown or not settled yet."""

    shown: int = 0
    used: int = 0
    ignored: int = 0


def habit(tally: Tally) -> float:
    """Return the habit of a note, from -1 (always ignored) to 1 (always used); 0 if nothing is known. A few showings do not move it
    far.
    """
    return (tally.used - tally.ignored) / (tally.used + tally.ignored + 2 * _PRIOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    used: int = 0
    ignored: int = 0
    unknown: int = 0
    open: int = 0

    @property
    def shown(self) -> int:
        return self.used + self.ignored + self.unknown + self.open

    @property
    def known(self) -> int:
        """Return how many are known to be used or ignored."""
        return self.used + self.ignored

    def __add__(self, other: "Count") -> "Count":
        return Count(
            used=self.used + other.used,
            ignored=self.ignored + other.ignored,
            unknown=self.unknown + other.unknown,
            open=self.open + other.open,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """Figures of one ISO week in UTC. ``silent`` of the ``prompts`` were given nothing at once; a judge may have added something
    later.
    """

    monday: date
    prompts: int = 0
    silent: int = 0
    moments: Mapping[Moment, Count] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return week_of(self.monday)

    @property
    def count(self) -> Count:
        """Return the sum over all moments except those by title only."""
        return sum((count for moment, count in self.moments.items() if moment not in BY_TITLE), start=Count())


def week_of(day: date) -> str:
    """Return the ISO week of a day, such as ``2026-W09``."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02}"


def mondays(now: datetime, weeks: int) -> tuple[date, ...]:
    """Return the Mondays of this week and the weeks before it, latest first."""
    today = now.astimezone(UTC).date()
    monday = today - timedelta(days=today.weekday())
    return tuple(monday - timedelta(weeks=number) for number in range(weeks))


def tally_of(row: tuple[str, int, int, int]) -> tuple[str, Tally]:
    note, shown, used, ignored = row
    return note, Tally(shown=shown, used=used, ignored=ignored)
