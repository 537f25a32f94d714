"""Shortening of a text that is not redacted yet, without cutting through a secret.

Half of a secret matches no pattern, nor does a password without its name. So a cut goes through nothing that is written as one
piece, and is made where the redaction finds the same on each side as in the whole.
"""

import re

from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cleaning import clean
from kite_memory.text import lazy_regex

_SIGNS = (
    r"\w+/=.~%:@!#$&*^?;|\-\xad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e007f"
)
"""Characters that secrets consist of, and invisible ones that may be between them. A run of these is called a word here."""
_GAP = lazy_regex(rf"[^{_SIGNS}]")
_GAP_IN_COLOURS = lazy_regex(rf"[^{_SIGNS}\\\x1b\x9b\[]")
"""In coloured text, with raw or escaped terminal escapes, the colour may change within a secret."""
_ESCAPED_COLOURS = ("\\u001b[", "\\u001B[", "\\x1b[", "\\x1B[", "\\033[", "\\e[")
_PADDING = " \t\\|│>"
_BREAK = lazy_regex(
    rf"[{re.escape(_PADDING)}]{{0,80}}(?:\\{{1,4}}r)?(?:\r?\n|\\{{1,4}}n)"
    r"(?:[ \t\\|│>*#?]{0,80}+(?:[0-9]{1,6}+[→|:\t])?){0,3}+"
)
"""What is between two lines: continuation signs, frames, quote signs, line numbers."""
_LONGEST_BREAK = 400
_FRAMES = _PADDING + "*#?→:0123456789"
_TURN = lazy_regex(r"[a-z](?=[A-Z0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[0-9])")
_JOINTS = lazy_regex(r"[=:/@]")
_DIGEST = lazy_regex(r"[0-9a-f]{32,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Hashes of commits or objects, whose lists must stay. A key of many lines is no such list."""
_BLANK = lazy_regex(r"\s")
_STRETCH = 120
"""Text without a blank is one piece, such as a password with brackets and commas, up to this length."""
_BEFORE, _BEHIND = 400, 260
"""Characters before a value in which its name is, and behind it in which what identifies it is: no fewer than the reach of
`redaction.weighed` to either side.
"""
_TRIES = 32
"""Most attempts to find a place for a cut where secrets are next to one another."""
_REACH = 512


def beginning(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, with no part of a secret that continues behind them."""
    return text if len(text) <= limit else text[: _end_of_head(text, limit, _gap_of(text))].rstrip()


def ends(text: str, first: int, last: int) -> tuple[str, str]:
    """Return at most so many characters of either end, with no part of a secret, and none that is identified by the text between.

    Text marked as private is removed from the whole first. The second part is empty if the text is short enough.
    """
    text = drop_private(text)
    if len(text) <= first + last:
        return text, ""
    gap = _gap_of(text)
    return text[: _end_of_head(text, first, gap)], text[_start_of_tail(text, len(text) - last, gap) :]


def _end_of_head(text: str, cut: int, gap: re.Pattern[str]) -> int:
    """Return where to cut so that the head is redacted the same, alone and with what follows."""
    at = _before(text, cut, gap)
    for _ in range(_TRIES):
        start = max(0, at - _BEFORE)  # as much as the words of a line are weighed by, or the head is redacted otherwise than this
        near = text[start : at + _BEHIND]
        found = redact(near, of=len(text))
        if found == clean(near) or found.startswith(redact(text[start:at], of=len(text))):
            return at
        at = _before(text, min(at - 1, start + _alike(near, found)), gap)
    return 0


def _start_of_tail(text: str, cut: int, gap: re.Pattern[str]) -> int:
    """Return where to cut so that the tail is redacted the same, alone and with what precedes it."""
    at = _behind(text, cut, gap)
    for _ in range(_TRIES):
        stop = min(len(text), at + _BEHIND)
        near = text[max(0, at - _BEFORE) : stop]
        found = redact(near, of=len(text))
        if found == clean(near) or found.endswith(redact(text[at:stop], of=len(text))):
            return at
        at = _behind(text, max(at + 1, stop - _alike(near[::-1], found[::-1])), gap)
    return len(text)


def _alike(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def _before(text: str, cut: int, gap: re.Pattern[str]) -> int:
    """Move the cut before the word it goes through, and before the earlier lines of that word."""
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
    """Move the cut behind the word it goes through, and behind the later lines of that word."""
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
    coloured = "\x1b" in text or "\x9b" in text or ("\\" in text and any(colour in text for colour in _ESCAPED_COLOURS))
    return _GAP_IN_COLOURS if coloured else _GAP


def _padding_start(text: str, at: int) -> int:
    before = text[max(0, at - 80) : at]
    return at - len(before) + len(before.rstrip("\r" + _PADDING))


def _break_start(text: str, at: int) -> int:
    """Return the start of the line break that ends at ``at``, or ``at`` itself if no line break ends there."""
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
    """Return the start of the word before or around ``at``, or ``at`` itself if no word is there."""
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
    """Return whether the text may hold a piece of a secret: letters, digits and capitals in no order."""
    return _DIGEST.fullmatch(word) is None and any(map(_in_no_order, _JOINTS.split(word)))


def _in_no_order(piece: str) -> bool:
    turns = sum(1 for _ in _TURN.finditer(piece))
    return turns >= 3 or turns * 5 >= len(piece) > 0
