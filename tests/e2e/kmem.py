"""A person's machine, as far as the tests need one: a home of its own, our commands as processes, the real client."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent.parent


def claude_code() -> str | None:
    """The real client, where it is installed."""
    local = PROJECT / ".clients" / "node_modules" / ".bin" / "claude"
    return str(local) if local.exists() else shutil.which("claude")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(slots=True)
class Machine:
    """Nothing of the real home, environment or settings is seen or touched.

    With ``usual_places`` files lie where they do without ``KMEM_HOME``; ``bin`` is searched for programs first.
    """

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    usual_places: bool = False

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)

    @property
    def vault(self) -> Path:
        return self.home / (".kite/memory" if self.usual_places else "kmem/memory")

    @property
    def state(self) -> Path:
        return self.home / (".local/state/kite-memory" if self.usual_places else "kmem/state")

    @property
    def config(self) -> Path:
        return self.home / (".config/kite-memory/config.toml" if self.usual_places else "kmem/config.toml")

    def env(self, extra: Mapping[str, str] = {}) -> dict[str, str]:
        apart = {} if self.usual_places else {"KMEM_HOME": str(self.home / "kmem")}
        return {
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "PYTHONPATH": str(PROJECT),
            **apart,
            **self.environment,
            **extra,
        }

    def configure(self, text: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text)

    def kmem(
        self, *arguments: str, input: str = "", timeout: float = 120, extra: Mapping[str, str] = {}, cwd: Path | None = None
    ) -> Ran:
        return self._run([sys.executable, "-m", "kite_memory", *arguments], input=input, timeout=timeout, extra=extra, cwd=cwd)

    def shell(self, line: str, *, timeout: float = 120, extra: Mapping[str, str] = {}, cwd: Path | None = None) -> Ran:
        """With `kmem` and `kmem-hook` to be called by their names."""
        bin = self.home / "bin"
        if not bin.exists():
            bin.mkdir(0o700)
            for name, module in (("kmem", "kite_memory"), ("kmem-hook", "kite_memory.hook_client")):
                (bin / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
                (bin / name).chmod(0o700)
        return self._run(["sh", "-c", line], input="", timeout=timeout, extra=extra, cwd=cwd)

    def hook(self, payload: Mapping[str, object], *, cwd: Path | None = None) -> Ran:
        return self._run([sys.executable, "-m", "kite_memory.hook_client"], input=json.dumps(payload), timeout=30, cwd=cwd)

    def claude(self, prompt: str, *, cwd: Path, go_on: bool = False, asking: bool = False, timeout: float = 120) -> Ran:
        """With ``go_on`` in the folder's last session. Where it is to be ``asking``, what no one has allowed is refused."""
        client = claude_code()
        assert client is not None
        cwd.mkdir(parents=True, exist_ok=True)
        allowed = [] if asking else ["--dangerously-skip-permissions"]
        command = [client, "-p", prompt, *allowed, "--output-format", "json", *(["-c"] if go_on else [])]
        quiet = {
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        return self._run(command, input="", timeout=timeout, cwd=cwd, extra=quiet)

    def _run(
        self,
        command: list[str],
        *,
        input: str,
        timeout: float,
        cwd: Path | None = None,
        extra: Mapping[str, str] = {},
    ) -> Ran:
        done = subprocess.run(
            command, input=input, env=self.env(extra), capture_output=True, text=True, timeout=timeout, cwd=cwd or self.home
        )
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    def notes(self) -> list[Path]:
        folders = ("decisions", "topics", "projects", "people", "ideas", "journals")
        return sorted(path for folder in folders for path in (self.vault / folder).glob("*.md"))


def eventually(condition: Callable[[], bool], *, seconds: float = 60.0) -> bool:
    """Whether ``condition`` came true in time; for what another process is about to do."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()
