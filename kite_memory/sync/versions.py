"""Versions of a note on several machines, and what becomes of two that meet. Pure.

Of any two contents every machine chooses the same one: that of higher rank, in which a later version is always above the one it was
made from. A clock counts the changes of each machine. If neither clock holds the other's, both were changed without knowing of
each other, and the content that is not chosen is kept beside. A name has no such twin: the newer one is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Literal

Clock = Mapping[str, int]
Gone = Literal["", "removed", "forgotten"]
"""Why there is no file: it was removed, or its owner has deleted the note, which is then never written again."""

PATH_KEY = "path:"
"""Beginning of the key of a file without an id, or of a copy; the rest is its path."""
NO_PATH = "gone.md"
"""Path of a forgotten note: its name may reveal its subject."""

_TICK = 0.001
_LONGEST_STEM = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteVersion:
    """What one machine has of a note.

    ``key`` is its id, or `PATH_KEY` and its path. ``digest`` is of the file's content, empty if it is gone. ``at`` is when the
    content was changed (Unix time), ``by`` on which machine, ``path_at`` when it was named. ``life`` counts how often it came back
    after it was gone. ``ours`` is whether Kite Memory wrote the body. ``titles`` are the digests of the titles of a forgotten
    note, which are not to be made again in ``project``.
    """

    key: str
    path: str
    path_at: float
    digest: str
    clock: Clock
    at: float
    by: str
    life: int = 0
    ours: bool = False
    gone: Gone = ""
    project: str = ""
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What becomes of two versions. ``beside`` is the one whose content would be lost, and is kept in a file of its own."""

    version: NoteVersion
    beside: NoteVersion | None = None


def merge(here: NoteVersion, there: NoteVersion) -> Merged:
    """Return what becomes of a note known here when another machine's version arrives.

    A forgotten note stays forgotten, whatever was written elsewhere without knowing of it.
    """
    chosen, other = (here, there) if _rank(here) >= _rank(there) else (there, here)
    beside: NoteVersion | None = None
    if (chosen.digest, chosen.gone) == (other.digest, other.gone):
        chosen = replace(chosen, clock=_joined(chosen.clock, other.clock))
    elif chosen.digest and other.digest and not _holds(chosen.clock, other.clock):
        beside = other
    named = max(here, there, key=lambda each: (each.path_at, each.path))
    if not chosen.gone:
        chosen = replace(chosen, path=named.path, path_at=named.path_at)
    return Merged(version=chosen, beside=beside)


def _rank(version: NoteVersion) -> tuple[int, bool, float, str, str, str]:
    return version.life, version.gone == "forgotten", version.at, version.digest, version.gone, version.by


def _joined(one: Clock, other: Clock) -> Clock:
    return {each: max(one.get(each, 0), other.get(each, 0)) for each in sorted({*one, *other})}


def _holds(clock: Clock, other: Clock) -> bool:
    return all(clock.get(machine, 0) >= count for machine, count in other.items())


def changed(before: NoteVersion, *, machine: str, count: int, at: float, digest: str, gone: Gone = "") -> NoteVersion:
    """Return the version after a change of the content on ``machine``, its ``count``-th."""
    returned = bool(before.gone) and not gone
    return replace(
        before,
        digest=digest,
        clock={**before.clock, machine: count},
        at=max(at, before.at + _TICK),
        by=machine,
        life=before.life + returned,
        gone=gone,
    )


def renamed(before: NoteVersion, path: str, at: float) -> NoteVersion:
    return replace(before, path=path, path_at=max(at, before.path_at + _TICK))


def copy_path(version: NoteVersion) -> str:
    """Return where a content that would be lost is kept: beside the note, under the same name on every machine."""
    path = PurePosixPath(version.path)
    at = datetime.fromtimestamp(version.at, UTC)
    name = f"{path.stem[:_LONGEST_STEM]} (conflicted copy {version.by} {at:%Y-%m-%d %H.%M.%S}){path.suffix}"
    return str(path.with_name(name))
