"""What we make is its owner's alone: by its modes whatever the umask, by who may call, and by what the service may touch.

`tests/test_modes.py` holds the same under the most careless umask; here it is those that take too much away.
"""

import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kite_memory import paths
from kite_memory.cli.everyday import leave_transcripts
from kite_memory.daemon.protocol import Ok
from kite_memory.daemon.server import Server
from kite_memory.daemon.service_units import UNIT, systemd_unit
from tests.counts import how_many
from tests.daemon.test_daemon_server import in_another_users_skin, needs_root, needs_unix, open_to_all
from tests.daemon.test_daemon_service import SERVICE
from tests.e2e.kmem import Machine
from tests.test_modes import open_to_others

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")

UMASKS = (0o777, 0o000, 0o002, 0o022, 0o027, 0o077, 0o177, 0o277, 0o377, 0o677)


@pytest.fixture
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="kmem-") as folder:
        machine = Machine(Path(folder).resolve() / "ada", usual_places=True)
        yield machine
        machine.kmem("down")


@pytest.mark.parametrize("umask", UMASKS[: how_many(len(UMASKS))])
def test_all_that_is_made_is_private(machine: Machine, umask: int) -> None:
    def kmem(*arguments: str) -> None:
        command = [sys.executable, "-m", "kite_memory", *arguments]
        done = subprocess.run(
            command, env=machine.env(), cwd=machine.home, capture_output=True, text=True, check=False, umask=umask
        )
        assert done.returncode == 0, done.stderr

    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")
    known = {*machine.home.rglob("*")}

    kmem("backfill")
    kmem("remember", "The gate code is changed in spring", "--key", "gate", "--global")
    kmem("up", "--yes")
    kmem("search", "gate")
    kmem("down")
    kmem("rebuild")
    kmem("verify")

    assert (machine.state / "seals.json").exists()
    assert open_to_others(machine.home, known=known) == []


def test_control_one_file_that_stands_open_is_seen(tmp_path: Path) -> None:
    (tmp_path / "open").touch()
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "closed").touch()
    (tmp_path / "closed").chmod(0o600)

    assert [line.split()[0] for line in open_to_others(tmp_path, known=set())] == ["open"]


@needs_unix
@needs_root
def test_another_user_is_refused_at_the_socket_by_its_modes_and_without_them(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(0o700)

    def ask() -> None:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(20.0)
            caller.connect(paths.socket_path(str(state)))
            caller.sendall(b"KMEM1 search 2\n{}")
            if not caller.recv(100).startswith(b"KMEM1 ok"):
                raise OSError("no answer")

    with Server(state, lambda request: Ok(body=b"{}"), report=print):
        ask()  # the control: any caller is answered
        by_modes = [in_another_users_skin(ask) for _ in range(how_many(100))]
        open_to_all(state)
        let_in = in_another_users_skin(lambda: Path(paths.socket_path(str(state))).touch())
        by_the_kernels_word = [in_another_users_skin(ask) for _ in range(how_many(100))]

    assert let_in == 0
    assert set(by_modes) == set(by_the_kernels_word) == {1}


def exposure(folder: Path, unit: str) -> float:
    file = folder / UNIT
    file.write_text(unit, encoding="utf-8")
    command = ["systemd-analyze", "security", "--offline=true", str(file)]
    rated = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return float(rated.rpartition("service: ")[2].split()[0])


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_the_service_is_hardly_exposed_and_without_namespaces_less_than_by_default(tmp_path: Path) -> None:
    program = tmp_path / "kmem"
    shutil.copy("/bin/true", program)
    service = replace(SERVICE, command=(str(program), "daemon"))
    bare = re.sub(r"(?m)^(?!\[|Description|ExecStart|WantedBy).*\n", "", systemd_unit(service))

    rated = {namespaces: exposure(tmp_path, systemd_unit(replace(service, namespaces=namespaces))) for namespaces in (True, False)}

    assert rated[True] <= 2.0
    assert rated[False] <= 6.5
    assert exposure(tmp_path, bare) > 9.0, "the control: a unit that confines nothing is rated as such"


def test_the_vaults_notes_are_not_wider_than_their_folder(tmp_path: Path, machine: Machine) -> None:
    machine.vault.mkdir(parents=True)
    machine.vault.chmod(0o700)

    assert machine.kmem("remember", "The kiln is fired on Mondays").code == 0

    (note,) = machine.notes()
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
