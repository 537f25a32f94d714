"""Heuristics whether a word in a sentence may be a password chosen by a person."""

import re
from typing import assert_never

from kite_memory.redaction.chance import capitals, digits, letters, monotonous, smalls, stands_in, turns, wordlike
from kite_memory.redaction.cleaning import LABEL, OTHER_LETTER
from kite_memory.redaction.words import PasswordLikeness

LONGEST = 64
_OTHERS = bytes((LABEL, OTHER_LETTER))
_SIGNS = b"!#$%^&*~+@"
_BRACKETS = re.compile(rb"[\s(){}\[\]<>\"'`;=\\|]|://|\*\*|##|%[0-9A-F]{2}")
_ORDINARY = re.compile(
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
_LABELLED = re.compile(
    rb"(?:sha|md|base|utf|aes|argon|pbkdf|oauth|http|ed|rsa|es|rs|hs|int|uint|string|latin|ascii|iso|type|v|py|python|bcrypt|scrypt|web"
    rb"|ipv|tls|ssl|step|version|page|line|part|section|phase|chapter|issue|test|user|password|pass|passwd|pwd|token|key|secret|field)"
    rb"[_\-]?[0-9]{1,5}[a-z\-]{0,8}|[0-9a-f]{32,128}|[0-9]{1,5}-?(?:[a-z]{1,12})(?:-[a-z]{1,12}){0,3}|v?[0-9][0-9.\-_:TZ+/,%x]{0,40}[a-z]{0,3}"
    rb"|[\w.+\-]{1,64}@[\w\-]{1,64}\.[a-z]{2,12}|[A-Za-z]{1,16}://.{0,256}|[\w.\-]{0,64}/[\w./\-@:]{0,256}|[a-z]{1,24}[!?+*]{1,4}"
    rb"|[\w\-]{0,64}\.[a-z]{1,4}[0-9]?|[a-z_]{1,24}(?:\.[a-z_]{1,24}+){1,6}[0-9]{0,2}|[@#$%&*~+!?^.\-/\\][\w.\-/]{0,64}"
    rb"|[a-z]{1,24}(?:_[a-z]{1,24}+){0,6}_?[0-9]?|[a-z]{1,20}[A-Z][A-Za-z]{1,40}[0-9]?",
    re.DOTALL,
)
"""Words that are no password even right behind a label."""
_FUNCTION_WORDS = frozenset(
    b"""
    the a an to for of is are was be or and if in on at as by with from used not must may can should will your my our its this
    that it when which has have been required optional wrong empty set stored read only no you we password passphrase
    """.split()
)
"""Words of a sentence, which a passphrase made of words does not contain."""
_CODE = re.compile(rb"[0-9]{4,10}|[0-9]{3,6}(?:[ \-][0-9]{3,6}){1,4}|[A-Za-z0-9]{3,8}(?:-[A-Za-z0-9]{3,8}+){1,7}")


def _spelled(value: bytes) -> int:
    return letters(value) + len(value) - len(value.translate(None, _OTHERS))


def _signs(value: bytes) -> int:
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
    if not digits(value) and not _signs(value.strip(_SIGNS)):
        return False
    return not _LABELLED.fullmatch(value)


def direct(value: bytes) -> bool:
    """Return whether the value fits as the very next word behind a label: as `chosen`, and long, with a number."""
    if not chosen(value) or len(value) < 8 or digits(value) < 2 or smalls(value) < 2:
        return False
    return capitals(value) >= 1 or letters(value) >= 7


def signed(value: bytes) -> bool:
    """Return whether the value fits behind an ambiguous word: as `direct`, and with a sign."""
    return _signs(value) > 0 and direct(value)


def numeric(value: bytes) -> bool:
    """Return whether the value fits behind a label and a sign: a number that may be typed in as a password."""
    return 6 <= len(value) <= 12 and value.isdigit() and not monotonous(value)


def clear(value: bytes) -> bool:
    """Return whether the value fits near a label: letters, a digit and a sign, or digits and capitals unlike any name."""
    if value.isalpha() or not 6 <= len(value) <= LONGEST or not digits(value) or _spelled(value) < 3:
        return False
    if _BRACKETS.search(value) or b"," in value or b":" in value or stands_in(value, numbered=False) or _ORDINARY.fullmatch(value):
        return False
    if _signs(value):
        return True
    mixed = b"-" in value or b"." in value or (b"_" in value and len(value) <= 24)
    return mixed and capitals(value) > 0 and smalls(value) > 0 and turns(value) >= 1


def is_value(value: bytes, likeness: PasswordLikeness) -> bool:
    match likeness:
        case PasswordLikeness.ANY:
            return not stands_in(value, numbered=False) and not value.startswith((b"$", b"{", b"%", b"<", b"-", b"/"))
        case PasswordLikeness.CODE:
            return _CODE.fullmatch(value) is not None and digits(value) >= 2
        case PasswordLikeness.CHOSEN:
            return chosen(value)
        case PasswordLikeness.CLEAR:
            return clear(value)
        case PasswordLikeness.SIGNED:
            return clear(value) and _signs(value) > 0
        case PasswordLikeness.WORDS:
            return _FUNCTION_WORDS.isdisjoint(value.lower().split())
        case PasswordLikeness.DRAWN:
            return digits(value) >= 2 and turns(value) >= 4 and not wordlike(value) and not stands_in(value)
        case _:
            assert_never(likeness)
