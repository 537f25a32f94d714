"""Every token that can be told by its looks, and the one expression that finds where to look closer."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kite_memory.redaction.vendors.clouds import CLOUDS
from kite_memory.redaction.vendors.models import MODELS
from kite_memory.redaction.vendors.people import PEOPLE
from kite_memory.redaction.vendors.vendor import Vendor
from kite_memory.redaction.vendors.workshop import WORKSHOP

VENDORS: tuple[Vendor, ...] = (*MODELS, *CLOUDS, *WORKSHOP, *PEOPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A vendor as seen from one of its anchors, which is ``length`` characters long."""

    kind: str
    length: int
    body: re.Pattern[bytes]
    lead: re.Pattern[bytes] | None
    glued: bool
    spelled: bool


def anchored(literals: Iterable[str]) -> str:
    """An expression for any of ``literals``, longest first, that looks at each character of the text but once or twice."""
    tree: dict[str, list[str]] = {}
    ends = False
    for literal in literals:
        if literal:
            tree.setdefault(literal[0], []).append(literal[1:])
        else:
            ends = True
    branches = [re.escape(first) + anchored(rest) for first, rest in sorted(tree.items())]
    if not branches:
        return ""
    whole = branches[0] if len(branches) == 1 and not ends else f"(?:{'|'.join(branches)})"
    return f"{whole}?" if ends and len(branches) > 1 else f"(?:{whole})?" if ends else whole


def _suspects() -> dict[bytes, tuple[Suspect, ...]]:
    """By anchor: whoever has it, and after them whoever has an anchor that begins it."""
    by_anchor: dict[str, list[Suspect]] = {}
    for vendor in VENDORS:
        body = re.compile(vendor.body.encode())
        lead = re.compile(vendor.lead.encode()) if vendor.lead else None
        for anchor in vendor.anchors:
            suspect = Suspect(
                kind=vendor.kind, length=len(anchor), body=body, lead=lead, glued=vendor.glued, spelled=vendor.spelled
            )
            by_anchor.setdefault(anchor, []).append(suspect)
    return {
        anchor.encode(): tuple(
            suspect for length in range(len(anchor), 0, -1) for suspect in by_anchor.get(anchor[:length], ())
        )
        for anchor in by_anchor
    }


SUSPECTS: dict[bytes, tuple[Suspect, ...]] = _suspects()

_ANY = anchored(sorted({anchor for vendor in VENDORS for anchor in vendor.anchors}))
ANCHOR: re.Pattern[bytes] = re.compile(_ANY.encode())


def _edged() -> str:
    signs: dict[str, list[str]] = {}
    for vendor in VENDORS:
        for anchor in vendor.anchors:
            if not anchor[0].isalnum():
                signs.setdefault(anchor[0], []).append(anchor[1:])
    signed = "|".join(f"(?<={re.escape(sign)}){anchored(sorted(set(rest)))}" for sign, rest in sorted(signs.items()))
    return rf"[^A-Za-z0-9](?:(?:(?<=\\)[bfnrt]|(?<=\[)[0-9;]{{1,12}}m)?({_ANY})|{signed})"


EDGED: re.Pattern[bytes] = re.compile(_edged().encode())
"""An anchor (group 1) at the front of a word, behind an escape (``\\n``) or behind what is left of a colour (``[31m``); or, without
the group, an anchor that begins with a sign."""
