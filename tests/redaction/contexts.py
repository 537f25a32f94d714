"""Where secrets are met: ten ways to write one down, and whether any of it is left after redaction."""

import base64
import binascii
import json
import random
import re
from collections.abc import Callable
from urllib.parse import quote

from tests.redaction.kinds_of_secrets import Kind

Context = Callable[[Kind, random.Random], tuple[str, str]]
"""Yields the secret and a text with it."""

LEFT = 8
"""So many characters of a secret in a row are a leak."""


def _written(kind: Kind, rng: random.Random) -> tuple[str, str]:
    """As a settings file has it."""
    secret, text = kind.make(rng)
    if kind.named:
        return secret, f"{kind.named}={secret}"
    return secret, f"ORCHARD_VALUE={text}" if text == secret else text


def assignment(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = _written(kind, rng)
    return secret, f"# settings of the orchard\n{text}\nORCHARD_REGION=eu\n"


def json_document(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = kind.make(rng)
    return secret, json.dumps({"id": 7, kind.named.lower() or "note": text, "region": "eu"})


def header(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = kind.make(rng)
    name = kind.named.title().replace("_", "-") or "Client-Ref"
    lines = f"X-{name}: {text}" if text == secret else text
    return secret, "> GET /v1/trees HTTP/2\n> Host: api.example\n" + "".join(f"> {line}\n" for line in lines.split("\n")) + "> \n"


def url(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = kind.make(rng)
    return secret, f"GET https://api.example/v1/trees?{kind.named.lower() or 'ref'}={quote(text, safe='')}&page=2 -> 200"


def prose(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = kind.make(rng)
    if kind.named:
        return secret, f"For now the {kind.named} is {secret}, please rotate it when the trees are in."
    if "\n" in text:
        return secret, f"This is what I have here:\n\n{text}\n\nIs that wrong?"
    return secret, f"I wrote {text} into the form yesterday, was that wrong?"


def coloured(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = _written(kind, rng)
    cut = rng.randrange(1, len(secret))
    painted = f"\x1b[32m{secret[:cut]}\x1b[1;33m{secret[cut:]}\x1b[0m"
    return secret, "\x1b[2m$ env\x1b[0m\n" + text.replace(secret, painted) + "\nORCHARD_REGION=eu\n"


BREAKS = ("\n", "\\\n", "\\\n    ", "\n    ", "\n  ", "\r\n", "\\n", " \n ", " │\n│ ", "\n> ", "\n    12→")


def wrapped(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = _written(kind, rng)
    cut = rng.randrange(1, len(secret))
    return secret, "$ cat notes\n" + text.replace(secret, secret[:cut] + rng.choice(BREAKS) + secret[cut:]) + "\n$ \n"


def encoded(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = _written(kind, rng)
    return secret, f"echo {base64.b64encode(text.encode()).decode()} | base64 -d"


def zero_width(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = _written(kind, rng)
    hidden = secret
    for _ in range(3):
        cut = rng.randrange(1, len(hidden))
        hidden = hidden[:cut] + rng.choice("\u200b\u200c\u200d\u2060\ufeff\u00ad") + hidden[cut:]
    return secret, text.replace(secret, hidden) + "\n"


def tool_output(kind: Kind, rng: random.Random) -> tuple[str, str]:
    secret, text = _written(kind, rng)
    lines = ["#!/bin/sh", "set -eu", *text.split("\n"), "exec fruitctl serve"]
    return secret, "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))


PLAIN: dict[str, Context] = {
    "assignment": assignment,
    "json": json_document,
    "header": header,
    "url": url,
    "prose": prose,
    "tool output": tool_output,
}
HOSTILE: dict[str, Context] = {"coloured": coloured, "wrapped": wrapped, "base64": encoded, "zero-width": zero_width}
CONTEXTS: dict[str, Context] = {**PLAIN, **HOSTILE}

_NOISE = re.compile(r"\\n|\d+→|\x1b\[[0-9;]*m|[\s\\│>\u200b-\u200d\u2060\ufeff\u00ad]")


def left_of(secret: str, text: str) -> str:
    """A piece of ``secret`` that can still be read in ``text``, however it is written; empty if it cannot."""
    text = re.sub(r"\[redacted:[a-z0-9-]+\]", "[…]", text)
    readings = [text, _NOISE.sub("", text)]
    for run in re.findall(r"[A-Za-z0-9+/_-]{12,}={0,2}", text):
        try:
            readings.append(base64.b64decode(run.rstrip("=") + "=" * (-len(run.rstrip("=")) % 4), altchars=b"-_").decode("ascii"))
        except (binascii.Error, UnicodeDecodeError):
            continue
    for start in range(max(1, len(secret) - LEFT + 1)):
        piece = secret[start : start + LEFT]
        if any(piece in reading for reading in readings):
            return piece
    return ""
