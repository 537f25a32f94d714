"""Cutting a text that may hold secrets: half of one is no secret to any pattern, so a cut leaves none of what it goes through."""

import re
from collections.abc import Iterator

_SIGNS = (
    r"\w+/=.~%:@!#$&*^?;|\-\xad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e007f"
)
"""What secrets are written with, and what may hide between. A run of these is called a word here."""
_WORD = re.compile(rf"[{_SIGNS}]+")
_COLOURED_WORD = re.compile(rf"[{_SIGNS}\\\x1b\x9b\[]+")
"""Where text is coloured, by terminal escapes or by escaped ones, the colour may change in the midst of a secret."""
_ESCAPED_COLOUR = re.compile(r"\\(?:u00[19][bB]|x[19][bB]|033|e)\[")
_AROUND = 400
_PADDING = " \t\\|│>"
_BREAK = re.compile(
    rf"[{re.escape(_PADDING)}]{{0,80}}(?:\\{{1,4}}r)?(?:\r?\n|\\{{1,4}}n)"
    r"(?:[ \t\\|│>*#?]{0,80}+(?:[0-9]{1,6}+[→|:\t])?){0,3}+"
)
"""Between two lines: what continues, frames, quotes or numbers them."""
_LONGEST_BREAK = 600
_FRAMES = _PADDING + "*#?→:0123456789"
_TURN = re.compile(r"[a-z](?=[A-Z0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[0-9])")
_JOINTS = re.compile(r"[=:/@]")
_BLANK = re.compile(r"\s")
_STRETCH = 120
"""What is written without a blank is one thing, a password with brackets and commas, unless it goes on and on."""
_NEARBY = 160
"""So far before a value stands what it is called, at most."""
_HALF = 8
_REACH = 512

_LESS = r"(?:<|%3c|\\u003c|\\x3c|&(?:amp;)?(?:lt|#0{0,4}60|#x0{0,4}3c);?)"
_MORE = r"(?:>|%3e|\\u003e|\\x3e|&(?:amp;)?(?:gt|#0{0,4}62|#x0{0,4}3e);?)"
_SLASH = r"(?P<close>/|%2f|\\u002f|\\/|&#0{0,4}47;|&#x0{0,4}2f;)"
PRIVATE_TAG = _LESS + r"\s{0,8}" + _SLASH + r"?\s{0,8}private(?![\w\-])[^<>&]{0,200}?" + _MORE
"""In small letters: what a person puts around what is not to be remembered, as it is or escaped."""
_PRIVATE_TAG = re.compile(PRIVATE_TAG, re.IGNORECASE)


def beginning(text: str, limit: int) -> str:
    """At most ``limit`` characters, without the word that the cut goes through and what a break has parted from it."""
    return text if len(text) <= limit else text[: _end_of_head(text, limit)].rstrip()


def ends(text: str, first: int, last: int) -> tuple[str, str]:
    """At most so many characters of either end of a longer text.

    What a secret is called stands before it, so the second end begins with a line where one is near, and behind whatever there
    looks like a secret. Of what a person marked as private neither has a part without its tag.
    """
    head, tail = _end_of_head(text, first), _start_of_tail(text, len(text) - last, last // 2)
    if "private" in text.lower():
        for start, end in _private(text):
            head = start if start < head < end else head
            tail = end if start < tail < end else tail
    return text[:head], text[tail:]


def _private(text: str) -> Iterator[tuple[int, int]]:
    """What stands between the tags, with them; one that is not closed reaches to the end."""
    depth = start = 0
    for tag in _PRIVATE_TAG.finditer(text):
        if not tag["close"]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield start, tag.end()
    if depth:
        yield start, len(text)


def _end_of_head(text: str, cut: int) -> int:
    word = _word_near(text, cut)
    broken = _BREAK.match(text, _padding_start(text, cut))
    at = broken.end() if broken and broken.end() > cut else _start(text, cut, word)
    if blank := _BLANK.search(text[max(0, at - _STRETCH) : at][::-1]):
        at -= blank.start()
    parted = True
    while (end := _break_start(text, at)) < at:
        start = _start(text, end, word)
        drawn = _drawn(text[start:end])
        if start == end or not (parted or drawn):
            break
        at, parted = start, drawn
    return min(at, cut)


def _start_of_tail(text: str, cut: int, near: int) -> int:
    word = _word_near(text, cut)
    at = _line_start(text, cut, cut + near, word)
    if at is None:
        at = _behind(text, cut, word)
    for found in word.finditer(text, at, at + _NEARBY):
        if len(found[0]) >= _HALF and _drawn(found[0]):
            at = max(at, _behind(text, found.end(), word))
    return at


def _behind(text: str, at: int, word: re.Pattern[str]) -> int:
    """Of the word that ``at`` lies in, all that belongs to it, also on the next lines."""
    at = _end(text, at, word)
    if blank := _BLANK.search(text, at, at + _STRETCH):
        at = blank.start()
    parted = True
    while found := _BREAK.match(text, _padding_start(text, at)):
        end = _end(text, found.end(), word)
        drawn = _drawn(text[found.end() : end])
        if not (parted or drawn):
            break
        at, parted = end, drawn
    return at


def _line_start(text: str, start: int, stop: int, word: re.Pattern[str]) -> int | None:
    """The first line's in ``[start, stop)`` that does not begin with what may be the other half of the line before."""
    newline = start - 1
    while (newline := text.find("\n", newline + 1, stop)) >= 0:
        end = _padding_start(text, newline)
        found = _BREAK.match(text, end)
        begin = found.end() if found else newline + 1
        if not (_drawn(text[_start(text, end, word) : end]) or _drawn(text[begin : _end(text, begin, word)])):
            return newline + 1
    return None


def _word_near(text: str, at: int) -> re.Pattern[str]:
    near = text[max(0, at - _AROUND) : at + _AROUND]
    coloured = "\x1b" in near or "\x9b" in near or ("\\" in near and _ESCAPED_COLOUR.search(near))
    return _COLOURED_WORD if coloured else _WORD


def _padding_start(text: str, at: int) -> int:
    before = text[max(0, at - 80) : at]
    return at - len(before) + len(before.rstrip("\r" + _PADDING))


def _break_start(text: str, at: int) -> int:
    """Of the break that ends at ``at``; ``at`` where there is none."""
    before = text[max(0, at - _LONGEST_BREAK) : at]
    line = before.rstrip(_FRAMES)
    if line.endswith("\n"):
        line = line[:-1].removesuffix("\r")
    elif line.endswith("\\n"):
        line = line[:-1].rstrip("\\")
        line = line[:-1].rstrip("\\") if line.endswith("\\r") else line
    else:
        return at
    start = len(line.rstrip(_PADDING))
    return at - len(before) + start if _BREAK.fullmatch(before, start) else at


def _start(text: str, at: int, word: re.Pattern[str]) -> int:
    """Of the word that stands before ``at``, or is cut there; ``at`` where there is none."""
    reach = _REACH
    while (found := word.match(text[max(0, at - reach) : at][::-1])) and found.end() == reach:
        reach *= 8
    if found is None:
        return at
    start = at - found.end()
    return start + 1 if text[start - 1 : start] == "\\" and text[start] in "nr" else start  # the end of an escaped break


def _end(text: str, at: int, word: re.Pattern[str]) -> int:
    found = word.match(text, at)
    return found.end() if found else at


def _drawn(word: str) -> bool:
    """Whether a piece of a secret may be in it: letters, digits and capitals in no order, or nothing but capitals."""
    return any(map(_in_no_order, _JOINTS.split(word)))


def _in_no_order(piece: str) -> bool:
    turns = sum(1 for _ in _TURN.finditer(piece))
    return turns >= 3 or turns * 5 >= len(piece) > 0 or (len(piece) >= _HALF and piece.isalnum() and piece.isupper())
