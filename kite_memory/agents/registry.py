"""Every agent whose settings we can edit, by the name that ``--agent`` takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kite_memory.agents import claude_code, codex, gemini_cli
from kite_memory.agents.claude_code import Status
from kite_memory.agents.installed import claude_version
from kite_memory.agents.like_claude_code import Dialect
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


def agents(*, claude_root: Path, codex_root: Path | None = None, gemini_root: Path | None = None) -> tuple[Agent, ...]:
    """Those whose roots are named."""
    events = claude_code.events_for(claude_version())
    return (
        Agent(
            name="claude-code",
            title="Claude Code",
            settings=claude_root / "settings.json",
            plan_install=partial(claude_code.plan_install, events=events),
            plan_uninstall=claude_code.plan_uninstall,
            status=partial(claude_code.status, events=events),
        ),
        *([] if codex_root is None else [_of(codex.HOOKS, codex_root)]),
        *([] if gemini_root is None else [_of(gemini_cli.HOOKS, gemini_root)]),
    )


def _of(hooks: Dialect, root: Path) -> Agent:
    return Agent(
        name=hooks.name,
        title=hooks.title,
        settings=root / hooks.file,
        plan_install=hooks.plan_install,
        plan_uninstall=hooks.plan_uninstall,
        status=hooks.status,
    )


def agent(name: str, *, claude_root: Path, codex_root: Path | None = None, gemini_root: Path | None = None) -> Agent:
    """Raises `UsageError`, naming those there are."""
    known = {each.name: each for each in agents(claude_root=claude_root, codex_root=codex_root, gemini_root=gemini_root)}
    if name not in known:
        raise UsageError(f"unknown agent {name!r}", hint=f"known ones are: {', '.join(known)}")
    return known[name]
