"""A git repository as the shared folder: a branch of its own that is only ever added to. Runs the ``git`` command."""

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from kite_memory.errors import KiteError, UsageError
from kite_memory.system.private_files import make_folder

BRANCH = "kite-sync"

_REMOTE = re.compile(r"(?:https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")
_SECONDS = 600.0
_ATTEMPTS = 5
_OPTIONS = (
    *("-c", "user.name=Kite Memory", "-c", "user.email=kite-memory@localhost", "-c", "commit.gpgsign=false"),
    *("-c", f"core.hooksPath={os.devnull}", "-c", f"core.attributesFile={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.symlinks=false", "-c", "core.autocrlf=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
)
_SETTINGS = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
_PASSED_ON = frozenset({"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_SSL_CAINFO", "GIT_CONFIG_GLOBAL"})


class _Failed(Exception):
    """A git command failed; the text is the last line that it wrote about it."""


def is_remote(target: str) -> bool:
    """Return whether this is the address of a git repository, not a folder."""
    return _REMOTE.fullmatch(target) is not None


class GitRemote:
    """A clone of one branch, below ``home``."""

    def __init__(self, home: Path, url: str, environment: Mapping[str, str]) -> None:
        if re.match(r"\w+://[^/@]*:[^/@]*@", url):
            raise UsageError("this address holds a password", hint="let git's credential helper keep it")
        self._url = url
        self.folder = home / hashlib.sha256(url.encode()).hexdigest()[:16]
        kept = {name: value for name, value in environment.items() if not name.startswith("GIT_") or name in _PASSED_ON}
        self._environment = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **kept, **_SETTINGS}

    def fetch(self) -> None:
        """Bring the clone up to date; make it at the first time."""
        try:
            if not (self.folder / ".git").is_dir():
                make_folder(self.folder)
                self._git("init", "--quiet", "--template=")
                self._git("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
                self._git("remote", "add", "origin", self._url)
            self._rebase()
        except _Failed as error:
            raise self._error("cannot be read", error) from error

    def exchange(self, write: Callable[[], None]) -> None:
        """Have the folder written to, then commit and push. Others may push at the same time."""
        write()
        try:
            for left in reversed(range(_ATTEMPTS)):
                self._commit()
                if not self._has_commits():
                    return
                try:
                    self._git("push", "--quiet", "origin", f"HEAD:refs/heads/{BRANCH}")
                    return
                except _Failed:
                    if not left:
                        raise
                self._rebase()
        except _Failed as error:
            raise self._error("cannot be written to", error) from error

    def _rebase(self) -> None:
        """Put what is here on top of what the others have pushed. No two machines write one file."""
        if any((self.folder / ".git" / name).exists() for name in ("rebase-merge", "rebase-apply")):
            self._git("rebase", "--abort")
        (self.folder / ".git" / "index.lock").unlink(missing_ok=True)  # this clone is ours alone, and its lock is held
        self._commit()
        if not self._git("ls-remote", "--heads", "origin", BRANCH).strip():
            return
        self._git("fetch", "--quiet", "origin", f"+refs/heads/{BRANCH}:refs/remotes/origin/{BRANCH}")
        if not self._has_commits():
            self._git("reset", "--quiet", "--hard", f"refs/remotes/origin/{BRANCH}")
            return
        try:
            self._git("rebase", "--quiet", f"refs/remotes/origin/{BRANCH}")
        except _Failed:
            self._git("rebase", "--abort")
            raise

    def _commit(self) -> None:
        self._git("add", "--all", "--force", ".")
        if self._git("status", "--porcelain").strip():
            self._git("commit", "--quiet", "--no-verify", "--message", "Sync")

    def _has_commits(self) -> bool:
        try:
            self._git("rev-parse", "--quiet", "--verify", "HEAD")
        except _Failed:
            return False
        return True

    def _git(self, *words: str) -> str:
        environment = {**self._environment, "GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        try:
            ran = subprocess.run(
                ["git", *_OPTIONS, *words],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            raise KiteError("git is not installed", hint="install it, or share a folder instead") from error
        except subprocess.TimeoutExpired as error:
            raise _Failed("git took too long") from error
        if ran.returncode:
            lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
            raise _Failed(lines[-1][:200] if lines else "git failed")
        return ran.stdout.decode("utf-8", "replace")

    def _error(self, what: str, error: _Failed) -> KiteError:
        hint = f"try it by hand: git ls-remote {self._url}; the daemon may lack your ssh agent: `kmem down` first, then sync"
        return KiteError(f"{self._url} {what}: {error}", hint=hint)
