"""Every token that can be told by its looks, and the expressions that find where to look closer."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from kite_memory.redaction.vendors.rules import CLOUDS, MODELS, PEOPLE, WORKSHOP
from kite_memory.redaction.vendors.vendor import Vendor

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """``anywhere`` finds an anchor; ``edged`` only where nothing is glued to its front, but several times as fast.

    An edge is the front of a word, an escape (``\\n``) or what is left of a colour (``[31m``) before it; group 1 is the anchor, and
    without the group the whole match is an anchor that begins with a sign. ``suspects`` has by anchor whoever has it, and after
    them whoever has an anchor that begins it.
    """

    anywhere: re.Pattern[bytes]
    edged: re.Pattern[bytes]
    suspects: dict[bytes, tuple[Suspect, ...]]


def catalogue(vendors: Iterable[Vendor]) -> Catalogue:
    suspects: dict[str, list[Suspect]] = {}
    for vendor in vendors:
        body = re.compile(vendor.body.encode())
        lead = re.compile(vendor.lead.encode()) if vendor.lead else None
        for anchor in vendor.anchors:
            suspects.setdefault(anchor, []).append(
                Suspect(kind=vendor.kind, length=len(anchor), body=body, lead=lead, glued=vendor.glued, spelled=vendor.spelled)
            )
    anywhere = any_of(suspects)
    signed = "".join(
        f"|(?<={re.escape(sign)}){any_of(anchor[1:] for anchor in suspects if anchor[0] == sign)}"
        for sign in sorted({anchor[0] for anchor in suspects if not anchor[0].isalnum()})
    )
    return Catalogue(
        anywhere=re.compile(anywhere.encode()),
        edged=re.compile(rf"[^A-Za-z0-9](?:(?:(?<=\\)[bfnrt]|(?<=\[)[0-9;]{{1,12}}m)?({anywhere}){signed})".encode()),
        suspects={
            anchor.encode(): tuple(suspect for length in range(len(anchor), 0, -1) for suspect in suspects.get(anchor[:length], ()))
            for anchor in suspects
        },
    )


def any_of(literals: Iterable[str]) -> str:
    """An expression for the longest of ``literals`` that is there, which looks at each character of the text but once or twice."""
    rests: dict[str, list[str]] = {}
    ends = False
    for literal in sorted(set(literals)):
        if literal:
            rests.setdefault(literal[0], []).append(literal[1:])
        else:
            ends = True
    branches = [re.escape(first) + any_of(rest) for first, rest in rests.items()]
    if not branches:
        return ""
    return f"(?:{'|'.join(branches)}){'?' if ends else ''}" if ends or len(branches) > 1 else branches[0]


@cache
def every_vendor() -> Catalogue:
    """Made when it is first asked for: most commands show what was cleaned long ago."""
    return catalogue(VENDORS)
