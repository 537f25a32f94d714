"""Text of people and agents: cleaning, division into sentences, and comparison by words."""

import re

_TELLING = re.compile(
    r"error|fail|panic|exception|traceback|fatal|cannot|can't|could not|unable|not found|no such|undefined|unexpected|expected"
    r"|assert|denied|refused|invalid|missing|timed? ?out|conflict|killed|warning: |exit code|rejected|✗|✘|❌",
    re.IGNORECASE,
)
_RULE = re.compile(r"^[\s=\-_*#~.+|·─━═]*$")
_READ = 12_000
"""Characters of an output that are read, from its beginning and its end."""


def bounded(text: str, limit: int) -> str:
    """Return the beginning and the end of a text that may be huge, so that all further work is cheap."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return text[: limit - tail] + "\n…\n" + text[-tail:]


def key_lines(text: str, limit: int, *, lines: int = 6) -> str:
    """Return at most ``lines`` lines and ``limit`` characters of an output, lines that name an error first, joined by `` / ``.

    If no line does, the first and last lines.
    """
    rows = [row.strip() for row in clean(bounded(text, _READ)).split("\n")]
    rows = [clip(row, max(40, limit // 2)) for row in rows if row and not _RULE.match(row[:200])]
    chosen = [at for at, row in enumerate(rows) if _TELLING.search(row)][:lines]
    if not chosen:
        chosen = list(range(min(2, len(rows)))) + list(range(max(2, len(rows) - 2), len(rows)))
    distinct = list(dict.fromkeys(rows[at] for at in sorted(chosen)))
    return clip(" / ".join(distinct), limit)


_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,16}[ -/]{0,4}[@-~]")
_BREAK = re.compile(r"[.!?…][\"')\]*`_]{0,4}\s+(?=[\"'(\[*`_]{0,4}[A-Z0-9`/])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|etc|cf|approx|resp|incl|fig|al|dr|mr|ms|st)|\b[A-Za-z]|^\s*\d{1,3})\.$", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    re.findall(
        "[a-z]+",
        """
        about above after again against also although always another any are aren because been before being below
        between both but can cannot could did didn does doesn doing don done down during each either else even ever
        every few for from further get gets got had has have having here how however into isn its itself just let like
        made make makes many may might more most much must need needs never new non not now off once one only other
        our out over own per rather really same see shall should since some still such sure take than that the their
        them then there these they thing things this those though through thus too two under until use used uses using
        very via want was way well were what when where whether which while who whom whose why will with within
        without would yes yet you your all and
        """,
    )
)


def clean(text: str) -> str:
    """Remove terminal colours, control and invisible characters, and lone surrogates; lines end in ``\\n``."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def clip(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, cut between words if possible, with an ellipsis."""
    if len(text) <= limit:
        return text
    if limit < 1:
        return ""
    cut = text[: limit - 1]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return (cut[:space] if space > limit // 2 else cut).rstrip(" \n,;:-–—") + "…"


def sentences(block: str) -> list[str]:
    """Return the sentences of one paragraph or list item; a dot inside a name, a number or an abbreviation does not end one."""
    text = " ".join(block.split())
    found: list[str] = []
    start, counted, ticks = 0, 0, 0
    for match in _BREAK.finditer(text):
        ticks += text.count("`", counted, match.start())
        counted = match.start()
        if ticks % 2:
            continue  # within code
        if text[match.start()] == "." and _ABBREVIATION.search(text[max(start, match.start() - 12) : match.start() + 1]):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    if rest := text[start:].strip():
        found.append(rest)
    return found


def stems(text: str) -> frozenset[str]:
    """Return the meaningful words, cut to their first six letters so that ``locks`` matches ``locked``.

    Identifiers are split into their parts (``retryAfter`` and ``retry_after`` share both words), and scripts without blanks between
    words into pairs of characters.
    """
    found: set[str] = set()
    for match in _WORD.finditer(_HUMP.sub(" ", text)):
        word = match.group().lower()
        if _UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) >= 3 and word not in _STOP:
            found.add(word[:6])
    return frozenset(found)


def stems_in_order(text: str) -> dict[str, list[int]]:
    """Return the `stems` of a text, each with the positions of its words."""
    found: dict[str, list[int]] = {}
    for place, match in enumerate(_WORD.finditer(_HUMP.sub(" ", text))):
        word = match.group().lower()
        if _UNSPACED.search(word):
            for at in range(len(word) - 1):
                found.setdefault(word[at : at + 2], []).append(place)
        elif len(word) >= 3 and word not in _STOP:
            found.setdefault(word[:6], []).append(place)
    return found


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
