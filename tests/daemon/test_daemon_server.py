import json
import os
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

import pytest

from kite_memory import endpoint, paths
from kite_memory.daemon.protocol import DaemonLock, DaemonRefused, DaemonSilent, HeldReply, Ok, Reply, Request, call
from kite_memory.daemon.server import Acceptor, Handler, Limits, Server, Transport, listen
from kite_memory.errors import DaemonRunning, DaemonUnreachable, KiteError, UsageError
from kite_memory.system.private_files import NotPrivate

TRANSPORTS: tuple[Transport, ...] = ("unix", "port") if hasattr(socket, "AF_UNIX") else ("port",)
PATIENT = 20.0
LIMITS = Limits(workers=4, waiting=8, read_seconds=PATIENT, write_seconds=PATIENT)


def echo(request: Request) -> Reply:
    return Ok(body=request.op.encode() + b"|" + request.body)


@contextmanager
def serving(
    state: Path, handle: Handler = echo, *, limits: Limits = LIMITS, transport: Transport = "auto"
) -> Iterator[list[BaseException]]:
    reported: list[BaseException] = []
    with Server(state, handle, report=reported.append, limits=limits, transport=transport):
        yield reported


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Transport:
    named: Transport = request.param
    return named


def connection_to(state: Path) -> endpoint.Connection:
    return endpoint.connect(str(state), monotonic() + PATIENT)


def raw(connection: endpoint.Connection, wire: bytes) -> bytes:
    """What comes back until the other end hangs up."""
    connection.settimeout(PATIENT)
    content = b""
    try:
        if wire:
            connection.sendall(wire)
        while piece := connection.recv(1 << 16):
            content += piece
    except (ConnectionResetError, BrokenPipeError):
        pass  # a refusal may come before the last byte has gone
    finally:
        connection.close()
    return content


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("size", [0, 1, 300_000, endpoint.LONGEST_REQUEST])
def test_what_is_asked_is_answered(tmp_path: Path, transport: Transport, size: int) -> None:
    with serving(tmp_path, transport=transport):
        answer = call(tmp_path, "search", b"x" * size, PATIENT)

    assert answer == b"search|" + b"x" * size


def test_many_may_ask_at_once(tmp_path: Path, transport: Transport) -> None:
    by_name: dict[int, bytes] = {}

    def ask(number: int) -> None:
        for turn in range(10):
            by_name[number * 100 + turn] = call(tmp_path, "search", b"%d" % (number * 100 + turn), PATIENT)

    with serving(tmp_path, limits=replace(LIMITS, waiting=64), transport=transport):
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert by_name == {number * 100 + turn: b"search|%d" % (number * 100 + turn) for number in range(16) for turn in range(10)}


def test_a_request_may_come_byte_by_byte(tmp_path: Path, transport: Transport) -> None:
    with serving(tmp_path, transport=transport):
        connection = connection_to(tmp_path)
        for byte in b"KMEM1 hook 3\nabc":
            connection.send(bytes([byte]))

        assert raw(connection, b"") == b"KMEM1 ok 8\nhook|abc"


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 5000, b"KMEM1 hook 99999999\n", b"KMEM1 hook 1\nab", b"KMEM1 hook x\n"]
)
def test_garbage_is_refused_and_does_no_harm(tmp_path: Path, transport: Transport, garbage: bytes) -> None:
    with serving(tmp_path, transport=transport) as reported:
        reply = raw(connection_to(tmp_path), garbage)

        assert call(tmp_path, "search", b"", PATIENT) == b"search|"
    assert reply.startswith(b"KMEM1 error ") or reply == b""
    assert reported == []


def test_clients_that_fall_silent_keep_no_one_waiting(tmp_path: Path, transport: Transport) -> None:
    silent = LIMITS.waiting - 1
    with serving(tmp_path, transport=transport):
        idle = [connection_to(tmp_path) for _ in range(silent // 2)]
        halfway = [connection_to(tmp_path) for _ in range(silent - len(idle))]
        for connection in halfway:
            connection.send(b"KMEM1 hook 100\nhalf")

        assert call(tmp_path, "search", b"", PATIENT) == b"search|"
        for connection in idle + halfway:
            connection.close()


def test_a_client_that_falls_silent_is_hung_up_on(tmp_path: Path, transport: Transport) -> None:
    with serving(tmp_path, limits=replace(LIMITS, read_seconds=0.05), transport=transport):
        connection = connection_to(tmp_path)

        assert raw(connection, b"KMEM1 hook 100\nhalf") == b""


def test_a_full_house_says_so_at_once(tmp_path: Path, transport: Transport) -> None:
    go_on = threading.Event()
    started = threading.Semaphore(0)

    def slow(request: Request) -> Reply:
        started.release()
        go_on.wait(PATIENT)
        return Ok()

    with serving(tmp_path, slow, limits=replace(LIMITS, workers=1, waiting=1), transport=transport):
        first = connection_to(tmp_path)
        first.send(b"KMEM1 hook 0\n")
        assert started.acquire(timeout=PATIENT)
        second = connection_to(tmp_path)
        second.send(b"KMEM1 hook 0\n")

        with pytest.raises(DaemonRefused, match="busy"):
            while True:  # until the second one has come to wait
                call(tmp_path, "search", b"", PATIENT)

        go_on.set()
        assert [raw(connection, b"") for connection in (first, second)] == [b"KMEM1 ok 0\n"] * 2


def test_anyone_who_has_gone_is_not_worked_for(tmp_path: Path, transport: Transport) -> None:
    go_on, handled = threading.Event(), list[str]()
    started = threading.Semaphore(0)

    def slow(request: Request) -> Reply:
        handled.append(request.op)
        started.release()
        go_on.wait(PATIENT)
        return Ok()

    with serving(tmp_path, slow, limits=replace(LIMITS, workers=1), transport=transport):
        patient = connection_to(tmp_path)
        patient.send(b"KMEM1 patient 0\n")
        assert started.acquire(timeout=PATIENT)
        gone = connection_to(tmp_path)
        gone.send(b"KMEM1 gone 0\n")
        gone.close()
        go_on.set()
        call(tmp_path, "late", b"", PATIENT)
        patient.close()

    assert handled == ["patient", "late"]


@dataclass
class Receipts:
    """Answers with a reply that is held, and notes what became of it."""

    answered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go_on: threading.Event = field(default_factory=threading.Event)
    noted: list[str] = field(default_factory=list)
    ended: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __call__(self, request: Request) -> HeldReply:
        self.answered.release()
        assert self.go_on.wait(PATIENT)
        return HeldReply(reply=Ok(body=b"a note"), arrived=lambda: self._note("arrived"), lost=lambda: self._note("lost"))

    def _note(self, what: str) -> None:
        self.noted.append(what)
        self.ended.release()


def test_a_reply_has_arrived_when_its_asker_says_so(tmp_path: Path, transport: Transport) -> None:
    receipts = Receipts()
    receipts.go_on.set()
    with serving(tmp_path, receipts, transport=transport):
        assert call(tmp_path, "hook", b"", PATIENT) == b"a note"
        assert receipts.ended.acquire(timeout=PATIENT)

    assert receipts.noted == ["arrived"]


def test_a_reply_is_lost_on_an_asker_who_gave_up_while_it_was_made(tmp_path: Path, transport: Transport) -> None:
    receipts = Receipts()
    with serving(tmp_path, receipts, transport=transport) as reported:
        connection = connection_to(tmp_path)
        connection.send(b"KMEM1 hook 0\n")
        assert receipts.answered.acquire(timeout=PATIENT)
        connection.close()
        receipts.go_on.set()
        assert receipts.ended.acquire(timeout=PATIENT)

    assert (receipts.noted, reported) == (["lost"], [])


def test_a_reply_is_lost_on_an_asker_who_read_it_and_put_it_to_no_use(tmp_path: Path, transport: Transport) -> None:
    receipts = Receipts()
    receipts.go_on.set()
    with serving(tmp_path, receipts, transport=transport):
        connection = connection_to(tmp_path)
        assert endpoint.exchange(connection, "hook", b"", monotonic() + PATIENT) == ("ok", b"a note")
        connection.close()
        assert receipts.ended.acquire(timeout=PATIENT)

    assert receipts.noted == ["lost"]


def test_an_asker_who_neither_leaves_nor_acknowledges_is_not_waited_for_long(tmp_path: Path, transport: Transport) -> None:
    receipts = Receipts()
    receipts.go_on.set()
    with serving(tmp_path, receipts, limits=replace(LIMITS, write_seconds=0.05), transport=transport):
        connection = connection_to(tmp_path)
        endpoint.exchange(connection, "hook", b"", monotonic() + PATIENT)
        assert receipts.ended.acquire(timeout=PATIENT)
        connection.close()

    assert receipts.noted == ["lost"]


def test_slow_requests_keep_no_urgent_one_waiting(tmp_path: Path, transport: Transport) -> None:
    go_on = threading.Event()
    started = threading.Semaphore(0)

    def slow(request: Request) -> Reply:
        if request.name != "hook":
            started.release()
            assert go_on.wait(PATIENT)
        return echo(request)

    limits = replace(LIMITS, workers=2, reserved=1)
    with Server(tmp_path, slow, report=print, urgent={"hook"}, limits=limits, transport=transport):
        asking = [connection_to(tmp_path) for _ in range(6)]
        for connection in asking:
            connection.send(b"KMEM1 ask 0\n")
        for _ in range(limits.workers):
            assert started.acquire(timeout=PATIENT)

        assert [call(tmp_path, "hook:codex", b"why?", PATIENT) for _ in range(3)] == [b"hook:codex|why?"] * 3

        go_on.set()
        assert [raw(connection, b"") for connection in asking] == [b"KMEM1 ok 4\nask|"] * 6


def test_an_error_of_ours_reaches_the_person_with_its_hint_and_exit_code(tmp_path: Path, transport: Transport) -> None:
    def refuse(request: Request) -> Reply:
        raise UsageError("no such note", hint="look with `kmem search`")

    with serving(tmp_path, refuse, transport=transport) as reported, pytest.raises(DaemonRefused) as result:
        call(tmp_path, "show", b"", PATIENT)

    assert (str(result.value), result.value.hint, result.value.exit_code) == ("no such note", "look with `kmem search`", 2)
    assert reported == []


@pytest.mark.parametrize("bug", [ZeroDivisionError("oops"), SystemExit(3), KeyboardInterrupt()])
def test_a_bug_is_reported_and_the_next_request_is_answered(tmp_path: Path, bug: BaseException) -> None:
    def broken(request: Request) -> Reply:
        if request.op == "break":
            raise bug
        return echo(request)

    with serving(tmp_path, broken, limits=replace(LIMITS, workers=1)) as reported:
        for _ in range(2):
            with pytest.raises(DaemonRefused, match="internal error") as result:
                call(tmp_path, "break", b"", PATIENT)
        assert call(tmp_path, "search", b"", PATIENT) == b"search|"

    assert reported == [bug, bug]
    assert "while the daemon answered 'break'" in bug.__notes__
    assert result.value.exit_code == 70


def test_stopping_leaves_nothing_behind_and_starting_again_works(tmp_path: Path, transport: Transport) -> None:
    for _ in range(3):
        with serving(tmp_path, transport=transport):
            call(tmp_path, "search", b"", PATIENT)
        assert list(tmp_path.iterdir()) == []

    with pytest.raises(DaemonUnreachable, match="no daemon is running"):
        call(tmp_path, "search", b"", PATIENT)


def test_a_request_in_work_is_answered_before_the_end(tmp_path: Path) -> None:
    started = threading.Semaphore(0)
    go_on = threading.Event()

    def slow(request: Request) -> Reply:
        started.release()
        go_on.wait(PATIENT)
        return Ok(body=b"done")

    server = Server(tmp_path, slow, report=print, limits=LIMITS)
    server.start()
    connection = connection_to(tmp_path)
    connection.send(b"KMEM1 hook 0\n")
    started.acquire()
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    go_on.set()

    assert raw(connection, b"") == b"KMEM1 ok 4\ndone"
    stopping.join(PATIENT)
    assert not stopping.is_alive()
    server.stop()


def test_a_request_may_stop_the_server(tmp_path: Path) -> None:
    server: Server

    def stop(request: Request) -> Reply:
        server.stop()
        return Ok(body=b"stopped")

    server = Server(tmp_path, stop, report=print, limits=LIMITS)
    server.start()

    assert call(tmp_path, "stop", b"", PATIENT) == b"stopped"
    assert list(tmp_path.iterdir()) == []


def test_a_second_server_at_the_same_address_is_refused(tmp_path: Path, transport: Transport) -> None:
    with serving(tmp_path, transport=transport):
        with pytest.raises(DaemonRunning), serving(tmp_path, transport=transport):
            pass

        assert call(tmp_path, "search", b"", PATIENT) == b"search|"


needs_unix = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no unix sockets here")


def stale_socket(state: Path) -> None:
    state.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(paths.socket_path(str(state)))


@needs_unix
def test_a_socket_that_no_one_answers_is_replaced(tmp_path: Path) -> None:
    stale_socket(tmp_path)
    with pytest.raises(DaemonUnreachable, match="no daemon is running"):
        call(tmp_path, "search", b"", PATIENT)

    with serving(tmp_path, transport="unix"):
        assert call(tmp_path, "search", b"", PATIENT) == b"search|"


def test_a_port_that_no_one_answers_is_replaced(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as short_lived:
        port = short_lived.getsockname()[1]
    (tmp_path / "daemon.port").write_text(f"{port} {'0' * 64}\n", encoding="ascii")

    with serving(tmp_path, transport="port"):
        assert call(tmp_path, "search", b"", PATIENT) == b"search|"


def test_a_left_over_port_whose_new_owner_says_nothing_is_no_daemon_and_is_replaced(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        (tmp_path / "daemon.port").write_text(f"{other.getsockname()[1]} {'0' * 64}\n", encoding="ascii")
        with pytest.raises(DaemonUnreachable, match="no daemon is running"):
            call(tmp_path, "search", b"", 0.05)
        with DaemonLock.take(tmp_path):
            with pytest.raises(DaemonSilent, match="takes no more requests"):
                call(tmp_path, "search", b"", 0.05)

            with serving(tmp_path, transport="port"):
                assert call(tmp_path, "search", b"", PATIENT) == b"search|"


@needs_unix
def test_a_socket_whose_owner_hangs_is_not_taken_away(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(paths.socket_path(str(tmp_path)))
        hung.listen(0)
        waiting = []
        with pytest.raises(BlockingIOError):
            while True:
                waiting.append(connection_to(tmp_path))

        with pytest.raises(DaemonRunning), serving(tmp_path, transport="unix"):
            pass
        for connection in waiting:
            connection.close()


@needs_unix
def test_something_else_in_the_sockets_place_is_left_there(tmp_path: Path) -> None:
    in_the_way = Path(paths.socket_path(str(tmp_path)))
    in_the_way.write_text("precious", encoding="ascii")

    with pytest.raises(KiteError, match="is in the way"), serving(tmp_path, transport="unix"):
        pass

    assert in_the_way.read_text(encoding="ascii") == "precious"


def test_an_address_that_was_removed_is_opened_again(tmp_path: Path, transport: Transport) -> None:
    with Server(tmp_path, echo, report=print, limits=LIMITS, transport=transport) as server:
        address = next(tmp_path.iterdir())
        server.listen_again()
        before = address.stat().st_ino
        address.unlink()
        with pytest.raises(DaemonUnreachable):
            call(tmp_path, "search", b"", PATIENT)

        server.listen_again()
        again = address.stat().st_ino
        server.listen_again()

        assert call(tmp_path, "search", b"", PATIENT) == b"search|"
        assert again == address.stat().st_ino
    assert before and list(tmp_path.iterdir()) == []
    server.listen_again()
    assert list(tmp_path.iterdir()) == []


@needs_unix
def test_an_address_that_cannot_be_opened_again_is_tried_at_the_next_time(tmp_path: Path) -> None:
    with Server(tmp_path, echo, report=print, limits=LIMITS, transport="unix") as server:
        address = Path(paths.socket_path(str(tmp_path)))
        address.unlink()
        address.mkdir()

        assert "is in the way" in server.listen_again()
        assert "is in the way" in server.listen_again()
        address.rmdir()

        assert server.listen_again() == ""
        assert call(tmp_path, "search", b"", PATIENT) == b"search|"


def test_a_server_ends_where_a_client_keeps_the_port_s_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows refuses to remove it."""
    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    with serving(tmp_path, transport="port") as reported:
        connection = connection_to(tmp_path)

        def refused(path: Path, missing_ok: bool = False) -> None:
            raise PermissionError(13, "in use", str(path))

        monkeypatch.setattr(Path, "unlink", refused)

    assert raw(connection, b"") == b""
    connection.close()
    assert died == reported == []


@needs_unix
def test_a_stopping_server_leaves_the_socket_of_its_successor_alone(tmp_path: Path) -> None:
    with serving(tmp_path, transport="unix"):
        Path(paths.socket_path(str(tmp_path))).unlink()
        successor = Server(tmp_path, echo, report=print, limits=LIMITS, transport="unix")
        successor.start()

    assert call(tmp_path, "search", b"", PATIENT) == b"search|"
    successor.stop()


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")
@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_the_address_is_the_users_alone_whatever_the_umask(tmp_path: Path, transport: Transport, umask: int) -> None:
    state = tmp_path / "deep" / "state"
    old = os.umask(umask)
    try:
        with serving(state, transport=transport):
            modes = {path.name: mode(path) for path in [*state.iterdir(), state, state.parent]}
    finally:
        os.umask(old)

    address = "daemon.sock" if transport == "unix" else "daemon.port"
    assert modes == {address: 0o600, "state": 0o700, "deep": 0o700}


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean little there")
def test_a_state_folder_open_to_others_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    with serving(tmp_path):
        assert mode(tmp_path) == 0o700


@pytest.fixture
def too_deep(tmp_path: Path) -> Path:
    return tmp_path / ("d" * 100)


@pytest.fixture
def shallow() -> Iterator[Path]:
    """pytest's own temporary folders may be too deep for a socket themselves."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="k") as folder:
        yield Path(folder)


@needs_unix
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_a_path_too_long_for_a_socket_moves_to_the_runtime_folder(
    too_deep: Path, shallow: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    runtime = shallow / "r"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    old = os.umask(umask)
    try:
        with serving(too_deep):
            (address,) = runtime.iterdir()
            modes = mode(address), mode(runtime)
            answer = call(too_deep, "search", b"", PATIENT)
    finally:
        os.umask(old)

    assert answer == b"search|"
    assert modes == (0o600, 0o700)
    assert list(runtime.iterdir()) == []


def make_link(runtime: Path) -> None:
    (runtime.parent / "theirs").mkdir(mode=0o700)
    runtime.symlink_to(runtime.parent / "theirs")


def make_open(runtime: Path) -> None:
    runtime.mkdir()
    runtime.chmod(0o755)


def make_foreign(runtime: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a folder of another user's")
    runtime.mkdir(mode=0o700)
    os.chown(runtime, 65534, 65534)


@needs_unix
@pytest.mark.parametrize("plant", [make_link, make_open, make_foreign])
def test_a_runtime_folder_that_somebody_else_could_have_made_is_refused(
    too_deep: Path, shallow: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], None]
) -> None:
    runtime = shallow / "r"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    plant(runtime)

    with pytest.raises(NotPrivate, match="not a folder of yours alone"), serving(too_deep):
        pass


def in_another_users_skin(act: Callable[[], None]) -> int:
    """Exit code of a child run as the system's unprivileged user: 0 if ``act`` was done, 1 for an `OSError` or a refusal."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setgid(65534)
            os.setuid(65534)
            act()
            code = 0
        except (OSError, KiteError, ValueError):
            code = 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


needs_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")


def open_to_all(state: Path) -> None:
    """Undoes every mode on the way, so that only asking the kernel who calls is left."""
    for folder in [state, *state.parents[:-2]]:
        folder.chmod(0o777)
    Path(paths.socket_path(str(state))).chmod(0o777)


@needs_unix
@needs_root
def test_another_user_is_refused_even_where_the_modes_let_them_in(tmp_path: Path) -> None:
    def ask_as_a_stranger() -> None:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(PATIENT)
            stranger.connect(paths.socket_path(str(tmp_path)))
            stranger.sendall(b"KMEM1 search 0\n")
            if stranger.recv(100).startswith(b"KMEM1 ok"):
                os._exit(0)
            raise OSError

    with serving(tmp_path, transport="unix"):
        open_to_all(tmp_path)
        modes_let_in = in_another_users_skin(lambda: Path(paths.socket_path(str(tmp_path))).touch())
        refused = in_another_users_skin(ask_as_a_stranger)

    assert (modes_let_in, refused) == (0, 1)


@needs_unix
@needs_root
def test_a_client_does_not_talk_to_another_users_daemon(tmp_path: Path) -> None:
    with serving(tmp_path, transport="unix") as reported:
        open_to_all(tmp_path)
        refused = in_another_users_skin(lambda: endpoint.connect(str(tmp_path), monotonic() + PATIENT).close())

    assert refused == 1
    assert reported == []


def test_a_caller_at_the_port_who_does_not_know_the_token_is_hung_up_on(tmp_path: Path) -> None:
    with serving(tmp_path, transport="port"):
        port = int((tmp_path / "daemon.port").read_text(encoding="ascii").split()[0])
        listed = []
        for opening in (b"KMEM1 search 0\n", endpoint.GREETING + b"0" * 32 + b"\n" + b"0" * 64 + b"\nKMEM1 search 0\n", b"x" * 500):
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                listed.append(raw(stranger, opening))

    assert not any(b"KMEM1 ok" in answer for answer in listed)


def test_nothing_is_sent_to_a_program_that_has_taken_over_the_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as impostor:
        token = "a" * 64
        (tmp_path / "daemon.port").write_text(f"{impostor.getsockname()[1]} {token}\n", encoding="ascii")
        heard = bytearray()

        def listen() -> None:
            connection, _ = impostor.accept()
            with connection:
                heard.extend(connection.recv(1000))
                connection.sendall(b"f" * 64 + b"\n")
                while piece := connection.recv(1000):
                    heard.extend(piece)

        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(DaemonUnreachable):
            call(tmp_path, "search", b"a private question", PATIENT)
        thread.join()

    assert heard.startswith(endpoint.GREETING)
    assert len(heard) == len(endpoint.GREETING) + endpoint.NONCE_DIGITS + 1


def test_a_daemon_that_takes_too_long_is_given_up_on(tmp_path: Path) -> None:
    go_on = threading.Event()

    def slow(request: Request) -> Reply:
        go_on.wait(PATIENT)
        return Ok()

    with serving(tmp_path, slow):
        with pytest.raises(DaemonSilent, match=r"did not answer within 0\.05 s"):
            call(tmp_path, "search", b"", 0.05)
        go_on.set()


def test_a_request_too_long_for_the_wire_is_not_begun(tmp_path: Path) -> None:
    with pytest.raises(KiteError, match="too much for one request"):
        call(tmp_path, "import", bytes(endpoint.LONGEST_REQUEST + 1), PATIENT)


@needs_unix
@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\n", b"KMEM1 ok 5\nabc", b"KMEM1 ok 3\nabcd", b"KMEM1 what 0\n", b"KMEM1 error 2\n{}"]
)
def test_an_answer_that_is_invalid_is_distinguished_from_no_daemon_at_all(tmp_path: Path, answer: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(paths.socket_path(str(tmp_path)))
        other.listen(1)

        def reply() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(DaemonSilent):
            call(tmp_path, "search", b"", PATIENT)
        thread.join()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts wake-ups in /proc")
def test_with_no_one_calling_no_thread_wakes(tmp_path: Path) -> None:
    def wakes() -> dict[str, str]:
        ours = (str(thread.native_id) for thread in threading.enumerate() if thread.name.startswith("kmem-"))
        return {task: Path(f"/proc/self/task/{task}/schedstat").read_text(encoding="ascii").split()[2] for task in ours}

    with serving(tmp_path):
        call(tmp_path, "search", b"", PATIENT)
        before = settled(wakes)
        threading.Event().wait(1.0)

        assert wakes() == before


def settled(look: Callable[[], dict[str, str]]) -> dict[str, str]:
    """The threads need an instant to fall asleep again after an answer."""
    seen = look()
    while True:
        threading.Event().wait(0.2)
        if (now := look()) == seen:
            return seen
        seen = now


@needs_unix
def test_a_process_out_of_descriptors_reports_it_and_goes_on_when_it_has_some(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reports = threading.Semaphore(0)
    reported: list[BaseException] = []

    def report(error: BaseException) -> None:
        reported.append(error)
        reports.release()

    with Server(tmp_path, echo, report=report, limits=LIMITS), socket.socket(socket.AF_UNIX) as client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, hard))
        try:
            client.connect(paths.socket_path(str(tmp_path)))
            was_reported = reports.acquire(timeout=PATIENT)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        reply = raw(client, b"KMEM1 search 0\n")
        threading.Event().wait(0.6)  # past the pause that it makes
        later = call(tmp_path, "search", b"", PATIENT)

    assert was_reported
    assert later == b"search|"
    assert isinstance(reported[0], OSError)
    assert reply == b"KMEM1 ok 7\nsearch|"


def test_a_reception_that_a_bug_ends_says_so(tmp_path: Path) -> None:
    bug = ZeroDivisionError("oops")
    lost = threading.Event()
    reported: list[BaseException] = []

    def broken(connection: socket.socket, request: Request) -> None:
        connection.close()
        raise bug

    reception = Acceptor(listen(tmp_path), LIMITS, broken, reported.append, lost=lost.set)
    watching = threading.Thread(target=reception.watch)
    watching.start()

    reply = raw(connection_to(tmp_path), b"KMEM1 search 0\n")
    watching.join(PATIENT)

    assert reply == b""
    assert lost.is_set()
    assert reported == [bug]


def test_the_wire_for_commands_is_json_as_it_is(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return Ok(body=json.dumps({"asked": json.loads(request.body)}).encode())

    with serving(tmp_path, answer):
        content = json.loads(call(tmp_path, "search", json.dumps({"query": "tea"}).encode(), PATIENT))

    assert content == {"asked": {"query": "tea"}}
