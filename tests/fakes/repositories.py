"""Small git repositories, with commits made by no one in particular."""

import os
import subprocess
from pathlib import Path

FIRST = 1_772_355_600
"""Unix time: 1 March 2026, 9:00 UTC."""

_DAY = 86_400


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "GIT_CONFIG_NOSYSTEM": "1"}


class FakeRepository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._days = 0
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str, **variables: str) -> str:
        named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")
        result = subprocess.run(
            ["git", *named, *words],
            cwd=self.folder,
            env={**environment(self.folder), **variables},
            check=True,
            capture_output=True,
            text=True,
        )
        return result.stdout.strip()

    def commit(self, message: str, *, days: int = 1, **files: str) -> str:
        """Each a day after the last; a file's name has ``_`` for its dot."""
        self._days += days
        for name, text in (files or {"pump_py": message}).items():
            (self.folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
        self.git("add", "--all")
        at = f"{FIRST + self._days * _DAY} +0000"
        self.git("commit", "--quiet", "--allow-empty", f"--message={message}", GIT_COMMITTER_DATE=at, GIT_AUTHOR_DATE=at)
        return self.git("rev-parse", "HEAD")
