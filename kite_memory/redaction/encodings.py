"""Text that was written in base 64 or in hexadecimal digits."""

import base64
import binascii
import re

PAIR = re.compile(rb"[^\s:]{1,128}:[^\s]{4,512}")
"""A name and a password, as ``.npmrc`` and Docker's settings have them in base 64."""
_PRINTABLE = bytes(code for code in range(256) if 32 <= code < 127 or code in b"\r\n\t")
_FIRST = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
_SECOND = b"ABCDEFGHQRSTUVWXghijklmnwxyz0123"
_THIRD = b"ABEFIJMNQRUVYZcdghklopstwx014589"
"""What base 64 of ASCII text can have at the first, second and third place of each four: an eighth of all that is base 64."""
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_TENS = b"234567"
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_HEX = b"0123456789abcdefABCDEF"


def decoded(text: bytes) -> bytes:
    """What base 64 ``text`` says in ASCII (UTF-16 included, as PowerShell has it); nothing where it says something else."""
    head = text[:64]
    if head[0::4].translate(None, _FIRST) or head[2::4].translate(None, _THIRD) or head[1::4].translate(None, _SECOND):
        return b""
    body = text.translate(_URL_SAFE)
    if len(body) % 4 == 1:
        body = body[:-1]
    plain = binascii.a2b_base64(body + b"=" * (-len(body) % 4))
    if b"\0" in plain and not plain[1::2].strip(b"\0"):
        plain = plain[0::2]
    return b"" if plain.translate(None, _PRINTABLE) else plain


def hexadecimal(text: bytes) -> bytes:
    """What ``text`` says if it is the hexadecimal digits of ASCII text."""
    if len(text) % 2 or text[0:32:2].translate(None, _TENS) or text.translate(None, _HEX):
        return b""
    plain = binascii.a2b_hex(text)
    return b"" if plain.translate(None, _PRINTABLE) else plain


def base32(text: bytes) -> bytes:
    """What base 32 ``text``, without its padding, says in ASCII."""
    if len(text) % 8 in (1, 3, 6) or text.translate(None, _BASE32):
        return b""
    plain = base64.b32decode(text + b"=" * (-len(text) % 8))
    return b"" if plain.translate(None, _PRINTABLE) else plain
