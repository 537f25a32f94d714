"""Construction of all components from the configuration: the only package that chooses implementations.

The transcript sources are made here, since commands that only look at transcripts need nothing else.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.config import Config

if TYPE_CHECKING:
    from kite_memory.sources import Source
    from kite_memory.sources.aider import Aider

PROVIDERS = (
    "claude-code", "codex", "gemini-cli", "copilot-cli", "cline", "roo-code", "aider", "opencode", "cursor", "antigravity", "git",
    "kilo-code", "pi", "qwen-code", "goose", "droid",
)  # fmt: skip
"""What an extension may not call its agent: the providers of our own sources, configured or not."""


def sources_of(config: Config, *, projects: Callable[[], Iterable[str]] = tuple) -> "tuple[Source, ...]":
    """Return the source of every agent that has a root in the configuration, then those of extensions.

    ``projects`` returns the folders that agents are known to have worked in.
    """
    from kite_memory.sources.antigravity import Antigravity
    from kite_memory.sources.claude_code.source import ClaudeCode
    from kite_memory.sources.cline.source import Cline, RooCode
    from kite_memory.sources.codex.source import Codex
    from kite_memory.sources.copilot_cli import CopilotCli
    from kite_memory.sources.cursor.source import CursorApp
    from kite_memory.sources.droid import Droid
    from kite_memory.sources.gemini_cli.source import Gemini
    from kite_memory.sources.git_history import GitLog
    from kite_memory.sources.goose import Goose
    from kite_memory.sources.opencode.source import Kilo, OpenCode
    from kite_memory.sources.pi import Pi
    from kite_memory.sources.qwen_code import QwenCode

    found: tuple[Source | None, ...] = (
        ClaudeCode(config.claude_root, own_state=config.state),
        Codex(config.codex_root, own_state=config.state) if config.codex_root else None,
        Gemini(config.gemini_root, own_state=config.state) if config.gemini_root else None,
        CopilotCli(config.copilot_root, own_state=config.state) if config.copilot_root else None,
        Cline(config.cline_roots, own_state=config.state) if config.cline_roots else None,
        RooCode(config.roo_roots, own_state=config.state) if config.roo_roots else None,
        _aider(config, projects),
        OpenCode(config.opencode_root) if config.opencode_root else None,
        CursorApp(config.cursor_root, config.cursor_cli_root) if config.cursor_root and config.cursor_cli_root else None,
        Antigravity(config.antigravity_root) if config.antigravity_root else None,
        Kilo(config.kilo_root) if config.kilo_root else None,
        Pi(config.pi_root, own_state=config.state) if config.pi_root else None,
        QwenCode(config.qwen_root, own_state=config.state) if config.qwen_root else None,
        Goose(config.goose_roots, own_state=config.state) if config.goose_roots else None,
        Droid(config.droid_root, own_state=config.state) if config.droid_root else None,
        GitLog(projects, environment=os.environ, home=Path.home()) if config.git_history else None,
    )
    ours = tuple(source for source in found if source is not None)
    if not config.extensions:
        return ours
    from kite_memory import extensions

    return (*ours, *extensions.sources(Path.home(), own_state=config.state, taken=PROVIDERS))


def _aider(config: Config, projects: Callable[[], Iterable[str]]) -> "Aider | None":
    from kite_memory.sources.aider import HISTORY, Aider

    if config.aider_roots is None:
        return None
    history = config.aider_history or HISTORY
    return Aider(projects, always=config.aider_roots, own=config.own_histories, own_state=config.state, history=history)
