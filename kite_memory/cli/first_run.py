"""First run: one question about the agents' settings, and a look at the first notes."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.agents.registry import Agent
from kite_memory.agents.settings_edit import Edit, apply, diff
from kite_memory.app.launch import link_command
from kite_memory.cli import setup
from kite_memory.cli.console import choose, complain, tell, watched
from kite_memory.config import Config
from kite_memory.errors import KiteError
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.system.private_files import replace_file

if TYPE_CHECKING:
    from kite_memory.wiring.services import Services

_BEST = 5
_KINDS = (NoteKind.PREFERENCE, NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT)
_QUERY_WORDS = 3


def hook_agents(settings: Config, *, yes: bool) -> bool:
    """Add the hooks to every agent found, after one question. Return false if an agent's settings could not be read or written.

    A "no" is remembered for these agents; `kmem hooks install` asks again.
    """
    well = True
    declined = _declined(settings)
    edits: list[tuple[Agent, Edit]] = []
    for agent in setup.agents(settings):
        try:
            plan = setup.plan_install(agent)
        except KiteError as error:
            complain(error)
            well = False
            continue
        if not isinstance(plan, Edit):
            tell(f"{agent.title}: {plan.because}")
        elif agent.name in declined and not yes:
            tell(f"{agent.title}: no hooks, as you chose; `{_install(agent)}` adds them")
        else:
            tell(f"{agent.title}: {plan.because}, in {agent.settings}")
            edits.append((agent, plan))
    if not edits:
        return well
    if not yes and not _agreed(edits):
        for agent, _ in edits:
            tell(f"{agent.title}'s settings were left alone; `{_install(agent)} --yes` adds the hooks")
        if watched():
            _decline(settings, declined | {agent.name for agent, _ in edits})
        return well
    for agent, edit in edits:
        try:
            backup = apply(edit, agent.settings, setup.backups(settings))
        except KiteError as error:
            complain(error)
            well = False
        else:
            tell(f"changed {agent.settings}; the version before is kept in {backup}")
    return well


def _agreed(edits: list[tuple[Agent, Edit]]) -> bool:
    """Ask whether to add the hooks. Enter means yes; ``d`` shows the changes and asks again. False without a terminal."""
    question = "Add these hooks? [Y/n, d shows the change]"
    while (answer := choose(question)) == "d":
        for agent, edit in edits:
            tell(diff(edit, agent.settings).rstrip("\n"))
    return answer in {"", "y", "yes"}


def _install(agent: Agent) -> str:
    return "kmem hooks install" + ("" if agent.name == "claude-code" else f" --agent {agent.name}")


def _declined_file(settings: Config) -> Path:
    return settings.state / "hooks-declined.json"


def _declined(settings: Config) -> set[str]:
    try:
        names = json.loads(_declined_file(settings).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _decline(settings: Config, names: set[str]) -> None:
    replace_file(_declined_file(settings), json.dumps(sorted(names)).encode())


def link_kmem() -> None:
    """Put `kmem` on the PATH if the installation did not, and print a message about it."""
    try:
        link = link_command(Path.home())
    except OSError as error:
        tell(f"note: `kmem` is not on your PATH, and no link could be made: {error.strerror}; run {sys.executable} -m kite_memory")
        return
    if link is not None:
        tell(f"linked {link}, so that `kmem` is a command; `kmem uninstall` removes it")


def show_first_notes(services: "Services") -> None:
    """Print five of the best notes, a query from the user's own history, and what to ask the agent."""
    from kite_memory.vault.upkeep.strength import strength

    def weight(note: Note) -> tuple[float, int, float, str]:
        return (-strength(note), _KINDS.index(note.kind), -note.created.timestamp(), note.path)

    best = sorted(_current(services), key=weight)[:_BEST]
    if not best:
        return
    tell("")
    tell("Some of the notes:")
    for note in best:
        tell(f"  {note.kind:10} {note.title}")
    tell("")
    tell("Try:")
    if query := _query(best[0]):
        tell(f'  kmem search "{query}"')
    tell("  kmem status")
    tell('In your agent, say "remember that …", or ask why something is as it is.')


def _current(services: "Services") -> Iterator[Note]:
    for entry in services.vault.entries():
        note = services.vault.read(entry.path)
        if note is not None and note.kind in _KINDS and note.status is NoteStatus.ACCEPTED:
            yield note


def _query(note: Note) -> str:
    """Return the note's entities, or the longest words of its title in their order."""
    if note.entities:
        found = list(note.entities[:_QUERY_WORDS])
    else:
        words = [word for word in (each.strip(".,:;!?()\"'`") for each in note.title.split()) if word.isalpha()]
        longest = sorted(words, key=len, reverse=True)[:_QUERY_WORDS]
        found = [word for word in words if word in longest]
    return " ".join(found).replace('"', "")
