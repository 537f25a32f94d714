"""Work threads: sessions, of whatever agents, that went on with one another's work."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kite_memory.model.event import Session
from kite_memory.timeline.resume import inside
from kite_memory.timeline.summaries import Work

Tie = Literal["file", "command", "branch", "error", "decision", "parent"]

JOINED = 0.45
"""The least strength of a joint."""
_WEIGHTS: Mapping[Tie, float] = {"file": 0.7, "command": 0.2, "branch": 0.8, "error": 0.4, "decision": 0.9, "parent": 1.0}
_EACH: Mapping[Tie, int] = {"file": 4, "command": 2, "branch": 2, "error": 3, "decision": 2, "parent": 1}
"""Of a kind so many ties count, the rarest: a hundred weak ones are no strong one, and commands alone join nothing."""
_AS_IF = 10
"""Sessions that are added to those there are: among three of them it means little that a file is in all."""
_MOST_SHARING = 100
"""Sessions: what more of them have in common joins none."""
_PARTNERS = 200
_HALF_AS_STRONG = 21.0
"""Days between two sessions."""
_COMMONPLACE = 0.25
"""What a file weighs that everything touches, however few sessions there are."""
_EVERYBODYS = frozenset(
    {
        *("readme", "changelog", "license", "makefile", "dockerfile", "agents.md", "claude.md", "gemini.md", "todo.md", "go.sum"),
        *("go.mod", "package.json", "pyproject.toml", "cargo.toml", "tsconfig.json", "mise.toml", ".gitignore", ".env"),
        *("package-lock.json", "pnpm-lock.yaml", "bun.lockb", "npm-shrinkwrap.json", "gemfile", "requirements.txt"),
    }
)
_LOCK = re.compile(r"(?:[.-]lock|\.lock\.\w{1,5}|\.sum)$")
_MAIN = frozenset({"", "HEAD", "main", "master", "trunk", "develop", "dev"})
_ANYBODYS = re.compile(
    r"(?:cd\s+\S{1,400}\s*&&\s*)?(?:git (?:-C \S{1,400} )?(?:add|branch|commit|diff|fetch|log|pull|push|show|stash|status)\b"
    r"|(?:awk|cat|cd|echo|find|grep|head|jq|ls|mkdir|nl|pwd|rg|sed|sleep|tail|wc|which)\b|\s*$)"
)
"""Commands that are run whatever the work is."""
_CHECKOUT = re.compile(
    r"\bgit (?:checkout|switch|worktree add)(?: -[bcBC]\b| --create| --force-create)+ (?:\S{1,200} -b )?['\"]?([\w./-]{3,100})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that two sessions share; ``sessions`` is how many of those looked at have it."""

    tie: Tie
    what: str
    weight: float
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """``later`` goes on with what ``earlier`` did. ``strength`` is from `JOINED` to 1; the strongest reason comes first."""

    earlier: Session
    later: Session
    strength: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """Works in the order they began. Each but the first is joined to one before it, by the strongest joint it has."""

    project: str
    works: tuple[Work, ...]
    joints: tuple[Joint, ...]

    @property
    def last(self) -> datetime:
        return max(work.last for work in self.works)


def threads(works: Iterable[Work]) -> tuple[Thread, ...]:
    """Sessions without a project are joined to none but their parents; one that is joined to none is in no thread.

    The thread that went on last comes first.
    """
    by_project: dict[str, list[Work]] = defaultdict(list)
    for work in works:
        by_project[work.session.project].append(work)
    found = [thread for project, its in by_project.items() for thread in _of_project(project, its)]
    return tuple(sorted(found, key=lambda thread: (thread.last, thread.works[0].session.id), reverse=True))


def _of_project(project: str, works: Sequence[Work]) -> Iterator[Thread]:
    in_order = sorted(works, key=lambda work: (work.session.started, work.session.id))
    ties = [frozenset(_ties(work)) for work in in_order]
    having: dict[tuple[Tie, str], list[int]] = defaultdict(list)
    for number, its in enumerate(ties):
        for tie in its:
            having[tie].append(number)
    thread_of = list(range(len(in_order)))
    joints: list[Joint] = []
    for number, work in enumerate(in_order):
        shared: dict[int, list[tuple[Tie, str]]] = defaultdict(list)
        for tie in ties[number]:
            if project or tie[0] == "parent":
                for other in having[tie] if len(having[tie]) <= _MOST_SHARING else ():
                    if other < number:
                        shared[other].append(tie)
        nearest = sorted(shared, key=lambda other: (-len(shared[other]), -other))[:_PARTNERS]
        best = max(
            (_joint(in_order[other], work, shared[other], having, len(in_order)) for other in nearest),
            key=lambda joint: (joint.strength, joint.earlier.started),
            default=None,
        )
        if best is not None and best.strength >= JOINED:
            joints.append(best)
            earlier = next(other for other in nearest if in_order[other].session is best.earlier)
            thread_of[number] = thread_of[earlier]
    grouped: dict[int, list[int]] = defaultdict(list)
    for number, thread in enumerate(thread_of):
        grouped[thread].append(number)
    for numbers in grouped.values():
        if len(numbers) > 1:
            members = tuple(in_order[number] for number in numbers)
            sessions = {id(work.session) for work in members}
            yield Thread(project=project, works=members, joints=tuple(joint for joint in joints if id(joint.later) in sessions))


def _ties(work: Work) -> Iterator[tuple[Tie, str]]:
    session = work.session
    yield "parent", f"{session.provider}:{session.parent or session.id}"
    if session.parent:
        yield "parent", f"{session.provider}:{session.id}"
    for path in work.files:
        yield "file", place(path, session.cwd)
    for branch in {session.branch, *(found[1] for command in work.commands for found in _CHECKOUT.finditer(command))} - _MAIN:
        yield "branch", branch
    for command in work.commands:
        if not _ANYBODYS.match(command):
            yield "command", " ".join(command.split())
    for signature in work.signatures:
        yield "error", signature
    for decision in work.decisions:
        yield "decision", " ".join(decision.split())


def place(path: str, cwd: str) -> str:
    """The same in every worktree of a repository."""
    within = inside(path, cwd)
    return within.replace("\\", "/") if within != path and ("/" in within or "\\" in within or path.endswith(within)) else path


def _joint(
    earlier: Work, later: Work, shared: Sequence[tuple[Tie, str]], having: Mapping[tuple[Tie, str], Sequence[int]], sessions: int
) -> Joint:
    reasons: list[Reason] = []
    for tie in _WEIGHTS:
        its = [_reason(each, len(having[each]), sessions) for each in shared if each[0] == tie]
        reasons += sorted(its, key=lambda reason: (-reason.weight, reason.what))[: _EACH[tie]]
    apart = 1.0
    for reason in reasons:
        apart *= 1 - reason.weight
    days = max(0.0, (later.session.started - earlier.last).total_seconds() / 86_400)
    of_one = any(reason.tie == "parent" for reason in reasons)
    faded = 1.0 if of_one else 0.5 ** (days / _HALF_AS_STRONG)
    return Joint(
        earlier=earlier.session,
        later=later.session,
        strength=round((1 - apart) * faded, 3),
        reasons=tuple(sorted(reasons, key=lambda reason: -reason.weight)),
    )


def _reason(tie: tuple[Tie, str], having: int, sessions: int) -> Reason:
    kind, what = tie
    return Reason(tie=kind, what=what, weight=round(_WEIGHTS[kind] * _rarity(tie, having, sessions), 3), sessions=having)


def _rarity(tie: tuple[Tie, str], having: int, sessions: int) -> float:
    """From 1, for what only two have, down to almost 0, for what everybody has in a project of many."""
    kind, what = tie
    if kind == "parent":
        return 1.0
    among = sessions + _AS_IF
    rare = min(1.0, math.log(among / having) / math.log(among / 2))
    return rare * _COMMONPLACE if kind == "file" and _is_everybodys(what) else rare


def _is_everybodys(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name in _EVERYBODYS or name.partition(".")[0] in _EVERYBODYS or _LOCK.search(name) is not None
