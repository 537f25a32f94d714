import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kite_memory.daemon.protocol import DaemonLock, holder
from kite_memory.errors import DaemonRunning, KiteError

IMPORTS = "import sys; from pathlib import Path; from kite_memory.daemon.protocol import DaemonLock\n"
HOLD = IMPORTS + "DaemonLock.take(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


def holding_process(state: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_daemon_is_refused_and_learns_who_the_first_is(tmp_path: Path) -> None:
    with holding_process(tmp_path) as first:
        with pytest.raises(DaemonRunning, match=rf"\(pid {first.pid}\)") as refusal:
            DaemonLock.take(tmp_path)
        assert holder(tmp_path) == first.pid

        first.kill()

    assert refusal.value.hint == "`kmem down` stops it"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_death_frees_the_lock(tmp_path: Path) -> None:
    with holding_process(tmp_path) as first:
        first.send_signal(signal.SIGKILL)
        first.wait()

    assert holder(tmp_path) is None
    with DaemonLock.take(tmp_path):
        assert holder(tmp_path) == os.getpid()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP here")
def test_a_daemon_that_only_sleeps_keeps_it(tmp_path: Path) -> None:
    with holding_process(tmp_path) as first:
        first.send_signal(signal.SIGSTOP)
        with pytest.raises(DaemonRunning):
            DaemonLock.take(tmp_path)
        first.kill()


def test_freed_it_can_be_taken_again(tmp_path: Path) -> None:
    lock = DaemonLock.take(tmp_path)
    lock.free()
    lock.free()

    with DaemonLock.take(tmp_path):
        assert holder(tmp_path) == os.getpid()

    assert holder(tmp_path) is None


@pytest.mark.skipif(sys.platform == "win32", reason="locks of another kind there")
def test_somebody_who_only_looks_does_not_keep_a_daemon_from_starting(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    DaemonLock.take(tmp_path).free()
    looking = os.open(tmp_path / "daemon.lock", os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    gone = threading.Timer(0.01, os.close, [looking])
    gone.start()

    with DaemonLock.take(tmp_path):
        gone.join()
        assert holder(tmp_path) == os.getpid()


def test_the_state_folder_is_made_for_it(tmp_path: Path) -> None:
    with DaemonLock.take(tmp_path / "deep" / "state"):
        assert holder(tmp_path / "deep" / "state") == os.getpid()


def test_no_one_holds_what_was_never_made(tmp_path: Path) -> None:
    assert holder(tmp_path) is None


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_file_is_the_users_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        with DaemonLock.take(tmp_path):
            mode = stat.S_IMODE((tmp_path / "daemon.lock").stat().st_mode)
    finally:
        os.umask(old)

    assert mode == 0o600


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "daemon.lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(KiteError, match="cannot open"):
        DaemonLock.take(tmp_path)

    assert not (tmp_path / "elsewhere").exists()
