"""Tool results as agents get them: text and structure, both within the tool's limit."""

from typing import Any

from kite_memory.errors import KiteError
from kite_memory.text.quoting import quoted
from kite_memory.text.unicode import written
from kite_memory.tools import wire
from kite_memory.tools.store import Conflict, StoreUnavailable

Json = dict[str, Any]

_CUT = "\n[cut: {more:,} more characters; ask for less, or for one thing by its name]"
_HALVINGS = 60


def bounded(result: Json, longest: int) -> Json:
    """Return ``result`` itself if it is short enough as JSON, else with shortened lists and texts and the field ``cut``."""
    now, cut = result, False
    for _ in range(_HALVINGS):
        over = len(written(now)) - longest
        if over <= 0:
            break
        widest = max(now, key=lambda name: len(written(now[name])), default="")
        now, cut = {**now, widest: _shorter(now[widest], over) if widest else None}, True
    else:
        now = {}
    return {**now, "cut": "there is more than fits here; ask for less, or for one thing by its name"} if cut else now


def _shorter(value: Any, over: int) -> Any:
    match value:
        case str() if len(value) > 1:
            kept = max(len(value) - over - len(_CUT), len(value) // 2)
            return value[:kept] + _CUT.format(more=len(value) - kept)
        case list() if len(value) > 1:
            return value[: len(value) // 2]
        case [alone]:
            return [_shorter(alone, over)]
        case dict() if value:
            widest = max(value, key=lambda name: len(written(value[name])))
            return {**value, widest: _shorter(value[widest], over)}
        case _:
            return None


def text_of(result: Json) -> str:
    """Return the result's own ``text`` if it has one, else all of it as JSON."""
    words = result.get("text")
    return words if isinstance(words, str) and words else written(result)


def refusal(error: KiteError) -> tuple[str, Json]:
    """Return an error with what to do about it, as text and as structure."""
    details = wire.error_json(error)
    lines = [f"error: {quoted(str(error))}"]
    match error:
        case Conflict(version=version):
            lines.append(f"version now: {version}; read it again, and write with expected_version {version}")
        case StoreUnavailable():
            lines.append("nothing was written by halves; the same call may be made again")
        case _:
            pass
    if error.hint:
        lines.append(f"hint: {quoted(error.hint)}")
    return "\n".join(lines), {"error": details}
