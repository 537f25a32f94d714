"""Conversations of Cursor's editor and command line: their locations, which reader each one needs, and the command line's.

A conversation of the command line has a database, whose root record lists its messages by their hash.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Cursor, EventType, ReadResult, Session
from kite_memory.projects import project_of
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common import foreign_sqlite
from kite_memory.sources.common.event_builder import SUMMARY_LIMIT, EventBuilder, OpenCall, OpenCalls, title_of
from kite_memory.sources.common.foreign_sqlite import UNKNOWN_SCHEMA, ForeignDatabase, TooLong, object_in, opened
from kite_memory.sources.common.jsonl import LINE_LIMIT, AppendOnlyFile, FoundObject, Unreadable
from kite_memory.sources.common.line_source import EVENTS_AT_ONCE, continue_reading, failed_read, result_up_to, starting_point
from kite_memory.sources.common.tool_text import PATH_LIMIT, blocks_of, digest, moment, safe, short, shortened
from kite_memory.sources.cursor.bubbles import PROVIDER, TOOLS, decided, outcome_of, path_of, words_of
from kite_memory.sources.cursor.ide import Ide
from kite_memory.system.private_files import folders_in

_VERSION = 1
_MESSAGES = 100_000
_ROOT_LIMIT = 16 * 1024 * 1024
_DESCRIPTION = 64 * 1024
_HASH = 32
_LIST, _WORKSPACE = 1, 9
_BYTES = 2
_EVENTS_OF_A_MESSAGE = 64
_RESTS = 600.0
_UNNAMED = "#"
"""Prefix of our own names for calls that have none; their results are matched by position."""

_FOLDER = re.compile(r"^Workspace Path: ([^\n]{1,1024})$", re.MULTILINE)
_SUMMARY = ("[Previous conversation summary]", "<conversation_summary>", "<previous_conversation_summary>")
_SKIPPED = frozenset({"reasoning", "redacted-reasoning", "thinking", "redacted_thinking", "image", "file"})


def read_store(path: Path, cursor: Cursor | None, *, root: Path, budget: int) -> ReadResult:
    """Read a conversation's database. Raises `Unreadable`."""
    with opened(path, within=root) as database:
        if cursor and (cursor.size, cursor.mtime_ns) == (database.size, database.mtime_ns):
            return ReadResult(path=str(path), session=None, events=(), problems=(), cursor=cursor)
        if not ({"id", "data"} <= database.columns("blobs") and {"key", "value"} <= database.columns("meta")):
            raise Unreadable(UNKNOWN_SCHEMA)
        return _Store(path, database, cursor, _beside(path, root)).read_next(budget)


def _beside(path: Path, root: Path) -> dict[str, Any]:
    """Return the metadata beside a database: since 2026 the folder, and whether it is a sub-agent's conversation."""
    try:
        with AppendOnlyFile(path.with_name("meta.json"), within=root) as file:
            found = object_in(file.between(0, min(file.size, _DESCRIPTION)))
    except (Unreadable, OSError):
        return {}
    return found if isinstance(found, dict) else {}


class _Store:
    def __init__(self, path: Path, database: ForeignDatabase, cursor: Cursor | None, beside: Mapping[str, Any]) -> None:
        self._path = path
        self._database = database
        self._carried = _carried(cursor)
        self._position = cursor.position if cursor else 0
        self._builder = EventBuilder(
            provider=PROVIDER,
            session=path.parent.name,
            file=str(path),
            tools=TOOLS,
            calls=OpenCalls.from_carry(self._carried["calls"]),
        )
        self._helper = beside.get("isSubagent") is True
        folder = beside.get("cwd")
        self._folder = beginning(folder, PATH_LIMIT) if isinstance(folder, str) else str(self._carried["folder"])
        self._read = 0

    def read_next(self, budget: int) -> ReadResult:
        """Return the messages added to the list, or all of them if it is another list."""
        database, builder = self._database, self._builder
        about = self._about()
        messages, folder = self._list(about)
        self._folder = self._folder or folder
        written = _written(database.mtime_ns)
        started = moment(about.get("createdAt")) or written
        read, last = int(self._carried["told"]), str(self._carried["last"])
        begin = read if 0 < read <= len(messages) and messages[read - 1] == last else 0
        met: dict[str, int] = {}
        end = begin
        for place, name in enumerate(messages):
            met[name] = met.get(name, 0) + 1
            if place < begin:
                continue
            if self._read >= budget or len(builder.events) >= EVENTS_AT_ONCE:
                break
            event_name = digest(f"{self._path.parent.name}\n{name}\n{met[name]}".encode("utf-8", "replace"))
            builder.record(
                event_name, started if place <= 1 else max(started, written), place, place, ordinal=place * _EVENTS_OF_A_MESSAGE
            )
            self._message(name)
            end = place + 1
        more = end < len(messages)
        carry = _carry(end, builder.calls, last=messages[end - 1] if end else "", folder=self._folder)
        position = min(self._position + self._read, database.size) if more else database.size
        size, mtime_ns = (0, 0) if more else (database.size, database.mtime_ns)
        return ReadResult(
            path=str(self._path),
            session=Session(
                id=self._path.parent.name,
                provider=PROVIDER,
                started=started,
                project=project_of(self._folder),
                cwd=self._folder,
                title="" if about.get("name") == "New Agent" else title_of(about.get("name")),
            ),
            events=tuple(builder.events),
            problems=tuple(builder.problems),
            cursor=Cursor(position=position, size=size, mtime_ns=mtime_ns, carry=carry),
            more=more,
        )

    def _about(self) -> dict[str, Any]:
        """Return the conversation's description: a JSON object, hex-encoded."""
        value = self._database.value("SELECT value FROM meta WHERE key = '0'")
        if isinstance(value, str) and value[:1] != "{":
            try:
                value = bytes.fromhex(value)
            except ValueError:
                value = None
        found = object_in(value)
        if isinstance(found, str):
            self._builder.problem(0, "no description")
            return {}
        return found

    def _list(self, about: Mapping[str, Any]) -> tuple[list[str], str]:
        """Return the names of the messages in order, and the conversation's folder."""
        root = about.get("latestRootBlobId")
        data = self._blob(root) if isinstance(root, str) else None
        if data is None:
            self._builder.problem(0, "no list of messages")
            return [], ""
        names: list[str] = []
        folder = ""
        for number, value in _fields(data[:_ROOT_LIMIT]):
            if number == _LIST and len(value) == _HASH and len(names) < _MESSAGES:
                names.append(value.hex())
            elif number == _WORKSPACE and not folder:
                text = beginning(value.decode("utf-8", "replace"), PATH_LIMIT)
                folder = path_of(text) if "://" in text else text
        return names, folder

    def _blob(self, name: str) -> bytes | None:
        try:
            data = self._database.value("SELECT data FROM blobs WHERE id = ?", (name,))
        except TooLong:
            self._builder.problem(0, "value too long")
            return None
        data = data.encode() if isinstance(data, str) else data
        return data if isinstance(data, bytes) else None

    def _message(self, name: str) -> None:
        data = self._blob(name)
        if data is None:
            self._builder.problem(0, "message is missing")
            return
        self._read += len(data)
        row = object_in(data)
        if isinstance(row, str):
            self._builder.problem(0, row)
            return
        if not self._folder and row.get("role") == "user":
            self._folder = next((found[1].strip() for block in blocks_of(row.get("content")) if (found := _folder_in(block))), "")
        add_message(self._builder, row.get("role"), row.get("content"), 0, helper=self._helper)


def _folder_in(block: Mapping[str, Any]) -> re.Match[str] | None:
    text = block.get("text")
    return _FOLDER.search(text[:4_000]) if isinstance(text, str) and text.startswith("<user_info>") else None


def _written(mtime_ns: int) -> datetime:
    return moment(mtime_ns / 1e6) or datetime.fromtimestamp(0, UTC)


def _carry(read: int, calls: OpenCalls, *, last: str = "", folder: str = "") -> str:
    return orjson.dumps({"v": _VERSION, "told": read, "last": last, "folder": folder, "calls": calls.to_carry()}).decode()


def _carried(cursor: Cursor | None) -> dict[str, Any]:
    """Parse what `_carry` returned; return an empty state if another version wrote it."""
    nothing: dict[str, Any] = {"told": 0, "last": "", "folder": "", "calls": []}
    try:
        known = orjson.loads(cursor.carry) if cursor else {}
        if known.get("v") != _VERSION:
            return nothing
        OpenCalls.from_carry(known["calls"])
        return {key: known[key] for key in nothing} if isinstance(known["told"], int) else nothing
    except (ValueError, KeyError, TypeError, AttributeError):
        return nothing


def _open_calls(carry: str) -> OpenCalls | None:
    known = _carried(Cursor(position=0, size=0, mtime_ns=0, carry=carry))
    return OpenCalls.from_carry(known["calls"]) if known["told"] else None


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the length-delimited fields of a protobuf message with their numbers, up to the first invalid one."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == _BYTES:
            size, at = _varint(data, at)
            if at + size > len(data):
                return
            yield key >> 3, data[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 127) << shift
        at += 1
        if not data[at - 1] & 128:
            return value, at
    return 7, len(data)  # an invalid field type, which ends the parsing


def add_message(builder: EventBuilder, role: object, content: object, position: int, *, helper: bool = False) -> None:
    """Add the events of one message of either format."""
    blocks = blocks_of(content)
    match role:
        case "user":
            _user(builder, blocks, position, helper=helper)
        case "assistant":
            said = ""
            for block in blocks:
                said = _block(builder, block, position, said, helper=helper) or said
        case "tool":
            for block in blocks:
                _block(builder, block, position, "", helper=helper)
        case "system":
            pass
        case _:
            builder.problem(position, f"unknown role {safe(role)}")


def _user(builder: EventBuilder, blocks: list[Mapping[str, Any]], position: int, *, helper: bool) -> None:
    texts: list[str] = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                _block(builder, block, position, "", helper=helper)
    text = words_of(*texts)
    if helper:
        builder.answered(text)
    elif text.startswith(_SUMMARY):
        builder.add(EventType.RESUME_POINT, "system", shortened(text, SUMMARY_LIMIT))
    else:
        builder.said(text)


def _block(builder: EventBuilder, block: Mapping[str, Any], position: int, said: str, *, helper: bool) -> str:
    """Add the events of a block; return the id of the agent's message if it is one."""
    match block:
        case {"type": "text", "text": str(text)}:
            return builder.answered(text)
        case {"type": "tool-call", "toolName": str(tool)} | {"type": "tool_use" | "tool_call", "name": str(tool)}:
            found = [block[key] for key in ("args", "input") if isinstance(block.get(key), dict)]
            given: Mapping[str, Any] = found[0] if found else {}
            name = short(block.get("toolCallId") or block.get("id")) or f"{_UNNAMED}{builder.ordinal}"
            builder.called(name, short(tool), given, parent=said)
        case {"type": "tool-result" | "tool_result"}:
            _result(builder, block, helper=helper)
        case {"type": str(kind)} if kind in _SKIPPED:
            pass
        case _:
            builder.problem(position, f"unknown block {safe(block.get('type'))}")
    return ""


def _result(builder: EventBuilder, block: Mapping[str, Any], *, helper: bool) -> None:
    name = short(block.get("toolCallId") or block.get("tool_use_id"))
    if name not in builder.calls.by_name:
        name = next((known for known in builder.calls.by_name if known.startswith(_UNNAMED)), name)
    call = builder.calls.by_name.pop(name, None)
    if call is None:
        call = OpenCall(event="", tool=short(block.get("toolName")), detail="")
    result = next((block[key] for key in ("result", "output", "content") if block.get(key) is not None), "")
    if isinstance(result, dict) and isinstance(result.get("value"), str):
        result = result["value"]
    if isinstance(result, list):
        result = "\n".join(part["text"] for part in result if isinstance(part, dict) and isinstance(part.get("text"), str))
    text, status = outcome_of(result)
    if status == "ok" and (block.get("isError") is True or block.get("is_error") is True):
        status = "failed"
    event = builder.returned(name, call, text, status)
    if status == "ok" and not helper:
        decided(builder, call, {}, text, event, name, accepted=False)


def read_export(path: Path, cursor: Cursor | None, *, root: Path, budget: int, better: bool, now: float) -> ReadResult:
    """Read an exported conversation. Raises `Unreadable`, and `OSError`.

    ``better`` means that the conversation is read from a more complete place. Exports are written at once but databases later, so
    an export is first read when it is no longer written to. Its lines have no time: they get the file's time at the first read.
    """
    with AppendOnlyFile(path, within=root, line_limit=LINE_LIMIT) as file:
        if better:
            end = Cursor(position=file.size, size=file.size, mtime_ns=file.mtime_ns)
            return ReadResult(path=str(path), session=None, events=(), problems=(), cursor=end)
        if not (cursor and cursor.position) and 0 <= now - file.mtime_ns / 1e9 < _RESTS:
            waiting = cursor or Cursor(position=0, size=0, mtime_ns=0)
            return ReadResult(path=str(path), session=None, events=(), problems=(), cursor=waiting)
        position, calls, changed = starting_point(file, cursor, OpenCalls, _open_calls)
        at = _written(file.mtime_ns)
        builder = EventBuilder(provider=PROVIDER, session=path.stem, file=str(path), tools=TOOLS, calls=calls)
        if changed:
            builder.problem(0, changed)

        def read_line(found: FoundObject, begin: int, line: bytes) -> None:
            start, end = begin + found.start, begin + found.end
            name = digest(f"{path.stem}\n{start}".encode("utf-8", "replace") + line[found.start : found.end])
            builder.record(name, at, start, end)
            _export_line(builder, found.row, start, helper=path.parent.name == "subagents")

        position, more = continue_reading(file, position, builder, read_line, budget=budget)
        session = _exported(path, root, at) if position else None
        return result_up_to(
            path, file, builder, session=session, position=position, carry=_carry(position, builder.calls), more=more
        )


def _exported(path: Path, root: Path, at: datetime) -> Session:
    """Return the session. Its folder is in the user's workspace trust; the export's folder name cannot be decoded."""
    project = path.relative_to(root).parts[1]
    try:
        with AppendOnlyFile(root / "projects" / project / ".workspace-trusted", within=root) as file:
            trusted = object_in(file.between(0, min(file.size, _DESCRIPTION)))
    except (Unreadable, OSError):
        trusted = {}
    folder = trusted.get("workspacePath") if isinstance(trusted, dict) else None
    folder = beginning(folder, PATH_LIMIT) if isinstance(folder, str) else ""
    parent = path.parent.parent.name if path.parent.name == "subagents" else ""
    parent = "" if parent == "agent-transcripts" else parent
    return Session(id=path.stem, provider=PROVIDER, started=at, project=project_of(folder), cwd=folder, parent=parent)


def _export_line(builder: EventBuilder, row: Mapping[str, Any], position: int, *, helper: bool) -> None:
    match row:
        case {"type": "turn_ended"}:
            pass
        case {"role": role, "message": {"content": content}}:
            add_message(builder, role, content, position, helper=helper)
        case _:
            builder.problem(position, "neither role nor message")


_NAME = re.compile(r"[\w.-]{1,200}")
_STATE, _STORE = ("state.vscdb", "state.vscdb-wal"), ("store.db", "store.db-wal")


class CursorApp:
    """Source that reads the editor's databases and the command line's files.

    ``user`` is the editor's ``User`` folder, ``cli`` is ``~/.cursor``. A conversation stored in several places is read from the
    most complete one: the editor's database, then the command line's, then an export.
    """

    provider = PROVIDER

    def __init__(self, user: Path, cli: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._user = user
        self._cli = cli
        self._ide = Ide(user)
        self._clock = clock

    def roots(self) -> tuple[Path, ...]:
        return (self._cli / "chats", self._cli / "projects")

    def flat_roots(self) -> tuple[Path, ...]:
        """Return the editor's global storage.

        The databases of workspaces change all day, but hold nothing since 2025: they are only compared.
        """
        return (self._user / "globalStorage",)

    def transcripts(self) -> Iterator[Path]:
        yield from filter(self._is_there, (self._user / "globalStorage" / "state.vscdb",))
        yield from filter(self._is_there, (each / "state.vscdb" for each in folders_in(self._user / "workspaceStorage")))
        for chats in folders_in(self._cli / "chats"):
            yield from filter(self._is_there, (each / "store.db" for each in folders_in(chats)))
        for project in folders_in(self._cli / "projects"):
            yield from sorted(filter(self.owns, project.glob("agent-transcripts/**/*.jsonl")))

    def _is_there(self, path: Path) -> bool:
        return self.owns(path) and os.path.exists(path)  # noqa: PTH110 - which raises nothing, no matter who owns the folder

    def owns(self, path: Path) -> bool:
        for root in (self._user, self._cli):
            try:
                parts = path.relative_to(root).parts
            except ValueError:
                continue
            if not all(_NAME.fullmatch(part) for part in parts) or ".." in parts:
                return False
            match parts:
                case ("globalStorage", file) | ("workspaceStorage", _, file) if root == self._user:
                    return file in _STATE
                case ("chats", _, _, file) if root == self._cli:
                    return file in _STORE
                case ("projects", _, "agent-transcripts", *_, file) if root == self._cli:
                    return file.endswith(".jsonl")
                case _:
                    return False
        return False

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sort sub-agents after the conversations they work for."""
        return sorted({foreign_sqlite.database_of(path) for path in paths}, key=lambda path: ("subagents" in path.parts, str(path)))

    def stamp(self, path: Path) -> tuple[int, int]:
        return foreign_sqlite.stamp(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        try:
            if path.suffix == ".jsonl":
                better = self._better(path.stem)
                return read_export(path, cursor, root=self._cli, budget=budget, better=better, now=self._clock())
            if path.name == "store.db":
                return read_store(path, cursor, root=self._cli, budget=budget)
            return self._ide.read(path, cursor, budget=budget)
        except Unreadable as error:
            return failed_read(path, cursor, str(error))
        except OSError:
            return failed_read(path, cursor, "file cannot be read")

    def _better(self, name: str) -> bool:
        """Return whether a conversation is stored anywhere but in an export. Raises `Unreadable` while that is unknown."""
        return any(True for _ in self._cli.glob(f"chats/*/{name}/store.db")) or self._ide.holds(name)
