"""Words: their stems, abbreviations and spelling, and which language a text is in."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from kite_memory.text import lazy_regex

_FORMS = """
postgres postgresql pg psql
kubernetes k8s kube
javascript js
typescript ts
python py
golang go
ruby rb
database db
repository repo
configuration config cfg
environment env
authentication auth authn
authorization authz
internationalization i18n
localization l10n
accessibility a11y
observability o11y
infrastructure infra
production prod
development dev
documentation docs
dependencies dependency deps dep
directory dir
administrator admin
elasticsearch elastic
terraform tf
github gh
continuous-integration ci
pull-request pr
message-queue mq
mongodb mongo
rabbitmq rabbit
"""
_OF = {form: tuple(line.split()) for line in _FORMS.strip().splitlines() for form in line.split()}
_TOO_COMMON = frozenset({"go"})


def others(word: str) -> tuple[str, ...]:
    """Return other forms of the same name, in lower case; none for a word that mostly means something else."""
    return () if word in _TOO_COMMON else tuple(form for form in _OF.get(word, ()) if form != word and "-" not in form)


FREQUENT: Mapping[str, frozenset[str]] = {
    code: frozenset(words.split())
    for code, words in {
        "en": """
            the and is are was were it's this that these those to of in on for with from as at by be have has
            had do does did don't not it we you i they he she him her his their them what which who whom when where
            why how can could should would will must may might if but or so there then than just also only use need
            make let's an a my our your me us please any all some more most each about into over before after again
            because while there's i'm i'd i'll we're you're what's that's doesn't didn't isn't can't won't
        """,
        "de": """
            der die das und ist nicht ein eine den dem mit auf für von wir ich es zu im auch noch nur wird
            sind bei wie was aber dann jetzt mach bitte wenn oder kein keine doch mal soll schon warum wieso
            weshalb welche welcher welches welchen welchem wann wer wen wem wo woher wohin womit wofür worauf woran
            worin wozu wodurch er sie hat haben hatte hatten einen einer eines einem des als nach am an so nun man
            kann konnte können könnte könnten werden wurde wurden worden würde war waren wäre über aus zum zur vom du
            mir mich dir dich uns euch ihr ihm ihn ihre ihren ihrem ihrer sein seine seinen seinem seiner mein meine
            meinen meinem meiner dein deine deinen deinem deiner unser unsere unseren unserem euer kannst darf darfst
            dürfen muss musst müssen sollen sollte sollten sollst will willst wollen wollte möchte mag bin bist gibt
            geht ging macht machen gemacht viel viele wenig mehr sehr ganz etwas nichts alles alle jede jeder jedes
            dieser diese dieses diesen diesem jene hier dort da dabei dafür damit darauf davon dazu denn weil dass ob
            bis seit vor durch ohne um unter zwischen gegen wieder immer nie einmal eigentlich überhaupt einfach
            eben halt ja nein keinen keinem keiner sich selbst beim ins ans vorher nachher danach zwar
        """,
        "fr": """
            le la les des est et un une pas que qui pour dans sur avec du de on je il en au aux ça ce cette cet
            ces mais ou plus par se sont tu nous vous c'est c'était faut si comme tout tous toute toutes
            pourquoi comment quand quel quelle quels quelles combien quoi lequel laquelle lesquels son sa ses ne
            n'a l'on a ai as ont avons avez avait avaient été être étaient était serait sera leur leurs très
            d'où où même y elle elles ils me moi te toi lui eux mon ma mes ton ta tes notre nos votre vos
            peut peux peuvent pourrait pourra pouvait doit dois doivent devrait fait faire fais font veut veux va vais
            vont donc car sans sous entre vers chez avant après pendant depuis encore déjà toujours jamais aussi bien
            rien quelque quelques certains certaines chaque autre autres ainsi alors qu'il qu'on qu'elle jusqu
            est-ce n'est d'un d'une qu'est ceci cela celui celle ceux dont ici là peu trop fois
        """,
        "es": """
            el la los las de que y e en un una unos unas es por con para no se del al lo como más pero su sus le ya o u
            este esta estos estas ese esa esos esas eso esto aquello está están estaba estaban estar sí si porque
            cuando muy sin sobre hay había hubo haber solo sólo qué cómo dónde donde cuándo cuál cuáles cuánto cuánta
            cuántos cuántas quién quiénes son fue fueron ser era eran sería han ha he hemos nos te mi mis me les desde
            entre hasta también tú tu tus yo él ella ellos ellas usted ustedes puedes puedo puede pueden podemos
            podría debe debo deben debería tengo tiene tienen tenemos tenía hace hacer hago hacen hacemos va voy van
            vamos así aunque pues entonces cada todo toda todos todas otro otra otros otras mismo misma algo nada
            alguien nadie ningún ninguna algún alguna algunos mucho mucha muchos poco antes después ahora aquí allí
            nunca siempre a ante contra según durante
        """,
        "pt": """
            o a os as de que e em um uma uns umas é por com para pra pro não se do da dos das no na nos nas ao aos mas
            mais como eu você vocês gente isso isto esse essa esses essas este esta estes estas aquele aquela aquilo já
            só foi foram tem têm tinha tinham está estão estava estavam tá tô tão ou quando sem pelo pela pelos pelas
            onde qual quais quanto quanta quantos quantas quem são ser era eram seria ele ela eles elas à às até
            também seu sua seus suas meu minha meus minhas nosso nossa me te lhe lhes quê porque porquê num numa
            dele dela deles delas posso pode podem podemos poderia deve devo devem deveria preciso precisa tenho temos
            faz faço fazer fazem fazemos vai vou vão vamos há havia sobre entre desde antes depois ainda então assim
            cada todo toda todos todas outro outra outros outras mesmo mesma algo nada alguém ninguém nenhum nenhuma
            algum alguma alguns muito muita muitos pouco agora aqui ali lá nunca sempre qualquer
        """,
        "ru": """
            и в не на что с по это как а то но из у за так же от о к для мы он она они оно я ты вы бы ли уже или
            если чтобы при до есть был была было были быть мне меня тебе тебя нам нас вам вас ему ей им его её их этот
            эта эти этого этой этом этих тот та те того той том тех там тут здесь где куда откуда почему зачем когда
            какой какая какое какие каком каких каким сколько кто кого кому чем чего чему ещё нет да вот во со об обо
            без под над перед между через после раз можно нужно надо может могу можем мой моя мои наш наша наши наше
            свой свои своих ваш себя сам сама сами все всё всех всего всем весь вся каждый каждая каждого только
            даже чтоб потому поэтому который которая которые которого очень более менее ведь разве будет будут
            буду будем сейчас теперь тогда всегда никогда ничего никто ни
        """,
        "zh": """
            的 了 是 在 有 我 们 你 他 她 它 这 那 哪 个 们 和 与 或 就 都 也 还 要 会 能 可 以 把 被 给 让 用 对 从 到 为 吗 呢
            吧 啊 么 什 怎 样 谁 几 多 少 不 没 很 再 又 才 只 得 地 着 过 来 去 上 下 里 时 候 如 果 因 所 但 而 且
        """,
    }.items()
}
"""Words that say nothing about the subject of a text, and that hardly any longer one lacks; of Chinese, its signs."""

_LATIN = ("en", "de", "fr", "es", "pt")
_READ = 4_000
_SHARE = 0.15
"""Share of a text's words that are among its language's frequent ones; most have twice as much."""
_SCRIPT_SHARE = 0.15
"""Share of letters of another script from which a text is in that language: identifiers stay Latin."""
_KANA = lazy_regex("[\u3040-\u30ff]")
_HAN = lazy_regex("[\u3400-\u9fff]")
_CYRILLIC = lazy_regex("[\u0400-\u04ff]")
_LETTER = lazy_regex(r"[^\W\d_]")
_LANGUAGE_WORD = lazy_regex(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_TELLING = {"¿": "es", "¡": "es", "ñ": "es", "ß": "de", "ã": "pt", "õ": "pt", "œ": "fr"}
"""Signs that of these languages only one has. Each counts as a word, once."""
_CODE = lazy_regex(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)


def language_of(text: str) -> str:
    """Return "en", "de", "fr", "es", "pt", "ru", "zh" or "ja"; empty for another language, and for a text that is too short or
    mixed.
    """
    text = _CODE.sub(" ", text[:_READ])
    letters = max(1, len(_LETTER.findall(text)))
    kana = len(_KANA.findall(text))
    unspaced = kana + len(_HAN.findall(text))
    if unspaced >= _SCRIPT_SHARE * letters:
        return "ja" if kana >= _SCRIPT_SHARE * unspaced else "zh"
    if len(_CYRILLIC.findall(text)) >= _SCRIPT_SHARE * letters:
        return "ru"
    words = [word.lower() for word in _LANGUAGE_WORD.findall(text.replace("’", "'"))]
    return _latin(words, [code for sign, code in _TELLING.items() if sign in text.lower()])


_STOP_WORDS = """
a about above after again against all also am an and any are aren as at be because been before being below between both but by can
cannot could couldn d did didn do does doesn doing don down during each few for from further get got had hadn has hasn have haven
having he her here hers herself him himself his how i if in into is isn it its itself just let ll m me might more most must my
myself no nor not now of off on once only or other our ours ourselves out over own re s same shall she should shouldn so some such
t than that the their theirs them themselves then there these they this those through to too under until up us ve very was wasn we
were weren what when where which while who whom why will with won would wouldn you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that name nothing, as they are after apostrophes have been dropped."""


def _latin(words: Sequence[str], signs: Sequence[str]) -> str:
    counts = {code: sum(map(FREQUENT[code].__contains__, words)) + signs.count(code) for code in _LATIN}
    best = max(counts, key=counts.__getitem__)  # English if another language has only as many
    if best != "en" and counts[best] < max(2, _SHARE * len(words)):
        return ""
    return best if counts[best] else ""


_WORD = lazy_regex(r"[^\W_]+")
_HUMP = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST = 64
_ACCENTS = lazy_regex("[\u0300-\u036f]+")
_SPACELESS = lazy_regex("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_VOWEL = lazy_regex("[aeiouy]")
_DOUBLED = lazy_regex(r"([bdfgmnprt])\1$")
_EMPTY_WORDS = """
a about above after again all also am an and any are as at be because been before being below between both but by can could did do
does doing don down during each few for from further get got had has have having he her here him his how i if in into is isn it its
itself just let ll me more most must my no nor not now of off on once only or other our out over own re s same she should so some
such t than that the their them then there these they this those through to too under until up us ve very was wasn we were what when
where which while who why will with won would yes you your
"""
EMPTY_WORDS = frozenset(_EMPTY_WORDS.split())


def stems(text: str) -> list[str]:
    """Return the stems of a text in order, with repetitions, without stop words.

    A compound name (``retryAfter``) yields its parts and the whole as one word; scripts without blanks between words yield pairs of
    letters.
    """
    found: list[str] = []
    for word in _WORD.findall(folded(text)):
        if len(word) > _LONGEST:
            continue
        if not word.isascii() and _SPACELESS.search(word):
            for run in _SPACELESS.findall(word):
                found += map("".join, pairwise(run)) if len(run) > 1 else [run]
            word = _SPACELESS.sub("", word)
            if not word:
                continue
        parts = _HUMP.split(word) if not (word.islower() or word.isupper()) else [word]
        for each in (*parts, word) if len(parts) > 1 else parts:
            low = each.lower()
            if low not in EMPTY_WORDS:
                found.append(stem(low))
    return found


def beginnings(text: str) -> frozenset[str]:
    """Return the first letters of a text's words, by which deploy and deployment are alike."""
    return frozenset(stem[:5] for stem in stems(text) if len(stem) > 2)


def folded(text: str) -> str:
    """Return the text without accents."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """Return the stem of a word by the first and last step of Porter's algorithm: plurals, tenses, a final «y» or «e»."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("sses") or word.endswith("ies"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        bare = word.removesuffix(ending)
        if bare != word and len(bare) > 2 and _VOWEL.search(bare):
            word = bare[:-1] if _DOUBLED.search(bare) else bare
            break
    if len(word) > 3 and word.endswith("ly"):
        word = word[:-2]
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 2 and word[-1] == "y":
        word = word[:-1] + "i"
    return word


def edits(one: str, other: str, most: int) -> int:
    """Return the edit distance of two words, or ``most + 1`` if it is more than ``most``.

    Counts letters added, dropped, replaced, or swapped with their neighbour.
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    one, other = _apart(one, other)
    before: list[int] = []
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, theirs in enumerate(other, 1):
            cost = min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (letter != theirs))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == theirs:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, previous = previous, current
    return min(previous[-1], most + 1)


def _apart(one: str, other: str) -> tuple[str, str]:
    """Return both words without the letters that they begin and end with alike, which no edit of the fewest touches."""
    shorter = min(len(one), len(other))
    start = next((place for place in range(shorter) if one[place] != other[place]), shorter)
    end = next((place for place in range(shorter - start) if one[-1 - place] != other[-1 - place]), shorter - start)
    return one[start : len(one) - end], other[start : len(other) - end]
