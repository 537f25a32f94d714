"""Commands of ours in an agent's folder: known for ours while no one has touched them, and a person's own from then on."""

import re
import tomllib
from pathlib import Path

import pytest

from kite_memory.agents.instructions import NAMES, CommandFile, files, is_ours, plan_add_file, plan_remove_file, written
from kite_memory.agents.settings_edit import Edit, Nothing
from kite_memory.paths import asset_folder

HOOKS = Path(asset_folder("hooks"))
AGENTS = ("claude-code", "codex", "gemini-cli")
ALL = [(agent, each) for agent in AGENTS for each in files(agent)]

every_file = pytest.mark.parametrize(("agent", "file"), ALL, ids=[f"{agent}-{each.place}" for agent, each in ALL])


def said(file: CommandFile) -> str:
    return written(HOOKS / file.template)


@every_file
def test_what_was_put_in_is_taken_out(agent: str, file: CommandFile) -> None:
    ours = said(file)

    assert plan_add_file(None, ours, file.place) == Edit(before=None, after=ours, because=f"adds {file.place}")
    assert isinstance(plan_add_file(ours, ours, file.place), Nothing)
    assert isinstance(plan_add_file(ours.replace("\n", "\r\n"), ours, file.place), Nothing)
    assert plan_remove_file(ours, file.place) == Edit(before=ours, after=None, because=f"removes {file.place}")
    assert isinstance(plan_remove_file(None, file.place), Nothing)


@every_file
def test_what_its_owner_has_changed_is_theirs(agent: str, file: CommandFile) -> None:
    ours = said(file)

    for theirs in (ours.replace("kmem", "kmem --debug", 1), f"{ours}more\n", "mine\n", ""):
        assert not is_ours(theirs)
        assert isinstance(plan_add_file(theirs, ours, file.place), Nothing)
        assert isinstance(plan_remove_file(theirs, file.place), Nothing)
    assert is_ours(ours.replace("\n", "\r\n"))


def test_an_older_one_of_ours_is_brought_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "why.md").write_text("---\ndescription: older\n---\n", encoding="utf-8")
    older, newer = written(tmp_path / "why.md"), said(files("claude-code")[2])

    plan = plan_add_file(older, newer, "commands/why.md")

    assert plan == Edit(before=older, after=newer, because="brings commands/why.md up to date")


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_gets_every_command(agent: str) -> None:
    places = [file.place for file in files(agent)]

    assert [name for name in NAMES if not any(re.search(rf"\b{name}\b", place) for place in places)] == []
    assert files("cursor") == ()


@every_file
def test_each_is_what_its_agent_can_read_and_says_what_it_is_for(agent: str, file: CommandFile) -> None:
    text = said(file)

    if file.place.endswith(".toml"):
        content = tomllib.loads(text)
        assert set(content) == {"description", "prompt"}
        assert "{{args}}" in content["prompt"]
        assert "kmem " in content["prompt"]
    else:
        front = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
        assert front is not None
        assert re.search(r"^description: \S", front[1], re.M)
        if file.place.endswith("SKILL.md"):
            assert f"name: {Path(file.place).parent.name}\n" in front[1]


@every_file
def test_no_text_of_a_persons_is_run_by_a_shell_before_anybody_has_read_it(agent: str, file: CommandFile) -> None:
    assert not re.search(r"!`|!\{", said(file))


@pytest.mark.parametrize("agent", AGENTS)
def test_forgetting_asks_first(agent: str) -> None:
    (forget,) = [file for file in files(agent) if "forget" in file.place]

    assert "only after they have said yes" in said(forget).replace("\n", " ")
