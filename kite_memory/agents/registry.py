"""Every agent whose settings we can edit, by the name that ``--agent`` takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kite_memory.agents import claude_code
from kite_memory.agents.claude_code import Status
from kite_memory.agents.settings_edit import Plan
from kite_memory.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """``settings`` is the file that holds its hooks, whether or not it is there."""

    name: str
    title: str
    settings: Path
    plan_install: Callable[[str | None, str], Plan]
    plan_uninstall: Callable[[str | None, Sequence[str | None]], Plan]
    status: Callable[[str | None], Status]


def agents(*, claude_root: Path) -> tuple[Agent, ...]:
    return (
        Agent(
            name="claude-code",
            title="Claude Code",
            settings=claude_root / "settings.json",
            plan_install=claude_code.plan_install,
            plan_uninstall=claude_code.plan_uninstall,
            status=claude_code.status,
        ),
    )


def agent(name: str, *, claude_root: Path) -> Agent:
    """Raises `UsageError`, naming those there are."""
    known = {each.name: each for each in agents(claude_root=claude_root)}
    if name not in known:
        raise UsageError(f"unknown agent {name!r}", hint=f"known ones are: {', '.join(known)}")
    return known[name]
