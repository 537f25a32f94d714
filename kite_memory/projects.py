"""Find the project, repository and branch of a path.

A repository is untrusted: git runs without hooks, pager or network, writes nothing, and is bounded in time and output. The name
of a project is read from the disk without any process.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from kite_memory.system.git import Git, GitFailed
from kite_memory.system.private_files import is_file, stamp_of
from kite_memory.text import lazy_regex

_LONGEST_NAME = 64
_DEEPEST = 64
_UNSAFE = lazy_regex(r"[^\w.]+")
_REMOTE_NAME = lazy_regex(r"[/:\\]([^/:\\?#]{1,200}?)(?:\.git)?[/\\]?(?:[?#].*)?$")
_AGENTS_WORKTREE = lazy_regex(r"[\\/](?:\.claude[\\/]worktrees|\.worktrees)[\\/]")


def project_of(cwd: str) -> str:
    """Return the name of the repository around ``cwd``, in lower case and safe as a file name; empty for the home folder.

    Worktrees of one repository are one project, even if their folder is gone but its path shows the repository. Without a
    repository the name is the folder's own. Two repositories of one name in different places share a project: what is known of one
    is then offered in the other. The disk is read on each call, because a repository may appear or disappear at any time.
    """
    homes, cwd = _homes(), os.path.normpath(cwd) if cwd else ""
    if not cwd or "\x00" in cwd or len(cwd) > 4096 or _same(cwd, homes):
        return ""
    repository = _repository(cwd, homes) if _can_be_walked(cwd) else None
    if repository is not None:
        return _slug(repository.name)
    owner = _AGENTS_WORKTREE.split(cwd, maxsplit=1)[0]
    return _slug(_name(cwd if _same(owner, homes) else owner))


def project_with_remote(cwd: str, url: str) -> str:
    """Return the same as `project_of`, but the name in the remote ``url`` if ``cwd`` is not, or no longer, a repository here.

    Agents work in copies whose folders have random names.
    """
    if cwd and _can_be_walked(cwd) and "\x00" not in cwd and len(cwd) <= 4096 and _repository(cwd, _homes()) is not None:
        return project_of(cwd)
    name = _REMOTE_NAME.search(url[:4096])
    return (_slug(name[1]) if name else "") or project_of(cwd)


def _homes() -> tuple[str, ...]:
    try:
        return _paths_of(str(Path.home()))
    except RuntimeError:
        return ()


@lru_cache(maxsize=16)
def _paths_of(home: str) -> tuple[str, ...]:
    """Return the home folder's path and, if that leads through a link, the one without links, which agents report."""
    return tuple(dict.fromkeys((home, os.path.realpath(home))))


def _can_be_walked(folder: str) -> bool:
    """Return whether the path is of this system and not on a network share, which a mere lookup would contact."""
    return Path(folder).is_absolute() and not folder.startswith(("\\\\", "//"))


def _repository(folder: str, homes: tuple[str, ...]) -> Path | None:
    """Return the main folder of the nearest repository; ``None`` if that is the home folder with its dotfiles."""
    here, ends = str(Path(folder)), [os.path.normcase(home) for home in homes]
    for _ in range(_DEEPEST):
        if os.path.normcase(here) in ends:
            return None
        try:
            found = os.stat(os.path.join(here, ".git"))  # noqa: PTH116, PTH118 - paths would cost five times as much
            if stat.S_ISDIR(found.st_mode):
                return Path(here)
            if stat.S_ISREG(found.st_mode):
                return _main_folder(Path(here), found.st_ino, found.st_mtime_ns, found.st_size)
        except OSError:  # missing, a name too long for this system, or a folder that may not be read
            pass
        below, here = here, os.path.dirname(here)  # noqa: PTH120
        if here == below:
            return None
    return None


@lru_cache(maxsize=4096)
def _main_folder(worktree: Path, inode: int, mtime_ns: int, size: int) -> Path:
    """Return the folder that the ``.git`` file of a linked worktree points to; a submodule is its own repository."""
    with (worktree / ".git").open(encoding="utf-8", errors="replace") as file:
        first = file.readline(4096).strip()
    if not first.startswith("gitdir:"):
        return worktree
    kept_in = Path(os.path.normpath(worktree / first.removeprefix("gitdir:").strip()))
    if kept_in.parent.name != "worktrees":
        return worktree
    holder = kept_in.parent.parent
    return holder.parent if holder.name.startswith(".") else holder.with_name(holder.name.removesuffix(".git"))


def _same(folder: str, homes: tuple[str, ...]) -> bool:
    return any(PurePath(folder) == PurePath(home) for home in homes)


def _name(folder: str) -> str:
    return PureWindowsPath(folder).name if "\\" in folder else PurePosixPath(folder).name


@lru_cache(maxsize=4096)
def _slug(name: str) -> str:
    return _UNSAFE.sub("-", unicodedata.normalize("NFC", name).lower()).strip("-._")[:_LONGEST_NAME].rstrip("-._")


USUAL = ("main", "master", "trunk", "develop")
_LONGEST_BRANCH = 250


_GIT = lazy_regex(r"\bgit +(?:-c +\S+ +)?(?:switch|checkout|commit|status|stash|rebase|merge|pull|cherry-pick)\b")
_ELSEWHERE = lazy_regex(r"\b(?:cd|pushd)\s|\bgit +(?:\S+ +)*?(?:-C\b|--git-dir|--work-tree|init\b|clone\b|worktree\b)")
_SAID = lazy_regex(
    r"^(?:\[([^\s\]]+) (?:\(root-commit\) )?[0-9a-f]{7,40}\] |Switched to (?:a new )?branch '([^'\n]+)'|Already on '([^'\n]+)'"
    r"|On branch (\S+)$)",
    re.MULTILINE,
)
_SWITCHED = lazy_regex(r"\bgit +(?:switch|checkout)(?: +(?:-q|--quiet))? +(?:-[bBcC]|--create) +([\w./@+-]+)")
_READ_OUTPUT = 20_000


def branch_in_output(command: str, output: str) -> str:
    """Return the branch that git was on after a successful command.

    Empty if neither the command nor its ``output`` shows it. Output about a repository in another folder is ignored.
    """
    if not _GIT.search(command) or _ELSEWHERE.search(command):
        return ""
    names = [next(filter(None, found.groups())) for found in _SAID.finditer(output[:_READ_OUTPUT])]
    made = _SWITCHED.findall(command)
    name = names[-1] if names else made[-1] if made else ""
    return "" if len(name) > _LONGEST_BRANCH or name == "detached" else name


def branch_of(cwd: str) -> str:
    """Return the current branch, read from the disk without starting a process; empty if unknown."""
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
    known = name != line and name != ".invalid"  # which stands there if the branches are in a reftable
    return name if known and len(name) <= _LONGEST_BRANCH else ""


def _first_head_line(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as opened:
        return opened.readline(4096).strip()


def repository_of(cwd: str) -> Path | None:
    """Return the folder in which git itself would find the repository."""
    here = Path(cwd)
    folders = (here, *list(here.parents)[:_DEEPEST])
    return next((folder for folder in folders if os.path.exists(folder / ".git")), None)  # noqa: PTH110 - raises nothing


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
        here = next((ref for ref in (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}") if ref in known), "")
        if not here:
            return True
        base = git.ask(root, ["merge-base", default, here]).strip()
        tip, trunk = (git.ask(root, ["rev-parse", "--verify", ref]).strip() for ref in (here, default))
        if tip != trunk:
            return base == tip
        stood = git.ask(root, ["reflog", "show", "--format=%H", here]).split()
        return len(set(stood)) != 1
    except GitFailed:
        return None


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
    start, homes = Path(os.path.normpath(folder)), [Path(path) for path in _paths_of(str(home))]
    for here in (start, *list(start.parents)[:_DEEPEST]):
        if here in homes:
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
    places = [kept / "logs" / "HEAD", kept / "packed-refs", kept / "refs" / "heads"]
    if branch := _first_line(head).removeprefix("ref:").strip():
        places.append(kept / branch)
    worktrees = kept / "worktrees"
    if worktrees.is_dir():
        with os.scandir(worktrees) as entries:
            places += [Path(entry.path, "logs", "HEAD") for entry in sorted(entries, key=lambda entry: entry.name)[:_WORKTREES]]
    return stamp_of(head, *places)


def _first_line(path: Path) -> str:
    if not is_file(path):  # reading a pipe in its place would block
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline(_LINE).strip()
    except OSError:
        return ""
