"""How each agent resumes a session of its own."""

import re

from kite_memory.errors import KiteError

_TAKES_UP = {
    "claude-code": ("claude", "--resume"),
    "codex": ("codex", "resume"),
    "gemini-cli": ("gemini", "--resume"),
    "copilot-cli": ("copilot", "--resume"),
    "opencode": ("opencode", "--session"),
}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""What may be put on a command line: the id comes from a transcript and is not trusted."""


class CannotGoOn(KiteError):
    """Raised for a session that can be read, but that no agent can resume."""


def command_for(provider: str, session: str) -> tuple[str, ...]:
    """Return the command that resumes a session. Raises `CannotGoOn` for an agent that cannot be started with one."""
    if provider not in _TAKES_UP:
        raise CannotGoOn(
            f"{provider} cannot be started with a session of before", hint="`kmem handoff --to AGENT` gives its brief to another"
        )
    if _ID.fullmatch(session) is None:
        raise CannotGoOn(f"the id {session!r:.80} cannot be given to an agent")
    return (*_TAKES_UP[provider], session)
