"""JSON as somebody else's text: what stands where, and how to add or take away one thing without touching another byte.

Everything here takes text and returns text. Adding and then removing the same thing gives the first text back.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_DEEPEST = 100
_STRINGS = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")

Value = str | int | Sequence["Value"] | dict[str, "Value"]


class NotJson(ValueError):
    """The message says what was expected, and at which line and column."""


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
    """From the first quote of its key to the end of its value."""

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
        """The last one, where a key is written twice: so do the agents read it."""
        found = self.member(key)
        return None if found is None else self.members[found].value

    def member(self, key: str) -> int | None:
        return next((n for n in reversed(range(len(self.members))) if self.members[n].key == key), None)


Node = String | Literal | Array | Object
Box = Array | Object


def read(text: str) -> Node:
    """Strict, as the agents themselves are: no comments, no trailing commas. Raises `NotJson`."""
    node, end = _value(text, _skip(text, 1 if text.startswith("\ufeff") else 0), 0)
    if (rest := _skip(text, end)) != len(text):
        raise _not_json(text, rest, "the end")
    return node


def add_member(text: str, box: Object, key: str, value: Value) -> str:
    """As the last member of ``box``, in the style of the text around it."""
    return _add(text, box, lambda style: f"{style.write(key)}:{style.after_colon}{style.write(value)}")


def add_item(text: str, box: Array, value: Value) -> str:
    return _add(text, box, lambda style: style.write(value))


def remove(text: str, box: Box, index: int) -> str:
    """Its comma goes with it, and the white space that adding it would have put there."""
    children = _children(box)
    child = children[index]
    if index > 0:
        return text[: children[index - 1].end] + text[child.end :]
    if len(children) > 1:
        return text[: child.start] + text[children[1].start :]
    before, after = text[box.start + 1 : child.start], text[child.end : box.end - 1]
    if "\n" in before:
        after = after.removeprefix(_newline(text) + _indent_of_line(text, box.start))
    return text[: box.start + 1] + after + text[box.end - 1 :]


def replace(text: str, node: Node, value: str) -> str:
    return text[: node.start] + json.dumps(value, ensure_ascii=False) + text[node.end :]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    """How the text writes a value at one place; ``unit`` is ``None`` where it writes everything on one line."""

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
        separator = "," + style.after_comma if style.unit is None else "," + style.newline + style.indent
        return text[: children[-1].end] + separator + render(style) + text[children[-1].end :]
    if style.unit is None:
        return text[: box.start + 1] + render(style) + text[box.start + 1 :]
    around = style.newline + style.indent, style.newline + _indent_of_line(text, box.start)
    return text[: box.start + 1] + around[0] + render(style) + around[1] + text[box.start + 1 :]


def _style(text: str, box: Box) -> _Style:
    root = read(text)
    children = _children(box)
    first = _children(root)[0] if isinstance(root, Array | Object) and _children(root) else None
    lead = text[root.start + 1 : first.start] if first else "\n  "
    many_lines = "\n" in (text[box.start + 1 : children[0].start] if children else lead)
    unit = lead.rpartition("\n")[2] if "\n" in lead else "  "
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


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > _DEEPEST:
        raise _not_json(text, at, "less nesting")
    match text[at : at + 1]:
        case "{":
            return _object(text, at, depth)
        case "[":
            return _array(text, at, depth)
        case '"':
            value, end = _string(text, at)
            return String(start=at, end=end, value=value), end
        case _:
            if not (found := _LITERAL.match(text, at)):
                raise _not_json(text, at, "a value")
            return Literal(start=at, end=found.end(), written=found.group()), found.end()


def _object(text: str, start: int, depth: int) -> tuple[Object, int]:
    members: list[Member] = []
    at = _skip(text, start + 1)
    while not (text.startswith("}", at) and not members):
        if not text.startswith('"', at):
            raise _not_json(text, at, "a key in quotes")
        key, colon = _string(text, at)
        if not text.startswith(":", colon := _skip(text, colon)):
            raise _not_json(text, colon, "a colon")
        value, end = _value(text, _skip(text, colon + 1), depth + 1)
        members.append(Member(start=at, end=end, key=key, value=value))
        at = _skip(text, end)
        if text.startswith("}", at):
            break
        if not text.startswith(",", at):
            raise _not_json(text, at, "a comma or }")
        at = _skip(text, at + 1)
    return Object(start=start, end=at + 1, members=tuple(members)), at + 1


def _array(text: str, start: int, depth: int) -> tuple[Array, int]:
    items: list[Node] = []
    at = _skip(text, start + 1)
    while not (text.startswith("]", at) and not items):
        item, end = _value(text, at, depth + 1)
        items.append(item)
        at = _skip(text, end)
        if text.startswith("]", at):
            break
        if not text.startswith(",", at):
            raise _not_json(text, at, "a comma or ]")
        at = _skip(text, at + 1)
    return Array(start=start, end=at + 1, items=tuple(items)), at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        value, end = _STRINGS.raw_decode(text, at)
        return str(value), end
    except json.JSONDecodeError as error:
        raise _not_json(text, error.pos, "the end of a string, or a valid escape") from error


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _not_json(text: str, at: int, expected: str) -> NotJson:
    line = text.count("\n", 0, at) + 1
    return NotJson(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: expected {expected}")
