"""What is invisible, taken out; what only looks different, made the same."""

import re
import unicodedata

_ESCAPES = re.compile(
    "\x1b(?:\\[[0-?]{0,64}[ -/]{0,8}[@-~]?|[\\]PX^_](?:[^\x07\x1b]{0,4096}(?:\x07|\x1b\\\\))?|[ -/]{1,4}[0-~]?"
    "|[0-Z\\\\^_`a-z{|}~])?"
    "|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]?"
)
"""ECMA-48: control sequences, strings (window titles, links), and whatever else begins with ESC."""
_HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f"
)
_WIDE = "\uff01-\uff5e\U0001d400-\U0001d7ff"
_SEEN = f"\\t\\n\\r\\x20-\\x7e{_WIDE}"
_INVISIBLE = re.compile(f"[{_HIDDEN}](?<=[{_SEEN}].)[{_HIDDEN}]{{0,65536}}+(?=[{_SEEN}])", re.DOTALL)
"""Between characters that it does not join: a joiner within an emoji or a word of another script means something."""
_CONTROLS = bytes([*range(9), *range(14, 32), 127])
_FOLDABLE = re.compile("[\uff0d\uff0f-\uff1a\uff1c-\uff1e\uff20-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff]")


def _folds() -> dict[int, str]:
    codes = [*range(0xFF01, 0xFF5F), *range(0x1D400, 0x1D800)]
    folded = {code: unicodedata.normalize("NFKC", chr(code)) for code in codes}
    return {code: plain for code, plain in folded.items() if len(plain) == 1 and plain.isascii()}


_FOLDS = _folds()


def clean(text: str) -> str:
    """``text`` without terminal escapes and without invisible characters between plain ones; nothing more to do the second time."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if text.isascii() and len(text.encode().translate(None, _CONTROLS)) == len(text):
        return text
    return _INVISIBLE.sub("", text)


def bare(text: str) -> bytes:
    """``text`` in ASCII, character for character: full-width and mathematical letters as plain ones, ``?`` for what has no like."""
    if not text.isascii() and _FOLDABLE.search(text):
        text = text.translate(_FOLDS)
    return text.encode("ascii", "replace")
