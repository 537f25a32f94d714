"""Help: a sentence, an example that works when pasted, and no heavy packages to show it."""

import re
import subprocess
import sys
from typing import Any

import pytest

from kite_memory.cli.everyday import leave_transcripts
from kite_memory.cli.help import first_sentence
from tests.cli.commands import every_command
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


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NOT_PASTED])
def test_an_example_works_when_pasted(machine: Machine, name: str) -> None:
    machine.environment = {"MY_KEY": "sk-ant-invented-0123456789abcdef"}
    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")
    leave_work(machine.home / ".claude", machine.home / "orchard")
    player = Player(machine)
    player.carry_out("kmem backfill")
    player.carry_out('kmem remember "Postgres over SQLite for the job queue" --kind decision')
    player.carry_out("kmem token create ci")
    (machine.home / "orchard").mkdir()
    (machine.home / "orchard" / ".env").write_text("GATE=zanzibar-7-pepper\n")
    (machine.home / ".claude" / "CLAUDE.md").write_text("## Style\n\nTabs.\n")
    example = example_of(player.carry_out(f"kmem {name} --help").out)

    ran = player.carry_out(example)

    assert ran.code == 0, f"{example}\n{ran.out}{ran.err}"


def test_every_option_says_what_it_does() -> None:
    silent = [(name, param.name) for name, command in COMMANDS.items() for param in command.params if not param.help]

    assert silent == []


def test_the_first_sentences_of_the_listing_are_short() -> None:
    long = [name for name, command in COMMANDS.items() if len(first_sentence(command.help)) > 80]

    assert long == []


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


def test_without_arguments_help_is_shown(machine: Machine) -> None:
    bare: Any = in_this_process(machine, [], cwd=machine.home)

    assert bare.code == 0
    assert bare.out == in_this_process(machine, ["--help"], cwd=machine.home).out
