"""How words are cleaned before they are written, and what makes two wordings the same."""

import hashlib
import re
import unicodedata

_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufeff\ufffe\uffff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_HIDDEN = re.compile("[\u00ad\u200b\u200e\u200f\u2060-\u2064\u2066-\u206f\u202a-\u202e\U000e0000-\U000e007f]")
_WORD = re.compile(r"[\w+#]+")
_RELATED = re.compile(r"^\*\*Related:\*\*.*$", re.MULTILINE)
_CALLOUT = re.compile(r"^> ?\[!\w{1,20}\][+-]? ?", re.MULTILINE)
_LINK = re.compile(r"!?\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")


def text_block(text: str) -> str:
    """Markdown as we write it: LF, no control characters, no lone surrogates, nothing blank around it. Idempotent."""
    text = _SURROGATE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _UNWRITABLE.sub("", text).rstrip()
    start = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, start) + 1 :]  # from the start of its first line: an indent is part of the text


def one_line(text: str) -> str:
    """For titles, tags and other properties: every run of blanks and line breaks is one space. Idempotent."""
    spaced = " ".join(_SURROGATE.sub("\ufffd", text).split())
    return " ".join(_UNWRITABLE.sub("", spaced).split())


def without_hidden(text: str) -> str:
    """Drop what a model sees and a person doesn't: zero-width, direction and tag characters. Joiners of emoji and scripts stay."""
    return _HIDDEN.sub("", text)


def shortened(text: str, limit: int) -> str:
    """At most ``limit`` characters, cut between words where there is one to cut between."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    head, space, _ = cut.rpartition(" ")
    return (head if space and len(head) > limit // 2 else cut).rstrip() + "…"


def title_key(text: str) -> str:
    """Equal for titles that differ in case, punctuation or the way their characters are composed."""
    folded = unicodedata.normalize("NFKC", one_line(text)).casefold()
    return " ".join(_WORD.findall(folded)) or folded


def entity_key(name: str) -> str:
    """Equal for two spellings of one entity; punctuation counts, since C, C++ and C# are three."""
    return unicodedata.normalize("NFKC", one_line(name)).casefold().strip(" `'\"")


def stem_key(stem: str) -> str:
    """Equal for file names that some file system takes for one: compared without case, composed."""
    if stem.isascii():
        return stem.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", stem).casefold())


def words(text: str) -> frozenset[str]:
    """The words that say something; links count as what they show, and the line of related notes not at all."""
    plain = _LINK.sub(r"\1", _CALLOUT.sub("", _RELATED.sub("", text)))
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", plain).casefold()))


def body_key(text: str) -> str:
    """Equal for bodies that say the same words in the same order, linked or not."""
    plain = _LINK.sub(r"\1", _CALLOUT.sub("", _RELATED.sub("", text)))
    said = " ".join(_WORD.findall(unicodedata.normalize("NFKC", plain).casefold()))
    return hashlib.sha256(said.encode()).hexdigest()[:32] if said else ""


def digest(text: str | bytes) -> str:
    """How the ledger remembers a body or a file."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()
