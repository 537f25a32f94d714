"""Help: a sentence, an example that works when pasted, and no heavy packages to show it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from kite_memory.cli import main as listing
from kite_memory.cli.everyday import leave_transcripts
from kite_memory.cli.main import app, first_sentence
from tests.cli.commands import every_command
from tests.cli.prepared import prepared_home
from tests.cli.transcript import Player, in_this_process
from tests.e2e.kmem import PROJECT, Machine
from tests.fakes.work import leave_work

COMMANDS = dict(every_command())
HEAVY = {"anthropic", "httpx", "jinja2", "numpy", "pydantic", "rich", "textual", "tomlkit", "voyageai", "watchdog", "yaml"}

NOT_PASTED = {
    "daemon": "stays",
    "serve": "stays",
    "web": "stays",
    "service install": "asks the system's own service manager",
    "service uninstall": "asks the system's own service manager",
    "admin audit": "needs a team's store",
    "admin usage": "needs a team's store",
    "admin undelete": "needs a team's store",
    "admin backup": "needs a team's store",
    "admin restore": "needs a team's store",
    "open": "starts what the desktop has",
}


def example_of(text: str) -> str:
    found = re.search(r"\nExample:\n  (.+)\n\Z", text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize("name", ["", "hooks", "service", "keys", "config", "token", "admin", *COMMANDS])
def test_help_begins_with_a_sentence_and_ends_with_an_example(machine: Machine, name: str) -> None:
    shown = in_this_process(machine, [*name.split(), "--help"], cwd=machine.home)

    assert shown.code == 0
    usage, sentence = shown.out.split("\n\n")[:2]
    assert usage.startswith(f"Usage: kmem {name}".rstrip())
    assert re.match(r"  [A-Z].*\.", sentence, re.DOTALL)
    assert re.search(rf"\bkmem {name}".rstrip(), example_of(shown.out))
    assert max(map(len, shown.out.splitlines())) <= 80


@pytest.fixture(scope="module")
def worked_in() -> Iterator[Callable[[], Machine]]:
    with prepared_home(work) as restored:
        yield restored


def work(machine: Machine) -> None:
    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")
    leave_work(machine.home / ".claude", machine.home / "orchard")
    player = Player(machine)
    player.carry_out("kmem backfill")
    player.carry_out('kmem remember "Postgres over SQLite for the job queue" --kind decision')
    player.carry_out("kmem token create ci")
    (machine.home / "orchard").mkdir()
    (machine.home / "orchard" / ".env").write_text("GATE=zanzibar-7-pepper\n")
    (machine.home / ".claude" / "CLAUDE.md").write_text("## Style\n\nTabs.\n")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NOT_PASTED])
def test_an_example_works_when_pasted(worked_in: Callable[[], Machine], name: str) -> None:
    machine = worked_in()
    machine.environment = {"MY_KEY": "sk-ant-invented-0123456789abcdef"}
    player = Player(machine)
    example = example_of(player.carry_out(f"kmem {name} --help").out)

    ran = player.carry_out(example)

    assert ran.code == 0, f"{example}\n{ran.out}{ran.err}"


def test_every_option_says_what_it_does() -> None:
    silent = [(name, param.name) for name, command in COMMANDS.items() for param in command.params if not param.help]

    assert silent == []


def test_the_first_sentences_of_the_listing_are_short() -> None:
    long = [name for name, command in COMMANDS.items() if len(first_sentence(command.help)) > 80]

    assert long == []


def test_the_listing_says_what_the_commands_say() -> None:
    commands: Any = getattr(typer.main.get_command(app), "commands")  # noqa: B009 - the type of a typer command has none
    real: dict[str, list[tuple[str, str]]] = {}
    for name, command in commands.items():
        real.setdefault(command.rich_help_panel, []).append((name, first_sentence(command.help)))

    assert {heading: [(name, said) for name, _, said in rows] for heading, rows in listing.COMMANDS.items()} == real


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "0"], "Input should be greater than or equal to 1"),
        (["--limit", "201"], "Input should be less than or equal to 200"),
        (["--limit", "some"], "Input should be a valid integer"),
        (["--mode", "other"], "'other' is not one of 'hybrid', 'keyword', 'semantic'"),
    ],
)
def test_what_is_no_plain_value_is_refused_as_before(machine: Machine, words: list[str], said: str) -> None:
    shown = in_this_process(machine, ["search", "plums", *words], cwd=machine.home)

    assert shown.code == 2
    assert said in shown.err


_ASKING = "import sys; from kite_memory.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"


def loaded(machine: Machine, *arguments: str) -> set[str]:
    """The heavy packages that a command takes with it."""
    command = [sys.executable, "-c", _ASKING, *arguments]
    ran = subprocess.run(command, env=machine.env(), cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return HEAVY & set(ran.stderr.splitlines()[-1].split())


def test_help_loads_nothing_heavy(machine: Machine) -> None:
    assert loaded(machine, "--help") == set()


def test_what_the_daemon_answers_loads_nothing_heavy_here(machine: Machine) -> None:
    assert machine.kmem("up", "--no-hooks").code == 0

    light = {"pydantic"}  # typer's own
    assert loaded(machine, "status") <= light
    assert loaded(machine, "search", "anything") <= light


_OPENING = "import sys; from kite_memory.cli.opening import run; run(); print(*sys.modules, file=sys.stderr)"


def test_status_of_a_running_daemon_takes_not_even_the_command_line(machine: Machine) -> None:
    assert machine.kmem("up", "--no-hooks").code == 0

    for options, begins in (([], "daemon     running, pid "), (["--json"], '{\n  "daemon": {\n    "running": true,')):
        command = [sys.executable, "-c", _OPENING, "status", *options]
        ran = subprocess.run(command, env=machine.env(), cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True)
        assert not {"typer", "kite_memory.redaction", *HEAVY} & set(ran.stderr.splitlines()[-1].split())
        assert ran.stdout.startswith(begins)


SLOW = HEAVY - {"yaml"} | {"kite_memory.distill.offline", "kite_memory.wiring.services", "typer._adapters"}
"""What none of the commands below may load without a daemon, but numpy where vectors are compared."""
_LOADED = """
import atexit, sys
from kite_memory.cli.opening import run
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
try:
    run()
except SystemExit:
    pass
"""


_WITHOUT_A_DAEMON: dict[str, set[str]] = {
    "search plums": {"numpy"},
    "show prune": set(),
    "why": set(),
    "status": set(),
    "status --json": set(),
    "backfill": set(),
    "backfill --no-distill": set(),
    "timeline": set(),
}


def test_without_a_daemon_a_command_loads_what_it_needs(machine: Machine) -> None:
    leave_work(machine.home / ".claude", machine.home / "orchard")
    machine.kmem("remember", "Prune the plums in summer, never in frost")
    set_old(machine.vault)
    too_much: dict[str, set[str]] = {}

    for command, besides in _WITHOUT_A_DAEMON.items():
        machine.kmem(*command.split())  # takes in what is new
        alone = [sys.executable, "-c", _LOADED, *command.split()]
        ran = subprocess.run(alone, env=machine.env(), cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True)
        names = set(ran.stderr.splitlines()[-1].split())
        assert "kite_memory.cli.opening" in names
        too_much[command] = (SLOW - besides) & names

    assert {command: names for command, names in too_much.items() if names} == {}


@pytest.mark.parametrize(("command", "finds"), [("search quinces", "quinces"), ("why plums", "plums")])
def test_a_note_that_its_owner_changed_is_read_without_all_services(machine: Machine, command: str, finds: str) -> None:
    leave_work(machine.home / ".claude", machine.home / "orchard")
    machine.kmem("remember", "Prune the plums in summer, never in frost")
    machine.kmem(*command.split())
    (note,) = machine.vault.rglob("prune-the-plums*.md")
    note.write_text(note.read_text() + "\nThe quinces are cut in March.\n")

    alone = [sys.executable, "-c", _LOADED, *command.split()]
    ran = subprocess.run(alone, env=machine.env(), cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True)

    assert "kite_memory.wiring.services" not in ran.stderr.splitlines()[-1].split()
    assert finds in ran.stdout + ran.stderr


_FIRST_PAGE = """
import sys
from kite_memory import config
from kite_memory.cli.backend import LocalMemory
memory = LocalMemory(config.load(), makes_vault=False)
memory.prepare()
print(len(memory.ask("notes", limit=5)["notes"]), memory.ask("status")["notes"]["total"], memory.ask("why", last=5)["prompts"])
print(len(memory.ask("timeline", limit=5)["sessions"]), len(memory.ask("helped", weeks=2)["weeks"]))
print(*sys.modules, file=sys.stderr)
print("indexed", memory.ask("search", query="plums")["hits"][0]["title"])
memory.close()
"""


def test_the_pages_first_view_is_answered_without_all_services(machine: Machine) -> None:
    leave_work(machine.home / ".claude", machine.home / "orchard")
    machine.kmem("remember", "Prune the plums in summer, never in frost")
    set_old(machine.vault)
    kept = machine.kmem("status", "--json")

    alone = [sys.executable, "-c", _FIRST_PAGE]
    ran = subprocess.run(alone, env=machine.env(), cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True)

    assert kept.code == 0
    assert "kite_memory.wiring.services" not in ran.stderr.splitlines()[0].split()
    assert ran.stdout.splitlines() == ["1 1 []", "0 2", "indexed Prune the plums in summer, never in frost"]


def set_old(vault: Path) -> None:
    """Let the notes be older than a file may be that is read once more."""
    for path in vault.rglob("*.md"):
        os.utime(path, (1_772_355_600, 1_772_355_600))


def test_without_arguments_help_is_shown(machine: Machine) -> None:
    bare: Any = in_this_process(machine, [], cwd=machine.home)

    assert bare.code == 0
    assert bare.out == in_this_process(machine, ["--help"], cwd=machine.home).out
