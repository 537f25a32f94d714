"""Checks of `kmem doctor` and of `kmem verify`."""

import os
import shlex
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kite_memory import config, paths
from kite_memory.cli.backend import daemon_runs, perform, services
from kite_memory.cli.console import of_the_machine, print_error, short_path
from kite_memory.config import Config
from kite_memory.errors import ConfigInvalid, KiteError, VaultReadOnly
from kite_memory.model.event import EvidenceReference
from kite_memory.system import sqlite
from kite_memory.text.display import counted
from kite_memory.vault.notefile import FOLDERS
from kite_memory.wiring.launch import multilingual_command, unreachable_commands

if TYPE_CHECKING:
    from kite_memory.agents.registry import Agent
    from kite_memory.model.event import Event
    from kite_memory.recall.recall import Recall
    from kite_memory.timeline.store import Timeline
    from kite_memory.vault import Vault
    from kite_memory.wiring.services import Services

Level = Literal["ok", "note", "problem"]

_LITTLE_SPACE = 200 << 20
_FEW_WATCHES = 8192
_FILES_LOOKED_AT = 2_000

BRING_BACK = "mount its disk or bring the notes back; if you deleted them, run `kmem verify --accept-missing`"
"""What to do about a vault from which many notes have disappeared."""

_TIMELINE = "timeline"
_NOT_THERE = "is not in the timeline"


class Finding(NamedTuple):
    level: Level
    what: str
    hint: str = ""


def examine() -> Iterator[Finding]:
    """Yield the findings. With an invalid configuration, only those of checks that do not depend on it."""
    try:
        settings = config.load()
    except ConfigInvalid as error:
        yield Finding("problem", str(error), error.hint)
        try:
            defaults = config.check(b"", Path(paths.config_file()))
        except ConfigInvalid:  # caused by the environment
            return
        yield from _as_far_as_it_goes(_machine(defaults))
        yield from _as_far_as_it_goes(_agents(defaults))
        yield from _as_far_as_it_goes(_servers(defaults))
        return
    for part in (
        _machine(settings),
        _agents(settings),
        _servers(settings),
        _extensions(settings),
        _daemon(settings),
        _service_checks(),
    ):
        yield from _as_far_as_it_goes(part)


def repair() -> None:
    """Put `kmem` on the PATH if it is not there, and correct agents' hooks and MCP servers that start a program which is gone."""
    from kite_memory.agents.mcp_entry import connections
    from kite_memory.agents.settings_edit import Edit, read_settings
    from kite_memory.cli import bridging, setup
    from kite_memory.cli.first_run import link_kmem

    link_kmem()
    settings = config.load_or_default()
    for agent in setup.hooked_agents(settings):
        try:
            hooks = agent.status(read_settings(agent.settings)).hooks
            if not any(_missing_parts(hook.command) for hook in hooks):
                continue
            plan = setup.plan_install(agent, settings)
            if isinstance(plan, Edit):
                setup.change_file(plan, agent.settings, settings)
        except KiteError as error:
            print_error(error)
    for each in connections(bridging.places(settings)):
        try:
            if _gone(each.dialect.command_in(read_settings(each.settings))):
                todo = bridging.steps(each, settings, remove=False, lines=False, project=None, with_commands=False)
                bridging.carry_out(each, todo, settings, yes=True, brief=True)
        except KiteError as error:
            print_error(error)


def _as_far_as_it_goes(part: Iterator[Finding]) -> Iterator[Finding]:
    """Yield a check's findings; an error that ends the check is one more finding, and does not stop the others."""
    try:
        yield from part
    except KiteError as error:
        yield Finding("problem", str(error), error.hint)
    except OSError as error:
        yield Finding("problem", *of_the_machine(error))
    except sqlite3.Error as error:
        yield Finding("problem", f"a database cannot be used: {error}", "`kmem verify` says which")


def unwritable(vault: Path) -> VaultReadOnly | None:
    """Return the error that writing notes would raise, as far as the system reports it beforehand."""
    for folder in (vault, *(vault / name for name in sorted(set(FOLDERS.values())))):
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            hint = f"see who owns it: ls -ld {shlex.quote(str(folder))}; or mount its disk for writing"
            return VaultReadOnly(f"notes cannot be written to {folder}", hint=hint)
    return None


def _machine(settings: Config) -> Iterator[Finding]:
    yield Finding("ok", f"Python {sys.version.split()[0]} at {short_path(Path(sys.executable))}")
    yield Finding(
        "ok", f"configuration: {short_path(settings.file)}{'' if settings.file.exists() else ' (does not exist: defaults apply)'}"
    )
    if settings.vault.is_dir() and (links := unreachable_commands(Path.home())):
        level: Level = "problem" if any(link.is_symlink() for link in links) else "note"
        yield Finding(level, "`kmem` is not on your PATH, where agents look for it", "`kmem doctor --repair` links it")
    if not hasattr(socket, "AF_UNIX"):
        yield Finding("note", "no unix sockets here: the daemon listens on 127.0.0.1 with a secret instead")
    if sys.platform == "win32":
        yield Finding("note", "file modes mean little on Windows: keep the vault and the state under your user folder")
    existing = next(folder for folder in (settings.state, *settings.state.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < _LITTLE_SPACE:
        yield Finding("problem", f"only {free / 1e6:.0f} MB free for {settings.state}", "make room: notes could not be written")
    if sys.platform != "win32" and (open_to_others := _open_to_others(settings.state)):
        yield Finding("problem", f"others can read {open_to_others}", f"chmod -R go= {shlex.quote(str(settings.state))}")
    if sys.platform == "linux" and not _namespaces_allowed():
        yield Finding(
            "note",
            "user namespaces are switched off here, so a service cannot be confined to its folders",
            "the rest of the confinement holds; `kmem service show` prints it",
        )
    if (allowed := _watches_allowed()) < _FEW_WATCHES:
        yield Finding(
            "note",
            f"only {allowed} file watches are allowed here",
            "raise fs.inotify.max_user_watches; until then some changes are seen minutes later",
        )


def _namespaces_allowed() -> bool:
    from kite_memory.daemon.service_units import namespaces_allowed

    return namespaces_allowed()


def _open_to_others(state: Path) -> Path | None:
    seen = 0
    for folder, folders, files in os.walk(state):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if path.exists() and not path.is_socket() and stat.S_IMODE(path.stat().st_mode) & 0o077:
                return path
        seen += len(files)
        if seen > _FILES_LOOKED_AT:
            folders.clear()
    return None


def _watches_allowed() -> int:
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return _FEW_WATCHES


def _agents(settings: Config) -> Iterator[Finding]:
    from kite_memory.agents.settings_edit import SettingsUnreadable, read_settings
    from kite_memory.cli import setup

    for agent in setup.hooked_agents(settings):
        try:
            status = agent.status(read_settings(agent.settings))
        except SettingsUnreadable as error:
            yield Finding("problem", str(error), error.hint)
            continue
        if status.disabled:
            yield Finding(
                "problem", f"{agent.title}: disableAllHooks is set in {agent.settings}", "our hooks cannot run until it is unset"
            )
        elif agent.has_plugin():
            yield _of_the_plugin(agent, bool(status.hooks))
        elif status.missing:
            yield Finding(
                "note", f"{agent.title}: no hook on {', '.join(status.missing)}", f"`{setup.install_line(agent.name)}` adds it"
            )
        else:
            yield Finding("ok", f"{agent.title}: hooks are installed in {short_path(agent.settings)}")
        for gone in sorted({missing for hook in status.hooks for missing in _missing_parts(hook.command)}):
            yield Finding("problem", f"{agent.title}: the hook starts {gone}, which is gone", "`kmem doctor --repair` corrects it")


def _of_the_plugin(agent: "Agent", also_in_settings: bool) -> Finding:
    from kite_memory.cli.setup import install_line

    if also_in_settings:
        hint = f"`{install_line(agent.name)}` removes those in the settings"
        return Finding("note", f"{agent.title}: hooks are installed twice, by the plugin and in {agent.settings}", hint)
    if not any(shutil.which("kmem-hook", path=path) for path in (None, str(Path.home() / ".local" / "bin"))):
        return Finding("problem", f"{agent.title}: the plugin does not find `kmem-hook` on the PATH", "`kmem up` links it")
    return Finding("ok", f"{agent.title}: the plugin runs the hooks")


def _extensions(settings: Config) -> Iterator[Finding]:
    from kite_memory import extensions
    from kite_memory.wiring import PROVIDERS

    for each in extensions.every(Path.home(), own_state=settings.state, taken=PROVIDERS) if settings.extensions else ():
        if each.problem:
            what = f"the {each.kind} {each.name} of {each.package} is not used: {each.problem}"
            yield Finding("problem", what, "update or remove that package, or set `extensions` to false")
        else:
            yield Finding("ok", f"extension: the {each.kind} {each.name} of {each.package} {each.version}")


def _servers(settings: Config) -> Iterator[Finding]:
    from kite_memory.agents.mcp_entry import connections
    from kite_memory.agents.settings_edit import SettingsUnreadable, read_settings
    from kite_memory.cli import bridging

    for each in connections(bridging.places(settings)):
        try:
            gone = _gone(each.dialect.command_in(read_settings(each.settings)))
        except SettingsUnreadable:  # maybe of an agent that does not even have our server
            continue
        for missing in gone:
            what = f"{each.title}: its MCP server starts {missing}, which is gone"
            yield Finding("problem", what, "`kmem doctor --repair` corrects it")


def _missing_parts(command: str) -> list[str]:
    """Return the files named by absolute paths in a hook's command that do not exist."""
    try:
        return _gone(shlex.split(command))
    except ValueError:
        return []


def _gone(words: Sequence[str]) -> list[str]:
    return [word for word in words if Path(word).is_absolute() and not Path(word).exists()]


def _daemon(settings: Config) -> Iterator[Finding]:
    from kite_memory.daemon.protocol import holder
    from kite_memory.daemon.service_units import outdated
    from kite_memory.wiring.daemon import service_of

    try:
        if daemon_runs():
            yield Finding("ok", "the daemon answers")
        elif (pid := holder(settings.state)) is not None:
            yield Finding("note", f"process {pid} is running here, but answers no prompts", "if it is no command of yours, end it")
        else:
            yield Finding("note", "the daemon is not running: prompts are given nothing", "`kmem up` starts it")
    except KiteError as error:
        yield Finding("problem", str(error), error.hint)
    if outdated(*service_of(settings)):
        what = "the service starts a program that is gone, or is confined to other folders than the settings name"
        yield Finding("problem", what, "`kmem service install` corrects it")


def _service_checks() -> Iterator[Finding]:
    with services() as here:
        yield from _service_findings(here)


_PROMPTS_READ = 300


def _languages(embedder: str, prompts: Sequence[str]) -> Iterator[Finding]:
    """Suggest the multilingual embedder if a third of the recent prompts whose language is recognised are not English."""
    from kite_memory.text.stems import language_of

    recognised = [language for prompt in prompts if (language := language_of(prompt))]
    others = sum(language != "en" for language in recognised)
    if embedder == "local" and others >= _FEWEST_OTHERS and 3 * others >= len(recognised):
        install = f"`{command}`, then " if (command := multilingual_command()) else ""
        what = f"{others} of {len(recognised)} recent prompts are not in English, which the built-in embedder does not understand"
        yield Finding("note", what, f"{install}`kmem config set embedder.name multilingual`")


_FEWEST_OTHERS = 5


def _service_findings(here: "Services") -> Iterator[Finding]:
    from kite_memory.distill.scheduler import BUDGET_SPENT

    status = perform("status") if daemon_runs() else here.status.status()  # only the daemon knows what it waits for
    extractor, index = status["extractor"], status["index"]
    yield Finding("ok", f"extractor: {extractor['name']}")
    if waits := extractor["waiting_for"]:
        passes = waits == BUDGET_SPENT or not extractor["hint"]
        yield Finding("note" if passes else "problem", f"extractor: {waits}", extractor["hint"])
    if extractor["refused_chunks"]:
        yield Finding("note", f"refused by the extractor, so without notes: {counted(extractor['refused_chunks'], 'chunk')}")
    for reason, count in extractor["set_aside"].items():
        yield Finding("note", f"set aside: {counted(count, 'chunk')} ({reason})", "`kmem backfill --retry` asks again")
    here.embedder.embed(["a"], "query")
    yield Finding("ok", f"embedder: {index['embedder']}, {counted(index['rows'], 'vector')}")
    yield from _languages(here.embedder.space.name, here.timeline.events.recent_prompts(_PROMPTS_READ))
    if index["stale"]:
        yield Finding("note", f"not embedded yet: {counted(index['stale'], 'passage')}", "the daemon does that")
    for source in status["sources"]:
        if source["there"] or source["events"]:
            read = f"{counted(source['sessions'], 'session')}, {counted(source['events'], 'event')}"
            yield Finding("ok", f"{source['provider']}: {read}")
    if here.vault.scanner.frozen:
        yield Finding(
            "problem",
            f"the vault is frozen: {here.vault.scanner.frozen}",
            BRING_BACK,
        )
    elif not here.vault.root.is_dir():
        yield Finding("note", f"there is no vault at {here.vault.root} yet", "`kmem up` makes one")
    else:
        yield Finding("ok", f"vault: {short_path(here.vault.root)}, {counted(status['notes']['total'], 'note')}")
        if refusal := unwritable(here.vault.root):
            yield Finding("problem", str(refusal), refusal.hint)
    yield from _usage_findings(status["helping"])
    for problem in status["problems"]:
        if not here.vault.scanner.frozen or here.vault.scanner.frozen not in problem["reason"]:
            yield Finding("note", f"{problem['reason']} ({problem['count']}), first in {problem['where']}")


def _usage_findings(usage: dict[str, Any]) -> Iterator[Finding]:
    shown = f"{counted(usage['shown'], 'note')} shown in four weeks"
    known = usage["used"] + usage["ignored"]
    rest = "; unknown for the rest" if known < usage["shown"] else ""
    used = f"the agent used {usage['used']} of {counted(known, 'note')} ({usage['shown']:,} shown in four weeks{rest})"
    match usage["verdict"]:
        case "nothing shown":
            return
        case "seldom":
            ignored = ", ".join(shlex.quote(note["path"]) for note in usage["most_ignored"] if note["path"])
            hint = "`kmem config set recall.dial quiet` shows less"
            if ignored:
                hint += f"; `kmem mute NOTE` keeps one back, first of all {ignored}"
            yield Finding("note", f"it seldom helps: {used}", hint)
        case "yes":
            yield Finding("ok", f"it helps: {used}")
        case _:
            yield Finding("ok", f"too early to see whether it helps: {shown}, {usage['used']} used, {usage['ignored']} ignored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Comparison of timeline, index and vault. ``saved`` returns the events that a note of a saved conversation cites."""

    timeline: "Timeline"
    recall: "Recall"
    vault: "Vault"
    saved: "Callable[[EvidenceReference], Sequence[Event]]"

    def findings(self) -> tuple[list[dict[str, str]], str]:
        """Return what is wrong, and what to do about it."""
        root = self.vault.root
        if frozen := self.vault.scanner.frozen:
            return [{"where": str(root), "what": frozen}], BRING_BACK
        if not root.is_dir():
            return [{"where": str(root), "what": "there is no vault"}], "`kmem up` makes one"
        found = list(self.damage())
        if any(each["where"] == _TIMELINE or each["what"].endswith(_NOT_THERE) for each in found):
            return (
                found,
                "`kmem rebuild --timeline` rebuilds it from the transcripts that still exist; repair damaged notes in an editor",
            )
        return found, "`kmem rebuild` rebuilds the index; repair damaged notes in an editor"

    def damage(self) -> Iterator[dict[str, str]]:
        """Yield damaged files, dead links, and evidence that does not exist."""
        for line in self.timeline.damage():
            yield {"where": _TIMELINE, "what": line}
        for problem in (*self.recall.index.verify(), *self.vault.notes.problems()):
            yield {"where": problem.file, "what": problem.reason}
        for link in self.vault.notes.unresolved_links():
            yield {"where": link.path, "what": f"[[{link.target}]] leads nowhere"}
        for entry in self.vault.notes.entries():
            note = self.vault.notes.read(entry.path)
            for text in note.evidence if note is not None else ():
                reference = EvidenceReference.parse(text)
                if reference is None or not (self.timeline.events.evidence(reference) or self.saved(reference)):
                    yield {"where": entry.path, "what": f"evidence {text} {_NOT_THERE}"}


def unlike_their_checksums(state: Path) -> list[dict[str, str]]:
    """Return the files that were not written to since they were closed, and yet differ from their checksums."""
    return [{"where": name, "what": _unlike_its_checksum(state / name)} for name in sqlite.broken(state)]


def _unlike_its_checksum(path: Path) -> str:
    if os.access(path, os.F_OK) and not os.access(path, os.R_OK):
        return "it cannot be read, so it cannot be compared with its checksum"
    return "it has changed since it was closed, although nothing was written to it"


def damaged_databases(state: Path) -> Iterator[dict[str, str]]:
    """Yield what SQLite finds wrong with the databases that have no check of their own."""
    elsewhere = {state / "timeline.sqlite", *state.glob("timeline.*.sqlite")}
    for path in sorted({*state.glob("*.sqlite"), *state.glob("index/*.sqlite")} - elsewhere):
        try:
            with closing(sqlite.connect_to_look(path, timeout=5.0)) as database:
                for (line,) in database.execute("PRAGMA integrity_check(20)"):
                    if line != "ok":
                        yield {"where": path.name, "what": line}
        except sqlite3.Error as error:
            yield {"where": path.name, "what": str(error)}
