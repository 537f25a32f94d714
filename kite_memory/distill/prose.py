"""Text of people and agents: cleaning, division into sentences, comparison by words; what it offers, rejects or retracts.

And commands that worked after another form of them had failed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Rejected
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip

_TELLING = lazy_regex(
    r"error|fail|panic|exception|traceback|fatal|cannot|can't|could not|unable|not found|no such|undefined|unexpected|expected"
    r"|assert|denied|refused|invalid|missing|timed? ?out|conflict|killed|warning: |exit code|rejected|✗|✘|❌",
    re.IGNORECASE,
)
_RULE = lazy_regex(r"^[\s=\-_*#~.+|·─━═]*$")
_READ = 12_000
"""Characters of an output that are read, from its beginning and its end."""


def bounded(text: str, limit: int) -> str:
    """Return the beginning and the end of a text that may be huge, so that all further work is cheap."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return text[: limit - tail] + "\n…\n" + text[-tail:]


def key_lines(text: str, limit: int, *, lines: int = 6) -> str:
    """Return at most ``lines`` lines and ``limit`` characters of an output, lines that name an error first, joined by `` / ``.

    If no line does, the first and last lines.
    """
    rows = [row.strip() for row in clean(bounded(text, _READ)).split("\n")]
    rows = [clip(row, max(40, limit // 2)) for row in rows if row and not _RULE.match(row[:200])]
    chosen = [at for at, row in enumerate(rows) if _TELLING.search(row)][:lines]
    if not chosen:
        chosen = list(range(min(2, len(rows)))) + list(range(max(2, len(rows) - 2), len(rows)))
    distinct = list(dict.fromkeys(rows[at] for at in sorted(chosen)))
    return clip(" / ".join(distinct), limit)


_UNSEEN = lazy_regex(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0e\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]|(?<![\u0300-\U0010ffff])[\u200c\u200d\ufe0f]"
)
"""Joiners are left where they spell a word or an emoji, in scripts that have them."""
_LINE_ENDS = lazy_regex("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_COLOUR = lazy_regex(r"\x1b\[[0-9;?]{0,16}[ -/]{0,4}[@-~]")
_BREAK = lazy_regex(r"[.!?…][\"')\]*`_]{0,4}\s+(?=[\"'(\[*`_]{0,4}[A-Z0-9`/])")
_ABBREVIATION = lazy_regex(
    r"(?:\b(?:e\.g|i\.e|vs|etc|cf|approx|resp|incl|fig|al|dr|mr|ms|st)|\b[A-Za-z]|^\s*\d{1,3})\.$", re.IGNORECASE
)
_WORD = lazy_regex(r"[^\W_]+")
_STOP_WORDS = """
about above after again against also although always another any are aren because been before being below between both but can
cannot could did didn does doesn doing don done down during each either else even ever every few for from further get gets got had
has have having here how however into isn its itself just let like made make makes many may might more most much must need needs
never new non not now off once one only other our out over own per rather really same see shall should since some still such sure
take than that the their them then there these they thing things this those though through thus too two under until use used uses
using very via want was way well were what when where whether which while who whom whose why will with within without would yes
yet you your all and
"""
_STOP = frozenset(_STOP_WORDS.split())


def clean(text: str) -> str:
    """Remove terminal colours, control and invisible characters, and lone surrogates; lines end in ``\\n``."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return _UNSEEN.sub("", _LINE_ENDS.sub("\n", text))


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def without_emphasis(text: str) -> str:
    """Remove the marks of bold and italic words; those of code, of globs, powers and names such as ``__init__`` stay."""
    if ("*" not in text and "__" not in text) or _SPAN in text:
        return text
    parts = text.split("`")
    plain = _SPAN.join(parts[::2]) + _SPAN * (len(parts) % 2 == 0)
    plain = _STRONG.sub(lambda match: match.group() if _DUNDER.fullmatch(match.group()) else match["inner"], plain)
    globs = _OF_GLOBS.search(plain) is not None  # of which one word between stars may be
    plain = _ITALIC.sub(lambda match: match.group() if globs and " " not in match["inner"] else match["inner"], plain)
    if len(parts) == 1:
        return plain
    spans = [f"`{part}`" for part in parts[1::2]]
    if len(parts) % 2 == 0:
        spans[-1] = spans[-1][:-1]  # its end was cut off
    return "".join(piece + span for piece, span in zip_longest(plain.split(_SPAN), spans, fillvalue=""))


_SPAN = "\ue000"
"""Stands for a span of code while marks are removed around it."""
_CJK = "\u3000-\u30ff\u3400-\u9fff\uff00-\uff65"  # written without blanks
_BEFORE, _AFTER = rf"(?<![^\s(\[{{\"'“‘„«>—–:|{_CJK}-])", rf"(?=$|[\s,;:!?)\]}}\"'”’»…—–<|{_CJK}-]|\.(?!\w))"
_STRONG = lazy_regex(
    rf"{_BEFORE}(?P<mark>\*{{2,3}}|__)(?=[^\s*/])(?P<inner>(?:(?!(?P=mark)).)+)(?<=[^\s/])(?P=mark){_AFTER}", re.DOTALL
)
_ITALIC = lazy_regex(rf"{_BEFORE}\*(?=[^\W_]|[\"'“{_SPAN}])(?P<inner>[^*]+)(?<=[^\W_]|[.,!?:…\"'”){_SPAN}])\*{_AFTER}")
_DUNDER = lazy_regex(r"__\w+__")
_OF_GLOBS = lazy_regex(
    r"\b(?:globs?|patterns?|wildcards?|match\w*|exclud\w*|includ\w*|ignor\w*|filenames?|files (?:named|called))\b", re.IGNORECASE
)


def sentences(block: str) -> list[str]:
    """Return the sentences of one paragraph or list item; a dot inside a name, a number or an abbreviation does not end one."""
    text = " ".join(block.split())
    found: list[str] = []
    start, counted, ticks = 0, 0, 0
    for match in _BREAK.finditer(text):
        ticks += text.count("`", counted, match.start())
        counted = match.start()
        if ticks % 2:
            continue  # within code
        if text[match.start()] == "." and _ABBREVIATION.search(text[max(start, match.start() - 12) : match.start() + 1]):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    if rest := text[start:].strip():
        found.append(rest)
    return found


def stems(text: str) -> frozenset[str]:
    """Return the meaningful words, cut to their first six letters so that ``locks`` matches ``locked``.

    Identifiers are split into their parts (``retryAfter`` and ``retry_after`` share both words), and scripts without blanks between
    words into pairs of characters.
    """
    found: set[str] = set()
    for match in _WORD.finditer(_HUMP.sub(" ", text)):
        word = match.group().lower()
        if _UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) >= 3 and word not in _STOP:
            found.add(word[:6])
    return frozenset(found)


def stems_in_order(text: str) -> dict[str, list[int]]:
    """Return the `stems` of a text, each with the positions of its words."""
    found: dict[str, list[int]] = {}
    for place, match in enumerate(_WORD.finditer(_HUMP.sub(" ", text))):
        word = match.group().lower()
        if _UNSPACED.search(word):
            for at in range(len(word) - 1):
                found.setdefault(word[at : at + 2], []).append(place)
        elif len(word) >= 3 and word not in _STOP:
            found.setdefault(word[:6], []).append(place)
    return found


_HUMP = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])")
_UNSPACED = lazy_regex("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    label: str
    name: str
    text: str


_LABEL = lazy_regex(
    r"^[ \t]{0,6}(?:[-*] )?(?:#{1,4} )?(?:\*\*)?(?:option |approach |path )?(?P<label>[A-Da-d]"
    r"|[1-9])(?:\*\*)?[.):](?:\*\*)?\s+(?P<rest>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_NAMED_OPTION = lazy_regex(
    r"^[ \t]{0,6}(?:[-*] )?(?:#{1,4} )?\*{0,2}(?:option|approach|path) (?P<label>[A-D]"
    r"|[1-9])\b\*{0,2}\s*[:.(—–-]*\s*(?P<rest>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_PICK = lazy_regex(
    r"^\W{0,3}(?:(?:ok(?:ay)?|yes|yeah|ye[ap]|sure|hmm|i think|i guess|let'?s|lets|go|do|just|i'd|i would|with|for|go for"
    r"|go with|option|approach|pick|take|choose|like|to|say|the|use|prefer|my (?:choice|preference|pick"
    r"|vote) is)[\s,:]+){0,6}(?P<label>[A-Da-d]|[1-9])(?![\w'’])",
    re.IGNORECASE,
)
_SEVERAL = lazy_regex(r"(?:\b[A-D]|[1-9])\s*(?:,|and|&|\+|or)\s*(?:[A-D]\b|[1-9])(?!\w)")
_NTH = {"first": "1", "second": "2", "third": "3", "former": "1", "latter": "2"}
_PICK_NTH = lazy_regex(
    r"(?:^|[.!?;,:—–]\s*|\s-\s+)\W{0,3}(?:(?:ok(?:ay)?|yes|yeah|ye[ap]h?|yep|sure|hm+|well|so|then|and|but|just|please|actually"
    r"|definitely|i think|i guess|i would|i will|i'?d|i'?ll|i|we would|we should|we will|we'?d|we'?ll|we|can (?:you|we)"
    r"|could (?:you|we)|let'?s|let me|(?:my|the) (?:choice|preference|pick|vote) (?:is|goes to)|it'?s|going|go|ahead|do|have"
    r"|want|need|like|love|to|prefer|rather|favou?r|pick|take|choose|chose|use|using|keep|stick|implement|build|proceed|say|with"
    r"|for|in favou?r of|on)[\s,:]+){0,8}the (?P<nth>(?:first|second|third)(?= (?:one|option|approach|way|alternative|variant"
    r"|solution|choice)\b|[\s.!]*$|\s*[,;:—–])|former\b|latter\b)(?: (?:one|option|approach|way|alternative|variant|solution"
    r"|choice)\b)?",
    re.IGNORECASE,
)
_BOTH_NTH = lazy_regex(
    r"\bthe (?:first|second|third|former|latter)\b[^.,;]{0,16}(?:\band\b|\bor\b|&)\s*(?:also )?the (?:first|second|third|former"
    r"|latter)\b(?! (?:one |option |approach )?(?:is|was|has|does|would|will|won'?t|can'?t|loses|needs|looks|seems|sounds)\b)",
    re.IGNORECASE,
)
_WELL = (
    r"(?:good|great|fine|ok(?:ay)?|best|better|nicer?|perfect|right|clean\w*|simpl\w+|saf(?:er?|est)|cheap\w*|fast\w*|reasonable"
    r"|sensible|prefer(?:able|red)|ideal|enough|san(?:e|er)|solid|reliable|robust|eas(?:y|ier|iest)|excellent|acceptable"
    r"|clear\w*|correct|sound|(?:way|one|choice|option|winner|favou?rite|preference|pick)\b(?! (?:less|too|more))|it\b|what (?:i"
    r"|we) (?:want|need|prefer|had|meant))"
)
_TAKES = lazy_regex(
    rf"\s*(?:$|[.!)](?:\s|$)|[;,:—–]|\s-\s|\s(?:please|thanks|then|but|and|for|first|with|without|as|since|because|it is|now|if"
    rf"|so|instead|over|rather than|you|that you|which you)\b|(?:\s(?:is|sounds|looks|seems|feels|would be)"
    rf"|'s)\s(?:like )?(?:\w+ly |really |very |much |so |the |an? |my |by far |far |quite |pretty |just |more |most )*{_WELL}\b"
    rf"|\s(?:works|wins|makes (?:\w+ ){{0,2}}sense|would work|convinces)\b)",
    re.IGNORECASE,
)
"""What may follow the name of an option that is taken: nothing, a further wish, or praise."""
_PRAISED = lazy_regex(r"\s*(?:\s(?:is|sounds|looks|seems|feels|works|would)|'s)\b", re.IGNORECASE)
_TURNED_DOWN = lazy_regex(
    r"\W*(?:(?:absolutely|certainly|definitely|clearly|really|is|are|was) )?(?:no(?! (?:need|hurry|rush|problem|other|more"
    r"|extra)\b)|nope|never|nein|niemals|nicht|nee|non|jamais|pas|nunca|out|rejected|wrong|bad|too|won'?t|wouldn'?t|can'?t"
    r"|cannot|doesn'?t|isn'?t|not(?!\s+(?:the\b|that\b|option\b|[a-d1-9]\b)))\b(?!,)",
    re.IGNORECASE,
)
_STILL_ASKS = lazy_regex(
    r"[^,;.!—–]*\?|[^.!]*?[,;—–]\s*(?:but|or|right|correct|ok(?:ay)?|no|yes|isn'?t|wouldn'?t|doesn'?t|won'?t|what|wdyt|unless"
    r"|if)\b[^.!]*\?",
    re.IGNORECASE,
)
_REFUSES = lazy_regex(
    r"\b(?:no|not|never|neither|none|nor|cannot|(?:is|are|was|do|does|did|wo|would|ca|could|should|have|has|must)n'?t|against"
    r"|reject\w*|except|without|but|if|unless|whether|why|what|how|explain)\b(?!\s+(?:the (?:first|second|third|former|latter)"
    r"|[A-D1-9]\b))",
    re.IGNORECASE,
)
_ENDS_BEFORE_A_PICK = lazy_regex(
    r"[.!?]\s|[,;]\s*(?=(?:so|hence)\b)|(?:^|(?<=[.!?]\s))(?:since|because|as)\b[^,.;]*,\s*|^\W*(?:(?:ok(?:ay)?"
    r"|yes)\W+)?but\s",
    re.IGNORECASE,
)
_THEN_NO = lazy_regex(
    r"(?:(?:[,;.!—–-]\s*)?(?P<firmly>\b(?:no,? wait|wait,? no|oh,? no|scratch that|i mean|correction|make that|or rather"
    r"|doch lieber|ach nein|je veux dire|mejor dicho)\b)|(?:^|[,;.!—–-]\s*)(?:no|wait|sorry|actually|nein|non|pardon|perdón"
    r"|plutôt|lieber|mejor)\b(?=[,;:.!]?\s+\S))[,;:.!\s]*",
    re.IGNORECASE,
)
"""Words with which a person takes back what they have just said."""
_OPENING_NO = lazy_regex(r"^\W*(?:no|nope|nah)\s*[,.;:—–-]", re.IGNORECASE)
_ARTICLE = lazy_regex(r"\W*a\s+(?!(?:please|is|sounds|looks|seems|then|because|since|for now|it is|and|but)\b)\w", re.IGNORECASE)
_REPLIES_BY_NUMBER = lazy_regex(r"^\W{0,3}(?:[A-D]|[1-9])[.):]\s", re.MULTILINE)
_INLINE = lazy_regex(
    r"\((?P<label>[1-9a-d])\)\s+(?P<rest>[^()]{3,200}?(?:\([^()]{2,80}\)[^()]{0,80}?)?)(?=[,;]?\s*(?:and |or )?\([1-9a-d]\)"
    r"|[.?!;](?:\s|$))"
)
_OFFERS = lazy_regex(r"\b(?:options?|alternatives?|recommend\w*|designs?|choices?|lean(?:ing)? to|approaches)\b", re.IGNORECASE)


_HALF_BOLD = lazy_regex(r"(?<=[\w.):!?`\"'])\*\*(?=[\s:,.;)—–-]|$)")
"""Mark that ends bold words which begin with the label, before the rest of an option."""


def options_in(text: str) -> list[Option]:
    """Return the lettered or numbered choices at the end of an agent's message that asks for a choice or calls them options."""
    text = clean(text[-6_000:])
    if "?" not in text[-700:] and not _OFFERS.search(text):
        return []
    found: dict[str, Option] = {}
    for pattern in (_NAMED_OPTION, _LABEL, _INLINE):
        for match in pattern.finditer(text):
            label = match["label"].upper()
            rest = _HALF_BOLD.sub("", without_emphasis(one_line(match["rest"])), count=1)
            if label == "1" or label == "A":
                found = {}  # the last list is the one that is asked about
            name = re.split(r"\s[—–-]\s|: |\. ", rest, maxsplit=1)[0]
            found[label] = Option(label=label, name=clip(name.strip(" :.-"), 90), text=clip(rest, 260))
        if len(found) >= 2:
            return list(found.values())
    return []


def picked(said: str, options: Sequence[Option]) -> Option | None:
    """Return the option that a short reply takes; ``None`` if it takes none or several, asks about one, or turns one down."""
    if len(_REPLIES_BY_NUMBER.findall(said[:400])) > 1:
        return None  # it answers several questions, or gives several orders
    label = _taken_label(one_line(said[:160]))
    return next((option for option in options if option.label == label), None)


def _taken_label(said: str) -> str:
    if _SEVERAL.search(said) or _BOTH_NTH.search(said):
        return ""
    places = [(match["nth"], match.start("nth"), match.end()) for match in _PICK_NTH.finditer(said)]
    if not places and (match := _PICK.match(said)) is not None and not _ARTICLE.match(said):
        places = [(match["label"], 0, match.end())]
    taken: set[str] = set()
    for name, begins, ends in places:
        before, rest = _ENDS_BEFORE_A_PICK.split(said[:begins])[-1], said[ends:]
        if (instead := _THEN_NO.search(rest)) is not None and (label := _taken_label(rest[instead.end() :])):
            return label
        if instead is not None and instead["firmly"]:
            return ""
        if (
            _REFUSES.search(_OPENING_NO.sub("", before))
            or not _TAKES.match(rest)
            or _TURNED_DOWN.match(rest)
            or _STILL_ASKS.match(rest)
        ):
            continue
        if _PRAISED.match(rest) and re.search(r"\b(?:but|although|however|though)\b", rest, re.IGNORECASE):
            continue
        taken.add(_NTH.get(name.lower(), name.upper()))
    return taken.pop() if len(taken) == 1 else ""


def asks_something_else(closing: str) -> bool:
    """Return whether a message closes with a question to which "yes" is no assent to what the message recommends."""
    return closing.endswith(("?", "？")) and _SOMETHING_ELSE.search(closing) is not None


_SOMETHING_ELSE = lazy_regex(
    r"\b(?:anyway|anyhow|regardless|nevertheless|nonetheless|even so|despite|instead|alternativ\w*|something else"
    r"|(?:an)?other(?! questions?\b)|otherwise|still (?:want|prefer|like|rather|use|go|do|keep)|trotzdem|dennoch|stattdessen"
    r"|quand même|malgré tout|plutôt|de todos modos|aun así|en su lugar|mesmo assim|comunque|lo stesso|invece)\b|^\W*(?:(?:and"
    r"|but|so|or)\s+)?(?:which|where|when(?! you(?:'re| are) ready\b)|who|why|what(?! (?:do you (?:think|say)|about))"
    r"|how(?! (?:does|do|about)\b.{0,30}(?:sound|look|feel|about)))\b",
    re.IGNORECASE,
)


def rejections(text: str) -> tuple[Rejected, ...]:
    """Return what a sentence rejects, if it says nothing else."""
    for pattern in _REJECTS:
        if match := pattern.match(text):
            what, why = _parted(match["what"])
            rest = text[match.end() :]
            if not why and (because := _BECAUSE_OF.match(rest)):
                why = because["why"]
            what = re.sub(r"^(?:the idea of|the option of|using|to use)\s+", "", what.strip(" .,;:—–-"), flags=re.IGNORECASE)
            if 2 <= len(what) <= 120 and stems(what) and not _POINTS.fullmatch(what):
                return _each_with_its_reason(
                    Rejected(alternative=clip(what, 120), reason=clip(one_line(why).strip(" .,;:—–-"), 240))
                )
    return ()


def _each_with_its_reason(rejected: Rejected) -> tuple[Rejected, ...]:
    """Split what is rejected for its reason from a second thing that is rejected for another: "A because x, and B because y"."""
    second = _AND_ANOTHER.search(rejected.reason)
    if second is None:
        return (rejected,)
    first = replace(rejected, reason=rejected.reason[: second.start()])
    return (first, Rejected(alternative=second["what"], reason=one_line(second["why"]).strip(" .")))


def _parted(what: str) -> tuple[str, str]:
    cut = _BECAUSE.search(what)
    return (what[: cut.start()], what[cut.end() :]) if cut else (what, "")


_BECAUSE = lazy_regex(
    r"\s*(?:[,;:—–]|\s-)\s*(?:because|since|as|due to)?\s*|\s+(?:because(?: of)?|since|as it|as the|as they|due to)\s+",
    re.IGNORECASE,
)
_BECAUSE_OF = lazy_regex(r"[\s,;:—–.-]*(?:because(?: of)?|since|as|due to)?\s*(?P<why>\S.*)", re.IGNORECASE | re.DOTALL)
_AND_ANOTHER = lazy_regex(
    r",?\s+and\s+(?P<what>(?:the |a )?(?-i:[A-Z`])[\w`.+-]*(?: [\w`.+-]+){0,3}?)\s+(?:because(?: of)?|since"
    r"|due to)\s+(?P<why>\S.+)",
    re.IGNORECASE | re.DOTALL,
)
_POINTS = lazy_regex(
    r"(?:it|that|this|them|those|these|all|both|one|the (?:rest|other|others|first|second|idea|option))", re.IGNORECASE
)
_NO = (
    r"(?:rejected|ruled out|off the table|turned down|not an option|no option|out of the question|discarded|dropped|declined"
    r"|overkill|not worth (?:it|the \w+)|too (?:much|slow|expensive|heavy|complex|complicated|risky)\b[^.]{0,80}"
    r"|out(?=\s*(?:[,.;:—–]|$)))"
)
_WE = (
    r"(?:(?:and|but|so|then|also|for the record)[:,]?\s+)?(?:(?:i|we|you and i)(?:'ve|\s+have|'d)?\s+)?(?:(?:also|both|all"
    r"|finally|therefore|then)\s+)?"
)
_REJECTS = tuple(
    lazy_regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_WE}(?:considered|tried|looked at|thought (?:about|of)|evaluated"
        rf"|discussed)\s+(?P<what>[^.;:,]{{2,80}}?)(?:\s+(?:first|too|as well))?\s*(?:,|;|:|\s(?:and"
        rf"|but))\s*[^.]{{0,40}}?(?:ruled? (?:it|them|that) out|dropped (?:it|them)(?: again)?|decided against (?:it|that|them)"
        rf"|reject(?:ed)? (?:it|them)|turned (?:it|them) down|gave (?:it|them) up)",
        rf"{_WE}(?:tried|tested)\s+(?P<what>[^.;:,]{{2,60}}?)(?:\s+first)?\s+and\s+dropped (?:it|them)(?: again)?",
        rf"{_WE}(?:ruled out|decided against|turned down|opted against|voted against|(?:decided|chose|agreed) not to(?: use)?"
        rf"|not going (?:with|for)|won't (?:use|go with)|will not (?:use|go with))\s+(?P<what>(?:[^.;]|\.(?=\w)){{2,160}})",
        rf"{_WE}(?:rejected|discarded|dismissed)(?:\s*:\s*|\s+(?=(?:the|a|an|our|any|using|[a-z]+ing)\s"
        rf"|(?-i:[A-Z`\"])))(?P<what>(?:[^.;]|\.(?=\w)){{2,160}})",
        r"(?:(?:and|but|so|then|also)[:,]?\s+)?(?:i|we|you and i)(?:'ve|\s+have|'d)?\s+(?:(?:also|both|all|finally|therefore"
        r"|then)\s+)?(?:rejected|discarded|dismissed)\s+(?P<what>(?:[^.;]|\.(?=\w)){2,160})",
        rf"(?:for the record:\s+)?(?P<what>[^.;:,]{{2,70}}?)\s+(?:was|were|is|are|has been|have been|got)\s+(?:(?:also|therefore"
        rf"|just|simply|clearly)\s+)?{_NO}",
        r"(?:and |but |so )?not\s+(?P<what>(?-i:[A-Z`])(?:[^.;]|\.(?=\w)){1,120})",
        r"(?:so|then|so then)\s+no\s+(?P<what>(?!one|need|problem|worries|idea|matter|longer|more"
        r"|doubt)[a-z][\w-]+(?: [\w-]+){0,4})$",
        r"(?:and |but |so )?no\s+(?P<what>(?!one|need|problem|worries|idea|matter|longer|more|doubt"
        r"|difference)[a-z][\w-]+(?: [\w-]+){0,3})(?=\s*(?:[,;:—–.]|because|since))",
    )
)


_READ_FOR_RETRACTIONS = 16_000
_NAMES_IT = 2
"""Fewest words that a retraction must share with a theory to refer to it."""


def _words(pattern: str) -> re.Pattern[str]:
    return lazy_regex(rf"\b(?:{pattern})\b", re.IGNORECASE)


CLAIM = _words(
    r"root cause|(?:real |actual |underlying )?(?:problem|issue|bug|culprit|cause) (?:is|was|here)|found (?:it|the (?:bug"
    r"|problem|issue|cause|culprit))|(?:this|that) is (?:why|the (?:bug|problem|issue|cause))|turns out"
)
MENDED = _words(
    r"fix(?:ed|es)|solve[ds]|resolve[ds]|cure[ds]|mend(?:ed|s)|confirmed|verified|reproduced|to (?:confirm|verify)|(?:pass(?:es"
    r"|ed)?|works?|succeeds?|runs?|green) (?:now|again)|now (?:pass(?:es)?|works?|succeeds?|runs?)|no longer (?:fail\w*|hang\w*"
    r"|crash\w*|happen\w*|leak\w*|time\w*)|ma(?:kes?|de) (?:it|them|the \w+(?: \w+)?) (?:pass|work|go away)|(?:is|are|went) gone"
    r"|goes away|went away|the fix (?:is|was)"
)
RETRACTION = _words(
    r"(?:i was|that was|my \w+ was) wrong|wasn'?t (?:it|the (?:cause|issue|problem|reason))|is(?:n'?t| not) the (?:cause|issue"
    r"|problem|reason|culprit)|still (?:fails?|failing|broken|happens|the same)|didn'?t (?:help|fix|work)|scratch that"
    r"|ruled? (?:that |it )?out|my (?:earlier|first|previous|initial) (?:diagnosis|theory|guess|assumption|conclusion)"
    r"|not the (?:actual|real) (?:cause|issue|problem)"
)
TAKEN_BACK = _words(
    r"(?:i was|that was|my \w+ was) wrong|was(?:n'?t| not) (?:it|the (?:cause|issue|problem|reason|culprit))|is(?:n'?t"
    r"| not) (?:actually )?the (?:real |actual )?(?:cause|issue|problem|reason|culprit)|scratch that|(?:is"
    r"|was) (?:now )?ruled out|rul(?:es|ed|ing) (?:that |it |this )?out|my (?:earlier|first|previous|initial) (?:diagnosis"
    r"|theory|guess|assumption|conclusion|claim) (?:was|is|does|did)|(?:red herring|false lead|not the culprit)"
    r"|turned out (?:not to be|to be wrong|wrong|false)"
)
"""Stricter than `RETRACTION`, which only makes an earlier statement doubtful: this means that a theory is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """A retraction. ``at`` is the position of its event; ``about`` the words of the retracting sentence and of the next one."""

    at: int
    about: frozenset[str]


def retractions(events: Sequence[Event]) -> Iterator[Retraction]:
    """Yield the places where a message says that an earlier statement is wrong."""
    for at, event in enumerate(events):
        if event.type is not EventType.ASSISTANT_MESSAGE and event.role != "user":
            continue
        text = event.text[:_READ_FOR_RETRACTIONS]
        if not TAKEN_BACK.search(text):
            continue
        for block in clean(text).split("\n"):
            said = sentences(block) if TAKEN_BACK.search(block) else []
            for place, sentence in enumerate(said):
                if TAKEN_BACK.search(sentence) and not sentence.endswith("?"):
                    before = said[place - 1] if place else ""
                    yield Retraction(at=at, about=_subject(before) | _subject(sentence))


def withdrawn(statement: str, after: int, taken_back: Sequence[Retraction], *, surely: bool = False) -> bool:
    """Return whether a theory last mentioned at position ``after`` was retracted later, in its own words.

    ``surely``: the retraction must be about hardly anything else.
    """
    subject = _subject(statement)
    share = 0.6 if surely else 0.34
    return any(each.at > after and len(each.about & subject) >= max(_NAMES_IT, share * len(each.about)) for each in taken_back)


def _subject(text: str) -> frozenset[str]:
    return stems(text) - _OF_ANY_THEORY


_OF_ANY_THEORY = stems(
    "root cause real actual underlying problem issue bug culprit reason theory guess diagnosis assumption conclusion claim wrong"
    " earlier first previous initial turned turns ruled scratch herring false lead fix fixed code test tests error fails failing"
)


def proven(events: Sequence[Event], after: int) -> bool:
    """Return whether anything from position ``after`` on proves a cause: a passing check, or a message that says it is fixed."""
    for event in events[after:]:
        if event.type is EventType.TEST_RESULT and event.status == "ok":
            return True
        if (event.type is EventType.ASSISTANT_MESSAGE or event.role == "user") and MENDED.search(
            event.text[:_READ_FOR_RETRACTIONS]
        ):
            return True
    return False


_WITHIN = 14
"""Most events between a failure and the form that works; a later success has another reason."""

_MISCALLED = re.compile(
    r"command not found|unknown (?:flag|option|command|argument|shorthand)|unrecognized (?:option|argument)|no such (?:option"
    r"|command|subcommand)|is not (?:recognized|a valid)|missing (?:required|script)|no tests? (?:found|ran|to run)|usage:"
    r"|illegal option|requires? (?:a|an|the|--)|must be (?:run|called)|unsupported (?:option|flag|argument)",
    re.IGNORECASE,
)
_MISPLACED = re.compile(
    r"no such file|not a (?:git repository|directory)|cannot find (?:module|package)|no module named|module not found"
    r"|cannot import name|could not find|is not installed|not found",
    re.IGNORECASE,
)
"""Complaints that another folder or another copy of the program answers, and no option does."""
_UNSET = re.compile(
    r"environment variable|is not set|not set\b|must be set|is (?:required|missing|undefined) in the environment", re.IGNORECASE
)
_SETS = re.compile(r"(?:^|[\s;&])([A-Z_][A-Z0-9_]*)=")
_ACTS = re.compile(
    r"(?:^|[;&|(\n])\s*(?!(?:ls|cat|echo|grep|rg|find|head|tail|git (?:log|grep|show|diff|commit|fetch))\b)"
    r"(?:[\w./=:@+-]+\s+){0,4}(?:install|add|start|restart|init|login|sync|update|upgrade|enable|create|build|compile|download"
    r"|fetch|clone|checkout|switch|ssh-add|chmod|chown|mkdir|touch|cp|mv|ln|source|export|up)(?![\w./-])"
)
"""What helped, if it was run between a failure and a success."""
_PROVES_NOTHING = re.compile(r"\|\|\s*(?:true|:|echo)\b|\s(?:-n|--dry-run\S*|--help|--version)(?:\s|$)")
_RUN_UP = re.compile(
    r"^(?:\s*(?:cd\s+[^;&|]{1,200}(?:&&|;)|export\s+\S{1,200}\s*(?:&&|;)|[A-Z_][A-Z0-9_]*=\S{0,200}|sudo|time"
    r"|timeout\s+\d+\w?))+\s*"
)
_OUTPUT_ONLY = re.compile(r"\s*(?:2>&1|\|\s*(?:head|tail|grep|less|cat|wc|tee)\b[^|;&]*|>\s*/dev/null)\s*")
_PLAIN = re.compile(r"(?:ls|cat|echo|grep|rg|find|head|tail|sed|awk|rm|cp|mv|mkdir|cd|pwd|which|test|wc)$")
"""Programs whose failures do not depend on how they are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Established:
    failed: Event
    works: Event
    wrong: str
    right: str
    complaint: str


def established(events: Sequence[Event]) -> Iterator[Established]:
    """Yield each failure with the first successful command after it that calls the same program differently."""
    results = [
        (at, event)
        for at, event in enumerate(events)
        if event.command and event.status in ("ok", "failed") and event.role == "tool"
    ]
    known: set[str] = set()
    for place, (at, failed) in enumerate(results):
        if failed.status != "failed":
            continue
        wrong = _core(failed.command)
        for later, works in results[place + 1 : place + 8]:
            if later - at > _WITHIN:
                break
            right = _core(works.command)
            if works.status == "ok" and right not in known and _is_another_form(wrong, right, failed.text[:4_000]):
                known.add(right)
                yield Established(
                    failed=failed, works=works, wrong=wrong, right=right, complaint=key_lines(failed.text, 160, lines=2)
                )
                break
            if works.status == "ok" and _ACTS.search(works.command[:600]):
                break


def _core(command: str) -> str:
    """Return the command on one line, without parts that only trim its output."""
    return one_line(_OUTPUT_ONLY.sub(" ", command[:600]))


def _is_another_form(wrong: str, right: str, complaint: str) -> bool:
    """Return whether one differs from the other in what the complaint was about: its form, folder, program, or a variable."""
    one, other = _tokens(wrong), _tokens(right)
    if not one or not other or len(wrong) > 240 or len(right) > 160 or _PLAIN.match(one[0]) or _PLAIN.match(other[0]):
        return False
    if _PROVES_NOTHING.search(right):
        return False
    bare, worked = _RUN_UP.sub("", wrong), _RUN_UP.sub("", right)
    if f"{one[0]}: command not found" in complaint or f"command not found: {one[0]}" in complaint:
        return bare != worked and (one[0] in other or (len(one) > 1 and set(one[1:]) <= set(other)))
    if _MISCALLED.search(complaint):
        return bare != worked and len(one) > 1 and any(other[at : at + 2] == one[:2] for at in range(len(other)))
    if _UNSET.search(complaint):
        return one == other and bool(set(_SETS.findall(right)) - set(_SETS.findall(wrong)))
    if _MISPLACED.search(complaint):
        moved = "cd " in right[: len(right) - len(worked)] and "cd " not in wrong[: len(wrong) - len(bare)]
        by_another = worked.endswith(f" {bare}") and not re.search(r"[;&|]", worked.removesuffix(bare))
        return by_another or (worked.split()[1:] == bare.split()[1:] and (moved or bare.split()[:1] != worked.split()[:1]))
    return False


def _tokens(command: str) -> list[str]:
    """Return program, subcommands and arguments by their last path parts, without options."""
    words = _RUN_UP.sub("", command).split()
    return [word.rstrip("/").rpartition("/")[2] for word in words if not word.startswith("-")]
