"""Work threads: sessions, of any agents, that continue one another's work.

Two sessions are joined by what they were about, as far as their words show: the same pull request, a plan and its execution, or
words that few other sessions share.
"""

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kite_memory.model.event import Session
from kite_memory.text import lazy_regex
from kite_memory.timeline.summaries import Work

_TICKET = lazy_regex(
    r"(?<![\w-])(?!(?:UTF|SHA|ISO|RFC|AES|RSA|MD|HTTP|TLS|IPV|BASE|CVE|GPT|ES|RS|HS|P)-)[A-Z][A-Z0-9]{1,9}-\d{1,6}(?![\w-]|\.\d)"
)
_TICKET_OF_A_BRANCH = lazy_regex(r"(?<![a-z0-9])(?!(?:utf|sha|iso|rfc|aes|md|es|v)-)[a-z]{2,9}-\d{1,6}(?![\w-])")
_NUMBERED = lazy_regex(
    r"(?:\b(?:PRs?|MRs?|pull requests?|merge requests?|issues?|tickets?|bugs?|fix(?:es)?|closes?)\s?(?:no\.? ?)?#?"
    r"|/(?:pull|issues|merge_requests)/|#)(\d{1,6})\b",
    re.IGNORECASE,
)
_OF_GH = lazy_regex(r"\bgh (?:pr|issue) [a-z]{2,12}(?: -{1,2}[\w-]{1,20})* (\d{1,6})\b")
_OF_BRANCH = lazy_regex(r"(?:^|[/_-])#?(\d{2,6})(?=$|[/_-])")
_LEAST_BARE = 10
"""A smaller number is as often an item of a list: «#3», «issue 3»."""
_COMMITTED = lazy_regex(r"^\[(?:detached HEAD|[^\]\s]{1,200})(?: \([\w -]{1,20}\))? ([0-9a-f]{7,40})\] (.{1,300})$", re.MULTILINE)
_HASH = lazy_regex(r"(?<![\w-])(?=[0-9a-f]{0,40}\d)(?=[0-9a-f]{0,40}[a-f])(?:[0-9a-f]{7,12}|[0-9a-f]{40})(?![\w-])")
_MESSAGE = lazy_regex(r"-m ['\"](?:\$\(cat <<'?EOF'?\s{1,4})?([^'\"\n]{4,200})")
_DOCUMENT = lazy_regex(r"(?<![\w.])(?:[\w.@-]{1,80}/){0,12}[\w.-]{1,80}\.(?:md|mdx|rst|adoc)\b")
_PLANS = lazy_regex(
    r"(?i)(?:^|[/_.-])(?:plans?|designs?|specs?|rfcs?|adrs?|proposals?|drafts?|roadmap|investigation|findings|handoff|requirements|prd)"
    r"(?=[/_.-])"
)
_RECORD = lazy_regex(r"(?:^|/)(adr|proposal|design)s?/(?:[a-z]{2,10}[-_])?0{0,4}(\d{1,4})[-_.]", re.IGNORECASE)
_RECORD_NAMED = lazy_regex(r"\b(adr|proposal|design)[ -]?(?:no\.? ?)?#?0{0,4}(\d{1,4})\b", re.IGNORECASE)
"""A numbered record of a decision or plan, as its file is called and as people call it."""
_PLAN = lazy_regex(r"^(?:#{1,3} *)?(?:implement|plan|design|spec)\b[^\n:]{0,40}: *([^\n]{8,160})", re.IGNORECASE | re.MULTILINE)

_ENVIRONMENT = lazy_regex(
    r"(?i)already in use|in use again|\bnot found\b|no such file|permission denied|connection (?:refused|reset)|\btimed? ?out\b"
    r"|no space left|disk (?:is )?full|\bENOENT\b|\bEACCES\b|ECONN\w{1,12}|EADDRINUSE|out of memory|\bOOM\b|can(?:no|')t connect"
    r"|could not resolve|unable to (?:connect|resolve|fetch|access)|certificate|rate limit|\b(?:401|403|429|502|503)\b|timeout"
    r"|\b(?:port|address) \d{2,5}\b|docker daemon|virtualenv|\bvenv\b|node_modules|\b(?:npm|pip|brew|apt(?:-get)?) install"
    r"|no module named|not installed|command not|wrong version|\bexpired\b|\bflaky\b|credentials?|log(?:ged)? ?in again"
)
"""A part of a prompt that complains about the machine is not about the work."""
_CLAUSES = lazy_regex(r"[.;\n!?]+\s|,\s(?:then|and then|after that)\b|\b(?:then|after that|afterwards)\b|:\s")
_WORDS = lazy_regex(r"[A-Za-z][A-Za-z]{2,30}")
_CAMEL = lazy_regex(r"(?<=[a-z])(?=[A-Z])")
_SAYS_NOTHING = """
about above across add added adding adds after again agent agents all also always and another any anything app are aren
around ask back background bad because been before being best better both branch bug bugfix bugs but call called can cannot
case change changed changes check checks chore claude code codex com come commit commits context correct could create created
currently day dev did didn docs does doesn doing don done down each easy else end error errors even every everything
experiment failed failing fails fall false feat feature few file files find first fix fixed fixes fixing follow following for
found from full get gets github give given goes going good got had handle has have help here him his home hotfix how however
http https image implement implemented improve index into isn issue issues its jpg just keep know last lets lib like line
lines list little live long look looks main make makes making many master maybe mean merge might more most move much must
need needs never new next nice not nothing now off often okay old one only open option other our out over own page part pass
passes perf pick place plan plans please png point prod project pull push put rather read ready really refactor release
remove removed repo repository request rest review right run running runs said same save say see seems session set should
show shows side small some something spike src staging start started step still style such support sure take task tell test
tests than thank thanks that the their them then there these they thing things think this those through time tmp today too
true try two under unit until update updated use used user users uses using usually value version very want was way well were
what when where which while who why will wip with without won work works would write wrong www yes yesterday yet you your
"""
_REFERS_BACK = lazy_regex(
    r"(?i)\b(?:yesterday|last (?:time|week|session|night|month)|the other day|earlier (?:today|session|chat)|like before"
    r"|previous (?:session|chat|work)|continue|carry on|go on with|pick (?:it |this |that )?up|left ?over|slept on it"
    r"|(?:where|what) (?:we|you|i) (?:left|stopped)|still (?:missing|open|to do)|the rest of|the remaining|follow.?up"
    r"|(?:we|you) (?:made|built|wrote|did|discussed|decided|agreed|started|added|planned|said|proposed|suggested|promised)"
    r"|(?:part|phase|step|stage) (?:\d|two|three)|next (?:step|part|phase)|finish (?:it|the|that|up)"
    r"|as (?:we )?(?:discussed|proposed|agreed|planned)|(?:the|that|your|our) (?:plan|proposal|idea|draft|spike|prototype)"
    r"|(?:that|your|our|the last) (?:branch|pr|commit|fix|change))\b"
)
"""Expressions by which a first prompt refers back to earlier work."""
_STOPPED = frozenset(_SAYS_NOTHING.split())
_ASKED, _OPENING = 600, 300
_ENDINGS = lazy_regex(r"(?:ies|ing|ers?|ed|es|s|ion|ions)$")


def references(work: Work) -> frozenset[str]:
    """Return the pull requests, issues, tickets and numbered records that the user, the branch or a commit names.

    Queries with `gh` count, too, and so does a record's file that was written.
    """
    said = [*work.asked, *_subjects(work)]
    found = {match.group() for text in said for match in _TICKET.finditer(text)}
    for text in said:
        for match in _NUMBERED.finditer(text):
            if match.group()[0] in "pPmM/" or int(match[1]) >= _LEAST_BARE:
                found.add(f"#{int(match[1])}")
    found |= {f"#{int(match[1])}" for command in work.commands for match in _OF_GH.finditer(command)}
    records = (*(_RECORD_NAMED.finditer(text) for text in said), *(_RECORD.finditer(path) for path in work.files))
    found |= {f"{match[1].lower()} {int(match[2])}" for matches in records for match in matches}
    for branch in _branches(work):
        found |= {match.group().upper() for match in _TICKET_OF_A_BRANCH.finditer(branch.lower())}
        found |= {f"#{int(match[1])}" for match in _OF_BRANCH.finditer(branch)}
    return frozenset(found)


def documents_of(work: Work, folder: str) -> frozenset[str]:
    """Return plans, designs and similar documents that were written, read or named by the user, and any document the user named."""
    named = {match.group() for text in work.asked for match in _DOCUMENT.finditer(text)}
    files = {path for path in (*work.files, *work.read) if _PLANS.search(path) and _DOCUMENT.fullmatch(path.rpartition("/")[2])}
    return frozenset(_inside(path, folder) for path in (*named, *files))


def plans(work: Work) -> frozenset[str]:
    """Return titles of plans, as decided on and as asked to be carried out."""
    return frozenset(
        " ".join(match[1].lower().split()) for text in (*work.asked, *work.decisions) for match in _PLAN.finditer(text[:_ASKED])
    )


def made(work: Work) -> frozenset[str]:
    """Return commits by the first seven digits of their hashes."""
    return frozenset(match[1][:7] for text in work.committed for match in _COMMITTED.finditer(text))


def named_hashes(work: Work) -> frozenset[str]:
    return frozenset(match.group()[:7] for text in (*work.asked, *work.commands) for match in _HASH.finditer(text))


def words(work: Work) -> frozenset[str]:
    """Return the words of the first prompt, the commits, the branch and the title, without complaints about the machine.

    Words are reduced so that «queue» and «queues» are the same. Later prompts are left out, since together those of a long session
    would hold words of everything.
    """
    texts = (work.opening[:_OPENING], *_subjects(work), *(_spaced(branch) for branch in _branches(work)), work.session.title)
    return frozenset(word for text in texts for word in _statements(text))


def refers_back(work: Work) -> bool:
    return _REFERS_BACK.search(work.opening) is not None


def opened_with(work: Work) -> frozenset[str]:
    return frozenset(_statements(work.opening))


def closed_with(work: Work) -> frozenset[str]:
    return frozenset(_statements(work.closing))


def _statements(text: str) -> Iterator[str]:
    for clause in _CLAUSES.split(text):
        if clause and not _ENVIRONMENT.search(clause):
            for word in _WORDS.findall(_CAMEL.sub(" ", clause)):
                plain = word.lower()
                if plain not in _STOPPED and len(plain) > 2:
                    yield _ENDINGS.sub("", plain) if len(plain) > 5 else plain.removesuffix("s") if len(plain) > 3 else plain


def _subjects(work: Work) -> Iterator[str]:
    for text in work.committed:
        yield from (match[2] for match in _COMMITTED.finditer(text))
    for command in work.commands:
        if "commit" in command:
            yield from (match[1] for match in _MESSAGE.finditer(command))


def _branches(work: Work) -> Iterable[str]:
    return (work.session.branch,) if work.session.branch not in ("", "HEAD") else ()


def _spaced(branch: str) -> str:
    return re.sub(r"[/_.-]", " ", branch)


def _inside(path: str, folder: str) -> str:
    root = folder.rstrip("/") + "/"
    return path[len(root) :] if folder and path.startswith(root) else path


Tie = Literal[
    "file", "command", "branch", "error", "decision", "parent", "reference", "plan", "commit", "document", "word", "reference back"
]
_Named = tuple[Tie, str]

SURE = 0.6
"""From this strength on, two sessions are reported as belonging together."""
JOINED = 0.45
"""The least strength of a joint."""
_WEIGHTS: Mapping[Tie, float] = {
    **{"file": 0.5, "document": 0.7, "word": 0.2, "command": 0.1, "branch": 0.8, "error": 0.15, "decision": 0.8},
    **{"reference": 0.9, "plan": 0.9, "commit": 0.9, "parent": 1.0, "reference back": 0.35},
}
_EACH: Mapping[Tie, int] = {
    **{"file": 4, "document": 2, "word": 4, "command": 2, "branch": 2, "error": 2, "decision": 2},
    **{"reference": 2, "plan": 1, "commit": 2, "parent": 1, "reference back": 1},
}
"""How many ties of a kind count, the rarest first: a hundred weak ones make no strong one, and commands alone join nothing."""
_ELSEWHERE = 0.7
"""Factor for a joint's strength where each of the two has a branch of its own."""
_AS_IF = 10
"""Number of sessions added to the count: if there are three, a file in all of them means little."""
_MANY = 6
"""Least number of sessions from which to conclude which branch most are on."""
_OF_ONE_ERRAND = 3
"""Number of sessions that may touch a file for one and the same reason."""
_MOST_SHARING = 100
"""Number of sessions; a tie shared by more joins none."""
_PARTNERS = 24
_HALF_AS_STRONG = 21.0
"""Days between two sessions after which a joint is half as strong."""
_COMMONPLACE = 0.15
"""Factor for the weight of a file that every project has, however few sessions touch it."""
_EVERYBODYS_NAMES = """
readme changelog changes history license contributing makefile justfile taskfile dockerfile docker-compose compose agents
claude gemini memory todo notes copilot-instructions .cursorrules .gitignore .env .env.example .editorconfig package tsconfig
pyproject cargo go requirements setup gemfile composer pom build settings mise.toml schema main index app mod lib init
__init__ routes router urls types constants config configuration utils util helpers common base styles global globals theme
translations messages locale en de fr project variables outputs values conftest jest.config vite.config webpack.config
tailwind.config ci test release deploy
"""
_EVERYBODYS = frozenset(_EVERYBODYS_NAMES.split())
"""Common file names, with what follows the first dot or without it."""
_LOCK = lazy_regex(r"(?:[.-]lock|\.lock\.\w{1,5}|\.sum|-lock\.\w{1,5}|lock\.yaml|\.snap|\.min\.\w{1,4})$")
_MEMORY = lazy_regex(r"(?:^|/)\.(?:claude|codex|gemini|cursor|github|vscode|idea)/|/memory/[^/]+\.md$")
_BASE = lazy_regex(
    r"\bgit (?:rebase|merge)(?: -{1,2}[\w-]{1,20})* (?:origin/)([\w./-]{1,80})|--base[ =]([\w./-]{1,80})"
    r"|origin/([\w./-]{1,80})\.\.\.?|\bgit (?:checkout|switch) ([\w./-]{1,80}) && git pull"
)
"""A branch that others are based on is a trunk."""
_MAIN = frozenset({"", "HEAD", "main", "master", "trunk", "develop", "dev"})
_ANYBODYS = lazy_regex(
    r"(?:cd\s+\S{1,400}\s*&&\s*)?(?:git (?:-C \S{1,400} )?(?:add|branch|commit|diff|fetch|log|pull|push|show|stash|status)\b"
    r"|(?:awk|cat|cd|echo|find|grep|head|jq|ls|mkdir|nl|pwd|rg|sed|sleep|tail|wc|which)\b|\s*$)"
)
"""Commands that are run whatever the work is."""
_ANYBODYS_ERROR = lazy_regex(
    r"(?:exit code \d+|\S{1,80}: command not found|[^:]{0,40}(?:: )?(?:permission denied|no such file or directory))$",
    re.IGNORECASE,
)
"""Failures that occur whatever the work is."""
_CHECKOUT = lazy_regex(
    r"\bgit (?:checkout|switch|worktree add)(?: -[bcBC]\b| --create| --force-create)+ (?:\S{1,200} -b )?['\"]?([\w./-]{3,100})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that two sessions share. ``sessions`` is how many of the sessions have it."""

    tie: Tie
    what: str
    weight: float
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """``later`` continues the work of ``earlier``. ``strength`` is from `JOINED` to 1; the strongest reason comes first."""

    earlier: Session
    later: Session
    strength: float
    reasons: tuple[Reason, ...]

    @property
    def sure(self) -> bool:
        return self.strength >= SURE


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkThread:
    """Works in the order they began.

    Each but the first is joined to an earlier one; ``joints`` holds the strongest joint of each.
    """

    project: str
    works: tuple[Work, ...]
    joints: tuple[Joint, ...]

    @property
    def last(self) -> datetime:
        return max(work.last for work in self.works)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Threads, most recently active first. ``unsure`` are joints too weak for a thread, latest first."""

    threads: tuple[WorkThread, ...]
    unsure: tuple[Joint, ...]


def threads(works: Iterable[Work]) -> tuple[WorkThread, ...]:
    return joined(works).threads


def joined(works: Iterable[Work]) -> Joined:
    """Group works into threads.

    Sessions without a project are joined only to their parents. A session without a joint of strength `SURE` is in no thread.
    """
    by_project: dict[str, list[Work]] = defaultdict(list)
    for work in works:
        by_project[work.session.project].append(work)
    found: list[WorkThread] = []
    unsure: list[Joint] = []
    for project, its in by_project.items():
        joints = _joints(project, its)
        found += _threaded(project, its, [joint for joint in joints if joint.sure])
        unsure += [joint for joint in joints if not joint.sure]
    return Joined(
        threads=tuple(sorted(found, key=lambda thread: (thread.last, thread.works[0].session.id), reverse=True)),
        unsure=tuple(sorted(unsure, key=lambda joint: (joint.later.started, joint.later.id), reverse=True)),
    )


def _threaded(project: str, works: Sequence[Work], joints: Sequence[Joint]) -> Iterator[WorkThread]:
    """Yield the threads. ``joints`` must be in the order in which their later sessions began."""
    thread_of: dict[tuple[str, str], tuple[str, str]] = {}
    for joint in joints:
        thread_of[_name(joint.later)] = thread_of.setdefault(_name(joint.earlier), _name(joint.earlier))
    grouped: dict[tuple[str, str], list[Work]] = defaultdict(list)
    for work in sorted(works, key=lambda work: (work.session.started, work.session.id)):
        if (thread := thread_of.get(_name(work.session))) is not None:
            grouped[thread].append(work)
    for members in grouped.values():
        its = {_name(work.session) for work in members}
        yield WorkThread(
            project=project, works=tuple(members), joints=tuple(joint for joint in joints if _name(joint.later) in its)
        )


def _name(session: Session) -> tuple[str, str]:
    return session.provider, session.id


def _joints(project: str, works: Sequence[Work]) -> list[Joint]:
    """Return for each session the strongest joint to an earlier one, if it reaches `JOINED`."""
    in_order = sorted(works, key=lambda work: (work.session.started, work.session.id))
    trunks = _trunks(in_order)
    ties = [frozenset(_ties(work, trunks)) for work in in_order]
    having: dict[_Named, list[int]] = defaultdict(list)
    for number, named in enumerate(ties):
        for tie in named:
            having[tie].append(number)
    owns = [frozenset(what for kind, what in its if kind == "branch") for its in ties]
    weights = {tie: _weight(tie, len(its), len(in_order)) for tie, its in having.items() if len(its) > 1}
    weights[_BACK] = _WEIGHTS["reference back"]
    closings: dict[str, list[int]] = defaultdict(list)
    for number, work in enumerate(in_order):
        for word in closed_with(work):
            closings[word].append(number)
    joints: list[Joint] = []
    for number, work in enumerate(in_order):
        shared: dict[int, list[_Named]] = defaultdict(list)
        for tie in ties[number] & weights.keys():
            for other in _holders(tie, having[tie]) if project or tie[0] == "parent" else ():
                if other < number:
                    shared[other].append(tie)
        back = refers_back(work) and bool(project)
        for word in opened_with(work) if back else ():
            for other in closings[word]:
                if other < number and ("word", word) not in shared[other]:
                    shared[other].append(("word", word))
                    weights.setdefault(
                        ("word", word), _weight(("word", word), len({*closings[word], *having["word", word]}) + 1, len(works))
                    )
        if back:
            for its in shared.values():
                its.append(_BACK)
        shared = {other: _independent(its) for other, its in shared.items()}
        nearest = heapq.nlargest(_PARTNERS, shared, key=lambda other: (sum(weights[tie] for tie in shared[other]), other))
        strengths = {
            other: _strength(in_order[other], work, _weightiest(shared[other], weights), weights)
            * (_ELSEWHERE if _on_another(owns[other], owns[number], shared[other]) else 1.0)
            for other in nearest
        }
        best = max(strengths, key=lambda other: (strengths[other], other), default=None)
        if best is not None and strengths[best] >= JOINED:
            reasons = [
                Reason(tie=tie[0], what=tie[1], weight=round(weights[tie], 3), sessions=max(2, len(having[tie])))
                for tie in _weightiest(shared[best], weights)
            ]
            reasons.sort(key=lambda reason: (-reason.weight, reason.what))
            joints.append(
                Joint(
                    earlier=in_order[best].session, later=work.session, strength=round(strengths[best], 3), reasons=tuple(reasons)
                )
            )
    return joints


def _on_another(earlier: frozenset[str], later: frozenset[str], shared: Sequence[_Named]) -> bool:
    """Return whether each has branches of its own and nothing explicit, such as a reference, joins them."""
    said = any(kind in ("reference", "plan", "commit", "document", "reference back") for kind, _ in shared)
    return not said and bool(earlier) and bool(later) and not earlier & later


_BACK: _Named = ("reference back", "the first prompt")


def _independent(shared: Sequence[_Named]) -> list[_Named]:
    """Return the ties without words that a shared path or branch already contains."""
    said = " ".join(what.lower() for kind, what in shared if kind in ("file", "document", "branch", "reference", "plan"))
    return [tie for tie in shared if tie[0] != "word" or tie[1] not in said]


def _trunks(works: Sequence[Work]) -> frozenset[str]:
    """Return the trunks of a repository: bases of rebases and merges, and a branch that most of many sessions are on."""
    based = {name for work in works for command in work.commands for found in _BASE.findall(command) for name in found if name}
    on = Counter(work.session.branch for work in works)
    most = {branch for branch, count in on.items() if len(works) >= _MANY and count > len(works) / 2}
    return _MAIN | most | {name for name in based if on[name] > 1 or name in _MAIN}


def _ties(work: Work, trunks: frozenset[str]) -> Iterator[_Named]:
    session = work.session
    for reference in references(work):
        yield "reference", reference
    for title in plans(work):
        yield "plan", title
    for commit in made(work) | named_hashes(work):
        yield "commit", commit
    documents = documents_of(work, session.cwd)
    for document in documents:
        if not _is_everybodys(document):
            yield "document", document
    for word in words(work):
        yield "word", word
    yield "parent", f"{session.provider}:{session.parent or session.id}"
    if session.parent:
        yield "parent", f"{session.provider}:{session.id}"
    for path in work.files:
        if (where := place(path, session.cwd)) not in documents or _is_everybodys(where):
            yield "file", where
    for branch in {session.branch, *(found[1] for command in work.commands for found in _CHECKOUT.finditer(command))} - trunks:
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
    """Return the path relative to ``cwd``, so that it is the same in every worktree of a repository."""
    for separator in "/\\":
        root = cwd.rstrip("/\\") + separator
        if cwd and path.startswith(root):
            return path[len(root) :].replace("\\", "/")
    return path


def _holders(tie: _Named, having: Sequence[int]) -> Sequence[int]:
    """Return the sessions to join by this tie.

    All sub-agents are joined to the first holder only; a tie with too many holders joins none.
    """
    if tie[0] == "parent":
        return having[:1]
    return having if len(having) <= (_PARTNERS if tie[0] == "word" else _MOST_SHARING) else ()


def _weightiest(shared: Sequence[_Named], weights: Mapping[_Named, float]) -> list[_Named]:
    """Return the weightiest ties of each kind, at most as many as count."""
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
    """Return the weight of a tie: full if only two sessions have it, or three for a file; almost none if all have it."""
    kind, what = tie
    if kind == "parent":
        return _WEIGHTS[kind]
    among = sessions + _AS_IF
    rare = min(1.0, math.log(among / having) / math.log(among / 2))
    if kind in ("file", "document"):  # a file that more than a few sessions touched is common ground, not one task's
        rare = min(1.0, math.log(among / having) / math.log(among / _OF_ONE_ERRAND)) ** 2
    return _WEIGHTS[kind] * rare * (_COMMONPLACE if kind == "file" and _is_everybodys(what) else 1.0)


def _is_everybodys(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    if _MEMORY.search(path):
        return True
    return name in _EVERYBODYS or name.partition(".")[0] in _EVERYBODYS or _LOCK.search(name) is not None
