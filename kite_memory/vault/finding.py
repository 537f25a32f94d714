"""Which note a person means."""

import difflib
from pathlib import Path, PurePosixPath

from kite_memory.errors import NoteNotFound
from kite_memory.vault.ledger import Known
from kite_memory.vault.ledger.notes import NoteRows
from kite_memory.vault.wording import one_line, title_key, words


def find(notes: NoteRows, name: str) -> Known:
    """By id, path, file name, title, alias, or the beginning of one of them where only one note has it.

    Raises `NoteNotFound`; its hint names what it could have been.
    """
    name = one_line(name)
    path = name.removeprefix("./")
    stem = PurePosixPath(name).name.removesuffix(".md")
    by_path = notes.at(path) or notes.at(f"{path}.md")
    if found := notes.by_id(name.upper()) or notes.by_id(name) or by_path:
        return found
    if not name:
        raise NoteNotFound("no note is meant", hint="give an id, a path or a title")
    for candidates in (
        notes.all_by_stem(stem) if "/" not in name else [],
        notes.by_title(name),
        notes.named("alias", title_key(name)),
        notes.starting_with(name),
    ):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise NoteNotFound(f"{name!r} could be {len(candidates)} notes", hint=_listed(candidates))
    near = _near(notes, name)
    hint = f"did you mean {near}?" if near else "`kmem search` finds notes by their words"
    raise NoteNotFound(f"no note is called {name!r}", hint=hint)


def _near(notes: NoteRows, name: str) -> str:
    titles = {title.casefold(): title for title in notes.titles()}
    close = difflib.get_close_matches(name.casefold(), titles, n=3, cutoff=0.6)
    asked = words(name)
    sharing = sorted((title for title in titles if asked & words(title)), key=lambda title: -len(asked & words(title)))
    return " or ".join(f"“{titles[title]}”" for title in list(dict.fromkeys([*close, *sharing]))[:3])


def _listed(candidates: list[Known]) -> str:
    return "say which: " + ", ".join(known.path for known in candidates[:5]) + (", …" if len(candidates) > 5 else "")


def inside(root: Path, name: str) -> str:
    """The vault path of a path as the shell gives it; empty for one that leads elsewhere, or is none."""
    try:
        return Path(name).expanduser().absolute().relative_to(root.absolute()).as_posix()
    except (ValueError, RuntimeError, OSError):
        return ""


def as_text(name: str) -> str:
    """What a shell gives may be no text; no note is called so."""
    return name.encode("utf-8", "replace").decode()
