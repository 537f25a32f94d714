"""How useful a note is: judged from its wording and its use, not from its truth.

A finding about a bug or a branch fades within weeks, a decision or a preference stays.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.text import lazy_regex
from kite_memory.vault import links
from kite_memory.vault.lifecycle import sessions_of
from kite_memory.vault.wording import words

PASSING = timedelta(weeks=6)
"""How long a passing finding is recalled after its last use."""
_TO_KEEP = 3
"""Importance of what a person asked to remember, or said with emphasis."""
UNSHOWN = timedelta(days=90)
"""How long any other note is recalled after it was last shown or used."""

_PASSING = lazy_regex(
    r"\b(?:bugs?|errors?|fail(?:s|ed|ing|ures?)?|crash\w*|fix(?:ed|es|ing)?|broke|broken|flaky|regress\w*|lint\w*|warnings?|panic\w*"
    r"|exceptions?|stack ?trace|race|stale|leftovers?|unused|missing|typo|cherry-?pick\w*|rebas\w*|conflict(?:s|ed)?|pull requests?"
    r"|PR|MR|branch(?:es)?|commits?|lines? \d+|currently|right now|at the moment|so far|today|yesterday|still|this session)\b"
    r"|(?<!\w)#\d+\b|\w\.\w{1,5}:\d+\b",
    re.IGNORECASE,
)
_HEX = lazy_regex(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_LASTING = frozenset({NoteKind.DECISION, NoteKind.PREFERENCE, NoteKind.ENTITY, NoteKind.JOURNAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUse:
    """When a note was last shown to an agent, last used by one, and last repeated in a session."""

    shown: datetime | None = None
    used: datetime | None = None
    said: datetime | None = None


def is_passing(note: Note) -> bool:
    """Return whether a note is about a state that soon changes: a failure, a line, a branch, a pull request."""
    return note.kind in (NoteKind.INSIGHT, NoteKind.FACT) and bool(_PASSING.search(note.title) or _HEX.search(note.title))


def has_faded(note: Note, use: NoteUse, now: datetime) -> bool:
    """Return whether a note has faded.

    What a person asked to keep stays, as does any other note of theirs unless it is passing or a question, a note with a key,
    and one that a person is asked about.
    """
    if note.status is not NoteStatus.ACCEPTED or note.kind in _LASTING or note.key or not note.id or note.conflicts or note.review:
        return False
    if _asked_to_keep(note):
        return False
    if is_passing(note):
        return now - _latest(note, now, use.used, use.said) >= PASSING
    if note.origin == "user" and note.kind is not NoteKind.QUESTION:
        return False
    return now - _latest(note, now, use.shown, use.used, use.said) >= UNSHOWN


def _asked_to_keep(note: Note) -> bool:
    """Return whether a person wrote a note, or asked in a session to remember it."""
    return note.origin == "user" and note.kind is not NoteKind.QUESTION and (note.importance >= _TO_KEEP or not note.evidence)


def _latest(note: Note, now: datetime, *times: datetime | None) -> datetime:
    """Return the last of these times, when the note was said and when its file was written, which may be long after it was said."""
    written = note.updated if note.updated <= now else None
    return max((note.created, *(at for at in (written, *times) if at is not None)))


JUNK = -1.2

_CLAIMS = lazy_regex(
    r"\b(?:because|since|instead of|rather than|never|always|must|only|not|no longer|until|unless|whenever|except"
    r"|so that|without|over|cannot|should|has to|have to|needs? to|requires?|prefers?|avoid|every|each|all|at least"
    r"|at most|default)\b|n't\b",
    re.IGNORECASE,
)
_VERB = lazy_regex(
    r"\b(?:is|are|was|were|be|has|have|had|does|do|goes|runs?|uses?|takes?|keeps?|lives?|holds?|stays?|comes?|needs?|means?|makes?"
    r"|returns?|reads?|writes?|sends?|shows?|allows?|expects?|supports?|belongs?|depends?|applies|relies|starts?|ends?|stops?|gets?"
    r"|gives?|sets?|can|cannot|may|must|should|will|wants?|prefers?|chose|chosen|use|keep|avoid|run|write|put|ask|call|test|commit"
    r"|[a-z]{3,}(?:ed|es|ies))\b",
    re.IGNORECASE,
)
_POINTS = lazy_regex(
    r"(?:i|i'(?:d|m|ll|ve)|you|we are|we'?re|it|its|it's|this|that|these|those|they|he|she|there(?:'s| is| are)?"
    r"|here(?:'s| is)?|let(?:'s| me| us)?|because|when|if|while|without|instead|from|technically|today|compare|once|whichever"
    r"|where|whether|since|after|before|ok(?:ay)?|yes|yeah|no,|sure|thanks|good|great|perfect|so|also|then|both|now"
    r"|currently|only|first|next|finally|even if|either|to make|as (?:you|i)|lines?|key finding|problem|step|phase"
    r"|scenario|option|part|status|update|note|see"
    r"|the (?:fix|error|issue|problem|signature|changes?|tests?|other|following|above|effect|new|unused|result|same"
    r"|overriding|rest|only|old|remaining|simpler|real))\b",
    re.IGNORECASE,
)
_STEP = lazy_regex(
    r"(?:add|adds|remove|removes|move|moves|pass|passes|update|updates|change|changes|replace|replaces|fix|fixes|create|creates|rename"
    r"|renames|show|shows|enable|enables|extract|implement|refactor|introduce|extend|wire|convert|delete|drop|insert|append|adjust|bump"
    r"|modify|verify|check|investigate|review|clean|make|just|reset|proceed|continue|go|do|please|push|merge|commit|retry|try)\b",
    re.IGNORECASE,
)
_FOR_NOW = lazy_regex(
    r"\b(?:never ?mind|later|for now|go ahead|we are back|as discussed|do it|anything else|right now|this time|once more"
    r"|again|the plan|next step|continue|proceed|looks? good|sounds good|i would have|i'd personally|please)\b|\?$",
    re.IGNORECASE,
)
_UNFINISHED = lazy_regex(
    r"(?:…|\.\.\.|[,:;(\[“‘\"-]|\b(?:a|an|the|to|of|in|on|at|for|with|by|and|or|that|which|than|from|as|is|are|need|needs|called"
    r"|calls|its|their|our|only|about|almost|optional|inside|make|\w+n['’]t))$",
    re.IGNORECASE,
)
_CODE = lazy_regex(r"`[^`]*`|\b\w+(?:[._/()-]\w+)*[A-Z_(/.]\w*\)?|‹[^›]*›|\S*[=→{}<>|]\S*")
_FRAGMENT = lazy_regex(r"→|\blines? \d|[‹›{}|=]|^\d|\(line|^[#`*\"“'/.-]|\b[0-9a-f]{8}\b|\bv?\d+(?:\.\d+)* \(|^[^\w`]")
_PLANNED = "From an approved plan:"
_SHORT, _LONG = 4, 26
_MOST_WORDS, _MOST_SENTENCES = 45, 30
_LONGEST = 240
"""Most characters of a sentence that is shown."""
_READ = 6_000
"""Characters of a body that are read."""
_SOURCE = 0.8
"""Least share of a title's words in the sentence that the title was taken from."""
_GOAL = 0.2
"""Least share of a title's words in a sentence of an approved plan."""
_NORM = lazy_regex(
    r"\b(?:because|since(?! \w+ v?\d)|so that|due to|instead of|rather than|over|never|always|must|only|cannot|not|no longer"
    r"|unless|until|without|by default|source of truth|requires?|depends? on|avoid(?:s|ing)?|prefers?|even if|regardless|except"
    r"|otherwise|to (?:avoid|prevent|minimi[sz]e|ensure|keep))\b|n't\b",
    re.IGNORECASE,
)
"""A reason, an exclusion or a rule."""
_AIM = lazy_regex(
    r"\b(?:since(?! \w+ v?\d)|so that|instead of|rather than|source of truth|becomes?"
    r"|to (?:avoid|prevent|minimi[sz]e|ensure|keep))\b",
    re.IGNORECASE,
)
"""An aim or a rule: a plan also describes what is wrong, and says what else is to be done."""
_RANKED = lazy_regex(r"\w+(?: \w+)?: ")
"""A label that says what a sentence is among others, such as its rank."""
_CASE = lazy_regex(r"^When(?:ever)? [^,]{3,80}, (?=[A-Z`])")
_ASIDE = lazy_regex(r" ?\([^()]*\)")
_CLAUSE = lazy_regex(r" [—–-] |: ")
_SAYS = lazy_regex(
    r"\b(?:is|are|be|has|have|does|do|can|cannot|may|must|should|will|would|needs?|means?|uses?|takes?|runs?|goes|keeps?|keep|makes?"
    r"|returns?|reads?|writes?|sends?|shows?|allows?|expects?|supports?|belongs?|depends?|applies|starts?|stops?|gets?|gives?|sets?"
    r"|wants?|prefers?|avoid|becomes?|fails?|breaks?|rejects?|accepts?|requires?|stores?|holds?|lives?|negotiates?)\b|n't\b"
    r"|^(?:never|always) \w+ \S",
    re.IGNORECASE,
)
_DEFINES = lazy_regex(
    r"(?:[Tt]he |[Aa]n? )?(?:(?!\w+(?:ed|ing)\b)[\w'’/.-]+ ){0,3}`(?:[^`a-z]*|[^`A-Z()]*|[^`]*[ /][^`]*)`(?: [\w'’/.-]+){0,3}?"
    r" (?:is|are|uses|takes|returns|reads|writes|expects|supports|means|contains|lives|runs|holds|needs|requires|defaults|imports"
    r"|keeps|stores|rejects|accepts|doesn't|does not|(?:only|always|never) [a-z]+s)\b"
)
"""A command, option, path or setting, and what it is or does; what a function does, its code says."""
_FOR_GOOD = lazy_regex(
    r"\b(?:always|never|from now on|going forward|whenever|(?:every|each) time|by default|prefers?|instead of|rather than|unless)\b"
    r"|^(?:do not|don['’]t|avoid)\b",
    re.IGNORECASE,
)
"""A rule: what is only left out this time says "without" and "but not"."""
_SUPPOSED = lazy_regex(r"\b(?:I|we)(?:['’]d| would)\b", re.IGNORECASE)
"""An opinion on one case: «I'd rather»."""
_REASON = lazy_regex(r"\b(?:because|since|so that|due to|otherwise|to (?:avoid|prevent|minimi[sz]e|ensure|keep))\b", re.IGNORECASE)
_RULE = lazy_regex(
    r"\b(?:never|always|must|should|has to|have to|instead of|rather than|over|by default|source of truth|avoid(?:s|ing)?"
    r"|prefers?)\b",
    re.IGNORECASE,
)
_ABLE = lazy_regex(
    r"\b(?:can|cannot|only works|does not|do not|will not|requires?|needs?|rejects?|refuses?)\b|\b(?:ca|does|do|wo)n['’]t\b",
    re.IGNORECASE,
)
"""What a thing can or needs, beyond the one case in which it was found out."""
_NAME = lazy_regex(r"`[^`]+`|\b\w+[./_-]\w+|\b\w*[a-z][A-Z]\w*|\b[A-Z]{2,}|(?<=[\w,;)] )[A-Z]\w")
"""A name in code, or one that its letters show to be one."""
_SUBORDINATE = lazy_regex(r"\b(?:if|when(?:ever)?|because|since|so|unless|until|while|although|than)\b", re.IGNORECASE)
_CHOICE = lazy_regex(r"\b(?:over|instead of|rather than)\b", re.IGNORECASE)
_ONCE = lazy_regex(r"(?<![\w&])#\d+\b|\b(?:this|these|those|again|for now|right now|next step|the plan)\b", re.IGNORECASE)
"""An order for one moment."""
_LEANS = lazy_regex(
    r"(?:yes|no|ok(?:ay)?|got it|good|great|sure|thanks|agreed|confirmed|right|correct|done|perfect|this|that|these|those|it|they"
    r"|he|she|there|here|then|also|so|now|next|finally|both|either|and|but|or|which|what|whichever|whether|why|how|when|if|once|after|before"
    r"|however|option|step|phase|status|update|each|its|their|them|you(?:['’]re)?|caveat|new|most|some|what's"
    r"|really|actually|basically|honestly|maybe|perhaps|probably|(?:in|with|at|on|for) (?:the|this|that)"
    r"|uses|returns|installs|asserts|sets|takes|reads|writes|calls|checks|makes|runs|needs|gives|shows"
    r"|the (?:real|main|key|only|other|same|above|following|rest|first|second|latter|former|fix|change|result|problem|issue))\b",
    re.IGNORECASE,
)
"""A beginning that leans on what was said before, or a verb without its subject."""
_WITHOUT_A_NAME = lazy_regex(
    r"[Tt]he (?:\d[\d.,]* \S+ )?(?:[a-z][a-z/-]*(?:['’]s)? ){0,4}?"
    r"(?:is|are|was|were|do|does|can|cannot|can['’]t|don['’]t|doesn['’]t|will|has|have|only)\b"
    r"|\w+ (?:it|them|this|that)\b"
)
"""A definite subject that nothing names ("The timestamp is"), or an order about something named before ("Give it")."""
_TALK = lazy_regex(
    r"\b(?:I|me|my|you|your|yours|let's|we're|we've|we'll|we'd|ours?)\b|\b(?:I|you|we)['’]|\b[A-Z] instead\b|^Let\b", re.IGNORECASE
)
_NEWS = lazy_regex(
    r"\b(?:now|already|yet|earlier|previously|so far|this time|remain(?:s|ing)?|today|again|current(?:ly)?|still|just"
    r"|added|fixed|updated|removed|renamed|moved|replaced|rewrote|pass(?:es|ed)?|the bug|bugs?|the user)\b|→|✅"
    r"|(?<![\w&])#\d+\b|\w\.\w{1,5}:\d+\b|\blines? ~?\d|\w=\d",
    re.IGNORECASE,
)
"""What was done or found just then."""
_TIED = lazy_regex(
    r"\b(?:was|were|did|had|been|would|could|might|this|these|those|here|shows|described|even(?! (?:if|when|though)\b))\b"
    r"|, so (?:it|they|that|we|you)\b|\.\.\.|…",
    re.IGNORECASE,
)
"""What happened, was seen or is supposed; what stands elsewhere, or follows from it."""
_PAST = lazy_regex(r"\b(?:was|were|did|had|been)\b", re.IGNORECASE)
_FIXED = lazy_regex(r"fix(?:es|ed)?\b", re.IGNORECASE)
_REQUEST = lazy_regex(r"^(?:The person: “[^”]{0,600}” *|From an approved plan: *)")
_ASKED = lazy_regex(r"^(?:The person: )?“([^”]{0,600})”")
_OWN_QUESTION = lazy_regex(
    r"(?:^|[.?!:] )((?:why|how|what|where|which|do|does|did|is|are|was|were|has|have)\b[^.?!;:]{8,100}\?)", re.IGNORECASE
)
_TALKED_ABOUT = lazy_regex(
    r"\b(?:this|that|these|those|it|its|here|there|above|they|them|you|your|status|ready|merge|next|first)\b", re.IGNORECASE
)
"""What stands elsewhere in a conversation, or was so only then."""
_ORDERED = lazy_regex(
    r"(?:(?:always|never) [a-z]+"
    r"|add|allow|batch|build|change|convert|create|distinguish|drop|enable|extract|group|improve|introduce|keep|limit|make|merge|migrate"
    r"|move|propagate|redesign|refactor|remove|rename|replace|rewrite|run|show|simplify|split|store|support|switch|throttle|unify|use"
    r"|write) ",
    re.IGNORECASE,
)
"""The beginning of a plan's or an order's title."""
_GOES_ON = lazy_regex(r" ?\([^()]*\)| (?:because|since|so that|so we|—|–) .*|[:;,] .*")
"""What a question about a title leaves out: its reason, and what is said by the way."""
_AND = lazy_regex(r" [&+] ")
_NO_WORD_OF_A_QUESTION = lazy_regex(r"[`\"$!\\*<>|&%^]+")
"""Characters that shells replace, even between quotation marks."""
_CONTINUES = lazy_regex(r" (?!—|–|-|because\b|since\b|so\b|instead\b|rather\b)\w")
_HEADLINE = 0.6
"""Least share of capitalised words in a title where capitals say nothing."""
_NAMED = lazy_regex(r"(?<=[a-z,] )[A-Z][a-z]+\b")
_SENTENCE = lazy_regex(r"(?<=[.!?…])[”\"]? +(?=[A-Z`“\"(])|; +|(?<=[.!?])” ")
_LABEL = lazy_regex(r"^(?:goal|approach|decision|solution|key idea|root cause|cause|reason|why)s?: +", re.IGNORECASE)
_JUDGED_KINDS = frozenset({NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.FACT, NoteKind.PREFERENCE})


def strength(note: Note) -> float:
    """Return the score: about 1 for a note that is worth a line, below 0 for a useless one."""
    title = note.title.strip()
    words = title.split()
    found = 0.0
    found += 0.8 if _SHORT <= len(words) <= _LONG else -1.0
    found += 0.6 if _VERB.search(title) or _CLAIMS.match(title) else -0.2
    found += 0.5 if _CLAIMS.search(title) else 0.0
    found -= 1.0 if _POINTS.match(title) else 0.0
    found -= 0.3 if title.startswith("The ") else 0.0
    found -= 1.2 if _FOR_NOW.search(title) else 0.0
    found -= 0.8 if _UNFINISHED.search(title) or _is_open(title) else 0.0
    found -= 0.8 if _FRAGMENT.search(title) else 0.0
    found -= 0.8 if _code_share(title) > 0.4 else 0.0
    if note.kind is not NoteKind.PREFERENCE and _STEP.match(title):
        found -= 0.8
    if note.kind is NoteKind.PREFERENCE and note.origin == "user" and not _STEP.match(title):
        found += 0.4
    found -= 0.7 if note.body.startswith(_PLANNED) and not _CLAIMS.search(title) else 0.0
    found -= 0.6 if is_passing(note) else 0.0
    found += 0.3 * (note.importance - 2)
    found += 0.5 if len(sessions_of(note.evidence)) > 1 else 0.0
    return found


def is_worth_a_line(note: Note, *, sessions: int = 1) -> bool:
    """Return whether a note belongs on a summary page: it holds for long, stands alone, and says why, what not, or how always.

    What a person wrote as a note, or a model for them (which says when it is of use), need not give a reason; what was only taken
    from their prompts must be a rule, or come again in another of the ``sessions`` in which notes say it.
    """
    if note.kind is NoteKind.QUESTION:
        return len(note.title.split()) >= _SHORT and not _POINTS.match(note.title)
    if is_passing(note) or _FIXED.match(note.title):
        return False
    worded = note.origin == "user" and bool(note.triggers or not note.evidence)
    if not worded and _WITHOUT_A_NAME.match(note.title) and not _chosen(note):
        return False
    if note.kind is NoteKind.PREFERENCE or worded:
        rule = _FOR_GOOD.search(note.title) and not _SUPPOSED.search(note.body)
        lasting = worded or rule or max(sessions, len(sessions_of(note.evidence))) > 1
        return bool(lasting) and _is_whole(note.title) and not _ONCE.search(note.title) and not _LEANS.match(note.title)
    if note.body.startswith((_PLANNED, "“")):
        return bool(statement(note))
    general = note.kind is not NoteKind.INSIGHT or _RULE.search(note.title) or _ABLE.search(note.title)
    return bool(general) and _asserts(note.title)


def _chosen(note: Note) -> bool:
    plain = _ASIDE.sub("", note.title)
    return note.kind is NoteKind.DECISION and bool(_REASON.search(plain) or _CHOICE.search(plain))


def statement(note: Note) -> str:
    """Return the sentence of a note's body that a summary page shows beside its title; empty where none is fit to be shown.

    Of a person's quoted words it is the sentence that the title was taken from; of an approved plan one that gives a goal or a
    reason, and no step; otherwise the one nearest to the title that asserts something, or, where the title does so, that may stand
    behind it.
    """
    if note.kind is NoteKind.PREFERENCE:
        return ""
    planned = note.body.startswith(_PLANNED)
    quoted = note.body.startswith("“")
    titled = words(note.title)
    asserted = not planned and _asserts(note.title)
    found: list[tuple[float, int, str]] = []
    for place, sentence in enumerate(_sentences(note.body)):
        shared = len(titled & words(sentence)) / max(1, len(titled))
        least = _SOURCE if quoted else _GOAL
        fit = _aims if planned else _supports if asserted else _asserts
        if shared >= least and len(sentence) <= _LONGEST and fit(sentence):
            found.append((-shared, place, sentence))
    return min(found)[2] if found else ""


def names_a_choice(note: Note) -> bool:
    """Return whether the title of a plan that a person approved says by itself what was to be done."""
    title = note.title
    whole = note.kind is NoteKind.DECISION and note.body.startswith(_PLANNED) and _is_whole(title) and len(title.split()) >= _SHORT
    return bool(whole and _ORDERED.match(title) and not _CLAUSE.search(title))


def says_something_whole(note: Note) -> bool:
    """Return whether a title is a whole sentence about something that it names: the least that is shown of a young memory."""
    title = note.title
    lasts = note.kind is not NoteKind.PREFERENCE and not is_passing(note) and strength(note) > 1
    alone = _stands_alone(title) and not (_POINTS.match(title) or _TIED.search(title) or _STEP.match(title) or _RANKED.match(title))
    return bool(lasts and alone and _NAME.search(title) and _SAYS.search(_ASIDE.sub("", title)))


def questions_about(note: Note) -> Iterator[str]:
    """Yield questions that the note's owner may ask about it: why something was chosen, then what they asked themselves.

    They hold no character that a shell replaces. Whether the note answers them must be tried.
    """
    title = _NO_WORD_OF_A_QUESTION.sub("", _AND.sub(" and ", _GOES_ON.sub("", note.title))).strip(" .?").split()
    if len(title) >= _SHORT and sum(word[0].isupper() for word in title) >= _HEADLINE * len(title):
        names = set(_NAMED.findall(note.body)) - {word.capitalize() for word in note.body.split() if word.islower()}
        title = [word.lower() if word.istitle() and word not in names else word for word in title]
    said = " ".join(title)
    if note.kind in (NoteKind.DECISION, NoteKind.PREFERENCE) and len(title) >= _SHORT and not _ONCE.search(said):
        if _ORDERED.match(said):
            does = "do" if note.kind is NoteKind.PREFERENCE or title[0].lower() in {"always", "never"} else "did"
            yield f"why {does} we {said[0].lower()}{said[1:]}?"
        elif _CHOICE.search(said) and not _SAYS.search(said):
            yield f"why {said}?"
    asked = _ASKED.match(links.unlinked(note.body[:_READ]))
    for question in _OWN_QUESTION.findall(asked[1]) if asked else ():
        plain = " ".join(_NO_WORD_OF_A_QUESTION.sub("", question).split())
        if len(plain.split()) > _SHORT and not (_TALKED_ABOUT.search(plain) or _PASSING.search(plain)):
            yield plain[0].lower() + plain[1:]


def explains(text: str, note: Note) -> bool:
    """Return whether a sentence about a note says why, or more than its title about the same."""
    titled, said = words(note.title), words(text)
    more = len(titled & said) >= _SOURCE * len(titled) and len(said - titled) > _SHORT
    return more or bool(_REASON.search(text) or _AIM.search(text))


def is_cut(note: Note) -> bool:
    """Return whether a title is only the beginning of a sentence of the body."""
    body, title = (_ASIDE.sub("", links.unlinked(text)) for text in (note.body[:_READ], note.title))
    _, found, after = body.partition(title)
    return bool(found) and bool(_CONTINUES.match(after))


def asked_and_said(body: str) -> tuple[str, str]:
    """Return what a person asked, if a body begins with it, and the rest; the rest alone is what the note says."""
    found = _REQUEST.match(body)
    return (found[0].strip(), body[found.end() :]) if found and body[found.end() :].strip() else ("", body)


def _sentences(body: str) -> list[str]:
    """Return the sentences in the first part of a body, without markup, requests and lists of related notes."""
    said = _REQUEST.sub("", links.unlinked(body[:_READ]))
    lines = (line for line in said.splitlines() if not line.startswith((links.RELATED, ">", "#", "```", "|")))
    parts = (part for line in lines for part in _SENTENCE.split(line))
    texts = (_LABEL.sub("", part.strip(" -*“”")) for part in parts)
    return [text for text in texts if text and not _RANKED.match(text)][:_MOST_SENTENCES]


def _asserts(text: str) -> bool:
    """Return whether a text says alone what holds, and why, what not, or always; or what a thing with a name is or does."""
    plain = _ASIDE.sub("", text)
    opening = _CLAUSE.split(plain, maxsplit=1)[0]
    main = _SUBORDINATE.split(opening, maxsplit=1)[0]
    claims = _NORM.search(plain) and (_SAYS.search(main) or _CHOICE.search(opening))
    lasts = _RULE.search(plain) or _REASON.search(plain) or _NAME.search(plain)
    said = bool((claims and lasts) or _DEFINES.match(plain))
    return said and _stands_alone(text) and not (_STEP.match(text) or _TIED.search(text))


def _aims(text: str) -> bool:
    """Return whether a sentence of a plan says what is to hold or why, and not what is wrong or to be done."""
    return bool(_AIM.search(_ASIDE.sub("", text))) and _stands_alone(_CASE.sub("", text))


def _supports(text: str) -> bool:
    """Return whether a sentence may stand behind a title that asserts something: a report of what happened gives no reason."""
    return _stands_alone(text) and (not _PAST.search(text) or bool(_REASON.search(text) or _AIM.search(text)))


def _stands_alone(text: str) -> bool:
    """Return whether a text is one whole statement that needs no talk around it, and will hold tomorrow."""
    count = len(text.split())
    whole = _SHORT <= count <= _MOST_WORDS and _is_whole(text)
    return whole and not (_LEANS.match(text) or _TALK.search(text) or _NEWS.search(text))


def _is_whole(text: str) -> bool:
    return not (_UNFINISHED.search(text.rstrip(".")) or _is_open(text) or text.endswith("?"))


def is_junk(note: Note) -> bool:
    """Return whether an accepted note has so little content that its owner may want it removed."""
    extracted = note.status is NoteStatus.ACCEPTED and note.id and not note.key
    return bool(extracted) and note.kind in _JUDGED_KINDS and strength(note) <= JUNK


def _is_open(title: str) -> bool:
    """Return whether a backtick, bracket or quote in it is not closed."""
    return title.count("`") % 2 == 1 or title.count("(") != title.count(")") or title.count("“") != title.count("”")


def _code_share(title: str) -> float:
    return sum(len(found[0]) for found in _CODE.finditer(title)) / max(1, len(title))
