"""The memory as one file to read: notes, latest sessions and the graph, with everything it needs inside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from markupsafe import Markup

from kite_memory.web import drawing
from kite_memory.web.rendering import Renderer

Json = Mapping[str, Any]

_LONGEST_NOTE = 20_000
_LONGEST = 8_000_000
"""Characters of all notes together."""
_DAYS = 30
_SESSIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPage:
    """The file, how many notes are in it, and how many were left out."""

    data: bytes
    notes: int
    left_out: int


def document(notes: Sequence[Json], *, sessions: Sequence[Json], around: Json, now: datetime) -> ExportedPage:
    """Return the newest notes as a page, as many as fit, with the sessions and the most linked notes."""
    kept: list[Json] = []
    room = _LONGEST
    for note in sorted(notes, key=lambda note: (str(note["created"]), str(note["path"])), reverse=True):
        room -= min(len(note["body"]), _LONGEST_NOTE) + len(note["title"])
        if room < 0:
            break
        kept.append({**note, "body": note["body"][:_LONGEST_NOTE], "anchor": _anchor(note["path"])})
    anchors = {name: note["anchor"] for note in kept for name in (note["id"], note["path"], _stem(note["path"])) if name}
    paths = {note["path"] for note in kept}
    hubs = {
        "notes": [each for each in around["notes"] if each["path"] in paths],
        "arrows": [each for each in around["arrows"] if {each["from"], each["to"]} <= paths],
    }
    renderer = Renderer(base="", form="", note_link=lambda name: f"#{anchors.get(name) or anchors.get(_stem(name), 'gone')}")
    text = renderer.text(
        "document.html",
        style=Markup(Path(__file__).with_name("static").joinpath("style.css").read_text(encoding="utf-8")),  # noqa: S704 - ours
        notes=kept,
        left_out=len(notes) - len(kept),
        titles={_stem(note["path"]): note["title"] for note in kept},
        lanes=drawing.lanes(sessions, start=now.astimezone() - timedelta(days=_DAYS), end=now.astimezone()),
        sessions=sessions[:_SESSIONS],
        picture=drawing.overview(hubs) if hubs["notes"] else None,
        now=now.isoformat(),
    )
    return ExportedPage(data=text.encode(), notes=len(kept), left_out=len(notes) - len(kept))


def _stem(path: str) -> str:
    return PurePosixPath(path).stem.casefold()


def _anchor(path: str) -> str:
    return "note-" + "".join(letter if letter.isalnum() else "-" for letter in _stem(path))
