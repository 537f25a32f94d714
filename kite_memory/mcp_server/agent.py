"""Which agent speaks, told from what its MCP client calls itself."""

import re

_KNOWN = (
    ("claude-code", "claude-code"),
    ("claude", "claude"),
    ("codex", "codex"),
    ("gemini-cli", "gemini-cli"),
    ("cursor", "cursor"),
    ("cline", "cline"),
    ("roo", "roo"),
    ("visual studio code", "vscode"),
    ("vscode", "vscode"),
    ("opencode", "opencode"),
)
_LONGEST = 40
_UNFIT = re.compile(r"[^a-z0-9._-]+")


def agent_of(client: str) -> str:
    """As the rest of the house names it, where it is one we know; else its own name, fit for a file name. Empty for none."""
    name = client[:200].strip().lower()
    for start, agent in _KNOWN:
        if name.startswith(start):
            return agent
    return _UNFIT.sub("-", name).strip("-._")[:_LONGEST]
