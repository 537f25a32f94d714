"""First run, and reading of existing transcripts, shared by `kmem up` and `kmem backfill`.

A first run asks about the agents' settings and about who makes the notes, for which model servers on this machine are looked
for.
"""

import json
import math
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.agents.registry import Agent
from kite_memory.agents.settings_edit import Edit, diff
from kite_memory.cli import setup
from kite_memory.cli.console import (
    choose,
    is_interactive,
    print_as_is,
    print_error,
    print_message,
    print_warning,
    read_answer,
    short_path,
    stderr_console,
    width,
)
from kite_memory.cli.setup import change
from kite_memory.config import Config
from kite_memory.distill.extractor import NoKeyExtractor
from kite_memory.distill.scheduler import ChunkHandled, Idle
from kite_memory.errors import KiteError, VaultMissing
from kite_memory.keys import keys_beside
from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.sources import Source
from kite_memory.system.private_files import replace_file
from kite_memory.text.display import counted
from kite_memory.wiring.launch import link_commands

if TYPE_CHECKING:
    from kite_memory.app.backlog import Bill
    from kite_memory.app.survey import PassedOver
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
    for agent in setup.agents(settings):
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
    print_message("an agent that is running already gets them when it is started again")
    return well


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


Unread = Sequence[tuple[Source, Path, int]]

_WORTH_WAITING = 30.0
"""Seconds that a user at the terminal may be kept waiting for a busy model."""


def unread(services: "Services", *, source: str = "") -> Unread:
    return [each for each in services.pipeline.unread() if source in ("", each[0].provider)]


def has_batches(services: "Services") -> bool:
    from kite_memory.wiring.models import batches_of

    return batches_of(services.config, keys_beside(services.config.file)) is not None


def announce(services: "Services", found: Unread, *, distill: bool, batch: bool = False) -> None:
    """Print how much there is to read, and what notes of it would cost."""
    if not found:
        return
    size = sum(length for _, _, length in found)
    print_message(
        f"{counted(len(found), 'transcript')}, {f'{size / 1e6:.1f} MB' if size >= 1e5 else f'{size / 1e3:.1f} kB'} to read"
    )
    if distill:
        _print_cost(services, found, (), batch=batch)


def announce_passed_over(services: "Services", found: "Sequence[PassedOver]", *, batch: bool = False) -> None:
    """Print what an earlier ``--since`` left without notes, and what they would cost."""
    if found:
        print_message(f"{_sessions(found)} passed over before, now to make notes of")
        _print_cost(services, (), found, batch=batch)


def announce_the_rest(services: "Services", found: Unread, *, source: str, since: datetime | None) -> None:
    """Print what is read already but has no notes yet, and what a backfill would leave so."""
    if waiting := services.pipeline.open_count():
        print_message(f"{counted(waiting, 'session')} without notes yet")
    if waiting := services.outbox.states().get("waiting", 0):
        print_message(f"{counted(waiting, 'chunk')} waiting to become notes")
    if since is None:
        return
    if older := [path for _, path, _ in found if path.exists() and path.stat().st_mtime < since.timestamp()]:
        print_message(
            f"{counted(len(older), 'transcript')} of them would be read but passed over: nothing was added since {since:%Y-%m-%d}"
        )
    left = services.pipeline.passed_over(provider=source)
    taken_up = services.pipeline.passed_over(since=since, provider=source)
    if left := [each for each in left if each not in taken_up]:
        print_message(f"{_sessions(left)} would stay passed over")


def _sessions(found: "Iterable[PassedOver]") -> str:
    return counted(len({(each.provider, each.session) for each in found}), "session")


def _print_cost(services: "Services", found: Unread, passed_over: "Sequence[PassedOver]", *, batch: bool) -> None:
    if not services.costs:
        return
    bill = bill_of(services, found, passed_over)
    if bill.calls:
        from kite_memory.wiring.models import prices_of

        prices, limit = prices_of(services.config), services.config.extractor.dollars_per_day
        dollars = bill.dollars(prices.halved() if batch else prices)
        print_message(f"notes from them: about {counted(bill.calls, 'call')}, ${dollars:.2f}, at most ${limit:.2f} a day")


def bill_of(services: "Services", found: Unread, passed_over: "Sequence[PassedOver]" = ()) -> "Bill":
    """Return the cost of notes for everything without any, for the model that would be asked."""
    from kite_memory.app.backlog import backlog
    from kite_memory.wiring.models import chunk_policy, tariff_of

    policy = chunk_policy(services.config, costs=True)
    ahead = backlog(
        found, passed_over, pipeline=services.pipeline, timeline=services.timeline, outbox=services.outbox, policy=policy
    )
    return ahead.bill(tariff_of(services.config))


def backfill(
    services: "Services",
    *,
    source: str = "",
    since: datetime | None = None,
    distill: bool = True,
    spend: bool = False,
    queue_skipped: bool = True,
    batch: bool = False,
) -> bool:
    """Read events, which costs nothing, and make notes where that is free or ``spend`` is set.

    Otherwise the daemon makes the notes within its daily budget. With ``queue_skipped``, sessions passed over before get notes too,
    as far back as ``since``. With ``batch``, everything that waits goes in batches. Return whether the vault's pages could be
    written.
    """
    services.outbox.recover()
    found = unread(services, source=source)
    announce(services, found, distill=distill, batch=batch)
    read_events(services, found)
    read_events(services, unread(services, source=source))  # also in the folders of the sessions just read
    if distill:
        services.pipeline.open_sessions(skip_before=since, provider=source)
        if queue_skipped:
            passed_over = services.pipeline.passed_over(since=since, provider=source)
            announce_passed_over(services, passed_over, batch=batch)
            services.pipeline.queue_skipped(passed_over)
        services.pipeline.form_chunks()
        if left := services.pipeline.passed_over(provider=source):
            print_message(f"{_sessions(left)} passed over as too old; `kmem backfill` without --since makes notes of them too")
    with working("indexing") as progress:
        services.pipeline.compare_vault(progress=progress)
    if distill and batch:
        services.outbox.batches.mark()
    waiting = services.outbox.states().get("waiting", 0)
    if distill and (spend or not services.costs):
        _distil(services)
        if batched := services.outbox.batches.chunks():
            print_message(f"{counted(batched, 'chunk')} in a batch; the daemon takes the answers, and so does `kmem backfill`")
        return _bring_pages_up_to_date(services)
    if distill and isinstance(services.extractor, NoKeyExtractor):
        print_warning(KiteError(services.extractor.missing_key.reason, hint=services.extractor.missing_key.hint))
    elif distill and waiting:
        print_message("the daemon will make notes from them, within its daily budget")
    elif not distill:
        print_message(_WITHOUT_NOTES)
    return True


def sum_up(services: "Services") -> bool:
    """Print what is stored now, and return whether there is anything."""
    lines = list(_stored(services))
    for line in lines:
        print_message(line)
    return bool(lines)


def _stored(services: "Services") -> Iterator[str]:
    counts = [count for count in services.timeline.files.counts() if count.sessions]
    for count in counts:
        problems = f", {counted(count.problems, 'problem')}" if count.problems else ""
        files = f" in {count.files:,} files, for one may go on in several" if count.files > count.sessions else ""
        yield f"{count.provider}: {counted(count.sessions, 'session')}{files}, {counted(count.events, 'event')}{problems}"
    if counts:
        notes = sum(bool(note.kind) and not note.problem for note in services.vault.known.all())
        yield f"{counted(notes, 'note')} in {short_path(services.config.vault)}"


def answer_to_keep(services: "Services", *, distilled: bool) -> tuple[list[str], float] | None:
    """Return what the backfill that has just ended printed last, and until when that holds.

    ``None`` if another one would have something to do, or to report.
    """
    from kite_memory.vault.scanning import Comparison  # imports YAML

    with services.vault.lock:
        comparison = services.vault.scanner.compare()
    lines = list(_stored(services))
    if comparison != Comparison(problems=comparison.problems) or not lines:
        return None
    if not distilled:
        return [_WITHOUT_NOTES, *lines], math.inf
    outbox, pipeline = services.outbox, services.pipeline
    unwritten = any(outbox.states().get(state) for state in ("waiting", "asked", "answered")) or outbox.batches.chunks()
    if unwritten or pipeline.open_count() or pipeline.passed_over() or isinstance(services.extractor, NoKeyExtractor):
        return None
    if services.recall.memory.shown_open(datetime.now(UTC)):
        return None
    return lines, services.recall.index.columns().next_expiry(time.time())


_WITHOUT_NOTES = "no notes were made: `kmem backfill` makes them, and so does the daemon"


def read_events(services: "Services", found: Unread) -> None:
    with working("reading") as show_progress:
        total, done = sum(size for _, _, size in found), 0

        def advance(size: int) -> None:
            nonlocal done
            done += size
            show_progress(done, total)

        services.pipeline.ingest_many([(source, path) for source, path, _ in found], progress=advance)


def _distil(services: "Services") -> None:
    with working("making notes") as show_progress:
        total, done = services.outbox.states().get("waiting", 0), 0
        while True:
            match services.pipeline.distil():
                case ChunkHandled():
                    done += 1
                    show_progress(done, total)
                case Idle(until=None):
                    return
                case Idle(until=float(until), reason=reason, hint=hint):
                    if (pause := until - time.time()) > _WORTH_WAITING:
                        print_warning(KiteError(f"stopped for now: {reason}", hint=hint))
                        return
                    time.sleep(max(0.0, pause))


def _bring_pages_up_to_date(services: "Services") -> bool:
    """Update the vault's review page and page of contents, which otherwise the daemon does. Return whether both could be."""
    well = True
    for page in ("review_page", "synthesize"):
        try:
            services.operations.perform(page, {})
        except VaultMissing:
            return False  # reported when the vault was opened
        except KiteError as error:
            print_warning(error)
            well = False
    return well


@contextmanager
def working(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar with the estimated time left if a user watches and there is something to do."""
    with ExitStack() as shown:
        shows: list[Callable[[int, int], None]] = []

        def show_progress(done: int, total: int) -> None:
            if not shows:
                shows.append(_bar(title, shown))
            shows[0](done, total)

        yield show_progress


def _bar(title: str, shown: ExitStack) -> Callable[[int, int], None]:
    console = stderr_console()
    if not console.is_terminal:
        return lambda done, total: None
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    progress = shown.enter_context(Progress(*columns, console=console))
    task = progress.add_task(title, total=None)
    return lambda done, total: progress.update(task, completed=done, total=total)
