"""Titles of notes, made of sentences, and what readers would make of them; the names in a text."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate, zip_longest

from kite_memory.distill.offline.wording import (
    CAUSE,
    CHANGE,
    CODE,
    GUESS,
    HEADLESS,
    LEANING,
    LIMIT,
    SELF,
    SUBORDINATE,
    TRACED,
    VERB,
    VERB_OF_ORDER,
    Sentence,
    occurrences,
    without_opening,
)
from kite_memory.distill.parse_answer import TITLE_CHARS
from kite_memory.distill.prose import TAKEN_BACK, one_line, stems
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip

_TITLE_WORDS, _SHORT_TITLE = 20, 12
_TITLE = 120
_FEWEST_TITLE_WORDS = 4
_OPENING = lazy_regex(
    r"(?:(?:so|and|but|also|now|yes|no(?=\s*[,.;:!—–-])|ok|okay|right|well|actually|basically|essentially|importantly|crucially"
    r"|however|therefore|thus|hence|worse|better still|interestingly|notably|note(?: that)?|worth noting(?: that)?|in short"
    r"|in other words|bottom line|net effect|net result|key insight|the (?:key|important) (?:thing"
    r"|point)(?: here)?(?: is)?(?: that)?|(?:the )?(?:root cause|(?:real|actual|underlying|true) (?:problem|issue|cause)|problem"
    r"|issue|bug|reason|cause|culprit|fix|answer|catch|upshot)(?: here)? (?:is|was)(?: that)?(?! (?:in|on|at|with|within|inside"
    r"|between|from|not)\b)|it turns out(?: that)?|turns out(?: that)?|this means(?: that)?|which means(?: that)?|i think"
    r"|i'd say|my take|we should|let'?s(?: go with| use)?|go with|i found(?: that)?|found (?:it|the (?:bug|issue|problem|cause))"
    r"|confirmed|please|can (?:you|we)|could (?:you|we)|(?:we|i)(?:'ve| have)? (?:decided (?:to(?: use| go with)?|on|that)"
    r"|chosen?|settled on|agreed (?:on|to|that))|we(?:'ll| will|'re going to| are going to) (?:use|go with)|from now on"
    r"|going forward|i want you to|i'd like you to|i(?:'d| would) (?:personally |really |much )?(?:prefer|rather)(?: that| if"
    r"| we)*|i lean(?:ing)? towards?|i see|unfortunately|looking (?:deeper|closer)|short answer(?=\s*[:—–-])|(?:one"
    r"|another) (?:small |last )?(?:leftover|footnote|caveat|nuance|note)(?=\s*[:—–-])|worth flagging(?: in [^:]{2,30})?(?=\s*:)"
    r"|(?:the )?(?:problem|issue|bug|(?:root )?cause|culprit)(?=\s*[:—–-])|(?:make|be) sure(?: that)?(?: (?:you|we))?(?: to)?"
    r"|btw|by the way|oh|nope|nah)\b(?!-\w)[\s,:;.!—–-]*)+",
    re.IGNORECASE,
)
_MANNER = lazy_regex(
    r"^(?:(?:since|because|although|given|looking at|based on|according to|as)\s[^,;]{3,90},\s+)(?=\S+\s+\S+\s+\S+\s+\S)",
    re.IGNORECASE,
)
"""Reasons before a sentence's main part; where and when it holds, a title keeps."""
_NUMBERED = lazy_regex(r"^(?:\(?\d{1,2}[.)]|\(?[a-z]\))\s+(?=\S+\s)")
"""Number of a sentence within its list, which is dropped."""
_CLAUSE_END = lazy_regex(
    r"\s[—–-]{1,2}\s|[;:]\s|,\s(?=(?:so|which|because|since|but|and|or|then|while|though|although|not|never|always|rather"
    r"|instead|even|if|when|as|unless|except|otherwise|plus|don'?t|use)\b)|\s\(|\s(?=(?:because|since|so that|which means"
    r"|meaning|in order to|even though|although|whereas)\b)|[.!?](?:\s|$)",
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


def title_of(sentence: str) -> str:
    """Return the first clause with enough content, without its introduction, at most twenty words and not ending with an incomplete
    phrase.
    """
    text = _MANNER.sub("", _RANKED.sub("", _NUMBERED.sub("", one_line(sentence[:600]).strip(" .:;,-—–\"'"))))
    if opening := _OPENING.match(text):
        chosen = next((verb for verb, said in _CHOOSING if said.search(opening.group())), "")
        text = text[opening.end() :]
        if chosen and not text[:1].isupper() and not VERB.search(text[:_TITLE]) and not VERB_OF_ORDER.match(text):
            text = f"{chosen} {text}"
    head = _first_clause(text)
    if _is_condition(head) and "," not in head and (condition := _CONDITION.match(text)):
        head = _first_clause(text[condition.end() :])
    return clip(head[:1].upper() + head[1:] if not CODE.match(head) else head, _TITLE)


_CONDITION = lazy_regex(r"[^,]+,\s+(?:then\s+)?(?=\S+\s+\S+\s+\S+\s+\S)")
"""Where or when a sentence holds, before its main clause: left out of the title if there is no room for both."""


def _first_clause(text: str) -> str:
    fits = len(text.split()) <= _SHORT_TITLE
    whole = len(text.split()) <= _TITLE_WORDS and len(text) <= _TITLE
    ends = [*_CLAUSE_END.finditer(text)]
    limit = max((end.start() for end in ends if whole and _LIMITS.match(text, end.end())), default=-1)
    head = text
    for end in ends:
        before = text[: end.start()]
        asserts = end.group()[0] in ".!?" or not _is_condition(before)
        if end.start() > limit and len(before.split()) >= 4 and asserts and not (fits and end.group().startswith(",")):
            head = before
            break
    return _balanced(" ".join(_whole(head.split())).strip(" .:;,-—–\"'"))


def _is_condition(head: str) -> bool:
    """Return whether the head of a sentence says no more than where or when it holds."""
    return bool(_DEPENDENT.match(head) or _PREPOSITION.match(head)) and not is_whole(head)


_RANKED = lazy_regex(
    r"^(?:(?:critical|high|medium|low|minor|major|nit|blocker|info|note|caveat|p[0-4]|finding|point|item|commit|step|phase|layer"
    r"|fix|bug|(?:the |my |our |one )?(?:decision|reason|rule|answer|cause|result|verdict"
    r"|why)(?: for [\w ]{2,30})?)(?: (?:severity|priority))?(?: to be aware of)?(?: #?\d+)?(?: \([^)]{1,40}\))?\s*(?::"
    r"|\s[—–-])\s*)+(?=\S+\s+\S+\s+\S)",
    re.IGNORECASE,
)
"""Rank or number of a finding before what it says."""
_FEWEST_CUT = 6

TITLE_WORDS = 30
"""Most words of a whole sentence used as a title; a model is asked for fewer."""


def asserting_title(sentence: str, limit: int = TITLE_CHARS) -> str:
    """Return a whole sentence as a title if it fits ``limit``; else up to a clause or phrase where it may be cut."""
    text = _RANKED.sub("", one_line(sentence[:600]).strip(" .:;,-—–'“”"))
    if (said := _SAYS_THAT.match(text)) and not LEANING.match(text[said.end() :]):
        text = text[said.end() :]
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


_SAYS_THAT = lazy_regex(
    r"(?:(?:so|but|and|now),? )?(?:the|one|another|my|our|what \w+)(?: [\w'’-]+){1,4}? (?:here )?(?:is|was) (?:that|because)"
    r"(?: the fact that)? (?=\S+ \S+ \S)",
    re.IGNORECASE,
)
"""What only says that something follows: "The distinction is that"."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """A logistic regression: the logarithm of the odds of one verdict of readers, fitted to what they said of titles and notes."""

    bias: float
    signs: Mapping[str, tuple[re.Pattern[str], bool, float]]
    measures: Mapping[str, float]

    def odds(self, found: Mapping[str, float]) -> float:
        weights = {**self.measures, **{name: weight for name, (_, _, weight) in self.signs.items()}}
        return self.bias + sum(weights[name] * value for name, value in found.items())

    def shown(self, texts: Sequence[str]) -> dict[str, float]:
        """Return in which part of the texts each sign is."""
        return {
            name: sum((sign.match if first else sign.search)(text) is not None for text in texts) / max(1, len(texts))
            for name, (sign, first, _) in self.signs.items()
        }


@cache
def _verdicts() -> Mapping[str, _Verdict]:
    data = tomllib.loads(files(__package__).joinpath("readers.toml").read_text(encoding="utf-8"))
    cues = {"code": CODE, "guess": GUESS, "headless": HEADLESS, "leaning": LEANING, "limit": LIMIT, "self": SELF, "traced": TRACED}
    return {
        verdict: _Verdict(
            bias=said["bias"],
            measures=said["measures"],
            signs={
                name: (cues[name] if name in cues else re.compile(sign["is"]), sign.get("first", False), sign["weight"])
                for name, sign in said["signs"].items()
            },
        )
        for verdict, said in data.items()
    }


def stands_alone(title: str) -> float:
    """Return the logarithm of the odds that a reader understands a title without what stands before it."""
    return _verdicts()["alone"].odds(features_of_title(title))


def thrown_away(alone: float, texts: Sequence[str], request: str) -> float:
    """Return the logarithm of the odds that a reader throws a note away."""
    return _verdicts()["junk"].odds(features_of_note(alone, texts, request))


def features_of_title(title: str) -> dict[str, float]:
    name, subject = _A_NAME.search(title), _SUBJECT.match(title)
    return _verdicts()["alone"].shown([title]) | {
        "characters": len(title) / TITLE_CHARS,
        "codes": occurrences(CODE, title) / 4,
        "names": occurrences(_A_NAME, title) / 4,
        "name in subject": float(name is not None and subject is not None and name.start() <= subject.end("subject")),
        "commas": min(3, title.count(",")) / 3,
        "whole": float(is_whole(title)),
    }


def features_of_note(alone: float, texts: Sequence[str], request: str) -> dict[str, float]:
    text = " ".join(texts)
    words = len(text.split())
    return _verdicts()["junk"].shown(texts) | {
        "words": math.log(1 + words),
        "codes": min(1.0, 8 * len(CODE.findall(text)) / max(1, words)),
        "causes": min(3, occurrences(CAUSE, text)) / 3,
        "title": max(-1.0, min(1.0, alone / 3)),
        "request": float(bool(request)),
        "question": float("?" in request),
    }


_A_NAME = re.compile(
    r"`[^`]+`|\b\w+[._/]\w[\w./-]*|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b[A-Z]{2,}\w*\b|(?<=[a-z,] )[A-Z][a-zA-Z]{2,}"
)
_SUBJECT = re.compile(
    r"(?P<subject>.*?)\b(?:is|are|was|were|has|have|had|can|cannot|must|should|will|would|does|do|did|may|\w+s|\w+ed)\b"
)


def names_something(text: str) -> bool:
    """Return whether a sentence has a proper name after its first word."""
    return _PROPER.search(text) is not None


_PROPER = re.compile(r"(?<=[a-z,] )[A-Z][a-zA-Z]{2,}")


def gives_a_reason(title: str) -> bool:
    """Return whether a title says why something is so, or was changed."""
    if CAUSE.search(_SINCE_THEN.sub("", title)) is None or GUESS.search(title) or LEANING.match(title):
        return False
    return is_whole(title) or CHANGE.match(title) is not None


_SINCE_THEN = lazy_regex(r"\bsince then\b", re.IGNORECASE)


def says_its_subject(title: str) -> bool:
    """Return whether a title names something before its verb."""
    name, subject = _A_NAME.search(title), _SUBJECT.match(title)
    return name is not None and (name.start() == 0 or (subject is not None and name.start() <= subject.end("subject")))


def preceded_by_subject(title: str, sentence: Sentence, said: Sequence[Sentence], request: str) -> str:
    """Return a title after what its sentence is about, as its heading, the request or the message names it."""
    subject = _subject(sentence, said, request)
    claim = asserting_title(title, TITLE_CHARS - len(subject) - len(": ")) if subject else ""
    if not is_whole(claim) and not HEADLESS.match(claim):
        return ""
    return f"{subject}{'' if subject.endswith('?') else ':'} {_lowered(claim) if not subject.endswith('?') else claim}"


def _lowered(claim: str) -> str:
    return claim[:1].lower() + claim[1:] if _ORDINARY.match(claim) else claim


_ORDINARY = lazy_regex(r"(?:The|An?|This|That|These|Those|It|Its|They|Their|Each|Every|Both|All|Any|When|If|No|Only|[A-Z][a-z]+s) ")


def _subject(sentence: Sentence, said: Sequence[Sentence], request: str) -> str:
    heading = _heading(sentence.heading)
    if heading and not stems(heading) <= sentence.stems:
        return heading
    if (question := _question(request)) and not stems(question) <= sentence.stems:
        return question
    at = said.index(sentence) if sentence in said else 0
    blamed = [each for each, following in zip_longest(said, said[1:]) if not _is_cleared(each.text, following)]
    before = [each.text for each in reversed(said[max(0, at - _BEFORE) : at]) if each in blamed]
    own = sentence.text.lower()
    for names in (_CODE_FIRST, _FILE):
        for found in (found for text in before for found in names.finditer(text)):
            if _may_be_subject(found["name"], own):
                return f"`{found['name']}`"
    named = Counter(found["name"] for each in blamed for found in _CODE_NAMED.finditer(each.text))
    for name, times in named.most_common(2):
        if times >= (2 if name in request or not CODE.search(own) else _OFTEN) and _may_be_subject(name, own):
            return f"`{name}`"
    return ""


def _is_cleared(text: str, following: Sentence | None) -> bool:
    """Return whether a sentence, or the one that goes on about its subject, says that what it names is not at fault."""
    if _CLEARS.search(text) or TAKEN_BACK.search(text):
        return True
    return following is not None and _GOES_ON_ABOUT_IT.match(following.text) is not None and _is_cleared(following.text, None)


_CLEARS = lazy_regex(
    r"\b(?:is|are|was|were)(?:n['’]?t| not)\b|\b(?:has|have|had|with) nothing\b"
    r"|\bnot (?:involved|affected|at fault|to blame|related)\b"
    r"|\b(?:neither|nor|fine|ok(?:ay)?|works?|worked|healthy|innocent|correct(?:ly)?|unrelated|unaffected|ruled out)\b"
    r"|\blook(?:s|ed)? (?:good|right|clean|suspicious)\b|\bas (?:expected|intended|designed|it should)\b",
    re.IGNORECASE,
)
_GOES_ON_ABOUT_IT = lazy_regex(r"(?:but |yet |and )?(?:it|that|this|they|these|those|neither|both)\b", re.IGNORECASE)


def _may_be_subject(name: str, own: str) -> bool:
    return name.rstrip("()").lower() not in own and not _NO_SUBJECT.search(name)


def _question(request: str) -> str:
    """Return a person's short question, if it names a subject."""
    asked = without_opening(request.strip())
    named = _ASKS.match(asked) is not None and _OF_THE_TALK.search(asked) is None and len(stems(asked)) >= _FEWEST_OF_A_QUESTION
    return f"{asked[:1].upper()}{asked[1:].rstrip(' ?.!')}?" if named and len(asked) <= _LONGEST_QUESTION else ""


_ASKS = lazy_regex(
    r"(?:what|why|how|when|where|which|who|is|are|does|do|did|can|could|should|would|will|has|have)\b", re.IGNORECASE
)
_OF_THE_TALK = lazy_regex(
    r"\b(?:you|your|this|that|these|those|it|its|they|them|i|we|me|my|same|again|now|above|here)\b|[.;?]\s|https?:|[^\x00-\x7f]",
    re.IGNORECASE,
)
_LONGEST_QUESTION, _FEWEST_OF_A_QUESTION, _OFTEN = 80, 2, 3
_BEFORE = 3
_CODE_FIRST = lazy_regex(r"^(?:(?:The|In|So|But|Both|And|Each) )?(?:(?!\w+ed )[A-Za-z]+ )?`(?P<name>[\w./:()<>-]{3,50})`")
_FILE = lazy_regex(
    r"(?<![\w/])(?P<name>(?:[\w.-]+/)*[\w-]+\.(?:py|go|ts|tsx|js|jsx|rs|toml|ya?ml|sql|sh|rb|java|kt|c|h|cpp|cs|css|scss|html))\b"
)
_CODE_NAMED = lazy_regex(r"`(?P<name>[A-Za-z][\w./:()-]{2,40})`")
_NO_SUBJECT = lazy_regex(r"^[0-9a-f]{7,40}$|^\d|^-|^(?:true|false|null|nil|none|main|master)$", re.IGNORECASE)


def _heading(text: str) -> str:
    """Return a heading without its number; empty if it is only a label, or a sentence."""
    plain = _NUMBER_OF_HEADING.sub("", text).strip(" :?.")
    few = 1 <= len(plain.split()) <= _MOST_OF_HEADING and len(plain) <= _LONGEST_HEADING
    return plain if few and stems(plain) - _LABELS and not (_NO_HEADING.match(plain) or VERB.search(plain)) else ""


_MOST_OF_HEADING, _LONGEST_HEADING = 8, 60
_NUMBER_OF_HEADING = lazy_regex(
    r"^(?:(?:step|phase|part|option|approach|scenario|case|problem|issue|fix|bug|finding) ?#?(?:\d+|[a-d])\b|#?\d+)"
    r"[.:)]?\s+[—–-]?\s*",
    re.IGNORECASE,
)
_NO_HEADING = lazy_regex(
    r"(?:in|or|if|and|but|even|one|two|this|that|these|what|why|how|when|where|which|who|your|you|my|here|now|then|next|so|to"
    r"|for|on|at|from|with|after|before|no|yes|not|understanding|stepping|looking|other)\b",
    re.IGNORECASE,
)
_LABELS = stems(
    """
    change summary result fix root cause problem issue solution overview detail verification test note key finding status step
    recommendation answer honest approach option timeline effort assessment implementation work current new final file modified
    phase batch actual real short question context background goal example difference comparison conclusion bottom line effect
    impact important caveat decision reason explanation analysis review code update improvement feature benefit pro con happening
    done remaining possible potential main thing high medium low severity verdict flow observation proposed design tradeoff core
    critical summary added insight state uncomfortable path expected behavior output
    """
)
