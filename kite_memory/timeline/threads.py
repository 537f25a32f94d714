"""Work threads: sessions, of whatever agents, that went on with one another's work."""

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kite_memory.model.event import Session
from kite_memory.timeline.summaries import Work

Tie = Literal["file", "command", "branch", "error", "decision", "parent"]
_Named = tuple[Tie, str]

JOINED = 0.45
"""The least strength of a joint."""
_WEIGHTS: Mapping[Tie, float] = {"file": 0.7, "command": 0.2, "branch": 0.8, "error": 0.4, "decision": 0.9, "parent": 1.0}
_EACH: Mapping[Tie, int] = {"file": 4, "command": 2, "branch": 2, "error": 3, "decision": 2, "parent": 1}
"""Of a kind so many ties count, the rarest: a hundred weak ones are no strong one, and commands alone join nothing."""
_AS_IF = 10
"""Sessions that are added to those there are: among three of them it means little that a file is in all."""
_MOST_SHARING = 100
"""Sessions: what more of them have in common joins none."""
_PARTNERS = 24
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
_ANYBODYS_ERROR = re.compile(
    r"(?:exit code \d+|\S{1,80}: command not found|[^:]{0,40}(?:: )?(?:permission denied|no such file or directory))$",
    re.IGNORECASE,
)
"""Failures that are met whatever the work is; and several of them are told of one."""
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
    having: dict[_Named, list[int]] = defaultdict(list)
    for number, its in enumerate(ties):
        for tie in its:
            having[tie].append(number)
    weights = {tie: _weight(tie, len(its), len(in_order)) for tie, its in having.items() if len(its) > 1}
    thread_of = list(range(len(in_order)))
    joints: list[Joint] = []
    for number, work in enumerate(in_order):
        shared: dict[int, list[_Named]] = defaultdict(list)
        for tie in ties[number] & weights.keys():
            for other in _holders(tie, having[tie]) if project or tie[0] == "parent" else ():
                if other < number:
                    shared[other].append(tie)
        nearest = heapq.nlargest(_PARTNERS, shared, key=lambda other: (sum(weights[tie] for tie in shared[other]), other))
        strengths = {other: _strength(in_order[other], work, _telling(shared[other], weights), weights) for other in nearest}
        best = max(strengths, key=lambda other: (strengths[other], other), default=None)
        if best is not None and strengths[best] >= JOINED:
            thread_of[number] = thread_of[best]
            reasons = [
                Reason(tie=tie[0], what=tie[1], weight=round(weights[tie], 3), sessions=len(having[tie]))
                for tie in _telling(shared[best], weights)
            ]
            reasons.sort(key=lambda reason: (-reason.weight, reason.what))
            joints.append(
                Joint(
                    earlier=in_order[best].session, later=work.session, strength=round(strengths[best], 3), reasons=tuple(reasons)
                )
            )
    grouped: dict[int, list[int]] = defaultdict(list)
    for number, thread in enumerate(thread_of):
        grouped[thread].append(number)
    for numbers in grouped.values():
        if len(numbers) > 1:
            members = tuple(in_order[number] for number in numbers)
            sessions = {id(work.session) for work in members}
            yield Thread(project=project, works=members, joints=tuple(joint for joint in joints if id(joint.later) in sessions))


def _ties(work: Work) -> Iterator[_Named]:
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
        if not _ANYBODYS_ERROR.match(signature):
            yield "error", signature
    for decision in work.decisions:
        yield "decision", " ".join(decision.split())


def place(path: str, cwd: str) -> str:
    """The same in every worktree of a repository."""
    for separator in "/\\":
        root = cwd.rstrip("/\\") + separator
        if cwd and path.startswith(root):
            return path[len(root) :].replace("\\", "/")
    return path


def _holders(tie: _Named, having: Sequence[int]) -> Sequence[int]:
    """Sub-agents all belong to the first of their session, however many they are."""
    if tie[0] == "parent":
        return having[:1]
    return having if len(having) <= _MOST_SHARING else ()


def _telling(shared: Sequence[_Named], weights: Mapping[_Named, float]) -> list[_Named]:
    """The weightiest of each kind, and no more than count."""
    by_kind: dict[Tie, list[_Named]] = defaultdict(list)
    for tie in shared:
        by_kind[tie[0]].append(tie)
    return [
        tie for kind, its in by_kind.items() for tie in heapq.nsmallest(_EACH[kind], its, key=lambda tie: (-weights[tie], tie[1]))
    ]


def _strength(earlier: Work, later: Work, telling: Sequence[_Named], weights: Mapping[_Named, float]) -> float:
    apart = math.prod(1 - weights[tie] for tie in telling)
    days = max(0.0, (later.session.started - earlier.last).total_seconds() / 86_400)
    of_one = any(kind == "parent" for kind, _ in telling)
    return 1 - apart if of_one else (1 - apart) * 0.5 ** (days / _HALF_AS_STRONG)


def _weight(tie: _Named, having: int, sessions: int) -> float:
    """The whole weight for what only two have, down to almost none for what everybody has in a project of many."""
    kind, what = tie
    if kind == "parent":
        return _WEIGHTS[kind]
    among = sessions + _AS_IF
    rare = min(1.0, math.log(among / having) / math.log(among / 2))
    return _WEIGHTS[kind] * rare * (_COMMONPLACE if kind == "file" and _is_everybodys(what) else 1.0)


def _is_everybodys(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name in _EVERYBODYS or name.partition(".")[0] in _EVERYBODYS or _LOCK.search(name) is not None
