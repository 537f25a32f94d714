"""One short segment for a status line: notes given to the session, how long the last answer took, spent today, paused."""

from dataclasses import dataclass

import orjson

from kite_memory.redaction import redact_id

_LONGEST_INPUT = 1 << 16
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the segment shows. ``took_ms`` is ``None`` until the session had an answer; ``paused``: no notes are being written."""

    notes: int
    took_ms: float | None = None
    dollars: float = 0.0
    paused: bool = False


def session_of(body: bytes) -> str:
    """Return the session in the JSON that Claude Code gives a status line; empty for anything else."""
    if len(body) > _LONGEST_INPUT:
        return ""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    match told:
        case {"session_id": str(session)}:
            return redact_id(session[:_LONGEST_NAME].encode("utf-8", "replace").decode("utf-8"))
        case _:
            return ""


def segment(figures: Figures) -> str:
    parts = [f"kite: {figures.notes} note{'' if figures.notes == 1 else 's'}"]
    if figures.took_ms is not None:
        parts.append(f"{figures.took_ms:.0f} ms")
    if figures.dollars >= 0.005:
        parts.append(f"${figures.dollars:.2f}")
    if figures.paused:
        parts.append("paused")
    return " · ".join(parts)
