import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kite_memory.daemon.lock import DaemonLock, holder
from kite_memory.errors import DaemonRunning, KiteError

IMPORTS = "import sys; from pathlib import Path; from kite_memory.daemon.lock import DaemonLock, holder\n"
HOLD = IMPORTS + "DaemonLock.take(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
LOOK = IMPORTS + "print(flush=True)\nwhile True: holder(Path(sys.argv[1]))"


def holding_process(state: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_daemon_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
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


def test_looking_does_not_get_in_the_way_of_a_daemon_that_starts(tmp_path: Path) -> None:
    DaemonLock.take(tmp_path).free()
    with subprocess.Popen([sys.executable, "-c", LOOK, str(tmp_path)], stdout=subprocess.PIPE) as looking:
        assert looking.stdout is not None
        looking.stdout.readline()
        for _ in range(50):
            DaemonLock.take(tmp_path).free()
        looking.kill()


def test_nobody_holds_what_was_never_made(tmp_path: Path) -> None:
    assert holder(tmp_path) is None


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")
def test_the_file_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
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
