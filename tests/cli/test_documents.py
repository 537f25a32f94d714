"""The documentation: every command that a page says to type works on a machine like the reader's, in the page's order."""

import json
import re
import shlex
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from kite_memory.cli.main import app
from tests.cli.transcript import Player
from tests.e2e.kmem import PROJECT, Machine

_TYPED = re.compile(r"^\$ (kmem .+)$", re.MULTILINE)
_PAGES = [
    page.relative_to(PROJECT).as_posix()
    for page in (PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md")))
    if page.parts[-2] not in ("internals", "reference") and _TYPED.search(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", _PAGES)
def test_what_a_page_says_to_type_can_be_typed(machine: Machine, page: str) -> None:
    lines = _TYPED.findall((PROJECT / page).read_text(encoding="utf-8"))
    player = Player(machine)
    player.carry_out("claude works")
    player.carry_out("kmem backfill")
    player.carry_out('kmem remember "Postgres over SQLite for the job queue" --kind decision')
    player.carry_out('kmem remember "We left SQLite because two workers lock each other out" --kind decision')
    _leave_other_memories(machine.home)
    (machine.home / "Sync").mkdir()

    ran = [(line, player.carry_out(_without_comment(line))) for line in lines]

    assert [(line, each.out, each.err) for line, each in ran if each.code] == []


def _without_comment(line: str) -> str:
    return " ".join(word if word.startswith("~") else shlex.quote(word) for word in shlex.split(line, comments=True))


def test_pages_are_found() -> None:
    assert "README.md" in _PAGES
    assert len(_PAGES) >= 10


def _leave_other_memories(home: Path) -> None:
    """Write a memory in the format of each program that a page shows how to come from."""
    own = home / ".claude" / "projects" / "-home-ada-orchard" / "memory"
    own.mkdir(parents=True)
    (own / "MEMORY.md").write_text("# Press\n\nThe press needs 40 bar.\n")
    (home / ".claude" / "CLAUDE.md").write_text("## Style\n\nTabs.\n")
    (home / "basic-memory").mkdir()
    (home / "basic-memory" / "frost.md").write_text("---\ntitle: Frost\ntype: note\n---\n\n- [decision] cover in May\n")
    (home / "mem0.json").write_text(json.dumps([{"id": "1", "memory": "Prefers tabs", "categories": ["preferences"]}]))
    (home / ".claude-mem").mkdir()
    database = sqlite3.connect(home / ".claude-mem" / "claude-mem.db")
    database.execute(
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, type TEXT, title TEXT, narrative TEXT, created_at_epoch INTEGER)"
    )
    database.execute("INSERT INTO observations VALUES (1, 'decision', 'Press at 40 bar', 'Less leaves juice.', 1780000000000)")
    database.commit()
    database.close()


_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:[A-Z_]+='[^']*' )?kmem ([a-z].*)$", re.MULTILINE)
_NOT_TYPED = [
    (page.relative_to(PROJECT).as_posix(), line)
    for page in (PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md")))
    if page.parts[-2] not in ("internals", "reference")
    for language, block in _BLOCK.findall(page.read_text(encoding="utf-8"))
    if language in ("", "text")
    for line in _COMMAND.findall(block)
]


@pytest.mark.parametrize(("page", "line"), _NOT_TYPED)
def test_a_command_that_needs_another_machine_or_a_server_is_one_that_exists(page: str, line: str) -> None:
    command: Any = get_command(app)
    words = shlex.split(line, comments=True)
    context = command.context_class(command, info_name="kmem")
    while hasattr(command, "get_command") and words:
        name, *words = words
        command = command.get_command(context, name)
        assert command is not None, f"{page}: there is no `{name}`"
        context = command.context_class(command, info_name=name, parent=context)

    command.make_context(context.info_name, words, parent=context.parent).close()


def test_commands_that_are_not_typed_are_found() -> None:
    assert len(_NOT_TYPED) >= 15
