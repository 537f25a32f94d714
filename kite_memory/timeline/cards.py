"""What came of a prompt, and a card for each turn with a result: the prompt and the answer that closes the turn.

A card is named by its prompt's event. Plain conversation has cards too.
"""

import hashlib
import json
import math
import sqlite3
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

from kite_memory.model.event import PLANNING, Event, EventType, Status, Where
from kite_memory.model.hit import SMALL_COLLECTION
from kite_memory.text.display import clip_line
from kite_memory.text.stems import stems
from kite_memory.timeline.progress import changed_files
from kite_memory.timeline.runs import Run, bare, commits, runs
from kite_memory.timeline.schema import Rows, rows_of

_CALLS = 400
"""Most events read per prompt; of more, the last ones, which show how it ended."""
_OUTCOME_READ = 2_000
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
        followed = [_event(row, name, provider) for row in rows(_FOLLOWED, (_OUTCOME_READ, session, ordinal, until, _CALLS))][::-1]
        came = "; ".join(_result_lines(followed, cwd))
        said = (event.text for event in reversed(followed) if event.type is EventType.ASSISTANT_MESSAGE)
        answer = next((text for text in said if text.strip()), "")
        if came or 0 < talk <= len(answer):
            return PromptOutcome(prompt=clip_line(text, _PROMPT), came=came, answer=clip_line(answer, _ANSWER if came else _TALK))
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
        if run.purposes and run.outcome != "unknown" and (command := clip_line(bare(run.command), _COMMAND)):
            ran.setdefault(command, []).append(run)
    weightiest = sorted(ran, key=lambda command: (not ran[command][-1].is_check, -ran[command][-1].place))[:_COMMANDS]
    for command in sorted(weightiest, key=lambda command: ran[command][0].place):
        yield f"ran {command}: {_ended(ran[command])}"
    for commit in made[-1:]:
        yield f"committed {clip_line(commit.subject, _SUBJECT)}"


def _end(path: str) -> str:
    line = " ".join(path[-8 * _PATH :].split())
    return line if len(line) <= _PATH else f"…{line[1 - _PATH :]}"


def _ended(same: Sequence[Run]) -> str:
    """Describe the outcome of a command that was run several times, and whether it failed before."""
    failed = [run for run in same if run.outcome == "failed"]
    why = next((clip_line(run.signature, _FAILURE) for run in reversed(failed) if run.signature), "")
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


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


PROMPT, ANSWER = 1_000, 2_000
"""Characters of each that a card holds; of longer ones the beginning and the end, where the outcome is."""
_BETWEEN, _BETWEEN_EACH = 8, 500
"""Of the messages on the way to the answer, this many of the last, and the characters of each. A card is only found by them."""
_READ = 200_000
_LEAST_ANSWER = 20
_LEAST_WORD = 4
"""Characters of an answer, or words of a prompt. A turn below both has too little content for a card."""
_QUIET = timedelta(seconds=90)
_OVER = timedelta(hours=3)
"""A session's last turn counts as closed after a while without new events, or long after the last one."""
_SESSIONS_AT_ONCE = 40
_CARDS_AT_ONCE = 100

_NUMBER_AT, _LENGTH_AT, _TIMES = 10, 4, 15
"""Layout of a posting: the card's number above ten bits, six bits for the class of its length, four for the word's count."""
_PROJECT_BITS = 20
_PROJECTS = (1 << _PROJECT_BITS) - 1
_K1, _B = 1.2, 0.75
_TERMS_COUNTED = 400
_ANY = 1e-9
"""Least score of a card that holds any word of the query."""
_TERMS = 64
_POSTINGS = 60_000
"""Only the rarest words of a query are looked up, within these limits of terms and postings: common words do not distinguish cards.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTurn:
    """A prompt and the answer that closes it, by their rows. ``answer`` is the prompt itself where the session ended with it.

    ``between`` is what the agent said before its answer.
    """

    prompt: int
    answer: int
    asked: str
    answered: str
    between: str = ""

    @property
    def text(self) -> str:
        return f"{self.asked}\n{self.answered}"

    @property
    def indexed(self) -> str:
        return f"{self.text}\n{self.between}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A card that holds words of a query. ``card``, ``prompt``, ``answer`` and ``session`` are row numbers.

    ``bm25`` is the raw score with the rarities of the card's own project; ``size`` is the number of cards in that project.
    ``covered`` is the share, from 0 to 1, of the query's ``terms`` that the card holds, weighted by rarity.
    """

    card: int
    prompt: int
    answer: int
    session: int
    bm25: float
    covered: float
    size: int
    terms: int


def queue_card_rebuild(database: sqlite3.Connection, session: int) -> None:
    """Mark the session's cards to be made again, in the transaction that wrote new events."""
    database.execute("INSERT OR IGNORE INTO card_waiting VALUES (?)", (session,))


def rebuild_cards(database: sqlite3.Connection, now: datetime, limit: int = _SESSIONS_AT_ONCE) -> int:
    """Make the cards of some waiting sessions, those with the newest events first. Return the number of sessions handled."""

    rows = rows_of(database)
    long_ago, quiet = (now - _OVER).isoformat(timespec="milliseconds"), (now - _QUIET).timestamp()
    waiting = rows(
        "SELECT s.key, s.project FROM card_waiting AS w CROSS JOIN sessions AS s ON s.key = w.session"
        " WHERE s.last_at < ? OR s.committed_at < ? ORDER BY s.last_at DESC LIMIT ?",
        (long_ago, quiet, limit),
    )
    looked_at, made = 0, 0
    batch: dict[int, list[tuple[int, Counter[int]]]] = defaultdict(list)
    for session, name in waiting:
        looked_at += 1
        made += _remake(database, rows, session, _project(database, name), batch)
        database.execute("DELETE FROM card_waiting WHERE session = ?", (session,))
        if made >= _CARDS_AT_ONCE:
            break
    _enter(database, batch)
    return looked_at


def turns(rows: Rows, session: int) -> list[CardTurn]:
    """Return the session's turns that have a result and were not forgotten, oldest first."""
    found: list[CardTurn] = []
    opened: tuple[int, str] | None = None
    said: deque[tuple[int, str]] = deque(maxlen=_BETWEEN + 1)

    def close(*, last: bool = False) -> None:
        if opened is None:
            return
        long_enough = len(opened[1].split()) >= _LEAST_WORD
        if said and (long_enough or len(said[-1][1]) >= _LEAST_ANSWER):
            found.append(
                CardTurn(
                    prompt=opened[0],
                    answer=said[-1][0],
                    asked=ends(opened[1], PROMPT),
                    answered=ends(said[-1][1], ANSWER),
                    between="\n".join(ends(text, _BETWEEN_EACH) for _, text in list(said)[:-1]),
                )
            )
        elif last and long_enough:
            found.append(CardTurn(prompt=opened[0], answer=opened[0], asked=ends(opened[1], PROMPT), answered=""))

    for seq, opens, text in rows(
        f"SELECT e.seq, {OPENS.format('e')}, SUBSTR(e.text, 1, {_READ}) FROM events AS e WHERE e.session = ?"  # noqa: S608 - ours
        f" AND ({OPENS.format('e')} OR e.type = 'assistant_message')"
        " AND e.id NOT IN (SELECT event FROM let_go) ORDER BY e.ordinal, e.seq",
        (session,),
    ):
        if opens:
            close()
            opened = seq, text
            said.clear()
        elif text.strip():
            said.append((seq, text))
    close(last=True)
    return found


def turn_of(rows: Rows, prompt: int, answer: int) -> CardTurn:
    """Return the turn of a card, without reading the rest of its session."""
    said: dict[int, str] = dict(rows(f"SELECT seq, SUBSTR(text, 1, {_READ}) FROM events WHERE seq IN (?, ?)", (prompt, answer)))  # noqa: S608 - ours
    answered = ends(said.get(answer, ""), ANSWER) if answer != prompt else ""
    return CardTurn(prompt=prompt, answer=answer, asked=ends(said.get(prompt, ""), PROMPT), answered=answered)


def ends(text: str, most: int) -> str:
    """Return the text, or if it is longer than ``most``, its beginning and its end."""
    text = text.strip()
    return text if len(text) <= most else f"{text[: most // 2].rstrip()} … {text[-(most // 2) :].lstrip()}"


def _project(database: sqlite3.Connection, name: str) -> int:
    (key,) = database.execute(
        "INSERT INTO card_projects (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING key",
        (name,),
    ).fetchone()
    return int(key)


def _remake(
    database: sqlite3.Connection, rows: Rows, session: int, project: int, batch: dict[int, list[tuple[int, Counter[int]]]]
) -> int:
    """Make the session's cards again and return how many are new.

    Unchanged cards stay. A changed one gets a new number; postings of its old number lead nowhere until `sweep`.
    """
    known = {
        prompt: (key, of, check)
        for key, prompt, of, check in rows("SELECT key, prompt, project, sum FROM cards WHERE session = ?", (session,))
    }
    made = 0
    for turn in turns(rows, session):
        check = zlib.crc32(turn.indexed.encode("utf-8", "replace"))
        before = known.get(turn.prompt)
        if before is not None and before[1:] == (project, check):
            del known[turn.prompt]
            continue
        if before is not None:
            database.execute("DELETE FROM cards WHERE key = ?", (known.pop(turn.prompt)[0],))
        counted = Counter(map(_term, stems(turn.indexed)))
        length = counted.total()
        if not length:
            continue
        (key,) = database.execute(
            "INSERT INTO cards (prompt, answer, session, project, length, sum) VALUES (?, ?, ?, ?, ?, ?) RETURNING key",
            (turn.prompt, turn.answer, session, project, length, check),
        ).fetchone()
        batch[project].append((key, counted))
        made += 1
    database.executemany("DELETE FROM cards WHERE key = ?", [(key,) for key, *_ in known.values()])
    return made


def _enter(database: sqlite3.Connection, batch: Mapping[int, Sequence[tuple[int, Counter[int]]]]) -> None:
    postings: dict[int, bytearray] = defaultdict(bytearray)
    for project, made in batch.items():
        for number, counted in made:
            low = number << _NUMBER_AT | _length_class(counted.total()) << _LENGTH_AT
            for term, times in counted.items():
                postings[term << _PROJECT_BITS | project] += (low | min(times, _TIMES)).to_bytes(4, "little")
    database.executemany(
        "INSERT INTO card_words (key, postings) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET postings = CAST(postings || excluded.postings AS BLOB)",
        sorted((key, bytes(entries)) for key, entries in postings.items()),
    )


def sweep(database: sqlite3.Connection) -> None:
    """Remove postings that refer to no card."""
    import numpy as np

    alive = np.fromiter((key for (key,) in database.execute("SELECT key FROM cards ORDER BY key")), np.int64)
    last = -1 << 62
    while page := database.execute(
        "SELECT key, postings FROM card_words WHERE key > ? ORDER BY key LIMIT 10000", (last,)
    ).fetchall():
        last = page[-1][0]
        changed: list[tuple[bytes, int]] = []
        for key, blob in page:
            packed = np.frombuffer(blob, "<u4")
            kept = packed[np.isin(packed >> _NUMBER_AT, alive)]
            if len(kept) < len(packed):
                changed.append((kept.tobytes(), key))
        database.executemany("UPDATE card_words SET postings = ? WHERE key = ?", changed)
        database.executemany("DELETE FROM card_words WHERE key = ? AND LENGTH(postings) = 0", [(key,) for _, key in changed])


@lru_cache(maxsize=1 << 16)
def _term(stem: str) -> int:
    return int.from_bytes(hashlib.blake2b(stem.encode("utf-8", "replace"), digest_size=5).digest(), "big")


def _length_class(length: int) -> int:
    return min(63, int(6 * math.log2(1 + length)))


@cache
def _weights(average: int) -> "Floats":
    """Return the BM25 weight of a posting by its lowest ten bits, for a project with this average card length."""
    import numpy as np

    low = np.arange(1 << _NUMBER_AT)
    times, length = low & _TIMES, 2 ** (((low >> _LENGTH_AT) + 0.5) / 6) - 1
    return np.asarray(times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length / max(1, average))), np.float64)


def rarity(held: float, size: int) -> float:
    """Return the weight of a word that ``held`` of a project's ``size`` cards hold."""
    of = max(size, SMALL_COLLECTION)
    expected = held * math.sqrt(of / max(1, size))
    return math.log(1 + (of - expected + 0.5) / (expected + 0.5))


def find(rows: Rows, text: str, *, project: str | None = None, limit: int = 50, share: float = 0.0, of: int = 0) -> list[Match]:
    """Return the cards that hold most of the query's weight in words, best first; of one project, or of all.

    With ``share``, only those that reach this share of the score of the card numbered ``of``.
    """
    import numpy as np

    asked = list(dict.fromkeys(map(_term, stems(text))))[:_TERMS_COUNTED]
    known = {
        key: (cards, words)
        for key, cards, words in rows(
            "SELECT key, cards, words FROM card_projects WHERE cards > 0 AND (?1 IS NULL OR name = ?1)", (project,)
        )
    }
    if not (asked and known):
        return []
    if project is None:
        held = rows(
            "SELECT w.key, LENGTH(w.postings) / 4 FROM json_each(?) AS t CROSS JOIN card_words AS w"
            " ON w.key BETWEEN t.value AND t.value + ?",
            (json.dumps([term << _PROJECT_BITS for term in asked]), _PROJECTS),
        )
    else:
        (only,) = known
        held = rows(
            "SELECT w.key, LENGTH(w.postings) / 4 FROM json_each(?) AS t CROSS JOIN card_words AS w ON w.key = t.value",
            (json.dumps([term << _PROJECT_BITS | only for term in asked]),),
        )
    chosen: dict[int, float] = {}
    terms: set[int] = set()
    weights: dict[int, float] = defaultdict(float)
    asked_of: Counter[int] = Counter()
    postings = 0
    for key, count in sorted(held, key=lambda each: (each[1], each[0])):
        term, home = key >> _PROJECT_BITS, key & _PROJECTS
        if home not in known or (term not in terms and len(terms) >= _TERMS):
            continue
        postings += count
        if postings > _POSTINGS and chosen:
            break
        terms.add(term)
        chosen[key] = rarity(min(count, known[home][0]), known[home][0])
        weights[home] += chosen[key]
        asked_of[home] += 1
    if not chosen:
        return []
    numbers: list[npt.NDArray[np.int64]] = []
    parts: list[Floats] = []
    shares: list[Floats] = []
    for key, blob in rows(
        "SELECT key, postings FROM card_words WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(chosen)),)
    ):
        packed = np.frombuffer(blob, "<u4")
        cards, words = known[key & _PROJECTS]
        numbers.append((packed >> _NUMBER_AT).astype(np.int64))
        parts.append(_weights(round(words / max(1, cards)))[packed & ((1 << _NUMBER_AT) - 1)] * chosen[key])
        shares.append(np.full(len(packed), chosen[key]))
    holders = np.concatenate(numbers)
    scores = np.bincount(holders, np.concatenate(parts)).astype(np.float64, copy=False)
    shared = np.bincount(holders, np.concatenate(shares))
    least = max(_ANY, share * float(scores[of])) if of < len(scores) else _ANY
    found = {number: float(scores[number]) for number in highest(scores, 2 * limit, least).tolist()}
    unheld = {home: (min(len(asked), _TERMS) - asked_of[home]) * rarity(0, cards) for home, (cards, _) in known.items()}
    matches = [
        Match(
            card=card,
            prompt=prompt,
            answer=answer,
            session=session,
            bm25=found[card],
            covered=min(1.0, float(shared[card]) / (weights[home] + max(0.0, unheld[home]))),
            size=known[home][0],
            terms=len(asked),
        )
        for card, prompt, answer, session, home in _offered(rows, "c.key", found)
        if home in known
    ]
    return sorted(matches, key=lambda each: (-each.bm25, -each.card))[:limit]


def of_prompts(rows: Rows, prompts: Collection[int], project: str | None = None) -> list[Match]:
    """Return the cards of some prompts that were found by other means than their words."""
    known: dict[int, int] = dict(rows("SELECT key, cards FROM card_projects WHERE ?1 IS NULL OR name = ?1", (project,)))
    return [
        Match(card=card, prompt=prompt, answer=answer, session=session, bm25=0.0, covered=0.0, size=known[of], terms=0)
        for card, prompt, answer, session, of in _offered(rows, "c.prompt", prompts)
        if of in known
    ]


_LET_GO = "SELECT e.seq FROM let_go AS g CROSS JOIN events AS e ON e.id = g.event"


def _offered(rows: Rows, by: str, numbers: Collection[int]) -> list[tuple[int, int, int, int, int]]:
    return [
        (card, prompt, answer, session, of)
        for card, prompt, answer, session, of in rows(
            f"SELECT c.key, c.prompt, c.answer, c.session, c.project FROM json_each(?) AS t CROSS JOIN cards AS c ON {by} = t.value"  # noqa: S608
            f" WHERE c.prompt NOT IN ({_LET_GO}) AND c.answer NOT IN ({_LET_GO})",
            (json.dumps(list(numbers)),),
        )
    ]


def highest(figures: "npt.NDArray[np.float32] | npt.NDArray[np.float64]", most: int, least: float) -> "npt.NDArray[np.intp]":
    """Return the places of the ``most`` highest figures that are at least ``least``, highest first. Does not sort the others: of
    forty thousand that takes longer than all the rest of a query.
    """
    import numpy as np

    places = np.flatnonzero(figures >= least)
    if len(places) > most:
        places = places[np.argpartition(-figures[places], most - 1)[:most]]
    return places[np.argsort(-figures[places], kind="stable")]
