"""Hashes of what was said in a project's sessions, to recognize a text and find who said it first."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from threading import Lock
from typing import TYPE_CHECKING, Any

from kite_memory.model.event import Passage, Trace
from kite_memory.timeline.schema import Rows

if TYPE_CHECKING:  # which loads numpy
    from kite_memory.timeline.shingles import PairIndex


KEPT_BYTES = 48 << 20
KEPT_SECONDS = 120 * 86_400.0
"""Beyond either limit the oldest passages are dropped. Age counts from when they were read, since old transcripts may be read
today.
"""
_TIDY_EVERY = 5_000
"""Number of rows written between two clean-ups."""
_FEWEST = 2
"""Least number of pairs for which a text gets a row."""
_AT_ONCE = 1_000
_LEAST = 0.4
"""A smaller share of a text is no evidence of where it comes from."""
_NEARLY = 0.8
"""A speaker who said this share of a later text is its origin."""

_KEEP = "INSERT INTO passages (digest, session, start, at, said_by, read_at, pairs) VALUES (?, ?, ?, ?, ?, ?, ?)"
_AGAIN = "UPDATE passages SET at = MIN(at, ?), read_at = ? WHERE digest = ?"
_SELECT = "SELECT p.key, p.at, p.start, p.said_by, p.pairs, p.digest FROM passages AS p JOIN sessions AS s ON s.key = p.session"
_OF_PROJECT = f"{_SELECT} WHERE p.key > ? AND s.project IN (?, '') ORDER BY p.key LIMIT ?"
_BY_KEY = f"{_SELECT} WHERE p.key IN (SELECT value FROM json_each(?)) AND s.project IN (?, '') ORDER BY p.key"  # noqa: S608 - ours
_DIGESTS = "SELECT key, digest FROM passages WHERE key IN (SELECT value FROM json_each(?))"
_MOST_PROJECTS = 3
"""Projects whose passages stay indexed, in three bytes of memory for each pair."""


def save(database: sqlite3.Connection, session: int, passages: Sequence[Passage], *, now: float) -> None:
    """Store the passages, in the transaction of the read that brought them.

    A known text keeps its first session and its earliest time.
    """
    if not passages:
        return
    from kite_memory.timeline.shingles import WIDTH, encoded, packed, pairs_of

    ((key,),) = database.execute("SELECT key FROM passage_key").fetchall()
    ((project,),) = database.execute("SELECT project FROM sessions WHERE key = ?", (session,)).fetchall()
    first_said: dict[int, tuple[Passage, bytes]] = {}
    for passage in passages:
        text = encoded(passage.text)
        digest = _digest(key, project, passage.said_by, text)
        if digest not in first_said or passage.at < first_said[digest][0].at:
            first_said[digest] = passage, text
    among = "SELECT digest FROM passages WHERE digest IN (SELECT value FROM json_each(?))"
    known = {digest for (digest,) in database.execute(among, (json.dumps(list(first_said)),))}
    database.executemany(_AGAIN, [(first_said[digest][0].at, now, digest) for digest in known])
    fresh = [(digest, passage, text) for digest, (passage, text) in first_said.items() if digest not in known]
    found = packed(pairs_of([text for *_, text in fresh], key))
    rows = [
        (digest, session, each.start, each.at, each.said_by, now, pairs)
        for (digest, each, _), pairs in zip(fresh, found, strict=True)
        if len(pairs) >= _FEWEST * WIDTH
    ]
    if rows:
        database.executemany(_KEEP, rows)
        ((last,),) = database.execute("SELECT MAX(key) FROM passages").fetchall()
        if last // _TIDY_EVERY != (last - len(rows)) // _TIDY_EVERY:
            tidy(database, now=now)


def _digest(key: bytes, project: str, said_by: str, text: bytes) -> int:
    said = hashlib.blake2b(text, key=key, digest_size=8, person=said_by.encode())
    said.update(f"\0{project}".encode("utf-8", "replace"))
    return int.from_bytes(said.digest(), "little", signed=True)


def tidy(database: sqlite3.Connection, *, now: float, most: int = KEPT_BYTES) -> None:
    """Delete passages that are too old, and the oldest ones beyond ``most`` bytes."""
    database.execute("DELETE FROM passages WHERE read_at < ?", (now - KEPT_SECONDS,))
    room = most
    for key, size in database.execute("SELECT key, LENGTH(pairs) FROM passages ORDER BY read_at DESC, key DESC"):
        room -= size
        if room < 0:
            ((read_at,),) = database.execute("SELECT read_at FROM passages WHERE key = ?", (key,)).fetchall()
            database.execute("DELETE FROM passages WHERE (read_at, key) <= (?, ?)", (read_at, key))
            return


_Row = tuple[Any, ...]
"""A passage: its key, when it was said, where, by whom, its pairs and its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PassageBlock:
    """A number of a project's passages, indexed by their pairs. ``digest`` is that of the last one."""

    keys: tuple[int, ...]
    digest: int
    pairs: "PairIndex"

    def holding(self, pairs: Collection[int]) -> list[int]:
        """Return the keys of passages that hold enough of these pairs, if not always in one place."""
        if not pairs:
            return []
        shared = self.pairs.shared(pairs)
        return [self.keys[at] for at in (shared >= max(1, _LEAST * len(pairs))).nonzero()[0].tolist()]


class IndexedPassages:
    """The passages of the projects asked about last, in memory, so that a question need not read all of them.

    A passage that is found is read again from the database, which may have changed it or dropped it.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._blocks: dict[str, tuple[_PassageBlock, ...]] = {}
        self._lock = Lock()

    def lookup(self, project: str) -> "PassageLookup":
        """Return a lookup of what was said in one project, and in sessions without a project."""
        return PassageLookup(rows=self._rows, candidates=partial(self._candidates, project))

    def _candidates(self, project: str, asked: Sequence[frozenset[int]]) -> Iterator[list[_Row]]:
        """Yield the passages that may hold enough of a text: those of the index that do, and all that are too new for it."""
        from kite_memory.timeline.shingles import PairIndex

        parts = self._still_there(self._blocks.get(project, ()))
        keys = sorted({key for part in parts for pairs in asked for key in part.holding(pairs)})
        for at in range(0, len(keys), _AT_ONCE):
            yield self._rows(_BY_KEY, (json.dumps(keys[at : at + _AT_ONCE]), project))
        last = parts[-1].keys[-1] if parts else 0
        while batch := self._rows(_OF_PROJECT, (last, project, _AT_ONCE)):
            yield batch
            last = batch[-1][0]
            if len(batch) == _AT_ONCE:
                pairs = PairIndex.of([blob for *_, blob, _ in batch])
                parts = (*parts, _PassageBlock(keys=tuple(key for key, *_ in batch), digest=batch[-1][-1], pairs=pairs))
        self._keep(project, parts)

    def _still_there(self, parts: tuple[_PassageBlock, ...]) -> tuple[_PassageBlock, ...]:
        """Return the parts up to the first whose last passage is gone: what was written since may have the keys of that one."""
        if not parts:
            return ()
        there: dict[int, int] = dict(self._rows(_DIGESTS, (json.dumps([part.keys[-1] for part in parts]),)))
        return tuple(takewhile(lambda part: there.get(part.keys[-1]) == part.digest, parts))

    def _keep(self, project: str, parts: tuple[_PassageBlock, ...]) -> None:
        with self._lock:
            self._blocks.pop(project, None)
            self._blocks[project] = parts
            while len(self._blocks) > _MOST_PROJECTS:
                del self._blocks[next(iter(self._blocks))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageLookup:
    """A lookup of what was said in one project, and in sessions without a project.

    ``candidates`` yields all passages of which a text may hold enough.
    """

    rows: Rows
    candidates: Callable[[Sequence[frozenset[int]]], Iterator[list[_Row]]]

    def traces(self, texts: Sequence[str]) -> Sequence[Trace]:
        from kite_memory.timeline.shingles import encoded, pairs_of

        if not texts:
            return ()
        ((key,),) = self.rows("SELECT key FROM passage_key", ())
        asked = [frozenset(pairs.tolist()) for pairs in pairs_of([encoded(text) for text in texts], key)]
        stood: list[list[_Stood]] = [[] for _ in texts]
        for batch in self.candidates(asked):
            for row, number, share in _found(asked, [blob for *_, blob, _ in batch]):
                _, at, start, said_by, *_ = batch[row]
                stood[number].append(_Stood(share=share, when=(at, start), said_by=said_by))
        return [_trace(len(pairs), each) for pairs, each in zip(asked, stood, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stood:
    share: float
    when: tuple[float, int]
    said_by: str


def _trace(pairs: int, stood: Sequence[_Stood]) -> Trace:
    ours = [each for each in stood if each.said_by in ("assistant", "user")]

    def first_said_by(speaker: str) -> float:
        return max(
            (
                each.share
                for each in stood
                if each.said_by == speaker and not any(own.share >= _NEARLY * each.share and own.when < each.when for own in ours)
            ),
            default=0.0,
        )

    return Trace(
        pairs=pairs,
        foreign=first_said_by("tool"),
        failure=first_said_by("failure"),
        person=max((each.share for each in ours if each.said_by == "user"), default=0.0),
    )


def _found(asked: Sequence[frozenset[int]], blobs: Sequence[bytes]) -> Iterator[tuple[int, int, float]]:
    """Yield the number of each blob, the number of each text of which enough stands in one place of it, and the share."""
    import numpy as np

    from kite_memory.timeline.shingles import BLOCK, among

    wanted = frozenset().union(*asked)
    sizes = [len(blob) // 3 for blob in blobs]
    places, values = among(blobs, wanted)
    if not len(places):
        return
    ends = np.cumsum(sizes)
    of = np.searchsorted(ends, places, side="right")
    blocks = (places - (ends - sizes)[of]) // BLOCK
    # Most blobs share a few pairs with a text by chance: only those that share enough in all are looked at place by place.
    owners = sorted((pair, number) for number, pairs in enumerate(asked) for pair in pairs)
    pairs_owned, numbers_owning = np.array(owners, np.int64).reshape(-1, 2).T
    first, last = np.searchsorted(pairs_owned, values, "left"), np.searchsorted(pairs_owned, values, "right")
    counts = last - first
    match = np.repeat(np.arange(len(values)), counts)
    owner = np.arange(len(match)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    together = of[match] * len(asked) + numbers_owning[owner]
    order = np.argsort(together, kind="stable")
    groups, begins, shared = np.unique(together[order], return_index=True, return_counts=True)
    lengths = np.array([len(pairs) for pairs in asked])
    for at in np.flatnonzero(shared >= _LEAST * lengths[groups % len(asked)]).tolist():
        row, number = divmod(int(groups[at]), len(asked))
        by_block: dict[int, set[int]] = {}
        for each in match[order[begins[at] : begins[at] + shared[at]]].tolist():
            by_block.setdefault(int(blocks[each]), set()).add(int(values[each]))
        share = _most_in_one_place(by_block, 2 + len(asked[number]) // BLOCK) / len(asked[number])
        if share >= _LEAST:
            yield row, number, share


def _most_in_one_place(by_block: Mapping[int, set[int]], blocks: int) -> int:
    """Return the largest number of different pairs in so many consecutive blocks."""
    return max(len(set().union(*(by_block.get(at, ()) for at in range(first, first + blocks)))) for first in by_block)
