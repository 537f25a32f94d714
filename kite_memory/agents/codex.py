"""Codex's ``hooks.json``, which its CLI, its desktop and its editor share."""

from kite_memory.agents.like_claude_code import Dialect

HOOKS = Dialect(
    name="codex",
    title="Codex",
    file="hooks.json",
    events=("SessionStart", "UserPromptSubmit", "PostToolUse"),
    timeout=5,
    note="Codex asks once whether you trust new hooks",
)
