"""Find the note that a person means by a name."""

import difflib
import re
from pathlib import Path, PurePosixPath

from kite_memory.errors import NoteNotFound
from kite_memory.vault.ledger import KnownFile
from kite_memory.vault.ledger.notes import NoteRows
from kite_memory.vault.wording import one_line, title_key, words

_HANDLE = re.compile(r"[0-9A-HJKMNP-TV-Z]{6,25}")
"""The end of an id, as lines that point at notes give it."""
_FEWEST_WORDS = 2


def is_handle(name: str) -> bool:
    return _HANDLE.fullmatch(name.upper()) is not None


def find(notes: NoteRows, name: str) -> KnownFile:
    """Return the only note that a name fits.

    A name is an id, the end of an id, a path, file name, title or alias, the beginning of one of them, or words of a title in their
    order.

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
        notes.ending_with(name.upper()) if is_handle(name) else [],
        notes.all_by_stem(stem) if "/" not in name else [],
        notes.by_title(name),
        notes.named("alias", title_key(name)),
        notes.starting_with(name),
        _holding(notes, name),
    ):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise NoteNotFound(f"{name!r} could be {len(candidates)} notes", hint=_listed(candidates))
    near = _near(notes, name)
    hint = f"did you mean {near}?" if near else "`kmem search` finds notes by their words"
    raise NoteNotFound(f"no note is called {name!r}", hint=hint)


def _holding(notes: NoteRows, name: str) -> list[KnownFile]:
    """Return the notes whose title holds all the words of a name of two words or more, in their order."""
    asked = title_key(name).split()
    if len(asked) < _FEWEST_WORDS:
        return []
    holding = [title for title in notes.titles() if _in_order(asked, title_key(title).split())]
    return [known for title in dict.fromkeys(holding) for known in notes.by_title(title)]


def _in_order(asked: list[str], title: list[str]) -> bool:
    left = iter(title)
    return all(any(word.startswith(each) for word in left) for each in asked)


def _near(notes: NoteRows, name: str) -> str:
    titles = {title.casefold(): title for title in notes.titles()}
    close = difflib.get_close_matches(name.casefold(), titles, n=3, cutoff=0.6)
    asked = words(name)
    sharing = sorted((title for title in titles if asked & words(title)), key=lambda title: -len(asked & words(title)))
    return " or ".join(f"“{titles[title]}”" for title in list(dict.fromkeys([*close, *sharing]))[:3])


def _listed(candidates: list[KnownFile]) -> str:
    return "say which: " + ", ".join(known.path for known in candidates[:5]) + (", …" if len(candidates) > 5 else "")


def inside(root: Path, name: str) -> str:
    """Return the vault path of a path as the shell gives it; empty for one outside the vault, or for no path."""
    try:
        return Path(name).expanduser().absolute().relative_to(root.absolute()).as_posix()
    except (ValueError, RuntimeError, OSError):
        return ""


def as_text(name: str) -> str:
    """Return a name from the shell as valid UTF-8 text; what cannot be encoded is replaced, and no note has such a name."""
    return name.encode("utf-8", "replace").decode()
