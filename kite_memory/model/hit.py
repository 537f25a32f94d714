"""What recall found, and what it says."""

from dataclasses import dataclass

from kite_memory.model.note import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """``score`` is absolute, 0 to 1, comparable between queries of one embedding space. ``why`` names what spoke for it."""

    note: Note
    score: float
    why: str
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What a prompt is given: ``block`` is empty when there is nothing to say. ``tokens`` is an estimate from above."""

    block: str
    hits: tuple[Hit, ...]
    reason: str
    tokens: int = 0

    @property
    def silent(self) -> bool:
        return not self.block
