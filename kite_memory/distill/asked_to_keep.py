"""What a person's prompt asks to remember: «remember that …», «from now on …», «never … again».

Decided from the words alone, so that the hook that receives a prompt and a later reader of the transcript get the same result.
Keeping what was only meant for the current task is the worse mistake, so everything uncertain is left to distillation, which sees
the outcome. For languages other than English see `asked_in_another_language`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kite_memory.distill.prose import clean, one_line, sentences, stems
from kite_memory.text import lazy_regex


@dataclass(frozen=True, slots=True, kw_only=True)
class _LanguagePatterns:
    """Patterns of one language.

    ``reminds`` and ``stands`` capture what to keep as ``content``; that of ``stands`` must match ``rules``, a command and not a
    statement. ``turns``: the whole sentence is kept, since a subordinate clause has another word order.
    """

    reminds: re.Pattern[str]
    stands: re.Pattern[str]
    rules: re.Pattern[str]
    never: re.Pattern[str]
    turns: bool = False


def _patterns_of(
    *, please: str, reminds: str, that: str, stands: str, rules: str, never: str, turns: bool = False
) -> _LanguagePatterns:
    return _LanguagePatterns(
        reminds=_foreign_made(rf"(?:{please},?\s+)?(?:{reminds})(?:,?\s+{please})?\s*(?P<that>:\s*|{that})(?P<content>\S.*)"),
        stands=_foreign_made(rf"(?:{please},?\s+)?(?:{stands})\s*[,:]?\s+(?P<content>\S.*)"),
        rules=_foreign_made(rules),
        never=_foreign_made(rf"(?:{never})"),
        turns=turns,
    )


def _foreign_made(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("'", "['’]"), re.IGNORECASE | re.DOTALL)


_LANGUAGES = (
    _patterns_of(  # German
        please="bitte",
        reminds=r"merke? dir|denke? (?:immer )?(?:dran|daran)|vergiss (?:bitte )?nicht",
        that=r",\s*dass\s+",
        stands=r"ab (?:jetzt|sofort|nun)|von (?:jetzt|nun) an|künftig|in zukunft",
        rules=r"(?!(?:ist|sind|wird|werden|hat|haben|kann|läuft|geht|gibt|schlägt|war)\b)(?:bitte\s)?(?:\S+\s){0,6}?"
        r"(?:immer|nie|niemals|nicht mehr|nur noch|keine?[nrms]?\s.{2,60}\smehr)\b.*",
        never=r"(?:bitte\s+)?nie wieder\s.{2,200}(?<!\bge)\b(?!ge\w{3,}en\b)\w{3,}n[.!]*",
        turns=True,
    ),
    _patterns_of(  # French
        please=r"s'il te plaît",
        reminds=r"souviens-toi(?: bien)?|rappelle-toi(?: bien)?|retiens(?: bien)?|n'oublie (?:pas|jamais)",
        that=r"\s(?:que\s+|qu')",
        stands=r"à partir de maintenant|dorénavant|désormais",
        rules=r"(?:(?:utilise|emploie|écris|réponds|commence|lance|demande|préfère|évite)\b|ne\s|n').*",
        never=r"ne\s.{2,120}\splus jamais\b.*|plus jamais de\s.*",
    ),
    _patterns_of(  # Spanish
        please="por favor",
        reminds=r"recuerda|acuérdate(?: de)?|no (?:te )?olvides",
        that=r"\sque\s+",
        stands=r"a partir de ahora|de ahora en adelante|desde ahora",
        rules=r"(?:(?:siempre|nunca|jamás)\s(?!es\b|está\b|hay\b)|no\s+(?:uses|hagas|escribas|toques|borres|cambies)\b"
        r"|(?:usa|utiliza|responde|escribe|pregunta|ejecuta|prefiere|evita)\b).*",
        never=r"nunca más\s+(?:uses|hagas|escribas|toques|borres|cambies|subas|ejecutes)\b.*|no\s.{2,120}\snunca más[.!]*",
    ),
    _patterns_of(  # Italian
        please="per favore",
        reminds=r"ricorda(?:ti)?|non dimenticare",
        that=r"\sche\s+",
        stands=r"d'ora in (?:poi|avanti)|da ora in (?:poi|avanti)",
        rules=r"(?:(?:usa|utilizza|rispondi|scrivi|chiedi|esegui|preferisci|evita)\b|non\s+\w+[aei]re\b|(?:sempre|mai)\s).*",
        never=r"mai più\s+\w+[aei]re\b.*|non\s+\w+[aei]re\b.{0,120}\smai più\b.*",
    ),
)
CUES = (
    r"merke? dir|denke? (?:immer )?(?:dran|daran)|vergiss|ab (?:jetzt|sofort|nun)|von (?:jetzt|nun) an|künftig|in zukunft"
    r"|nie wieder"
    r"|souviens-toi|rappelle-toi|retiens|n['’]oublie|à partir de maintenant|dorénavant|désormais|plus jamais"
    r"|recuerda|acuérdate|olvides|a partir de ahora|de ahora en adelante|desde ahora|nunca más"
    r"|ricorda(?:ti)?|dimenticare|(?:d['’]|da )ora in (?:poi|avanti)|mai più"
)
"""Words of which any sentence that `asked_in_another_language` finds contains one."""

_FOREIGN_PASSING: Mapping[str, str] = {
    "German": r"heute|morgen|gestern|gerade|vorerst|diesmal|bis (?:zu|der|die|das)\b|(?:diese[rnms]?|der aktuellen) "
    r"(?:sitzung|aufgabe|datei|funktion|test|branch|mal)|noch nicht|vielleicht|ich (?:muss|werde|bin)",
    "French": r"aujourd['’]hui|demain|hier|pour l['’]instant|jusqu|ce(?:t|tte)? (?:session|tâche|fois|fichier|fonction|test)"
    r"|pas encore|peut-être|(?:on|nous|j)[ '’](?:a|avons|ai) (?:dit|parlé|vu)",
    "Spanish": r"hoy|mañana|ayer|por ahora|hasta|est[ea] (?:sesión|tarea|vez|archivo|función|test)|todavía no|aún no|quizás?"
    r"|tal vez",
    "Italian": r"oggi|domani|ieri|per ora|fino a|finché|quest[ao] (?:sessione|volta|file|funzione|test)|non ancora|forse",
}
_FOR_NOW = lazy_regex(rf"\b(?:{'|'.join(_FOREIGN_PASSING.values())})", re.IGNORECASE)


def asked_in_another_language(sentence: str) -> tuple[Literal["preference", "fact"], str] | None:
    """Return what one sentence in another language asks to keep, and its kind."""
    if _FOR_NOW.search(sentence) or sentence.endswith("?"):
        return None
    for language in _LANGUAGES:
        if match := language.reminds.fullmatch(sentence):
            whole = language.turns and not match["that"].startswith(":")
            return "fact", sentence if whole else match["content"]
        if language.never.fullmatch(sentence):
            return "preference", sentence
        if (stands := language.stands.fullmatch(sentence)) and language.rules.fullmatch(stands["content"]):
            return "preference", sentence if language.turns else stands["content"]
    return None


MOST = 3
"""Most requests of one prompt."""
_TYPED = 1_200
_LINES = 24
"""A prompt with more lines was pasted, or describes a task at length."""
_LONGEST = 500
_FEWEST_STEMS = 2
"""Fewest stems of a rule that names neither memory nor the future: one that does may be as brief as «use pnpm»."""
_POINTS_BACK = lazy_regex(
    r"\b(?:it|them|(?:this|that|these|those|so)\b(?!\s+\w))\b|\A(?:never|do(?:n'?t| not) ever)\s+\w+\s+again\W*\Z", re.IGNORECASE
)
"""A reference to earlier text; a rule this brief cannot be understood later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRequest:
    """A request to remember. ``text`` is the person's, without the request itself. ``everywhere``: it applies to more than one
    project.
    """

    kind: Literal["preference", "fact"]
    text: str
    everywhere: bool = False


def may_ask(prompt: str) -> bool:
    """Return whether the prompt may contain a request; most do not. Much faster than `asked_to_keep`."""
    return len(prompt) <= 4 * _TYPED and _CUE.search(prompt) is not None


def asked_to_keep(prompt: str) -> tuple[KeepRequest, ...]:
    """Return the requests in the order of the prompt, each once. None for a slash command, which has its own tool."""
    if prompt.lstrip().startswith("/") or not may_ask(prompt):
        return ()
    said = own_part(_FENCED.sub("\n\n", clean(prompt))).strip()
    if not said or len(said) > _TYPED or said.count("\n") > _LINES or _MACHINES.search(said):
        return ()
    all_sentences = list(_sentences_of(said))
    corrected = taken_back([each.said for each in all_sentences])
    found: dict[str, KeepRequest] = {}
    alone = all(_bare(each) or _asks(each, "") or _COURTESY.fullmatch(each.text) for each in all_sentences)
    for at, each in enumerate(all_sentences):
        asked = _asks(each, all_sentences[at - 1].text if at else "") or (_bare(each) if alone else None)
        if asked is not None and at not in corrected:
            found.setdefault(asked.text.casefold(), asked)
    return tuple(found.values())[:MOST]


_TAKES_BACK = lazy_regex(
    r"\W*(?:(?:oh|ah|hm+|oops|oups|uh|ach|ay|and|well)\W+)?(?:(?:no|nope|nein|non|nee)\b(?:\s*[,.!;:—–](?! (?:really|seriously"
    r"|(?:i am|i'?m) serious))|\s+(?=(?:wait|sorry|actually|it'?s|it is|that'?s|scratch|make|i mean|use|warte|attends|espera"
    r"|aspetta|quatsch|doch)\b))|(?P<unsure>(?:wait|hold on|warte|moment|halt|attends|espera|aspetta|cioè)"
    r"\s*[,.!;:—–]|actually\b,?|en fait\b,?|en realidad\b,?|in realtà\b,?)"
    r"|(?:sorry|entschuldigung|quatsch|pardon|perdón|disculpa|digo|scusa|anzi)\s*[,.!;:—–]"
    r"|scratch that|strike that|correction\b(?=\s*[:,—–])|i (?:mean|meant)\b|or rather\b|make that\b|that'?s wrong"
    r"|never ?mind(?=\s*(?:[,.!;:—–]|that\b|$))|forget (?:that|it)\b(?! (?:the|i|we|you)\b)|on second thought"
    r"|doch nicht(?! (?:wegen|nur))|ich mein(?:e|te)\b|korrektur|besser gesagt|stimmt nicht|vergiss das|je (?:veux|voulais) dire"
    r"|plutôt\b|oublie ça|mejor dicho|qui(?:ero|se) decir|corrección|olvida eso|volevo dire|correzione)",
    re.IGNORECASE,
)
_CHANGES_ITS_MIND = lazy_regex(
    r"[,;.—–-]\s*(?:(?:just |only )?kidding|just joking|no,? wait|wait,? no|oh,? no|scratch that|i mean|correction|or rather"
    r"|make that|nein,? warte|ach nein|quatsch"
    r"|besser gesagt"
    r"|non,? attends|je veux dire|no,? espera|mejor dicho|quiero decir|no,? aspetta|anzi|volevo dire)\b"
    r"|(?<!\byes)(?<!\bja)(?<!\boui)(?<!\bsí)[,;—–]\s*(?:no|nope|sorry|nein|non|pardon|perdón|scusa|entschuldigung|oops)\s*,\s"
    r"(?!(?:seriously|really|or|and)\b)",
    re.IGNORECASE,
)
_REACHES_BACK = 2


def taken_back(said: Sequence[str]) -> frozenset[int]:
    """Return which of a person's sentences they correct at once: in the same breath, or in one of the next two sentences."""
    gone = {at for at, text in enumerate(said) if _CHANGES_ITS_MIND.search(text)}
    for at, text in enumerate(said):
        begun = max(0, at - _REACHES_BACK)
        if (
            at
            and (opening := _TAKES_BACK.match(text))
            and (not opening["unsure"] or _corrects(text[opening.end() :], said[begun:at]))
        ):
            gone.update(range(begun, at))
    return frozenset(gone)


def _corrects(rest: str, before: Sequence[str]) -> bool:
    """Return whether what follows a "wait" or an "actually" replaces what was said, rather than turns to something else."""
    if _ADDS.search(rest) and not _NO.match(rest):
        return False
    return (
        len(rest.split()) <= _FRAGMENT or _REPLACES.match(rest) is not None or not stems(rest).isdisjoint(stems(" ".join(before)))
    )


_FRAGMENT = 3
_ADDS = lazy_regex(r"\b(?:too|also|as well|already|auch|schon|bereits|aussi|déjà|también|ya|anche|già)\b", re.IGNORECASE)
_NO = lazy_regex(r"\W*(?:no|nope|nein|non)\b", re.IGNORECASE)
_REPLACES = lazy_regex(
    r"\W*(?:no|not|it|that|this|use|make|i mean\w*|let'?s|don'?t|never|always|better|rather|with|nein|nicht|non|pas|mejor"
    r"|meglio)\b",
    re.IGNORECASE,
)


_OTHERS_TEXT = (
    r"logs?|output|error(?: message)?|message|e-?mail|mail|letter|reply|response|answer|ticket|issue|comment|feedback|docs?"
    r"|documentation"
    r"|readme|manual|article|post|thread|chat|transcript|text|banner|page|quote|nachricht|antwort|ausgabe|fehlermeldung|réponse"
    r"|erreur|sortie"
    r"|texte|respuesta|mensaje|correo|salida|texto"
)
_ANNOUNCES = lazy_regex(
    r"(?<!\bi )(?<!\bwe )\b(?:wrote|writes|said|says|told (?:me|us)|answered|replied|sent (?:me|us)|schr(?:ieb|eibt)|sagte?"
    r"|antwortete?|geschrieben"
    r"|a (?:dit|écrit|répondu)|écrit|dit|escribió|dice|dijo|respondió|ha scritto|scrive|dice)\b"
    r"|\b(?:translate|explain|summari[sz]e|proofread|rephrase|reword|interpret|analy[sz]e|übersetze?|erkläre?|traduis|explique"
    r"|résume|traduce|explica"
    r"|resume|traduci|spiega|what (?:does|do|is) (?:this|that|the following)|was bedeutet|que (?:veut dire|signifie)"
    r"|qué significa)\b"
    r"|\bfrom (?:the|our|my|a) (?:customer|vendor|client|support|provider|forum|website|wiki)\b"
    rf"|\b(?:here(?:'s| is| are)|this is|below is|(?:i|we) (?:got|received)|hier ist|voici|aquí (?:está|tienes)"
    rf"|ecco)\b.{{0,40}}\b(?:{_OTHERS_TEXT})\b"
    rf"|^\W*(?:the|this|his|her|their) (?:\w+ ){{0,2}}(?:{_OTHERS_TEXT})\W*$",
    re.IGNORECASE,
)
_FORWARDED = lazy_regex(
    r"-{2,}\s*(?:original|forwarded)\b|from:\s+(?:\S+ ){0,3}\S+\s*$|from:\s[^\n]*@|on .{5,80} wrote:", re.IGNORECASE
)
_GREETS = lazy_regex(
    r"\W*(?:dear|hi|hello|sehr geehrte\w*|liebe[rs]?|hallo|guten tag|chère?s?|bonjour|estimad[oa]s?|querid[oa]s?|hola|gentile"
    r"|car[oa])\b(?!\s+(?:claude|codex|gemini|copilot|cursor|agent|assistant|ai)\b)"
    r"[^.!?\n]{0,60}(?:,|!|\n|$)",
    re.IGNORECASE,
)
_SIGNS_OFF = lazy_regex(
    r"(?:^|[.!?]\s)[^\S\n]*(?:(?:best|kind|warm|many)?\s?regards|best(?: wishes)?|cheers|sincerely|yours\b[^\n]{0,20}"
    r"|many thanks|thanks|mit freundlichen grüßen|(?:viele|beste|liebe) grüße|gruß|(?:bien )?cordialement|bien à vous"
    r"|saludos(?: cordiales)?|atentamente|un saludo|(?:cordiali|distinti) saluti)\s*(?:,|$)",
    re.IGNORECASE | re.MULTILINE,
)
_OWN_VOICE = lazy_regex(
    r"\W*(?:(?:can|could|would) (?:you|we)|from now on|so|now|i|i'\w+|let'?s|what|why|how|is|are|do|does|should|my|btw|anyway"
    r"|given|based on"
    r"|ok(?:ay)?|and|but|ab jetzt|kannst du|ich|warum|peux-tu|je|pourquoi|puedes|a partir de ahora|por qué)\b",
    re.IGNORECASE,
)


def own_part(said: str) -> str:
    """Return a person's message without what it hands on from others: a text that a line announces, or a letter."""
    kept: list[str] = []
    handed_on = in_letter = False
    begun = -1
    paragraphs = re.split(r"\n[ \t]*\n", said)
    signed = max((at for at, paragraph in enumerate(paragraphs) if _SIGNS_OFF.search(paragraph)), default=-1)
    for at, paragraph in enumerate(paragraphs):
        if in_letter:
            in_letter = _SIGNS_OFF.search(paragraph) is None
            continue
        greeting = _GREETS.match(paragraph) is not None and (
            handed_on or paragraph.lstrip().lower().startswith(("dear", "sehr geehrt"))
        )
        if greeting and signed >= at:
            handed_on, in_letter = False, _SIGNS_OFF.search(paragraph) is None
            continue
        if handed_on and (at == begun + 1 or not _OWN_VOICE.match(paragraph)):
            continue
        rows = paragraph.split("\n")
        announced = next((row for row, line in enumerate(rows) if _hands_on(line)), None)
        handed_on, begun = announced is not None, at if announced is None or announced == len(rows) - 1 else at - 1
        kept.append("\n".join(rows if announced is None else rows[:announced]))
    return "\n\n".join(kept)


def _hands_on(line: str) -> bool:
    return (line.rstrip().endswith(":") and _ANNOUNCES.search(line) is not None) or _FORWARDED.match(line.lstrip()) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    """A sentence. ``text`` omits its introductory words, and is empty for what is quoted or announced; ``said`` is all of it."""

    text: str
    said: str


_CUE = lazy_regex(
    r"\b(?:remember|forget|memor\w+|from now on|from this (?:point|moment|day)|going forward|henceforth|(?:in|for) (?:the )?future"
    rf"|future (?:reference|sessions?)|never|always|ever|make a note|note to self|in mind|next time"
    rf"|as a (?:general )?rule|{CUES})\b",
    re.IGNORECASE,
)
_FENCED = lazy_regex(r"^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_MACHINES = lazy_regex(
    r"^(?:diff --git|@@ -|\+\+\+ |--- a/|Traceback \(most|\s{0,8}at [\w.$]+\(|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[\d\d:\d\d"
    r"|(?:error|warning|fatal|info|debug)(?:\[\w+\])?:)",
    re.MULTILINE | re.IGNORECASE,
)
"""Lines that are not typed by a person: the rest of the prompt may be pasted too."""
_ASIDE = lazy_regex(r"^(?:>|\||\t| {4,}|\$ |[%#]+ |[+-]{2,}|//|/\*)")
_ITEM = lazy_regex(r"(?:[-*•]|\d{1,2}[.)])\s+")
_UP_TO_IT = lazy_regex(
    r"(?:(?:please|also|and|but|so|ok|okay|oh|btw|by the way|hey|yes|yeah|no(?! (?:te )?olvides)|nope|right|great|thanks"
    r"|thank you|perfect|good|well|actually|just|claude|codex|gemini|one more thing|note(?! to self)|important"
    r"|fyi)\b(?!-\w)[\s,.;:!—–-]*){1,5}(?=\S)",
    re.IGNORECASE,
)
_COURTESY = lazy_regex(
    r"(?:please|thanks|thank you|ok|okay|great|perfect|cool|nice|yes|no|good|understood|got it|sorry)[\w\s,]{0,20}[.!]*",
    re.IGNORECASE,
)
_QUOTE = lazy_regex(r"[\"“”]")
_CODE = lazy_regex(r"`[^`\n]{0,200}`")
_NOT_PROSE = lazy_regex(r"[{}<>|\\=]|\w\(|;\s*$|->|::")


_EXCEPTS = lazy_regex(
    r"(?:except|unless|otherwise|apart from|other than|only (?:if|when|where|in|on|for|after|before)"
    r"|but (?:not|never|only|in|on|for|if|when|except))\b",
    re.IGNORECASE,
)


def with_exceptions(said: Sequence[str]) -> list[str]:
    """Join each sentence that begins with an exception to the one before it: without it, that says too much."""
    found: list[str] = []
    for each in said:
        if found and _EXCEPTS.match(each) and not each.endswith("?") and not found[-1].endswith("?"):
            found[-1] = f"{found[-1]} {each}"
        else:
            found.append(each)
    return found


def _sentences_of(said: str) -> Iterator[_Sentence]:
    """Yield sentences of running text, without quotations and lists announced by a line that ends in a colon."""
    announced = False
    for paragraph in re.split(r"\n[ \t]*\n", said):
        blocks: list[list[str]] = [[]]
        for line in paragraph.split("\n"):
            bare = line.strip()
            item = _ITEM.match(bare)
            if item or _ASIDE.match(line):
                blocks.append([])
            if not _ASIDE.match(line):
                blocks[-1].append(bare[item.end() :] if item else bare)
            if bare.endswith(":"):
                blocks.append([])
        for block in (" ".join(rows) for rows in blocks if rows):
            quoted = 0
            for sentence in with_exceptions(sentences(block)):
                inside, quoted = quoted % 2 == 1, quoted + len(_QUOTE.findall(sentence))
                text = said_here = one_line(sentence)
                if (opening := _UP_TO_IT.match(text)) and any(map(str.isalnum, text[opening.end() :])):
                    text = text[opening.end() :]
                if inside or announced or not text or text[0] in "\"“”'‘’«":
                    text = ""
                yield _Sentence(text=text, said=said_here)
            announced = block.rstrip().endswith(":")


_VERBS = """
add address answer append apply archive ask assert assume avoid base be begin branch build bump call cast change check clean clear
close comment commit compare compile confirm consider convert copy create cut default define delete deploy describe disable
document drop edit emit enable end ensure escape explain export expose extract fetch flag follow force format gate generate give go
group guard guess hand handle hard-code hardcode hide ignore import include indent init initialise initialize inline insert install
invent keep label lead leave link lint list load lock log lower make mark match measure mention merge mock modify move name narrow
nest omit open order overwrite paste pin place point post prefer prefix print propose prune publish pull push put query quote raise
read rebase refer reference regenerate release remove rename render reply report request require reset respond restart restore
resolve retry return reuse revert review rewrite run save say scope seed send separate set ship shorten show sign skip sort specify
split squash stage start stick stop store strip submit subtract suffix suggest summarise summarize surface tag take tell test throw
touch trim trust truncate try type update upgrade use validate verify wait wrap write
"""
VERB = rf"(?:{'|'.join(map(re.escape, _VERBS.split()))})\b(?!['’-])"
_ADVERB = r"(?:(?:also|only|just|first|explicitly|manually|directly|simply|automatically|ever|again|blindly|silently)\s+)?"
_PASSING = lazy_regex(
    r"\b(?:today|tomorrow|tonight|yesterday|right now|for now|at the moment|for the moment|for the time being|temporarily"
    r"|meanwhile|in the meantime|in the middle of|this time|(?:this|just) once|(?:until|till)(?! (?:the )?(?:\d|(?:january"
    r"|february|march|april|may|june|july|august|september|october|november|december)\b))|earlier|last (?:time|week|night)|ago"
    r"|this (?:morning|afternoon|evening|week)|(?:in|for|on|during) (?:this|that|the current) (?:task|session|conversation|chat"
    r"|pr|mr|branch|file|function|method|class|commit|case|test|step|change|loop|request|issue|ticket|diff|refactor\w*)"
    r"|the rest of)\b|\b(?:i'?m|i am) (?:off|out|away|back|going|done|leaving|still|not sure)\b|\b(?:i'll|i will|i'?ve just"
    r"|i just)\b|\b(?:maybe|perhaps|probably|i think|i guess|not sure|might)\b|\b(?:i|we|you)(?:'ve| have| had)? (?:already"
    r"|still|not|asked|told|tried|wanted|have not|haven'?t)\b|\byet[.!]*$|\bwaiting for\b|\b(?:more|another) (?:test|bug|file"
    r"|task|thing)s?\b|\bthe (?:user|previous \w+|last \w+|first \w+) \w{2,}ed\b|\byou should fix\b|(?<!from )\bnow\b"
    r"|\byour (?:task|job|change|answer)\b|\bonly \w+ing\b|\bi (?:sent|gave|showed)\b|\bneed to\b.*\bfirst[.!]*$",
    re.IGNORECASE,
)
"""Words about the current task or the past: such a sentence will soon be outdated."""
_SO_DO = lazy_regex(rf",?\s+(?:so|then)\s+(?:please\s+|only\s+|just\s+)*{VERB}", re.IGNORECASE)
"""A continuation that makes a fact the mere reason for doing something now."""
_POINTED_AT = lazy_regex(
    r"(?:this|that|these|those|it|he|she|they|there(?:'s| is| are))\b"
    r"(?!\s+(?:repo\w*|project|codebase|machine|laptop|server|monorepo|package|team|company|app|workspace|vault)\b)",
    re.IGNORECASE,
)
"""Words that point at something a later reader cannot see."""
_OF_A_PLACE = lazy_regex(
    r"\bhere\b|\b(?:in|from|inside|of) (?:the|this|that) (?:\w+ )?(?:block|loop|function|method|branch|handler|constructor"
    r"|callback|class|parser|condition|case)\b|\b\w+\(\)",
    re.IGNORECASE,
)
"""A rule for the code at hand rather than for anybody who works on it."""
_POINTS = lazy_regex(
    r"(?:(?:please |don'?t |do not |never |always |again |ever )*)(?:do|say|use|try|make|change|touch|write|run|call"
    r"|forget|keep|be)?\s*"
    r"(?:it|that|this|these|those|them|so|such (?:a )?thing\w*|the same(?: thing| mistake)?)?(?:\s+again)?[.!\s]*",
    re.IGNORECASE,
)
"""A sentence without meaning when it stands alone."""
_EVERYWHERE = lazy_regex(
    r"\b(?:everywhere|globally|(?:in|for|across|on) (?:all|every|any|each)(?: of)?(?: (?:my|our"
    r"|the))? (?:\w+ )?(?:projects?|repos?\b|repositor\w+"
    r"|codebases?)|(?:all|every) (?:of )?(?:my|our) (?:projects|repos|repositories)|whatever the project|in (?:any"
    r"|every) project)\b",
    re.IGNORECASE,
)

_A_CLAUSE = (
    r"(?=.{0,140}?\b(?:is|are|has|have|had to|needs?|must|can|cannot|can'?t|may|should|shouldn'?t|do|does|doesn'?t|don'?t"
    r"|didn'?t work|will|won'?t|want|wants|prefer|prefers|like|likes|hate|use|uses|run|runs|live|lives|only|always|never|isn'?t"
    r"|aren'?t|mustn'?t|requires?|expects?|takes?|goes|means?|stays?|lies|resets?|breaks?|fails?|works?|belongs?|comes?|deploys?"
    r"|keeps?|owns?|reviews?|expires?|drops?|listens?|speaks?|talks?|starts?|ends?|costs?|handles?|holds?|contains?|returns?"
    r"|sits?|includes?|signs?|consumes?|ships?|depends?|supports?|accepts?|rejects?|allows?|triggers?|publish(?:es)?|rotates?"
    r"|changes?|renews?|refresh(?:es)?|closes?|opens?|lasts?|restarts?|syncs?|reads?|writes?|sends?|stores?|points?|serves?"
    r"|connects?|\w{3,40}s (?:every|each|once|twice|daily|weekly|monthly|yearly|on the \d|on \w{3,6}days?|at \d)|(?:the|our|my"
    r"|every|all) (?:[\w-]+ ){1,3}\w{3,40}s (?:up |down |off |on )?(?:at (?:night|noon|the)|between|from|during|until|by|after"
    r"|before|in the (?:night|morning|evening|afternoon)))\b)"
)
_MEMORY = r"(?:your |the |our |my |long[- ]term |project )*(?:memory|memories|vault)"
_REMINDS = lazy_regex(
    rf"(?:(?:(?:can|could|would|will) you\s+(?:please\s+)?|(?:you should|i(?:'d| would) like you to|i (?:want|need) you to)\s+)?"
    rf"(?:remember|don'?t (?:ever )?forget|do not forget|never forget|memori[sz]e|make a (?:mental )?note|commit to memory)(?:"
    rf"(?:\s+for (?:later|(?:the )?future|next time))?\s+that\s+"
    rf"(?!\w+\s+(?:in the \w+\s+)?(?:where|when|who|which|about|with)\b)"
    rf"(?!(?:we|i|you|one|time|day|thing|bug|issue|error|function|file|ticket|pr|test|class|method|guy"
    rf"|discussion|conversation)"
    rf"\s+(?:said|talked|discussed|did|had|were|was|wrote|made|saw|fixed|when|where|from|about|with|in|on|the|you|we"
    rf"|i)\b){_A_CLAUSE}"
    rf"|\s+this(?:\s+for (?:later|(?:the )?future|next time))?\s*[:,—–-]\s*|(?:\s+for (?:later|(?:the )?future"
    rf"|next time))?\s*:\s+"
    rf"|\s+(?=(?:we|our|my|i)\s){_A_CLAUSE}(?!(?:we|i) (?:said|talked|discussed|did|had|were|was|wrote|made|saw|fixed"
    rf"|have (?:to|a)|need to)\b))"
    rf"|(?:note )?for future (?:reference|sessions?)\s*[:,—–-]\s*|note to self\s*[:,—–-]\s*"
    rf"|(?:save|add|store|put|commit|write|keep)\s+(?:(?:this|that|it)\s+)?(?:down\s+)?(?:to|in"
    rf"|into)\s+{_MEMORY}"
    rf"(?:(?<!in memory)\s*[:,—–]\s*(?:that\s+)?(?!(?:an?|and|then|no|instead)\b)|\s*:\s*{_A_CLAUSE}|\s+that\s+{_A_CLAUSE}))"
    rf"(?P<content>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_THAT = lazy_regex(
    r"(?:and )?(?:please )?(?:remember|memori[sz]e|don'?t forget) (?:that|this|it)(?: for (?:later|(?:the )?future"
    r"|next time))?[.!\s]*"
    rf"|(?:save|add|store|put|commit) (?:that|this|it) (?:to|in|into) {_MEMORY}[.!\s]*",
    re.IGNORECASE,
)
_THEN_KEPT = lazy_regex(rf"(?P<content>[^?]{{12,400}}?)(?:[,;:]| [—–-]+)\s+(?:{_THAT.pattern})", re.IGNORECASE)

_HENCEFORTH = (
    r"(?:from now on(?:wards)?|from here on(?: out)?|from this (?:point|moment|day) (?:on(?:wards)?|forward)|going forward"
    r"|henceforth"
    r"|(?:in|for) (?:the )?future|in (?:all )?future sessions|next time(?=,)|as a (?:general )?rule)"
)
_STANDS_FROM = lazy_regex(rf"{_HENCEFORTH}\s*[,:—–-]*\s*(?:please\s+)?(?P<content>\S.*)", re.IGNORECASE | re.DOTALL)
_STANDS_TO = lazy_regex(
    r"(?P<content>\S.{3,400}?),?\s+(?:from now on(?:wards)?|going forward|from here on out)[.!\s]*", re.IGNORECASE | re.DOTALL
)
_DIRECTS = lazy_regex(
    rf"(?:please\s+|let'?s\s+|we(?:'ll| will| should| must| only| always| never)?\s+|you\s+(?:should|must|are to"
    rf"|have to|need to|always|never|only)\s+"
    rf"|i(?:'d| would)? (?:want|like|expect|prefer)(?: you)?(?: to)?\s+|when(?:ever)?\s[^,]{{2,90}},\s*"
    rf"|if\s[^,]{{2,90}},\s*|before\s[^,]{{2,90}},\s*"
    rf"|after\s[^,]{{2,90}},\s*|for\s[^,]{{2,60}},\s*|in\s[^,]{{2,60}},\s*)*(?:(?:always|never|don'?t(?: ever)?"
    rf"|do not(?: ever)?|only|no more|no)\s+)?"
    rf"{_ADVERB}(?:{VERB}|no\s|(?:all|every|each|any|the|our|my)\s[^?]{{2,80}}\s(?:should|must|shall|needs? to|has to"
    rf"|have to|goes?|go)\b"
    rf"|i prefer\b|i want\b)",
    re.IGNORECASE,
)
_NEVER_AGAIN = lazy_regex(
    rf"(?:never again\s*[,:]?\s+{_ADVERB}{VERB}|(?:never|don'?t (?:you )?ever"
    rf"|do not ever)\s+{_ADVERB}{VERB}[^?]{{1,200}}\bagain\b)[^?]*",
    re.IGNORECASE,
)
_STANDING = lazy_regex(
    rf"(?:when(?:ever)?\s[^,?]{{2,90}},\s*|before\s[^,?]{{2,90}},\s*|after\s[^,?]{{2,90}},\s*|(?:you|we) (?:should|must)\s+"
    rf"|i (?:want|need|would like|expect) you to\s+)?"
    rf"(?:remember to\s+)?(?:always|never|don'?t ever|do not ever)\s+{_ADVERB}{VERB}[^?]*",
    re.IGNORECASE,
)
_MINDED = lazy_regex(
    rf"(?:keep|bear) in mind(?:\s+that\s+|\s*:\s*){_A_CLAUSE}(?P<content>\S[^?]*)",
    re.IGNORECASE,
)
_WOULD_YOU = lazy_regex(r"(?:can|could|would|will) you (?:please )?remember (?:for \w+ \w+ )?that\b", re.IGNORECASE)
_A_RULE = lazy_regex(
    rf"\b(?:always|never|should(?:n'?t)?|must(?:n'?t)?|prefer|don'?t|do not|only (?:ever )?use|(?:like|want)s? (?:you"
    rf"|it|them)|hate)\b|{VERB}",
    re.IGNORECASE,
)
_IMPERATIVE = lazy_regex(rf"(?:always|never|don'?t|do not|please|only)\b|{VERB}", re.IGNORECASE)
_WE_OR_I = lazy_regex(r"(?:i|you)\b|we (?:prefer|want|like|always|never|should|must)\b", re.IGNORECASE)


def _asks(sentence: _Sentence, before: str) -> KeepRequest | None:
    """Return the request in a sentence that names memory or the future."""
    said = sentence.text
    if _WOULD_YOU.match(said):
        said = said.removesuffix("?")
    if not said or said.endswith("?"):
        return None
    if abroad := asked_in_another_language(said):
        return _made(abroad[1], abroad[0])
    if _THAT.fullmatch(said):
        return _made(before, None) if before and not before.endswith("?") else None
    if match := _REMINDS.fullmatch(said):
        return _made(match["content"], None)
    if _QUOTE.match(said):
        return None
    if kept := _THEN_KEPT.fullmatch(said):
        return _made(kept["content"], None)
    if _NEVER_AGAIN.fullmatch(said):
        return _made(said, "preference")
    for pattern in (_STANDS_FROM, _STANDS_TO):
        if (stands := pattern.fullmatch(said)) and _DIRECTS.match(stands["content"]):
            return _made(stands["content"], "preference")
    return None


def _bare(sentence: _Sentence) -> KeepRequest | None:
    """Return a rule without any duration; it counts if the prompt contains nothing else, so that it is no part of a task."""
    said = sentence.text
    if not said or said.endswith("?") or _OF_A_PLACE.search(said):
        return None
    minded = _MINDED.fullmatch(said)
    statement = minded["content"] if minded else said if _STANDING.fullmatch(said) else ""
    return _made(statement, None if minded else "preference") if len(stems(statement)) >= _FEWEST_STEMS else None


def without_exception_of_today(rule: str) -> str:
    """Return a rule without the remark that today is the exception to it: from tomorrow on, it holds."""
    return _ONLY_TODAY.sub(lambda found: found["end"], rule)


_ONLY_TODAY = lazy_regex(
    r"(?<!\s)\s*(?<![,;:(—–-])[,;:(—–-]+\s*(?:and |but |though |only |just )*(?:today|tonight|tomorrow|this (?:time|once|week"
    r"|one|release)|now)\b[^,;.!?()]{0,24}\b(?:exceptions?|excepted|aside|different)\b[^,;.!?()]{0,24}\)?(?P<end>[.!]*)",
    re.IGNORECASE,
)


def _made(statement: str, kind: Literal["preference", "fact"] | None) -> KeepRequest | None:
    text = without_exception_of_today(statement).strip(" ,;:—–-")
    bare = _CODE.sub("code", text)
    if len(text) > _LONGEST or "?" in bare or _PASSING.search(bare) or _NOT_PROSE.search(bare) or _POINTS.fullmatch(text):
        return None
    if _SO_DO.search(bare) or _POINTED_AT.match(bare):
        return None
    if len(stems(text)) < _FEWEST_STEMS and _POINTS_BACK.search(bare):
        return None
    if not stems(text) or len(text.split()) < 2 or text.count('"') % 2 or text.count("`") % 2:
        return None
    if kind is None:
        rule = _IMPERATIVE.match(text) or (_WE_OR_I.match(text) and _A_RULE.search(text))
        kind = "preference" if rule else "fact"
    if not text.startswith("`"):
        text = text[:1].upper() + text[1:]
    return KeepRequest(
        kind=kind, text=text if text.endswith((".", "!", "…")) else f"{text}.", everywhere=bool(_EVERYWHERE.search(text))
    )
