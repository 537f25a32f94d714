"""What only shows in a real process: signals, terminals, broken pipes, locks, permissions."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kite_memory import paths
from kite_memory.cli.everyday import ask_to_stop, leave_transcripts
from kite_memory.daemon import protocol
from kite_memory.daemon.server import Server
from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine, Ran, eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells, signals and terminals of unix")

if sys.platform != "win32":
    from tests.cli.terminal import at_a_terminal


@contextmanager
def running(machine: Machine, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that stays; killed in the end if it has not ended by itself."""
    with subprocess.Popen(
        [sys.executable, "-m", "kite_memory", *arguments],
        env=machine.env(),
        cwd=machine.home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def here(machine: Machine, *arguments: str) -> Ran:
    """For what is only prepared or looked at."""
    return in_this_process(machine, list(arguments), cwd=machine.home)


def listens(machine: Machine) -> bool:
    return (machine.state / "daemon.sock").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("arguments", [("daemon",), ("up", "--foreground", "--no-hooks")])
def test_a_signal_ends_the_daemon_well(machine: Machine, arguments: Sequence[str], number: signal.Signals) -> None:
    with running(machine, *arguments) as daemon:
        assert eventually(lambda: listens(machine))

        daemon.send_signal(number)
        _, err = daemon.communicate(timeout=30)

    assert daemon.returncode == 0, err
    assert "Traceback" not in err
    assert not listens(machine)


ASKS = "Which database does the job queue use, and why not SQLite?"
ASKED = {
    "cursor": {
        "hook_event_name": "beforeSubmitPrompt",
        "conversation_id": "c1",
        "cursor_version": "3.20.17",
        "workspace_roots": ["/"],
        "prompt": ASKS,
    },
    "cline": {
        "hookName": "UserPromptSubmit",
        "clineVersion": "4.1.20",
        "taskId": "t1",
        "workspaceRoots": ["/"],
        "userPromptSubmit": {"prompt": ASKS, "attachments": []},
    },
}


@pytest.mark.parametrize(
    ("agent", "file", "field"),
    [
        ("cursor", ".cursor/hooks.json", "additional_context"),
        ("cline", "Documents/Cline/Hooks/UserPromptSubmit", "contextModification"),
    ],
)
def test_a_hook_answers_in_its_agents_form_and_is_gone_once_removed(machine: Machine, agent: str, file: str, field: str) -> None:
    settings = machine.home / file
    (machine.home / file).parent.mkdir(parents=True)
    assert machine.kmem("up", "--no-hooks").code == 0
    here(
        machine, "remember", "The job queue uses PostgreSQL, not SQLite, because it has row locks", "--kind", "decision", "--global"
    )
    assert here(machine, "hooks", "install", "--agent", agent, "--yes").code == 0
    (hook,) = {hook["command"] for each in json.loads(here(machine, "hooks", "status", "--json").out) for hook in each["hooks"]}
    command = str(settings) if agent == "cline" else hook

    printed = machine.shell(f"echo '{json.dumps(ASKED[agent])}' | {command}", extra={"KMEM_HOOK_DEADLINE_MS": "60000"}).out
    removed = here(machine, "hooks", "uninstall", "--agent", agent, "--yes")

    assert "row locks" in json.loads(printed)[field]
    assert removed.code == 0
    assert not settings.exists()


OLD_CLAUDE = """#!/bin/sh
echo "error: unknown option '--json-schema'" >&2
exit 1
"""


def test_a_daemon_whose_address_was_removed_is_found_again(machine: Machine) -> None:
    machine.configure("[daemon]\ncompare_seconds = 1\n")
    assert machine.kmem("up", "--no-hooks").code == 0
    Path(paths.socket_path(str(machine.state))).unlink()

    assert eventually(lambda: machine.kmem("status", "--json").json()["daemon"]["running"])
    assert machine.kmem("down").code == 0


def test_doctor_shows_what_a_running_daemon_waits_for(machine: Machine) -> None:
    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")
    claude = machine.home / "bin" / "claude"
    claude.parent.mkdir(exist_ok=True)
    claude.write_text(OLD_CLAUDE)
    claude.chmod(0o755)
    machine.configure('[daemon]\nidle_seconds = 0.2\n[extractor]\nname = "claude-cli"\n')
    machine.environment = {"KMEM_EXTRACTOR": "claude-cli"}

    with running(machine, "daemon"):
        assert eventually(lambda: listens(machine))
        assert eventually(lambda: here(machine, "status", "--json").json()["extractor"]["waiting_for"] != "", seconds=60.0)
        examined, result = here(machine, "doctor"), here(machine, "status")

    assert examined.code == 3
    assert "problem  extractor: `claude` is too old" in examined.out
    assert "\n           update Claude Code\n" in result.out


def test_a_second_daemon_is_refused_and_the_first_goes_on(machine: Machine) -> None:
    with running(machine, "daemon") as first:
        assert eventually(lambda: listens(machine))

        second = machine.kmem("daemon")

        assert second.code == 1
        assert second.err.startswith(f"error: a daemon is already running (pid {first.pid})\nhint: ")
        assert here(machine, "status", "--json").json()["daemon"]["pid"] == first.pid


def test_what_is_asked_of_the_daemon_wrongly_is_refused_and_it_goes_on(machine: Machine) -> None:
    with running(machine, "daemon") as daemon:
        assert eventually(lambda: listens(machine))

        for op, body in [
            *(("search", body) for body in (b"nonsense", b"[]", b"7", b'{"query": 7}', b"{}", b'{"query": "x", "colour": "red"}')),
            *(("dance", body) for body in (b"", b"{}")),
            ("remember", b'{"text": "x", "tags": [null]}'),
            ("hook:claude-code", b"\xff\xff"),
        ]:
            try:
                answer = protocol.call(machine.state, op, body, 10)
            except protocol.DaemonRefused as refused:
                assert refused.exit_code == 2, (op, body, refused)
            else:
                assert (op, answer) == ("hook:claude-code", b"")

        assert daemon.poll() is None
        assert "could not answer" not in (machine.state / "logs" / "daemon.log").read_text()


def test_a_daemon_that_was_killed_leaves_nothing_in_the_way(machine: Machine) -> None:
    with running(machine, "daemon") as daemon:
        assert eventually(lambda: listens(machine))
        daemon.kill()
        daemon.wait()
        assert listens(machine)

    assert "not running" in here(machine, "status").out
    assert machine.kmem("up", "--no-hooks").code == 0


def test_a_changed_setting_is_in_force_at_once(machine: Machine) -> None:
    assert machine.kmem("up", "--no-hooks").code == 0
    before = (machine.state / "daemon.lock").read_text()

    changed = machine.kmem("config", "set", "recall.dial", "quiet")

    assert "the daemon was restarted with it" in changed.err
    assert (machine.state / "daemon.lock").read_text() != before
    assert "running" in machine.kmem("status").out


def test_up_restarts_a_daemon_of_another_version(machine: Machine) -> None:
    newer = {"PYTHONPATH": str(with_version(machine.home / "newer", "999.0"))}
    with running(machine, "daemon") as old:
        assert eventually(lambda: listens(machine))
        machine.environment = newer
        output = machine.kmem("status").out
        up = machine.kmem("up", "--no-hooks")

        assert old.wait(20) == 0
        assert "is of version 0" in output
        assert "`kmem up` restarts it" in output
        assert "restarting it" in up.err
        assert "restarts it" not in machine.kmem("status").out
        assert "restarting it" not in machine.kmem("up", "--no-hooks").err
    machine.kmem("down")


def test_a_daemon_ends_soon_although_a_store_does_not_close(machine: Machine) -> None:
    (machine.home / "stuck").mkdir()
    (machine.home / "stuck" / "sitecustomize.py").write_text(
        "import time\nfrom kite_memory.timeline.store import Timeline\nTimeline.close = lambda self: time.sleep(600)\n"
    )
    machine.environment = {"PYTHONPATH": str(machine.home / "stuck")}
    with running(machine, "daemon") as daemon:
        assert eventually(lambda: listens(machine))
        daemon.terminate()

        assert daemon.wait(60) == 0

    assert "ended before all work had" in (machine.state / "logs" / "daemon.log").read_text()
    machine.environment = {}
    assert machine.kmem("up", "--no-hooks").code == 0


def test_a_daemon_too_busy_to_answer_is_asked_again_to_stop(tmp_path: Path) -> None:
    asked: list[str] = []
    go_on = threading.Event()

    def handle(request: protocol.Request) -> protocol.Reply:
        asked.append(request.name)
        if len(asked) == 1:
            go_on.wait(60)
        return protocol.Ok()

    with Server(tmp_path, handle, report=lambda error: None, lost=lambda: None, urgent=frozenset({"stop"})):
        ask_to_stop(tmp_path, time.monotonic() + 60, patience=0.5)
        go_on.set()

    assert asked == ["stop", "stop"]


def with_version(folder: Path, version: str) -> Path:
    """What makes this code, wherever it is imported, call itself another version."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"import kite_memory\nkite_memory.__version__ = {version!r}\n")
    return folder


def test_a_state_folder_too_deep_for_a_socket_works_all_the_same(machine: Machine) -> None:
    deep = machine.home / ("very-deep-" * 6) / ("even-deeper-" * 6)
    machine.home.chmod(0o700)
    machine.environment = {"KMEM_HOME": str(deep), "XDG_RUNTIME_DIR": str(machine.home)}

    up = machine.kmem("up", "--no-hooks")
    status = here(machine, "status", "--json").json()
    here(machine, "remember", "The cellar key hangs behind the third apple crate on the left")
    answer = machine.hook({"hook_event_name": "UserPromptSubmit", "prompt": "where does the key of the cellar hang, which crate?"})
    down = here(machine, "down")

    assert (up.code, down.code) == (0, 0), up.err
    assert status["daemon"]["running"]
    assert "behind the third apple crate" in answer.out


def test_a_person_is_asked_before_settings_change(machine: Machine) -> None:
    settings = machine.home / ".claude" / "settings.json"

    refused = at_a_terminal(machine, ["hooks", "install"], typed=[("[y/N]", b"n\n")])
    after_no = settings.exists()
    agreed = at_a_terminal(machine, ["hooks", "install"], typed=[("[y/N]", b"y\n")])

    assert refused.code == 1
    assert refused.screen.endswith("error: nothing was changed\n")
    assert not after_no
    assert agreed.code == 0
    assert "UserPromptSubmit" in settings.read_text()


def test_up_asks_a_person_and_goes_on_without_the_hooks(machine: Machine) -> None:
    (machine.home / ".claude").mkdir(exist_ok=True)
    up = at_a_terminal(machine, ["up"], typed=[("[Y/n", b"n\n")])

    assert up.code == 0
    assert "settings were left alone" in up.screen
    assert listens(machine)
    assert not (machine.home / ".claude" / "settings.json").exists()


def test_the_status_keeps_to_one_line_a_note_where_a_person_watches(machine: Machine) -> None:
    title = "The staging database is reset every Sunday at six, after the backup of the week has ended and was verified"
    machine.kmem("remember", title)

    piped = machine.kmem("status").out
    seen = at_a_terminal(machine, ["status"]).screen

    assert title in piped
    assert title not in seen
    assert [line for line in seen.splitlines() if line.startswith("last note") and len(line.rstrip()) <= 80]


def test_up_asks_once_who_makes_the_notes_and_remembers_it(machine: Machine) -> None:
    machine.environment = {"ANTHROPIC_API_KEY": "sk-ant-invented", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}

    up = at_a_terminal(machine, ["up", "--no-hooks"], typed=[("Which?", b"1\n")])
    here(machine, "down")
    again = at_a_terminal(machine, ["up", "--no-hooks"])

    assert up.code == again.code == 0
    assert "Anthropic's API" in up.screen
    assert json.loads(here(machine, "config", "show", "--json").out)["extractor"]["name"] == "offline"
    assert "Which?" not in again.screen


def test_a_sweep_is_shown_and_asked_about(machine: Machine) -> None:
    here(machine, "remember", "The hedge is cut in March")
    here(machine, "remember", "The hedge is watered in May")

    no = at_a_terminal(machine, ["forget", "--matching", "hedge"], typed=[("[y/N]", b"\n")])
    kept = len(machine.notes())
    yes = at_a_terminal(machine, ["forget", "--matching", "hedge"], typed=[("[y/N]", b"yes\n")])

    assert "The hedge is cut in March" in no.screen
    assert "Forget these 2 notes? [y/N]" in no.screen
    assert (no.code, kept) == (1, 2)
    assert (yes.code, machine.notes()) == (0, [])


def test_a_bar_is_drawn_where_a_person_watches_and_nowhere_else(machine: Machine) -> None:
    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")

    watched = at_a_terminal(machine, ["backfill"])
    shutil.rmtree(machine.state)
    piped = machine.kmem("backfill")

    assert watched.code == 0
    assert "reading" in watched.screen and watched.coloured
    assert "\x1b" not in piped.out + piped.err
    assert piped.err.splitlines() == [
        piped.err.splitlines()[0],
        "claude-code: 2 sessions, 6 events",
        "3 notes in ~/.kite/memory",
    ]


def test_ctrl_c_ends_a_command_without_a_word(machine: Machine) -> None:
    waiting = at_a_terminal(machine, ["hooks", "install"], typed=[("[y/N]", b"\x03")])

    assert waiting.code == 130
    assert "Traceback" not in waiting.screen


@pytest.mark.parametrize("line", ["kmem status | head -0", "kmem --help | head -1", "kmem verify --json | true"])
def test_a_reader_who_leaves_is_no_error(machine: Machine, line: str) -> None:
    ran = machine.shell(line)

    assert "Traceback" not in ran.err and "BrokenPipe" not in ran.err


@pytest.mark.parametrize("line", ["kmem --help", "kmem show walnut"])
def test_a_reader_who_leaves_does_not_fail_a_script_that_minds_its_pipes(machine: Machine, line: str) -> None:
    machine.kmem("remember", "walnut " + "the walnut tree stands by the gate " * 500)

    ran = machine.shell(f"({line}; echo $? > code) | true; cat code")

    assert ran.out.split() == ["0"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110 - a device, not a file
def test_output_that_cannot_be_written_is_an_error(machine: Machine) -> None:
    ran = machine.shell("kmem status --json > /dev/full")

    assert ran.code == 1
    assert ran.err.startswith("error: No space left on device\nhint: ")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_closed_streams_do_no_harm(machine: Machine, closed: str) -> None:
    ran = machine.shell(f"kmem status {closed}")

    assert ran.code == 0
    assert "Traceback" not in ran.err


def test_bytes_that_are_no_text_are_taken_as_they_are(machine: Machine) -> None:
    remembered = machine.shell(r"""kmem remember "$(printf 'caf\351 opens at nine, the pump at \377 six')" """)
    piped = machine.shell(r"printf 'the \377 gate code is changed in spring' | kmem remember -")
    found = machine.shell(r"""kmem search "$(printf 'caf\351 pump')" --json""")

    assert (remembered.code, piped.code, found.code) == (0, 0, 0), remembered.err + piped.err + found.err
    assert len(found.json()["hits"]) >= 1


def test_a_terminal_of_few_letters_gets_question_marks(machine: Machine) -> None:
    here(machine, "remember", "Über die Straße → 東京 führt kein Weg 🌱", "--key", "weg")

    ran = machine.kmem("search", "Straße", extra={"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"})

    assert ran.code == 0, ran.err
    assert "?ber die Stra?e ? ?? f?hrt kein Weg" in ran.out


def without_privileges() -> list[str]:
    """What to put before a command so that file modes hold for it; root is above them."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root cannot be kept from writing without setpriv")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def test_a_vault_that_cannot_be_written_to_is_read_all_the_same(machine: Machine) -> None:
    prefix = without_privileges()
    here(machine, "remember", "The orchard server runs on port 8123")
    folders = [machine.vault, *(path for path in machine.vault.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)

    def kmem(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*prefix, sys.executable, "-m", "kite_memory", *arguments]
        return subprocess.run(command, env=machine.env(), cwd=machine.home, capture_output=True, text=True, timeout=60)

    found = kmem("search", "orchard")
    remembered = kmem("remember", "The hedge is cut in March")
    forgotten = kmem("forget", "the orchard")
    for folder in folders:
        folder.chmod(0o700)

    assert found.returncode == 0
    assert "port 8123" in found.stdout
    for refused in (remembered, forgotten):
        assert refused.returncode == 1
        assert refused.stderr.startswith("error: ")
        assert "\nhint: " in refused.stderr
        assert "Traceback" not in refused.stderr
    assert len(machine.notes()) == 1


def test_several_searches_at_once_may_all_be_the_first(machine: Machine) -> None:
    here(machine, "remember", "The orchard server runs on port 8123")
    for number in range(30):
        machine.vault.joinpath("topics", f"row-{number}.md").write_text(f"Row {number} of the orchard grows kind {number * 7}.\n")

    command = [sys.executable, "-m", "kite_memory", "search", "row 17 of the orchard", "--limit", "1"]
    searches = [
        subprocess.Popen(command, env=machine.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    outputs = [search.communicate(timeout=60) for search in searches]

    assert [search.returncode for search in searches] == [0, 0, 0], outputs
    assert all("row-17" in out for out, _ in outputs), outputs
    assert here(machine, "verify").code == 0


def test_a_signal_ends_a_server_well(machine: Machine) -> None:
    with running(machine, "serve", "--port", "0") as server:
        assert server.stderr is not None
        listed = [server.stderr.readline() for _ in range(2)]

        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=30)

    assert "listening at" in "".join(listed)
    assert server.returncode == 0, err
    assert err == ""


def test_a_daemon_can_be_stopped_whatever_the_configuration_says(machine: Machine) -> None:
    with running(machine, "daemon") as daemon:
        assert eventually(lambda: listens(machine))
        machine.configure('[recall]\ndial = "loud"\n')

        down = here(machine, "down")

        assert (down.code, down.err) == (0, "the daemon has stopped\n")
        assert daemon.wait(timeout=30) == 0
