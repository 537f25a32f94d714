"""`kmem help`, `kmem completion` and groups without a command."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kite_memory.cli.main import SHELLS
from tests.cli.commands import every_command
from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine

COMMANDS = [name for name, _ in every_command()]


@pytest.mark.parametrize("group", ["hooks", "service", "keys", "config", "token", "extensions", "admin"])
def test_a_group_without_a_command_shows_its_help(machine: Machine, group: str) -> None:
    alone = in_this_process(machine, [group], cwd=machine.home)
    helped = in_this_process(machine, [group, "--help"], cwd=machine.home)

    assert (alone.code, alone.out) == (0, helped.out)


@pytest.mark.parametrize("name", ["", "search", "config set"])
def test_help_is_what_the_option_prints(machine: Machine, name: str) -> None:
    asked = in_this_process(machine, ["help", *name.split()], cwd=machine.home)

    assert asked.out == in_this_process(machine, [*name.split(), "--help"], cwd=machine.home).out


def test_help_about_what_is_no_command_says_so(machine: Machine) -> None:
    asked = in_this_process(machine, ["help", "config", "nonsense"], cwd=machine.home)

    assert (asked.code, asked.err.splitlines()[0]) == (2, "error: there is no command 'config nonsense'")


def test_the_manual_page_has_every_command(machine: Machine) -> None:
    page = in_this_process(machine, ["help", "--man"], cwd=machine.home).out

    assert page.startswith(".TH KMEM 1 ")
    assert [name for name in COMMANDS if f'.SH "kmem {name}"' not in page] == []
    assert [line for line in page.splitlines() if line.startswith("'")] == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_page_is_roff_without_a_warning(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "kmem.1").write_text(in_this_process(machine, ["help", "--man"], cwd=machine.home).out)

    checked = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", str(tmp_path / "kmem.1")], capture_output=True, text=True)

    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script(machine: Machine, shell: str) -> None:
    script = in_this_process(machine, ["completion", shell], cwd=machine.home)

    assert script.code == 0
    assert "_KMEM_COMPLETE" in script.out


def test_another_shell_has_none(machine: Machine) -> None:
    assert in_this_process(machine, ["completion", "tcsh"], cwd=machine.home).code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(("words", "expected"), [("kmem re", {"recall", "remember", "resume"}), ("kmem config s", {"set", "show"})])
def test_bash_completes_commands(machine: Machine, tmp_path: Path, words: str, expected: set[str]) -> None:
    program = tmp_path / "kmem"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kite_memory "$@"\n')
    program.chmod(0o755)
    script = (
        f"source <({program} completion bash); COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); "
        f'_kmem_completion {program}; echo "${{COMPREPLY[@]}}"'
    )

    ran = subprocess.run(["bash", "-c", script], env=machine.env(), capture_output=True, text=True, timeout=60)

    assert expected <= set(ran.stdout.split()), ran.stderr
