"""Which repository a folder belongs to, and what of it changes when a commit is made. Looks at the disk, starts no process."""

import os
from dataclasses import dataclass
from pathlib import Path

from kite_memory.system.listing import is_file

_DEEPEST = 64
_WORKTREES = 200
_LINE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """``kept`` is where git keeps it, shared by all its worktrees; ``folder`` its main worktree, or ``kept`` where it has none."""

    kept: Path
    folder: Path

    @property
    def head(self) -> Path:
        """The file that stands for it."""
        return self.kept / "HEAD"


def repository_around(folder: str, *, home: Path) -> Repository | None:
    """Not that of the home folder with its dotfiles, nor anything on a share of the network: asking for it would call upon it."""
    if not folder or "\0" in folder or folder.startswith(("\\\\", "//")) or not Path(folder).is_absolute():
        return None
    start = Path(os.path.normpath(folder))
    for here in (start, *list(start.parents)[:_DEEPEST]):
        if here == home:
            return None
        marker = here / ".git"
        try:
            if marker.is_dir():
                return _known(marker, here)
            if marker.is_file():
                return _linked(here, marker)
        except OSError:  # a name that this system finds too long, or a folder that may not be looked into
            continue
    return None


def _linked(here: Path, marker: Path) -> Repository | None:
    """Where the ``.git`` file of a worktree leads, or of a submodule, which is a repository of its own."""
    first = _first_line(marker)
    if not first.startswith("gitdir:"):
        return None
    kept = Path(os.path.normpath(here / first.removeprefix("gitdir:").strip()))
    common = _first_line(kept / "commondir")
    if not common:
        return _known(kept, here)
    kept = Path(os.path.normpath(kept / common))
    return _known(kept, kept.parent if kept.name == ".git" else kept)


def _known(kept: Path, folder: Path) -> Repository | None:
    try:
        str(kept).encode()
    except UnicodeEncodeError:  # a name that cannot be written down
        return None
    return Repository(kept=kept, folder=folder) if (kept / "HEAD").is_file() else None


def stamp(head: Path) -> tuple[int, int]:
    """What tells that there may be new commits: the logs of all its heads, else the branches. May raise `OSError`."""
    kept = head.parent
    status = head.stat()
    places = [kept / "logs" / "HEAD", kept / "packed-refs", kept / "refs" / "heads"]
    if branch := _first_line(head).removeprefix("ref:").strip():
        places.append(kept / branch)
    worktrees = kept / "worktrees"
    if worktrees.is_dir():
        with os.scandir(worktrees) as entries:
            places += [Path(entry.path, "logs", "HEAD") for entry in sorted(entries, key=lambda entry: entry.name)[:_WORKTREES]]
    size, mtime_ns = status.st_size, status.st_mtime_ns
    for place in places:
        try:
            status = place.stat()
        except OSError:
            continue
        size += status.st_size
        mtime_ns = max(mtime_ns, status.st_mtime_ns)
    return size, mtime_ns


def _first_line(path: Path) -> str:
    if not is_file(path):  # a pipe in its place would be waited on
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline(_LINE).strip()
    except OSError:
        return ""
