import json
from pathlib import Path

import pytest

from kite_memory import assets
from kite_memory.agents.claude_code import plan_install
from kite_memory.agents.settings_edit import Edit

CLAUDE_CODE = assets.folder("hooks") / "claude-code"


def test_the_template_is_what_an_install_would_write() -> None:
    plan = plan_install(None, "kmem-hook")

    assert isinstance(plan, Edit)
    assert (CLAUDE_CODE / "settings.json").read_text(encoding="utf-8") == plan.after
    assert json.loads(plan.after or "")["hooks"]


def test_the_lines_for_an_instruction_file_can_be_found_again() -> None:
    lines = (CLAUDE_CODE / "instructions.md").read_text(encoding="utf-8").splitlines()

    assert (lines[0], lines[-1]) == ("<!-- kite-memory:begin -->", "<!-- kite-memory:end -->")


@pytest.mark.parametrize("path", sorted((CLAUDE_CODE / "commands").glob("*.md")), ids=lambda path: path.stem)
def test_a_slash_command_may_run_kmem_and_nothing_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    allowed = next(line for line in text.splitlines() if line.startswith("allowed-tools: ")).removeprefix("allowed-tools: ")

    assert all(tool.startswith("Bash(kmem ") for tool in allowed.split(", "))
    assert "$ARGUMENTS" in text
