"""Sentences that could be part of a note, the expressions that mark what matters, and the titles and entities made of them.

The expressions are listed in `cues.toml`. English only.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from typing import Literal

from kite_memory.distill.asked_to_keep import VERB as VERB_OF_REQUEST
from kite_memory.distill.asked_to_keep import with_exceptions
from kite_memory.distill.parse_answer import TITLE_CHARS
from kite_memory.distill.prose import bounded, clean, one_line, sentences, stems, without_emphasis
from kite_memory.model.event import Event, EventType, opens_turn
from kite_memory.model.note import Origin, Rejected
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip

_DATA = tomllib.loads(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))


def _says(cue: str) -> re.Pattern[str]:
    return lazy_regex(rf"\b(?:{'|'.join(_DATA['says'][cue])})\b", re.IGNORECASE)


def _opens(fragments: Sequence[str]) -> re.Pattern[str]:
    return lazy_regex(rf"(?:{'|'.join(fragments)})(?!\w)", re.IGNORECASE | re.DOTALL)


CAUSE, TRACED, SLIP, CHOICE, LIMIT = map(_says, ("cause", "traced", "slip", "choice", "limit"))
VERB, GUESS, STATUS, OFFER, SELF = map(_says, ("verb", "guess", "status", "offer", "myself"))
PROPOSAL, RECOMMENDS, DEICTIC = map(_says, ("proposal", "recommends", "deictic"))
STEP, ANNOUNCING, CHECKS, LEANING = (_opens(_DATA["opens"][cue]) for cue in ("step", "announcing", "checks", "leaning"))
CHANGE, SUBORDINATE, HEADLESS, TURNED_OUT = (
    _opens(_DATA["opens"][cue]) for cue in ("change", "subordinate", "headless", "turned_out")
)
BINDING, BOUNDING = (
    lazy_regex(rf"(?<![\w-])(?:{'|'.join(_DATA['person'][cue])})(?![\w-])", re.IGNORECASE) for cue in ("binding", "bounding")
)
PASSING = lazy_regex(rf"\b(?:{'|'.join(_DATA['person']['passing'])})\b", re.IGNORECASE)
ASKING, ORDERING, TELLING = (_opens(_DATA["person"][cue]) for cue in ("asking", "ordering", "telling"))
ASSENT = lazy_regex(rf"\W*(?:(?:{'|'.join(_DATA['person']['assent'])})(?!-\w)(?:\W+|$))+", re.IGNORECASE)
CHOSE = lazy_regex(
    r"\b(?:i|we)(?:'ve| have)? (?:chosen?|picked|went with|opted for|decided (?:on|for|to use)|used)\b.{2,120}\b(?:over|instead of"
    r"|rather than|not)\b",
    re.IGNORECASE,
)
CODE = lazy_regex(
    r"`[^`\n]{1,120}`|\b\w+(?:\.\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+_\w+|--?[a-z][\w-]{2,}|\b[\w.-]{1,80}/[\w/.-]+"
)


Rule = Literal[
    "plan", "answer", "thread", "agreed", "pick", "refusal", "objection", "wish", "stated", "reminder", "correction", "choice",
    "manner", "conceded", "outcome", "cause", "claim", "command", "open",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDraft:
    """A possible note. ``rule`` is its source; ``worth`` is comparable between agents' claims, see `claims.Claim`."""

    rule: Rule
    kind: Literal["decision", "insight", "fact", "preference", "question"]
    title: str
    body: str
    evidence: tuple[str, ...]
    importance: int
    origin: Origin
    worth: float = math.inf
    rejected: tuple[Rejected, ...] = ()
    symptom: str = ""
    everywhere: bool = False


def joined(texts: Iterable[str]) -> str:
    """Join texts into one paragraph; list items without an ending are separated by semicolons."""
    said = [text.rstrip(" ;,") for text in texts]
    closed = [text if text.endswith((*".!?…”:", '."', ".)")) else f"{text};" for text in said[:-1]]
    return " ".join([*closed, *(text if text.endswith(tuple(".!?…”")) else f"{text}." for text in said[-1:])])


_READ = 16_000
_MOST_SENTENCES = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence. ``place`` is 0 at the start of its message and close to 1 at its end. ``heading`` is the heading above it.

    ``block`` is the number of its paragraph or list item.
    """

    event: Event
    text: str
    stems: frozenset[str]
    words: int
    place: float
    heading: str
    block: int = 0


def said_by_person(event: Event) -> str:
    """Return a person's own words in an event: a message or an answer."""
    return bounded(event.text, _READ).replace("’", "'") if event.role == "user" else ""


def sentences_of(event: Event, text: str) -> tuple[Sentence, ...]:
    found: list[tuple[int, str, str]] = []
    for number, (heading, block) in enumerate(_blocks(_THOUGHT.sub("", clean(bounded(text, _READ).replace("’", "'"))))):
        said = sentences(block)
        found.extend((number, heading, sentence) for sentence in (with_exceptions(said) if event.role == "user" else said))
        if len(found) >= _MOST_SENTENCES:
            break
    return tuple(
        Sentence(
            event=event,
            text=sentence,
            stems=stems(sentence),
            words=len(sentence.split()),
            place=at / len(found),
            heading=heading,
            block=number,
        )
        for at, (number, heading, sentence) in enumerate(found)
    )


_THOUGHT = lazy_regex(r"<(thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_FENCE = lazy_regex(r"(?:```|~~~)")
_RULE = lazy_regex(r"[-=_*|+: ─━═]+")
_HEADING = lazy_regex(r"#{1,6} +(?P<title>.*)")
_BOLD_HEADING = lazy_regex(r"\*\*(?P<title>[^*]{2,80})\*\*:?")
_ITEM = lazy_regex(r"(?:[-*•✓✔✅❌]|\d{1,2}[.)]|\([a-z0-9]\))\s+")
_TASK = lazy_regex(r"\[[ xX]\]\s+")
_EMOJI = lazy_regex(r"(?:[✅❌✓✔☑🎉⚠ℹ]\ufe0f?)+\s*")
_TAG = lazy_regex(r"</?[a-z][a-z_-]{1,30}>")
_LINK = lazy_regex(r"\[([^\]\n]{1,120})\]\([^)\s]{1,400}\)")


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield paragraphs and list items, each with the heading above it."""
    heading = ""
    rows: list[str] = []
    fenced = False
    for row in [*text.split("\n"), ""]:
        line = row.strip()
        if _FENCE.match(line):
            fenced = not fenced
            line = ""
        title = _HEADING.match(line) or _BOLD_HEADING.fullmatch(line)
        item = _ITEM.match(line)
        ends = fenced or not line or line.startswith(("|", ">")) or bool(_RULE.fullmatch(line))
        if (ends or title or item) and rows:
            yield heading, _plain(" ".join(rows))
            rows = []
        if title:
            heading = _plain(title["title"])
        elif not ends:
            rows.append(_TASK.sub("", line[item.end() :]) if item else line)


def _plain(text: str) -> str:
    """Remove emphasis, links and tags; text in backticks is unchanged."""
    parts = without_emphasis(_LINK.sub(r"\1", text)).split("`")
    return "`".join(part if at % 2 else _EMOJI.sub("", _TAG.sub("", part)) for at, part in enumerate(parts)).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A person's request and everything that followed it.

    ``asked`` is ``None`` for a chunk that begins in the middle of a turn, and for a plan: the person approved it, but in an agent's
    words.
    """

    asked: Event | None
    events: tuple[Event, ...]


def turns(events: tuple[Event, ...]) -> list[Turn]:
    found: list[Turn] = []
    asked: Event | None = None
    current: list[Event] = []
    for event in events:
        if opens_turn(event):
            if current:
                found.append(Turn(asked=asked, events=tuple(current)))
            asked, current = event if event.type is EventType.USER_MESSAGE else None, [event]
        else:
            current.append(event)
    if current:
        found.append(Turn(asked=asked, events=tuple(current)))
    return found


_TITLE_WORDS, _SHORT_TITLE = 20, 12
_TITLE = 120
_FEWEST_TITLE_WORDS = 4
_OPENING = lazy_regex(
    r"(?:(?:so|and|but|also|now|yes|no(?=\s*[,.;:!—–-])|ok|okay|right|well|actually|basically|essentially|importantly|crucially"
    r"|however"
    r"|therefore|thus|hence|worse|better still|interestingly|notably|note(?: that)?|worth noting(?: that)?|in short|in other words"
    r"|bottom line|net effect|net result"
    r"|key insight|the (?:key|important) (?:thing|point)(?: here)?(?: is)?(?: that)?|(?:the )?(?:root cause"
    r"|(?:real|actual|underlying|true) (?:problem"
    r"|issue|cause)|problem|issue|bug|reason|cause|culprit|fix|answer|catch|upshot)(?: here)? (?:is|was)(?: that)?"
    r"(?! (?:in|on|at|with|within|inside|between|from|not)\b)"
    r"|it turns out(?: that)?|turns out(?: that)?|this means(?: that)?|which means(?: that)?|i think|i'd say|my take|we should"
    r"|let'?s(?: go with| use)?|go with|i found(?: that)?|found (?:it|the (?:bug|issue|problem|cause))|confirmed|please"
    r"|can (?:you|we)|could (?:you|we)|(?:we|i)(?:'ve| have)? (?:decided (?:to(?: use| go with)?|on|that)|chosen?|settled"
    r" on|agreed (?:on|to|that))|we(?:'ll| will|'re going to| are going to) (?:use|go with)|from now on|going forward|i want you to"
    r"|i'd like you to|i(?:'d| would)"
    r" (?:personally |really |much )?(?:prefer|rather)(?: that| if| we)*|i lean(?:ing)? towards?|i see|"
    r"unfortunately|looking (?:deeper|closer)|short answer(?=\s*[:—–-])"
    r"|(?:one|another) (?:small |last )?(?:leftover|footnote|caveat|nuance|note)(?=\s*[:—–-])"
    r"|worth flagging(?: in [^:]{2,30})?(?=\s*:)|(?:the )?(?:problem|issue|bug|(?:root )?cause|culprit)(?=\s*[:—–-])"
    r"|(?:make|be) sure(?: that)?(?: (?:you|we))?(?: to)?|btw|by the way|oh|nope|nah)\b(?!-\w)[\s,:;.!—–-]*)+",
    re.IGNORECASE,
)
_RUN_UP = lazy_regex(
    r"(?:(?:(?:and|also|but|so(?! (?:that|you|far)\b)|ok(?:ay)?|oh|ah|hey|btw|by the way|yes|yeah|yep|thanks|thank you|thx|plus)\b"
    r"(?!-\w)[\s,:;.!—–-]*|(?:no|nope|nah|hm+|well|right|fine|great|good|nice|cool|perfect|awesome|sure|then|again|wait|actually"
    r"|sorry|hi|hello"
    r"|noted|(?:just )?to be clear|(?:new|house|general) rule|(?:and )?(?:one (?:more|other|last)|another) (?:thing|point|rule))\b"
    r"(?!-\w)\s*[,:;.!—–-]+\s*)){1,6}(?=\S)",
    re.IGNORECASE,
)


def without_opening(said: str) -> str:
    """Return a person's words without those that only connect them to earlier ones."""
    text = said.strip()
    return text[opening.end() :] if (opening := _RUN_UP.match(text)) else text


_FIRST_PERSON = lazy_regex(r"\b(?:i|me|my|mine)\b|\bwe(?:'ll|'re| will| are)\b", re.IGNORECASE)


def in_own_words(said: str, limit: int) -> str:
    """Return a person's sentence as a sentence of its own; in quotation marks if it is in the first person, since a note has no
    ``I``.
    """
    text = without_opening(clip(one_line(said), limit)).rstrip(" ,;:—–-")
    if not CODE.match(text):
        text = text[:1].upper() + text[1:]
    text = text if text.endswith((".", "!", "?", "…")) else f"{text}."
    return f"“{text}”" if _FIRST_PERSON.search(text) else text


_MANNER = lazy_regex(
    r"^(?:(?:since|because|although|given|looking at|based on|according to|as)\s[^,;]{3,90},\s+)(?=\S+\s+\S+\s+\S+\s+\S)",
    re.IGNORECASE,
)
"""Reasons before a sentence's main part; where and when it holds, a title keeps."""
_NUMBERED = lazy_regex(r"^(?:\(?\d{1,2}[.)]|\(?[a-z]\))\s+(?=\S+\s)")
"""Number of a sentence within its list, which is dropped."""
_CLAUSE_END = lazy_regex(
    r"\s[—–-]{1,2}\s|[;:]\s|,\s(?=(?:so|which|because|since|but|and|or|then|while|though|although|not|never|always|rather|instead"
    r"|even"
    r"|if|when|as|unless|except|otherwise|plus|don'?t|use)\b)|\s\("
    r"|\s(?=(?:because|since|so that|which means|meaning|in order to|even though|although|whereas)\b)"
    r"|[.!?](?:\s|$)",
    re.IGNORECASE,
)
_LIMITS = lazy_regex(
    r"[\s(]*(?:(?:but|and) (?:not|only)|unless|except|excluding|otherwise|only|if|when|outside|apart from|other than)\b",
    re.IGNORECASE,
)
"""A continuation that says where the clause before it does not hold."""
_DANGLING = frozenset(
    re.findall(
        "[a-z'.]+",
        """
        a an the of to in on for and or nor but with by at as is are was were be been being that which who whose when
        if so not never always from into onto than then it its their this these those only will would can could should
        must may might has have had do does did don't doesn't same each any all no also still just even your our my
        his her because since while where whereas via per e.g i.e vs before after about over under between without
        within during through until unless except instead rather how what why there very more most too such both
        either neither i we you they he she let's please now
        """,
    )
)
"""Words that require a continuation: no title ends with one."""
_PHRASE = frozenset(
    re.findall(
        "[a-z]+",
        """
        for to in on with of before after at from by into as that which whose who and or but where when while if because since so
        than via per without unless until except instead rather
        """,
    )
)
"""Words with which the next phrase begins."""
_VERBS_OF_BEING = frozenset(("is", "are", "was", "were", "not", "never"))
_BOUNDARY = _PHRASE | _VERBS_OF_BEING
"""Words before which a phrase may be complete."""


_CHOOSING = (
    ("Use", lazy_regex(r"\buse\W*$", re.IGNORECASE)),
    ("Prefer", lazy_regex(r"\b(?:prefer|rather)\b", re.IGNORECASE)),
)
"""Verbs that an opening takes along: without them a title would only name a thing."""
VERB_OF_ORDER = lazy_regex(VERB_OF_REQUEST, re.IGNORECASE)
"""A sentence that begins with a verb: it asks for something."""


def title_of(sentence: str) -> str:
    """Return the first clause with enough content, without its introduction, at most twenty words and not ending with an incomplete
    phrase.
    """
    text = _MANNER.sub("", _NUMBERED.sub("", one_line(sentence[:600]).strip(" .:;,-—–\"'")))
    if opening := _OPENING.match(text):
        chosen = next((verb for verb, said in _CHOOSING if said.search(opening.group())), "")
        text = text[opening.end() :]
        if chosen and not text[:1].isupper() and not VERB.search(text[:_TITLE]) and not VERB_OF_ORDER.match(text):
            text = f"{chosen} {text}"
    head = text
    fits = len(text.split()) <= _SHORT_TITLE
    whole = len(text.split()) <= _TITLE_WORDS and len(text) <= _TITLE
    ends = [*_CLAUSE_END.finditer(text)]
    limit = max((end.start() for end in ends if whole and _LIMITS.match(text, end.end())), default=-1)
    for end in ends:
        if end.start() > limit and len(text[: end.start()].split()) >= 4 and not (fits and end.group().startswith(",")):
            head = text[: end.start()]
            break
    head = _balanced(" ".join(_whole(head.split())).strip(" .:;,-—–\"'"))
    return clip(head[:1].upper() + head[1:] if not CODE.match(head) else head, _TITLE)


_RANKED = lazy_regex(
    r"^(?:(?:critical|high|medium|low|minor|major|nit|blocker|info|note|caveat|p[0-4]|finding|point|item|commit|step|phase|layer"
    r"|fix|bug)"
    r"(?: (?:severity|priority))?(?: to be aware of)?(?: #?\d+)?(?: \([^)]{1,40}\))?\s*(?::|\s[—–-])\s*)+(?=\S+\s+\S+\s+\S)",
    re.IGNORECASE,
)
"""Rank or number of a finding before what it says."""
_FEWEST_CUT = 6

TITLE_WORDS = 30
"""Most words of a whole sentence used as a title; a model is asked for fewer."""


def asserting_title(sentence: str, limit: int = TITLE_CHARS) -> str:
    """Return a whole sentence as a title if it fits ``limit``; else up to a clause or phrase where it may be cut."""
    text = _RANKED.sub("", one_line(sentence[:600]).strip(" .:;,-—–'“”"))
    if opening := _OPENING.match(text):
        rest = re.sub(r"^that\s+(?=\S+\s\S+\s\S)", "", text[opening.end() :], flags=re.IGNORECASE)
        text = rest if len(rest.split()) >= _FEWEST_TITLE_WORDS and not LEANING.match(rest) and VERB.search(rest) else text
    for end in reversed([*_CLAUSE_END.finditer(text)]):
        if len(text) <= limit and len(text.split()) <= TITLE_WORDS:
            break
        if len(text[: end.start()].split()) >= 6 and is_whole(text[: end.start()]):
            text = text[: end.start()]
    words = text.split()
    room = len(words)
    while room > 1 and (len(" ".join(words[:room])) > limit or room > TITLE_WORDS):
        room -= 1
    if room < len(words):
        before_verb = words[room].lower() in _VERBS_OF_BEING  # what stands before it is the beginning of a clause
        cut = _closed(_before_half_a_code(_before_last_phrase(words, room - 1 if before_verb else room)))
        words = cut if len(cut) >= _FEWEST_CUT and is_whole(" ".join(cut)) else _closed(_before_half_a_code(words[:room]))
    head = _balanced(" ".join(words).strip(" .:;,-—–'“”"))
    return clip(head[:1].upper() + head[1:] if not CODE.match(head) else head, limit)


def title_with_reason(name: str, reason: str) -> str:
    """Return a plan's name as a title, with the reason for it: a name says what is done, not what was wrong or is wanted."""
    title = asserting_title(name)
    room = TITLE_CHARS - len(title) - len(": ")
    return f"{title}: {said}" if room >= _LEAST_REASON and is_whole(said := asserting_title(reason, room)) else title


_LEAST_REASON = 40
"""Least characters that are left for a reason."""


def is_whole(head: str) -> bool:
    """Return whether the head of a sentence asserts something: a subordinate clause needs its main clause, and that a verb."""
    main = head.rpartition(",")[2] if SUBORDINATE.match(head) or _PREPOSITION.match(head) else head
    if (main == head and (_DEPENDENT.match(head) or _PREPOSITION.match(head))) or (
        main != head and len(main.split()) < _FEWEST_TITLE_WORDS
    ):
        return False
    clause = _MAIN_CLAUSE.split(main, maxsplit=1)[0]
    return any(found is not None for found in (VERB.search(clause), _PREDICATE.search(clause), VERB_OF_ORDER.match(main)))


_PREDICATE = lazy_regex(
    r"[\w`)] (?:\w+ly )?[a-z]+(?:ed|went|won|got|hit|ran|came|saw|flow|get|make|call)\b"
    r"|[\w`)] [a-z]{2,}s (?:(?:the|an?|any|all|both|every|its|their|only|no)\b|[`\d])"
)
"""Verbs that `VERB` does not list, as far as their endings and the words after them show."""

_DEPENDENT = lazy_regex(r"(?:if|when(?:ever)?|because|since|although|though|while|unless|once|after|before)\s", re.IGNORECASE)
_PREPOSITION = lazy_regex(r"(?:in|on|at|for|with|by|from|under|during)\s(?!\w+ing\b)", re.IGNORECASE)
_MAIN_CLAUSE = lazy_regex(r"\s(?:when(?:ever)?|if|because|since|so that|while|although|unless|until)\s", re.IGNORECASE)


def _whole(words: list[str]) -> list[str]:
    """Return the words that fit into a title, cut before an incomplete phrase if enough is left."""
    room = _room(words)
    fitting = _before_half_a_code(words[:room])
    cut = _closed(_before_half_a_code(_before_last_phrase(words, room)))
    return cut if len(cut) >= _FEWEST_TITLE_WORDS else _closed(fitting)


def _before_half_a_code(words: list[str]) -> list[str]:
    """Return the words without code that is cut off at their end, if enough is left."""
    if sum(word.count("`") for word in words) % 2 == 0:
        return words
    begins = max(at for at, word in enumerate(words) if word.count("`") % 2)
    return words[:begins] if begins >= _FEWEST_TITLE_WORDS else words


def _room(words: Sequence[str]) -> int:
    """Return how many of the words a title may have, without cutting code in two."""
    lengths = accumulate(len(word) + 1 for word in words[:_TITLE_WORDS])
    fitting = sum(length - 1 <= _TITLE for length in lengths)
    return max(fitting, _FEWEST_TITLE_WORDS)


def _before_last_phrase(words: list[str], room: int) -> list[str]:
    kept = words[:room]
    if len(words) > room and not _ends_phrase(kept[-1], words[room]):
        for at in range(len(kept) - 1, _FEWEST_TITLE_WORDS - 1, -1):
            if kept[at].lower() in _PHRASE or kept[at - 1].endswith((",", ";", ":")):
                kept = kept[:at]
                break
    if len(kept) < len(words) and len(kept) > _FEWEST_TITLE_WORDS + 1 and kept[-2].lower() in ("and", "or", "but"):
        kept = kept[:-2]
    return kept


def _closed(words: list[str]) -> list[str]:
    kept = list(words)
    while len(kept) > 1 and kept[-1].lower().strip(".,;:—–-\"'") in _DANGLING | {""}:
        kept.pop()
    return kept


def _ends_phrase(last: str, following: str) -> bool:
    return last.endswith((",", ";", ":")) or following.lower() in _BOUNDARY


def _balanced(text: str) -> str:
    """Remove a backtick or bracket whose partner was cut away."""
    if text.count("`") % 2:
        text = text.replace("`", "")
    if text.count('"') % 2:
        text = text.replace('"', "")
    if text.count("“") != text.count("”"):
        text = text.replace("“", "").replace("”", "")
    if text.count("(") > text.count(")"):
        text = text[: text.rfind("(")] if text.rfind("(") > len(text) // 2 else text.replace("(", "")
    if text.count(")") > text.count("("):
        text = text[: text.rfind(")")] + text[text.rfind(")") + 1 :]
    return text


_NAMED = lazy_regex(
    r"(?P<path>(?<![\w/])(?:[\w.@-]+/)+[\w.@-]+\.\w{1,6}\b)|(?P<file>\b[\w-]+\.(?:py|go|ts|tsx|js|rs|md|toml|ya?ml|json|sql|sh"
    r"|rb|java|kt|c|h|cpp|cs|css|html|lock)\b)|(?P<camel>\b(?:[A-Z][a-z0-9]+){2,}\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b)"
    r"|(?P<snake>\b[a-z0-9]+(?:_[a-z0-9]+)+\b)|(?P<ticket>\b[A-Z]{2,6}-\d{1,6}\b|\b(?:PR|issue) #\d+\b)"
    r"|(?P<name>(?<=[a-z,] )[A-Z][a-z]{2,}[A-Z]?\w*(?: [A-Z][a-z]{2,}\w*)?)"
)
_NO_NAMES = frozenset(
    ("Let", "Now", "The", "This", "That", "When", "Yes", "Not", "Option", "Only", "And", "But", "Because", "Instead", "Note")
)


_NAMES_NOTHING = lazy_regex(
    r"[\\`\[\]{}<>\"|]|:\s|\$\?|^\d\d?:\d\d|^\d{4}-\d\d-\d\d|^(?=[0-9a-f]*\d)[0-9a-f]{7,40}$"  # code, times, hashes
)


def only_lists_changes(heart: Sequence[Sentence], best: Sentence, asked: str) -> bool:
    """Return whether a message says no more than a commit does: what was changed, and neither why nor what holds from now on."""
    if any(cue.search(each.text) for cue in (CAUSE, TRACED, CHOICE, LIMIT) for each in heart):
        return False
    changes = sum(bool(_CHANGED.search(each.text) or _FILE_FIRST.match(each.text)) for each in heart)
    return (
        (len(heart) >= _FEWEST_CHANGES and changes >= _MOSTLY * len(heart))
        or _TITLE_OF_CHANGE.match(title := asserting_title(best.text)) is not None
        or _FILE_FIRST.match(title) is not None
        or _ASKED_TO_COMMIT.match(asked) is not None
        or any(_UNTRIED.search(each.text) for each in heart)
    )


_FEWEST_CHANGES, _MOSTLY = 3, 0.6
_CHANGED = lazy_regex(
    r"\b(?:added|adds|updated|removed|renamed|moved|replaced|changed|created|extracted|deleted|switched|imported|rewrote|extended"
    r"|wrapped|new|now|fixed)\b",
    re.IGNORECASE,
)
_FILE_FIRST = lazy_regex(r"`?[\w./-]{1,120}\.[a-z]{1,5}`?(?::[\d-]+)?`?\s*[—:-]")
_TITLE_OF_CHANGE = lazy_regex(
    r"(?:Added|Updated|Removed|Renamed|Moved|Replaced|Changed|Created|Fixed|Switched|Wrapped|Now|New|Dropped"
    r"|[A-Z][a-z]+s (?:the|an?|all|any|each|if|on|it))\b"
)
_ASKED_TO_COMMIT = lazy_regex(
    r"\W*(?:(?:ok(?:ay)?|yes|great|good|please|can you|now|and|then|let'?s)\W+){0,4}"
    r"(?:commit|push|merge|(?:open|create) a pr|rebase)\b",
    re.IGNORECASE,
)
_UNTRIED = lazy_regex(r"\b(?:should now|these changes (?:will|should))\b", re.IGNORECASE)


def instructs_the_person(said: Sequence[Sentence]) -> bool:
    """Return whether a message instructs the person what to change: nothing shows that it was done, or that it works."""
    return any(_BY_HAND.search(each.text) for each in said)


_BY_HAND = lazy_regex(
    r"\blet's (?:fix|update|create|add|modify)\b|\bthis (?:will|change will|should) (?:resolve|fix)\b|\bthese changes\b"
    r"|\byou(?:'ll| will)? need to\b|\bmake sure (?:to|you|all)\b|\bhere'?s how\b",
    re.IGNORECASE,
)


def entities_of(texts: Iterable[str], most: int = 10) -> tuple[str, ...]:
    """Return the names in code quotes, paths, identifiers, tickets and proper names, in order of appearance."""
    found: dict[str, str] = {}
    for text in texts:
        for at, part in enumerate(text.split("`")):
            names = [part] if at % 2 else [match.group() for match in _NAMED.finditer(part)]
            for name in (_balanced(one_line(name).strip(".,:;'\"")) for name in names):
                short = 2 <= len(name) <= 60 and len(name.split()) <= 4
                if short and any(map(str.isalpha, name)) and name not in _NO_NAMES and not _NAMES_NOTHING.search(name):
                    found.setdefault(name.lower(), name)
    return tuple(found.values())[:most]


_LOST = (
    r"(?P<this>[^\s,.;:()—]+(?:\s(?!(?:because|since|due to|which|in order to|so(?= \S)|as(?= (?:it|they|we|that)\b))\b)"
    r"[^\s,.;:()—]+){0,7})"
)
_RULED_OUT = (
    lazy_regex(
        rf"\b(?:instead of|rather than|as opposed to)\s+{_LOST}(?:[,;:—(]|\.(?:\s|$)|$|\s(?=(?:because|since|so|as|which|for"
        rf"|to)\b))",
        re.IGNORECASE,
    ),
    lazy_regex(rf"(?:[,;:(—–]\s*|\b(?:and|but)\s+|^)not\s+{_LOST}[,:—]?\s+(?=because\b|since\b)", re.IGNORECASE),
    lazy_regex(
        r"(?P<this>[^.;:()]{3,80}?)\s+(?:was|is|are|were|got|has been)\s+(?:(?:rejected|ruled out|dropped|discarded)(?! by\b)"
        r"|overkill"
        r"|not worth(?: it| the \w+)?|too \w+)\b",
        re.IGNORECASE,
    ),
)
_BECAUSE = lazy_regex(r"\b(?:because|since|as|so that|which would|due to)\s+(?P<why>[^.;]{4,160})", re.IGNORECASE)


_NO_ALTERNATIVE = lazy_regex(
    r"\d+[km]?\b(?!\.\d)|(?:its|their|his|her|in|on|at|with|from|to)\s|[a-z]+ing(?:\s+too)?$"
    r"|the (?:actual|original|right|correct|proper|expected|intended|real|untouched)\b",
    re.IGNORECASE,
)
"""Words for an actual or expected state, which is not a rejected alternative."""
_STATE = lazy_regex(
    r"\b(?:(?:is|are|was|were)(?! (?:to|now)\b)|got|gets|shows?|showed|returns?|returned|resolved|reports?|reported|sees?|saw)\b"
    r"[^.;,]{0,80}$",
    re.IGNORECASE,
)
_DIRECTED = lazy_regex(r"\b(?:should|must|let'?s|let us|we(?:'ll)?|will|decided|chose|chosen|prefer\w*|better)\b", re.IGNORECASE)


def rejected_in(sentences: Iterable[str]) -> Iterator[Rejected]:
    """Yield rejected alternatives, with the reason if the sentence gives it: ``X instead of Y because Z``, ``not Y, because Z``,
    ``Y was overkill``.
    """
    for sentence in sentences:
        match = next((match for pattern in _RULED_OUT if (match := pattern.search(sentence[:600]))), None)
        if match is None:
            continue
        lost, before = _alternative(match["this"]), sentence[: match.start()]
        if len(lost) < 3 or (_STATE.search(before) and not _DIRECTED.search(before)):
            continue
        because = _BECAUSE.search(sentence[:600])
        within_match = because is not None and because.start("why") <= match.start("this") < because.end("why")
        why = one_line(because["why"]) if because is not None and not within_match else ""
        yield Rejected(alternative=clip(lost, 120), reason=clip(why, 160))


def _alternative(text: str) -> str:
    """Return the alternative; empty if it is not a name, or was cut within code."""
    lost = re.sub(r"^(?:just|simply|merely)\s+", "", one_line(text).strip(" *\"'"))
    if lost.count("`") == 2 and lost.startswith("`") and lost.endswith("`"):
        lost = lost[1:-1]
    return "" if lost.count("`") % 2 or lost.endswith(("'s", "’s")) or _NO_ALTERNATIVE.match(lost) else lost
