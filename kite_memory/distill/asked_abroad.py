"""What is asked to be kept in German, French, Spanish or Italian: only what can hardly mean anything else.

A table of openings for each, since a sentence that begins so speaks to whoever listens. Where a language turns a sentence around
that depends on such words, the whole of it is kept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tongue:
    """``tells`` and ``stands`` say the rest as ``told``; what stands ``rules``, or it says only what is. ``never`` is all of it."""

    tells: re.Pattern[str]
    stands: re.Pattern[str]
    rules: re.Pattern[str]
    never: re.Pattern[str]
    turns: bool = False


def _tongue(*, please: str, tells: str, that: str, stands: str, rules: str, never: str, turns: bool = False) -> _Tongue:
    return _Tongue(
        tells=_made(rf"(?:{please},?\s+)?(?:{tells})(?:,?\s+{please})?\s*(?P<that>:\s*|{that})(?P<told>\S.*)"),
        stands=_made(rf"(?:{please},?\s+)?(?:{stands})\s*[,:]?\s+(?P<told>\S.*)"),
        rules=_made(rules),
        never=_made(rf"(?:{never})"),
        turns=turns,
    )


def _made(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("'", "['’]"), re.IGNORECASE | re.DOTALL)


_TONGUES = (
    _tongue(  # German
        please="bitte",
        tells=r"merke? dir|denke? (?:immer )?(?:dran|daran)|vergiss (?:bitte )?nicht",
        that=r",\s*dass\s+",
        stands=r"ab (?:jetzt|sofort|nun)|von (?:jetzt|nun) an|künftig|in zukunft",
        rules=r"(?!(?:ist|sind|wird|werden|hat|haben|kann|läuft|geht|gibt|schlägt|war)\b)(?:bitte\s)?(?:\S+\s){0,6}?"
        r"(?:immer|nie|niemals|nicht mehr|nur noch|keine?[nrms]?\s.{2,60}\smehr)\b.*",
        never=r"(?:bitte\s+)?nie wieder\s.{2,200}(?<!\bge)\b(?!ge\w{3,}en\b)\w{3,}n[.!]*",
        turns=True,
    ),
    _tongue(  # French
        please=r"s'il te plaît",
        tells=r"souviens-toi(?: bien)?|rappelle-toi(?: bien)?|retiens(?: bien)?|n'oublie (?:pas|jamais)",
        that=r"\s(?:que\s+|qu')",
        stands=r"à partir de maintenant|dorénavant|désormais",
        rules=r"(?:(?:utilise|emploie|écris|réponds|commence|lance|demande|préfère|évite)\b|ne\s|n').*",
        never=r"ne\s.{2,120}\splus jamais\b.*|plus jamais de\s.*",
    ),
    _tongue(  # Spanish
        please="por favor",
        tells=r"recuerda|acuérdate(?: de)?|no (?:te )?olvides",
        that=r"\sque\s+",
        stands=r"a partir de ahora|de ahora en adelante|desde ahora",
        rules=r"(?:(?:siempre|nunca|jamás)\s(?!es\b|está\b|hay\b)|no\s+(?:uses|hagas|escribas|toques|borres|cambies)\b"
        r"|(?:usa|utiliza|responde|escribe|pregunta|ejecuta|prefiere|evita)\b).*",
        never=r"nunca más\s+(?:uses|hagas|escribas|toques|borres|cambies|subas|ejecutes)\b.*|no\s.{2,120}\snunca más[.!]*",
    ),
    _tongue(  # Italian
        please="per favore",
        tells=r"ricorda(?:ti)?|non dimenticare",
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
"""One of them is in whatever `asked_abroad` finds."""

_PASSING: Mapping[str, str] = {
    "German": r"heute|morgen|gestern|gerade|vorerst|diesmal|bis (?:zu|der|die|das)\b|(?:diese[rnms]?|der aktuellen) "
    r"(?:sitzung|aufgabe|datei|funktion|test|branch|mal)|noch nicht|vielleicht|ich (?:muss|werde|bin)",
    "French": r"aujourd['’]hui|demain|hier|pour l['’]instant|jusqu|ce(?:t|tte)? (?:session|tâche|fois|fichier|fonction|test)"
    r"|pas encore|peut-être|(?:on|nous|j)[ '’](?:a|avons|ai) (?:dit|parlé|vu)",
    "Spanish": r"hoy|mañana|ayer|por ahora|hasta|est[ea] (?:sesión|tarea|vez|archivo|función|test)|todavía no|aún no|quizás?"
    r"|tal vez",
    "Italian": r"oggi|domani|ieri|per ora|fino a|finché|quest[ao] (?:sessione|volta|file|funzione|test)|non ancora|forse",
}
_FOR_NOW = re.compile(rf"\b(?:{'|'.join(_PASSING.values())})", re.IGNORECASE)


def asked_abroad(sentence: str) -> tuple[Literal["preference", "fact"], str] | None:
    """What one sentence asks to have kept, and what sort of thing it is."""
    if _FOR_NOW.search(sentence) or sentence.endswith("?"):
        return None
    for tongue in _TONGUES:
        if told := tongue.tells.fullmatch(sentence):
            whole = tongue.turns and not told["that"].startswith(":")
            return "fact", sentence if whole else told["told"]
        if tongue.never.fullmatch(sentence):
            return "preference", sentence
        if (stands := tongue.stands.fullmatch(sentence)) and tongue.rules.fullmatch(stands["told"]):
            return "preference", sentence if tongue.turns else stands["told"]
    return None
