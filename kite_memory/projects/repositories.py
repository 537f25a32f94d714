"""Find a folder's repository and branch, and detect new commits. Starts git only for `merged`."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kite_memory.projects.git_process import Git, GitFailed
from kite_memory.system.private_files import is_file

USUAL = ("main", "master", "trunk", "develop")
_LONGEST = 250


_GIT = re.compile(r"\bgit +(?:-c +\S+ +)?(?:switch|checkout|commit|status|stash|rebase|merge|pull|cherry-pick)\b")
_ELSEWHERE = re.compile(r"\b(?:cd|pushd)\s|\bgit +(?:\S+ +)*?(?:-C\b|--git-dir|--work-tree|init\b|clone\b|worktree\b)")
_SAID = re.compile(
    r"^(?:\[([^\s\]]+) (?:\(root-commit\) )?[0-9a-f]{7,40}\] |Switched to (?:a new )?branch '([^'\n]+)'|Already on '([^'\n]+)'"
    r"|On branch (\S+)$)",
    re.MULTILINE,
)
_SWITCHED = re.compile(r"\bgit +(?:switch|checkout)(?: +(?:-q|--quiet))? +(?:-[bBcC]|--create) +([\w./@+-]+)")
_OUTPUT = 20_000


def branch_in_output(command: str, output: str) -> str:
    """Return the branch that git was on after a successful command.

    Empty if neither the command nor its ``output`` shows it. Output about a repository in another folder is ignored.
    """
    if not _GIT.search(command) or _ELSEWHERE.search(command):
        return ""
    names = [next(filter(None, found.groups())) for found in _SAID.finditer(output[:_OUTPUT])]
    made = _SWITCHED.findall(command)
    name = names[-1] if names else made[-1] if made else ""
    return "" if len(name) > _LONGEST or name == "detached" else name


def branch_of(cwd: str) -> str:
    """Return the current branch, read from the disk without starting a process; empty if none exists or it cannot be read."""
    if not cwd or "\0" in cwd or len(cwd) > 4096 or not Path(cwd).is_absolute() or cwd.startswith(("\\\\", "//")):
        return ""
    here = Path(cwd)
    for folder in (here, *list(here.parents)[:_DEEPEST]):
        marker = folder / ".git"
        try:
            if marker.is_dir():
                return _head(marker)
            if marker.is_file():
                line = _first_head_line(marker)
                return _head(folder / line.removeprefix("gitdir:").strip()) if line.startswith("gitdir:") else ""
        except OSError:
            continue
    return ""


def _head(folder: Path) -> str:
    line = _first_head_line(folder / "HEAD")
    name = line.removeprefix("ref: refs/heads/")
    return name if name != line and len(name) <= _LONGEST else ""


def _first_head_line(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as opened:
        return opened.readline(4096).strip()


def repository_of(cwd: str) -> Path | None:
    """Return the folder in which git itself would find the repository."""
    here = Path(cwd)
    return next((folder for folder in (here, *list(here.parents)[:_DEEPEST]) if (folder / ".git").exists()), None)


def merged(cwd: str, branch: str, environment: Mapping[str, str], *, seconds: float = 5.0) -> bool | None:
    """Return whether a branch is part of the default one, is the default one, or is gone; ``None`` if git does not know.

    A branch at the same commit as the default one that never pointed elsewhere counts as new, not as merged.
    """
    if branch in USUAL:
        return True
    root = repository_of(cwd)
    if root is None:
        return None
    git = Git(environment, seconds=seconds, output=1 << 20)
    try:
        heads = git.ask(root, ["for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes/origin"]).decode(
            "utf-8", "replace"
        )
        known = set(heads.split("\n"))
        default = next((ref for name in USUAL for ref in (f"refs/remotes/origin/{name}", f"refs/heads/{name}") if ref in known), "")
        if not default:
            return None
        if f"refs/heads/{branch}" not in known:
            return True
        base = git.ask(root, ["merge-base", default, f"refs/heads/{branch}"]).strip()
        tip, trunk = (git.ask(root, ["rev-parse", "--verify", ref]).strip() for ref in (f"refs/heads/{branch}", default))
        if tip != trunk:
            return base == tip
        stood = git.ask(root, ["reflog", "show", "--format=%H", f"refs/heads/{branch}"]).split()
        return len(set(stood)) != 1
    except GitFailed:
        return None


_DEEPEST = 64
_WORKTREES = 200
_LINE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository on this disk.

    ``kept`` is git's own folder, shared by all its worktrees; ``folder`` is its main worktree, or ``kept`` if it has none.
    """

    kept: Path
    folder: Path

    @property
    def head(self) -> Path:
        """Path of its ``HEAD`` file, which identifies the repository."""
        return self.kept / "HEAD"


def repository_around(folder: str, *, home: Path) -> Repository | None:
    """Return the repository around ``folder``; ``None`` for that of the home folder, and on a network share.

    The home folder's repository holds dotfiles; a lookup would contact the network share.
    """
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
        except OSError:  # the name is too long for this system, or the folder may not be read
            continue
    return None


def _linked(here: Path, marker: Path) -> Repository | None:
    """Return the repository that a worktree's ``.git`` file points to; a submodule is its own repository."""
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
    except UnicodeEncodeError:  # a name that is not UTF-8 cannot be stored
        return None
    return Repository(kept=kept, folder=folder) if (kept / "HEAD").is_file() else None


def stamp(head: Path) -> tuple[int, int]:
    """Return size and time that change with new commits: of the logs of all heads, else of the branches. May raise `OSError`."""
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
    if not is_file(path):  # reading a pipe in its place would block
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline(_LINE).strip()
    except OSError:
        return ""
