"""A possible note, before the gate has passed it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from kite_memory.model.record import Origin, Rejected

Rule = Literal[
    "plan", "answer", "thread", "agreed", "pick", "refusal", "objection", "wish", "stated", "reminder", "correction", "choice",
    "manner", "conceded", "cause", "claim", "command",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDraft:
    """A possible note. ``rule`` is its source; ``worth`` is comparable between agents' claims, see `claims.Claim`."""

    rule: Rule
    kind: Literal["decision", "insight", "fact", "preference"]
    title: str
    body: str
    evidence: tuple[str, ...]
    importance: int
    origin: Origin
    worth: float = math.inf
    rejected: tuple[Rejected, ...] = ()
    symptom: str = ""
    everywhere: bool = False


def joined(texts: Iterable[str]) -> str:
    """Join texts into one paragraph; list items without an ending are separated by semicolons."""
    said = [text.rstrip(" ;,") for text in texts]
    closed = [text if text.endswith((*".!?…”:", '."', ".)")) else f"{text};" for text in said[:-1]]
    return " ".join([*closed, *(text if text.endswith(tuple(".!?…”")) else f"{text}." for text in said[-1:])])
