"""What a secret looks like by itself: tokens and private keys, recognized wherever they are, and the forms of other words."""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from pathlib import Path

from kite_memory.redaction.chance import (
    Oddness,
    Span,
    TextWords,
    capitals,
    chosen,
    digits,
    drawn,
    letters,
    monotonous,
    oddness,
    ordinary,
    smalls,
    stands_in,
    turns,
    worded,
)
from kite_memory.redaction.vendors import AnchorPatterns, Suspect
from kite_memory.redaction.views import PAIR, base32, decoded, hexadecimal
from kite_memory.text import lazy_regex

_HEADER = lazy_regex(rb"-----BEGIN (?:[A-Za-z0-9]{1,12} ){0,4}(?:PRIVATE KEY(?: BLOCK)?|Static key V1)-----")
_FOOTER = lazy_regex(rb"-----END (?:[A-Za-z0-9]{1,12} ){0,4}(?:PRIVATE KEY(?: BLOCK)?|Static key V1)-----")
_BREAK = lazy_regex(rb"\\{1,4}r\\{1,4}n|\\{1,4}n|\r?\n")
_KEY_LINE = lazy_regex(
    rb"[\s\"'`,?|>#*+:.\-]{0,40}+(?:[0-9]{1,6}[?|:\t\-][\s?]{0,20}+)?"
    rb"((?:[A-Za-z0-9+/]{1,4096}+ ?){1,64}+={0,2})[\s\"'`,?|+;)\]\\]{0,12}"
)
"""A line of base 64, with a line number, a quote sign, a frame or a string's quotes around it."""
_KEY_TAIL = lazy_regex(rb"[A-Za-z0-9+/]{32,4096}+={0,2}\Z")
_ATTRIBUTE = lazy_regex(
    rb"[\s\"'?|>#*+\-]{0,40}(?:[0-9]{1,6}[?|:\t][\s?]{0,20})?(?:[A-Za-z\-]{3,24}: .{0,200})?[\s\"'?|]{0,12}", re.DOTALL
)
_PUTTY_SECRET = lazy_regex(
    rb"Private-Lines: [0-9]{1,4}\s{1,8}((?:[A-Za-z0-9+/=]{1,128}+\s{1,8}){1,200}+)(?:Private-MAC: [0-9a-f]{1,128}+)?"
)
_WEB_KEY = lazy_regex(rb"\\{0,3}\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"\s{0,8}:\s{0,8}\\{0,3}\"([A-Za-z0-9_\-]{20,2048}+)")
_LONGEST = 65536
_MOST_LINES = 2000


def find_blocks(raw: bytes, words: TextWords, spans: list[Span]) -> None:
    if not words.parts:
        return
    if (b"private" in words.each and b"PRIVATE KEY" in raw) or (b"static" in words.each and b"Static key V1-" in raw):
        _find_keys(raw, spans)
    if b"private" in words.each and b"Private-Lines: " in raw:
        spans.extend((found.start(1), found.end(), "private-key") for found in _PUTTY_SECRET.finditer(raw))
    if b"kty" in words.each:
        spans.extend((found.start(1), found.end(1), "private-key") for found in _WEB_KEY.finditer(raw))


def _find_keys(raw: bytes, spans: list[Span]) -> None:
    headers = [(header.start(), header.end()) for header in _HEADER.finditer(raw)]
    footers = [(footer.start(), footer.end()) for footer in _FOOTER.finditer(raw)]
    bounds = [*(start for start, _ in headers[1:]), len(raw)]
    floor = next_footer = 0
    for (start, end), bound in zip(headers, bounds, strict=False):
        while next_footer < len(footers) and footers[next_footer][0] < end:
            _add_headless(raw, footers[next_footer], floor, spans)
            floor = footers[next_footer][1]
            next_footer += 1
        if next_footer < len(footers) and footers[next_footer][0] <= min(bound, end + _LONGEST):
            if _is_key(raw[end : footers[next_footer][0]]):
                spans.append((start, footers[next_footer][1], "private-key"))
            floor = footers[next_footer][1]
            next_footer += 1
        else:
            last = _end_of_key(raw, end, min(bound, end + _LONGEST))
            if last > end:
                spans.append((start, last, "private-key"))
            floor = max(last, end)
    for footer in footers[next_footer:]:
        _add_headless(raw, footer, floor, spans)
        floor = footer[1]


def _is_key(body: bytes) -> bool:
    """Return whether the text is a key, not ``…`` or the rest of an expression that searches for keys."""
    return sum(map(len, re.findall(rb"[A-Za-z0-9+/=]{8,}", body))) * 2 >= max(40, len(body)) and turns(body) >= 6


def _lines(raw: bytes, start: int, bound: int) -> list[tuple[int, int]]:
    r"""Return the bounds of the lines, whose breaks may be written as ``\n`` within a string."""
    lines = []
    for found in islice(_BREAK.finditer(raw, start, bound), _MOST_LINES):
        lines.append((start, found.start()))
        start = found.end()
    return [*lines, (start, bound)]


def _end_of_key(raw: bytes, start: int, bound: int) -> int:
    """Return where the base 64 behind a header ends, if there is no footer."""
    last = start
    lines = _lines(raw, start, bound)
    for at, stop in lines:
        line = raw[at:stop]
        key = _KEY_LINE.fullmatch(line) or (_KEY_LINE.match(line) if (at, stop) == lines[-1] else None)
        if key is not None and (len(key[1]) >= 16 or (last > start and turns(key[1]) >= 1)):
            last = at + key.end(1)
        elif last > start or not _ATTRIBUTE.fullmatch(line):
            break
    return last


def _add_headless(raw: bytes, footer: tuple[int, int], floor: int, spans: list[Span]) -> None:
    """Find the end of a key whose beginning was cut off."""
    first = footer[0]
    longest = 0
    for at, stop in reversed(_lines(raw, max(floor, footer[0] - _LONGEST), footer[0])):
        line = raw[at:stop]
        key = _KEY_LINE.fullmatch(line)
        if key is not None and (len(key[1]) >= 16 or not longest):
            first, longest = at + key.start(1), max(longest, len(key[1]))
        elif longest or not _ATTRIBUTE.fullmatch(line):
            tail = _KEY_TAIL.search(line, max(0, len(line) - 4096))
            if tail is not None:  # the first line, which may follow other text
                first, longest = at + tail.start(), 32
            break
    if longest >= 16:
        spans.append((first, footer[1], "private-key"))


UNKNOWN = "unknown-token"
"""The kind of a token that only looks random."""
OWN_KINDS = frozenset((UNKNOWN, "aws-secret-key", "authorization"))

SHORTEST = 16
"""Nearly every known token has a run of this many letters, digits, ``_``, ``-`` and ``+``."""
_IN_RUNS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+"
_RUNS = bytes(ord("x") if code in _IN_RUNS else ord(" ") for code in range(256))
"""For `bytes.translate`: a run can then be searched as ``xxxxxxxxxxxxxxxx``, many times faster than with a regular expression."""
_CHUNKS = bytes(ord("x") if code in _IN_RUNS + b"/=.~:!$%|" else ord(" ") for code in range(256))
_BASE64 = bytes(ord("x") if code in _IN_RUNS + b"/" else ord(" ") for code in range(256))
_WORDS = b"abcdefghijklmnopqrstuvwxyz_-+"
_BEFORE = 64
_AFTER = 512
_LEAD = 224

_JOINTS = frozenset(b".:/$!~*|")
"""What may be between an anchor and the run that follows it."""
_TENS = frozenset(b"234567")
"""First hexadecimal digits of ASCII text."""
_SPARSE = lazy_regex(rb"Q~|AIoT|\+A(?:S[bt]|Eh|Ba|MC|CR)")
"""Anchors of tokens that may lack a run of `SHORTEST`, since they have signs among their letters."""
_COLOUR = lazy_regex(rb"m[0-9;]{1,12}\[")


def find_tokens(raw: bytes, spans: list[Span], look_inside: Callable[[bytes], str], every: AnchorPatterns) -> None:
    """Find tokens. ``look_inside`` returns the kind of secret in a decoded text, or an empty string."""
    shapes = raw.translate(_RUNS)
    needle = b"x" * SHORTEST
    done = scanned = tried = end = 0
    if (first := every.anywhere.match(raw)) and (found := _token(raw, 0, every.suspects[first[0]], 0)):
        spans.append(found)  # an edge needs a character before it, which the first one lacks
        done = found[1]
    if (b"~" in raw and b"Q~" in raw) or (b"+" in raw and b"+A" in raw) or b"AIoT" in raw:
        for sparse in _SPARSE.finditer(raw):
            if sparse.start() >= done and (found := _token(raw, sparse.start(), every.suspects.get(sparse[0], ()), done)):
                spans.append(found)
                done = found[1]
        done = 0
    while (start := shapes.find(needle, end)) >= 0:
        end = shapes.find(b" ", start + SHORTEST)
        if end < 0:
            end = len(raw)
        run = raw[start:end]
        if end <= done or not (telling := run.translate(None, _WORDS)):
            continue  # lower-case letters only: a name
        unrest = len(telling) if telling.isalpha() and len(telling) * 5 < len(run) else turns(run)
        if unrest * 5 < len(run) and (unrest * 8 < len(run) or telling.isalpha()):
            low = max(scanned, done, start - 24 if start and raw[start - 1] in _JOINTS else start)
            if every.edged.search(raw, max(0, low - 1), end):
                done = _scan(raw, every.edged, low, end, done, spans, every)
            scanned = max(scanned, end)
        else:
            low, high = _chunk(raw, start, end)
            done = _scan(raw, every.anywhere, max(scanned, done, low), high, done, spans, every)
            scanned = max(scanned, high)
        if end - start >= 20 and done < end and end > tried and (unrest * 8 >= end - start or run[0] in _TENS):
            hidden, readable, tried = _encoded(raw, start, end, look_inside)
            if hidden is None and not readable and unrest * 3 >= end - start:
                hidden = _drawn(raw, start, end)
            if hidden:
                spans.append(hidden)
                done = hidden[1]


def _chunk(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the text without gaps around a run, as far as a token may reach."""
    before = raw[max(0, start - _BEFORE) : start].translate(_CHUNKS)
    return start - (len(before) - 1 - before.rfind(b" ")), end + _gap(raw[end : end + _AFTER].translate(_CHUNKS))


def _gap(shapes: bytes) -> int:
    gap = shapes.find(b" ")
    return gap if gap >= 0 else len(shapes)


def _scan(raw: bytes, anchor: re.Pattern[bytes], start: int, end: int, done: int, spans: list[Span], every: AnchorPatterns) -> int:
    """Add the tokens whose anchor is in ``[start, end)``; return where the last of all tokens ends."""
    at = max(0, start - anchor.groups)  # an edge includes the character before it
    while hit := anchor.search(raw, at, end):
        group = hit.lastindex or 0
        at = hit.start(group)
        if at >= done and (found := _token(raw, at, every.suspects[hit[group]], done)):
            spans.append(found)
            done = at = found[1]
        elif not group:
            at += 1
    return done


_HASH_LABEL = lazy_regex(rb"sha(?:1|224|256|384|512)[=\-:][A-Za-z0-9+/_\-]{0,64}\Z")


def _token(raw: bytes, at: int, suspects: tuple[Suspect, ...], done: int) -> Span | None:
    edge: bool | None = None
    for suspect in suspects:
        if not suspect.glued:
            if edge is None:
                edge = _edge(raw, at)
            if not edge:
                continue
        body = suspect.body.match(raw, at + suspect.length)
        if body is None:
            continue
        begin = at
        if suspect.lead is not None:
            lead = suspect.lead.match(raw[max(done, at - _LEAD) : at][::-1])
            if lead is None:
                continue
            begin = at - lead.end()
        end = at + len(raw[at : body.end()].rstrip(b"."))
        if raw[end - 1] in _IN_RUNS:  # longer than the known form: leave no tail
            end += _gap(raw[end : end + _AFTER].translate(_RUNS))
        chance = raw[begin if suspect.lead else at + suspect.length : end]
        if monotonous(chance) or (not suspect.spelled and worded(chance) and _may_be_words(chance)):
            continue
        if _HASH_LABEL.search(raw[max(0, at - 80) : at]):
            continue
        return (begin, end, suspect.kind)
    return None


def _may_be_words(part: bytes) -> bool:
    """Return whether the text may be words: ``your-key-goes-here``. Words run together in one case are seldom so long."""
    return len(part) < 20 or b"-" in part or b"_" in part or not (part.islower() or part.isupper())


def _edge(raw: bytes, at: int) -> bool:
    before = raw[max(0, at - 16) : at]
    return (
        not before[-1:].isalnum()
        or before[-2:] in (b"\\n", b"\\t", b"\\r", b"\\b", b"\\f")
        or _COLOUR.match(before[::-1]) is not None
    )


IDS = lazy_regex(
    rb"(?:toolu|srvtoolu|msg|req|call|chatcmpl|cmpl|resp|rs|fc|ws|run|asst|thread|file|batch|step|vs|ft|gen|evt|cus|pi|ch|price|prod|sub"
    rb"|in|seti|acct|pm|src|card|cs|si|txn|po|tr|container|session|agent|task|dpl|prj|team|org|user|usr|wf|job|trace|span|obj|id|bundle"
    rb"|turn|item|PR|I|R|U|C|DC|IC|PRR|PRRC|PRRT|BPR|WFR|CR|D|GR|T)[_:\-]"
)
"""Identifiers that are random but not secret."""
_PUBLIC = lazy_regex(
    rb"AAAA[BCE][23]Nz|AAAAE2Vj|AAAAGnNr|MII[A-Za-z0-9]|MCowBQYD|MFkwEwYH|MHYwEAYH|iVBORw0KGgo|R0lGOD|UklGR|_ZN|_R[NMIC]|pk_|MDQ6|MDEy|Qm[1-9A-Za-z]{44}|bafy"
    rb"|sha[0-9]{1,3}-|h1-"
)
"""Public keys, certificates, pictures, mangled names, hashes."""
_ABOUT_HASHES = lazy_regex(
    rb"(?:sha-?[0-9]{1,3}|md5|hash|h1|integrity|checksum|digest|fingerprint|etag|cid|commit|revision|rev|nonce|base64|cursor|uuid|[^a-z]id"
    rb"|public[ _-]?key|(?:digest|cipher|signature|certificate)value>)[\"'`]?[ \t]{0,4}[:=\-~,(]{0,3}[ \t]{0,4}[\"'`]?\Z"
)
_BASE64_SIGNS = frozenset(_IN_RUNS + b"/=")
_AWS_LENGTH = 40
_AWS_SECRET = lazy_regex(rb"[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_\-])")
_BETWEEN_LINES = rb"={0,2}[^A-Za-z0-9+/=\n]{0,24}(?:\\n|\n)[^A-Za-z0-9+/=\n]{0,24}(?:[0-9]{1,6}[?|:\t][^A-Za-z0-9+/=\n]{0,24})?"
_LINE_BEFORE = lazy_regex(rb"[A-Za-z0-9+/]{40}" + _BETWEEN_LINES + rb"\Z")
_LINE_AFTER = lazy_regex(_BETWEEN_LINES + rb"[A-Za-z0-9+/]{40}")
_IN_ADDRESS = lazy_regex(rb"://[^\s\"'`<>]{0,300}\Z")
_EXTENSION = lazy_regex(rb"\.[a-z][a-z0-9]{0,4}(?![A-Za-z0-9])")


def _drawn(raw: bytes, start: int, end: int) -> Span | None:
    """Return the span of a token of unknown origin: long, random, and nothing that is normally random; else ``None``."""
    low, high = _chunk(raw, start, end)
    found: Span | None = None
    for at in (low, start) if high - low >= _AWS_LENGTH else ():
        secret = _AWS_SECRET.match(raw, at)
        if secret and not (at and raw[at - 1] in _BASE64_SIGNS) and drawn(secret[0]) and digits(secret[0]) >= 3:
            found = (at, secret.end(), "aws-secret-key")
    run = raw[start:end]
    if (
        found is None
        and 20 <= len(run) <= 100
        and high - low <= 200
        and not IDS.match(run)
        and drawn(run)
        and not _EXTENSION.match(raw, end)
        and raw[max(0, start - 1) : start] not in (b"/", b"\\", b"@")
        and raw[end : end + 1] not in (b"/", b"\\")
    ):
        found = (start, end, UNKNOWN)
    if (
        found is None
        or _IN_ADDRESS.search(raw[max(0, start - 320) : start])
        or _PUBLIC.match(raw, start)
        or _ABOUT_HASHES.search(raw[max(0, low - 32) : start].lower())
        or _ABOUT_HASHES.search(raw[max(0, low - 32) : low].lower())
        or _LINE_BEFORE.search(raw[max(0, low - 128) : low])
        or _LINE_AFTER.match(raw, high)  # one line of many: a picture, a certificate, a font
    ):
        return None
    return found


def _encoded(raw: bytes, start: int, end: int, look_inside: Callable[[bytes], str]) -> tuple[Span | None, bool, int]:
    """Find a secret in base 64 or hexadecimal, taken whole, since a remainder could be decoded.

    Also return whether the text decodes to anything, and how far was searched.
    """
    run = raw[start:end]
    if plain := hexadecimal(run):
        kind = look_inside(plain)
        return ((start, end, kind) if kind else None), True, end
    if not (capitals(run) and smalls(run)):
        kind = look_inside(plain) if (plain := base32(run)) else ""
        return ((start, end, kind) if kind else None), bool(plain), end
    low, high = start, end
    if raw[max(0, start - 1) : start] == b"/":
        before = raw[max(0, start - 256) : start].translate(_BASE64)
        low = start - (len(before) - 1 - before.rfind(b" "))
    if raw[end : end + 1] in (b"/", b"="):
        high = end + _gap(raw[end : end + 65536].translate(_BASE64))
    readable = False
    for shift in range(4):
        if not (plain := decoded(raw[low + shift : high])):
            continue
        readable = True
        kind = look_inside(plain)
        if not kind and PAIR.fullmatch(plain) and b"auth" in raw[max(0, low + shift - 16) : low + shift].lower():
            kind = "authorization"
        if kind:
            padding = raw[high : high + 2]
            return (low + shift, high + len(padding) - len(padding.lstrip(b"=")), kind), True, high
    return None, readable, high


_OF_WALLETS = frozenset(b"seed mnemonic wallet recovery".split())
_SEED_PHRASE = lazy_regex(rb"(?<![A-Za-z\-])[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}(?![a-z])){11,39}+")
_IN_NO_WALLET = frozenset(
    b"the and for that this with from are was not have has can will but its into when then than they them been our your you".split()
)
"""Words that a wallet's phrase has none of, and nearly every sentence has."""
_FEWEST_WORDS = 12
_REACH_OF_WALLETS = 480
_LETTERS = lazy_regex(rb"[a-z]{1,16}")


def find_seed_phrases(raw: bytes, small: bytes, words: TextWords, spans: list[Span]) -> None:
    """Find runs of words behind a word for a wallet's phrase."""
    for name in words.each & _OF_WALLETS:
        at = small.find(name)
        while at >= 0:
            if run := _SEED_PHRASE.search(raw, at + len(name), at + _REACH_OF_WALLETS):
                start, end, count = run.start(), run.start(), 0
                for word in _LETTERS.finditer(raw, *run.span()):
                    if word[0] not in _IN_NO_WALLET:
                        end, count = word.end(), count + 1
                    elif count >= _FEWEST_WORDS:
                        break
                    else:
                        start, count = word.end() + 1, 0
                if count >= _FEWEST_WORDS:
                    spans.append((start, end, "seed-phrase"))
            at = small.find(name, at + _REACH_OF_WALLETS)


_TECHNOLOGIES = frozenset(
    word
    for line in Path(__file__).with_name("technologies.txt").read_bytes().splitlines()
    if not line.startswith(b"#")
    for word in line.split()
)
_VERSIONED = lazy_regex(rb"[A-Za-z][A-Za-z0-9.+/@_\-]{0,40}")
_NOT_OF_NAMES = lazy_regex(rb"[^a-z0-9]{1,3}")
_NUMBER = lazy_regex(rb"[0-9]{1,3}[a-z]?")
_VERSION = lazy_regex(rb"v?[0-9]{1,2}\Z")
_ACRONYM = lazy_regex(rb"[A-Z]{2,5}-?[0-9]{1,5}")


def is_technology(word: bytes) -> bool:
    """Return whether the word is the name of a language, program, service or format, with a version of up to two digits or none."""
    if not _VERSIONED.fullmatch(word):
        return False
    small = word.lower()
    if _NOT_OF_NAMES.sub(b"", _VERSION.sub(b"", small)) in _TECHNOLOGIES or _ACRONYM.fullmatch(word):
        return True
    parts = [part for part in _NOT_OF_NAMES.split(small) if part]
    named = [_VERSION.sub(b"", part) in _TECHNOLOGIES for part in parts]
    return any(named) and all(is_one or _NUMBER.fullmatch(part) for is_one, part in zip(named, parts, strict=True))


COMMON = frozenset(
    word
    for line in Path(__file__).with_name("common.txt").read_bytes().splitlines()
    if not line.startswith(b"#")
    for word in line.split()
)
"""Words of programs and their documentation, which people seldom choose as a password alone."""
_HEX = lazy_regex(rb"[0-9a-f]{16,128}|[0-9A-F]{16,128}")
_GROUPS = lazy_regex(rb"[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}+){2,8}+|[a-z0-9]{4,8}(?:-[a-z0-9]{4,8}+){1,8}+")
_JOINED = lazy_regex(rb"[A-Za-z]{2,24}(?:[.\-_+&!^/][A-Za-z0-9]{1,24}+){1,7}+[!?$#%&*^]{0,3}")
_HOST = lazy_regex(rb"(?:[a-z0-9\-]{1,40}\.){1,4}(?:com|net|org|io|dev|app|cloud|edu|gov|info)")
_NAME_OF_FILE = lazy_regex(rb".{0,80}\.(?:[a-z]{1,4}[0-9]?|local|internal|example|localhost)(?::[0-9]{1,5})?", re.DOTALL)
_SNAKE = lazy_regex(rb"[a-z0-9]{1,24}(?:_[a-z0-9]{1,24}+){1,6}+")
_NO_SECRET = lazy_regex(rb"[\-/\\$@~%+=<>{}\[\]&|.^].{0,80}|.{0,80}(?:://|::|\(|\)|->|=>|\[|\{|\"|<|>|=).{0,80}", re.DOTALL)
_ADDRESS = lazy_regex(rb"[\w.+\-]{1,64}@[\w\-]{1,40}(?:\.[\w\-]{1,40}){1,5}")
_LOGIN = lazy_regex(rb"[a-z][a-z0-9._\-]{2,31}@[a-z]{2,20}(?:-?[0-9]{1,3})?")
_SERIAL = lazy_regex(
    rb"v?[0-9]{1,4}(?:[.\-:/_][0-9A-Za-z]{1,6}){1,5}|[0-9]{1,6}[A-Za-z%]{1,8}|[A-Z]{1,8}-?[0-9]{1,6}|[a-z]{1,4}[0-9]{1,3}"
)
_OF_CODE = lazy_regex(
    rb"_.{0,64}|[Aa]rgon2[a-z]{0,2}|[0-9a-f]{6,40}[\^~]?[0-9]?\.{2,3}.{0,64}|[A-Z][0-9][A-Z][a-z]{3,40}|[a-z_]{1,24}(?:\.[a-z]{1,40}_[a-z_]{1,40}|\.[a-zA-Z]{1,40})|[A-Za-z0-9]{1,40}\.[A-Z0-9_]{2,40}_[A-Z0-9_]{1,40}"
    rb"|[a-z]{2,24}[0-9]?\.[A-Z][A-Za-z]{2,40}"
    rb"|[A-Za-z0-9_]{0,40}[*+][0-9a-z]{0,24}|[0-9][*+].{0,64}|[A-Z]{1,12}[~^][0-9]{0,3}(?:\.{2,3}.{0,64})?|.{0,12}#!.{0,64}|Test[A-Z].{0,64}"
    rb"|[0-9.]{1,12}#[a-z].{0,64}|[a-z\-]{2,24}#[0-9]{1,6}|.{0,64}/.{0,40}#.{0,40}|.{0,64}-|.{0,64}[_\-]20[0-9]{2}-?[01][0-9]-?[0-3][0-9]"
    rb"|20[0-9]{2}-[01][0-9]-.{0,64}|AAAA[A-Z].{0,64}|[0-9a-f]{6,15}\^?|[A-Z][A-Za-z]{1,10}-[0-9](?:\.[0-9]|-[A-Z][a-z]{1,8}){1,2}"
    rb"|#[0-9A-Fa-f]{3,8}|[^/]{0,40}/[^/]{0,40}/.{0,64}|.{0,30}\^[0-9].{0,40}|v[0-9].{0,40}\.\..{0,30}"
    rb"|[a-z\-]{0,16}sha[_\-]?[0-9]{1,3}|[A-Za-z]{2,10}-(?:amd|arm|x|P|RS|ES|HS)[0-9_]{2,5}"
    rb"|[A-Z][A-Z0-9]{1,7}(?:-[A-Z0-9]{1,7}){0,2}",
    re.DOTALL,
)
"""Names and numbers of code, its licences, dates and hashes."""
_SHORTCUT = lazy_regex(rb"(?:ctrl|cmd|alt|shift|super|meta|option)\+.{1,24}", re.IGNORECASE)
_PATH = lazy_regex(rb"[A-Z][a-z]{2,16}(?:/[A-Z][a-z]{1,16}){1,3}(?:/[A-Z0-9]{1,4})?|[A-Z][a-z]{3,16}/[A-Z0-9]{2,5}")
"""Words joined by slashes, each with a capital."""
_SIGNED = lazy_regex(
    rb"(?![0-9]{1,6}\?)\$?[A-Za-z0-9@][A-Za-z0-9@$#!*~+\-]{1,24}(?:(?:[;,&?]|'(?!(?:s|t|re|ll|ve|d|m|S)\Z))[A-Za-z0-9@$#!*~+\-]{1,24}){1,3}"
    rb"|[A-Za-z0-9]{2,16}(?::[A-Za-z0-9]{2,16}){2,3}|\$[A-Za-z][A-Za-z0-9.\-]{4,24}"
)
"""Words with signs between them that no sentence has there."""
_PORT_OR_FIELD = lazy_regex(rb"[a-z][a-z0-9.\-]{1,40}:[0-9]{1,5}|[A-Za-z]{1,40},[A-Za-z]{1,40}")
_ARTIFACT = lazy_regex(rb".{1,60}\.(?:apk|dmg|jar|zip|tgz|gz|whl|deb|rpm|msi|iso)", re.DOTALL)
_NUMBERED = lazy_regex(rb"[0-9]{2,8}[A-Z]?[a-z]{4,24}")
_TWO_WORDS = lazy_regex(rb"[a-z]{2,24}\.(?:[a-z]{3,24}|[A-Z][a-z]{2,24})")
_NUMBER_PLATE = lazy_regex(rb"[A-Z]{2,4}[0-9][A-Z0-9]{3,8}|[A-Z]{2}-[A-Z0-9]{3,6}-[A-Z0-9]{3,8}")
_CAMEL = lazy_regex(rb"[A-Z]?[a-z]{1,24}(?:[A-Z][a-z]{1,24}+){1,6}+")
_PIECES = lazy_regex(rb"[A-Z]?[a-z]{1,24}")
_BASE32 = lazy_regex(rb"[A-Z2-7]{16,64}")
_DOTTED = lazy_regex(rb"[a-z]{2,24}(?:\.[a-z]{1,24}){2,6}|[A-Z]?[a-z]{2,24}(?:\.[A-Z][a-z]{2,24}){1,4}")
_DESCRIBING = lazy_regex(
    rb"[A-Za-z]{2,20}(?:-[a-z]{2,16}){0,2}-(?:driven|based|related|specific|like|free|ready|level"
    rb"|wide|friendly|first|fire|offs|aware|only|oriented|side|time)",
    re.IGNORECASE,
)
_PAIR = lazy_regex(rb"[a-z]{2,24}\.[a-z]{4,24}")
_YEAR = lazy_regex(rb"(?:19|20)[0-9]{2}")
_UUID = lazy_regex(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIAL = lazy_regex(rb"[0-9]{1,3}(?:[\-/][0-9]{1,2}){2,3}")
"""What opens a lock with a dial."""
_ISSUED = lazy_regex(rb"(?=[A-Z0-9]{0,4}(?:[A-Z][0-9]|[0-9][A-Z]))[A-Z0-9]{3,5}-[A-Z0-9]{3,5}")
"""A code as services send it."""
_DOOR = lazy_regex(rb"[A-Z][0-9]{4,6}|[A-Z][0-9]{3,5}[A-Z]|[0-9]{1,3}[A-Z][0-9]{1,3}|[0-9]{3,6}[A-Z#*]|[#*][0-9]{3,5}")
_SPELLED_OUT = lazy_regex(rb"(?:[A-Z][a-z]{1,12}+){3,8}+[!?.$0-9]{1,6}")


def _form_of_two(word: bytes) -> str:
    """Return the form of two words with a dot between them."""
    first, last = word.lower().split(b".")
    rare = len(first) >= 5 and first not in COMMON and not ordinary(first)
    return "" if not rare else "file" if word.islower() or last in COMMON else "pair"


def _form_of_letters(word: bytes, language: str) -> str:
    """Return the form of a word of small letters, of which the first may be a capital."""
    small = word.lower()
    hash_like = 6 <= len(word) <= 15 and not word.translate(None, b"abcdef")
    if hash_like or small in _TECHNOLOGIES or monotonous(word) or ordinary(word, language):
        return ""
    return "common word" if small in COMMON else "word" if word.islower() else "name"


@lru_cache(maxsize=1 << 14)
def form_of(word: bytes, language: str = "") -> str:
    """Return what kind of text the word is; empty if it is a word, a name or a number of some other kind."""
    if not 4 <= len(word) <= 64:
        return ""
    if word.isalpha() and (word.islower() or word[1:].islower()):
        return _form_of_letters(word, language)
    if (
        (_NO_SECRET.fullmatch(word) and not _SIGNED.fullmatch(word))
        or _ADDRESS.fullmatch(word)
        or _LOGIN.fullmatch(word)
        or _UUID.fullmatch(word)
        or IDS.match(word)
        or is_technology(word)
    ):
        return ""
    if _DIAL.fullmatch(word):
        return "dial"
    if _ISSUED.fullmatch(word) and digits(word) >= 2 and letters(word) >= 2:
        return "groups"
    if word.isdigit():
        return "" if len(word) > 8 else "year" if _YEAR.fullmatch(word) else "digits"
    if _GROUPS.fullmatch(word) and digits(word) >= 3 and letters(word) >= 4 and turns(word) >= 3:
        return "groups"
    if _PAIR.fullmatch(word) and not _HOST.fullmatch(word):
        first, last = word.split(b".")
        return "" if {first, last} & COMMON or ordinary(first) or ordinary(last) else "pair"
    if _PATH.fullmatch(word) and (capitals(word) or digits(word)):
        return "path"
    if _SIGNED.fullmatch(word) and (capitals(word) or digits(word)) and letters(word) >= 3 and not _PORT_OR_FIELD.fullmatch(word):
        return "signed"
    if _TWO_WORDS.fullmatch(word):
        return _form_of_two(word)
    if _NUMBER_PLATE.fullmatch(word) and digits(word) >= 2 and letters(word) >= 3:
        return "serial"
    if _OF_CODE.fullmatch(word) or _SHORTCUT.fullmatch(word):
        return "door" if _DOOR.fullmatch(word) else ""
    if _DOOR.fullmatch(word):
        return "door"
    if monotonous(word) or _ARTIFACT.fullmatch(word):
        return ""
    if stands_in(word, numbered=False):
        return "stand-in" if len(word) >= 12 and _SPELLED_OUT.fullmatch(word) else ""
    if word.isalpha() and word.isupper():
        return ""
    odd = oddness(word)
    if odd is Oddness.CLEAR:
        return "clear"
    if odd is Oddness.MIXED:
        return "mixed"
    if _HEX.fullmatch(word):
        return "hex" if digits(word) >= 3 and letters(word) >= 3 else ""
    if _NUMBERED.fullmatch(word) and not ordinary(word.lstrip(b"0123456789")):
        return "numbered"
    if _SERIAL.fullmatch(word) or b"," in word or b":" in word or _HOST.fullmatch(word):
        return ""
    if _DOTTED.fullmatch(word):
        return "dotted" if not COMMON.issuperset(word.lower().split(b".")) else ""
    if _NAME_OF_FILE.fullmatch(word):
        return ""
    if len(word) >= 12 and digits(word) >= 2 and turns(word) * 3 >= len(word):
        return "random"
    if _GROUPS.fullmatch(word) and digits(word) >= 2:
        return "groups"
    if _SNAKE.fullmatch(word):
        return "snake"
    if _DESCRIBING.fullmatch(word):
        return ""
    if _BASE32.fullmatch(word) and digits(word):
        return "random"
    if _CAMEL.fullmatch(word):
        pieces = _PIECES.findall(word)
        return "" if all(len(piece) < 4 or piece.lower() in COMMON for piece in pieces) else "camel"
    if odd is Oddness.COMPOUND:
        return "compound"
    if _JOINED.fullmatch(word):
        return "joined" if not ordinary(word) else ""
    return "chosen" if chosen(word) else ""
