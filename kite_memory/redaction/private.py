"""What a person marked as not to be remembered."""

import re

from kite_memory.model.cutting import PRIVATE_TAG
from kite_memory.redaction.cleaning import bare, clean

_TAG = re.compile(PRIVATE_TAG.encode())
_PASSES = 8


def drop_private(text: str) -> str:
    """``text`` without what stands between ``<private>`` and ``</private>``, tags included.

    An unclosed tag drops all that follows: better to lose a sentence than to keep a secret. Tags within tags count.
    """
    if text.isascii() and "private" not in text.lower() and "\x1b" not in text:
        return text
    for _ in range(_PASSES):
        seen = clean(text)
        kept = _outside(seen)
        if kept == seen:
            return text
        text = kept
    tag = _TAG.search(bare(text).lower())
    return text[: tag.start()] if tag else text


def _outside(text: str) -> str:
    small = bare(text).lower()
    if b"private" not in small:
        return text
    pieces: list[str] = []
    depth = at = 0
    for tag in _TAG.finditer(small):
        if tag["close"]:
            if depth == 1:
                at = tag.end()
            depth = max(0, depth - 1)
        else:
            if depth == 0:
                pieces.append(text[at : tag.start()])
            depth += 1
    return "".join(pieces) if depth else "".join((*pieces, text[at:]))
