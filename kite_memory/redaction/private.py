"""What a person marked as not to be remembered."""

import re

from kite_memory.redaction.cleaning import bare, clean

_LESS = rb"(?:<|%3c|\\u003c|\\x3c|&(?:amp;)?(?:lt|#0{0,4}60|#x0{0,4}3c);?)"
_MORE = rb"(?:>|%3e|\\u003e|\\x3e|&(?:amp;)?(?:gt|#0{0,4}62|#x0{0,4}3e);?)"
_SLASH = rb"(?P<close>/|%2f|\\u002f|\\/|&#0{0,4}47;|&#x0{0,4}2f;)"
_TAG = re.compile(_LESS + rb"\s{0,8}" + _SLASH + rb"?\s{0,8}private(?![\w\-])[^<>&]{0,200}?" + _MORE)
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
