"""Change a settings file that belongs to a person and their agent: planned as text, shown as a diff, backed up, atomic.

JSON is edited as text: the position of each value is found, and one is added or removed without touching another byte.
"""

import difflib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kite_memory.errors import KiteError
from kite_memory.system.private_files import PRIVATE, make_folder, make_private_folder, replace_file, sync_folder

_DEEPEST = 100
_STRINGS = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_TRIVIA = re.compile(r"(?:[ \t\n\r]|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_REMARKS = re.compile(r"(?:[ \t]*(?:/\*[^\n\r]*?\*/|//[^\n\r]*))*")
"""Comments on the rest of a line after a value."""
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")

Value = str | int | Sequence["Value"] | dict[str, "Value"]


class NotJson(ValueError):
    """Raised for invalid JSON. The message has what was expected, and at which line and column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class String:
    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A number, ``true``, ``false`` or ``null``, as it is written."""

    start: int
    end: int
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    start: int
    end: int
    items: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of an object, from the first quote of its key to the end of its value."""

    start: int
    end: int
    key: str
    value: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    start: int
    end: int
    members: tuple[Member, ...]

    def get(self, key: str) -> "Node | None":
        """Return the value of a key; the last one where it is written twice, as the agents do."""
        found = self.member(key)
        return None if found is None else self.members[found].value

    def member(self, key: str) -> int | None:
        return next((n for n in reversed(range(len(self.members))) if self.members[n].key == key), None)


Node = String | Literal | Array | Object
Box = Array | Object


def read(text: str, *, comments: bool = False) -> Node:
    """Parse JSON strictly, as most agents do; ``comments`` allows comments and trailing commas. Raises `NotJson`."""
    return _JsonParser(text, comments=comments).whole()


def add_member(text: str, box: Object, key: str, value: Value) -> str:
    """Add the last member of ``box``, in the style of the text around it."""
    return _add(text, box, lambda style: f"{style.write(key)}:{style.after_colon}{style.write(value)}")


def add_item(text: str, box: Array, value: Value) -> str:
    return _add(text, box, lambda style: style.write(value))


def remove(text: str, box: Box, index: int) -> str:
    """Remove a child with its comma, and the white space that adding it would have put there."""
    children = _children(box)
    child = children[index]
    before = children[index - 1].end if index else box.start + 1
    after = children[index + 1].start if index + 1 < len(children) else box.end - 1
    comma = _comma(text, child.end)
    last = index + 1 == len(children)
    behind = comma is not None if last else _is_remarked(text[child.end : after])
    if behind or _is_remarked(text[before : child.start]):
        return _removed_among_remarks(text, child, None if comma is not None else _comma(text, before) if index else None, comma)
    if index > 0:
        return text[:before] + text[child.end :]
    if not last:
        return text[: child.start] + text[after:]
    lead, rest = text[before : child.start], text[child.end : after]
    if "\n" in lead:
        rest = rest.removeprefix(_newline(text) + _indent_of_line(text, box.start))
    return text[:before] + rest + text[after:]


def _removed_among_remarks(text: str, child: Node | Member, comma_before: int | None, comma_after: int | None) -> str:
    """Remove a child and keep every comment, also those about the removed child."""
    start = len(text[: child.start].rstrip(" \t\r\n"))
    rest = text[child.end :] if comma_after is None else text[child.end : comma_after] + text[comma_after + 1 :]
    if _ends_in_line_remark(text[:start]) and not rest.lstrip(" \t").startswith(("\n", "\r")):
        start = child.start
    head = text[:start] if comma_before is None else text[:comma_before] + text[comma_before + 1 : start]
    return head + rest


def _comma(text: str, at: int) -> int | None:
    found = _TRIVIA.match(text, at)
    end = found.end() if found else at
    return end if text.startswith(",", end) else None


def holds_remarks(text: str, box: Box) -> bool:
    """Return whether there are comments between the children of a box."""
    edges = [box.start + 1, *(edge for child in _children(box) for edge in (child.start, child.end)), box.end - 1]
    return any(_is_remarked(text[start:end]) for start, end in zip(edges[::2], edges[1::2], strict=True))


def _is_remarked(between: str) -> bool:
    """Return whether anything but white space and a comma is between two children."""
    return bool(between.strip(" \t\r\n,"))


def _ends_in_line_remark(text: str) -> bool:
    """Return whether the last line may end in a comment. When unsure it does, which keeps a line break."""
    return "//" in text[text.rfind("\n") + 1 :]


def replace(text: str, node: Node, value: str) -> str:
    return text[: node.start] + json.dumps(value, ensure_ascii=False) + text[node.end :]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    """How the text formats a value at one place; ``unit`` is ``None`` where it writes everything on one line."""

    newline: str
    indent: str
    unit: str | None
    after_colon: str
    after_comma: str

    def write(self, value: Value) -> str:
        separators = ("," if self.unit is not None else "," + self.after_comma, ":" + self.after_colon)
        written = json.dumps(value, ensure_ascii=False, indent=self.unit, separators=separators)
        return written.replace("\n", self.newline + self.indent)


def _add(text: str, box: Box, render: Callable[[_Style], str]) -> str:
    children = _children(box)
    style = _style(text, box)
    if children:
        end, comma = children[-1].end, _comma(text, children[-1].end)
        remarks = _REMARKS.match(text, end if comma is None else comma + 1)
        place = remarks.end() if remarks else end
        space = style.after_comma if style.unit is None else style.newline + style.indent
        if _ends_in_line_remark(text[end:place]):
            space = style.newline + style.indent
        if comma is not None:
            return text[:place] + space + render(style) + "," + text[place:]
        return text[:end] + "," + text[end:place] + space + render(style) + text[place:]
    if style.unit is None:
        return text[: box.start + 1] + render(style) + text[box.start + 1 :]
    around = style.newline + style.indent, style.newline + _indent_of_line(text, box.start)
    return text[: box.start + 1] + around[0] + render(style) + around[1] + text[box.start + 1 :]


def _style(text: str, box: Box) -> _Style:
    root = read(text, comments=True)
    children = _children(box)
    first = _children(root)[0] if isinstance(root, Array | Object) and _children(root) else None
    lead = text[root.start + 1 : first.start] if first else "\n  "
    many_lines = "\n" in (text[box.start + 1 : children[0].start] if children else lead)
    unit = _indent_of_line(text, first.start if first else len(lead)) if first and "\n" in lead else "  "
    indent = _indent_of_line(text, children[0].start if children else box.start) + ("" if children else unit)
    spaced = not isinstance(first, Member) or text[first.value.start - 1] in " \t\n\r"
    return _Style(
        newline=_newline(text),
        indent=indent if many_lines else "",
        unit=unit if many_lines else None,
        after_colon=" " if spaced else "",
        after_comma=" " if spaced else "",
    )


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_of_line(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _children(box: Box | Node) -> Sequence[Node | Member]:
    match box:
        case Array(items=items):
            return items
        case Object(members=members):
            return members
        case _:
            return ()


class _JsonParser:
    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._between = _TRIVIA if comments else _SPACE

    def whole(self) -> Node:
        node, end = self._value(self._skip(1 if self._text.startswith("\ufeff") else 0), 0)
        if (rest := self._skip(end)) != len(self._text):
            raise _not_json(self._text, rest, "the end")
        return node

    def _skip(self, at: int) -> int:
        found = self._between.match(self._text, at)
        return found.end() if found else at

    def _value(self, at: int, depth: int) -> tuple[Node, int]:
        text = self._text
        if depth > _DEEPEST:
            raise _not_json(text, at, "less nesting")
        match text[at : at + 1]:
            case "{":
                return self._object(at, depth)
            case "[":
                return self._array(at, depth)
            case '"':
                value, end = _string(text, at)
                return String(start=at, end=end, value=value), end
            case _:
                if not (found := _LITERAL.match(text, at)):
                    raise _not_json(text, at, "a value")
                return Literal(start=at, end=found.end(), written=found.group()), found.end()

    def _object(self, start: int, depth: int) -> tuple[Object, int]:
        text = self._text
        members: list[Member] = []
        at = self._skip(start + 1)
        while not self._closes("}", at, members):
            if not text.startswith('"', at):
                raise _not_json(text, at, "a key in quotes")
            key, colon = _string(text, at)
            if not text.startswith(":", colon := self._skip(colon)):
                raise _not_json(text, colon, "a colon")
            value, end = self._value(self._skip(colon + 1), depth + 1)
            members.append(Member(start=at, end=end, key=key, value=value))
            at = self._skip(end)
            if text.startswith("}", at):
                break
            if not text.startswith(",", at):
                raise _not_json(text, at, "a comma or }")
            at = self._skip(at + 1)
        return Object(start=start, end=at + 1, members=tuple(members)), at + 1

    def _array(self, start: int, depth: int) -> tuple[Array, int]:
        text = self._text
        items: list[Node] = []
        at = self._skip(start + 1)
        while not self._closes("]", at, items):
            item, end = self._value(at, depth + 1)
            items.append(item)
            at = self._skip(end)
            if text.startswith("]", at):
                break
            if not text.startswith(",", at):
                raise _not_json(text, at, "a comma or ]")
            at = self._skip(at + 1)
        return Array(start=start, end=at + 1, items=tuple(items)), at + 1

    def _closes(self, bracket: str, at: int, held: Sequence[object]) -> bool:
        """Return whether a box ends here. After a comma only where trailing commas are allowed."""
        return self._text.startswith(bracket, at) and (not held or self._comments)


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        value, end = _STRINGS.raw_decode(text, at)
        return str(value), end
    except json.JSONDecodeError as error:
        raise _not_json(text, error.pos, "the end of a string, or a valid escape") from error


def _not_json(text: str, at: int, expected: str) -> NotJson:
    line = text.count("\n", 0, at) + 1
    return NotJson(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: expected {expected}")


_LONGEST = 4 << 20
_BACKUPS_KEPT = 20
_ABSENT = ".absent"


class SettingsUnreadable(KiteError):
    """Raised where settings are not understood; nothing was changed."""


class SettingsNotWritable(KiteError):
    """Raised where the change could not be made; the file is as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A planned change of a file. ``None`` stands for a file that does not exist. ``executable``: the agent runs the file."""

    before: str | None
    after: str | None
    because: str
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    because: str


Plan = Edit | Nothing


def read_settings(path: Path) -> str | None:
    """Return the file's text to the byte, line ends included; ``None`` without a file. Raises `SettingsUnreadable`."""
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsUnreadable(f"cannot read {path}: {error.strerror}", hint="nothing was changed") from error
    if len(content) > _LONGEST:
        raise SettingsUnreadable(f"{path} is too long for a settings file", hint="nothing was changed")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsUnreadable(f"{path} is not UTF-8 text (byte {error.start})", hint="nothing was changed") from error


def diff(edit: Edit, path: Path) -> str:
    """Return the change as `diff -u` shows it."""
    before, after = (list(io.StringIO(text or "", newline="\n")) for text in (edit.before, edit.after))
    names = "/dev/null" if edit.before is None else str(path), "/dev/null" if edit.after is None else str(path)
    lines = difflib.unified_diff(before, after, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def apply(edit: Edit, path: Path, backups: Path, now: datetime | None = None) -> Path:
    """Make the change and return the path of the backup of what was there.

    A link is followed and what it points to is changed. Raises `SettingsNotWritable` if the file is no longer what the plan was
    made for, or cannot be replaced; then it is as it was.
    """
    target = Path(os.path.realpath(path))
    if read_settings(target) != edit.before:
        raise SettingsNotWritable(f"{path} was changed by somebody else just now", hint="run the command again")
    if not _is_ours(target):
        raise SettingsNotWritable(f"{path} belongs to another user", hint="run this as the user whose agent it is")
    try:
        backup = _back_up(edit.before, _backup_name(path), backups, now or datetime.now(UTC))
    except OSError as error:
        raise SettingsNotWritable(f"cannot keep a backup in {backups}: {error.strerror}", hint="nothing was changed") from error
    try:
        if edit.after is None:
            target.unlink()
            sync_folder(target.parent)
        else:
            make_folder(target.parent)
            replace_file(target, edit.after.encode(), mode=_mode(target) | (0o100 if edit.executable else 0))
    except OSError as error:
        elsewhere = f" (a link to {target})" if target != path else ""
        raise SettingsNotWritable(
            f"cannot write {path}{elsewhere}: {error.strerror}",
            hint="if another program manages this file, make the change there; `--dry-run` prints it",
        ) from error
    return backup


_BACKUP = re.compile(r"(.+)\.\d{8}T\d{6}\.\d{6}Z(\.absent)?")


def backed_up(path: Path, backups: Path) -> tuple[str | None, ...]:
    """Return what was there before each of our changes, latest first; ``None`` for no file."""
    return tuple(None if kept.suffix == _ABSENT else _text(kept) for kept in reversed(_kept(_backup_name(path), backups)))


def names_backed_up(backups: Path) -> set[str]:
    """Return the names of all files that were ever changed, each behind its folder's name and a hyphen."""
    try:
        return {found[1] for path in backups.iterdir() if (found := _BACKUP.fullmatch(path.name))}
    except FileNotFoundError:
        return set()


def _backup_name(path: Path) -> str:
    """Return a backup's name with the folder's: several agents call their file ``settings.json``."""
    return f"{path.parent.name.lstrip('.')}-{path.name}"


def _back_up(text: str | None, name: str, backups: Path, now: datetime) -> Path:
    make_private_folder(backups)
    backup = backups / f"{name}.{now:%Y%m%dT%H%M%S.%fZ}{_ABSENT if text is None else ''}"
    replace_file(backup, (text or "").encode())
    for old in _kept(name, backups)[:-_BACKUPS_KEPT]:
        old.unlink(missing_ok=True)
    return backup


def _kept(name: str, backups: Path) -> list[Path]:
    try:
        return sorted(path for path in backups.iterdir() if (found := _BACKUP.fullmatch(path.name)) and found[1] == name)
    except FileNotFoundError:
        return []


def _text(path: Path) -> str | None:
    try:
        return read_settings(path)
    except SettingsUnreadable:
        return ""  # damaged: it matches nothing


def _is_ours(target: Path) -> bool:
    """Return whether the file is the user's own: replacing a file also changes its owner, which root must not do."""
    if sys.platform == "win32":
        return True
    try:
        return target.stat().st_uid == os.geteuid()
    except OSError:
        return True  # no file, or writing will fail


def _mode(target: Path) -> int:
    if sys.platform == "win32":
        return PRIVATE
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        return PRIVATE
