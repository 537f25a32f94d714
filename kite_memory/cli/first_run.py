"""First run: the hooks of the agents that are there, who makes the notes, and what can be asked of the first ones.

Model servers on this machine are offered for making the notes.
"""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.agents.registry import Agent
from kite_memory.agents.settings_edit import Edit, diff
from kite_memory.cli import setup
from kite_memory.cli.backfilling import bill_of, unread
from kite_memory.cli.console import (
    choose,
    is_interactive,
    print_as_is,
    print_error,
    print_message,
    read_answer,
    short_path,
    width,
)
from kite_memory.cli.setup import change
from kite_memory.config import Config
from kite_memory.errors import KiteError
from kite_memory.keys import keys_beside
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.system.private_files import replace_file
from kite_memory.text.display import counted
from kite_memory.wiring.launch import link_commands

if TYPE_CHECKING:
    from kite_memory.distill.model_extractor import Bill
    from kite_memory.wiring.services import Services

_SECONDS = 0.4
_LARGEST = 200_000
_LONGEST_NAME = 120
_NO_WRITERS = ("embed", "bge-", "minilm", "rerank", "whisper", "clip")
"""Parts of names of models that generate no text."""

PORTS = (("Ollama", 11434), ("LM Studio", 1234), ("llama.cpp", 8080))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A local model server. ``address`` is as `OpenAiBackend` takes it; ``model`` is its first one that generates text."""

    name: str
    address: str
    model: str


def local_servers(ports: Sequence[tuple[str, int]] = PORTS) -> Iterator[LocalServer]:
    """Yield the servers that answer at once with a valid list of models; other programs may listen on such a port."""
    for name, port in ports:
        for model in _models(port):
            yield LocalServer(name=name, address=f"http://127.0.0.1:{port}/v1", model=model)
            break


def _models(port: int) -> list[str]:
    import http.client  # brings `email` along; only the first start asks

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read(_LARGEST)) if answer.status == 200 else None
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return []
    finally:
        connection.close()
    listed = content.get("data") if isinstance(content, dict) else None
    names = [each.get("id") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [
        name
        for name in names
        if isinstance(name, str)
        and 0 < len(name) <= _LONGEST_NAME
        and name.isprintable()
        and not any(part in name.lower() for part in _NO_WRITERS)
    ]


_BEST = 5
_KINDS = (NoteKind.PREFERENCE, NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT)
_TRIED = 8
"""Questions that are tried before one is proposed: a tenth of a second for each."""
_NAMED = re.compile(r"`(\w[\w./ -]{2,40}\w)`")
_LONGEST_NAMED = 3
_PUNCTUATION = ".,:;!?()[]\"'`“”"
_SAYS_LITTLE = frozenset(
    {"always", "never", "only", "really", "instead", "rather", "must", "whenever", "should", "with", "from", "that", "this"}
    | {"because", "mostly", "into", "when", "then", "than", "over", "uses", "does", "keep", "have", "been", "will", "there"}
)
_HOW = "`kmem config set extractor.name NAME` changes that"


def hook_agents(settings: Config, *, yes: bool) -> bool:
    """Add the hooks to every agent found, after one question. Return false if an agent's settings could not be read or written.

    A "no" is remembered for these agents; `kmem hooks install` asks again.
    """
    well = True
    declined = _declined(settings)
    edits: list[tuple[Agent, Edit]] = []
    found = [agent for agent in setup.agents(settings) if agent.name != "claude-code" or _has_claude_code(settings)]
    if not found:
        print_message(
            f"no agent was found that runs hooks; `{setup.install_line('claude-code')}` adds them to Claude Code's settings"
        )
    for agent in found:
        try:
            plan = setup.plan_install(agent, settings)
        except KiteError as error:
            print_error(error)
            well = False
            continue
        if not isinstance(plan, Edit):
            print_message(f"{agent.title}: {plan.because}")
        elif agent.name in declined and not yes:
            print_message(f"{agent.title}: no hooks, as you chose; `{setup.install_line(agent.name)}` adds them")
        else:
            print_message(f"{agent.title}, {short_path(agent.settings)}: {plan.because}")
            edits.append((agent, plan))
    if not edits:
        return well
    if not yes and not _agreed(edits):
        for agent, _ in edits:
            print_message(f"{agent.title}'s settings were left alone; `{setup.install_line(agent.name)} --yes` adds the hooks")
        if is_interactive():
            _decline(settings, declined | {agent.name for agent, _ in edits})
        return well
    for agent, edit in edits:
        try:
            setup.change_file(edit, agent.settings, settings)
        except KiteError as error:
            print_error(error)
            well = False
    print_message("restart agents that are running")
    return well


def _has_claude_code(settings: Config) -> bool:
    """Return whether Claude Code has been used or installed here. Otherwise its settings would be made for nothing."""
    return settings.claude_root.is_dir() or shutil.which("claude") is not None


def _agreed(edits: list[tuple[Agent, Edit]]) -> bool:
    """Ask whether to add the hooks. Enter means yes; ``d`` shows the changes and asks again. False without a terminal."""
    question = "Add these hooks? [Y/n, d shows the change]"
    while (answer := choose(question)) == "d":
        for agent, edit in edits:
            print_as_is(diff(edit, agent.settings).rstrip("\n"))
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
        print_message(
            f"note: `kmem` is not on your PATH, and no link could be made: {error.strerror}; run {sys.executable} -m kite_memory"
        )
        return
    if links:
        names, folder = " and ".join(f"`{link.name}`" for link in links), links[0].parent
        print_message(f"linked {names} into {short_path(folder)}; `kmem uninstall` removes the links")
        if shutil.which("kmem") is None:
            print_message(f"{short_path(folder)} is not on your PATH: open a new shell, and add it if `kmem` is still not found")


def first_summary(services: "Services") -> str:
    """Return up to five of the best notes, a question that they answer, and what to do next."""
    from kite_memory.vault.memory_page import best

    current = list(_current(services))
    chosen = best(current, _BEST)
    lines = ["Some of the notes:", *(line for note in chosen for line in _titled(note)), ""] if chosen else []
    lines.append("Try:")
    if command := _answered_question(chosen, current, services):
        lines.append(f"  {command}")
    lines += [
        "  kmem web      all notes and sessions, in the browser",
        "  kmem status   what was read, what waits, what it cost",
        'In your agent, say "remember that …", or ask why something is as it is.',
    ]
    return "\n".join(lines)


def _titled(note: Note) -> list[str]:
    """Return the whole title behind its kind, on as many lines as it needs."""
    indent = " " * 13
    return textwrap.wrap(
        note.title, max(40, width()), initial_indent=f"  {note.kind:10} ", subsequent_indent=indent, break_on_hyphens=False
    )


def _current(services: "Services") -> Iterator[Note]:
    for entry in services.vault.notes.entries():
        note = services.vault.notes.read(entry.path)
        if note is not None and note.kind in _KINDS and note.status is NoteStatus.ACCEPTED:
            yield note


def _answered_question(best: Sequence[Note], current: Sequence[Note], services: "Services") -> str:
    """Return a command with a question that a note answers: an answer without a model begins with it, and says why if asked why."""
    from kite_memory.vault.usefulness import explains, questions_about

    newest = sorted(current, key=lambda note: (note.created, note.path), reverse=True)
    asked = [(question, note) for note in (*best, *newest) for question in questions_about(note)][:_TRIED]
    general = [(_about(subject, note), note) for note in best for subject in _subjects(note)]
    for question, note in (*asked, *general):
        said = services.operations.perform("ask", {"question": question, "offline": True})["sentences"]
        of_note = [any(citation["reference"] == note.path for citation in each["citations"]) for each in said]
        answer = [each["text"] for each, own in zip(said, of_note, strict=True) if own]
        if any(of_note[:1]) and (not question.startswith("why ") or any(explains(text, note) for text in answer)):
            return f'kmem ask "{question}"'
    return ""


def _about(subject: str, note: Note) -> str:
    return f"what did we {'decide' if note.kind is NoteKind.DECISION else 'find out'} about {subject}?"


def _subjects(note: Note) -> Iterator[str]:
    """Yield what a title may be about: a name in backticks, and two neighbouring words that say something."""
    yield from (name for name in _NAMED.findall(note.title) if len(name.split()) <= _LONGEST_NAMED)
    words = [word.strip(_PUNCTUATION) for word in note.title.split()]
    telling = [word.isalpha() and (len(word) > 3 or word.isupper()) and not _is_little(word) for word in words]
    for place, (first, second) in enumerate(pairwise(words)):
        if telling[place] and telling[place + 1]:
            yield f"{first} {second}"
            return


def _is_little(word: str) -> bool:
    return word.lower() in _SAYS_LITTLE or word.endswith("ly")


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
    if is_interactive() and not yes:
        choices = list(offered(here.config, bill_of(here, unread(here)), list(local_servers())))
    if len(choices) < 2:
        if here.extractor.name == "offline":
            print_message(f"notes: rules on this machine; {_HOW}")
        return False
    print_message("Which model should make the notes?")
    for number, choice in enumerate(choices, 1):
        print_message(f"  {number}  {choice.description}")
    said = read_answer(f"Which? 1 to {len(choices)}, 1 if you just press Enter:")
    chosen = choices[int(said) - 1] if said.isdecimal() and 1 <= int(said) <= len(choices) else choices[0]
    for name, value in chosen.settings:
        change(name, value)
    print_message(f"notes: {chosen.description.partition(':')[0]}; {_HOW}")
    return True


def offered(config: "Config", bill: "Bill", servers: Sequence[LocalServer]) -> Iterator[Choice]:
    from kite_memory.wiring.models import prices_of

    def dollars(name: str) -> str:
        return f"${bill.dollars(prices_of(replace(config, extractor=replace(config.extractor, name=name)))):.2f}"

    calls = f"about {counted(bill.calls, 'call')} for what is there" if bill.calls else "nothing is there yet"
    limit = f"never more than ${config.extractor.dollars_per_day:.2f} a day"
    yield Choice(
        description="rules on this machine: no calls, no cost, nothing leaves it; fewer notes, and plainer ones",
        settings=[("extractor.name", "offline")],
    )
    if shutil.which("claude") is not None:
        yield Choice(
            description=f"the `claude` command, on your plan and without a key: {calls}, {dollars('claude-cli')} at list prices;"
            f" {limit}",
            settings=[("extractor.name", "claude-cli")],
        )
    if keys_beside(config.file).find("anthropic") is not None:
        yield Choice(
            description=f"Anthropic's API ({config.extractor.model}), with the key that is there: {calls}, {dollars('anthropic')};"
            f" {limit}",
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
