"""First run: one question about the agents' settings, one about who makes the notes, and a look at the first notes."""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.agents.registry import Agent
from kite_memory.agents.settings_edit import Edit, diff
from kite_memory.cli import setup
from kite_memory.cli.console import choose, complain, counted, cut, reply, short_path, tell, tell_as_is, watched, width
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
_PUNCTUATION = ".,:;!?()[]\"'`“”"
_QUESTION = re.compile(r"(?:why|how|what|when|where|which|who|do|does|did|is|are|can|could|should)\b", re.IGNORECASE)
_SAYS_LITTLE = frozenset({"always", "never", "only", "really", "instead", "rather", "must", "whenever"})
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
            tell(f"{agent.title}, {short_path(agent.settings)}: {plan.because}")
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
            setup.change_file(edit, agent.settings, settings)
        except KiteError as error:
            complain(error)
            well = False
    tell("an agent that is running already gets them when it is started again")
    return well


def _agreed(edits: list[tuple[Agent, Edit]]) -> bool:
    """Ask whether to add the hooks. Enter means yes; ``d`` shows the changes and asks again. False without a terminal."""
    question = "Add these hooks? [Y/n, d shows the change]"
    while (answer := choose(question)) == "d":
        for agent, edit in edits:
            tell_as_is(diff(edit, agent.settings).rstrip("\n"))
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
    if links:
        names, folder = " and ".join(f"`{link.name}`" for link in links), links[0].parent
        tell(f"linked {names} into {short_path(folder)}; `kmem uninstall` removes the links")
        if shutil.which("kmem") is None:
            tell(f"{short_path(folder)} is not on your PATH: open a new shell, and add it if `kmem` is still not found")


def first_summary(services: "Services") -> str:
    """Return five of the best notes, a search that finds one of them, and what to do next."""
    from kite_memory.vault.upkeep.strength import is_worth_a_line, strength

    def asserts(note: Note) -> bool:
        return is_worth_a_line(note) and not _QUESTION.match(note.title)

    def rank(note: Note) -> tuple[bool, int, bool, bool, float, float, str]:
        chosen = note.kind in (NoteKind.DECISION, NoteKind.PREFERENCE)
        own = note.origin == "user"
        return (not asserts(note), -note.importance, not chosen, not own, -strength(note), -note.created.timestamp(), note.path)

    notes = sorted(_current(services), key=rank)
    best = [note for note in notes if asserts(note)][:_BEST] or notes[:1]
    lines = ["Some of the notes:", *(f"  {note.kind:10} {cut(note.title, width() - 13)}" for note in best), ""] if best else []
    lines.append("Try:")
    if query := _query(best, services):
        lines.append(f'  kmem search "{query}"')
    lines += [
        "  kmem web      all notes and sessions, in the browser",
        "  kmem status   what was read, what waits, what it cost",
        'In your agent, say "remember that …", or ask why something is as it is.',
    ]
    return "\n".join(lines)


def _current(services: "Services") -> Iterator[Note]:
    for entry in services.vault.entries():
        note = services.vault.read(entry.path)
        if note is not None and note.kind in _KINDS and note.status is NoteStatus.ACCEPTED:
            yield note


def _query(notes: Sequence[Note], services: "Services") -> str:
    """Return a query for which a search finds one of the notes first: two neighbours in its title, else its first words."""
    from kite_memory.recall.lexical import terms

    def says_something(word: str) -> bool:
        return word.isalpha() and len(word) > 3 and bool(terms(word)) and word.lower() not in _SAYS_LITTLE

    together: list[tuple[Note, str]] = []
    first: list[tuple[Note, str]] = []
    for note in notes:
        words = [(word, word.strip(_PUNCTUATION)) for word in note.title.split()]
        for (before, _), (_, after) in pairwise(words):
            if says_something(before) and says_something(after):
                together.append((note, f"{before} {after}"))
        first.append((note, " ".join([word for _, word in words if says_something(word)][:_QUERY_WORDS])))
    for note, query in (*together, *first):
        hits = services.operations.perform("search", {"query": query})["hits"] if query else []
        if any(hit["rank"] == 1 and hit["id"] == note.id for hit in hits):
            return query
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One choice. ``settings`` are as given to `kmem config set`."""

    told: str
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
            tell(f"notes: rules on this machine; {_HOW}")
        return False
    tell("Who is to make the notes?")
    for number, choice in enumerate(choices, 1):
        tell(f"  {number}  {choice.told}")
    said = reply(f"Which? 1 to {len(choices)}, 1 if you just press Enter:")
    chosen = choices[int(said) - 1] if said.isdecimal() and 1 <= int(said) <= len(choices) else choices[0]
    for name, value in chosen.settings:
        change(name, value)
    tell(f"notes: {chosen.told.partition(':')[0]}; {_HOW}")
    return True


def offered(config: "Config", bill: "Bill", dollars: float, servers: Sequence[LocalServer]) -> Iterator[Choice]:
    calls = f"about {counted(bill.calls, 'call')} for what is there" if bill.calls else "nothing is there yet"
    limit = f"never more than ${config.extractor.dollars_per_day:.2f} a day"
    yield Choice(
        told="rules on this machine: no calls, no cost, nothing leaves it; fewer notes, and plainer ones",
        settings=[("extractor.name", "offline")],
    )
    if shutil.which("claude") is not None:
        yield Choice(
            told=f"the `claude` command, on your plan and without a key: {calls}, ${dollars:.2f} at list prices; {limit}",
            settings=[("extractor.name", "claude-cli")],
        )
    if keys_beside(config.file).find("anthropic") is not None:
        yield Choice(
            told=f"Anthropic's API ({config.extractor.model}), with the key that is there: {calls}, ${dollars:.2f}; {limit}",
            settings=[("extractor.name", "anthropic")],
        )
    for server in servers:
        yield Choice(
            told=f"{server.name} on this machine ({server.model}): {calls}, no cost, nothing leaves it; slower",
            settings=[
                ("extractor.name", "openai"),
                ("extractor.base_url", server.address),
                ("extractor.openai_model", server.model),
                ("extractor.dollars_per_million_in", "0"),
                ("extractor.dollars_per_million_out", "0"),
            ],
        )
