"""Heuristics whether a string is random, written by a person, or a placeholder for a secret."""

import re

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


_PROPER = re.compile(rb"[a-z]{2,64}|[A-Z]{2,64}|[a-z]{0,64}(?:[A-Z]{1,5}+[a-z]{1,64}+){1,16}+[A-Z]{0,4}|[0-9]{1,4}")


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


WORDS = re.compile(rb"[A-Z]{1,256}(?![a-z])|[A-Z]?[a-z]{1,256}+|[0-9]{1,256}+")
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
    password passwords passwort passwd passphrase pass pwd key keys apikey api credential credentials auth authorization
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
