"""Read the database of Cursor's editor, in which each conversation and each of its bubbles is a row of keys and values.

A row that is rewritten gets a new number, the highest one; so changes are found by row number, and nothing else of a database of
gigabytes is read. Until 2025 whole conversations were stored in one value of each workspace's database.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from kite_memory.model.event import Cursor, Problem, ReadResult
from kite_memory.sources.common.foreign_sqlite import (
    UNKNOWN_SCHEMA,
    ForeignDatabase,
    TooLong,
    is_damage,
    object_in,
    opened,
    reason_of,
    whole,
)
from kite_memory.sources.common.jsonl import Unreadable
from kite_memory.sources.common.tool_text import scalar, short
from kite_memory.sources.cursor.bubbles import Bubble, CursorConversation, Folders, build_events, conversation

_CONVERSATIONS = 10_000
_LEGACY_BUBBLES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Legacy:
    """A conversation stored in one value, as until 2025."""

    name: str
    about: Mapping[str, Any]
    bubbles: Sequence[Mapping[str, Any]]


def legacy_conversations(composers: object, chats: object) -> Iterator[Legacy]:
    """Yield chats first, then the rest by age, without those left empty by duplicates."""
    answers_seen: set[str] = set()
    for about in _objects(chats, "tabs"):
        yield from _legacy(short(about.get("tabId")), about, _objects(about, "bubbles"), answers_seen)
    for about in sorted(_objects(composers, "allComposers"), key=_age):
        yield from _legacy(short(about.get("composerId")), about, _objects(about, "conversation"), answers_seen)


def _legacy(name: str, about: Mapping[str, Any], bubbles: Iterable[Mapping[str, Any]], answers_seen: set[str]) -> Iterator[Legacy]:
    kept = [dict(bubble) for exchange in _exchanges(bubbles) for bubble in _new(exchange, answers_seen)]
    if name and kept:
        yield Legacy(name=name, about=about, bubbles=kept)


def _exchanges(bubbles: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the user's messages together with the answer to them."""
    exchange: list[Mapping[str, Any]] = []
    for bubble in bubbles:
        exchange.append(bubble)
        if bubble.get("type") in (2, "ai"):
            yield exchange
            exchange = []
    if exchange:
        yield exchange


def _new(exchange: list[Mapping[str, Any]], answers_seen: set[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the bubbles of a new exchange, each with the words that identify it: its own, and those of the answer."""
    answer = _text(exchange[-1]) if exchange[-1].get("type") in (2, "ai") else ""
    if answer and answer in answers_seen:
        return
    answers_seen.add(answer)
    for place, bubble in enumerate(exchange):
        own = scalar(bubble.get("bubbleId") or bubble.get("id"))
        words = f"{place}\n{_text(bubble)}\n{answer}" if answer else f"{own}\n{_text(bubble)}"
        yield {**bubble, "text": _text(bubble), "words": words}


def _text(bubble: Mapping[str, Any]) -> str:
    text = bubble.get("text") or bubble.get("rawText")
    return text.strip() if isinstance(text, str) else ""


def _age(about: Mapping[str, Any]) -> float:
    created = about.get("createdAt")
    return float(created) if isinstance(created, int | float) else 0.0


def _objects(value: object, key: str) -> list[Mapping[str, Any]]:
    found = value.get(key) if isinstance(value, dict) else None
    most = _CONVERSATIONS if key != "bubbles" else _LEGACY_BUBBLES
    return [each for each in found[:most] if isinstance(each, dict)] if isinstance(found, list) else []


_VERSION = 1
_ABOUT, _BUBBLE = "composerData:", "bubbleId:"
_AT_ONCE = 64
_BUBBLES = 100_000
_TAIL = 16
"""Bubbles at the end of a changed conversation that are read again, since their list is written late."""

_LAST = 32
_BACK = 40
"""Limit of bubbles read backwards to find the agent's message that calls belong to."""

_LEGACY_KEYS = ("composer.composerData", "workbench.panel.aichat.view.aichat.chatdata")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sweep:
    """State of a pass over the changed rows.

    All rows up to ``done`` were read. During a pass, ``goal`` is its last row, ``after`` the last conversation that was read
    completely, ``place`` how many bubbles of conversation ``of`` were read. ``items`` are the rows of the legacy values, ``old``
    how many conversations in them were read. ``last`` are the last rows that were read, with a checksum of the key of each.
    """

    done: int = 0
    goal: int = -1
    after: str = ""
    of: str = ""
    place: int = 0
    items: tuple[int, ...] = ()
    old: int = 0
    last: tuple[tuple[int, int], ...] = ()

    def to_carry(self) -> str:
        known = [self.done, self.goal, self.after, self.of, self.place, self.items, self.old, self.last]
        return orjson.dumps({"v": _VERSION, "sweep": known}).decode()

    @staticmethod
    def from_carry(cursor: Cursor | None) -> "_Sweep":
        """Parse what `to_carry` returned; start from the beginning if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(cursor.carry) if cursor else {"v": 0}
            if known["v"] != _VERSION:
                return _Sweep()
            done, goal, after, of, place, items, old, last = known["sweep"]
            rows = tuple((row, checksum) for row, checksum in last)
            return _Sweep(done=done, goal=goal, after=after, of=of, place=place, items=tuple(items), old=old, last=rows)
        except (ValueError, KeyError, TypeError):
            return _Sweep()


class Ide:
    """Reader of the databases below ``user``, the editor's ``User`` folder."""

    def __init__(self, user: Path) -> None:
        self._user = user
        self._folders = Folders(user)
        self._helpers: dict[Path, tuple[int, dict[str, str]]] = {}
        self._legacy: tuple[tuple[Path, tuple[int, ...]], tuple[Legacy, ...]] = ((Path(), ()), ())

    def holds(self, name: str) -> bool:
        """Return whether the editor's own database contains a conversation. Raises `Unreadable`."""
        path = self._user / "globalStorage" / "state.vscdb"
        if not path.exists():
            return False
        with opened(path, within=self._user) as database:
            if not {"key", "value"} <= database.columns("cursorDiskKV"):
                return False
            return database.value("SELECT 1 FROM cursorDiskKV WHERE key = ?", (_ABOUT + name,)) is not None

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        """Return the next changed conversation, or as much of it as the budget allows. Raises `Unreadable`."""
        with opened(path, within=self._user) as database:
            sweep = _Sweep.from_carry(cursor)
            same = cursor and (cursor.size, cursor.mtime_ns, cursor.carry) == (database.size, database.mtime_ns, sweep.to_carry())
            if cursor and same:
                return ReadResult(path=str(path), session=None, events=(), problems=(), cursor=cursor, amends=True)
            reader = _DatabaseReader(path, database, sweep, self._folders, cursor.position if cursor else 0)
            reader.helpers = self._helpers_in(database, reader)
            reader.legacy = self._legacy_in(path, database, reader)
            return reader.read_next(budget)

    def _helpers_in(self, database: ForeignDatabase, reader: "_DatabaseReader") -> dict[str, str]:
        """Return sub-agents' conversations with their parents, which only the parents name. Rows are searched only once."""
        if not reader.has_bubbles:
            return {}
        seen, found = self._helpers.get(reader.path, (0, {}))
        if seen == reader.goal:
            return found
        query = (
            "SELECT rowid FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' AND rowid > ?"
            ' AND instr(CAST(value AS TEXT), \'"subComposerIds":["\') > 0'
        )
        try:
            for (row,) in database.rows(query, (seen if seen < reader.goal else 0,), limit=_BUBBLES):
                match reader.object("SELECT value FROM cursorDiskKV WHERE rowid = ?", row, row):
                    case {"composerId": str(parent), "subComposerIds": list(children)}:
                        found.update((child, parent) for child in children if isinstance(child, str))
                    case _:
                        continue
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
        self._helpers[reader.path] = (reader.goal, found)
        return found

    def _legacy_in(self, path: Path, database: ForeignDatabase, reader: "_DatabaseReader") -> tuple[Legacy, ...]:
        wanted = (path, reader.items)
        if not any(reader.items) or reader.items == reader.sweep.items:
            return ()
        if self._legacy[0] != wanted:
            values = [reader.object("SELECT value FROM ItemTable WHERE key = ?", key, 0) for key in _LEGACY_KEYS]
            self._legacy = (wanted, tuple(legacy_conversations(*values)))
        return self._legacy[1]


class _DatabaseReader:
    """One read of a database."""

    def __init__(self, path: Path, database: ForeignDatabase, sweep: _Sweep, folders: Folders, position: int) -> None:
        self.helpers: dict[str, str] = {}
        self.legacy: tuple[Legacy, ...] = ()
        self.path = path
        self._file = str(path)
        self._database = database
        self._folders = folders
        self._position = position
        self._problems: list[Problem] = []
        self._read = self._just_read = 0
        self.has_bubbles = {"key", "value"} <= database.columns("cursorDiskKV")
        has_items = {"key", "value"} <= database.columns("ItemTable")
        if not (self.has_bubbles or has_items):
            raise Unreadable(UNKNOWN_SCHEMA)
        query = "SELECT rowid FROM ItemTable WHERE key = ?"
        self.items = tuple(whole(database.value(query, (key,))) for key in _LEGACY_KEYS) if has_items else ()
        newest = whole(database.value("SELECT MAX(rowid) FROM cursorDiskKV")) if self.has_bubbles else 0
        self.goal = sweep.goal if sweep.goal >= 0 else newest
        if newest < sweep.done or self._used_again(sweep):
            sweep = replace(sweep, done=0, last=())
        self.sweep = replace(sweep, goal=self.goal)

    def _used_again(self, sweep: _Sweep) -> bool:
        """Return whether row numbers were reused, because the highest ones were deleted in between."""
        known = dict(sweep.last)
        now = dict(self._rows_up_to(sweep.done)) if known else {}
        return any(known.get(row) != checksum for row, checksum in now.items() if row >= min(known))

    def _rows_up_to(self, row: int) -> list[tuple[int, int]]:
        query = "SELECT rowid, key FROM cursorDiskKV WHERE rowid <= ? ORDER BY rowid DESC"
        return [(row, crc32(str(key).encode())) for row, key in self._database.rows(query, (row,), limit=_LAST)]

    def read_next(self, budget: int) -> ReadResult:
        names = self._changed()
        for name in names:
            try:
                part = self._conversation(name, budget)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._problems.append(Problem(file=self._file, position=0, reason=reason_of(error)))
                part = None
            if part is None:
                continue
            found, events, place = part
            more = bool(place) or next(names, None) is not None or bool(self.legacy)
            sweep = replace(self.sweep, of=name, place=place, after=self.sweep.after if place else name)
            return self._looked(found, events, sweep, more=more)
        for number in range(self.sweep.old, len(self.legacy)):
            old = self.legacy[number]
            folder = self._folders.of_database(self.path) if self.path.parent.name != "globalStorage" else ""
            found = conversation(old.name, old.about, folder=folder, parent="", helper=False)
            bubbles = (Bubble(row=place, place=place, content=bubble) for place, bubble in enumerate(old.bubbles))
            builder = build_events(found, bubbles, file=self._file, names_by_words=True)
            self._problems.extend(builder.problems)
            if builder.events:
                sweep = replace(self.sweep, after="\uffff", old=number + 1)
                return self._looked(found, builder.events, sweep, more=number + 1 < len(self.legacy))
        return self._looked(None, [], self.sweep, more=False)

    def _looked(self, found: CursorConversation | None, events: list[Any], sweep: _Sweep, *, more: bool) -> ReadResult:
        size, mtime_ns = self._database.size, self._database.mtime_ns
        if more:
            position = min(self._position + self._read, size)
            cursor = Cursor(position=position, size=0, mtime_ns=0, carry=sweep.to_carry())
        else:
            last = tuple(self._rows_up_to(self.goal)) if self.has_bubbles else ()
            ended = _Sweep(done=self.goal, items=self.items, last=last)
            cursor = Cursor(position=size, size=size, mtime_ns=mtime_ns, carry=ended.to_carry())
        return ReadResult(
            path=self._file,
            session=found.session if found else None,
            events=tuple(events),
            problems=tuple(self._problems),
            cursor=cursor,
            more=more,
            amends=True,
        )

    def _changed(self) -> Iterator[str]:
        """Yield the conversations that may have changes left in this pass, sorted by name."""
        if not self.has_bubbles:
            return
        database, sweep = self._database, self.sweep
        if sweep.done:
            names: set[str] = set()
            query = "SELECT key FROM cursorDiskKV WHERE rowid > ? AND rowid <= ?"
            for (key,) in database.each(query, (sweep.done, sweep.goal)):
                kind, _, rest = key.partition(":") if isinstance(key, str) else ("", "", "")
                if kind in ("composerData", "bubbleId"):
                    names.add(rest.partition(":")[0])
            yield from sorted(name for name in names if name > sweep.after)
            return
        after = _ABOUT + sweep.after
        query = "SELECT key FROM cursorDiskKV WHERE key > ? AND key < 'composerData;' ORDER BY key"
        while rows := database.rows(query, (after,), limit=_AT_ONCE):
            yield from (str(key).removeprefix(_ABOUT) for (key,) in rows)
            after = str(rows[-1][0])

    def _conversation(self, name: str, budget: int) -> tuple[CursorConversation, list[Any], int] | None:
        """Return the changes of one conversation, and how many bubbles were read if not all; ``None`` without changes."""
        key = _ABOUT + name
        row = whole(self._database.value("SELECT rowid FROM cursorDiskKV WHERE key = ?", (key,)))
        about = self.object("SELECT value FROM cursorDiskKV WHERE key = ?", key, row) if name and row else None
        if not about:
            return None  # its bubbles were written first: they are returned once its own row exists
        parent = self.helpers.get(name, "") or _works_for(about)
        folder = self._folders.of_conversation(name, about)
        found = conversation(name, about, folder=folder, parent=parent, helper=bool(parent) or _is_helper(about))
        bubbles, place = self._bubbles(name, about, budget, written=row > self.sweep.done)
        builder = build_events(found, bubbles, file=self._file)
        self._problems.extend(builder.problems)
        return (found, builder.events, place) if builder.events or place else None

    def _bubbles(self, name: str, about: dict[str, Any], budget: int, *, written: bool) -> tuple[list[Bubble], int]:
        """Return the changed bubbles after the ones they depend on, and where to continue if the budget was reached."""
        inline = about.get("conversation")
        if isinstance(inline, list) and inline:
            return _inline(about, inline[:_BUBBLES]), 0
        headers = about.get("fullConversationHeadersOnly")
        order = [header for header in (headers if isinstance(headers, list) else [])[:_BUBBLES] if isinstance(header, dict)]
        first, last = f"{_BUBBLE}{name}:", f"{_BUBBLE}{name};"
        listed = self._database.rows("SELECT key, rowid FROM cursorDiskKV WHERE key > ? AND key < ?", (first, last), limit=_BUBBLES)
        rows = {str(key).removeprefix(first): row for key, row in listed}
        growing = _growing(about, order)
        calls = _old_calls(about)
        out: list[Bubble] = []
        size = 0
        begin = self.sweep.place if self.sweep.of == name else 0
        for place, header in enumerate(order):
            bubble = header.get("bubbleId")
            row = rows.get(bubble, 0) if isinstance(bubble, str) else 0
            late = written and place >= len(order) - _TAIL
            if place < begin or not (row > self.sweep.done or (late and row)) or _hidden(header):
                continue
            if size >= budget:
                self._read += size
                return out, place
            if not out:
                out.extend(self._before(order, rows, place))
            content = self._bubble(row, bubble, calls)
            size += self._just_read
            if content is not None:
                out.append(Bubble(row=row, place=place, content=content, growing=bubble in growing))
        self._read += size
        return out, 0

    def _before(self, order: list[dict[str, Any]], rows: dict[str, int], place: int) -> Iterator[Bubble]:
        """Yield the agent's message that the bubble at ``place`` follows, if any."""
        if order[place].get("type") == 1:
            return
        for back in range(place - 1, max(-1, place - 1 - _BACK), -1):
            if order[back].get("type") == 1:
                return
            content = self._bubble(rows.get(scalar(order[back].get("bubbleId")), 0), None, {})
            if content and isinstance(text := content.get("text"), str) and text.strip() and not content.get("toolFormerData"):
                yield Bubble(row=0, place=back, content=content, known=True)
                return

    def _bubble(self, row: int, name: object, calls: dict[str, Any]) -> dict[str, Any] | None:
        content = self.object("SELECT value FROM cursorDiskKV WHERE rowid = ?", row, row) if row else None
        if content and "toolFormerData" not in content and isinstance(call := calls.get(str(name)), dict):
            content["toolFormerData"] = call
        return content or None

    def object(self, query: str, key: object, row: int) -> dict[str, Any]:
        """Return the object in a value; an empty one for anything else, which may count as a problem."""
        self._just_read = 0
        try:
            value = self._database.value(query, (key,))
        except TooLong:
            self._problems.append(Problem(file=self._file, position=row, reason="value too long"))
            return {}
        if value is None:
            return {}
        self._just_read = len(value) if isinstance(value, str | bytes) else 0
        found = object_in(value)
        if isinstance(found, str):
            self._problems.append(Problem(file=self._file, position=row, reason=found))
            return {}
        return found


def _works_for(about: dict[str, Any]) -> str:
    match about:
        case {"subagentInfo": {"parentComposerId": str(parent)}} | {"parentComposerId": str(parent)}:
            return parent
        case _:
            return ""


def _is_helper(about: dict[str, Any]) -> bool:
    return about.get("isSubagent") is True or isinstance(about.get("subagentInfo"), dict)


def _hidden(header: dict[str, Any]) -> bool:
    """Return whether the editor hides a message in the user's role: the user did not write it."""
    match header:
        case {"type": 1, "grouping": {"isRenderable": False}}:
            return True
        case _:
            return False


def _growing(about: dict[str, Any], order: list[dict[str, Any]]) -> frozenset[str]:
    named = about.get("generatingBubbleIds")
    growing = {name for name in named if isinstance(name, str)} if isinstance(named, list) else set()
    if about.get("status") == "generating" and order:
        growing.add(scalar(order[-1].get("bubbleId")))
    return frozenset(growing)


def _old_calls(about: dict[str, Any]) -> dict[str, Any]:
    """Return a conversation's calls, which before version 3 were stored separately from its bubbles, by name."""
    capabilities = about.get("capabilities")
    for capability in capabilities[:100] if isinstance(capabilities, list) else []:
        match capability:
            case {"type": 15, "data": {"bubbleDataMap": dict(calls)}}:
                return calls
            case {"type": 15, "data": {"bubbleDataMap": str(text)}}:
                found = object_in(text)
                return found if isinstance(found, dict) else {}
            case _:
                continue
    return {}


def _inline(about: dict[str, Any], bubbles: list[Any]) -> list[Bubble]:
    calls = _old_calls(about)
    growing = _growing(about, [bubble for bubble in bubbles if isinstance(bubble, dict)])
    out: list[Bubble] = []
    for place, content in enumerate(bubbles):
        if not isinstance(content, dict):
            continue
        name = content.get("bubbleId")
        call = calls.get(name) if isinstance(name, str) else None
        if isinstance(call, dict) and "toolFormerData" not in content:
            content["toolFormerData"] = call
        out.append(Bubble(row=place, place=place, content=content, growing=scalar(name) in growing))
    return out
