"""The configuration file is the person's: one setting changes, everything else stays."""

import stat
import sys
import tomllib

import pytest

from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine, Ran


def set_to(machine: Machine, name: str, value: str) -> Ran:
    return in_this_process(machine, ["config", "set", name, value], cwd=machine.home)


BEFORE = """\
# mine, do not touch
judge = 'wait'   # for now

[extractor]  # the cheap one
calls_per_day = 7
dollars_per_day = 0.25
"""


def test_a_folder_for_sync_is_stored_whole(machine: Machine) -> None:
    assert set_to(machine, "sync.target", "Dropbox/kmem").code == 0
    assert f'target = "{machine.home / "Dropbox" / "kmem"}"' in machine.config.read_text()
    assert set_to(machine, "sync.target", "git@git.example.org:ada/kite.git").code == 0
    assert 'target = "git@git.example.org:ada/kite.git"' in machine.config.read_text()


def test_comments_and_order_stay(machine: Machine) -> None:
    machine.configure(BEFORE)

    done = set_to(machine, "extractor.calls_per_day", "8")

    assert done.code == 0, done.err
    assert machine.config.read_text() == BEFORE.replace("= 7", "= 8")


def test_a_refused_value_leaves_the_file_alone(machine: Machine) -> None:
    machine.configure(BEFORE)

    assert set_to(machine, "extractor.calls_per_day", "many").code == 2
    assert machine.config.read_text() == BEFORE


def test_the_vault_may_go_back_to_where_it_lies_by_itself(machine: Machine) -> None:
    machine.configure("vault = '/somewhere'\n")

    done = set_to(machine, "vault", "")

    assert (done.code, "the environment says otherwise" in done.err) == (0, False)
    assert tomllib.loads(machine.config.read_text()) == {"vault": ""}


def test_a_section_on_one_line_is_a_section(machine: Machine) -> None:
    machine.configure('extractor = { name = "offline" }\n')

    done = set_to(machine, "extractor.calls_per_day", "8")

    assert done.code == 0, done.err
    assert tomllib.loads(machine.config.read_text()) == {"extractor": {"name": "offline", "calls_per_day": 8}}


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of unix")
def test_a_link_is_followed_and_the_mode_kept(machine: Machine) -> None:
    dotfile = machine.home / "dotfiles" / "kite.toml"
    dotfile.parent.mkdir()
    dotfile.write_text(BEFORE)
    dotfile.chmod(0o644)
    machine.config.parent.mkdir(parents=True)
    machine.config.symlink_to(dotfile)

    done = set_to(machine, "judge", "off")

    assert done.code == 0, done.err
    assert machine.config.is_symlink()
    assert 'judge = "off"   # for now' in dotfile.read_text()
    assert stat.S_IMODE(dotfile.stat().st_mode) == 0o644


def test_any_text_may_be_a_name(machine: Machine) -> None:
    done = set_to(machine, "extractor.model", 'a "quoted"\n\x07 name \udcff')
    shown = in_this_process(machine, ["config", "show", "--json"], cwd=machine.home)

    assert (done.code, shown.code) == (0, 0), done.err + shown.err
    assert shown.json()["extractor"]["model"] == 'a "quoted"\n\x07 name ?'


def test_a_wrong_value_is_mended_by_setting_it_right(machine: Machine) -> None:
    machine.configure(BEFORE.replace("= 7", '= "seven"'))

    done = set_to(machine, "extractor.calls_per_day", "8")

    assert done.code == 0, done.err
    assert machine.config.read_text() == BEFORE.replace("= 7", "= 8")


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (BEFORE.replace("'wait'", "'sometimes'").encode(), "`judge` in "),
        (BEFORE.replace("'wait'", "wait").encode(), "is not valid TOML"),
        (b"judge = '\xff'\n", "is not valid TOML"),
        (b"extractor = 'offline'\n", "is not a section"),
        (b"colour = 'red'\n", "unknown setting 'colour'"),
    ],
)
def test_what_else_is_wrong_is_still_refused_and_left_alone(machine: Machine, before: bytes, said: str) -> None:
    machine.configure("")
    machine.config.write_bytes(before)

    done = set_to(machine, "extractor.calls_per_day", "8")

    assert done.code == 2
    assert said in done.err
    assert machine.config.read_bytes() == before


def test_the_mode_of_the_judge_is_set_as_said(machine: Machine) -> None:
    done = set_to(machine, "judge.mode", "off")

    assert done.code == 0
    assert "the environment" not in done.err
