"""The same failure by the same name, whatever the month, the machine and the agent.

A signature is one line: what a tool, compiler, shell, runtime or server says of a failure, without what differs from
one occurrence to the next (places in files, numbers, times, hashes, temporary names).
"""

import re
from collections.abc import Callable, Iterator, Sequence

from kite_memory.text.failure_lines import PANICKED, may_tell, told_of

_LENGTH = 160
_LINE = 600
"""What is looked at of a line: one without an end, as in minified or binary output, costs no more than that."""
_TOKEN = 64
_END = 1 << 20
_LOOKED_AT = 4_000
_BY_CHANCE = 16
_QUOTE_LENGTH, _QUOTE_WORDS = 40, 4

_CONTROL = re.compile(
    r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|\x1b.|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
)
_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{1,12}://[^\s'\"`<>)\]]{1,500}|\b[\w.-]{1,40}@[\w.-]{1,80}:[\w./~-]{1,200}")
_REMOTE = re.compile(r"(?<=['\"`])[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}:[\w.-]{1,80}/[\w./-]{1,200}")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_TIME = re.compile(
    r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?(?![\w-])"
    r"|\b\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?\b"
)
_REST_OF_PATH = r"[^\s'\"`:,;()<>\[\]]{1,400}"
_TEMPORARY = re.compile(
    rf"(?<![\w.])(?:/private)?/(?:tmp|var/folders|var/tmp|dev/shm)(?![\w-])(?:/{_REST_OF_PATH})?"
    rf"|\b[A-Za-z]:\\[^\s'\"`:,;]{{0,200}}\\Temp\\{_REST_OF_PATH}"
)
_FILE_SUFFIXES = """
bash c cc cfg cjs conf cpp cs css cts csv cxx dart erl ex exs go gradle h hpp hs htm html ini ipynb java jl js json jsonl jsx kt kts
less lock lua m md mjs mm mod mts php pl proto ps1 py pyi pyx r rb rs scala scss sh sql sum svelte swift tf toml ts tsx txt vue xml
yaml yml zig zsh
"""
_SUFFIXES = frozenset(_FILE_SUFFIXES.split())
_PLACE = r"(?::\d{1,7}(?::\d{1,6})?|\(\d{1,7}(?:,\d{1,6})?\))?"
_PLACED = re.compile(_PLACE + r"$")
_PART = r"[\w.@+~%#-]{1,120}"
_PATH = re.compile(
    rf"(?<![\w<.])(?:[A-Za-z]:|~|\.{{1,2}}|{_PART})?(?:[/\\]{_PART}){{1,40}}[/\\]?{_PLACE}"
    rf"|(?<![\w.+~-])[\w+~-][\w.+~-]{{1,120}}{_PLACE}"
)
_ADDRESS = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w.])"
    r"|(?<![\w:])\[?(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}\]?(?::\d{2,5})?(?=[\s,;)'\"]|$)"
    r"|\b[A-Za-z][\w-]{0,60}(?:\.[\w-]{1,60}){0,5}:\d{2,5}\b"
)
_MAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}\b")
_HEX = re.compile(r"\b0x[0-9a-fA-F]{1,64}\b|\b(?=[0-9a-f]{0,127}\d)(?=[0-9a-f]{0,127}[a-f])[0-9a-f]{7,128}\b")
_LONG = re.compile(rf"[^\s'\"`<>()\[\]{{}},;:|]{{{_BY_CHANCE},}}")
_NUMBER = re.compile(
    r"(?<![\w.<])[-+]?\d[\d_,]{0,40}(?:\.\d{1,40}){0,6}(?:[eE][-+]?\d{1,4})?"
    r"(?: ?(?:[numµ]?s|min|h|[KMGT]i?B|B)\b|%)?(?![A-Za-z_])"
)
_CODED = re.compile(
    r"(?:\b(?:status|code|HTTP(?:/\d(?:\.\d)?)?|errno|signal|exited|exit|curl:|error)(?: code| status| with)?[:=]?\s?|curl: \()$",
    re.IGNORECASE,
)
"""Before a number that says what happened."""
_INNER = re.compile(r"\b[A-Za-z_]\w{0,63}?\d{4}\w{0,63}")
_DIGITS = re.compile(r"\d{4,}")
_ERROR_CODE = re.compile(r"[A-Z]{1,6}\d{4,5}")
_QUOTED = re.compile(r"(?<![\w<])(?:'([^'\n]{0,400})'|\"([^\"\n]{0,400})\"|`([^`\n]{0,400})[`'])(?!\w)|[‘“]([^’”\n]{0,400})[’”]")
_WORD = re.compile(r"[^\W\d_]{3,}")
_PLACEHOLDER = re.compile(r"<\w{1,8}>")
_GENERIC = re.compile(
    r"(?i)(?:(?:error|fatal|critical|npm|docker|mise):? ?)?(?:"
    r".{0,60}?\b(?:exited|exits?|returned|finished|failed with)"
    r"(?: with)?(?: non-?zero)?(?: exit)?(?: code| status)?:? ?(?:<n>|[012])?"
    r"|(?:(?:process|command|script|task|build|recipe|target|job|step|tests?|run)\b.{0,60}?)?\bfailed(?:, to rerun pass .{0,60})?"
    r"|command failed.{0,60}|[\w.+~-]{1,120}\.\w{1,6}"
    r"|exit(?: code| status):? ?(?:<n>|[012])"
    r"|(?:an? )?(?:unknown|unexpected|internal)? ?error(?: occurred)?|lifecycle script .{0,80}|undefined|null|none|true|false"
    r"|ld returned .{0,40}|could not compile .{0,80}|aborting due to .{0,60}|some errors? .{0,40}|too many errors"
    r"|<n> errors?.{0,20})"
)
"""Says no more than that something failed: it stands beside the cause, and beside every other cause too."""


def signatures(text: str, limit: int = 8) -> tuple[str, ...]:
    """The distinct failures that a text tells of, in its order; of more than ``limit`` the first ones and the last two.

    Linear in the text, whatever it holds, and never raises. A signature has at most 160 characters, and at most 64 of them
    without a blank. Of a text without end, both ends are looked at.
    """
    if len(text) > 2 * _END:
        text = f"{text[:_END]}\n{text[-_END:]}"
    traced = "Traceback (most recent call last)" in text
    lines = text.split("\n")
    last = min(2, limit)
    first: dict[str, int] = {}
    for place, signature in _told(lines, traced):
        first.setdefault(signature, place)
        if len(first) > limit:
            break
    else:
        return tuple(first)
    ending: dict[str, int] = {}
    for place, signature in _told(lines, traced, backwards=True):
        ending.setdefault(signature, place)
        if len(ending) == last:
            break
    beginning = [signature for signature in first if signature not in ending]
    return (*beginning[: limit - len(ending)], *reversed(ending))


def first_failure(text: str) -> str:
    """The line, as it stands, that the first of `signatures` was made of; empty where a text tells of no failure."""
    lines = text[:_END].split("\n")
    for place, _ in _told(lines, "Traceback (most recent call last)" in text):
        return _CONTROL.sub("", lines[place][:_LINE]).strip()
    return ""


def normal(message: str) -> str:
    """What a message comes down to. A signature is normal already."""
    text = _CONTROL.sub(" ", message[: _LINE * 2])[:_LINE]
    for pattern, instead in _SURROUNDINGS:
        text = pattern.sub(instead, text)
    text = " ".join(text.split())
    if len(text) > _LENGTH:
        text = text[: _LENGTH + 1].rpartition(" ")[0]
    return text.strip(" ,;:.")


def _told(lines: Sequence[str], traced: bool, *, backwards: bool = False) -> Iterator[tuple[int, str]]:
    """Signatures, and the numbers of their lines. Where thousands of lines tell of failures, the first thousands do."""
    known: dict[str, str] = {}
    for place in range(len(lines) - 1, -1, -1) if backwards else range(len(lines)):
        line = lines[place]
        if len(line) < 4:
            continue
        for part in line[: 2 * _LINE].split("\r"):
            bare = (part if part.isprintable() else _CONTROL.sub("", part))[:_LINE]
            if not may_tell(bare):
                continue
            if len(known) >= _LOOKED_AT:
                return
            if bare not in known:
                known[bare] = _signature(bare, traced, lines[place + 1] if place + 1 < len(lines) else "")
            if known[bare]:
                yield place, known[bare]


def _signature(line: str, traced: bool, following: str) -> str:
    told = told_of(line, traced=traced, following=following[:_LINE])
    if told == PANICKED:
        said = following.strip()[:_LINE]
        told = f"panicked: {said}" if said else ""
    signature = normal(told) if told else ""
    return signature if _says_something(signature) else ""


def _says_something(signature: str) -> bool:
    bare = _PLACEHOLDER.sub("", signature)
    return len(bare) >= 8 and _WORD.search(bare) is not None and not _GENERIC.fullmatch(signature)


def _last_part(path: re.Match[str]) -> str:
    """Of what is a path: «linux/amd64» and «i/o» are not, and neither is a word with a point in it."""
    bare = _PLACED.sub("", path.group().rstrip(".")).rstrip("/\\")
    parts = re.split(r"[/\\]", bare)
    name = parts[-1]
    if len(parts) < 3 and parts[0].strip(".~") and name.rpartition(".")[2] not in _SUFFIXES:
        return path.group()
    return name if name.strip(".~") else "<path>"


def _inner(found: re.Match[str]) -> str:
    """Numbers within words go; those of an error's code stay."""
    return found.group() if _ERROR_CODE.fullmatch(found.group()) else _DIGITS.sub("<n>", found.group())


def _drawn(found: re.Match[str]) -> str:
    """Long names that people gave stay; what is drawn by chance does not."""
    text = found.group()
    if sum(char.isdigit() for char in text) >= 3 and any(char.isalpha() for char in text):
        return "<id>"
    return text if len(text) <= _TOKEN else text[: _TOKEN - 4] + "…"


def _number(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - 20) : found.start()]
    return found.group() if re.fullmatch(r"\d{1,3}", found.group()) and _CODED.search(before) else "<n>"


def _quoted(found: re.Match[str]) -> str:
    inner = next(group for group in found.groups() if group is not None)
    return "'<text>'" if len(inner) > _QUOTE_LENGTH or len(inner.split()) > _QUOTE_WORDS else f"'{inner}'"


_SURROUNDINGS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_URL, "<url>"),
    (_REMOTE, "<url>"),
    (_UUID, "<id>"),
    (_TIME, "<time>"),
    (_TEMPORARY, "<tmp>"),
    (_MAIL, "<mail>"),
    (_PATH, _last_part),
    (_ADDRESS, "<addr>"),
    (_HEX, "<hex>"),
    (_LONG, _drawn),
    (_NUMBER, _number),
    (_INNER, _inner),
    (_QUOTED, _quoted),
)
"""What of the surroundings stands in a message, and what stands for it afterwards; in this order."""
