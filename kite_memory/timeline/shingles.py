"""Hashes of pairs of words, by which a text is recognised later without being kept.

What they give away is little. A word counts with its first six letters; one with a digit, and one that stands behind ``:`` or
``=``, counts for nothing, since secrets look so. Two neighbouring words give 24 bits under a key of this machine, so that dozens of
pairs of a dictionary share each value, and values are sorted within blocks, so that no order is left to chain them by.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.uint32]

BLOCK = 64
"""Pairs within which no order is kept: some thirty words that carry meaning."""
_LETTERS = 6
_SEPARATOR, _OTHER, _LETTER, _DIGIT, _CAPITAL, _WIDE = range(6)
_SHORTEST = 3
_MIX = np.uint64(0x9E3779B97F4A7C15)
_PIECE = 1 << 18
"""Bytes looked at at once: what is made of them stays in the processor's cache."""
_EDGE = 8
_UNSEEN = tuple(letter.encode() for letter in "\u200b\u200c\u200d\u2060\ufeff\u00ad")
_COMMON = """
about above after again also always and any are been before being below between both but can could did does doing done each
either even every few for from get gets got had has have having here how into its itself just let like made make makes many may
might more most much must need needs never new non not now off once one only other our out over own per rather really same see
shall should since some still such sure take than that the their them then there these they thing things this those though
through thus too two under until use used uses using very via want was way well were what when where whether which while who
whom whose why will with within without would yes yet you your all
"""


def pairs_of(texts: Sequence[str], key: bytes) -> list[Pairs]:
    """Of each text its pairs in order, as 24-bit values."""
    found: list[list[Pairs]] = [[] for _ in texts]
    batch: list[tuple[int, bytes]] = []
    size = 0
    for number, text in enumerate(texts):
        data = _encoded(text)
        for at in range(0, len(data), _PIECE):
            part = data[at : at + _PIECE]
            batch.append((number, part))
            size += len(part)
            if size >= _PIECE:
                _take(batch, key, found)
                batch, size = [], 0
    _take(batch, key, found)
    return [np.concatenate(parts) if len(parts) != 1 else parts[0] for parts in ([*each] or [_NOTHING] for each in found)]


_NOTHING: Pairs = np.empty(0, np.uint32)


def _encoded(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if not text.isascii():
        for unseen in _UNSEEN:
            data = data.replace(unseen, b"")
    return data


def _take(batch: Sequence[tuple[int, bytes]], key: bytes, found: list[list[Pairs]]) -> None:
    if not batch:
        return
    numbers = [number for number, _ in batch]
    ends = np.cumsum([len(part) + _EDGE for _, part in batch])
    between = b"\0" * _EDGE
    data = between + between.join(part for _, part in batch) + between
    words, places = _words(data, key)
    if len(words) < 2:
        return
    of = np.searchsorted(ends, places, side="right")
    both = np.zeros((len(words), 2), np.uint32)
    there = np.zeros((len(words), 2), np.bool_)
    for column, apart in enumerate((1, 2)):
        if len(words) > apart:
            both[:-apart, column] = _mixed(words[:-apart] + words[apart:]) >> np.uint64(40)
            there[:-apart, column] = (of[:-apart] == of[apart:]) & (words[:-apart] != words[apart:])
    values = both[there]
    owners = np.repeat(of, 2).reshape(-1, 2)[there]
    bounds = np.searchsorted(owners, np.arange(len(numbers) + 1))
    for number, start, end in zip(numbers, bounds[:-1], bounds[1:], strict=True):
        if end > start:
            found[number].append(values[start:end])


def _words(data: bytes, key: bytes) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """The hashes of the words that carry meaning, and where each begins."""
    classes = np.frombuffer(data.translate(_CLASSES), np.uint8)
    before, here = classes[:-1], classes[1:]
    part = here != _SEPARATOR
    begins = part & ((before == _SEPARATOR) | (here == _WIDE) | ((here == _CAPITAL) & (before == _LETTER)))
    begins |= (here > _OTHER) & (before == _OTHER)
    limits = np.flatnonzero(begins | ~part)
    is_word = begins[limits]
    is_word[-1] = False
    starts = limits[is_word]
    lengths = limits[1:][is_word[:-1]] - starts
    starts += 1
    wanted = _MASKS[np.minimum(lengths, _LETTERS)]
    counted = np.cumsum(classes == _DIGIT, dtype=np.int32)
    digits = counted[starts + lengths - 1] - counted[starts - 1]
    assigned = _eight(data.translate(_ASSIGNS))[starts - 3] & _MASKS[3]
    letters = _eight(data.lower())[starts] & wanted
    hashes = _mixed(letters ^ np.uint64(int.from_bytes(key[:8], "little")))
    kept = (lengths >= _SHORTEST) & (digits == 0) & (assigned == 0) & ~_common(key)[hashes >> np.uint64(48)]
    return hashes[kept], starts[kept]


def _eight(data: bytes) -> NDArray[np.uint64]:
    """From each place the eight bytes that stand there."""
    return np.ndarray((len(data) - 8,), "<u8", data, strides=(1,))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(29))) * _MIX
    return values ^ (values >> np.uint64(32))


@lru_cache(maxsize=8)
def _common(key: bytes) -> NDArray[np.bool_]:
    """Words that say nothing, by the upper 16 bits of their hashes."""
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
    return bytes(table)


_CLASSES = _classes()
_ASSIGNS = bytes(byte in b":=" for byte in range(256))
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(_LETTERS + 1)], np.uint64)


def packed(pairs: Pairs) -> bytes:
    """Three bytes for each, the lower two of all of them first."""
    whole = len(pairs) - len(pairs) % BLOCK
    if whole:
        pairs = pairs.copy()
        pairs[:whole].reshape(-1, BLOCK).sort(axis=1)
        pairs[whole:].sort()
    else:
        pairs = np.sort(pairs)
    return pairs.astype("<u2").tobytes() + (pairs >> np.uint32(16)).astype(np.uint8).tobytes()


def among(blobs: Sequence[bytes], wanted: Collection[int]) -> tuple[NDArray[np.intp], Pairs]:
    """Where ``wanted`` pairs stand in what was `packed`, counted on over all of it, and which they are."""
    if not wanted:
        return np.empty(0, np.intp), _NOTHING
    sought = np.sort(np.fromiter(wanted, np.uint32, len(wanted)))
    may_be = np.zeros(1 << 16, np.bool_)
    may_be[sought & np.uint32(0xFFFF)] = True
    low = np.frombuffer(b"".join(blob[: len(blob) // 3 * 2] for blob in blobs), "<u2")
    high = np.frombuffer(b"".join(blob[len(blob) // 3 * 2 :] for blob in blobs), np.uint8)
    places = np.flatnonzero(may_be[low])
    values = low[places].astype(np.uint32) | (high[places].astype(np.uint32) << np.uint32(16))
    same = sought[np.minimum(np.searchsorted(sought, values), len(sought) - 1)] == values
    return places[same], values[same]
