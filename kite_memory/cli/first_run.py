"""First run: one question about the agents' settings, one about who makes the notes, and a look at the first notes."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.agents.registry import Agent
from kite_memory.agents.settings_edit import Edit, apply, diff
from kite_memory.cli import setup
from kite_memory.cli.console import choose, complain, counted, reply, tell, watched
from kite_memory.cli.setup import change
from kite_memory.config import Config
from kite_memory.distill.backends.local_servers import LocalServer, local_servers
from kite_memory.errors import KiteError
from kite_memory.keys import keys_beside
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.system.private_files import replace_file
from kite_memory.wiring.launch import link_commands

if TYPE_CHECKING:
    from kite_memory.app.backlog import Bill
    from kite_memory.wiring.services import Services

_BEST = 5
_KINDS = (NoteKind.PREFERENCE, NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT)
_QUERY_WORDS = 3
_HOW = "`kmem config set extractor.name NAME` changes that"


def hook_agents(settings: Config, *, yes: bool) -> bool:
    """Add the hooks to every agent found, after one question. Return false if an agent's settings could not be read or written.

    A "no" is remembered for these agents; `kmem hooks install` asks again.
    """
    well = True
    declined = _declined(settings)
    edits: list[tuple[Agent, Edit]] = []
    for agent in setup.agents(settings):
        try:
            plan = setup.plan_install(agent, settings)
        except KiteError as error:
            complain(error)
            well = False
            continue
        if not isinstance(plan, Edit):
            tell(f"{agent.title}: {plan.because}")
        elif agent.name in declined and not yes:
            tell(f"{agent.title}: no hooks, as you chose; `{setup.install_line(agent.name)}` adds them")
        else:
            tell(f"{agent.title}: {plan.because}, in {agent.settings}")
            edits.append((agent, plan))
    if not edits:
        return well
    if not yes and not _agreed(edits):
        for agent, _ in edits:
            tell(f"{agent.title}'s settings were left alone; `{setup.install_line(agent.name)} --yes` adds the hooks")
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
        links = link_commands(Path.home())
    except OSError as error:
        tell(f"note: `kmem` is not on your PATH, and no link could be made: {error.strerror}; run {sys.executable} -m kite_memory")
        return
    for link in links:
        tell(f"linked {link}, so that `{link.name}` is a command; `kmem uninstall` removes it")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One choice. ``settings`` are as given to `kmem config set`."""

    description: str
    settings: Sequence[tuple[str, str]]


def choose_model(here: "Services", *, yes: bool) -> bool:
    """Ask the user which model makes the notes, and store that.

    Return whether a setting has changed: then the services must be opened again.
    """
    if here.config.extractor.name != "auto":
        return False
    choices: list[Choice] = []
    if watched() and not yes:
        from kite_memory.cli.backfilling import bill_of, unread
        from kite_memory.wiring.models import prices_of

        bill = bill_of(here, unread(here))
        choices = list(offered(here.config, bill, bill.dollars(prices_of(here.config)), list(local_servers())))
    if len(choices) < 2:
        if here.extractor.name == "offline":
            tell(f"notes are made by rules on this machine, without a model; {_HOW}")
        return False
    tell("Which model should make the notes?")
    for number, choice in enumerate(choices, 1):
        tell(f"  {number}  {choice.description}")
    said = reply(f"Which? 1 to {len(choices)}, 1 if you just press Enter:")
    chosen = choices[int(said) - 1] if said.isdecimal() and 1 <= int(said) <= len(choices) else choices[0]
    for name, value in chosen.settings:
        change(name, value)
    tell(f"notes: {chosen.description.partition(':')[0]}; {_HOW}")
    return True


def offered(config: "Config", bill: "Bill", dollars: float, servers: Sequence[LocalServer]) -> Iterator[Choice]:
    calls = f"about {counted(bill.calls, 'call')} for what is there" if bill.calls else "nothing is there yet"
    limit = f"never more than ${config.extractor.dollars_per_day:.2f} a day"
    yield Choice(
        description="rules on this machine: no calls, no cost, nothing leaves it; fewer notes, and plainer ones",
        settings=[("extractor.name", "offline")],
    )
    if shutil.which("claude") is not None:
        yield Choice(
            description=f"the `claude` command, on your plan and without a key: {calls}, ${dollars:.2f} at list prices; {limit}",
            settings=[("extractor.name", "claude-cli")],
        )
    if keys_beside(config.file).find("anthropic") is not None:
        yield Choice(
            description=f"Anthropic's API ({config.extractor.model}), with the key that is there: {calls}, ${dollars:.2f}; {limit}",
            settings=[("extractor.name", "anthropic")],
        )
    for server in servers:
        yield Choice(
            description=f"{server.name} on this machine ({server.model}): {calls}, no cost, nothing leaves it; slower",
            settings=[
                ("extractor.name", "openai"),
                ("extractor.base_url", server.address),
                ("extractor.openai_model", server.model),
                ("extractor.dollars_per_million_in", "0"),
                ("extractor.dollars_per_million_out", "0"),
            ],
        )
