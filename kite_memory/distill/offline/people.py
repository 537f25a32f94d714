"""Explicit statements of a person: standing preferences, decisions with their reason, corrections, facts and choices."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kite_memory.distill.asked_to_keep import own_part, taken_back, without_exception_of_today
from kite_memory.distill.offline.wording import (
    ASKING,
    ASSENT,
    GUESS,
    PASSING,
    Sentence,
    said_by_person,
    sentences_of,
    without_opening,
)
from kite_memory.distill.prose import one_line, stems
from kite_memory.model.event import Event, EventType
from kite_memory.text import lazy_regex

STANDING = lazy_regex(
    r"(?:^|[.;!]\s*|\b(?:please|you (?:should|must)|we (?:should|must)|let'?s|want you to|(?:make|be) sure(?: that)?(?: you| we)?"
    r"(?: to)?|^(?:when(?:ever)?|if|before|after|for|in|on)\s[^,;?]{2,80},)\s+)"
    r"(?:always|never|don'?t ever|stop(?=\s+\w+ing\b))\s+(?!(?:mind|an?|been|had|seen|heard|knew|thought|again|it)\b)[a-z]"
    r"|\b(?:from now on|going forward|as a rule|in (?:the )?future,? (?:please|let'?s|we|you|always|never|use|do|don'?t|make"
    r"|add|run))\b|\b(?:i|we) (?:really |personally |usually |generally |normally |always |never )?(?:prefer|hate|dislike"
    r"|don'?t (?:like|want you to))\b|\bi(?:'d| would) (?:much |really |personally |always )?(?:prefer|rather)\b"
    r"|\bplease (?:don'?t|do not|avoid)\b|\bremember to\b|\bdon'?t (?:guess|assume)\b|\b(?:overriding|general|our"
    r"|my) (?:directive|rule|policy|convention|preference) (?:is|here)\b|\bavoid\s+\w+ing\b",
    re.IGNORECASE,
)
_CONVENTION = lazy_regex(
    r"(?:please )?use\s[^.;?]{2,60}, never\s|(?:every|each|any|all|no)\s[^,;?]{2,60}\s(?:must|shall|should (?:be|have|use|go|live"
    r"|start|end|return))\b|(?:(?:here|in (?:this|our) [\w-]{1,30}),? )?we (?:only )?(?:use|write|name|put|keep|run|call|store"
    r"|format|deploy|commit|test|document)\s[^.;?]{2,80}(?:, (?:never|not)|,? instead of|,? rather than)\s",
    re.IGNORECASE,
)
"""Statements of how things are done: one way, and not another."""
EVERYWHERE = lazy_regex(
    r"\b(?:everywhere|in (?:all|every|any) (?:project|repo\w*)s?|all (?:my|our) (?:projects|repos\w*)|in general|generally)\b",
    re.IGNORECASE,
)
MACHINE = lazy_regex(
    r"[{}<>|\\]|^\W*\$ |\[\w+:\w+\]|^\W*(?:error\b|warning\b|at (?=[\w$./<>]+[.(:])|file (?=\S*[./:])|line \d)|https?://\S+\s*$"
    r"|\b\d{2}:\d{2}:\d{2}\b",
    re.IGNORECASE,
)
_CONCEDES = lazy_regex(
    r"\W*(?:you(?:'re| are) (?:absolutely |totally |completely )?right|good (?:point|catch|call|question to raise|idea"
    r"|instinct)|fair (?:point|enough|challenge|call)|great (?:point|catch|idea)|(?:yes|right|agreed)[,.!—–-]{1,2}\s|sorry"
    r"|my mistake|i was wrong|makes sense|understood|got it)",
    re.IGNORECASE,
)

_OBJECTS = lazy_regex(
    r"\W*(?:but|no|wait|isn'?t|aren'?t|shouldn'?t|doesn'?t|why (?:not|do(?:n'?t)? (?:we|you)))\b(?!-\w)", re.IGNORECASE
)
_PLAIN_YES = lazy_regex(
    r"\W*(?:yes|right|agreed|sorry|makes sense|understood|got it)\b(?!.{0,12}you(?:'re| are) right)", re.IGNORECASE
)

_FIRM = lazy_regex(r"\b(?:always|never|ever|from now on|going forward|future|rule|directive|policy|convention)\b", re.IGNORECASE)
FOR_NOW = lazy_regex(
    r"\b(?:yet|for now|right now|(?:for|at) the moment|for the time being|temporarily|in the meantime|this time|(?:this"
    r"|just) once|just kidding|joking|never ?mind|today|tonight|tomorrow|until|in this (?:case|pr|branch|file|commit)"
    r"|anything else|(?:that|this) one)\b",
    re.IGNORECASE,
)
TYPED = 700
"""Most characters of a typed message; a longer one was pasted."""


def asks(said: str) -> bool:
    """Return whether a message is a question, with its mark or, as people type it, without."""
    found = ASKING.match(without_opening(said).lstrip("+-*• ")) or _UNMARKED.search(said) or ASKS_BACK.search(said)
    return found is not None


_UNMARKED = lazy_regex(
    r"(?:^|[.!;]\s+)(?:(?:also|and|but|so|or)\s+)?(?:should|does|can|could|would|is|are|will)"
    r" (?:it|this|that|they|there|(?:(?:the|our|an?) )?[\w`.-]+)"
    r"(?= (?:be|also|still|not|really|just|simply|confuse|mean|have|need|work|cause|make)\b)"
    r"|\b(?:should|could|would|can|do|are)n['’]?t (?:we|it|they)\b",
    re.IGNORECASE,
)
"""A question without its mark, as people type it."""


_QUOTED = lazy_regex(
    r"\"[^\"]*(?:\"|$)|“[^”]*(?:”|$)|„[^“”]*(?:[“”]|$)|«[^»]*(?:»|$)|(?<!\w)'[^'\n]{3,}'(?!\w)|`[^`]+`",
)
_CLAUSE = lazy_regex(
    r"[;:—–]|,|\s-\s|\b(?:but|and then|so|and(?= (?:i|we)(?:'ve| have)? (?:decided|agreed|chose|settled)))\b", re.IGNORECASE
)
_HANDLED_TEXT = lazy_regex(
    r"\b(?:translate|rephrase|reword|proofread|summari[sz]e|explain|quote|paste|rename|replace|the (?:text|string|sentence"
    r"|message|label"
    r"|title|button|line|heading|phrase|comment|tooltip|error)|(?:a|the) (?:comment|test|string|message|line)[^:]{0,30}|it"
    r"|that) ?(?:says?"
    r"|said|reads?|to|into|as|with)?[^:]{0,30}:",
    re.IGNORECASE,
)
"""Leads on to a text to work on, which says nothing of the work."""
_INDIRECT = lazy_regex(
    r"\bwhether\b|(?<!that's )(?<!this is )(?<!which is )\b(?:why|how)\b(?! about)"
    r"|\b(?:ask(?:ed)?|check|tell me|know|see|wonder\w*|sure|verify|clear|say|find out|remember)\s+(?:(?:the )?\w+\s+)?if\b"
    r"|\b(?:remember|recall|forg[eo]t|know|explain|tell me|ask(?:ed)?|understand)\s+(?:when|what|which|who|where|that time"
    r"|the time)\b"
    r"|\b(?:maybe|perhaps|possibly|i wonder|not sure|i doubt|what if)\b",
    re.IGNORECASE,
)
_DENIED = lazy_regex(
    r"\b(?:\w+n'?t|not|never|nobody|no one|hardly|stop)\s+(?:\w+\s+){0,2}?(?:think|thought|believe|say|said|saying|suggest\w*"
    r"|mean|meant|true"
    r"|agree\w*|sure|need|have to|remember|recall|claim\w*|convinced|the case|correct|right)\b",
    re.IGNORECASE,
)
_SAID = (
    r"(?:\s\w+){0,2}?\s(?:said|says?|wrote|writes?|claims?|claimed|suggests?|suggested|recommends?|recommended|thinks?|thought"
    r"|wants?|wanted"
    r"|told|tells|argues?|argued|insists?|insisted|reads?|states?|stated|proposed|proposes|asked|complained|prefers?|preferred"
    r"|believes?)\b"
)
_OTHERS = (
    r"(?:he|she|they|it|docs?|documentation|readme|manual|guide|page|article|book|blog|post|log|banner|output|error|message"
    r"|e-?mail|mail"
    r"|letter|ticket|issue|comment|review|reviewers?|spec|standard|prompt|file|vendor|customers?|clients?|support|users?|example"
    r"|tutorial"
    r"|answer|model|agent|bot|claude|chatgpt|gemini|copilot|linter|someone|somebody|people)"
)
_REPORTED = lazy_regex(rf"\b{_OTHERS}{_SAID}|\baccording to\b", re.IGNORECASE)
_NAMED_AS_SAYING = lazy_regex(rf"(?<!\w)(?!(?:I|We|You)\b)[A-Z][a-z]+{_SAID}")
_SUPPOSED = lazy_regex(
    r"^\W*(?:(?:and|so|or|even|only|as)\s+){0,2}(?:if|suppose|supposing|assuming|imagine|had we|were we|in case|unless|until"
    r"|before|when(?:ever)?"
    r"|as soon as)\b",
    re.IGNORECASE,
)
_COMMANDING = lazy_regex(
    r"(?:[^,]*,\s+|\W*)(?:please|always|never|don't ever|stop|(?:make|be) sure|let's|remember|avoid|use)\b", re.IGNORECASE
)
ASKS_BACK = lazy_regex(
    r"(?:[,;—–-]\s*|\s)(?:or not|wdyt|what do you (?:think|say|remember|recommend|suggest)|(?:don't|do) you (?:agree|think so)"
    r"|(?:is|isn't|was|wasn't) (?:that|it) (?:right|so|true|correct|ok(?:ay)?))\W*$|,\s*(?:right|correct|or what|yes or no"
    r"|oder(?: nicht)?|nicht wahr|n'est-ce pas|non|hein|verdad|no|né)\W*$"
    r"|,\s*what (?:(?:would|will|could|does|do|did|should)\b|(?:happens?|breaks?|changes?)\W*$)",
    re.IGNORECASE,
)
_POLITE = lazy_regex(r"(?:can|could|would|will) (?:you|we|u)\b.{0,20}?\b(?:please|(?:make|be) sure)\b", re.IGNORECASE)


def unquoted(text: str) -> str:
    """Return the text with everything in quotation marks made unreadable, so that all places stay."""
    return _QUOTED.sub(lambda match: "_" * len(match.group()), text)


def is_own_word(text: str, said: re.Match[str], *, by_name: bool = False) -> bool:
    """Return whether what a pattern found in a sentence is the person's own word on how things are to be.

    It is not where they ask about it, suppose or deny it, or report what somebody else says; a colleague's word counts as theirs
    unless ``by_name``.
    """
    begins = max((end.end() for end in _CLAUSE.finditer(text, 0, said.end()) if end.end() <= said.start()), default=0)
    before = text[begins : said.start()]
    if _INDIRECT.search(before) or _DENIED.search(before) or _REPORTED.search(before) or _HANDLED_TEXT.search(text[: said.start()]):
        return False
    if by_name and _NAMED_AS_SAYING.search(before):
        return False
    return _COMMANDING.match(said.group()) is not None or not (_SUPPOSED.match(before) or _SUPPOSED.match(said.group()))


def without_assent(said: str) -> str:
    """Return the text without a leading assent."""
    assent = ASSENT.match(said)
    return said[assent.end() :].strip() if assent else said


def assents(said: str) -> bool:
    return bool(said) and "?" not in said and ASSENT.fullmatch(one_line(said)) is not None


def own_sentences(event: Event, said: str) -> list[Sentence]:
    """Return a person's sentences that stand: not another's text that they hand on or quote, nor what they correct at once."""
    found = sentences_of(event, own_part(said))
    gone = taken_back([each.text for each in found])
    kept: list[Sentence] = []
    block, marks, mark = -1, 0, _MARK
    for at, each in enumerate(found):
        if each.block != block:
            block, marks = each.block, 0
            whole = " ".join(one.text for one in found[at:] if one.block == block)
            mark = _MARK if len(_MARK.findall(whole)) % 2 == 0 else _NO_INCH
        if marks % 2 == 0 and at not in gone:
            kept.append(each)
        marks += len(mark.findall(each.text))
    return kept


_MARK, _NO_INCH = lazy_regex(r"[\"“”]"), lazy_regex(r"(?<!\d)[\"“”]")


def wishes(event: Event) -> Iterator[Sentence]:
    """Yield sentences in which a person says how things are to be done beyond the current task."""
    said = said_by_person(event)
    if not said or event.type is EventType.DECISION or len(said) > TYPED or assents(said):
        return
    for sentence in own_sentences(event, said):
        text = sentence.text
        if text.endswith("?") or not 4 <= sentence.words <= 60 or MACHINE.search(text):
            continue
        if not FOR_NOW.search(without_exception_of_today(text)) and _is_wish(unquoted(without_opening(text))):
            yield sentence


def _is_wish(said: str) -> bool:
    convention = _CONVENTION.match(said)
    if convention is None and asks(said) and not (_AT_ALL_TIMES.match(said) or _POLITE.match(said)):
        return False
    found = [*STANDING.finditer(said), *([convention] if convention else [])]
    return any(is_own_word(said, each) for each in found)


_AT_ALL_TIMES = lazy_regex(r"when(?:ever)?\s[^,;?]{2,80},\s+", re.IGNORECASE)


def is_firm(said: str) -> bool:
    return bool(_FIRM.search(said))


_DECIDES = lazy_regex(
    r"\b(?:let'?s (?:go|use|stick|keep|do|drop|switch|move|put|make|not|leave|take|store|have|build|write|name|call"
    r"|adopt|pick|choose|split|replace|deploy)|(?:i|we)(?:'ve"
    r"| have)? (?:decided|agreed|chose|settled)|(?:i|we)(?:'ll|'d| will| would| should)? (?:go(?:ing)? (?:with|for)"
    r"|stick (?:with|to)|rather (?:use|have|keep|go))|go with|stick with|(?:i|we) don'?t want|(?:i|we) want|the decision is)\b",
    re.IGNORECASE,
)
_GROUNDED = lazy_regex(
    r"\b(?:instead of|rather than|because|since|so that|otherwise|over(?= \w+ because)|as opposed to|, not|not \S+,? because"
    r"|due to)\b",
    re.IGNORECASE,
)


_WONDERS = lazy_regex(r"(?:maybe|perhaps|probably|possibly|not sure|i guess|i wonder)\b", re.IGNORECASE)


def stated_decisions(event: Event) -> Iterator[Sentence]:
    """Yield sentences in which a person decides something and gives the reason, or the alternative it replaces."""
    said = said_by_person(event)
    if not said or event.type is EventType.DECISION or len(said) > 4 * TYPED:
        return
    for sentence in own_sentences(event, said):
        text = sentence.text
        if text.endswith("?") or not 6 <= sentence.words <= 80 or MACHINE.search(text):
            continue
        plain = unquoted(text)
        if not _GROUNDED.search(plain) or _WONDERS.match(without_opening(plain)) or asks(plain):
            continue
        if any(
            is_own_word(plain, each, by_name=True) and not _TO_LEARN.match(plain, each.end()) for each in _DECIDES.finditer(plain)
        ):
            yield sentence


_TO_LEARN = lazy_regex(
    r"(?: you)? to (?:(?:understand|know|learn|hear|find|figure|talk|discuss|think)\b"
    r"|(?:see|check|ask|compare|look|read|explore|investigate)\b(?!(?!.*\b(?:first|guess\w*)\b).*\b(?:instead of|rather than)\b))",
    re.IGNORECASE,
)


def directs(said: str) -> bool:
    """Return whether a person's few words change how a thing is done, rather than giving the next task."""
    if len(said) > TYPED or "?" in said or MACHINE.search(said) or FOR_NOW.search(said) or PASSING.search(said):
        return False
    return bool(_DIRECTING.search(said))


_DIRECTING = lazy_regex(
    r"^\W*(?:(?:no|nope|but|and|so|just|actually|please|rather|let'?s)[\s,.;:—–-]+){0,3}"
    r"(?:don'?t|do not|use|keep|avoid|put|never|always|only|not)\s"
    r"|\b(?:instead|prefer|avoid|never|always|should(?:n'?t)? (?:be|not|have|use|go|live)|i would have|rather than)\b",
    re.IGNORECASE,
)


def concedes(text: str, said: str = "") -> bool:
    """Return whether an agent's message begins by conceding what a person ``said``; a plain yes only answers a question."""
    gives_way = _CONCEDES.match(text[:200])
    objects = "?" not in said or _OBJECTS.match(said) is not None
    return gives_way is not None and objects and not ("?" in said and _PLAIN_YES.match(text[:200]))


_FEWEST_STEMS = 3
_FEWEST_OF_A_CORRECTION = 2
_CORRECTION = 320
"""Most characters of a message that only corrects; a longer one has another subject too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A person's statement. ``text`` is theirs, without introductory words. ``firm``: they said that it is to be kept, or was
    decided.
    """

    rule: Literal["reminder", "correction", "choice"]
    text: str
    firm: bool


def statements(event: Event, *, answered: bool) -> Iterator[Statement]:
    """Yield a message's statements. ``answered``: an agent acted or spoke before, so these words may be a correction."""
    said = said_by_person(event)
    if not said or event.type is EventType.DECISION or len(said) > TYPED or assents(said):
        return
    elsewhere = {each.text for each in (*wishes(event), *stated_decisions(event))}
    sentences = [each for each in own_sentences(event, said) if not MACHINE.search(each.text)]
    if not elsewhere and len(said) <= _CORRECTION and (order := _ordered(" ".join(each.text for each in sentences), answered)):
        yield Statement(rule="correction", text=order, firm=False)
        return
    for at, sentence in enumerate(sentences):
        if at and _KEEP_THAT.fullmatch(sentence.text) and _is_lasting(sentences[at - 1].text):
            yield Statement(rule="reminder", text=sentences[at - 1].text, firm=True)
        if sentence.text in elsewhere or not 4 <= sentence.words <= 60:
            continue
        text = without_opening(sentence.text)
        if (kept := _KEPT.fullmatch(text)) and _is_lasting(kept["content"]):
            yield Statement(rule="reminder", text=kept["content"], firm=True)
            continue
        match = _REMINDS.search(text)
        if match and _is_lasting(match["content"]):
            yield Statement(rule="reminder", text=match["content"], firm=bool(_KEEP.match(match["lead"])))
        elif match is None and _OWNS.match(text) and not FOR_NOW.search(text):
            yield Statement(rule="reminder", text=text, firm=False)
        elif match is None and (chosen := _chosen(sentence.text) or _required(sentence.text)):
            yield Statement(rule="choice", text=chosen, firm=bool(_SETTLED.match(chosen)))


_KEEP = lazy_regex(r"remember|keep|bear|don'?t forget|memori[sz]e|save|add|store|put|commit", re.IGNORECASE)
_REMINDS = lazy_regex(
    r"(?:^|[.!;]\s+)(?:(?:please|and|also|but|so|just)\s+){0,2}(?P<lead>"
    r"(?:remember|don'?t forget|memori[sz]e|note|make a note|take note)(?:\s+that\b|(?:\s+this)?\s*[:,—–-])"
    r"|(?:remember|note)(?=\s+(?:the|our|we|all|every)\s.{3,80}\s(?:is|are|has|have|needs?|must|can|can'?t|cannot|does|doesn'?t"
    r"|don'?t|will"
    r"|won'?t|runs?|uses?|lives?|only|always|never)\s)"
    r"|(?:keep|bear) in mind|be aware|for (?:the record|(?:future |your )?(?:reference|information))|fyi|heads[- ]?up"
    r"|(?:just )?so you know|you should know|(?:important|reminder)(?=\s*:)"
    r"|(?:save|add|store|put|commit)\s+(?:(?:this|that|it)\s+)?(?:to|in|into)\s+(?:(?:your|the)\s+)?(?:memory|notes?|vault)\b"
    r")\s*[,:;.—–-]*\s*(?:(?:this|that)\b\s*[,:—–-]*\s*)?(?P<content>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_THAT = r"(?:and )?(?:please )?(?:remember|note|keep|don'?t forget) (?:that|this|it)(?: in mind| down| for later)?\W*"
_KEEP_THAT = lazy_regex(_THAT, re.IGNORECASE)
_KEPT = lazy_regex(rf"(?P<content>[^?]{{12,300}})(?:[,;:]| [—–-]+) {_THAT}", re.IGNORECASE)
_NAME = (
    r"(?<![\w`./])(?<![Tt]he )(?<![Oo]ur )(?<![Aa] )(?<!an )(?<!his )(?P<{}>[A-Z][^\W\d_A-Z]{{2,14}}(?: [A-Z][^\W\d_A-Z]{{2,14}})?)"
)
_OWNS = lazy_regex(
    rf"{_NAME.format('owner')} (?:from [\w ]{{2,30}} |also |still |now )?(?:owns|maintains|runs|leads|looks after|takes care of"
    r"|is (?:responsible for|in charge of|on call for|our contact for"
    r"|the (?:\w+ )?(?:owner|maintainer|lead|contact|reviewer) (?:of|for|at)))"
    r"\s(?=\S+)"
)
"""Who is responsible for what."""
_ACTS = (
    r"(?:said|says|asked (?:for|us|me|to|that|if|whether)|wants (?:us|me|to|it|that)|decided|approved|reviewed|insists|suggested"
    r"|prefers|requested|complained|agreed|signed off|objected|pointed out|noticed|will review"
    r"|is (?:on|off|back from) (?:leave|vacation|holiday|call|sick))"
)
_NAMED = (
    _OWNS,
    lazy_regex(rf"{_NAME.format('who')} {_ACTS}\b"),
    lazy_regex(
        rf"{_NAME.format('whose')}['’]s (?:review|feedback|comments?|opinion|decision|approval|request|team|call|pull request"
        rf"|PR)\b"
    ),
    lazy_regex(
        r"(?i:\b(?:ask|asked|ping|cc|according to|(?:agreed|discussed|checked?) with|talk(?:ed)? to"
        rf"|(?:approved|reviewed|owned|decided|requested) by))\s+{_NAME.format('whom')}\b"
    ),
)
_NO_PERSON = frozenset(
    re.findall(
        "[a-z]+",
        """
        claude codex gemini copilot cursor cline aider goose devin chatgpt openai anthropic coderabbit dependabot renovate
        sonar github gitlab bitbucket jira linear slack sentry vercel google microsoft apple amazon stripe docker kubernetes
        postgres redis linux windows monday tuesday wednesday thursday friday saturday sunday january february march april
        june july august september october november december legal marketing finance support sales security product
        engineering management they she the this that who someone somebody everyone everybody anyone one people user users
        customer customers client clients server team you how what when where why just please
        """,
    )
)
"""Agents, services, days and departments, of which people speak as they do of a colleague."""


def people_in(events: Iterable[Event]) -> frozenset[str]:
    """Return the people whom the person names in their own words, as somebody who acts, decides or is asked."""
    found: set[str] = set()
    for event in events:
        said = said_by_person(event)
        if not said or len(said) > TYPED:
            continue
        for pattern in _NAMED:
            for match in pattern.finditer(said):
                (name,) = match.groupdict().values()
                if not any(part.lower() in _NO_PERSON for part in name.split()) and not MACHINE.search(
                    _line_of(said, match.start())
                ):
                    found.add(name)
    return frozenset(found)


def _line_of(said: str, at: int) -> str:
    return said[said.rfind("\n", 0, at) + 1 : said.find("\n", at) if "\n" in said[at:] else None]


_PASSING = lazy_regex(
    r"[?]|^(?:bug|bugs|issue|error|time|day|thing|one|ones|problem|test|ticket|pr|discussion|file|function|guy|to)\b|\b(?:today"
    r"|tomorrow|tonight|right now|for now|this (?:morning|afternoon|evening))\b|\bi(?:'m| am) (?:off|out|away|back|going|done"
    r"|leaving|still|not sure)\b|\bi(?:'ll| will|'ve just| just)\b|\blet'?s\b",
    re.IGNORECASE,
)


def _is_lasting(statement: str) -> bool:
    return len(stems(statement)) >= _FEWEST_STEMS and not _PASSING.search(statement) and not GUESS.search(statement)


_SAYS_NO = lazy_regex(
    r"\W*(?:no|nope|nah|wrong|stop|wait|that'?s (?:wrong|not (?:right|what (?:i|we) (?:wanted|meant|asked for))))"
    r"(?!-\w)(?:\s*[,.!;:—–-]+\s*|\s+(?=(?:don'?t|do not|use|not|never|please|it should|we should)\b))",
    re.IGNORECASE,
)
_ORDERS = lazy_regex(
    r"(?:(?:please|just|actually|again|i (?:said|meant)|that'?s (?:wrong|not right)|we|you)[\s,.;:—–-]+){0,3}"
    r"(?:(?:don'?t|do not)\s(?!(?:worry|bother|mind|know|think|see|understand|remember|have|get|need|want|do)\b"
    r"|\w+ (?:it|that|this|them)\b)|use\b|keep\b|put\b"
    r"|not\s|never\b|only\b|stick\b|prefer\b|avoid\b|should\b|must\b"
    r"|(?:it|that|this|they|we|you|there|(?:the|all) [\w-]{1,30}) (?:should|must|has to|have to|needs? to|mustn'?t|shouldn'?t"
    r"|can'?t|cannot)\b)",
    re.IGNORECASE,
)
_NOT_BUT = lazy_regex(
    r"(?:please |just )?(?:(?:don'?t|do not) (?!(?:worry|bother|mind)\b)|not )[^,;.—–?]{3,90}(?:[,;.—–-]+\s*|\s+(?=but\b))"
    r"(?:(?:but|just|please|rather|instead)\s+){0,2}(?:use|keep|put|write|call|take|go|do|make|stick|store)\b",
    re.IGNORECASE,
)


def _ordered(said: str, answered: bool) -> str:
    """Return what a short message wants instead of something that it rejects."""
    if "?" in said or FOR_NOW.search(said) or len(stems(said)) < _FEWEST_OF_A_CORRECTION:
        return ""
    if no := _SAYS_NO.match(said):
        return said[no.end() :] if _ORDERS.match(said, no.end()) else ""
    order = without_opening(said)
    return order if answered and len(stems(said)) >= _FEWEST_STEMS and _NOT_BUT.match(order) else ""


_LEFT_OPEN = lazy_regex(
    r"(?:(?:still|one|an?) )?(?:open (?:question|point|issue)|unresolved|undecided|to be decided|tbd)\b"
    r"(?:\s*[,(][^:—–]{2,60})?\s*(?:[:—–]|\s-)\s*(?P<what>\S.+)"
    r"|(?P<whole>(?:(?:we|i)(?:'ve| have)?(?: still)? (?:have not|haven'?t|not)(?: yet)? (?:decided|settled|agreed)"
    r"|(?:we|i) (?:still )?(?:need|have) to (?:decide|agree on)|(?:it|this) is (?:still )?(?:undecided|an open question))\b.+)",
    re.IGNORECASE | re.DOTALL,
)


def left_open(event: Event | None) -> Iterator[str]:
    """Yield what a message names as an open question, if that names a subject."""
    for sentence in sentences_of(event, event.text) if event is not None else ():
        text = without_opening(sentence.text)
        if sentence.words <= 60 and (found := _LEFT_OPEN.match(text)) and not MACHINE.search(text):
            what = found["what"] or found["whole"]
            if len(stems(what)) >= _FEWEST_STEMS + 1:
                yield what


def leaves_undecided(answer: str, *, typed: bool) -> bool:
    """Return whether an answer to an agent's question chooses nothing; a ``typed`` one is not among the options offered."""
    if _NO_ANSWER.fullmatch(answer) or answer.endswith("?"):
        return True
    return typed and ("?" in answer or asks(answer) or _UNDECIDED.match(answer) is not None)


_NO_ANSWER = lazy_regex(
    r"\W*(?:you (?:decide|choose|pick)|up to you|whatever|either|your (?:call|choice)|(?:i )?don'?t (?:know|care|mind)"
    r"|no preference|next\b.*|skip.*|other|none|not sure|(?:let'?s )?(?:continue|proceed|move on|go on)\b.*|cancel.*|stop.*)\W*",
    re.IGNORECASE,
)
_UNDECIDED = lazy_regex(
    r"\W*(?:(?:well|no|hm+|ok(?:ay)?|sorry|please)\W+)?(?:both\W+$|(?:neither|none of|(?:let'?s|can we|we should|i (?:want|need"
    r"|have|'d like) to) (?:first )?(?:discuss|talk|think|see|understand|know|check|ask|wait)|i'?d like to|(?:first )?(?:explain"
    r"|tell me|clarify|elaborate|ask \w+|(?:compare|describe)(?! by\b)|help me)|i(?:'m| am)? (?:not sure|unsure|have no"
    r"|(?:don'?t|do not) (?:know|care|mind|have|understand|see)|need (?:more (?:time|info\w*|details?|context)|time))"
    r"|no (?:idea|clue|opinion)|(?:it )?depends|more (?:info\w*|details?|context)|which"
    r"|(?:wait|later)(?=\W*$|\s*[,.!;:—–]| (?:a|please|until (?:i|we))\b)|maybe|perhaps|weder|kein[es]* (?:davon|von)|lass uns"
    r"|erklär\w*|(?:ich )?weiß nicht|vielleicht|frag|(?:aucune?|ningun[oa])(?=\W*$| d(?:es?|['’]\w+)\b)|ni l['’]un|je ne sais"
    r"|explique|discutons|peut-être|ni uno|no (?:lo )?sé|expl[ií]ca\w*|hablemos|quizás?|depende)\b)",
    re.IGNORECASE,
)
"""Typed instead of an answer: a refusal of all, or a wish to know or to think first."""


_SETTLED = lazy_regex(
    r"(?:the )?decision(?: is|:)|(?:we|i)(?:'ve| have)? (?:finally |now |both |all )?(?:decided|agreed|chose|settled|opted)\b",
    re.IGNORECASE,
)
_CHOOSES = lazy_regex(
    r"(?:let'?s|we(?:'ll| will|'re going to| are going to)|i(?:'ll| will| want to|'d like to)|(?:i|we) want (?:you|us) to)\s+"
    r"(?:just |rather |simply )?(?:use|go with|go for|stick (?:with|to)|(?:switch|move) to(?! (?:the|my|your)\b)|migrate to|adopt"
    r"|settle on|standardi[sz]e on|build on|deploy (?:it |this )?(?:on|to))\s+(?P<what>\S+)",
    re.IGNORECASE,
)
_IN_PLACE = lazy_regex(
    r"(?:please )?(?:use|take|keep|store|prefer)\s+(?P<what>\S+)[^.;?]{0,90}?(?:,? instead of|,? rather than|, not)\s",
    re.IGNORECASE,
)
_POINTS = lazy_regex(
    r"(?:it|that|this|these|those|them|your|yours|mine|his|her|another|other|both|all|what|whatever|option|approach|same|plan)\b"
    r"|[a-d]\b|#?\d",
    re.IGNORECASE,
)
"""References to earlier text; such a sentence cannot stand alone."""
_POINTS_BACK = lazy_regex(
    r"\b(?:the|an?) (?:other|same|first|second|third|last|next|latter|former|one|ones|old|new one|above)\b"
    r"|\bas (?:before|planned)\b"
    r"|\b(?:option|suggestion|proposal) \w+|\bto (?:find|check|see|look|debug|figure|verify|test|search|inspect|trace"
    r"|understand|compare|confirm|reproduce)\b|\b(?:if|first|again|now|next)\b",
    re.IGNORECASE,
)


def _chosen(sentence: str) -> str:
    """Return the sentence without introductory words, if it decides for something that it names."""
    text = without_opening(sentence)
    if (
        asks(sentence)
        or _LEFT_OPEN.match(text)
        or "?" in text
        or FOR_NOW.search(text)
        or GUESS.search(text)
        or len(stems(text)) < _FEWEST_STEMS
    ):
        return ""
    chooses = _CHOOSES.match(text) or _IN_PLACE.match(text)
    if chooses is None:
        return text if _SETTLED.match(text) else ""
    return "" if _POINTS.match(chooses["what"]) or _POINTS_BACK.search(text) else text


_HOW_IT_SHOULD_BE = lazy_regex(
    r"\b(?:should(?:n'?t| not)?|instead|rather than|not just|avoid|never|always|ensure|make sure|must(?:n'?t)?"
    r"|(?:don'?t|do not|no longer|no) need|(?:needs?|has|have) to (?:be|have|go|stay|use|work)"
    r"|without (?!(?:a )?(?:doubt|question|problems?)\b)[a-z]+"
    r"|(?:don'?t|do not) (?!(?:know|think|see|understand|remember|mind|care|worry|like)\b)[a-z]+)\b",
    re.IGNORECASE,
)
"""Words that say how a thing is to be, or how not."""


def states_requirement(text: str, words: int) -> bool:
    """Return whether a person's sentence says how a thing is to be done or made, rather than asking or reporting."""
    plain = without_opening(text)
    if text.endswith("?") or not 5 <= words <= 45 or len(stems(plain)) < _FEWEST_STEMS + 1 or MACHINE.search(text):
        return False
    return _HOW_IT_SHOULD_BE.search(plain) is not None and not (asks(plain) or GUESS.search(plain) or FOR_NOW.search(plain))


_REQUIRES = lazy_regex(
    r"(?!(?:add|write|make|check|ensure|mention|so|if|then|which|that|this|it|they|there)\b)\S.{2,100}?\s(?:should(?:n'?t| not)?"
    r"|must(?: not)?|needs? to|has to)(?: (?:also|only|always|never|just))? (?:be(?! (?:added|changed|deleted|fixed|moved"
    r"|removed|renamed|reverted|updated)\b)|go|live|return|start|end|appear|show|stay|use|contain|include|default)\b",
    re.IGNORECASE,
)


_SAY_SO = lazy_regex(
    r"(?:please )?(?:also )?(?:mention|note|specify|state|ensure|make sure)(?: also)?(?: that)+,?\s+", re.IGNORECASE
)


def _required(sentence: str) -> str:
    """Return the sentence without introductory words, if it states a requirement of something that it names."""
    text = _SAY_SO.sub("", without_opening(sentence))
    if asks(sentence) or _LEFT_OPEN.match(text) or "?" in text or len(stems(text)) < _FEWEST_STEMS:
        return ""
    if FOR_NOW.search(text) or PASSING.search(text) or GUESS.search(text):
        return ""
    if _POINTS.match(text) or _POINTS_BACK.search(text) or _REQUIRES.match(text) is None:
        return ""
    modal = _MODAL.search(plain := unquoted(text))
    return text if modal is not None and is_own_word(plain, modal) else ""


_MODAL = lazy_regex(r"\b(?:should(?:n't)?|must|needs? to|has to)\b", re.IGNORECASE)
