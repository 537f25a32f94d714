from pathlib import Path

import pytest

from kite_memory.agents import registry
from kite_memory.agents.claude_code import BY_NAME, is_ours, plan_install
from kite_memory.agents.registry import CODEX_HOOKS, GEMINI_HOOKS
from kite_memory.agents.settings_edit import Edit, Plan
from kite_memory.paths import asset_folder

CLAUDE_CODE = Path(asset_folder("hooks")) / "claude-code"


@pytest.mark.parametrize(("name", "text"), sorted(registry.files(CODEX_HOOKS, GEMINI_HOOKS).items()))
def test_a_plugins_files_are_those_made_from_the_code(name: str, text: str) -> None:
    assert (Path(asset_folder("hooks")) / name).read_text(encoding="utf-8") == text, "run `python -m tests.plugin_files`"


@pytest.mark.parametrize(
    ("hooks", "plan"),
    [
        ("claude-code", plan_install(None, BY_NAME)),
        ("codex", CODEX_HOOKS.plan_install(None, BY_NAME)),
        ("gemini-cli", GEMINI_HOOKS.plan_install(None, BY_NAME)),
    ],
)
def test_a_plugins_hooks_are_those_that_an_install_would_write(hooks: str, plan: Plan) -> None:
    assert isinstance(plan, Edit)
    assert (Path(asset_folder("hooks")) / hooks / "hooks" / "hooks.json").read_text(encoding="utf-8") == plan.after


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
