"""All tokens recognizable by their form, and the expressions that find candidates."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from kite_memory.redaction.vendors.rules import CLOUDS, MODELS, PEOPLE, WORKSHOP
from kite_memory.redaction.vendors.vendor import Vendor

VENDORS: tuple[Vendor, ...] = (*MODELS, *CLOUDS, *WORKSHOP, *PEOPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A vendor's token by one of its anchors, which is ``length`` characters long."""

    kind: str
    length: int
    body: re.Pattern[bytes]
    lead: re.Pattern[bytes] | None
    glued: bool
    spelled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorPatterns:
    r"""Expressions that find anchors: ``anywhere`` in general, ``edged`` only at an edge, but several times as fast.

    An edge is the front of a word, an escape (``\n``) or the rest of a colour code (``[31m``) before it. Group 1 is the anchor;
    without the group the whole match is an anchor that begins with a sign. ``suspects`` has by anchor the vendors that have it, and
    after them those with an anchor that is its prefix.
    """

    anywhere: re.Pattern[bytes]
    edged: re.Pattern[bytes]
    suspects: dict[bytes, tuple[Suspect, ...]]


def catalogue(vendors: Iterable[Vendor]) -> AnchorPatterns:
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
    return AnchorPatterns(
        anywhere=re.compile(anywhere.encode()),
        edged=re.compile(rf"[^A-Za-z0-9](?:(?:(?<=\\)[bfnrt]|(?<=\[)[0-9;]{{1,12}}m)?({anywhere}){signed})".encode()),
        suspects={
            anchor.encode(): tuple(suspect for length in range(len(anchor), 0, -1) for suspect in suspects.get(anchor[:length], ()))
            for anchor in suspects
        },
    )


def any_of(literals: Iterable[str]) -> str:
    """Return an expression for the longest of ``literals``, which reads each character of the text only once or twice."""
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
def every_vendor() -> AnchorPatterns:
    """Return the catalogue, built on first use: most commands only show text that was redacted before."""
    return catalogue(VENDORS)
