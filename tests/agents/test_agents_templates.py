from pathlib import Path

import pytest

from kite_memory.agents.claude_code import is_ours
from kite_memory.paths import asset_folder
from tests.plugin_files import BY_NAME, plugin_files

CLAUDE_CODE = Path(asset_folder("hooks")) / "claude-code"


@pytest.mark.parametrize(("name", "text"), sorted(plugin_files().items()))
def test_a_plugins_files_are_those_made_from_the_code(name: str, text: str) -> None:
    assert (Path(asset_folder("hooks")) / name).read_text(encoding="utf-8") == text, "run `python -m tests.plugin_files`"


def test_the_plugins_command_is_recognised_as_ours() -> None:
    assert is_ours(BY_NAME)


def test_the_lines_for_an_instruction_file_can_be_found_again() -> None:
    lines = (CLAUDE_CODE / "instructions.md").read_text(encoding="utf-8").splitlines()

    assert (lines[0], lines[-1]) == ("<!-- kite-memory:begin -->", "<!-- kite-memory:end -->")


@pytest.mark.parametrize("path", sorted((CLAUDE_CODE / "commands").glob("*.md")), ids=lambda path: path.stem)
def test_a_slash_command_may_run_kmem_and_nothing_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    allowed = next(line for line in text.splitlines() if line.startswith("allowed-tools: ")).removeprefix("allowed-tools: ")

    assert all(tool.startswith("Bash(kmem ") for tool in allowed.split(", "))
    assert "$ARGUMENTS" in text
