"""Hashes of pairs of words, by which a text is recognized later without being stored.

They reveal little. A word counts with its first six letters. A word with a digit, and one behind ``:`` or ``=``, is left out, since
secrets look like that. Two neighbouring words give 24 bits under a key of this machine, so that dozens of pairs of a dictionary
share each value; values are sorted within blocks, so that no order is left by which to chain them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.uint32]

BLOCK = 64
"""Number of pairs within which no order is kept: some thirty meaningful words."""
WIDTH = 3
"""Bytes per pair once it is `packed`."""
_LETTERS = 6
_SEPARATOR, _ASSIGN, _OTHER, _LETTER, _DIGIT, _CAPITAL, _WIDE = 0, 1, 2, 4, 6, 8, 10
_IS_ASSIGN = np.uint64(0x010101)
_SHORTEST = 3
_MIX = np.uint64(0x9E3779B97F4A7C15)
_PIECE = 1 << 18
"""Bytes handled at a time, so that intermediate results stay in the processor's cache."""
_EDGE = 8
_UNSEEN = tuple(letter.encode() for letter in "\u200b\u200c\u200d\u2060\ufeff\u00ad")
_ASCII = bytes(range(128))
_COMMON = """
about above after again also always and any are been before being below between both but can could did does doing done each
either even every few for from get gets got had has have having here how into its itself just let like made make makes many may
might more most much must need needs never new non not now off once one only other our out over own per rather really same see
shall should since some still such sure take than that the their them then there these they thing things this those though
through thus too two under until use used uses using very via want was way well were what when where whether which while who
whom whose why will with within without would yes yet you your all
"""


def pairs_of(texts: Sequence[bytes], key: bytes) -> list[Pairs]:
    """Return the pairs of each text, given as `encoded`, in order and as 24-bit values."""
    found: list[list[Pairs]] = [[] for _ in texts]
    batch: list[tuple[int, bytes]] = []
    size = 0
    for number, text in enumerate(texts):
        for at in range(0, len(text), _PIECE):
            part = text[at : at + _PIECE]
            batch.append((number, part))
            size += len(part)
            if size >= _PIECE:
                _take(batch, key, found)
                batch, size = [], 0
    _take(batch, key, found)
    return [np.concatenate(parts) if len(parts) != 1 else parts[0] for parts in ([*each] or [_NOTHING] for each in found)]


_NOTHING: Pairs = np.empty(0, np.uint32)
_NO_PAIR = np.uint32(1 << 24)


def encoded(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if not text.isascii():
        others = data.translate(None, _ASCII)
        for unseen in _UNSEEN:
            if unseen in others:
                data = data.replace(unseen, b"")
    return data


def _take(batch: Sequence[tuple[int, bytes]], key: bytes, found: list[list[Pairs]]) -> None:
    """Pair each word with the next two words, but not with itself nor with words of another text."""
    between = b"\0" * _EDGE
    words, places = _words(between + between.join(part for _, part in batch) + between, key)
    if len(words) < 2:
        return
    ends = np.cumsum([len(part) + _EDGE for _, part in batch])
    stops = np.searchsorted(places, ends)
    both = np.full((len(words), 2), _NO_PAIR, np.uint32)
    for column, apart in enumerate((1, 2)):
        one, other = words[:-apart], words[apart:]
        both[:-apart, column] = _mixed(one + other) >> np.uint64(40)
        both[:-apart, column][one == other] = _NO_PAIR
    pairs = both.reshape(-1)
    last = (2 * stops[:, None] - np.arange(1, 4)).ravel()
    pairs[last[last >= 0]] = _NO_PAIR
    none = np.flatnonzero(pairs == _NO_PAIR)
    pairs = np.delete(pairs, none)
    bounds = [0, *(2 * stops - np.searchsorted(none, 2 * stops)).tolist()]
    for (number, _), start, end in zip(batch, bounds[:-1], bounds[1:], strict=True):
        if end > start:
            found[number].append(pairs[start:end])


def _words(data: bytes, key: bytes) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return the hashes of the meaningful words, and where each begins."""
    classes = np.frombuffer(data.translate(_CLASSES), np.uint8)
    before, here = classes[:-1], classes[1:]
    part, after_part = here > _ASSIGN, before > _ASSIGN
    begins = part & ((before <= _ASSIGN) | (here == _WIDE) | ((here == _CAPITAL) & (before == _LETTER)))
    begins |= (here > _OTHER) & (before == _OTHER)
    limits = np.flatnonzero(begins | (part < after_part) | (here == _DIGIT))
    is_word = np.flatnonzero(begins[limits[:-1]])
    starts, stops = limits[is_word] + 1, limits[is_word + 1] + 1
    lengths = stops - starts
    kept = (lengths >= _SHORTEST) & (classes[starts] != _DIGIT) & ((classes[stops] != _DIGIT) | begins[stops - 1])
    starts, lengths = starts[kept], lengths[kept]
    before_word = _eight(classes.data)[starts - 3] & _IS_ASSIGN
    letters = _eight(data.lower())[starts] & _MASKS[np.minimum(lengths, _LETTERS)]
    hashes = _mixed(letters ^ np.uint64(int.from_bytes(key[:8], "little")))
    kept = (before_word == 0) & ~_common(key)[hashes >> np.uint64(48)]
    return hashes[kept], starts[kept]


def _eight(data: bytes | memoryview) -> NDArray[np.uint64]:
    """Return the eight bytes at each place."""
    return np.ndarray((len(data) - 8,), "<u8", data, strides=(1,))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(29))) * _MIX
    return values ^ (values >> np.uint64(32))


@lru_cache(maxsize=8)
def _common(key: bytes) -> NDArray[np.bool_]:
    """Return the upper 16 bits of the hashes of words without meaning."""
    letters = [int.from_bytes(word.encode()[:_LETTERS], "little") for word in _COMMON.split()]
    table = np.zeros(1 << 16, np.bool_)
    table[_mixed(np.array(letters, np.uint64) ^ np.uint64(int.from_bytes(key[:8], "little"))) >> np.uint64(48)] = True
    return table


def _classes() -> bytes:
    table = bytearray([_SEPARATOR] * 0x80 + [_OTHER] * 0x80)
    for lead in range(0xE0, 0xEE):
        table[lead] = _WIDE  # scripts without blanks: each letter of three bytes is a word
    table[0xE1] = _OTHER
    table[0xE2] = _SEPARATOR  # dashes, quotation marks, arrows, frames; what is left of them is too short for a word
    for letter in range(26):
        table[ord("a") + letter], table[ord("A") + letter] = _LETTER, _CAPITAL
    for digit in b"0123456789":
        table[digit] = _DIGIT
    for sign in b":=":
        table[sign] = _ASSIGN
    return bytes(table)


_CLASSES = _classes()
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(_LETTERS + 1)], np.uint64)


def packed(each: Sequence[Pairs]) -> list[bytes]:
    """Return the pairs of each text in three bytes each, the lower two bytes of all pairs first."""
    pairs = np.concatenate((*each, _NOTHING))
    bounds = [0, *np.cumsum([len(some) for some in each]).tolist()]
    for start, end in pairwise(bounds):
        whole = end - (end - start) % BLOCK
        if whole > start:
            pairs[start:whole].reshape(-1, BLOCK).sort(axis=1)
        pairs[whole:end].sort()
    low, high = pairs.astype("<u2").tobytes(), (pairs >> np.uint32(16)).astype(np.uint8).tobytes()
    return [low[2 * start : 2 * end] + high[start:end] for start, end in pairwise(bounds)]


def among(blobs: Sequence[bytes], wanted: Collection[int]) -> tuple[NDArray[np.intp], Pairs]:
    """Return where ``wanted`` pairs stand in `packed` blobs, counted over all of them, and which pairs they are."""
    if not wanted:
        return np.empty(0, np.intp), _NOTHING
    sought = np.sort(np.fromiter(wanted, np.uint32, len(wanted)))
    may_be = np.zeros(1 << 16, np.bool_)
    may_be[sought & np.uint32(0xFFFF)] = True
    low, high = _unpacked(blobs)
    places = np.flatnonzero(may_be[low])
    values = low[places].astype(np.uint32) | (high[places].astype(np.uint32) << np.uint32(16))
    same = sought[np.minimum(np.searchsorted(sought, values), len(sought) - 1)] == values
    return places[same], values[same]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairIndex:
    """The pairs of at most 2**16 `packed` texts, sorted by their lower two bytes, to find which texts hold a pair.

    ``starts`` is by these two bytes where their pairs begin; ``high`` has the upper byte of each pair and ``owner`` the number of
    its text.
    """

    starts: NDArray[np.uint32]
    high: NDArray[np.uint8]
    owner: NDArray[np.uint16]
    texts: int

    @classmethod
    def of(cls, blobs: Sequence[bytes]) -> "PairIndex":
        low, high = _unpacked(blobs)
        order = np.argsort(low, kind="stable")
        owner = np.repeat(np.arange(len(blobs), dtype=np.uint16), [len(blob) // WIDTH for blob in blobs])
        starts = np.concatenate((np.zeros(1, np.uint32), np.cumsum(np.bincount(low, minlength=1 << 16), dtype=np.uint32)))
        return cls(starts=starts, high=high[order], owner=owner[order], texts=len(blobs))

    def shared(self, pairs: Collection[int]) -> NDArray[np.intp]:
        """Return for each text how many of its pairs are among these."""
        owners = [_NO_OWNER]
        for pair in pairs:
            start, end = self.starts[pair & 0xFFFF], self.starts[(pair & 0xFFFF) + 1]
            owners.append(self.owner[start:end][self.high[start:end] == pair >> 16])
        return np.bincount(np.concatenate(owners), minlength=self.texts)


_NO_OWNER = np.empty(0, np.uint16)


def _unpacked(blobs: Sequence[bytes]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return the lower two bytes of all pairs, and the upper ones."""
    low = np.frombuffer(b"".join(blob[: len(blob) // WIDTH * 2] for blob in blobs), "<u2")
    return low, np.frombuffer(b"".join(blob[len(blob) // WIDTH * 2 :] for blob in blobs), np.uint8)
