"""Form of a vendor's token."""

from dataclasses import dataclass

ALNUM = "[A-Za-z0-9]"
"""Base 62."""
WORD = r"[A-Za-z0-9_\-]"
"""Base 64 as used in URLs."""
BASE64 = "[A-Za-z0-9+/]"
HEX = "[0-9a-f]"
ANYHEX = "[0-9A-Fa-f]"
LOWER = "[a-z0-9]"
UPPER = "[A-Z0-9]"
DOTTED = r"[A-Za-z0-9_\-.]"
UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A token recognizable by a literal in it.

    ``anchors`` are literals that such a token always has, nearly always its prefix; ``body`` is what follows one. ``lead`` is what
    precedes one, written from right to left, so that it too is matched in one go. Bodies accept longer tokens, since a vendor may
    lengthen its tokens without notice, and a remaining tail is a leak. Every repeat is bounded: matching takes time linear in the
    text.

    ``glued`` tokens are identified well enough by their anchor to be found right behind a letter or a digit. ``spelled`` tokens may
    look like words (all letters of one case) and still match; others may not.
    """

    kind: str
    anchors: tuple[str, ...]
    body: str
    lead: str = ""
    glued: bool = True
    spelled: bool = False


def prefixed(kind: str, anchors: str, body: str, *, glued: bool = True, spelled: bool = False) -> Vendor:
    """Return a vendor for tokens with a prefix; ``anchors`` are separated by blanks."""
    return Vendor(kind=kind, anchors=tuple(anchors.split()), body=body, glued=glued, spelled=spelled)


def loose(kind: str, anchors: str, body: str, *, spelled: bool = False) -> Vendor:
    """Return a vendor for prefixes that also occur within words, and so count only at the front of a word."""
    return prefixed(kind, anchors, body, glued=False, spelled=spelled)


def inside(kind: str, lead: str, anchor: str, body: str) -> Vendor:
    """Return a vendor for tokens with a literal in their middle or at their end."""
    return Vendor(kind=kind, anchors=(anchor,), body=body, lead=lead)
