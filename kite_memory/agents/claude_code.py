"""Hooks in Claude Code's ``settings.json``, and in those of agents that take hooks like its own: find, add and remove them.

The command that agents run at every prompt: how we write it, and how we recognise it.
"""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kite_memory.agents import settings_edit
from kite_memory.agents.settings_edit import (
    Array,
    Edit,
    Literal,
    Nothing,
    NotJson,
    Object,
    Plan,
    SettingsUnreadable,
    String,
    Value,
)
from kite_memory.errors import KiteError

_AWKWARD_ON_WINDOWS = re.compile(r"[\"%!$`^&|<>\r\n]")
_PLAIN_ON_WINDOWS = re.compile(r"[\w./:-]+", re.ASCII)
_UNQUOTED_ON_WINDOWS = re.compile(r"\"?[A-Za-z]:/")
_WORD_ON_WINDOWS = re.compile(r"\"([^\"]*)\"|(\S+)")
_BETWEEN_QUOTES = re.compile(r"\"[^\"]*\"|'[^']*'")
_GOES_ON = re.compile(r"[;|\n]|(?<!>)&(?![>\d])\s*\S")
_ENDS_WELL = re.compile(r"\s*(\|\||;)\s*(true|:|exit 0)\s*$")
_CALLS = "& "
"""What PowerShell needs before a quoted program, which it takes for a mere string otherwise."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


def fast_command(client: Path | None = None) -> str:
    """Return one line for the agent's shell: the interpreter itself, isolated and without site packages, on the client's file.

    Neither a shim nor a virtual environment's launcher is used: they cost more than the rest together. The client finds the package
    by its own path, so it needs neither.
    """
    client = client or Path(__file__).resolve().parent.parent / "hook_client.py"
    return shell_line((real_interpreter(), "-I", "-S", str(client)), windows=sys.platform == "win32")


def real_interpreter() -> str:
    """Return the interpreter below a virtual environment.

    Links are kept: package managers move what they point to at every update. Raises `KiteError` where none is found.
    """
    base: object = getattr(sys, "_base_executable", "")  # there is no public name for it
    for candidate in (base, sys.executable):
        if isinstance(candidate, str) and candidate and Path(candidate).is_file():
            return candidate
    raise KiteError("cannot find the Python interpreter that runs this", hint="reinstall kite-memory with a full Python")


def shell_line(words: Sequence[str], *, windows: bool) -> str:
    """Quote words for `sh`; on Windows for Git's bash and cmd alike: both take ``"C:/some path/x.exe"``.

    Raises `KiteError` for a path that cannot be quoted.
    """
    for word in words:
        if not word.isprintable() or (windows and _AWKWARD_ON_WINDOWS.search(word)):
            raise KiteError(f"a hook cannot name the path {word!r}", hint="install kite-memory under a plainer path")
    if not windows:
        return shlex.join(words)
    slashed = [word.replace("\\", "/") for word in words]
    return " ".join(word if _PLAIN_ON_WINDOWS.fullmatch(word) else f'"{word}"' for word in slashed)


def is_ours(command: str) -> bool:
    """Return whether the program that a shell line starts is our client: ``kmem-hook``, or an interpreter on its file.

    A line of the person's own that only mentions it is theirs, and one that goes on with another command that does something.
    """
    slashed = _ENDS_WELL.sub("", command.replace("\\", "/")).strip().removeprefix(_CALLS)
    if _GOES_ON.search(_BETWEEN_QUOTES.sub("", slashed)):
        return False
    try:
        words = shlex.split(slashed)
    except ValueError:
        words = []
    if _UNQUOTED_ON_WINDOWS.match(slashed) and "'" in slashed:  # an earlier version left an apostrophe unquoted
        words = [quoted or bare for quoted, bare in _WORD_ON_WINDOWS.findall(slashed)]
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if not words:
        return False
    program = PurePosixPath(words[0]).name.lower().removesuffix(".exe")
    if program == "kmem-hook":
        return True
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    return PurePosixPath(script).parts[-2:] == ("kite_memory", "hook_client.py")


EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolBatch")
"""What a hook returns before a tool runs reaches the model no sooner than what it returns once all tools of a reply have ended:
both come with the next request. So one hook for each reply that used tools, at its end, is the cheapest, and leaves the judge the
most time.
"""
OLDER_EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse")
"""For a Claude Code that does not know `PostToolBatch`: some versions ignore all settings then."""
_EVER = (EVENTS, OLDER_EVENTS, ("SessionStart", "UserPromptSubmit"))

OPENS_NOTES = ("Bash(kmem show:*)", "mcp__kite-memory__show_notes")
"""What an agent may run without asking: it only reads one's own notes, as the hook does."""

_KNOWS_BATCHES = (2, 1, 120)

TIMEOUT_SECONDS = 5
"""A hook over its limit is discarded and the prompt continues. Our client itself gives up after 0.3 s."""

_NEW = "{}\n"
_BLANK = "\ufeff \t\r\n"
_UNTOUCHED = "mend settings.json first; nothing was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    event: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Our hooks in a settings file.

    ``disabled``: the settings switch every hook off, ours included.
    """

    hooks: tuple[Hook, ...]
    missing: tuple[str, ...]
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One of our hooks in the text: ``hooks[event][group].hooks[index]``, or ``hooks[event][index]``."""

    hooks: Object
    event: int
    groups: Array
    group: int
    inner: Array
    index: int
    command: String

    @property
    def event_name(self) -> str:
        return self.hooks.members[self.event].key


def events_for(version: tuple[int, ...] | None) -> tuple[str, ...]:
    """Return the hook events for an agent's ``version``.

    An unknown version is treated as current, since the agent updates itself.
    """
    return OLDER_EVENTS if version is not None and version < _KNOWS_BATCHES else EVENTS


def plan_install(
    text: str | None,
    command: str,
    events: Sequence[str] = EVENTS,
    *,
    allow: Sequence[str] = (),
    comments: bool = False,
    flat: bool = False,
) -> Plan:
    """Plan settings in which each of ``events``, and no other, runs ``command`` once, and rules in ``allow`` need no asking.

    The rules come with the first hook: who has withdrawn one since is not given it again. Our older command is updated in place.
    Raises `SettingsUnreadable` for what is not JSON, or not shaped as the agent's settings are. ``comments``: the agent reads JSON
    with comments. ``flat``: an event lists its commands, not groups of them.
    """
    now = _NEW if text is None or not text.strip(_BLANK) else text
    opens = () if any(_ours(_root(now, comments))) else allow
    if flat and (root := _root(now, comments)).get("version") is None:
        now = settings_edit.add_member(now, root, "version", 1)
    for event in events:
        now = _wired(now, event, command, comments, flat)
    while astray := next((place for place in _ours(_root(now, comments)) if place.event_name not in events), None):
        now = _without(now, astray, comments)
    for rule in opens:
        now = _allowed(now, rule, comments)
    if now == text:
        return Nothing(because="the hooks are there already")
    also = "; the agent may open notes unasked" if opens else ""
    return Edit(before=text, after=now, because=f"{when_it_runs(events)}{also}")


_MOMENTS = (
    ("start", "when a session starts"),
    ("prompt", "with each prompt"),
    ("agent", "with each prompt"),
    ("tool", "after tools"),
)


def when_it_runs(events: Sequence[str]) -> str:
    """Return in words when an agent runs our hook: the names of its events do not say it to everyone."""
    moments = [next((moment for part, moment in _MOMENTS if part in event.lower()), f"on {event}") for event in events]
    return f"adds a hook, which gives the agent notes {' and '.join(filter(None, (', '.join(moments[:-1]), moments[-1])))}"


def plan_uninstall(text: str | None, earlier: Sequence[str | None] = (), *, comments: bool = False) -> Plan:
    """Plan settings without our hooks.

    ``earlier`` are the file's backups, latest first: if one of them plus our hooks is exactly this text, the file was not edited
    since, and that backup is restored to the byte.
    """
    if text is None or not text.strip(_BLANK):
        return Nothing(because="our hooks are not installed")
    places = tuple(_ours(_root(text, comments)))
    rules = _rules_of_ours((*reversed(earlier), text), comments)
    if not places and not rules:
        return Nothing(because="our hooks are not installed")
    because = "removes our hooks and nothing else"
    for old in earlier if places else ():
        if any(
            _became(old, text, places[0].command.value, events, allow, rules) for events in _EVER for allow in (OPENS_NOTES, ())
        ):
            return Edit(before=text, after=old, because=because)
    after = text
    while place := next(_ours(_root(after, comments)), None):
        after = _without(after, place, comments)
    for rule in rules:
        after = _disallowed(after, rule, comments)
    return Edit(before=text, after=after, because=because)


def status(text: str | None, events: Sequence[str] = EVENTS, *, comments: bool = False) -> Status:
    if text is None or not text.strip(_BLANK):
        return Status(hooks=(), missing=tuple(events))
    root = _root(text, comments)
    hooks = tuple(Hook(event=place.event_name, command=place.command.value) for place in _ours(root))
    wired = {hook.event for hook in hooks}
    switch = root.get("disableAllHooks")
    disabled = isinstance(switch, settings_edit.Literal) and switch.written == "true"
    return Status(hooks=hooks, missing=tuple(event for event in events if event not in wired), disabled=disabled)


def _became(old: str | None, text: str, command: str, events: Sequence[str], allow: Sequence[str], rules: Collection[str]) -> bool:
    """Return whether our hooks turn ``old`` into this text, and it holds neither hooks nor ``rules`` of ours."""
    try:
        match plan_install(old, command, events, allow=allow):
            case Edit(after=after) if after == text:
                return not status(old).hooks and not any(_holds(old, rule, False) for rule in rules)
            case _:
                return False
    except SettingsUnreadable:
        return False


def _root(text: str, comments: bool) -> Object:
    try:
        root = settings_edit.read(text, comments=comments)
    except NotJson as error:
        raise SettingsUnreadable(f"Claude Code's settings are not valid JSON: {error}", hint=_UNTOUCHED) from error
    if not isinstance(root, Object):
        raise SettingsUnreadable("Claude Code's settings are not a JSON object", hint=_UNTOUCHED)
    return root


def _ours(root: Object) -> Iterator[_Place]:
    """Yield our hooks. Whatever is not shaped like a hook is skipped."""
    hooks = root.get("hooks")
    if not isinstance(hooks, Object):
        return
    for event, member in enumerate(hooks.members):
        groups = member.value
        if not isinstance(groups, Array):
            continue
        for group, entry in enumerate(groups.items):
            if not isinstance(entry, Object):
                continue
            match entry.get("hooks"):
                case None:
                    places = [(groups, group, entry)]
                case Array() as inner:
                    places = [(inner, index, hook) for index, hook in enumerate(inner.items) if isinstance(hook, Object)]
                case _:
                    places = []
            for inner, index, hook in places:
                command = hook.get("command")
                if isinstance(command, String) and is_ours(command.value):
                    yield _Place(hooks=hooks, event=event, groups=groups, group=group, inner=inner, index=index, command=command)


def _wired(text: str, event: str, command: str, comments: bool, flat: bool) -> str:
    while True:
        match [place for place in _ours(_root(text, comments)) if place.event_name == event]:
            case []:
                return _added(text, event, command, comments, flat)
            case [only]:
                return text if only.command.value == command else settings_edit.replace(text, only.command, command)
            case [*_, double]:
                text = _without(text, double, comments)


def _added(text: str, event: str, command: str, comments: bool, flat: bool) -> str:
    group: dict[str, Value] = {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_SECONDS}]}
    if flat:
        group = {"command": command}
    root = _root(text, comments)
    match root.get("hooks"):
        case None:
            return settings_edit.add_member(text, root, "hooks", {event: [group]})
        case Object() as hooks:
            pass
        case _:
            raise _misshapen("hooks", "an object")
    match hooks.get(event):
        case None:
            return settings_edit.add_member(text, hooks, event, [group])
        case Array() as groups:
            return settings_edit.add_item(text, groups, group)
        case _:
            raise _misshapen(f"hooks.{event}", "a list")


def _without(text: str, place: _Place, comments: bool) -> str:
    """Remove the outermost element that holds nothing but this hook and no comment."""
    if len(place.inner.items) > 1 or settings_edit.holds_remarks(text, place.inner):
        return settings_edit.remove(text, place.inner, place.index)
    if len(place.groups.items) > 1 or settings_edit.holds_remarks(text, place.groups):
        return settings_edit.remove(text, place.groups, place.group)
    if len(place.hooks.members) > 1 or settings_edit.holds_remarks(text, place.hooks):
        return settings_edit.remove(text, place.hooks, place.event)
    root = _root(text, comments)
    hooks = root.member("hooks")
    return text if hooks is None else settings_edit.remove(text, root, hooks)


def _allowed(text: str, rule: str, comments: bool) -> str:
    root = _root(text, comments)
    match root.get("permissions"):
        case None:
            return settings_edit.add_member(text, root, "permissions", {"allow": [rule]})
        case Object() as permissions:
            pass
        case _:
            raise _misshapen("permissions", "an object")
    match permissions.get("allow"):
        case None:
            return settings_edit.add_member(text, permissions, "allow", [rule])
        case Array() as rules:
            return text if _at(rules, rule) is not None else settings_edit.add_item(text, rules, rule)
        case _:
            raise _misshapen("permissions.allow", "a list")


def _disallowed(text: str, rule: str, comments: bool) -> str:
    root = _root(text, comments)
    permissions = root.get("permissions")
    rules = permissions.get("allow") if isinstance(permissions, Object) else None
    if not isinstance(permissions, Object) or not isinstance(rules, Array) or (at := _at(rules, rule)) is None:
        return text
    if len(rules.items) > 1 or settings_edit.holds_remarks(text, rules):
        return settings_edit.remove(text, rules, at)
    holder: Object = permissions if len(permissions.members) > 1 or settings_edit.holds_remarks(text, permissions) else root
    member = holder.member("allow" if holder is permissions else "permissions")
    return text if member is None else settings_edit.remove(text, holder, member)


def _at(rules: Array, rule: str) -> int | None:
    return next((at for at, each in enumerate(rules.items) if isinstance(each, String) and each.value == rule), None)


def _holds(text: str | None, rule: str, comments: bool) -> bool:
    return bool(text and text.strip(_BLANK)) and _disallowed(text or "", rule, comments) != text


def _rules_of_ours(states: Sequence[str | None], comments: bool) -> frozenset[str]:
    """Return the rules that came with our hooks and still stand. ``states`` are the file before each change of ours, and as it is.

    Where the first state has our hooks already, the rules in it are taken for ours.
    """
    ours: frozenset[str] = frozenset()
    before: tuple[bool, frozenset[str]] | None = None
    for state in states:
        try:
            hooked = bool(status(state, comments=comments).hooks)
            held = frozenset(rule for rule in OPENS_NOTES if _holds(state, rule, comments))
        except SettingsUnreadable:
            continue
        match before:
            case None:
                ours = held if hooked else frozenset()
            case True, _:  # they come with the first hook and go with the last
                ours = ours & held if hooked else frozenset()
            case _, had:
                ours = ours & held | held - had
        before = hooked, held
    return ours


def _misshapen(what: str, expected: str) -> SettingsUnreadable:
    return SettingsUnreadable(f"`{what}` in Claude Code's settings is not {expected}", hint=_UNTOUCHED)


_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,6})(?:[-+].{0,60})?")
_LONGEST_MANIFEST = 1 << 16
_PACKAGE = "@anthropic-ai/claude-code"


def claude_version(command: str | None = None) -> tuple[int, ...] | None:
    """Return the version of the ``claude`` that a shell would start; ``None`` if it is not installed, or its version is unknown."""
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


_THEIRS = "Claude Code"
_THEIR_FILE = "settings.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookDialect:
    """How one agent's hooks differ from Claude Code's.

    ``timeout`` is a hook's limit in the agent's own unit; ``flat`` settings have none of ours. ``note`` is what a person must know
    besides.

    The command names the agent, so that the answer has that agent's format. ``comments`` may stand in its settings; ``powershell``
    runs its hooks on Windows.
    """

    name: str
    title: str
    file: str
    events: tuple[str, ...]
    timeout: int = 0
    note: str = ""
    comments: bool = False
    flat: bool = False
    powershell: bool = False

    def plan_install(self, text: str | None, command: str) -> Plan:
        try:
            calls = _CALLS if self.powershell and command.startswith('"') else ""
            ours = f"{calls}{command} --agent {self.name}"
            plan = plan_install(text, ours, self.events, comments=self.comments, flat=self.flat)
            timed = self._timed((plan.after if isinstance(plan, Edit) else text) or "")
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error
        if timed == (text or "") or not timed:
            return Nothing(because="the hooks are there already")
        because = plan.because if isinstance(plan, Edit) else "corrects the time limit of our hooks"
        return Edit(before=text, after=timed, because=f"{because}{self.note and '; '}{self.note}")

    def plan_uninstall(self, text: str | None, earlier: Sequence[str | None] = ()) -> Plan:
        try:
            plan = plan_uninstall(text, comments=self.comments)
            command = next((hook.command for hook in self.status(text).hooks), "").removesuffix(f" --agent {self.name}")
            command = command.removeprefix(_CALLS)
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error
        if isinstance(plan, Nothing):
            return plan
        for old in earlier:
            if self._became(old, text, command):
                return Edit(before=text, after=old, because=plan.because)
        return plan

    def status(self, text: str | None) -> Status:
        try:
            return status(text, self.events, comments=self.comments)
        except SettingsUnreadable as error:
            raise self._as_ours(error) from error

    def _became(self, old: str | None, text: str | None, command: str) -> bool:
        try:
            match self.plan_install(old, command):
                case Edit(after=after) if after == text:
                    return not self.status(old).hooks
                case _:
                    return False
        except SettingsUnreadable:
            return False

    def _timed(self, text: str) -> str:
        """Return the settings with our hooks' limits in this agent's unit."""
        while wrong := next((limit for limit in _limits(text, self.comments) if limit.written != str(self.timeout)), None):
            text = text[: wrong.start] + str(self.timeout) + text[wrong.end :]
        return text

    def _as_ours(self, error: SettingsUnreadable) -> SettingsUnreadable:
        hint = error.hint.replace(_THEIR_FILE, self.file)
        return SettingsUnreadable(str(error).replace(_THEIRS, self.title), hint=hint)


def _limits(text: str, comments: bool) -> Iterator[Literal]:
    """Yield the ``timeout`` of each of our hooks."""
    root = settings_edit.read(text, comments=comments) if text.strip(_BLANK) else None
    hooks = root.get("hooks") if isinstance(root, Object) else None
    for member in hooks.members if isinstance(hooks, Object) else ():
        for group in member.value.items if isinstance(member.value, Array) else ():
            inner = group.get("hooks") if isinstance(group, Object) else None
            for hook in inner.items if isinstance(inner, Array) else ():
                command = hook.get("command") if isinstance(hook, Object) else None
                limit = hook.get("timeout") if isinstance(hook, Object) else None
                if isinstance(command, String) and is_ours(command.value) and isinstance(limit, Literal):
                    yield limit
