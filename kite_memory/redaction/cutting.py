"""Cutting a text that was not redacted yet: half of a secret is no secret to any pattern, nor is a password without its name.

So a cut goes through nothing that is written in one, and is made where nothing is found that it would take apart.
"""

import re

from kite_memory.redaction.cleaning import clean, drop_private
from kite_memory.redaction.door import redact

_SIGNS = (
    r"\w+/=.~%:@!#$&*^?;|\-\xad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e007f"
)
"""What secrets are written with, and what may hide between. A run of these is called a word here."""
_GAP = re.compile(rf"[^{_SIGNS}]")
_GAP_IN_COLOURS = re.compile(rf"[^{_SIGNS}\\\x1b\x9b\[]")
"""Where text is coloured, by terminal escapes or by escaped ones, the colour may change in the midst of a secret."""
_COLOURS = ("\x1b", "\x9b", "\\u001b[", "\\u001B[", "\\x1b[", "\\x1B[", "\\033[", "\\e[")
_PADDING = " \t\\|│>"
_BREAK = re.compile(
    rf"[{re.escape(_PADDING)}]{{0,80}}(?:\\{{1,4}}r)?(?:\r?\n|\\{{1,4}}n)"
    r"(?:[ \t\\|│>*#?]{0,80}+(?:[0-9]{1,6}+[→|:\t])?){0,3}+"
)
"""Between two lines: what continues, frames, quotes or numbers them."""
_LONGEST_BREAK = 400
_FRAMES = _PADDING + "*#?→:0123456789"
_TURN = re.compile(r"[a-z](?=[A-Z0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[0-9])")
_JOINTS = re.compile(r"[=:/@]")
_DIGEST = re.compile(r"[0-9a-f]{32,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Stands in lists that nobody wants to lose: of commits, of objects. A key of many lines is no such list."""
_BLANK = re.compile(r"\s")
_STRETCH = 120
"""What is written without a blank is one thing, a password with brackets and commas, unless it goes on and on."""
_BEFORE, _BEHIND = 400, 200
"""So far before a value stands what it is called, and so far behind it what it is told by."""
_TRIES = 32
"""Where one secret stands beside the other, there is an end to looking for a better place."""
_REACH = 512


def beginning(text: str, limit: int) -> str:
    """At most ``limit`` characters, with no part of a secret that goes on behind them."""
    return text if len(text) <= limit else text[: _end_of_head(text, limit)].rstrip()


def ends(text: str, first: int, last: int) -> tuple[str, str]:
    """At most so many characters of either end, with no part of a secret, and none that is known by what lies between them.

    What a person marked as private is out of the whole text before. The second is empty where the text is short enough.
    """
    text = drop_private(text)
    if len(text) <= first + last:
        return text, ""
    return text[: _end_of_head(text, first)], text[_start_of_tail(text, len(text) - last) :]


def _end_of_head(text: str, cut: int) -> int:
    """The cut is good where what is kept is redacted alike, alone and with what follows."""
    gap = _gap_of(text)
    at = _before(text, cut, gap)
    for _ in range(_TRIES):
        start = max(0, at - _BEHIND)  # enough to see what goes across: whoever redacts the head sees all that is before
        near = text[start : at + _BEHIND]
        found = redact(near)
        if found == clean(near) or found.startswith(redact(text[start:at])):
            return at
        at = _before(text, min(at - 1, start + _alike(near, found)), gap)
    return 0


def _start_of_tail(text: str, cut: int) -> int:
    """The cut is good where what is kept is redacted alike, alone and with what was before."""
    gap = _gap_of(text)
    at = _behind(text, cut, gap)
    for _ in range(_TRIES):
        stop = min(len(text), at + _BEHIND)
        near = text[max(0, at - _BEFORE) : stop]
        found = redact(near)
        if found == clean(near) or found.endswith(redact(text[at:stop])):
            return at
        at = _behind(text, max(at + 1, stop - _alike(near[::-1], found[::-1])), gap)
    return len(text)


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def _before(text: str, cut: int, gap: re.Pattern[str]) -> int:
    """The cut, moved before the word it goes through, and before those lines of it that are above."""
    broken = _BREAK.match(text, _padding_start(text, cut))
    at = broken.end() if broken and broken.end() > cut else _start(text, cut, gap)
    if blank := _BLANK.search(text[max(0, at - _STRETCH) : at][::-1]):
        at -= blank.start()
    parted = True
    while (end := _break_start(text, at)) < at:
        start = _start(text, end, gap)
        drawn = _drawn(text[start:end])
        if start == end or not (parted or drawn):
            break
        at, parted = start, drawn
    return min(at, cut)


def _behind(text: str, cut: int, gap: re.Pattern[str]) -> int:
    """The cut, moved behind the word it goes through, and behind those lines of it that are below."""
    at = _end(text, cut, gap)
    if blank := _BLANK.search(text, at, at + _STRETCH):
        at = blank.start()
    parted = True
    while found := _BREAK.match(text, _padding_start(text, at)):
        end = _end(text, found.end(), gap)
        drawn = _drawn(text[found.end() : end])
        if not (parted or drawn):
            break
        at, parted = end, drawn
    return at


def _gap_of(text: str) -> re.Pattern[str]:
    return _GAP_IN_COLOURS if any(colour in text for colour in _COLOURS) else _GAP


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


def _start(text: str, at: int, gap: re.Pattern[str]) -> int:
    """Of the word that stands before ``at``, or is cut there; ``at`` where there is none."""
    reach = _REACH
    while (found := gap.search(text[max(0, at - reach) : at][::-1])) is None and reach < at:
        reach *= 8
    start = at - found.start() if found else 0
    escaped = text[max(0, start - 1) : start] == "\\" and start < at and text[start] in "nr"
    return start + 1 if escaped else start  # the end of an escaped break


def _end(text: str, at: int, gap: re.Pattern[str]) -> int:
    found = gap.search(text, at)
    return found.start() if found else len(text)


def _drawn(word: str) -> bool:
    """Whether a piece of a secret may be in it: letters, digits and capitals in no order."""
    return _DIGEST.fullmatch(word) is None and any(map(_in_no_order, _JOINTS.split(word)))


def _in_no_order(piece: str) -> bool:
    turns = sum(1 for _ in _TURN.finditer(piece))
    return turns >= 3 or turns * 5 >= len(piece) > 0
