"""Markdown that somebody may have left anywhere, read without trust in its size or form."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kite_memory.vault import properties
from kite_memory.vault.properties import Property

MOST_BYTES = 2_000_000
_MOST_FILES = 20_000
_MOST_DEPTH = 16
_HEADING = re.compile(r"^#{1,6}[ \t]+([^ \t\n][^\n]*)$", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """``front`` are its properties as texts, as far as they can be read; ``heading`` is its first, or empty."""

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
    """The page, or why there is none to be had."""
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
    sheet = properties.lay_out(text)
    try:
        front = properties.load(sheet.yaml)
    except properties.Refused:
        front = {}
    body = text[sheet.body :].replace("\r\n", "\n").strip("\n")
    heading = _HEADING.search(body)
    return Page(path=path, front=front, body=body, heading=heading[1].strip(" #") if heading else "", modified=modified)


def below(folder: Path) -> Iterator[Path]:
    """Every markdown file, in order; hidden folders and links are not followed."""
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
    """The body without the heading that is its title."""
    first, _, rest = page.body.lstrip("\n").partition("\n")
    return rest.strip("\n") if page.heading and first.lstrip("# ").strip(" #") == page.heading else page.body


def sections(body: str) -> list[Section]:
    """What stands under each heading of the second level or deeper, and before the first. Headings in code are none."""
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
