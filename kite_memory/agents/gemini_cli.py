"""Gemini CLI's ``settings.json``."""

from kite_memory.agents.like_claude_code import Dialect

HOOKS = Dialect(
    name="gemini-cli",
    title="Gemini CLI",
    file="settings.json",
    events=("BeforeAgent", "AfterTool"),
    timeout=5_000,
    comments=True,
)
"""Not `SessionStart`: what that one says is put in front of the person's first prompt, and a client that is resumed (0.61)
takes every prompt that begins so for one of its own and drops it. What `BeforeAgent` says stands behind the prompt.
"""
