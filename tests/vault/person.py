"""Somebody at their vault with Obsidian: how it saves, moves, deletes and rewrites links, and what its property editor does."""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import yaml

_LINK = re.compile(r"\[\[([^\[\]|#\n]+)([^\[\]\n]*)\]\]")

Front = dict[str, object]


class Person:
    """Every way to change a file under ``root`` by hand. ``replaces``: their editor saves beside and renames, else it truncates.

    Paths are relative to the vault. A file that has just gone away is left gone.
    """

    def __init__(self, root: Path, *, replaces: bool = False) -> None:
        self.root = root
        self.replaces = replaces

    def notes(self) -> list[str]:
        """Every markdown file that Obsidian shows."""
        found = (path.relative_to(self.root).as_posix() for path in self.root.rglob("*.md"))
        return sorted(path for path in found if not any(part.startswith(".") for part in path.split("/")))

    def reads(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def saves(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.replaces:
            beside = target.with_name(f".{target.name}.tmp")
            beside.write_bytes(text.encode())
            beside.replace(target)
        else:
            target.write_bytes(text.encode())

    def changes(self, path: str, change: Callable[[str], str]) -> bool:
        """Whether the note was still there."""
        try:
            text = self.reads(path)
        except FileNotFoundError:
            return False
        self.saves(path, change(text))
        return True

    def sets_properties(self, path: str, changes: Mapping[str, object]) -> bool:
        """Through the property editor, which writes all of them anew: comments, quotes and inline lists are gone."""

        def changed(text: str) -> str:
            front, body = _apart(text)
            return _as_obsidian_writes({**front, **changes}) + body

        return self.changes(path, changed)

    def renames(self, old: str, new: str) -> bool:
        """Also moves; links to the note are rewritten in all others, as ``alwaysUpdateLinks`` has it."""
        source, target = self.root / old, self.root / new
        if target.exists():
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.rename(target)
        except FileNotFoundError:
            return False
        before, after = PurePosixPath(old).stem, PurePosixPath(new).stem
        for path in self.notes() if before != after else ():
            with contextlib.suppress(FileNotFoundError):
                text = self.reads(path)
                if (changed := with_links(text, {before: after})) != text:
                    self.saves(path, changed)
        return True

    def throws_away(self, path: str) -> str:
        """Into Obsidian's own trash; says where it is. Empty if it was gone."""
        trash = self.root / ".trash"
        trash.mkdir(exist_ok=True)
        target = trash / PurePosixPath(path).name
        count = 1
        while target.exists():
            count += 1
            target = trash / f"{PurePosixPath(path).stem} {count}.md"
        try:
            (self.root / path).rename(target)
        except FileNotFoundError:
            return ""
        return target.relative_to(self.root).as_posix()

    def deletes(self, path: str) -> bool:
        """For good."""
        try:
            (self.root / path).unlink()
        except FileNotFoundError:
            return False
        return True

    def copies(self, path: str) -> str:
        """“Make a copy”; says where it is. Empty if there was nothing to copy."""
        place = PurePosixPath(path)
        count = 1
        while (target := self.root / place.with_name(f"{place.stem} {count}.md")).exists():
            count += 1
        try:
            shutil.copyfile(self.root / path, target)
        except FileNotFoundError:
            return ""
        os.utime(target)
        return target.relative_to(self.root).as_posix()


def with_links(text: str, names: Mapping[str, str]) -> str:
    """Links to the old names lead to the new ones, in properties as in the body."""
    return _LINK.sub(lambda link: f"[[{names.get(link[1], link[1])}{link[2]}]]", text)


def _apart(text: str) -> tuple[Front, str]:
    if not text.startswith("---\n") or (end := text.find("\n---\n", 3)) < 0:
        return {}, text
    try:
        front = yaml.safe_load(text[4:end]) or {}
    except yaml.YAMLError as error:
        raise ValueError("Obsidian shows broken properties, and offers no editor for them") from error
    return (front if isinstance(front, dict) else {}), text[end + 5 :]


def _as_obsidian_writes(front: Front) -> str:
    """Lists one below the other, indented; text in quotes only where YAML would stumble; points in time without a zone."""
    lines = []
    for name, value in front.items():
        if isinstance(value, list):
            lines += [f"{name}:", *(f"  - {_scalar(each)}" for each in value)] if value else [f"{name}: []"]
        else:
            lines.append(f"{name}: {_scalar(value)}".rstrip())
    return "---\n" + "".join(f"{line}\n" for line in lines) + "---\n"


def _scalar(value: object) -> str:
    if value is None:
        return ""
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).replace("+00:00", "")
    if isinstance(value, str):
        return yaml.safe_dump(value, width=1_000_000, allow_unicode=True).removesuffix("\n").removesuffix("\n...")
    return str(value).lower() if isinstance(value, bool) else str(value)
