"""Advice to an agent as it acts: one line, rarely, when this project's history knows the command or the failure."""

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import takewhile
from threading import Lock

import numpy as np

from kite_memory.model.hit import Fix, Fixes, Hit, Injection
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall import search
from kite_memory.recall.cautions import NoteWarnings, activities, concerns, heeded, read, shows
from kite_memory.recall.index import Index
from kite_memory.recall.rendering import block, shortened
from kite_memory.recall.select import Delivery, Selection, deliver, silence
from kite_memory.recall.session_memory import Occasion, SessionMemory, ShownNote
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip_line
from kite_memory.text.error_signature import normal, signatures
from kite_memory.text.quoting import quoted
from kite_memory.text.shell import LOOKERS, Action, Invocation, invocations, purposes, simple_commands

_REPAIRS = lazy_regex(
    r"\b(?:install|ci|sync|tidy|generate|codegen|download|up|start|restart|login|auth|migrate|upgrade|update|init|prune|clean|trust|config"
    r"|bootstrap|setup|unlock|read-tree|fetch|pull|chmod|kill|pkill|killall|brew|apt|apt-get|submodule|gc|repair|doctor|cache)\b"
)
_ROUTINE_REMEDY = lazy_regex(
    r"git (?:add|commit|push|log|diff|status|show|branch|rev-parse|merge-base)|gh [a-z]+ (?:view|list|checks|comment|create)"
)
_SETTINGS = lazy_regex(
    r"(?:^|[/\\])(?:[\w.-]*(?:config|settings|rc)[\w.-]*|\.env[\w.-]*|Dockerfile[\w.-]*|Makefile|go\.(?:mod|sum|work)|package(?:-lock)?\.json"
    r"|[\w.-]+\.(?:toml|ya?ml|ini|cfg|conf|lock|properties|plist|tool-versions)|requirements[\w.-]*\.txt|Gemfile|Cargo\.toml|\.[\w-]+)$",
    re.IGNORECASE,
)
_ABOUT_CODE = lazy_regex(
    r"--- FAIL|FAILED |FAIL: |not ok|rspec|test .* FAILED|CONFLICT"
    r"|.*(?:no such file or directory|imported and not used|undefined:)",
    re.IGNORECASE,
)
"""Errors that depend on the code of the day: next time they have another cause."""
_ONLY_READ = LOOKERS - {"export", "set"}
_PREPARERS = "export set source . mkdir cp ln touch sed echo printf nvm fnm pyenv rbenv asdf direnv corepack sleep"
_PREPARING = frozenset(_PREPARERS.split())
_DESTROYS = lazy_regex(
    r"(?<![\w-])(?:rm|rmdir|shred|truncate|dd)(?![\w-])|\bgit\b.{0,200}?\s(?:stash|reset|clean|checkout|switch|restore|push|rebase)\b"
    r"|>(?!\s*/dev/null|&)"
)
_SHOWN = 100
_ALIKE = 0.5


def remedy(fix: Fix, command: str) -> str:
    """Return advice for an agent whose ``command`` has just failed in the same way; empty if the fix has nothing to teach."""
    if fix.said or (fix.files and not all(_SETTINGS.search(file) for file in fix.files)):
        return ""
    first = _done_first(fix)
    steps = [step for step in (*fix.steps, *first) if not _is_routine(step)]
    if steps:
        repairs = [step for step in steps if (_prepares(step, fix) if step in first else _REPAIRS.search(step))]
        if len(repairs) < len(steps):
            return ""
        return f"The same failure went away after {' and '.join(_shown(step) for step in repairs[-2:])}"
    if fix.files:
        names = ", ".join(re.split(r"[/\\]", file)[-1] for file in fix.files[:3])
        return f"The same failure went away with a change to {names}"
    if _ABOUT_CODE.match(fix.signature):
        return ""
    failed, worked = _core(fix.failed, fix.worked), _core(fix.worked, fix.failed)
    if failed is None or worked is None or _likeness(failed, _core(command, fix.failed)) < _ALIKE:
        return ""
    if failed == worked:
        return "The same failure went away when the same command was run once more"
    return f"The same failure earlier; then this worked: {_shown(_spelled(worked))}" if _likeness(failed, worked) >= _ALIKE else ""


def _done_first(fix: Fix) -> list[str]:
    """Return what the line that worked did before the command that had failed, and the failed line did not."""
    common = purposes(fix.worked) & purposes(fix.failed)
    failed = {each.words for each in simple_commands(fix.failed)}
    before = takewhile(lambda each: common.isdisjoint(one.purpose for one in each.invocations), simple_commands(fix.worked))
    return [
        " ".join(each.words) + "".join(f" > {file}" for file in each.outputs)
        for each in before
        if each.words not in failed and (each.outputs or any(one.program not in _ONLY_READ for one in each.invocations))
    ]


def _prepares(step: str, fix: Fix) -> bool:
    """Return whether what was done first can be advised to another: it prepares something, and destroys nothing."""
    if _DESTROYS.search(step):
        return False
    programs = {each.program for each in invocations(step)}
    return bool(_REPAIRS.search(step)) or (programs <= _PREPARING and not _ABOUT_CODE.match(fix.signature))


def _is_routine(step: str) -> bool:
    done = purposes(step)
    return bool(done) and all(_ROUTINE_REMEDY.fullmatch(purpose) for purpose in done)


def _core(line: str, other: str) -> Invocation | None:
    """Return the invocation in a line whose program the other line runs too."""
    common = purposes(line) & purposes(other)
    return next((each for each in invocations(line) if each.purpose in common), None)


def _likeness(one: Invocation, other: Invocation | None) -> float:
    if other is None:
        return 0.0
    mine, theirs = {*one.words, *one.flags}, {*other.words, *other.flags}
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0


def _spelled(command: Invocation) -> str:
    return " ".join(
        (
            *command.settings,
            command.program,
            *command.words[: command.depth],
            *sorted(command.flags),
            *command.words[command.depth :],
        )
    )


def _shown(command: str) -> str:
    line = clip_line(command, _SHOWN).replace("`", "'")
    return f"`{line}`"


_LINE_TOKENS = 60
_MOST_REMARKS = 6
"""Most lines in a session: an agent that gets one at every step ignores them all."""
_CANDIDATES = 24
_LINES = 80
_ASKED = 600
_READINGS = 4_096
_WORDS_BESIDE = 3
"""A quotation of fewer words counts as the failure only if an error line contains it."""
_LOOKING = frozenset(
    {"cd", "echo", "cat", "ls", "head", "tail", "wc", "pwd", "grep", "rg", "find", "true", "which", "sleep", "test"}
)
_ROUTINE = lazy_regex(
    r"(?:\w+: )?(?:error: )?(?:string to replace not found|file has not been read yet|file has been modified since"
    r"|file does not exist|no changes to make|found \d+ matches|path does not exist|eisdir|file content \()",
    re.IGNORECASE,
)
"""Everyday messages of an agent's own tools, which every agent can handle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A possible line. ``name`` identifies it among what the session was shown; ``why`` is for the log. ``hit``'s note is shown as
    one line.
    """

    name: str
    why: str
    hit: Hit
    known: bool
    """Whether it is a note in the vault; otherwise it comes from the timeline."""


class ToolAdvice:
    """Advice for tool calls. Thread-safe; raises nothing."""

    def __init__(self, *, index: Index, memory: SessionMemory, fixes: Fixes | None = None) -> None:
        self._index = index
        self._memory = memory
        self._fixes = fixes
        self._lock = Lock()
        self._readings: dict[tuple[str, int], tuple[Note, NoteWarnings]] = {}

    def act(self, action: Action, now: datetime, *, branch: str = "", delivery: Delivery | None = None) -> Injection:
        """Return the line for this action, claimed for its session and logged; usually none.

        With a ``branch``, notes of other unmerged branches are omitted. With a ``delivery``, claiming and logging happen once it
        arrives.
        """
        return deliver(partial(self._selected, action, now, branch), self._memory, delivery)

    def _selected(self, action: Action, now: datetime, branch: str) -> Selection:
        if action.session and self._memory.report.times(action.session, "action") >= _MOST_REMARKS:
            return Selection(injection=silence("enough was said in this session"))
        shown = self._memory.shown(action.session) if action.session else frozenset()
        remarks = self._after(action, shown, now, branch) if action.error else self._before(action, shown, now, branch)
        remark = next((each for each in remarks if not (each.known and self._memory.is_worn_out(each.name, now))), None)
        if remark is None:
            return Selection(injection=silence("nothing is known of this action"))
        rendered = block([_as_line(remark.hit)])
        if not rendered.text:
            return Selection(injection=silence("no room for a line"))
        hits = (remark.hit,) if remark.known else ()
        return Selection(
            injection=Injection(block=rendered.text, hits=hits, reason=remark.why, tokens=rendered.tokens),
            occasion=_occasion(action, remark, now),
            claimed=(remark.name,),
        )

    def _before(self, action: Action, shown: Collection[str], now: datetime, branch: str) -> Iterator[Remark]:
        commands = invocations(action.command)
        relevant = [command for command in commands if command.program not in _LOOKING]
        folder = _folder(commands, action.cwd)
        for note, reading in self._notes(_asked_by(relevant, action), action, shown, now, branch):
            for caution in reading.cautions:
                if any(concerns(caution, command, folder=folder) for command in relevant) and not heeded(caution, commands):
                    yield _said_by(note, caution.says, "speaks of this command")

    def _after(self, action: Action, shown: Collection[str], now: datetime, branch: str) -> Iterator[Remark]:
        named, beside = _failing_lines(action.error)
        if not named and not beside:
            return
        for note, reading in self._notes(" ".join((*named, *beside))[:_ASKED], action, shown, now, branch):
            for symptom in reading.symptoms:
                if shows(symptom, named) or (symptom.words >= _WORDS_BESIDE and shows(symptom, beside)):
                    yield _said_by(note, symptom.says, "quotes the failure")
        if (fixed := self._fixed(action, shown)) is not None:
            yield fixed

    def _fixed(self, action: Action, shown: Collection[str]) -> Remark | None:
        raised = [signature for signature in signatures(action.error) if f"fix:{signature}" not in shown]
        if self._fixes is None or not raised:
            return None
        fix = self._fixes.fix(project=action.project, session=action.session, signatures=raised, command=action.command)
        said = remedy(fix, action.command) if fix else ""
        return _fix_remark(fix, said) if fix and said else None

    def _notes(
        self, asked: str, action: Action, shown: Collection[str], now: datetime, branch: str
    ) -> Iterator[tuple[Note, NoteWarnings]]:
        """Yield notes in force, of this project or of none, that share words and were not shown yet."""
        if not asked:
            return
        signals = self._index.signals(asked, meaning=False)
        columns = signals.columns
        if not len(columns):
            return
        project = self._index.project_number(action.project)
        holding = search.holding(self._index, columns, project=project, branch=branch, session=action.session)
        mask = search.spoken(columns, now.timestamp(), holding) & holding & search.within(columns, project)
        scores = np.where(mask, signals.bm25, 0.0)
        rows = np.flatnonzero(scores > 0)
        rows = rows[np.argsort(-scores[rows], kind="stable")[:_CANDIDATES]]
        read = self._read(columns.generation[0], columns.notes["number"][rows].tolist())
        # Preferences and important notes come before notes that share more words.
        read.sort(key=lambda pair: (pair[0].kind is not NoteKind.PREFERENCE, -pair[0].importance))
        for note, reading in read:
            if note.name not in shown:
                yield note, reading

    def _read(self, catalogue: str, numbers: Sequence[int]) -> list[tuple[Note, NoteWarnings]]:
        """Return notes with their readings, cached by number: within one catalogue a changed note gets a new number."""
        with self._lock:
            held = {number: known for number in numbers if (known := self._readings.get((catalogue, number)))}
        for number, note in self._index.notes([number for number in numbers if number not in held]).items():
            held[number] = (note, read(note))
        with self._lock:
            if len(self._readings) > _READINGS:
                self._readings.clear()
            self._readings.update({(catalogue, number): known for number, known in held.items()})
        return [held[number] for number in numbers if number in held]


def _folder(commands: Sequence[Invocation], cwd: str) -> str:
    """Return the folder a line runs its commands in, following an initial ``cd``."""
    gone = commands[0].words[0] if commands and commands[0].program == "cd" and commands[0].words else ""
    return posixpath.normpath(posixpath.join(cwd, gone)) if gone else cwd


def _asked_by(commands: Sequence[Invocation], action: Action) -> str:
    words: dict[str, None] = {}
    for command in commands:
        words.update(dict.fromkeys((command.program, *command.words[: command.depth], *activities(command))))
        words.update(dict.fromkeys(flag.lstrip("-") for flag in sorted(command.flags) if len(flag) > 3))
    if action.tool.startswith("mcp__"):
        words[action.tool] = None
    words.update(dict.fromkeys(re.split(r"[/\\]", file)[-1] for file in action.files[:8]))
    return re.sub(r"[_:-]+", " ", " ".join(words))[:_ASKED]


def _failing_lines(error: str) -> tuple[list[str], list[str]]:
    """Return the lines that report the failure, and the other lines, in lower case and without variable parts.

    Both are empty for an everyday failure.
    """
    if _ROUTINE.match(error.strip()):
        return [], []
    lines = [line for line in error[: 1 << 20].splitlines() if line.strip()]
    both_ends = lines if len(lines) <= _LINES else [*lines[: _LINES // 2], *lines[-_LINES // 2 :]]
    named = [signature.casefold() for signature in signatures(error)]
    return named, [line for each in both_ends if (line := normal(each).casefold()) and line not in named]


def _said_by(note: Note, sentence: str, why: str) -> Remark:
    title = note.title.strip().rstrip(".")
    says = sentence if not title or sentence.startswith(title) else f"{title}: {sentence}"
    return Remark(name=note.name, why=why, hit=Hit(note=note, score=1.0, why=why, snippet=says), known=True)


def _fix_remark(fix: Fix, said: str) -> Remark:
    note = Note(id="", path=fix.evidence, kind=NoteKind.FACT, title="", body=said, created=fix.at, updated=fix.at)
    why = "was fixed before"
    return Remark(name=f"fix:{fix.signature}", why=why, hit=Hit(note=note, score=1.0, why=why, snippet=said), known=False)


def _as_line(hit: Hit) -> Hit:
    said = shortened(quoted(" ".join(hit.snippet.split())), tokens=_LINE_TOKENS, characters=400)
    return replace(hit, note=replace(hit.note, title="", body=said))


def _occasion(action: Action, remark: Remark, now: datetime) -> Occasion:
    return Occasion(
        at=now,
        moment="action",
        session=action.session,
        project=action.project,
        head=" ".join((action.command or f"{action.tool} {' '.join(action.files)}").split()),
        reason=remark.why,
        given=(ShownNote(note=remark.name, score=1.0),) if remark.known else (),
    )
