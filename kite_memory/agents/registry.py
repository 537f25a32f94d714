"""Every agent whose settings we can edit, by the name that ``--agent`` takes."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kite_memory.agents import claude_code, copilot_cli, opencode, plugins
from kite_memory.agents.claude_code import Status
from kite_memory.agents.like_claude_code import HookDialect
from kite_memory.agents.settings_edit import Plan
from kite_memory.errors import UsageError

GEMINI_HOOKS = HookDialect(
    name="gemini-cli",
    title="Gemini CLI",
    file="settings.json",
    events=("BeforeAgent", "AfterTool"),
    timeout=5_000,
    comments=True,
)
"""Without `SessionStart`: its output is put in front of the person's first prompt, and a client that is resumed (0.61) takes every
prompt that begins so for one of its own and drops it. The output of `BeforeAgent` stands behind the prompt."""


CODEX_HOOKS = HookDialect(
    name="codex",
    title="Codex",
    file="hooks.json",
    events=("SessionStart", "UserPromptSubmit", "PostToolUse"),
    timeout=5,
    note="Codex asks once whether you trust new hooks",
)


_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,6})(?:[-+].{0,60})?")
_LONGEST_MANIFEST = 1 << 16
_PACKAGE = "@anthropic-ai/claude-code"


def claude_version(command: str | None = None) -> tuple[int, ...] | None:
    """Return the version of the ``claude`` that a shell would start; ``None`` where none exists, or it is unknown."""
    found = command or shutil.which("claude")
    if not found:
        return None
    try:
        program = Path(found).resolve()
    except (OSError, RuntimeError):
        return None
    return _of_package(program) or _named(program)


def _of_package(program: Path) -> tuple[int, ...] | None:
    """Return the version from the npm package that holds the program."""
    for folder in list(program.parents)[:3]:
        try:
            with (folder / "package.json").open("rb") as file:
                manifest = json.loads(file.read(_LONGEST_MANIFEST))
        except (OSError, ValueError, RecursionError):
            continue
        match manifest:
            case {"name": str(name), "version": str(version)} if name.startswith(_PACKAGE):
                return _version(version)
            case _:
                return None
    return None


def _named(program: Path) -> tuple[int, ...] | None:
    """Return the version from the name of the program or its folder, as its own installer and Homebrew set it."""
    return _version(program.name) or _version(program.parent.name)


def _version(text: str) -> tuple[int, ...] | None:
    found = _VERSION.fullmatch(text)
    return tuple(map(int, found.groups())) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent with hooks. ``settings`` is the file that holds them, whether or not it exists.

    ``has_plugin`` says whether our plugin, which brings the same hooks, is installed and enabled there.
    """

    name: str
    title: str
    settings: Path
    plan_install: Callable[[str | None, str], Plan]
    plan_uninstall: Callable[[str | None, Sequence[str | None]], Plan]
    status: Callable[[str | None], Status]
    has_plugin: Callable[[], bool] = bool


def agents(
    *,
    claude_root: Path,
    codex_root: Path | None = None,
    gemini_root: Path | None = None,
    copilot_root: Path | None = None,
    opencode_root: Path | None = None,
) -> tuple[Agent, ...]:
    """Return the agents whose roots are given. ``opencode_root`` holds OpenCode's settings."""
    events = claude_code.events_for(claude_version())
    return (
        Agent(
            name="claude-code",
            title="Claude Code",
            settings=claude_root / "settings.json",
            plan_install=partial(claude_code.plan_install, events=events, allow=claude_code.OPENS_NOTES),
            plan_uninstall=claude_code.plan_uninstall,
            status=partial(claude_code.status, events=events),
            has_plugin=partial(plugins.in_claude_code, claude_root),
        ),
        *([] if codex_root is None else [_of(CODEX_HOOKS, codex_root, plugins.in_codex)]),
        *([] if gemini_root is None else [_of(GEMINI_HOOKS, gemini_root, plugins.in_gemini_cli)]),
        *([] if copilot_root is None else [_copilot_cli(copilot_root)]),
        *([] if opencode_root is None else [_opencode(opencode_root)]),
    )


def _of(hooks: HookDialect, root: Path, has_plugin: Callable[[Path], bool]) -> Agent:
    return Agent(
        name=hooks.name,
        title=hooks.title,
        settings=root / hooks.file,
        plan_install=hooks.plan_install,
        plan_uninstall=hooks.plan_uninstall,
        status=hooks.status,
        has_plugin=partial(has_plugin, root),
    )


def _copilot_cli(root: Path) -> Agent:
    return Agent(
        name=copilot_cli.NAME,
        title="Copilot CLI",
        settings=root / "hooks" / copilot_cli.FILE,
        plan_install=copilot_cli.plan_install,
        plan_uninstall=copilot_cli.plan_uninstall,
        status=copilot_cli.status,
    )


def _opencode(root: Path) -> Agent:
    return Agent(
        name=opencode.NAME,
        title="OpenCode",
        settings=root / "plugins" / opencode.FILE,
        plan_install=opencode.plan_install,
        plan_uninstall=opencode.plan_uninstall,
        status=opencode.status,
    )


def agent(
    name: str,
    *,
    claude_root: Path,
    codex_root: Path | None = None,
    gemini_root: Path | None = None,
    copilot_root: Path | None = None,
    opencode_root: Path | None = None,
) -> Agent:
    """Return an agent by name. Raises `UsageError`, which lists the known names."""
    found = agents(
        claude_root=claude_root,
        codex_root=codex_root,
        gemini_root=gemini_root,
        copilot_root=copilot_root,
        opencode_root=opencode_root,
    )
    known = {each.name: each for each in found}
    if name not in known:
        raise UsageError(f"unknown agent {name!r}", hint=f"known ones are: {', '.join(known)}")
    return known[name]
