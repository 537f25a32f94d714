"""Whatever happens around it, the hook ends with 0, in time, and says nothing it was not asked to say."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kite_memory import hook_client, paths
from kite_memory.agents.claude_code import real_interpreter
from kite_memory.daemon.protocol import Failure, HeldReply, Ok, Reply, Request
from kite_memory.daemon.server import Server

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="these talk to it over unix sockets")

PACKAGE_FOLDER = str(Path(hook_client.__file__).parent.parent)
FAST = (real_interpreter(), "-I", "-S", hook_client.__file__)
CONSOLE_SCRIPT = (sys.executable, "-c", "from kite_memory.hook_client import main; main()")
INPUT = b'{"hook_event_name": "UserPromptSubmit", "prompt": "which port?"}'
BLOCK = "<vault-context>\nport 5544 · ünïcode\n</vault-context>\n".encode()
HANGS = 30.0
"""Far beyond any deadline: only a hook that hangs takes this long."""

IN_TIME_FOR_SURE = "20000"


class Ran:
    def __init__(self, process: "subprocess.CompletedProcess[bytes]") -> None:
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr

    @property
    def silent(self) -> bool:
        return (self.code, self.out, self.err) == (0, b"", b"")


NOTHING_MORE: Mapping[str, str] = {}


def run(
    home: Path,
    *arguments: str,
    given: bytes = INPUT,
    how: tuple[str, ...] = FAST,
    deadline_ms: str = "",
    more: Mapping[str, str] = NOTHING_MORE,
) -> Ran:
    environment = {**os.environ, "KMEM_HOME": str(home), "KMEM_HOOK_DEADLINE_MS": deadline_ms, "PYTHONPATH": PACKAGE_FOLDER, **more}
    return Ran(subprocess.run([*how, *arguments], input=given, capture_output=True, env=environment, timeout=HANGS, check=False))


def state_of(home: Path) -> Path:
    (home / "state").mkdir(parents=True, exist_ok=True)
    (home / "state").chmod(0o700)
    return home / "state"


def tell_block(request: Request) -> Reply:
    return Ok(body=BLOCK)


@contextmanager
def daemon(home: Path, handle: Callable[[Request], Reply] = tell_block) -> Iterator[None]:
    with Server(state_of(home), handle, report=print):
        yield


@contextmanager
def impostor(home: Path, behave: Callable[[socket.socket], None]) -> Iterator[None]:
    """Something that accepts at the daemon's address, once, and behaves as it likes."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(paths.socket_path(str(state_of(home))))
        listener.listen(1)

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    behave(connection)
                except OSError:
                    pass  # the hook has left

        thread = threading.Thread(target=accept)
        thread.start()
        yield
        thread.join()


def until_it_leaves(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


@pytest.mark.parametrize("how", [FAST, CONSOLE_SCRIPT])
def test_what_the_daemon_says_is_printed_to_the_byte(tmp_path: Path, how: tuple[str, ...]) -> None:
    asked: list[Request] = []

    def handle(request: Request) -> Reply:
        asked.append(request)
        return tell_block(request)

    with daemon(tmp_path, handle):
        ran = run(tmp_path, how=how, deadline_ms=IN_TIME_FOR_SURE)

    assert (ran.code, ran.out, ran.err) == (0, BLOCK, b"")
    assert asked == [Request(op="hook", body=INPUT)]


def test_what_was_printed_is_acknowledged_and_what_came_too_late_is_not(tmp_path: Path) -> None:
    noted: list[str] = []
    ended = threading.Semaphore(0)
    go_on = threading.Event()

    def note(what: str) -> None:
        noted.append(what)
        ended.release()

    def handle(request: Request) -> HeldReply:
        assert request.body == INPUT or go_on.wait(HANGS)
        return HeldReply(reply=Ok(body=BLOCK), arrived=lambda: note("arrived"), lost=lambda: note("lost"))

    with Server(state_of(tmp_path), handle, report=print):
        assert run(tmp_path, deadline_ms=IN_TIME_FOR_SURE).out == BLOCK
        assert ended.acquire(timeout=HANGS)
        assert run(tmp_path, given=b"slow", deadline_ms="300").silent
        go_on.set()
        assert ended.acquire(timeout=HANGS)

    assert noted == ["arrived", "lost"]


def test_it_works_where_there_is_only_a_port(tmp_path: Path) -> None:
    with Server(state_of(tmp_path), tell_block, report=print, transport="port"):
        ran = run(tmp_path, deadline_ms=IN_TIME_FOR_SURE)

    assert (ran.code, ran.out, ran.err) == (0, BLOCK, b"")


@pytest.mark.parametrize(
    ("arguments", "op"),
    [
        (("--agent", "codex"), "hook:codex"),
        (("--agent", "gemini-cli"), "hook:gemini-cli"),
        *((other, "hook") for other in [(), ("--agent",), ("--agent", "../x\n"), ("--agent", ""), ("--what", "codex"), ("x",) * 9]),
    ],
)
def test_the_agent_it_runs_for_is_passed_on(tmp_path: Path, arguments: tuple[str, ...], op: str) -> None:
    def handle(request: Request) -> Reply:
        return Ok(body=request.op.encode())

    with daemon(tmp_path, handle):
        assert run(tmp_path, *arguments, deadline_ms=IN_TIME_FOR_SURE).out == op.encode()


def test_it_loads_nothing_that_takes_time() -> None:
    """Each of these would cost more than all the rest."""
    slow = ["argparse", "collections", "dataclasses", "enum", "functools", "json", "pathlib", "re", "socket", "typing", "site"]
    look = f"import sys; sys.argv = ['x']; sys.path.append({PACKAGE_FOLDER!r})\n"
    look += "import os; os._exit = lambda code: None\nfrom kite_memory.hook_client import main\n"
    look += "try: main()\nexcept OSError: pass\n"
    look += f"print([name for name in {slow} if name in sys.modules], 'kite_memory.endpoint' in sys.modules)"

    result = subprocess.run(
        [real_interpreter(), "-I", "-S", "-c", look], input=INPUT, capture_output=True, env={"KMEM_HOME": "/nowhere"}, check=True
    )

    assert result.stdout == b"[] True\n"


@pytest.mark.parametrize("how", [FAST, CONSOLE_SCRIPT])
def test_without_a_daemon_it_is_silent(tmp_path: Path, how: tuple[str, ...]) -> None:
    assert run(tmp_path, how=how).silent


def test_a_stale_socket_is_silence(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(paths.socket_path(str(state_of(tmp_path))))

    assert run(tmp_path, deadline_ms=IN_TIME_FOR_SURE).silent


def test_a_stale_port_is_silence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as short_lived:
        port = short_lived.getsockname()[1]
    (state_of(tmp_path) / "daemon.port").write_text(f"{port} {'0' * 64}\n", encoding="ascii")

    assert run(tmp_path, deadline_ms=IN_TIME_FOR_SURE).silent


@pytest.mark.parametrize("content", [b"", b"x", b"99999999 00", b"80 zz", b"\xff\x00" * 200])
def test_a_damaged_port_file_is_silence(tmp_path: Path, content: bytes) -> None:
    (state_of(tmp_path) / "daemon.port").write_bytes(content)

    assert run(tmp_path, deadline_ms=IN_TIME_FOR_SURE).silent


def test_a_server_that_accepts_and_never_answers_is_left_alone(tmp_path: Path) -> None:
    with impostor(tmp_path, until_it_leaves):
        assert run(tmp_path).silent


def test_a_server_that_does_not_even_read_is_left_alone(tmp_path: Path) -> None:
    go_on = threading.Event()

    def do_nothing(connection: socket.socket) -> None:
        go_on.wait(HANGS)

    with impostor(tmp_path, do_nothing):
        ran = run(tmp_path, given=b"x" * (3 << 20))
        go_on.set()

    assert ran.silent


def test_a_server_that_drips_is_left_at_the_deadline(tmp_path: Path) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"KMEM1 ok 60000\n")
        while True:
            connection.sendall(b"x")
            threading.Event().wait(0.02)

    with impostor(tmp_path, drip):
        assert run(tmp_path).silent


def test_an_answer_after_the_deadline_is_not_printed(tmp_path: Path) -> None:
    go_on = threading.Event()

    def late(request: Request) -> Reply:
        go_on.wait(HANGS)
        return Ok(body=BLOCK)

    with daemon(tmp_path, late):
        ran = run(tmp_path, deadline_ms="50")
        go_on.set()

    assert ran.silent


def test_where_the_daemon_may_think_longer_the_hook_waits_longer(tmp_path: Path) -> None:
    patience = state_of(tmp_path) / "daemon.patience"
    patience.write_text("20000\n", encoding="ascii")
    answered = threading.Event()

    def late(request: Request) -> Reply:
        answered.wait(1.0)  # beyond the usual deadline
        return Ok(body=BLOCK)

    with daemon(tmp_path, late):
        patient = run(tmp_path)
        reported_otherwise = run(tmp_path, deadline_ms="50")
        patience.unlink()
        usual = run(tmp_path)
        answered.set()

    assert patient.out == BLOCK
    assert reported_otherwise.silent
    assert usual.silent


@pytest.mark.parametrize("value", [b"", b"soon", b"-5", b"\xff", b"1e3", b"9" * 100])
def test_a_patience_that_makes_no_sense_is_no_reason_to_fail(tmp_path: Path, value: bytes) -> None:
    (state_of(tmp_path) / "daemon.patience").write_bytes(value)

    with daemon(tmp_path):
        ran = run(tmp_path, more={"KMEM_HOOK_DEADLINE_MS": ""})

    assert ran.code == 0 and ran.err == b""


def test_a_queue_that_is_full_is_silence(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(paths.socket_path(str(state_of(tmp_path))))
        hung.listen(0)
        waiting: list[socket.socket] = []
        try:
            while True:
                client = socket.socket(socket.AF_UNIX)
                waiting.append(client)
                client.setblocking(False)
                client.connect(paths.socket_path(str(state_of(tmp_path))))
        except BlockingIOError:
            pass

        ran = run(tmp_path)
        for client in waiting:
            client.close()

    assert ran.silent


SERVE = """
import sys; from pathlib import Path
from kite_memory.daemon.protocol import Ok
from kite_memory.daemon.server import Server
with Server(Path(sys.argv[1]), lambda request: Ok(body=b'block'), report=print):
    print('up', flush=True); sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP here")
def test_a_stopped_daemon_is_left_alone_and_a_killed_one_too(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVE, str(state_of(tmp_path))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        alive = run(tmp_path, deadline_ms=IN_TIME_FOR_SURE)
        process.send_signal(signal.SIGSTOP)
        stopped = run(tmp_path)
        process.kill()
    killed = run(tmp_path)

    assert alive.out == b"block"
    assert stopped.silent
    assert killed.silent


WRONG_REPLIES = {
    "empty": b"",
    "cut in the head": b"KMEM1 ok",
    "cut in the body": b"KMEM1 ok 500\n<vault-context>\nhalf",
    "too much": b"KMEM1 ok 3\nabcd",
    "another protocol": b"HTTP/1.1 200 OK\r\n\r\n<vault-context>",
    "a newer version": b"KMEM2 ok 3\nabc",
    "no length": b"KMEM1 ok\nabc",
    "a negative length": b"KMEM1 ok -3\nabc",
    "an absurd length": b"KMEM1 ok 99999999999999999999\nabc",
    "noise": bytes(range(256)) * 64,
    "an endless head": b"KMEM1 " + b"o" * 100_000,
    "an error": b"KMEM1 error 2\n{}",
    "an unknown kind": b"KMEM1 yes 3\nabc",
    "too long": b"KMEM1 ok 70000\n" + b"x" * 70_000,
}


@pytest.mark.parametrize("reply", WRONG_REPLIES.values(), ids=WRONG_REPLIES.keys())
def test_a_reply_that_is_not_whole_and_well_framed_is_silence(tmp_path: Path, reply: bytes) -> None:
    def behave(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(reply)

    with impostor(tmp_path, behave):
        assert run(tmp_path, deadline_ms=IN_TIME_FOR_SURE).silent


def test_an_error_of_the_daemon_is_silence(tmp_path: Path) -> None:
    with daemon(tmp_path, lambda request: Failure(message="the index is empty")):
        assert run(tmp_path, deadline_ms=IN_TIME_FOR_SURE).silent


def test_an_empty_answer_prints_nothing(tmp_path: Path) -> None:
    with daemon(tmp_path, lambda request: Ok()):
        assert run(tmp_path, deadline_ms=IN_TIME_FOR_SURE).silent


def test_what_is_over_the_limit_is_read_and_dropped(tmp_path: Path) -> None:
    def count(request: Request) -> Reply:
        return Ok(body=str(len(request.body)).encode())

    with daemon(tmp_path, count):
        ran = run(tmp_path, given=b"x" * (9 << 20), deadline_ms=IN_TIME_FOR_SURE)

    assert ran.out == str(4 << 20).encode()


def in_a_shell(home: Path, line: str, more: Mapping[str, str] = NOTHING_MORE) -> Ran:
    return run(home, "-c", line, *FAST, how=("sh",), deadline_ms=IN_TIME_FOR_SURE, more=more)


@pytest.mark.parametrize("line", ['"$0" "$@" <&-', '"$0" "$@" >&-', '"$0" "$@" 2>&-', '"$0" "$@" <&- >&- 2>&-'])
def test_closed_pipes_are_no_reason_to_fail(tmp_path: Path, line: str) -> None:
    with daemon(tmp_path):
        ran = in_a_shell(tmp_path, line)

    assert (ran.code, ran.err) == (0, b"")
    assert ran.out == (BLOCK if line.endswith('"$@" 2>&-') else b"")


def test_a_reader_that_has_gone_is_no_reason_to_fail(tmp_path: Path) -> None:
    with daemon(tmp_path):
        ran = in_a_shell(tmp_path, '{ "$0" "$@"; echo "code $?" >&2; } | true')

    assert ran.err == b"code 0\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout_is_no_reason_to_fail(tmp_path: Path) -> None:
    with daemon(tmp_path):
        assert in_a_shell(tmp_path, '"$0" "$@" > /dev/full').silent


def test_a_stdin_that_stays_open_is_left_at_the_deadline(tmp_path: Path) -> None:
    environment = {**os.environ, "KMEM_HOME": str(tmp_path)}
    with daemon(tmp_path), subprocess.Popen(FAST, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        process.stdin.write(INPUT)
        process.stdin.flush()

        assert process.wait(HANGS) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""


@pytest.mark.parametrize("code", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_prints_nothing(tmp_path: Path, code: signal.Signals) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def wait(request: Request) -> Reply:
        arrived.set()
        go_on.wait(HANGS)
        return Ok()

    environment = {**os.environ, "KMEM_HOME": str(tmp_path), "KMEM_HOOK_DEADLINE_MS": IN_TIME_FOR_SURE}
    pipe = subprocess.PIPE
    with daemon(tmp_path, wait), subprocess.Popen(FAST, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        process.stdin.write(INPUT)
        process.stdin.close()
        process.stdin = None
        assert arrived.wait(HANGS)
        process.send_signal(code)
        out, err = process.communicate(timeout=HANGS)
        go_on.set()

    assert (out, err) == (b"", b"")
    assert process.returncode == (0 if code is signal.SIGINT else -signal.SIGTERM)


def test_our_own_extractors_sessions_are_given_nothing(tmp_path: Path) -> None:
    asked: list[Request] = []

    def handle(request: Request) -> Reply:
        asked.append(request)
        return Ok(body=BLOCK)

    with daemon(tmp_path, handle):
        assert run(tmp_path, deadline_ms=IN_TIME_FOR_SURE, more={"KITE_MEMORY_EXTRACTOR": "1"}).silent

    assert asked == []


def test_a_working_folder_that_is_gone_is_no_matter(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with daemon(tmp_path):
        ran = in_a_shell(tmp_path, f'cd "{gone}" && rmdir "{gone}" && "$0" "$@"')

    assert (ran.code, ran.out) == (0, BLOCK)


def test_a_working_folder_that_is_gone_and_a_home_relative_to_it_is_silence(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()

    assert in_a_shell(tmp_path, f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && KMEM_HOME=here "$0" "$@"').silent


def test_a_module_of_the_same_name_in_the_working_folder_is_not_loaded(tmp_path: Path) -> None:
    for name in ("os", "_socket", "kite_memory", "time"):
        (tmp_path / f"{name}.py").write_text("print('taken over')", encoding="ascii")
    with daemon(tmp_path):
        ran = in_a_shell(tmp_path, f'cd "{tmp_path}" && "$0" "$@"', more={"PYTHONPATH": str(tmp_path)})

    assert ran.out == BLOCK


def test_a_package_beside_it_cannot_stand_in_for_the_standard_library(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "kite_memory").mkdir(parents=True)
    for name in ("__init__", "hook_client", "endpoint", "paths"):
        shutil.copy(Path(hook_client.__file__).with_name(f"{name}.py"), site / "kite_memory")
    for name in ("_socket", "_blake2", "stat"):
        (site / f"{name}.py").write_text("print('taken over')", encoding="ascii")
    fast = (real_interpreter(), "-I", "-S", str(site / "kite_memory" / "hook_client.py"))

    with daemon(tmp_path):
        assert run(tmp_path, how=fast, deadline_ms=IN_TIME_FOR_SURE).out == BLOCK


def test_a_home_too_long_for_a_socket_still_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ("d" * 120)
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="k") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        with daemon(home):
            ran = run(home, deadline_ms=IN_TIME_FOR_SURE)

    assert ran.out == BLOCK


@pytest.mark.parametrize("home", ["/dev/null", "/proc/nowhere", "~nobody", "\udcff", "x" * 5000])
def test_a_home_that_is_no_place_is_silence(home: str) -> None:
    assert run(Path(home)).silent


@pytest.mark.parametrize("setting", ["0", "-5", "soon", "1e3", "99999999999999999999", "٣"])
def test_a_deadline_that_makes_no_sense_is_no_reason_to_fail(tmp_path: Path, setting: str) -> None:
    assert run(tmp_path, deadline_ms=setting).silent


def test_without_its_package_it_is_silent(tmp_path: Path) -> None:
    alone = tmp_path / "kite_memory" / "hook_client.py"
    alone.parent.mkdir()
    shutil.copy(hook_client.__file__, alone)

    assert run(tmp_path, how=(real_interpreter(), "-I", "-S", str(alone))).silent
