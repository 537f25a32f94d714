"""A note as other programs hold it: the draft made of one from another memory, and the export of the vault as one file."""

import io
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from kite_memory.errors import KiteError
from kite_memory.model.note import Note, NoteKind, NoteStatus, Origin, Scope
from kite_memory.redaction import drop_private, redact
from kite_memory.vault import links, notefile
from kite_memory.vault.drafting import Draft, entities_of, tags_of, title_of
from kite_memory.vault.ledger import link_key
from kite_memory.vault.links import tame, tame_name
from kite_memory.vault.notefile import FOLDERS, Property, UnreadableNote, parse
from kite_memory.vault.wording import note_id, note_stem, one_line, page_stem

MOST_BYTES = 2_000_000
_MOST_FILES = 20_000
_MOST_DEPTH = 16
_HEADING = re.compile(r"^#{1,6}[ \t]+([^ \t\n][^\n]*)$", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A markdown file.

    ``front`` are its properties as texts, as far as they can be read; ``heading`` is its first heading, or empty.
    """

    path: Path
    front: Mapping[str, Property]
    body: str
    heading: str
    modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    heading: str
    body: str


def read(path: Path) -> Page | str:
    """Read a page, or return why it cannot be read."""
    try:
        status = path.stat()
        if status.st_size > MOST_BYTES:
            return "too large"
        data = path.read_bytes()
    except OSError as error:
        return error.strerror or "cannot be read"
    return page_of(path, data, modified=datetime.fromtimestamp(status.st_mtime, UTC))


def page_of(path: Path, data: bytes, *, modified: datetime) -> Page | str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8"
    sheet = notefile.sheet_of(text)
    try:
        front = notefile.load(sheet.yaml)
    except notefile.InvalidFrontmatter:
        front = {}
    body = text[sheet.body :].replace("\r\n", "\n").strip("\n")
    heading = _HEADING.search(body)
    return Page(path=path, front=front, body=body, heading=heading[1].strip(" #") if heading else "", modified=modified)


def below(folder: Path) -> Iterator[Path]:
    """Yield every markdown file below a folder, in order; hidden folders and links are not followed."""
    found = 0
    waiting = [(folder, 0)]
    while waiting:
        here, depth = waiting.pop()
        try:
            names = sorted(here.iterdir(), reverse=True)
        except OSError:
            continue
        for path in reversed(names):
            if path.is_symlink() or path.name.startswith(".") or path.name == "node_modules":
                continue
            if path.is_file() and path.suffix.lower() in (".md", ".markdown"):
                yield path
                found += 1
                if found >= _MOST_FILES:
                    return
        waiting += [
            (path, depth + 1)
            for path in names
            if depth < _MOST_DEPTH and not path.is_symlink() and not path.name.startswith(".") and path.is_dir()
            and path.name != "node_modules"
        ]  # fmt: skip


def text(value: Property) -> str:
    return value if isinstance(value, str) else ""


def texts(value: Property) -> tuple[str, ...]:
    match value:
        case str():
            return tuple(part.strip() for part in value.split(",") if part.strip())
        case list():
            return tuple(each for each in value if isinstance(each, str))
        case _:
            return ()


def without_heading(page: Page) -> str:
    """Return the body without the heading that is its title."""
    first, _, rest = page.body.lstrip("\n").partition("\n")
    return rest.strip("\n") if page.heading and first.lstrip("# ").strip(" #") == page.heading else page.body


def sections(body: str) -> list[Section]:
    """Split a body at its headings, with what stands before the first. Headings in code are skipped."""
    found: list[Section] = []
    heading, lines, fenced = "", list[str](), False
    for line in body.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        mark = None if fenced else re.match(r"#{1,6}[ \t]+(\S.*)", line)
        if mark is None:
            lines.append(line)
            continue
        found.append(Section(heading=heading, body="\n".join(lines).strip("\n")))
        heading, lines = mark[1].strip(" #"), []
    found.append(Section(heading=heading, body="\n".join(lines).strip("\n")))
    return [section for section in found if section.body.strip()]


MOST_BODY = 12_000
"""Characters of a note that another program wrote; a person's page is taken whole."""
_MOST_TRIGGERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A note from another memory.

    ``name`` identifies it in its source, so that importing it twice is the same as once.

    ``project`` is empty for a global note. ``origin`` is ``"user"`` for what a person wrote by hand.
    """

    source: str
    name: str
    title: str
    body: str
    kind: NoteKind
    created: datetime
    project: str = ""
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    origin: Origin = "assistant"
    importance: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReimportedNote:
    """A note of our own that is imported again, with its id, evidence and status. ``stem`` is the target of links to it there."""

    note: Note
    stem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotImported:
    """What was not imported. ``reason`` is one of a small set, for counting."""

    name: str
    reason: str


def drafts(pieces: Iterable[Foreign | ReimportedNote], *, accepted: bool) -> list[Draft]:
    """Return drafts of imported notes: redacted, made inert as markdown, bounded.

    Unless ``accepted``, all are proposed and none counts as the person's: the maker of a file can claim in it that a person wrote
    and accepted a note.
    """
    return [
        _draft(piece, accepted=accepted) if isinstance(piece, Foreign) else _kept(piece.note, accepted=accepted) for piece in pieces
    ]


def _kept(note: Note, *, accepted: bool) -> Draft:
    """Return the draft of a note of our own, without its links: their targets may be missing, and the planner links notes again.

    What it replaced and may contradict is removed as well, until all notes are imported; see `references`. Its key is removed where
    it is not ``accepted``: a keyed note is returned to any caller that asks for the key.
    """

    def clean(text: str) -> str:
        return redact(drop_private(text))

    def each(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(filter(None, map(clean, texts)))

    body = links.unlinked(clean(note.body))
    note = replace(
        note,
        title=clean(note.title),
        aliases=each(note.aliases),
        tags=each(note.tags),
        triggers=each(note.triggers),
        entities=each(note.entities),
        evidence=each(note.evidence),
        project=clean(note.project),
        session=clean(note.session),
        key=clean(note.key) if accepted else "",
        status=NoteStatus.PROPOSED if note.status is NoteStatus.ACCEPTED and not accepted else note.status,
        origin=_origin(note.origin, accepted=accepted),
        branch=clean(note.branch),
        review=clean(note.review),
        anchors=each(note.anchors),
        supersedes=(),
        superseded_by="",
        conflicts=(),
    )
    return Draft(
        note=replace(note, body=tame(body)),  # the file itself has the origin
        entities=entities_of(note.entities),
    )


def _origin(claimed: Origin, *, accepted: bool) -> Origin:
    return "tool" if claimed == "user" and not accepted else claimed


def references(pieces: Iterable[ReimportedNote]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return, by each note's id and by property, the ids of the notes that it replaced, was replaced by, or may contradict.

    Only among these notes: a name cannot be resolved anywhere else.
    """
    kept = list(pieces)
    named: dict[str, str] = {}
    for piece in kept:
        named[link_key(piece.stem)] = "" if link_key(piece.stem) in named else piece.note.id  # an ambiguous name means neither
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for piece in kept:
        note = piece.note
        said = {"supersedes": note.supersedes, "superseded_by": (note.superseded_by,), "conflicts": note.conflicts}
        led = {name: tuple(filter(None, (named.get(link_key(each), "") for each in to))) for name, to in said.items()}
        if any(led.values()):
            found[note.id] = {name: ids for name, ids in led.items() if ids}
    return found


def _draft(piece: Foreign, *, accepted: bool) -> Draft:
    def clean(text: str) -> str:
        return redact(drop_private(text))

    given = clean(piece.body)
    origin = _origin(piece.origin, accepted=accepted)
    body = tame(given, 0 if piece.origin == "user" else MOST_BODY, linked=origin == "user")
    title = title_of(clean(piece.title), body)
    entities = entities_of(map(clean, piece.entities))
    project = one_line(clean(piece.project))
    return Draft(
        note=Note(
            id=note_id(piece.created, "imported", piece.source, piece.name),
            path=f"{FOLDERS[piece.kind]}/{note_stem(title, piece.created)}.md",
            kind=piece.kind,
            title=title,
            body=body,
            created=piece.created,
            updated=piece.created,
            aliases=(title,),
            tags=tags_of((*map(clean, piece.tags), f"imported/{piece.source}")),
            triggers=tuple(dict.fromkeys(filter(None, map(tame_name, map(clean, piece.triggers)))))[:_MOST_TRIGGERS],
            entities=tuple(entity.name for entity in entities),
            scope=Scope.PROJECT if project else Scope.GLOBAL,
            project=project,
            status=NoteStatus.ACCEPTED if accepted else NoteStatus.PROPOSED,
            origin=origin,
            importance=min(max(piece.importance, 1), 3),
        ),
        entities=entities,
    )


_MOST_ARCHIVE = 256 * 1024 * 1024
_MOST_UNPACKED = 512 * 1024 * 1024
_MOST_MEMBERS = 100_000
_NOT_TAKEN = frozenset({".obsidian", ".trash", ".git", "__MACOSX", "templates"})


def members(path: Path) -> Iterator[ReimportedNote | Page | NotImported]:
    """Yield each markdown file in a zip, by name: one of our notes with its id, or a foreign page.

    Raises `KiteError` for what is no zip, or unpacks to more than notes would.
    """
    try:
        if path.stat().st_size > _MOST_ARCHIVE:
            raise KiteError(f"{path} is too large", hint="export it in parts")
        with zipfile.ZipFile(path) as archive:
            found = sorted(archive.infolist(), key=lambda info: info.filename)
            if len(found) > _MOST_MEMBERS or sum(info.file_size for info in found) > _MOST_UNPACKED:
                raise KiteError(f"{path} unpacks to more than notes would", hint="see what is in it")
            for info in found:
                if info.filename.lower().endswith((".md", ".markdown")):
                    yield _member(archive, info)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise KiteError(f"{path} cannot be read as a zip: {error}", hint="see what wrote it") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> ReimportedNote | Page | NotImported:
    name = info.filename
    if reason := _refused(info):
        return NotImported(name=name, reason=reason)
    try:
        with archive.open(info) as file:
            data = file.read(MOST_BYTES + 1)  # its declared size is not trusted
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        return NotImported(name=name, reason="damaged")
    if len(data) > MOST_BYTES:
        return NotImported(name=name, reason="too large")
    modified = _modified(info)
    page = page_of(Path(name), data, modified=modified)
    if isinstance(page, str):
        return NotImported(name=name, reason=page)
    note = parse(data.decode(), name, created=modified, updated=modified)
    return (
        ReimportedNote(note=placed(note), stem=PurePosixPath(name).stem)
        if not isinstance(note, UnreadableNote) and ULID.fullmatch(note.id)
        else page
    )


def _refused(info: zipfile.ZipInfo) -> str:
    posix, windows = PurePosixPath(info.filename), PureWindowsPath(info.filename)
    if posix.is_absolute() or windows.drive or windows.root or ".." in (*posix.parts, *windows.parts) or "\0" in info.filename:
        return "leads out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "symbolic link"
    if info.flag_bits & 1:
        return "encrypted"
    if info.file_size > MOST_BYTES:
        return "too large"
    if any(part in _NOT_TAKEN or part.startswith(".") for part in posix.parts):
        return "not a note"
    return ""


def _modified(info: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)


_EARLIEST, _LATEST = 1980, 2107
"""A zip can hold no other year."""
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_IN_BODY = frozenset(("path", "body", "links", "updated"))


def as_json(note: Note) -> dict[str, Any]:
    """Return all fields of a note as JSON values."""
    return {each.name: _plain(getattr(note, each.name)) for each in fields(note)}


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return list(value)
        case str():
            return str(value)
        case _:
            return value


def note_of(row: Mapping[str, Any]) -> Note | None:
    """Parse a row written by `as_json`, validated like a note's file; ``None`` for what is no note."""
    if not isinstance(row.get("id"), str) or not ULID.fullmatch(row["id"]) or not isinstance(row.get("body"), str):
        return None
    kept: dict[str, object] = {}
    for name in {each.name for each in fields(Note)} - _IN_BODY:
        match row.get(name):
            case str(text) if text:
                kept[name] = text
            case list(texts):
                kept[name] = [each for each in texts if isinstance(each, str)]
            case int(number) if name == "importance":
                kept[name] = notefile.Raw(text=str(number))
            case _:
                pass
    front = "\n".join(notefile.entry(name, value) for name, value in sorted(kept.items()))
    at = datetime.fromtimestamp(0, UTC)
    note = parse(f"---\n{front}\n---\n{row['body']}", "projects/x.md", created=at, updated=at)
    return None if isinstance(note, UnreadableNote) else placed(note)


def placed(note: Note) -> Note:
    """Return the note with the path that we would give it: its path elsewhere is not trusted."""
    stem = page_stem(note.title) if note.kind is NoteKind.ENTITY else note_stem(note.title, note.created)
    return replace(note, path=f"{FOLDERS[note.kind]}/{stem}.md")


def jsonl(notes: Iterable[Note]) -> bytes:
    return b"".join(json.dumps(as_json(note), ensure_ascii=False).encode("utf-8", "replace") + b"\n" for note in notes)


def zipped(files: Iterable[tuple[str, datetime, bytes]]) -> bytes:
    """Return a zip of the files. The same files give the same bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, at, data in files:
            year = min(max(_EARLIEST, at.year), _LATEST)
            info = zipfile.ZipInfo(path, (year, at.month, at.day, at.hour, at.minute, at.second))
            info.external_attr = 0o600 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return made.getvalue()
