"""Secrets in natural language and in tables: a label in any language with a value after it, below it, or in another element."""

import re
from collections.abc import Iterator
from typing import NamedTuple, assert_never

from kite_memory.redaction.carriers import Table, find_in_columns, find_in_markup, find_inserted, states
from kite_memory.redaction.chance import (
    FORMS,
    JOINING,
    LABELS,
    LEADING,
    Form,
    Label,
    Oddness,
    PasswordLikeness,
    Span,
    TextWords,
    capitals,
    chosen,
    clear,
    digits,
    direct,
    first_word,
    numeric,
    oddness,
    ordinary,
    signed,
    signs,
    smalls,
    stands_in,
    turns,
    wordlike,
)
from kite_memory.redaction.cleaning import LABEL
from kite_memory.redaction.cleaning import OTHER_LETTER as _OTHER_LETTER
from kite_memory.redaction.tokens import is_technology
from kite_memory.redaction.vendors import any_of
from kite_memory.redaction.views import base32, decoded, hexadecimal
from kite_memory.redaction.weighed import find_weighed
from kite_memory.text import lazy_regex

_KIND = "password"
_SNAKE = lazy_regex(rb"_{0,2}[a-z]{1,40}_[a-z0-9_]{1,60}")
_AFTER_LABEL = lazy_regex(rb"[\"'`*\]]{0,4}[ \t]{0,4}([:=?]?)[ \t]{0,4}(?:[>|][+\-]?|\"\"\"|''')?[ \t]{0,4}\r?(?=\n)")
_NEXT = lazy_regex(
    rb"(?:[ \t>]{0,40}\r?\n){1,3}+(?:[ \t]{0,8}[\-=]{3,80}+[ \t]{0,8}\r?\n)?"
    rb"(?:[ \t]{0,8}```[a-z]{0,12}[ \t]{0,4}\r?\n)?"
    rb"[ \t>\-*+|]{0,40}[\"'`]?([^\s\"'`]{4,64}+)[\"'`]?,?[ \t|]{0,8}\r?(?=\n|\Z)"
)


def on_next_line(raw: bytes, start: int, at: int, stop: int, spans: list[Span]) -> None:
    """Find a value on the next line, if the label ends its line and the next one holds nothing else."""
    line = raw[max(0, raw.rfind(b"\n", max(0, start - 160), start) + 1) : start]
    after = _AFTER_LABEL.match(raw, at, stop + 1)
    if after is not None and (found := _NEXT.match(raw, after.end())):
        alone = not line.strip(b" \t-*\"'#>+|")
        value = found[1].rstrip(b",")
        least = Oddness.COMPOUND if after[1] or alone else Oddness.MIXED
        fits = (chosen(value) or states(value)) and (after[1] or _is_field(raw, start, alone)) and len(line) <= 50
        if fits or (not found[1].endswith(b",") and (oddness(value) >= least or _is_encoded(value))):
            spans.append((found.start(1), found.start(1) + len(value), _KIND))
    elif raw[stop : stop + 1] == b"\n" and (found := _ANSWER.match(raw, stop)):
        asked = b"?" in raw[at:stop] or _ASKING.search(line.lower()) is not None
        typed = found[1] is None and _TYPED.match(line) is not None
        if (asked and oddness(found[2]) >= Oddness.MIXED) or (typed and (oddness(found[2]) or _is_encoded(found[2]))):
            spans.append((*found.span(2), _KIND))


_USER_ABOVE = lazy_regex(rb"(?:user(?:name)?|login|e-?mail|account|benutzer|usuario|id)[ \t:]{0,4}\r?\n[^\r\n]{2,60}\r?\n\Z")


def _is_field(raw: bytes, start: int, alone: bool) -> bool:
    """Return whether a label that is alone on its line heads a value: after a user's name, as a heading, or first of all."""
    head = raw[max(0, start - 120) : start]
    return alone and (not head.strip(b" \t#*") or head.endswith((b"# ", b"\n**")) or _USER_ABOVE.search(head.lower()) is not None)


_ANSWER = lazy_regex(rb"\r?\n(?:([^\r\n]{1,30}[:>\])])[ \t]{1,4})?[\"'`]?([^\s\"'`]{5,64}+)[\"'`]?[ \t]{0,4}(?=\r?\n|\Z)")
"""A line with one word, perhaps behind who says it."""
_TYPED = lazy_regex(
    rb"[ \t]{0,8}(?:[$#%>]|[\w@~:\-]{1,40}[$#%>] "
    rb"|(?:kubectl|cat|vault|aws|gcloud|az|echo|heroku|op|pass|bw|xxd|base64|openssl|docker) )"
)
"""A command."""
_ASKING = lazy_regex(rb"\b(?:what'?s?|which|remind|tell|anyone|need)\b")

_FUNCTION_WORDS = frozenset(
    b"""
    the a an to for of is are was be or and if in on at as by with from used not must may can should will your my our its this
    that it when which has have been required optional wrong empty set stored read only no you we password passphrase
    """.split()
)
"""Words of a sentence, which a passphrase made of words does not contain."""
_MESSAGE_WORDS = frozenset(
    b"""
    must should will can may required optional wrong empty set stored read only please enter your password passphrase key keys is
    are was were be been has have not no if when file string provide provided used using specify leave
    """.split()
)


_CODE = lazy_regex(rb"[0-9]{4,10}|[0-9]{2,6}(?:[ \-][0-9]{2,6}){1,4}|[A-Za-z0-9]{3,8}(?:-[A-Za-z0-9]{3,8}+){1,7}")


def is_value(value: bytes, likeness: PasswordLikeness) -> bool:
    match likeness:
        case PasswordLikeness.ANY:
            return not stands_in(value, numbered=False) and not value.startswith((b"$", b"{", b"%", b"<", b"-", b"/"))
        case PasswordLikeness.CODE:
            return _CODE.fullmatch(value) is not None and digits(value) >= 2
        case PasswordLikeness.GROUPS:
            return digits(value) >= 3
        case PasswordLikeness.CHOSEN:
            return chosen(value) or oddness(value) > Oddness.NONE
        case PasswordLikeness.CLEAR:
            return oddness(value) >= Oddness.MIXED
        case PasswordLikeness.SIGNED:
            return oddness(value) >= Oddness.MIXED and (signs(value) > 0 or capitals(value) > 0)
        case PasswordLikeness.WORDS:
            words = value.lower().split()
            return _FUNCTION_WORDS.isdisjoint(words) and sum(map(ordinary, words)) * 2 <= len(words)
        case PasswordLikeness.PHRASE:
            return _MESSAGE_WORDS.isdisjoint(value.lower().split())
        case PasswordLikeness.DRAWN:
            return digits(value) >= 2 and turns(value) >= 4 and not wordlike(value) and not stands_in(value)
        case PasswordLikeness.STATED:
            return states(value)
        case PasswordLikeness.ENCODED:
            return not (stands_in(value) or (value.isalpha() and ordinary(value)))
        case _:
            assert_never(likeness)


_WINDOW = 200
_LINE = 400
_MOST_WORDS = 14
_NEAR = 3
"""Number of words that may be between a sign, or a word such as "is", and the value."""
_OTHER = bytes((LABEL,))
_TAIL = lazy_regex(rb"[a-z\xf0]{0,12}+(?:[_\-][a-z0-9_\-]{0,24}+)?(?:'s)?[\"'`*\])]{0,4}")
_OTHER_TAIL = lazy_regex(rb"(?:\xf0{1,12}+(?![a-z0-9]))?[\"'`*\])]{0,4}")
"""A suffix of a label, and what closes it; in a script without blanks a value may follow at once."""
_ASIDE = lazy_regex(rb"[ \t]{0,3}\([^()\r\n]{1,60}\)")
_SIGN = lazy_regex(rb"[ \t?]{0,40}(?:(?:[:=?|>]|->|=>|:=|-(?=[ \t])|\.{3,60})[ \t?*]{0,40}){1,3}+(?![=])")
_TOKEN = lazy_regex(rb"[^\s]{1,256}+")
_QUOTED = lazy_regex(rb"[ \t]{0,8}\\?([\"'`])([^\"'`\\\r\n]{3,128}+)\\?\1")
_GLUED = lazy_regex(rb"\xf0{1,3}(?=[!-~]{5,64})")
_OPENING = b"(\"'`*?\xab[,"
_CLOSING = b"\"'`,;:.)]?*"
_DIGIT = lazy_regex(rb"[0-9]")
_TELLING = lazy_regex(rb"[0-9!#$%^&*~+@]")
_DIGITS_ABROAD = lazy_regex(rb"\xf1[\xf0?: ]{0,12}+(?P<digits>[0-9]{4,8})(?=[\xf0?\r\n]|\Z)")
"""Digits behind a label in a script without blanks: 暗証番号は3390のまま."""
_YEAR = lazy_regex(rb"(?:19|20)[0-9]{2}\Z")
_COMPOUND = lazy_regex(rb"[a-z][A-Z]|[A-Za-z][\-_.][A-Za-z]|[a-z]{18}")
_SOON = 60
"""Every value has one of these, and one that has no digit or sign is near its label."""
_STOPS = lazy_regex(rb"[({\[<>;]")
_WITHIN_WORDS = tuple(label for label in LABELS if not label.word)
_WITHIN_WORD = lazy_regex(any_of(label.stem.decode() for label in _WITHIN_WORDS).encode())
_ONE_WORD = tuple(label for label in LABELS if label.word and label.stem.isalpha())
_WORD_BEGINS = lazy_regex(b" (" + any_of(label.stem.decode() for label in _ONE_WORD).encode() + b")")
_BY_STEM = {label.stem: label for label in _ONE_WORD}
_LABELS_AT = {
    stem: tuple(_BY_STEM[stem[:size]] for size in range(1, len(stem) + 1) if stem[:size] in _BY_STEM) for stem in _BY_STEM
}
_SEVERAL_WORDS: dict[bytes, list[Label]] = {}
"""Labels of several words, by their first word."""
for _label in LABELS:
    if _label.word and not _label.stem.isalpha():
        _SEVERAL_WORDS.setdefault(first_word(_label.stem), []).append(_label)
_SEVERAL = frozenset(_SEVERAL_WORDS)
_FORMS: dict[bytes, list[Form]] = {}
for _form in FORMS:
    for _word in _form.words[0]:
        _FORMS.setdefault(_word, []).append(_form)


def find_spoken(raw: bytes, small: bytes, words: TextWords, spans: list[Span], of: int) -> None:
    """Find secrets in natural language. ``small`` is ``raw`` in lower case with its ``words``; ``of`` as for `find`."""
    if not words.each and _OTHER not in raw:
        return
    table: Table = (0, 0)
    labels = labels_of(raw, small, words)
    for sighting in labels:
        table = _look(raw, small, sighting, table, spans)
    if labels:
        find_in_markup(raw, small, spans)
        if b"insert into" in small:
            find_inserted(raw, small, spans)
    if _OTHER in raw:
        spans.extend((*found.span("digits"), _KIND) for found in _DIGITS_ABROAD.finditer(raw) if not _YEAR.match(found["digits"]))
    find_weighed(raw, small, words, labels, spans, of)
    for form in {form for word in words.each & _FORMS.keys() for form in _FORMS[word]}:
        for some in form.words[1:]:
            if words.each.isdisjoint(some):
                break
        else:
            _match(raw, small, form, spans)


Sighting = tuple[int, int, bool, str]
"""Where a label begins and ends, whether it is weak, and its language, empty for English."""


def labels_of(raw: bytes, small: bytes, words: TextWords) -> list[Sighting]:
    return sorted([*_labels(small, words), *_other_labels(raw)])


def _labels(small: bytes, words: TextWords) -> Iterator[Sighting]:
    """Yield the labels.

    The words are searched first, since a text has few different ones.
    """
    there = [label for word in words.each & _SEVERAL for label in _SEVERAL_WORDS[word]]
    if words.parts:
        there += (label for hit in _WORD_BEGINS.findall(words.joined) for label in _LABELS_AT[hit])
    if words.parts and _WITHIN_WORD.search(words.joined):
        there += (label for label in _WITHIN_WORDS if label.stem in words.joined)
    for label in {label.stem: label for label in there}.values():
        at = small.find(label.stem)
        while at >= 0:
            end = at + len(label.stem)
            within = (label.word and small[at - 1 : at].isalpha()) or (label.whole and small[end : end + 1].isalnum())
            if not (within or small[max(0, at - 6) : at].endswith((b"/etc/", b"etent "))):
                yield at, end, label.weak, label.language
            at = small.find(label.stem, at + 1)


def _other_labels(raw: bytes) -> Iterator[Sighting]:
    at = raw.find(_OTHER)
    while at >= 0:
        end = at + len(raw[at : at + 32]) - len(raw[at : at + 32].lstrip(_OTHER))
        yield at, end, False, "another"
        at = raw.find(_OTHER, end)


def _match(raw: bytes, small: bytes, form: Form, spans: list[Span]) -> None:
    if not form.near:
        _add_all(raw, form.pattern.finditer(small), form, spans)
    for near in form.near:
        hit = near.search(small)
        while hit:
            begin = max(small.rfind(b"\n", max(0, hit.start() - _WINDOW), hit.start()) + 1, hit.start() - _WINDOW)
            at = small.find(b"\n", hit.start(), hit.start() + _LINE)
            at = at if at >= 0 else min(len(small), hit.start() + _LINE)
            _add_all(raw, form.pattern.finditer(small, begin, at), form, spans)
            hit = near.search(small, at)


def _add_all(raw: bytes, matches: Iterator[re.Match[bytes]], form: Form, spans: list[Span]) -> None:
    for found in matches:
        for group in form.pattern.groupindex:
            start, end = found.span(group)
            if group.startswith("bare"):
                end -= len(raw[start:end]) - len(raw[start:end].rstrip(b".:"))
            if start < end and is_value(raw[start:end], form.likeness) and not is_technology(raw[start:end]):
                spans.append((start, end, _KIND))


def _look(raw: bytes, small: bytes, sighting: Sighting, table: Table, spans: list[Span]) -> Table:
    """Check what is around a label."""
    start, end, weak, language = sighting
    foreign = language != ""
    tail = (_OTHER_TAIL if raw[end - 1] == LABEL else _TAIL).match(small, end)
    at = tail.end() if tail else end
    stop = raw.find(b"\n", at, at + _WINDOW)
    stop = stop if stop >= 0 else min(len(raw), at + _WINDOW)
    begin = max(raw.rfind(b"\n", max(0, start - _WINDOW), start) + 1, start - _WINDOW)
    if (weak and raw[at : at + 1] == b"\n" and not raw[begin:start].strip()) or small[end:at] in _HOW:
        return table  # a statement of Python, or how passwords are stored
    if foreign and not _ONE_CASE.fullmatch(raw, start, at):
        return table  # the beginning of a name in code
    on_next_line(raw, start, at, stop, spans)
    if _TELLING.search(raw, at, stop) or _COMPOUND.search(raw, at, min(stop, at + _SOON)):
        line = _line_before(raw, small, begin, start, at, weak=weak, foreign=foreign)
        _walk(raw, small, at, stop, line, spans)
    _stated(raw, small, begin, (start, at, stop), spans, weak=weak, language=language)
    _back(raw, small, begin, start, spans)
    return find_in_columns(raw, start, at, table, spans)


def _line_before(raw: bytes, small: bytes, begin: int, start: int, at: int, *, weak: bool, foreign: bool) -> "_Line":
    before = raw[begin:start]
    setting = _SETTING_BEFORE.fullmatch(before) is not None
    weak = weak and not (raw[start - 1 : start] == b"_" and (raw.startswith(b"PASS", start) or setting))
    said = small[begin:start]
    with_a_user = any(map(said.__contains__, _USERS)) and (not weak or _JOINED_TO.search(before[-8:]) is not None)
    return _Line(
        weak=weak and not with_a_user,
        foreign=foreign,
        with_a_user=with_a_user,
        possessive=b"'s" in raw[start:at],
        prose=foreign or (_PROSE_BEFORE.search(before[-40:]) is not None and not before.translate(None, _NOT_CODE)),
        passed=raw[start:at] == b"PASS",
        setting=setting,
    )


class _Line(NamedTuple):
    """What is known of a label from the line before it."""

    weak: bool
    foreign: bool
    with_a_user: bool
    possessive: bool
    prose: bool
    passed: bool
    """Perhaps a test's result."""
    setting: bool
    """The label begins its line, as in a file of settings."""


_HOW = frozenset(b"_encryption _hashing _hasher _algorithm".split())
_USERS = tuple(b"user usr login account acct admin root benutzer usuari utilisateur identifiant gebruiker utente kennung".split())
"""Words for whose password it is."""
_JOINED_TO = lazy_regex(rb"(?:[,;/&:|+\-)\"'`]|\b(?:and|with|w|mit|y|e|et|en))[ \t]{0,3}\Z|\A[ \t]{0,8}\Z")
_ONE_CASE = lazy_regex(rb"(?:[A-Z]?[a-z0-9_\- ']{0,80}|[A-Z0-9_\-]{0,80}|[\xf0\xf1]{0,80})[^A-Za-z]{0,8}")
_NOT_CODE = bytes(code for code in range(256) if code not in b"({;<=")
_PROSE_BEFORE = lazy_regex(rb"[A-Za-z,'\xf0][\"'`*(]{0,2}[ \t]{1,3}(?:[A-Za-z\-]{1,20}[_ ])?\Z")
"""Words before a label: code has none there."""


def _walk(raw: bytes, small: bytes, at: int, stop: int, line: _Line, spans: list[Span]) -> None:
    """Go from word to word behind a label to a value."""
    if aside := _ASIDE.match(raw, at, stop):
        inner = raw[aside.start() : aside.end()].strip(b" \t()\"'`")
        if not line.weak and oddness(inner) >= Oddness.MIXED:
            first = raw.find(inner, aside.start())
            spans.append((first, first + len(inner), _KIND))
        at = aside.end()
    led = _NEAR + 1 if line.foreign else 0  # for this many more words, a value is expected
    linked = line.possessive  # the next word is the value or begins with it
    glued = not line.possessive
    for number in range(_MOST_WORDS):
        if sign := _SIGN.match(raw, at, stop):
            if line.weak and b"->" in sign[0] and raw[at - 1 : at] == b")":
                return  # the type that a function returns
            at, led, glued, linked = sign.end(), _NEAR, False, True
            if b"|" in sign[0] and not line.prose:
                line = line._replace(prose=True)  # a cell
        if quoted := _QUOTED.match(raw, at, stop):
            least = Oddness.MIXED if line.weak or not line.prose else Oddness.COMPOUND
            named = quoted[1] == b"`" and _SNAKE.fullmatch(quoted[2]) is not None
            odd = (linked or number == 0) and not named and oddness(quoted[2]) >= least
            if odd or is_quoted(quoted[2], led > 0 and not line.weak):
                spans.append((*quoted.span(2), _KIND))
            at = quoted.end()
            led -= 1
            glued = linked = False
            continue
        token = _TOKEN.search(raw, at, stop)
        if token is None or (glued and token.start() == at and token[0][:1] not in b"?,\xf0"):
            return
        start, end = token.span()
        if glued and (spelled := _GLUED.match(token[0])):
            start, led, linked = start + spelled.end(), _NEAR, True  # scripts without blanks: 密码是X
        glued = False
        start += len(token[0]) - len(token[0].lstrip(_OPENING)) if start == token.start() else 0
        if line.foreign and start < end and raw[start] != _OTHER_LETTER:
            end = start + _gap(raw[start:end])
        end -= len(raw[start:end]) - len(raw[start:end].rstrip(_CLOSING))
        word = raw[start:end].rstrip(b"=")
        named = number > 1 and not sign and is_technology(word)  # "the password hashing is SHA-256"
        if not named and _is_said(word, line, led, linked=linked, first=number == 0, whole=token.end() == stop):
            spans.append((start, end, _KIND))
            led, linked = 2, False
        elif small[start:end] in LEADING or small[start:end] in JOINING:
            linked = small[start:end] in LEADING
            led = max(led, _NEAR if linked else led)
        elif token[0][-1:] in (b":", b"="):
            led, linked = _NEAR, True
        elif _STOPS.search(token[0]) or token[0].endswith((b".", b"!")) or (line.weak and token[0].endswith((b")", b"),"))):
            return
        else:
            led -= 1
            linked = linked and small[start:end] in _STILL
        at = token.end()


def _gap(word: bytes) -> int:
    """Return where a letter of a script without Latin equivalents follows: 密码是X了."""
    gap = word.find(_OTHER_LETTER)
    return gap if gap > 0 else len(word)


_SHORTEST, _SHORTEST_MIXED = 5, 7
_DOTTED = lazy_regex(rb"[a-z]{2,24}\.[a-z]{2,24}\.[a-z]{5,24}")
_STILL = frozenset(b"still now actually currently just simply always only again this these the".split())
"""Words that may be between "is" and the value."""


def _is_encoded(word: bytes) -> bool:
    """Return whether base 64, base 32 or hexadecimal text encodes a password."""
    body = word.rstrip(b"=")
    plain = hexadecimal(body) or (base32(body) if body.isupper() else b"") or (decoded(body) if len(body) >= 10 else b"")
    return len(plain) >= 6 and b" " not in plain and (chosen(plain) or oddness(plain) > Oddness.NONE)


_SETTING_BEFORE = lazy_regex(
    rb"[ \t]{0,40}(?:[0-9]{1,6}[?|:\t][ \t]{0,20})?(?:(?:[-+*?>|#;%]{1,4}|//|/\*)[ \t]{1,8}|[0-9]{1,2}[.)] )?(?:\*\*|__"
    rb"|`)?(?:[a-z0-9.\-]{1,40}[_.\-])?"
)
_JOINED_WORDS = lazy_regex(rb"[a-z]{2}[A-Za-z_\-]{2,160}[0-9]{0,4}")
_JOINT = lazy_regex(rb"[A-Z_\-]")
_NO_WORD_BETWEEN = lazy_regex(rb"[A-Z]{2}|[_\-]{2}|[A-Z][_\-]|[A-Z_\-](?![A-Za-z])")


def _is_unlike_a_name(word: bytes) -> bool:
    """Return whether these are several words in one, beginning with a small letter: types begin with a capital one."""
    return bool(_JOINED_WORDS.fullmatch(word) and _JOINT.search(word)) and _NO_WORD_BETWEEN.search(word) is None


def _is_said(word: bytes, line: _Line, led: int, *, linked: bool, first: bool, whole: bool) -> bool:
    """Return whether a word behind a label is its value; ``whole`` if it ends its line."""
    if _OTHER_LETTER in word and len(word.translate(None, bytes((_OTHER_LETTER,)))) < _SHORTEST:
        return False  # 8文字以上
    odd = oddness(word)
    if odd is Oddness.CLEAR or (len(word) >= 12 and (linked or not line.weak) and _is_encoded(word)):
        return True
    if line.weak:
        fits = odd is Oddness.MIXED or (
            len(word) >= _SHORTEST_MIXED and chosen(word) and digits(word) > 0 and capitals(word) > 0 and smalls(word) > 0
        )
        return (led > 0 and signed(word)) or (linked and fits and not line.passed)
    if led > 0 and (chosen(word) or numeric(word)):
        return True
    if first and (direct(word) or odd is Oddness.MIXED or (line.with_a_user and odd)):
        return True
    if linked and odd and (line.prose or (line.setting and whole and _is_unlike_a_name(word))):
        return True
    return line.foreign and ((led > 0 and odd is Oddness.MIXED) or (linked and (odd > 0 or _DOTTED.fullmatch(word) is not None)))


def is_quoted(value: bytes, led: bool) -> bool:
    if b" " in value:
        return led and len(value) >= 8 and any(48 <= code <= 57 for code in value) and value.count(b" ") <= 5 and b"=" not in value
    return chosen(value) if led else clear(value)


_COPULAS = (
    rb"is|e|ist|est|es|lautet|was|are|were|(?:will|must|should|might|would|can) be|has been|be|equals|reads|remains"
    rb"|became|becomes"
)
_COPULAS_ABROAD = any_of(
    word.decode() for word in LEADING - frozenset(b"as type enter using in ir var".split()) if word.isalpha()
).encode()
_GAP_WORD = rb"[ \t]{1,2}[a-z0-9\xf0][a-z0-9\xf0@.'_\-]{0,24}"
_GAP_BEGINS = (
    rb"(?:[ \t]{1,2}(?:for|of|on|to|at|in|from|i|you|we|they|he|she|used|itself|there|here|again|everywhere|today|btw"
    rb"|currently|del|della|di|do|da|de|du|vom|von|fur|zum"
    rb"|zur|im|am|that)(?=[ \t])(?:" + _GAP_WORD + rb"){0,4}?)?"
)
_STILL_MORE = (
    rb"(?:[ \t]{1,2}(?:now|just|still|currently|actually|simply|set to|called|literally|probably|always|again|only"
    rb"|supposed to be|jetzt"
    rb"|nur|noch|einfach|juste|toujours|ahora|solo|agora|adesso|nu|gewoon|teraz|ted|seychas|simdi|like|maybe|likely"
    rb"|usually)){0,2}"
)
_STATED_SIGN = (
    rb"(?:[ \t]{0,24}(?:[:=|]|->|=>|-(?=[ ])|\?{1,3}(?=[ ])|\.{3,60})(?:\*\*|__)?[ \t]{0,12}|(?:[ \t]{2,24}|\t)(?=[a-z]))"
)
_STATED_VALUE = (
    rb"(?P<quote>[\"'`*]{1,3}|\?(?=[a-z]))?(?P<value>(?:[^\s\"'`<>(){}\[\]|;,?*\xf0\xf1=]|(?<=[a-z0-9])'(?=[a-z]{3})){4,64}?)(?:[\"'`*]{1,3}|\?)?"
    rb"(?P<after>[ \t]{0,3}(?:\r?(?:\n|\Z)|\||\xf0|\*/|[#;](?=[ ]))|[.,;!)](?:\s|\Z)|[ \t]{1,3}(?:for|on|until|from|and"
    rb"|but|in|at|now|btw|it|you|to|which|please|this|since|kommst|geht|rein|pra|um|zu|so|then|unless|if|when|or|not"
    rb"|and|und|aber|auf|bei|et|sur|pour|y|en|para|e|per|til|i|(?:[(\-#/?][^\r\n]))(?![a-z]))"
)
_STATED = lazy_regex(
    rb"(?:"
    + _GAP_BEGINS
    + rb"(?:(?P<sign>"
    + _STATED_SIGN
    + rb")|[ \t]{1,2}(?P<is>"
    + _COPULAS
    + rb")"
    + _STILL_MORE
    + rb":?[ \t]{1,3}))"
    + _STATED_VALUE
)
_STATED_ABROAD = lazy_regex(
    rb"(?:(?:"
    + _GAP_WORD
    + rb"){0,4}?(?:(?P<sign>"
    + _STATED_SIGN
    + rb")|[ \t]{1,2}(?P<is>"
    + _COPULAS
    + rb"|"
    + _COPULAS_ABROAD
    + rb")"
    + _STILL_MORE
    + rb":?[ \t]{1,3}|\xf0{1,4}[: \t]{0,3}))"
    + _STATED_VALUE
)
_STATED_BESIDE = lazy_regex(rb"[ \t]?" + _STATED_VALUE)
"""A word right behind a label, in a sentence with a user's name."""
_ENDING = lazy_regex(rb"[ \t]{0,3}(?:\r?\n|\r?\Z|\||\*/|[#;](?=[ ]))")
_WORD_AT_END = lazy_regex(
    rb"[A-Za-z0-9\xf0][\"'`)*]{0,3}[ \t,:;.!?|/\-]{1,4}(?:(?:[a-z]{1,20}[_\- ]){0,2}|[a-z]{0,20})\Z", re.IGNORECASE
)


def _stated(
    raw: bytes, small: bytes, begin: int, place: tuple[int, int, int], spans: list[Span], *, weak: bool, language: str
) -> None:
    """Find a plain word that a sentence or a line of settings states to be the password: by its place, not by its look."""
    start, at, stop = place
    before = raw[begin:start]
    if before.translate(None, _NOT_CODE) or (weak and small[start:at] not in (b"secret", b"pass", b"creds", b"psk")):
        return
    if aside := _ASIDE.match(raw, at, stop):
        at = aside.end()
    found = (_STATED_ABROAD if language else _STATED).match(small, at, stop + 1)
    copula = found and found["is"]
    setting = _SETTING_BEFORE.fullmatch(before) is not None
    if found is None:
        said = small[begin:start]
        beside = _ALONG.search(said[-64:]) is not None or _USER_NAMED.search(said[-100:]) is not None
        beside = (beside and not weak) or small[start:at] in (b"pw", b"pwd") or _USER_NAMED.search(said[-100:]) is not None
        beside = beside or (language == "another" and (raw[at - 1] == _OTHER_LETTER or raw[start - 2 : start - 1].isalnum()))
        found = _STATED_BESIDE.match(small, at, stop + 1) if beside else None
        if found is None:
            return
    elif weak and not (
        setting or (copula and small[at : at + 4] not in (b" to ", b" of ")) or _USER_NAMED.search(small[begin:start][-100:])
    ):
        return
    elif found["sign"] is not None and found.end("sign") - len(found["sign"]) == at:
        if setting and not found["quote"] and not _ENDING.fullmatch(found["after"]):
            return
        if not setting and not language and not _WORD_AT_END.search(before[-48:]):
            return
        if not found["sign"].strip() and b"  " in before.strip():
            return  # a row of names in columns
    first, last = found.span("value")
    last -= len(raw[first:last]) - len(raw[first:last].rstrip(b".:!"))
    if small[first:last].endswith(b"." + small[start:at]):
        return  # `self.password = self.account.password`
    if copula and (not language or copula in (b"is", b"was", b"are", b"were")):  # a label may have another meaning in English
        language = _COPULAS_OF_OTHERS.get(copula, "")
    if states(raw[first:last], language):
        spans.append((first, last, _KIND))


_ALONG = lazy_regex(
    rb"(?:[,;&+(]|(?:^|[ ])(?:and|with|using|use|uses|used|via|mit|und|nimm|verwende|et|avec|utilise|utiliser|utilisez|y"
    rb"|con|usa|usar|use"
    rb"|e|com|en|met|gebruik|uzyj|z|i|c|pouzij|s|ve|med|och|og|anvand|brug|bruk|kayta|is|cu|folosete))(?: the| its| his"
    rb"| her| my| das"
    rb"| dem| la| le| a| o| het| de| il)?[ ]{1,2}\Z"
)
_USER_NAMED = lazy_regex(
    rb"(?:^|[^a-z0-9])(?:user(?:name)?|u|login|log ?in as|sign in as|as|account|acct|e-?mail|id|uid|ssid"
    rb"|benutzer(?:name)?|usuari[oa]?|utilisateur"
    rb"|identifiant|gebruiker|utente|kennung|bruker|anvandare|uzytkownik|uzivatel|login|kullanici"
    rb"|pengguna)[ ]?[:=]?[ ]{0,2}[^\s:=(){}<>]{1,40}"
    rb"[ \t,;/|]{1,4}(?:(?:and|with|und|mit|y|con|e|com|et|avec|en|met) )?(?:the |its )?\Z"
)
_COPULAS_OF_OTHERS = {b"e": "italian", b"ist": "german", b"lautet": "german", b"est": "french", b"es": "spanish"}


def _back(raw: bytes, small: bytes, begin: int, start: int, spans: list[Span]) -> None:
    """Find a value before a label, as in ``… X as the password``: one that clearly looks like it, or is said to be."""
    before = raw[begin:start]
    if (b"#" in before or b"//" in before or b"--" in before) and (comment := _COMMENT.search(raw, begin, start)):
        _before_comment(raw, begin, comment.start(), spans)
    begin = max(begin, start - _BEFORE_LABEL)
    tokens = list(_TOKEN.finditer(raw, begin, start))
    said = False
    for number, token in enumerate(reversed(tokens)):
        first = token.start() + len(token[0]) - len(token[0].lstrip(_OPENING))
        last = token.end() - len(token[0]) + len(token[0].rstrip(_CLOSING))
        word = raw[first:last]
        whole = first > begin or begin == 0 or raw[begin - 1 : begin] == b"\n"
        may_be = whole and (said or _DIGIT.search(word)) and not (word.isdigit() or is_technology(word))
        odd = oddness(word) if may_be else Oddness.NONE
        if (odd is Oddness.CLEAR and start - first <= _NEAR_LABEL) or (said and odd):
            spans.append((first, last, _KIND))
        said = (number > 0 and small[first:last] in _AS) or (said and small[first:last] in _BETWEEN)


def _before_comment(raw: bytes, begin: int, end: int, spans: list[Span]) -> None:
    """Find a literal that the comment behind it calls a password."""
    literals = list(_LITERAL.finditer(raw, begin, end))
    literal = literals[-1] if literals else None
    if literal is not None and _CALLS.fullmatch(raw, literal.end(), end):
        value = literal[2]
        if states(value) or _is_encoded(value):
            spans.append((*literal.span(2), _KIND))


_COMMENT = lazy_regex(rb"(?<=[ \t])(?:#|//|--|/\*)[ \t]{0,4}(?=[^\r\n\"'`]{0,60}\Z)")
_CALLS = lazy_regex(rb"[\w.()\[\]};, \t]{0,40}")
_LITERAL = lazy_regex(rb"([\"'`])([^\s\"'`]{5,128}+)\1")
_BEFORE_LABEL, _NEAR_LABEL = 90, 60
_AS = frozenset(b"as for into at als como comme come som".split())
_BETWEEN = frozenset(b"works work worked still also only now accepted".split())
"""Words between a value and what says that it is a password."""
