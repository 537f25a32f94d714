"""Layout of the page's pictures as values, which the templates write as SVG; and the memory as one file to read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from markupsafe import Markup

from kite_memory.web.rendering import Renderer

Json = Mapping[str, Any]

WIDTH = 1_000
_LABELLED = 120
"""Width of the lanes' names."""
_ROW, _GAP, _HEAD = 16, 22, 30
_LEAST_BAR = 5.0
_COLOURS = 6
"""Colours of projects; with more projects, they are used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBar:
    """A session. ``colour`` is a number of its project's colour."""

    x: float
    y: float
    width: float
    colour: int
    session: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    name: str
    y: float
    height: float
    bars: Sequence[SessionBar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Sessions as bars over time, a lane for each agent. ``projects`` are those shown, with their colours."""

    height: float
    lanes: Sequence[Lane]
    ticks: Sequence[Tick]
    sessions: Sequence[Json]
    projects: Sequence[tuple[str, int]]
    start: datetime
    end: datetime


def lanes(sessions: Sequence[Json], *, start: datetime, end: datetime) -> Lanes:
    """Lay out the sessions within the span. Those at the same time get rows of their own in their agent's lane."""
    within = [each for each in sessions if _at(each["last"]) >= start and _at(each["started"]) <= end]
    projects = {name: place % _COLOURS for place, name in enumerate(sorted({each["project"] for each in within}))}
    seconds = max(1.0, (end - start).total_seconds())

    def across(at: datetime) -> float:
        share = (at - start).total_seconds() / seconds
        return round(_LABELLED + (WIDTH - _LABELLED) * min(1.0, max(0.0, share)), 1)

    made: list[Lane] = []
    y = float(_HEAD)
    for provider in sorted({each["provider"] for each in within}):
        rows: list[float] = []
        bars: list[SessionBar] = []
        for each in sorted((each for each in within if each["provider"] == provider), key=lambda each: str(each["started"])):
            x = across(_at(each["started"]))
            width = max(_LEAST_BAR, across(_at(each["last"])) - x)
            x = min(x, WIDTH - width)
            row = next((place for place, ends in enumerate(rows) if ends + 1.5 <= x), len(rows))
            rows[row:] = [x + width, *rows[row + 1 :]]
            bars.append(SessionBar(x=x, y=y + row * _ROW, width=width, colour=projects[each["project"]], session=each))
        height = len(rows) * _ROW
        made.append(Lane(name=provider, y=y, height=height, bars=bars))
        y += height + _GAP
    return Lanes(
        height=y,
        lanes=made,
        ticks=_ticks(start, end, across),
        sessions=within,
        projects=sorted(projects.items()),
        start=start,
        end=end,
    )


def _ticks(start: datetime, end: datetime, across: Any) -> list[Tick]:
    days = (end - start).days
    step = timedelta(hours=4) if days <= 1 else timedelta(days=1) if days <= 10 else timedelta(days=5)
    at = start.replace(hour=0, minute=0, second=0, microsecond=0)
    found: list[Tick] = []
    while at <= end:
        if at >= start:
            label = f"{at:%H:%M}" if days <= 1 else f"{at:%a} {at.day} {at:%b}" if days <= 10 else f"{at.day} {at:%b}"
            found.append(Tick(x=across(at), label=label if across(at) < WIDTH - 60 else ""))
        at += step
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A note in a picture. ``side`` is where its label goes: left, right, below or, for the centre, none of these."""

    x: float
    y: float
    radius: float
    side: str
    note: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    path: str
    main: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    height: float
    nodes: Sequence[Node]
    curves: Sequence[Curve]


_LEAST_SPACE, _MARGIN, _REACH = 32.0, 60.0, 190.0
_LEAST_TALL = 300.0


def sides(around: Json) -> tuple[list[Json], list[Json]]:
    """Return the notes that link to the one in the middle, and those that only it links to."""
    centre = around["note"]["path"]
    lead = {each["from"] for each in around["arrows"] if each["to"] == centre}
    notes = around["notes"]
    return [each for each in notes if each["path"] in lead], [each for each in notes if each["path"] not in lead]


def neighbourhood(around: Json) -> Picture:
    """Lay out a note with what links to it on its left and what it links to on its right, each on an arc with room for labels."""
    left, right = sides(around)
    most = max(len(left), len(right), 2) - 1
    space = max(_LEAST_SPACE, min(72.0, (_LEAST_TALL - 2 * _MARGIN) / most))
    height = 2 * _MARGIN + space * max(most, 2)
    middle = height / 2
    centre = Node(x=WIDTH / 2, y=middle, radius=13, side="", note=around["note"])
    nodes = [centre]
    for side, notes in (("left", left), ("right", right)):
        for place, note in enumerate(notes):
            y = middle + (place - (len(notes) - 1) / 2) * space
            bent = math.sqrt(max(0.0, 1 - (0.8 * (y - middle) / (height / 2)) ** 2))
            x = WIDTH / 2 + (_REACH * bent if side == "right" else -_REACH * bent)
            nodes.append(Node(x=round(x, 1), y=round(y, 1), radius=_radius(note), side=side, note=note))
    return Picture(height=height, nodes=nodes, curves=_curves(around, nodes, around["note"]["path"]))


def _radius(note: Json) -> float:
    return round(min(11.0, 4 + 1.2 * math.sqrt(note["links"])), 1)


def _curves(around: Json, nodes: Sequence[Node], centre: str) -> list[Curve]:
    """Return the links as curves that bend towards the middle of the picture; those of the centre last, above the others."""
    by_path = {node.note["path"]: node for node in nodes}
    found: list[Curve] = []
    for each in around["arrows"]:
        one, to = by_path.get(each["from"]), by_path.get(each["to"])
        if one is None or to is None:
            continue
        main = centre in (each["from"], each["to"])
        x = (one.x + to.x) / 2 if main else (one.x + to.x) / 2 * 0.55 + WIDTH / 2 * 0.45
        y = to.y if main and each["from"] == centre else one.y if main else (one.y + to.y) / 2
        found.append(Curve(path=f"M{one.x:.1f} {one.y:.1f}Q{x:.1f} {y:.1f} {to.x:.1f} {to.y:.1f}", main=main))
    return sorted(found, key=lambda curve: curve.main)


_ROUNDS = 120
_TALL = 600
_LABEL_WIDE, _LABEL_HIGH = 170.0, 44.0


def overview(around: Json) -> Picture:
    """Lay out the most linked notes by forces (Fruchterman and Reingold, 1991): links draw together, what is near pushes apart.

    The beginning is a spiral in the order given, so the same notes are always at the same places.
    """
    notes = around["notes"]
    place = {note["path"]: number for number, note in enumerate(notes)}
    links = [(place[each["from"]], place[each["to"]]) for each in around["arrows"]]
    points = [[math.sqrt(n + 0.5) * math.cos(2.4 * n), math.sqrt(n + 0.5) * math.sin(2.4 * n)] for n in range(len(notes))]
    for step in range(_ROUNDS):
        _move(points, links, most=1.2 * (1 - step / _ROUNDS) + 0.02)
    nodes = [
        Node(x=round(x, 1), y=round(y, 1), radius=round(1.5 + 1.4 * _radius(note), 1), side="below", note=note)
        for note, (x, y) in zip(notes, _fitted(points), strict=True)
    ]
    curves = [
        Curve(path=_bow(nodes[one], nodes[other]), main=False)
        for one, other in sorted({(min(link), max(link)) for link in links if link[0] != link[1]})
    ]
    return Picture(height=float(_TALL), nodes=nodes, curves=curves)


def _move(points: list[list[float]], links: Sequence[tuple[int, int]], *, most: float) -> None:
    """Move each point by the forces on it, at most so far. The natural length of a link is 1.6."""
    forces = [[-0.04 * x, -0.09 * y] for x, y in points]
    for one in range(len(points)):
        for other in range(one):
            x, y = points[one][0] - points[other][0], points[one][1] - points[other][1]
            far = max(0.05, math.hypot(x, y))
            push = 1.4 / far / far if far < 4 else 0.0
            for node, sign in ((one, push), (other, -push)):
                forces[node][0] += sign * x
                forces[node][1] += sign * y
    for one, other in links:
        x, y = points[one][0] - points[other][0], points[one][1] - points[other][1]
        pull = 0.25 * math.hypot(x, y)
        for node, sign in ((one, -pull), (other, pull)):
            forces[node][0] += sign * x
            forces[node][1] += sign * y
    for point, (x, y) in zip(points, forces, strict=True):
        far = max(1e-9, math.hypot(x, y))
        point[0] += x / far * min(far, most)
        point[1] += y / far * min(far, most)


def _fitted(points: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the points stretched over the picture, then apart until no label covers another, as far as there is room."""
    spans = [(min(values), max(values)) for values in zip(*points, strict=True)] if points else []
    room = ((90.0, WIDTH - 90.0), (24.0, _TALL - 40.0))
    fitted = [
        [low + (high - low) * ((value - least) / (most - least) if most > least else 0.5)
         for value, (least, most), (low, high) in zip(point, spans, room, strict=True)]
        for point in points
    ]  # fmt: skip
    for _ in range(80):
        for one in range(len(fitted)):
            for other in range(one):
                x, y = fitted[one][0] - fitted[other][0], fitted[one][1] - fitted[other][1]
                if abs(x) >= _LABEL_WIDE or abs(y) >= _LABEL_HIGH:
                    continue
                by = (_LABEL_HIGH - abs(y)) / 4 * (1 if y >= 0 else -1)
                fitted[one][1] = min(room[1][1], max(room[1][0], fitted[one][1] + by))
                fitted[other][1] = min(room[1][1], max(room[1][0], fitted[other][1] - by))
    return fitted


def _bow(one: Node, to: Node) -> str:
    x, y = (one.x + to.x) / 2 + (to.y - one.y) * 0.09, (one.y + to.y) / 2 - (to.x - one.x) * 0.09
    return f"M{one.x:.1f} {one.y:.1f}Q{x:.1f} {y:.1f} {to.x:.1f} {to.y:.1f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A week's bar. ``parts`` are its pieces from the bottom: what they count, place, height and number."""

    x: float
    label: str
    title: str
    parts: Sequence[tuple[str, float, float, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    width: float
    height: float
    base: float
    bar: float
    most: int
    stacks: Sequence[Stack]


_PLOT_WIDTH, _PLOT_HEIGHT, _PLOT_BASE = 420.0, 132.0, 112.0


def weeks(counted: Sequence[Json]) -> Plot:
    """Lay out the weeks, oldest first, as bars of what was used, passed over, and not known."""
    ordered = list(reversed(counted))
    most = max((each["shown"] for each in ordered), default=0)
    step = _PLOT_WIDTH / max(1, len(ordered))
    stacks: list[Stack] = []
    for place, each in enumerate(ordered):
        y, parts = _PLOT_BASE, []
        for name, number in (
            ("used", each["used"]),
            ("ignored", each["ignored"]),
            ("unknown", each["unknown"] + each["open"]),
        ):
            tall = (_PLOT_BASE - 16) * number / max(1, most)
            y -= tall
            if number:
                parts.append((name, round(y, 1), round(tall, 1), number))
        monday = datetime.fromisoformat(each["from"])
        stacks.append(
            Stack(
                x=round(place * step + step * 0.18, 1),
                label=f"{monday.day} {monday:%b}" if (len(ordered) - 1 - place) % 3 == 0 else "",
                title=f"Week of {monday.day} {monday:%b}: {each['used']} used, {each['ignored']} passed over, "
                f"{each['unknown'] + each['open']} not known; {each['prompts']} prompts",
                parts=parts,
            )
        )
    return Plot(width=_PLOT_WIDTH, height=_PLOT_HEIGHT, base=_PLOT_BASE, bar=round(step * 0.64, 1), most=most, stacks=stacks)


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


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
        lanes=lanes(sessions, start=now.astimezone() - timedelta(days=_DAYS), end=now.astimezone()),
        sessions=sessions[:_SESSIONS],
        picture=overview(hubs) if hubs["notes"] else None,
        now=now.isoformat(),
    )
    return ExportedPage(data=text.encode(), notes=len(kept), left_out=len(notes) - len(kept))


def _stem(path: str) -> str:
    return PurePosixPath(path).stem.casefold()


def _anchor(path: str) -> str:
    return "note-" + "".join(letter if letter.isalnum() else "-" for letter in _stem(path))
