"""What a session was about, as far as its words show: what they refer to, and words that few other sessions share."""

import re
from collections.abc import Iterable, Iterator

from kite_memory.timeline.summaries import Work

_TICKET = re.compile(
    r"(?<![\w-])(?!(?:UTF|SHA|ISO|RFC|AES|RSA|MD|HTTP|TLS|IPV|BASE|CVE|GPT|ES|RS|HS|P)-)[A-Z][A-Z0-9]{1,9}-\d{1,6}(?![\w-]|\.\d)"
)
_TICKET_OF_A_BRANCH = re.compile(r"(?<![a-z0-9])(?!(?:utf|sha|iso|rfc|aes|md|es|v)-)[a-z]{2,9}-\d{1,6}(?![\w-])")
_NUMBERED = re.compile(
    r"(?:\b(?:PRs?|MRs?|pull requests?|merge requests?|issues?|tickets?|bugs?|fix(?:es)?|closes?)\s?(?:no\.? ?)?#?"
    r"|/(?:pull|issues|merge_requests)/|#)(\d{1,6})\b",
    re.IGNORECASE,
)
_OF_GH = re.compile(r"\bgh (?:pr|issue) [a-z]{2,12}(?: -{1,2}[\w-]{1,20})* (\d{1,6})\b")
_OF_BRANCH = re.compile(r"(?:^|[/_-])#?(\d{2,6})(?=$|[/_-])")
_LEAST_BARE = 10
"""A smaller number is as often an item of a list: «#3», «issue 3»."""
_COMMITTED = re.compile(r"^\[(?:detached HEAD|[^\]\s]{1,200})(?: \([\w -]{1,20}\))? ([0-9a-f]{7,40})\] (.{1,300})$", re.MULTILINE)
_HASH = re.compile(r"(?<![\w-])(?=[0-9a-f]{0,40}\d)(?=[0-9a-f]{0,40}[a-f])(?:[0-9a-f]{7,12}|[0-9a-f]{40})(?![\w-])")
_MESSAGE = re.compile(r"-m ['\"](?:\$\(cat <<'?EOF'?\s{1,4})?([^'\"\n]{4,200})")
_DOCUMENT = re.compile(r"(?<![\w.])(?:[\w.@-]{1,80}/){0,12}[\w.-]{1,80}\.(?:md|mdx|rst|adoc)\b")
_PLANS = re.compile(
    r"(?i)(?:^|[/_.-])(?:plans?|designs?|specs?|rfcs?|adrs?|proposals?|drafts?|roadmap|investigation|findings|handoff|requirements|prd)"
    r"(?=[/_.-])"
)
_PLAN = re.compile(r"^(?:#{1,3} *)?(?:implement|plan|design|spec)\b[^\n:]{0,40}: *([^\n]{8,160})", re.IGNORECASE | re.MULTILINE)

_ENVIRONMENT = re.compile(
    r"(?i)already in use|in use again|\bnot found\b|no such file|permission denied|connection (?:refused|reset)|\btimed? ?out\b"
    r"|no space left|disk (?:is )?full|\bENOENT\b|\bEACCES\b|ECONN\w{1,12}|EADDRINUSE|out of memory|\bOOM\b|can(?:no|')t connect"
    r"|could not resolve|unable to (?:connect|resolve|fetch|access)|certificate|rate limit|\b(?:401|403|429|502|503)\b|timeout"
    r"|\b(?:port|address) \d{2,5}\b|docker daemon|virtualenv|\bvenv\b|node_modules|\b(?:npm|pip|brew|apt(?:-get)?) install"
    r"|no module named|not installed|command not|wrong version|\bexpired\b|\bflaky\b|credentials?|log(?:ged)? ?in again"
)
"""A part of a prompt that complains about the machine is not about the work."""
_CLAUSES = re.compile(r"[.;\n!?]+\s|,\s(?:then|and then|after that)\b|\b(?:then|after that|afterwards)\b|:\s")
_WORDS = re.compile(r"[A-Za-z][A-Za-z]{2,30}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
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
_BACK = re.compile(
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
_ENDINGS = re.compile(r"(?:ies|ing|ers?|ed|es|s|ion|ions)$")


def references(work: Work) -> frozenset[str]:
    """Return the pull requests, issues and tickets named by the user, the branch or a commit, or queried with `gh`."""
    said = [*work.asked, *_subjects(work)]
    found = {match.group() for text in said for match in _TICKET.finditer(text)}
    for text in said:
        for match in _NUMBERED.finditer(text):
            if match.group()[0] in "pPmM/" or int(match[1]) >= _LEAST_BARE:
                found.add(f"#{int(match[1])}")
    found |= {f"#{int(match[1])}" for command in work.commands for match in _OF_GH.finditer(command)}
    for branch in _branches(work):
        found |= {match.group().upper() for match in _TICKET_OF_A_BRANCH.finditer(branch.lower())}
        found |= {f"#{int(match[1])}" for match in _OF_BRANCH.finditer(branch)}
    return frozenset(found)


def documents(work: Work, folder: str) -> frozenset[str]:
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
    return _BACK.search(work.opening) is not None


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
