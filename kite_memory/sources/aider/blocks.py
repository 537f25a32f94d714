"""Aider's chat history is Markdown: telling its blocks apart.

Aider writes what a person says as ``#### …``, its own output as ``> …``, each line of both with two blanks at its end, and what
the model answers as it came. The model writes headings and quotations of its own; they have no such blanks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

HEADER = b"# aider chat started at "

_SAID, _PRINTED = b"####", b">"
_MARK = b"  "
_FENCES = (b"```", b"~~~")
_UNMISTAKABLE = re.compile(rb"> (?:Tokens: |Applied edit to |Commit [0-9a-f]{7}|\^C|litellm\.|Retrying in |Add file to the chat\?)")
"""What Aider prints after an answer, even after one that was cut off inside of a code block."""

_RUNS = re.compile(rb"#### (?:/(?:run|test|git) |!)")
"""How a person's line begins that runs a command: what Aider prints next is its output."""

Kind = Literal["run", "said", "printed", "answer", "foreign", "blank"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The bytes ``[start, end)`` without their last newline. ``foreign`` is what stands before the first run."""

    kind: Kind
    start: int
    end: int
    lines: tuple[bytes, ...]


@dataclass(slots=True, kw_only=True)
class Place:
    """What has to be known of a history before a block to tell what the next one is.

    ``marked`` says that this file has its blanks at the ends of lines; tools that strip them make files that have not.
    ``gathers`` says that the output of a command that the person ran may follow: its lines belong together.
    """

    in_run: bool = False
    marked: bool = False
    after_answer: bool = False
    gathers: bool = False


def blocks(data: bytes, position: int, place: Place, *, forced: bool = False) -> Iterator[Block]:
    """Every block that begins in ``data``, whole lines standing at ``position``, and is known to have ended.

    ``place`` is moved past a block when the next one is asked for. With ``forced`` the last one counts as ended too.
    """
    lines = data.split(b"\n")
    at = 0
    while at < len(lines):
        line = lines[at].rstrip(b"\r")
        kind = _kind(line, place)
        end = _end(lines, at, kind, place)
        if end is None and not forced:
            return
        taken = lines[at : len(lines) if end is None else end]
        size = sum(map(len, taken)) + len(taken)
        yield Block(kind=kind, start=position, end=position + size - 1, lines=tuple(each.rstrip(b"\r") for each in taken))
        _move(place, kind, line)
        position += size
        at += len(taken)


def _kind(line: bytes, place: Place) -> Kind:
    if not line.strip():
        return "blank"
    if line.startswith(HEADER):
        return "run"
    if not place.in_run:
        return "foreign"
    if _is_said(line) and (_marked(line) or not (place.marked or place.after_answer)):
        return "said"
    if _is_printed(line) and (_marked(line) or not place.marked or not place.after_answer):
        return "printed"
    return "answer"


def _move(place: Place, kind: Kind, line: bytes) -> None:
    match kind:
        case "blank":
            place.gathers = False
        case "run":
            place.in_run, place.marked, place.after_answer, place.gathers = True, False, False, False
        case _:
            place.marked |= kind in ("said", "printed") and _marked(line)
            place.after_answer = kind == "answer"
            place.gathers = kind == "said" and _RUNS.match(line) is not None


def _end(lines: list[bytes], at: int, kind: Kind, place: Place) -> int | None:
    """The index of the line after the block that begins with line ``at``; ``None`` while that is not known."""
    match kind:
        case "run" | "foreign" | "blank":
            return at + 1
        case "printed" if place.gathers:
            return next((index for index in range(at + 1, len(lines)) if not _is_printed(lines[index])), None)
        case "printed" if place.marked and not _marked(lines[at]):
            return _end_of_output(lines, at)
        case "printed":
            return at + 1
        case "said":
            return next((index for index in range(at + 1, len(lines)) if not _is_said(lines[index])), None)
        case _:
            return _end_of_answer(lines, at, place)


def _end_of_output(lines: list[bytes], at: int) -> int | None:
    """Output of several lines has its mark at its beginning and its blanks at its end only."""
    for index in range(at + 1, len(lines)):
        line = lines[index]
        if line.startswith(HEADER) or (_is_said(line) and _marked(line)):
            return index
        if _marked(line):
            return index + 1
    return None


def _end_of_answer(lines: list[bytes], at: int, place: Place) -> int | None:
    """Without the blank lines behind it."""
    fence = b""
    inside = Place(in_run=True, marked=place.marked, after_answer=True)
    full = at + 1
    for index in range(at, len(lines)):
        line = lines[index].rstrip(b"\r")
        if line.startswith(HEADER):
            return full
        if fence:
            if _UNMISTAKABLE.match(line) and (_marked(line) or not place.marked):
                return full
            fence = b"" if line.startswith(fence) and not line.strip(fence[:1] + b" ") else fence
        elif line.startswith(_FENCES):
            fence = line[: len(line) - len(line.lstrip(line[:1]))]
        elif index > at and _kind(line, inside) in ("said", "printed"):
            return full
        if line.strip():
            full = index + 1
    return None


def _is_said(line: bytes) -> bool:
    return line.startswith(b"#### ") or line.rstrip() == _SAID


def _is_printed(line: bytes) -> bool:
    return line.startswith(b"> ") or line.rstrip() == _PRINTED


def _marked(line: bytes) -> bool:
    return line.rstrip(b"\r").endswith(_MARK)
