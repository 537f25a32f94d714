"""Import other memories, read in place and never written to: one function for each format, and detection of the format by path."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, assert_never

from kite_memory.errors import KiteError, UsageError
from kite_memory.exchange import ImportFormat, foreign
from kite_memory.exchange.foreign import Foreign, NotImported, Page, ReimportedNote, note_of, text, texts
from kite_memory.model.note import NoteKind
from kite_memory.redaction import drop_private, redact
from kite_memory.sources.common.foreign_sqlite import opened
from kite_memory.sources.common.jsonl import Unreadable
from kite_memory.vault.wording import title_key

Pieces = Iterator[Foreign | ReimportedNote | NotImported]

_MOST_JSON = 64 * 1024 * 1024
_MOST_LINE = 8 * 1024 * 1024
_MOST_ROWS = 200_000
_LINES_FOR_CWD = 50
_LINE = 1 << 20
_OURS = re.compile(r"<!-- kite-memory:begin -->.*?<!-- kite-memory:end -->", re.DOTALL)
"""The block that `kmem connect` puts into such files."""
_INSTRUCTIONS = frozenset({"claude.md", "claude.local.md", "agents.md", "gemini.md", "copilot-instructions.md"})
_AUTO_MEMORY = {"user": NoteKind.PREFERENCE, "feedback": NoteKind.PREFERENCE}
_CLAUDE_MEM = {"decision": NoteKind.DECISION, "bugfix": NoteKind.INSIGHT, "discovery": NoteKind.INSIGHT}
_BASIC_MEMORY = {
    "decision": NoteKind.DECISION,
    "choice": NoteKind.DECISION,
    "insight": NoteKind.INSIGHT,
    "lesson": NoteKind.INSIGHT,
    "gotcha": NoteKind.INSIGHT,
    "preference": NoteKind.PREFERENCE,
    "question": NoteKind.QUESTION,
}


def format_of(path: Path) -> ImportFormat:
    """Return the format of a path. Raises `UsageError` where it cannot be detected."""
    name = path.name.casefold()
    _must_be_there(path)
    if path.is_dir():
        if name == "memory" and (path / "MEMORY.md").is_file():
            return ImportFormat.CLAUDE_MEMORY
        if (path / ".basic-memory").exists() or name == "basic-memory":
            return ImportFormat.BASIC_MEMORY
        if (path / "claude-mem.db").is_file():
            return ImportFormat.CLAUDE_MEM
        return ImportFormat.MARKDOWN
    if name in _INSTRUCTIONS:
        return ImportFormat.INSTRUCTIONS
    match path.suffix.casefold():
        case ".db" | ".sqlite" | ".sqlite3":
            return ImportFormat.CLAUDE_MEM
        case ".jsonl" | ".zip":
            return ImportFormat.KMEM
        case ".json":
            return ImportFormat.MEM0
        case ".md" | ".markdown":
            return ImportFormat.MARKDOWN
        case _:
            raise UsageError(f"cannot tell what {path} is", hint=f"say it with --from: {', '.join(ImportFormat)}")


def _must_be_there(path: Path) -> None:
    try:
        there = path.exists()
    except OSError as error:
        raise KiteError(f"cannot look at {path}: {error.strerror}", hint="see who owns it") from error
    if not there:
        raise UsageError(f"there is no {path}", hint="name a file or a folder that is there")


def pieces(path: Path, sort: ImportFormat, *, project: str, project_of: Callable[[str], str]) -> Pieces:
    """Yield everything in a foreign memory, in a stable order. ``project`` is used for what names none itself.

    Raises `KiteError` where it cannot be read at all.
    """
    _must_be_there(path)
    match sort:
        case ImportFormat.CLAUDE_MEMORY:
            found = _claude_memory(path, project_of)
        case ImportFormat.INSTRUCTIONS:
            found = _instructions(path, project_of)
        case ImportFormat.CLAUDE_MEM:
            found = _claude_mem(path / "claude-mem.db" if path.is_dir() else path)
        case ImportFormat.BASIC_MEMORY:
            found = _basic_memory(path)
        case ImportFormat.MEM0:
            found = _mem0(path)
        case ImportFormat.MARKDOWN:
            found = _markdown(path)
        case ImportFormat.KMEM:
            found = _ours(path)
        case _:
            assert_never(sort)
    for piece in found:
        yield replace(piece, project=project) if isinstance(piece, Foreign) and project and not piece.project else piece


def _pages(path: Path) -> Iterator[Page | NotImported]:
    for file in (path,) if path.is_file() else foreign.below(path):
        read = foreign.read(file)
        yield NotImported(name=str(file), reason=read) if isinstance(read, str) else read


def _claude_memory(folder: Path, project_of: Callable[[str], str]) -> Pieces:
    """Read Claude Code's own memory, ``<project>/memory/*.md``: one fact per file, and an index that repeats them.

    The project is taken from its transcripts: the folder's name cannot be turned back into a path.
    """
    project = project_of(_cwd_beside(folder.parent if folder.is_dir() else folder.parent.parent))
    for page in _pages(folder):
        if isinstance(page, NotImported) or page.path.name == "MEMORY.md":
            if isinstance(page, NotImported):
                yield page
            continue
        inner = page.front.get("metadata")
        sort = text(inner.get("type")) if isinstance(inner, dict) else text(page.front.get("type"))
        description = text(page.front.get("description"))
        yield Foreign(
            source="claude-memory",
            name=f"{project}/{page.path.name}",
            title=description or page.heading or text(page.front.get("name")) or page.path.stem,
            body=foreign.without_heading(page) or description,
            kind=_AUTO_MEMORY.get(sort, NoteKind.FACT),
            created=page.modified,
            project="" if sort == "user" else project,
        )


def _cwd_beside(folder: Path) -> str:
    try:
        transcripts = sorted(folder.glob("*.jsonl"))[:20]
    except OSError:
        return ""
    for transcript in transcripts:
        try:
            with transcript.open("rb") as file:
                for _ in range(_LINES_FOR_CWD):
                    line = file.readline(_LINE)
                    if b'"cwd"' in line and isinstance(cwd := _object(line).get("cwd"), str):
                        return cwd
        except OSError:
            continue
    return ""


def _instructions(path: Path, project_of: Callable[[str], str]) -> Pieces:
    """Read ``CLAUDE.md`` and similar files: each section is one note, in its author's words."""
    for page in _pages(path):
        if isinstance(page, NotImported):
            yield page
            continue
        if page.path.name.casefold() not in _INSTRUCTIONS and path.is_dir():
            continue
        home = page.path.parent.name in (".claude", ".codex", ".gemini")
        folder = page.path.parent.parent if page.path.parent.name == ".github" else page.path.parent
        project = "" if home else project_of(str(folder.absolute()))
        for number, section in enumerate(foreign.sections(redact(drop_private(_OURS.sub("", page.body))))):
            yield Foreign(
                source="instructions",
                name=f"{page.path.absolute()}#{section.heading or number}",
                title=section.heading or page.heading or page.path.name,
                body=section.body,
                kind=NoteKind.PREFERENCE,
                created=page.modified,
                project=project,
                origin="user",
            )


def _claude_mem(path: Path) -> Pieces:
    """Read the SQLite file of claude-mem.

    Records of mere work (features, changes, refactorings) are skipped: `git log` has them, too.
    """
    wanted = ("id", "project", "type", "title", "subtitle", "narrative", "text", "facts", "concepts", "created_at_epoch")
    try:
        with opened(path, within=path.parent, seconds=120.0) as database:
            there = database.columns("observations")
            if not {"id", "type"} <= there:
                raise KiteError(f"{path} holds no observations", hint="name the claude-mem.db of claude-mem")
            columns = [name if name in there else f"NULL AS {name}" for name in wanted]
            query = f"SELECT {', '.join(columns)} FROM observations ORDER BY id"  # noqa: S608 - the names are ours
            rows = database.rows(query, limit=_MOST_ROWS)
    except Unreadable as error:
        raise KiteError(f"{path} cannot be read: {error}", hint="close the program that has it open, and try again") from error
    for row in rows:
        fields = dict(zip(wanted, row, strict=True))
        kind = _CLAUDE_MEM.get(str(fields["type"]))
        name = str(fields["id"])
        if kind is None:
            yield NotImported(name=name, reason=f"only says what was done ({str(fields['type'])[:20]})")
            continue
        facts = "\n".join(f"- {fact}" for fact in _listed(fields["facts"]))
        body = "\n\n".join(filter(None, (str(fields["narrative"] or fields["text"] or fields["subtitle"] or ""), facts)))
        yield Foreign(
            source="claude-mem",
            name=name,
            title=str(fields["title"] or ""),
            body=body or str(fields["title"] or ""),
            kind=kind,
            created=_epoch(fields["created_at_epoch"]),
            project=str(fields["project"] or ""),
            entities=_listed(fields["concepts"]),
        )


def _basic_memory(path: Path) -> Pieces:
    """Read pages of basic-memory as one note each; the categories of its observations decide its kind."""
    for page in _pages(path):
        if isinstance(page, NotImported):
            yield page
            continue
        kinds = [kind for word, kind in _BASIC_MEMORY.items() if f"- [{word}]" in page.body.casefold()]
        yield Foreign(
            source="basic-memory",
            name=text(page.front.get("permalink")) or page.path.relative_to(path if path.is_dir() else path.parent).as_posix(),
            title=text(page.front.get("title")) or page.heading or page.path.stem,
            body=foreign.without_heading(page),
            kind=kinds[0] if kinds else NoteKind.FACT,
            created=page.modified,
            tags=texts(page.front.get("tags")),
        )


def _mem0(path: Path) -> Pieces:
    """Read the JSON of mem0's ``get_all``, or an export: a list, or one below ``results`` or ``memories``."""
    content = _json(path)
    if isinstance(content, dict):
        content = content.get("results", content.get("memories"))
    if not isinstance(content, list):
        raise KiteError(f"{path} holds no memories of mem0", hint="name the JSON that `get_all` or an export gave")
    for number, row in enumerate(content):
        said = row.get("memory", row.get("text")) if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(said, str) or not said.strip():
            yield NotImported(name=str(number), reason="no memory in it")
            continue
        categories = _listed(row.get("categories"))
        metadata = row.get("metadata") if isinstance(row.get("metadata"), dict) else {}
        about = " ".join((*categories, *(str(each) for each in (metadata or {}).values()))).casefold()
        yield Foreign(
            source="mem0",
            name=str(row.get("id") or said),
            title="",
            body=said,
            kind=NoteKind.PREFERENCE if "preference" in about else NoteKind.FACT,
            created=_iso(row.get("created_at")),
            tags=categories,
        )


def _markdown(path: Path) -> Pieces:
    """Read a person's own pages, as they are."""
    folder = path if path.is_dir() else path.parent
    yield from _titled_apart(
        page if isinstance(page, NotImported) else _own_page(page, page.path.relative_to(folder).as_posix())
        for page in _pages(path)
    )


def _titled_apart(pages: Pieces) -> Pieces:
    """Yield the pages; where an earlier one has a page's title, its path is added to it. Notes of one title become one."""
    titles: set[tuple[str, str]] = set()
    for page in pages:
        if isinstance(page, Foreign):
            if (key := (title_key(page.title), page.project)) in titles:
                page = replace(page, title=f"{page.title} ({PurePosixPath(page.name).with_suffix('')})")
            titles.add(key)
        yield page


def _own_page(page: Page, name: str) -> Foreign | NotImported:
    body = foreign.without_heading(page)
    if not body.strip():
        return NotImported(name=name, reason="empty")
    return Foreign(
        source="markdown",
        name=name,
        title=text(page.front.get("title")) or page.heading or page.path.stem,
        body=body,
        kind=_kind(text(page.front.get("kind")), NoteKind.FACT),
        created=_iso(page.front.get("created"), page.modified),
        project=text(page.front.get("project")),
        tags=texts(page.front.get("tags")),
        triggers=texts(page.front.get("triggers")),
        origin="user",
    )


def _ours(path: Path) -> Pieces:
    """Read what `kmem export` wrote: each note as its file was, without its links. A zip may also hold foreign pages."""
    if path.suffix.casefold() == ".zip":
        for found in foreign.members(path):
            yield _own_page(found, found.path.as_posix()) if isinstance(found, Page) else found
        return
    try:
        with path.open("rb") as file:
            for number, line in enumerate(_lines(file), 1):
                row = _without_secrets(_object(line))
                note, stem = note_of(row), PurePosixPath(str(row.get("path", ""))).stem
                yield NotImported(name=str(number), reason="not a note") if note is None else ReimportedNote(note=note, stem=stem)
    except OSError as error:
        raise KiteError(f"{path} cannot be read: {error.strerror}", hint="name the file that `kmem export` wrote") from error


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines. One that is longer than any note is yielded empty."""
    while line := file.readline(_MOST_LINE):
        whole = line.endswith(b"\n") or len(line) < _MOST_LINE
        while not whole and (rest := file.readline(_MOST_LINE)):
            whole, line = rest.endswith(b"\n"), b""
        yield line


def _without_secrets(row: dict[str, Any]) -> dict[str, Any]:
    """Redact a row's texts before anything else: later changes to a text could hide a secret from the redaction."""
    return {
        name: redact(drop_private(value))
        if isinstance(value, str)
        else [redact(drop_private(each)) if isinstance(each, str) else each for each in value]
        if isinstance(value, list)
        else value
        for name, value in row.items()
    }


def _json(path: Path) -> Any:
    try:
        if path.stat().st_size > _MOST_JSON:
            raise KiteError(f"{path} is too large", hint="export it in parts")
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise KiteError(f"{path} is not JSON", hint="see what wrote it") from error
    except OSError as error:
        raise KiteError(f"{path} cannot be read: {error.strerror}", hint="see who owns it") from error


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _listed(value: object) -> tuple[str, ...]:
    """Return the items of a list, or of one that is written as JSON in a text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return (value,) if isinstance(value, str) and value.strip() else ()
    return tuple(str(each) for each in value if isinstance(each, str | int)) if isinstance(value, list) else ()


def _kind(value: object, default: NoteKind) -> NoteKind:
    try:
        return NoteKind(str(value))
    except ValueError:
        return default


def _epoch(value: object) -> datetime:
    """Return the time of a number in seconds or in milliseconds."""
    number = value if isinstance(value, int | float) else 0
    try:
        return datetime.fromtimestamp(number / 1000 if number > 1e11 else number, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _iso(value: object, default: datetime | None = None) -> datetime:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        if at is not None:
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    return default or datetime.fromtimestamp(0, UTC)
