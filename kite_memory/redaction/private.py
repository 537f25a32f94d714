"""What a person marked as not to be remembered."""

import re

from kite_memory.redaction.cleaning import clean

_LESS = r"(?:<|\uff1c|%3[cC]|\\u003[cC]|\\x3[cC]|&(?:amp;)?(?:lt|#0{0,4}60|#[xX]0{0,4}3[cC]);?)"
_MORE = r"(?:>|\uff1e|%3[eE]|\\u003[eE]|\\x3[eE]|&(?:amp;)?(?:gt|#0{0,4}62|#[xX]0{0,4}3[eE]);?)"
_TAG = re.compile(
    rf"{_LESS}\s{{0,8}}(?P<close>[/\uff0f]|%2[fF]|\\u002[fF]|\\/|&#0{{0,4}}47;|&#[xX]2[fF];)?\s{{0,8}}private(?![\w\-])(?:[^<>&\uff1c\uff1e]{{0,200}}?){_MORE}",
    re.IGNORECASE,
)
_PASSES = 8


def drop_private(text: str) -> str:
    """``text`` without what stands between ``<private>`` and ``</private>``, tags included.

    An unclosed tag drops all that follows: better to lose a sentence than to keep a secret. Tags within tags count.
    """
    if "private" not in text.lower() and text.isascii() and "\x1b" not in text:
        return text
    for _ in range(_PASSES):
        seen = clean(text)
        kept = _outside(seen)
        if kept == seen:
            return text
        text = kept
    return text[: first.start()] if (first := _TAG.search(text)) else text


def _outside(text: str) -> str:
    pieces: list[str] = []
    depth = at = 0
    for tag in _TAG.finditer(text):
        if tag["close"]:
            if depth == 1:
                at = tag.end()
            depth = max(0, depth - 1)
        else:
            if depth == 0:
                pieces.append(text[at : tag.start()])
            depth += 1
    return "".join(pieces) if depth else "".join((*pieces, text[at:]))
