"""Heuristics whether a string is a secret: random, written by a person as a password, or a placeholder.

They use the words in which people write down a password: labels in many languages, sentences, commands.
"""

import re
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import NamedTuple

from kite_memory.redaction.cleaning import LABEL, OTHER_LETTER, listed, tables
from kite_memory.redaction.vendors import any_of
from kite_memory.text import lazy_regex

Span = tuple[int, int, str]
"""``[start, end)`` and the kind of secret. A plain tuple, since many are created and dropped."""


def joined(spans: list[Span]) -> list[Span]:
    """Return the spans in order. Overlapping ones are joined under the kind of the first and widest."""
    whole: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if whole and start < whole[-1][1]:
            first, last, name = whole[-1]
            whole[-1] = (first, max(last, end), name)
        else:
            whole.append((start, end, kind))
    return whole


class PasswordLikeness(StrEnum):
    """How much a value must look like a password."""

    ANY = "any"
    """No placeholder."""
    CODE = "code"
    """Digits, or groups of letters and digits."""
    GROUPS = "groups"
    """Groups of letters and digits."""
    CHOSEN = "chosen"
    """Letters with a digit or a sign among them."""
    WORDS = "words"
    """Words that do not form a sentence."""
    PHRASE = "phrase"
    """Words that do not form a message about a passphrase."""
    CLEAR = "clear"
    """Letters, a digit and a sign, in no form that an identifier has."""
    SIGNED = "signed"
    """Clear, with a sign."""
    DRAWN = "drawn"
    """Random."""
    STATED = "stated"
    """Any word but an `ordinary` one, where a sentence plainly states a password."""
    ENCODED = "encoded"
    """Anything but an ordinary word, where a sentence states an encoded password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A word for "password". ``stem`` is folded as by `bare` and in lower case.

    ``word``: only at the start of a word. ``whole``: only as a whole word. ``weak``: ambiguous, so only values that clearly look
    like a password count. ``language``: empty for English; any other is in prose, since code is written in English.
    """

    stem: bytes
    word: bool
    weak: bool
    whole: bool
    language: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Form:
    """A sentence or command with a password, which ``text`` describes.

    A text matches only if it has a word of each set of ``words``, and a line only if it has one of ``literals``, which is empty for
    a pattern that begins with a literal.
    """

    words: tuple[frozenset[bytes], ...]
    literals: tuple[str, ...]
    text: str
    likeness: PasswordLikeness

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """For text in lower case."""
        return _compiled(self.text)

    @cached_property
    def near(self) -> tuple[re.Pattern[bytes], ...]:
        """The literals grouped by their beginning, since a pattern that begins with a literal is found quickly."""
        heads = dict.fromkeys(each[:2] for each in self.literals)
        return tuple(lazy_regex(any_of(each for each in self.literals if each.startswith(head)).encode()) for head in heads)


_LETTERS = bytes(code if 97 <= code <= 122 else 32 for code in range(256))


class TextWords(NamedTuple):
    """The different words of a text that any search asks for: runs of letters, each once, in lower case.

    They are a small part of the text, so it is faster to check here first what need not be searched in the text.
    """

    each: frozenset[bytes]
    joined: bytes
    """With a blank before each."""
    parts: bool
    """Whether any has a part that a search asks for. The others are asked for as whole words alone."""


_MOST_KNOWN = 1 << 17


@dataclass(slots=True)
class _KnownWords:
    """Words met so far. Replaced as a whole when there are too many, since another thread may be reading it."""

    known: set[bytes] = field(default_factory=set)
    asked_for: set[bytes] = field(default_factory=set)
    with_parts: set[bytes] = field(default_factory=set)

    def learn(self, new: set[bytes]) -> None:
        parts = [word for word in new if _ASKED_FOR_PARTS.search(word)]
        self.with_parts.update(parts)
        self.asked_for.update(parts, new.intersection(_ASKED_FOR))
        self.known.update(new)  # last, since a known word is not looked at again


_words = _KnownWords()


def words_of(small: bytes) -> TextWords:
    """Return those words of a text in lower case that a search asks for; none if no search would begin with any of them."""
    global _words
    words = _words
    found = small.translate(_LETTERS).split()
    if not words.known.issuperset(found):
        if len(words.known) > _MOST_KNOWN:
            words = _words = _KnownWords()
        words.learn(set(found).difference(words.known))
    each = words.asked_for.intersection(found)
    if _ACCOMPANYING.issuperset(each):
        return _NO_WORDS
    return TextWords(frozenset(each), b" ".join((b"", *each)), not each.isdisjoint(words.with_parts))


def first_word(stem: bytes) -> bytes:
    return stem.translate(_LETTERS).split()[0]


_PIECES = {
    "{user}": r"[^\s,;|<>(){}]{1,64}",
    "{gap}": r"(?:[ \t]{1,3}+[^\s:=(){}<>]{1,20}+){0,6}",
    "{phrase}": r"(?P<phrase>[^\r\n\"'<>{}]{4,60}+)",
    "{quoted}": r"\\?(?:\"(?P<double>[^\"\\\r\n]{3,128}+)\\?\"|'(?P<single>[^'\\\r\n]{3,128}+)\\?')",
    "{end}": r"(?=[\"'`]?[.,;!?)]{0,2}(?:[ \t]{0,3}$| (?:for|on|until|and|but|when|if|so|then|now|again|every|from|btw|in"
    r"|at|this|since|as"
    r"|to|after|because|which|please|it|you|he|she|they|yesterday|today|tomorrow)\b| [(\-]|\\))",
    "{secret}@": r"(?P<bare>[^\s\"'`<>|;,()\\@]{3,128}+)[\"']?@",
    "{secret2}": r"(?P<bare2>[^\s\"'`<>|;,()\\]{3,128}+)",
    "{secret}": r"(?:[\"`](?P<double>[^\"`\\\r\n]{3,128}+)[\"`]|'(?P<single>[^'\\\r\n]{3,128}+)'"
    r"|(?P<bare>[^\s\"'`<>|;,()\\]{3,128}+))",
}
_OPTIONAL = lazy_regex(r"\[[^\]]{0,400}\]| \?| ")


def _compiled(text: str) -> re.Pattern[bytes]:
    def blank(found: re.Match[str]) -> str:
        return {" ": r"[ \t]{1,3}", " ?": r"[ \t]{0,3}"}.get(found[0], found[0])

    text = _OPTIONAL.sub(blank, text)
    for piece, expression in _PIECES.items():
        text = text.replace(piece, expression)
    return lazy_regex(text.encode(), re.MULTILINE)


def _labels(table: dict[str, str]) -> tuple[Label, ...]:
    """Return the labels in Latin letters; those of other scripts are replaced by `cleaning`."""
    found: dict[bytes, Label] = {}
    for language, labels in table.items():
        for label in labels.split(", "):
            stem = b" ".join(listed(label.strip("*~?"))).lower()
            if stem.isascii() and b"?" not in stem and (stem not in found or found[stem].language):
                weak, whole = label.startswith("?"), not label.endswith("*")
                found[stem] = Label(
                    stem=stem,
                    word=not label.startswith("~"),
                    weak=weak,
                    whole=whole,
                    language=language if language != "english" else "",
                )
    return tuple(found.values())


DATA = dict(tables("words.txt"))
LABELS = _labels(DATA["labels"])
FORMS = tuple(
    Form(
        words=tuple(frozenset(words.encode().split()) for words in form["words"].split("|")),
        literals=tuple(form["near"].split("|")) if "near" in form else (),
        text=form["text"],
        likeness=PasswordLikeness(form["value"]),
    )
    for name, form in tables("words.txt")
    if name in ("sentence", "command")
)
LEADING = frozenset(word.lower() for word in listed(DATA["words"]["is"]))
"""Words after which a value follows."""
JOINING = frozenset(word.lower() for word in listed(DATA["words"]["and"]))

CUES: dict[bytes, str] = {word: kind for kind, words in DATA["cues"].items() for word in listed(words)}
"""Words that say what a line is about, see `weighed`."""
_SEVERAL_WORDS = frozenset(first_word(label.stem) for label in LABELS if not label.stem.isalpha())
_ASKED_FOR = frozenset((*(word for form in FORMS for words in form.words for word in words), *_SEVERAL_WORDS, *CUES))
_ASKED_FOR_PARTS = lazy_regex(
    rb"p(?:ass|wd|w\Z|sk|at\Z|hrase)|key|token|cookie|secret|cred|auth|jwt|mnemonic|sig|curl|bearer|basic"
    rb"|securestring|parameter|alter|create|grant|user|role|login|identified|echo|printf|private|static|kty|"
    + any_of(label.stem.decode() for label in LABELS if label.stem.isalpha()).encode()
)
_ACCOMPANYING = frozenset(
    word for form in FORMS for words in form.words[1:] for word in words if not _ASKED_FOR_PARTS.search(word)
).difference(_SEVERAL_WORDS, CUES, *(form.words[0] for form in FORMS))
"""Words that a search asks for only beside others."""
_NO_WORDS = TextWords(frozenset(), b"", parts=False)


_SHAPES = (
    bytes(
        ord("U") if chr(code).isupper() else ord("l") if chr(code).islower() else ord("d") if chr(code).isdigit() else ord("-")
        for code in range(128)
    )
    + b"-" * 128
)

_NOT_DIGITS = bytes(code for code in range(256) if not 48 <= code <= 57)
_NOT_LETTERS = bytes(code for code in range(256) if not (65 <= code <= 90 or 97 <= code <= 122))
_NOT_UPPER = bytes(code for code in range(256) if not 65 <= code <= 90)
_NOT_LOWER = bytes(code for code in range(256) if not 97 <= code <= 122)


def turns(word: bytes) -> int:
    """Return how often the text changes between digits and letters, or from a lower-case letter to a capital.

    Random letters out of 62 change at nearly every second step; ``camelCase`` at about every sixth.
    """
    shape = word.translate(_SHAPES)
    return shape.count(b"lU") + shape.count(b"ld") + shape.count(b"dl") + shape.count(b"Ud") + shape.count(b"dU")


def digits(word: bytes) -> int:
    return len(word.translate(None, _NOT_DIGITS))


def letters(word: bytes) -> int:
    return len(word.translate(None, _NOT_LETTERS))


def capitals(word: bytes) -> int:
    return len(word.translate(None, _NOT_UPPER))


def smalls(word: bytes) -> int:
    return len(word.translate(None, _NOT_LOWER))


_FOLLOWERS = (
    b"a:bcdgilmnprstu b:aeilou c:aehiklortu d:aeios e:acdefglmnprstvx f:efior g:eirs h:aeio i:abcdefglmnoprstvz k:e "
    b"l:adeilostuy m:aeiop n:acdefgiost o:bcdlmnoprstuw p:aeiloprt q:u r:acdeimnorsty s:acehilopstu t:acehilorstuy "
    b"u:beilmnprst v:aei w:ai x:t y:p z:e "
)
"""For each letter those that often follow it. The 180 commonest pairs of English and of program text (counted in the source of
Python's standard library) make up five sixths of all pairs in words, and a quarter of those in random text.
"""
_COMMON_PAIRS = frozenset(bytes((group[0], follower)) for group in _FOLLOWERS.split() for follower in group[2:])


def wordlike(word: bytes) -> bool:
    """Return whether the text may be words, run together or not, with a number here and there."""
    if digits(word) * 6 > len(word) or turns(word) * 5 > len(word):
        return False
    small = word.lower()
    pairs = [small[at : at + 2] for at in range(len(small) - 1) if small[at : at + 2].isalpha()]
    return sum(pair in _COMMON_PAIRS for pair in pairs) * 5 >= len(pairs) * 3


_PROPER = lazy_regex(rb"[a-z]{2,64}|[A-Z]{2,64}|[a-z]{0,64}(?:[A-Z]{1,5}+[a-z]{1,64}+){1,16}+[A-Z]{0,4}|[0-9]{1,4}")


def worded(word: bytes) -> bool:
    """Return whether the text is almost surely words: `wordlike`, and in the usual upper and lower case."""
    return wordlike(word) and all(_PROPER.fullmatch(piece) for piece in re.split(rb"[-_./ ]", word) if piece)


def monotonous(word: bytes) -> bool:
    """Return whether it repeats few characters, as people write in place of a secret: ``xxxxxxxx``, ``00000000``, ``abababab``."""
    return len(set(word)) < min(6, len(word))


def drawn(word: bytes) -> bool:
    """Return whether the text looks random: three kinds of characters in an order that no person or naming scheme produces."""
    return (
        digits(word) >= 2
        and capitals(word) >= 2
        and smalls(word) >= 2
        and turns(word) * 3 >= len(word)
        and not monotonous(word)
        and any(digits(piece) and capitals(piece) and smalls(piece) for piece in re.split(rb"[-_]", word))
    )


WORDS = lazy_regex(rb"[A-Z]{1,256}(?![a-z])|[A-Z]?[a-z]{1,256}+|[0-9]{1,256}+")
"""The words of an identifier, in any naming style."""

_STAND_IN_WORDS = frozenset(
    b"""
    a an the your yours my mine our their some this that new old any no not un in on off it is here there me by with from for
    to of or and change changed changeme changeit replace insert put enter set add paste fill use generate generated get give
    todo fixme tbd ask foo bar baz qux quux foobar abc abcd abcdef xyz asdf qwerty x xx xxx y z example examples sample
    samples dummy fake mock mocked test tests testing tester demo placeholder stub redacted removed hidden masked filtered
    scrubbed censored stripped omitted secure super very strong real actual correct wrong bad good invalid valid expired null
    nil none nan true false yes undefined unset empty blank missing required optional default unknown all string str text
    bytes number int integer float bool boolean object array list dict map varchar char uuid type secret secrets token tokens
    password passwords passwort passwd passphrase pass pwd pw key keys apikey api credential credentials auth authorization
    authentication bearer basic oauth jwt cookie user username users usr admin root login email name value data input output
    access refresh session client server service public private development production staging prod dev local localhost env
    environment config vault keychain keyring prompt stdin auto manual random pat id app application account field fields
    param header headers anthropic openai github gitlab google aws azure slack stripe npm postgres postgresql mysql redis
    mongo mongodb rabbitmq guest docker claude base hex hash hmac md5 sha min max confirmed nullable sometimes somewhere else
    same
    """.split()
)
_LONGEST = max(map(len, _STAND_IN_WORDS))
_OPENERS = (b"<", b"[", b"{", b"$", b"%(", b"%{", b"%s", b"%v", b"!ref", b"!sub", b"!vault", b"@{", b"...", b"\\")
_BLANKS = (
    *(b"xxxx", b"***", b"....", b"####", b"____", b"redacted", b"placeholder", b"changeme", b"example", b"your-", b"your_"),
    b"process.env",
)


_NOUNS = tuple(sign + noun for sign in (b"-", b"_") for noun in (b"token", b"key", b"secret", b"password"))


def _made_of_stand_ins(word: bytes) -> bool:
    """Return whether the text consists of known words, removing the longest from the front each time."""
    while word:
        for length in range(min(_LONGEST, len(word)), 0, -1):
            if word[:length] in _STAND_IN_WORDS:
                word = word[length:]
                break
        else:
            return False
    return True


def stands_in(value: bytes, *, numbered: bool = True) -> bool:
    """Return whether ``value`` is a placeholder for a secret. With ``numbered``, ``token-123`` is one too."""
    small = value[:256].lower()
    if small.startswith(_OPENERS) or small.endswith((b"...", b"]", b">")) or any(blank in small for blank in _BLANKS):
        return True
    if small.endswith(_NOUNS) and not digits(small):
        return True
    for word in WORDS.findall(value[:256]):
        if word.isdigit():
            if not numbered or len(word) > 4:
                return False
        elif not _made_of_stand_ins(word.lower()):
            return False
    return True


LONGEST = 64
_OTHERS = bytes((LABEL, OTHER_LETTER))
_SIGNS = b"!#$%^&*~+@"
_BRACKETS = lazy_regex(rb"[\s(){}\[\]<>\"'`;=\\|]|://|\*\*|##|%(?:[2-7][0-9A-F]|[C-F][0-9A-F]%)")
_ORDINARY = lazy_regex(
    rb"[\xf0?]{0,64}+"
    rb"(?:(?:[0-9]{1,5}[\-.]?[a-z]{1,12}(?:-[a-z]{1,12}){0,3})"  # 12-character, 3rd
    rb"|v?[0-9][0-9.\-_:TZ+/,%x]{0,40}[a-zA-Z]{0,3}[0-9]{0,2}"  # versions, dates, sizes
    rb"|[a-z]{1,16}[+\-]?[0-9]{1,4}(?:[_\-./][a-z0-9]{1,16}){0,3}"  # sha256, utf-8, argon2, step2
    rb"|[A-Z]{1,10}[+\-]?[0-9]{1,5}(?:[_\-./][A-Za-z0-9]{1,16}){0,3}"  # RFC2617, AES-256, CVE-2024-1
    rb"|[A-Z][A-Za-z]{1,10}[0-9]{1,2}(?:[A-Z][a-z]{1,16}){0,4}"  # OAuth2, Base64Encoded
    rb"|(?:[A-Za-z][A-Za-z0-9]{0,24}_){1,6}+[A-Za-z0-9]{0,24}"  # identifiers
    rb"|[0-9a-f]{7,64}|[0-9A-F]{32,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    rb"|[a-z][a-zA-Z]{1,40}[0-9]{1,2}"  # camelCase2
    rb"|[\w.+\-]{1,64}@[\w\-]{1,64}(?:\.[\w\-]{1,64}+){0,6}"  # ada@orchard, pear@1.2.3
    rb"|[\w./\-]{1,64}#L?[0-9]{1,7}"  # pear#12
    rb"|[\w.\-]{0,64}\.[a-z]{1,5}[0-9]?(?::[0-9:]{1,12})?"  # file.py, file.mp4
    rb"|[\w\-]{1,64}(?:\.[\w\-]{1,64}){2,6}"  # a.b.c2
    rb"|[\w.\-]{0,64}/[\w./\-@:]{0,256}"  # paths
    rb"|[@#$%&*~+!?^.\-/\\][\w.\-/]{0,64}[!?%*]{0,3}|[A-Za-z]{1,20}[!?+*]{1,4})"
)
"""Words with a digit or a sign that are ordinary in a sentence and no password."""
_LABELLED = lazy_regex(
    rb"1Password|[Aa]rgon2[a-z]{0,2}|(?:sha|md|base|utf|aes|argon|pbkdf|oauth|http|ed|rsa|es|rs|hs|int|uint|string|latin|ascii|iso|type|v|py"
    rb"|python|bcrypt|scrypt|web"
    rb"|ipv|tls|ssl|step|version|page|line|part|section|phase|chapter|issue|test|user|password|pass|passwd|pwd|token|key"
    rb"|secret|field)"
    rb"[_\-]?[0-9]{1,5}[a-z\-]{0,8}|[0-9a-f]{32,128}|[0-9]{1,5}-?(?:[a-z]{1,12})(?:-[a-z]{1,12}){0,3}"
    rb"|v?[0-9][0-9.\-_:TZ+/,%x]{0,40}[a-z]{0,3}"
    rb"|[\w.+\-]{1,64}@[\w\-]{1,64}\.[a-z]{2,12}|[A-Za-z]{1,16}://.{0,256}|[\w.\-]{0,64}/[\w./\-@:]{0,256}"
    rb"|[a-z]{1,24}[!?+*]{1,4}"
    rb"|[\w\-]{0,64}\.[a-z]{1,4}[0-9]?|[a-z]{2,24}:[0-9]{1,3}|[a-z_]{1,24}(?:\.[a-z_]{1,24}+){1,6}[0-9]{0,2}|[@#$%&*~+!?^.\-/\\][\w.\-/]{0,64}"
    rb"|[a-z]{1,24}(?:_[a-z]{1,24}+){0,6}_?[0-9]?|[a-z]{1,20}[A-Z][A-Za-z]{1,40}[0-9]?"
    rb"|[a-z_]{1,24}\.[a-z_.]{1,64}\.[A-Z][A-Za-z0-9]{1,40}|[\w.\-]{1,64}/[\w./\-]{1,64}/[\w.\-]{1,64}#[\w.\-]{1,40}",
    re.DOTALL,
)
"""Words that are no password even right behind a label."""


def _spelled(value: bytes) -> int:
    return letters(value) + len(value) - len(value.translate(None, _OTHERS))


def signs(value: bytes) -> int:
    return len(value) - len(value.translate(None, _SIGNS))


def chosen(value: bytes) -> bool:
    """Return whether the value fits right behind a label: letters with a digit or sign among them, in no known form."""
    if (
        value.isalpha()
        or not 5 <= len(value) <= LONGEST
        or _spelled(value) < 2
        or _BRACKETS.search(value)
        or stands_in(value, numbered=False)
    ):
        return False
    if not digits(value) and not signs(value.strip(_SIGNS)):
        return False
    return not _LABELLED.fullmatch(value)


def direct(value: bytes) -> bool:
    """Return whether the value fits as the very next word behind a label: as `chosen`, and long, with a number."""
    if not chosen(value) or len(value) < 8 or digits(value) < 2 or smalls(value) < 2:
        return False
    return capitals(value) >= 1 or letters(value) >= 7


def signed(value: bytes) -> bool:
    """Return whether the value fits behind an ambiguous word: as `direct`, and with a sign."""
    return signs(value) > 0 and direct(value)


def numeric(value: bytes) -> bool:
    """Return whether the value fits behind a label and a sign: a number that may be typed in as a password."""
    return 6 <= len(value) <= 26 and value.isdigit() and not monotonous(value)


def clear(value: bytes) -> bool:
    """Return whether the value fits near a label: letters, a digit and a sign, or digits and capitals unlike any name."""
    if value.isalpha() or not 6 <= len(value) <= LONGEST or not digits(value) or _spelled(value) < 3:
        return False
    if _BRACKETS.search(value) or b"," in value or b":" in value or stands_in(value, numbered=False) or _ORDINARY.fullmatch(value):
        return False
    if signs(value):
        return True
    mixed = b"-" in value or b"." in value or (b"_" in value and len(value) <= 24)
    return (
        mixed
        and capitals(value) > 0
        and smalls(value) > 0
        and turns(value) >= 1
        and (b"." not in value or digits(_NUMBERED.sub(b"", value)) > 0)
    )


class Oddness(IntEnum):
    """How unlike a word of a sentence, and unlike a name in code, a value is."""

    NONE = 0
    """A word, a number, a path, a version, a name made of the words that such names are made of."""
    COMPOUND = 1
    """Several words in one, without or with one digit: ``mossLantern``, ``moss-in-lantern``, ``moss2``."""
    MIXED = 2
    """Letters with digits among them, or words with a number, as no name has them: ``m0ssLantern``, ``Moss-Lantern-9``."""
    CLEAR = 3
    """As `clear`."""


_PIECES_OF_NAME = lazy_regex(rb"[A-Z]{1,64}(?![a-z])|[A-Z]?[a-z]{1,64}")
_CODE_WORDS = (
    _STAND_IN_WORDS
    - frozenset(
        b"""
        a an the your yours my mine our their some this that no not un in on off it is here there me by with from for to of or
        and change put enter add use give ask abc xyz qwerty test tests sample super very strong real wrong bad good same claude
        """.split()
    )
) | frozenset(
    b"""
    self os ctx req res request response settings options props state process module file path url uri http https class method
    function return await async index item node object instance handler manager factory provider model view controller component
    util utils helper builder parser error exception event callback result hashed raw encrypted decrypted encoded decoded plain
    policy form body query args kwargs
    """.split()
)
"""Words of which names in code are made."""
_VERBS = frozenset(b"get set is has make create build parse read write load save to from on use do can should with".split())
_NUMBERED = lazy_regex(
    rb"(?:^|(?<=[\W_]))(?:[a-z]{1,6}[0-9]{1,3}|[A-Z]{1,6}[0-9]{1,3}|[A-Z][a-z]{1,5}[0-9]{1,2})(?=[\W_]|$)"
    rb"|(?-i:[vV][0-9]{1,2}(?![a-z0-9]))"
    rb"|(?:sha|md|base|utf|aes|argon|pbkdf|oauth|http|ed|rsa|x|pkcs|ipv|tls|web|win|arm|amd|log|neo|fido|curve|secp|int"
    rb"|float|latin)"
    rb"-?[0-9]{1,5}",
    re.IGNORECASE,
)
"""A short word with a number is the name of a thing: ``db01``, ``sha256``, ``v2``."""
_LEET = lazy_regex(rb"[A-Za-z]{2}[013457][a-z]{2}|[A-Za-z][@$][a-z]{2}|[a-z][0-9][a-z]{1,12}[0-9][a-z]")
_NO_VALUE = lazy_regex(
    rb"[Aa]rgon2[a-z]{0,2}|[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w.+\-]{1,64}@[\w\-]{1,64}(?:\.[\w\-]{1,64}+){1,6}"
    rb"|[\w.\-]{0,64}/[\w./\-@:]{0,256}|[\w\-]{1,64}(?:\.[\w\-]{1,64}){0,6}\.[a-z]{2,4}[0-9]?(?::[0-9]{1,8})?"
    rb"|v?[0-9][0-9.\-_:TZ+/,%x]{0,40}[a-zA-Z]{0,3}[0-9]{0,2}|[0-9]{1,5}-?[a-z]{1,16}(?:-[a-z]{1,12}){0,3}"
    rb"|[@#$%&*~+!?^.\-/\\].{0,64}"
    rb"|[a-z]{1,24}(?:\.[a-z]{1,24}){1,6}|[A-Z0-9_.\-]{1,64}",
    re.DOTALL,
)
_ADJECTIVE = lazy_regex(
    rb"(?:\A(?:over|up|out|off|down|in)|ed|ing|able|ible|ive|only|less|free|safe|ful|al|ary|ory|ly|ent|ant|ous|like|wide|specific|aware|proof|side"
    rb"|level|time)\Z"
)
_TRAILING_NUMBER = lazy_regex(rb"[A-Za-z]{3,40}[0-9]{2,6}[!?]?")
_SIGN_WITHIN = lazy_regex(rb"[A-Za-z]{2}[!#$%^~&+@][A-Za-z]{2}")
_NAME_AND_NUMBER = lazy_regex(rb"[A-Z][a-z]{2,20}[_\-.+][0-9]{3,6}")


def oddness(value: bytes) -> Oddness:
    """Return how unlike a word or a name the value is."""
    if not 5 <= len(value) <= LONGEST or value.isdigit() or b"\xf1" in value:
        return Oddness.NONE
    if value.isalpha() and value[1:].islower():  # one word
        return Oddness.COMPOUND if len(value) >= 18 and value.islower() else Oddness.NONE
    if clear(value):
        return Oddness.CLEAR
    if _BRACKETS.search(value) or b"," in value or b":" in value or stands_in(value, numbered=False) or _NO_VALUE.fullmatch(value):
        return Oddness.NONE
    rest = _NUMBERED.sub(b"", value)
    pieces = [piece.lower() for piece in _PIECES_OF_NAME.findall(value)]
    named = not _CODE_WORDS.isdisjoint(pieces)
    if digits(rest) and letters(rest) >= 3 and not (b"_" in value and value.islower()):
        unrest = turns(rest)
        if unrest * 3 >= len(rest) >= 6 or _LEET.search(rest):
            return Oddness.MIXED
        if _TRAILING_NUMBER.fullmatch(rest) and (digits(rest) >= 4 or letters(rest) >= 6) and not named:
            return Oddness.MIXED
        if (capitals(rest) and smalls(rest) and len(pieces) >= 2 and len(value) >= 7 and not named) or _NAME_AND_NUMBER.fullmatch(
            value
        ):
            return Oddness.MIXED
    if named or letters(value) < 5 or (pieces[0] in _VERBS and value[-1:].isalnum()):
        return Oddness.NONE
    if len(pieces) < 2:
        alone = value[-1:] in b"!#$%&*" and value[:1].isupper() and letters(value) >= 6
        return Oddness.COMPOUND if alone or (digits(rest) and value[:1].isalpha()) else Oddness.NONE
    if min(map(len, pieces)) < 2 and len(pieces) < 3:
        return Oddness.NONE
    if b"-" in value and value.islower() and _ADJECTIVE.search(pieces[-1]):
        return Oddness.NONE
    return Oddness.COMPOUND if letters(value) >= 8 or (letters(value) >= 6 and _SIGN_WITHIN.search(value)) else Oddness.NONE


_ORDINARY_WORDS = frozenset(word.lower() for words in DATA["ordinary"].values() for word in listed(words))
_PIECES_OF_WORD = lazy_regex(rb"[A-Z]?[a-z\xf0]{1,64}|[A-Z]{1,64}|[0-9]{1,64}")
_DESCRIBING = lazy_regex(
    rb"[a-z]{2,40}(?:(?<!e)ed|ing|able|ible|less|ful|ous|[st]ive|ally|ably|ibly|ously|ently|ately|edly|tly|ional|tial"
    rb"|ical|ation)"
)
_DESCRIBING_IN = {language: lazy_regex(built.encode()) for language, built in DATA["describing"].items()}
_NO_WORD = lazy_regex(
    rb"[^A-Za-z\xf0]{0,256}|.{0,64}(?:[/\\@]|://|\.[a-z]{2,4}\Z|::).{0,256}|[a-z0-9]{0,40}_[a-z0-9_]{1,60}|[A-Z0-9_]{1,64}",
    re.DOTALL,
)


def ordinary(word: bytes, language: str = "") -> bool:
    """Return whether a word in the place of a password is not one: it describes, as in "the password is wrong", or names a thing.

    ``language``: of the sentence, where it is not English.
    """
    if len(word) < 4 or stands_in(word) or _NO_WORD.fullmatch(word):
        return True
    small = word.lower()
    built = _DESCRIBING_IN.get(language, _DESCRIBING)
    if small in _ORDINARY_WORDS or built.fullmatch(small):
        return True
    pieces = [piece.lower() for piece in _PIECES_OF_WORD.findall(word)]
    if len(pieces) < 2:
        return False
    last = pieces[-1]
    return (b"-" in word and _DESCRIBING.fullmatch(last) is not None) or all(
        piece in _ORDINARY_WORDS or piece in _CODE_WORDS or piece.isdigit() for piece in pieces
    )
