"""Languages of texts: which one a text is in, and its frequent words."""

import re
from collections.abc import Mapping, Sequence

FREQUENT: Mapping[str, frozenset[str]] = {
    code: frozenset(words.split())
    for code, words in {
        "en": """
            the and is are was were it's this that these those to of in on for with from as at by be have has
            had do does did don't not it we you i they what which when where why how can could should would
            will if but or so there then than just also only use need make let's an my our your please
        """,
        "de": """
            der die das und ist nicht ein eine den dem mit auf für von wir ich es zu im auch noch nur wird
            sind bei wie was aber dann jetzt mach bitte wenn oder kein keine doch mal soll schon warum wieso
            weshalb welche welcher wann wer er sie hat haben einen einer des als nach am an so nun man kann
            werden war waren über aus zum zur vom
        """,
        "fr": """
            le la les des est et un une pas que qui pour dans sur avec du de on je il en au aux ça ce cette
            mais ou plus par se sont tu nous vous c'est faut si comme tout pourquoi comment quand quel quelle
            son sa ses ne n'a l'on a ont été être leur très d'où où même y
        """,
        "es": """
            el la los las de que y en un una es por con para no se del al lo como más pero su le ya o este
            esta está sí porque cuando muy sin sobre hay solo sólo eso qué cómo dónde cuándo cuál son fue ser
            han ha nos te mi les desde entre también
        """,
        "pt": """
            o a os as de que e em um uma é por com para pra não se do da dos das no na nos nas ao mas mais
            como eu você gente isso esse essa já só foi tem está tá ou quando sem pelo pela onde qual são ser
            ele ela eles à às até também seu sua me te lhe quê porque
        """,
        "ru": """
            и в не на что с по это как а то но из у за так же от о к для мы он она они я ты вы бы ли уже или
            если чтобы при до есть был была было мне его её их этот эта эти там тут где почему когда какой
            какая какие ещё нет да вот
        """,
    }.items()
}
"""Words that hardly any text of the language lacks, and that reveal nothing about its subject."""

_LATIN = ("en", "de", "fr", "es", "pt")
_READ = 4_000
_SHARE = 0.15
"""Share of a text's words that are among its language's frequent ones; most have twice as much."""
_SCRIPT_SHARE = 0.15
"""Share of letters of another script from which a text is in that language: identifiers stay Latin."""
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)


def language_of(text: str) -> str:
    """Return "en", "de", "fr", "es", "pt", "ru", "zh" or "ja"; empty for another language, and for a text that is too short or
    mixed.
    """
    text = _CODE.sub(" ", text[:_READ])
    letters = max(1, len(_LETTER.findall(text)))
    kana = len(_KANA.findall(text))
    if kana + len(_HAN.findall(text)) >= _SCRIPT_SHARE * letters:
        return "ja" if kana >= _SCRIPT_SHARE * letters else "zh"
    if len(_CYRILLIC.findall(text)) >= _SCRIPT_SHARE * letters:
        return "ru"
    return _latin([word.lower() for word in _WORD.findall(text)])


def _latin(words: Sequence[str]) -> str:
    counts = {code: sum(word in FREQUENT[code] for word in words) for code in _LATIN}
    best = max(counts, key=counts.__getitem__)  # English if another language has only as many
    if best != "en" and counts[best] < max(2, _SHARE * len(words)):
        return ""
    return best if counts[best] else ""
