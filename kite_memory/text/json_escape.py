"""How a value is spelled out in an answer; what is written is measured by it, for it must be answered whole."""

import json
import re

_TAG = re.compile(r"<(?=[/!?|\s]{0,8}[^\W\d]|!-)")


def written(value: object) -> str:
    """As JSON in which what reads as a tag, and what cannot be seen, is spelled out: the value is the same."""
    text = _TAG.sub(r"\\u003c", json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
    return text if text.isprintable() else "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
