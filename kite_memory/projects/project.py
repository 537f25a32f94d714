"""Name of the project that a session belongs to, derived from its folder. Reads the disk, starts no process."""

import os
import re
import stat
import unicodedata
from functools import lru_cache
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

_LONGEST = 64
_DEEPEST = 64
_UNSAFE = re.compile(r"[^\w.]+")
_REMOTE_NAME = re.compile(r"[/:\\]([^/:\\?#]{1,200}?)(?:\.git)?[/\\]?(?:[?#].*)?$")
_AGENTS_WORKTREE = re.compile(r"[\\/](?:\.claude[\\/]worktrees|\.worktrees)[\\/]")


def project_of(cwd: str) -> str:
    """Return the name of the repository around ``cwd``, in lower case and safe as a file name; empty for the home folder.

    Worktrees of one repository are one project, even if their folder is gone but its path shows the repository. Without a
    repository the name is the folder's own. Two repositories of one name in different places share a project: what is known of one
    is then offered in the other. The disk is read on each call, because a repository may appear or disappear at any time.
    """
    home = _home()
    if not cwd or "\x00" in cwd or len(cwd) > 4096 or _same(cwd, home):
        return ""
    repository = _repository(cwd, home) if _can_be_walked(cwd) else None
    if repository is not None:
        return _slug(repository.name)
    owner = _AGENTS_WORKTREE.split(cwd, maxsplit=1)[0]
    return _slug(_name(cwd if _same(owner, home) else owner))


def project_with_remote(cwd: str, url: str) -> str:
    """As `project_of`, but use the name in the remote ``url`` if ``cwd`` is not, or no longer, a repository here.

    Agents work in copies whose folders have random names.
    """
    home = _home()
    if cwd and _can_be_walked(cwd) and "\x00" not in cwd and len(cwd) <= 4096 and _repository(cwd, home) is not None:
        return project_of(cwd)
    name = _REMOTE_NAME.search(url[:4096])
    return (_slug(name[1]) if name else "") or project_of(cwd)


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        return ""


def _can_be_walked(folder: str) -> bool:
    """Return whether the path is of this system and not on a network share, which a mere lookup would contact."""
    return Path(folder).is_absolute() and not folder.startswith(("\\\\", "//"))


def _repository(folder: str, home: str) -> Path | None:
    """Return the main folder of the nearest repository; ``None`` if that is the home folder with its dotfiles."""
    here, end = str(Path(folder)), os.path.normcase(home)
    for _ in range(_DEEPEST):
        if end and os.path.normcase(here) == end:
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


def _same(folder: str, home: str) -> bool:
    return bool(home) and PurePath(folder) == PurePath(home)


def _name(folder: str) -> str:
    return PureWindowsPath(folder).name if "\\" in folder else PurePosixPath(folder).name


@lru_cache(maxsize=4096)
def _slug(name: str) -> str:
    return _UNSAFE.sub("-", unicodedata.normalize("NFC", name).lower()).strip("-._")[:_LONGEST].rstrip("-._")
