"""Redacting takes time linear in the text, no matter who wrote it."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import kite_memory.redaction
from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.chance import FORMS
from kite_memory.redaction.vendors import VENDORS

parser: Any = importlib.import_module("re._parser")

LONGEST = 70_000
"""No repeat may be longer."""
DEEPEST = 4
"""No group that can be repeated in several ways may be repeated more often, unless what it took is not given back."""


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    for module in pkgutil.walk_packages(kite_memory.redaction.__path__, "kite_memory.redaction."):
        for name, value in vars(importlib.import_module(module.name)).items():
            values = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else (value,)
            for number, one in enumerate(values):
                for candidate in one if isinstance(one, tuple) else (one,):
                    if isinstance(candidate, re.Pattern):
                        yield f"{module.name}.{name}.{number}", candidate
    for number, form in enumerate(FORMS):
        yield f"form {number}", re.compile(form.pattern.pattern, re.MULTILINE)
    for vendor in VENDORS:
        yield f"{vendor.kind} {vendor.anchors[0]}", re.compile(vendor.body)
        yield f"{vendor.kind} {vendor.anchors[0]} lead", re.compile(vendor.lead)


PATTERNS = dict(patterns())


def repeats(parsed: Any) -> Iterator[tuple[str, int, int, Any]]:
    """Every repeat in an expression: how it gives back, its bounds, and what it repeats."""
    for operator, argument in parsed:
        name = str(operator)
        if name.endswith("REPEAT"):
            low, high, inside = argument
            yield name, int(low), int(high), inside
            yield from repeats(inside)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"):
            yield from repeats(argument[-1] if isinstance(argument, tuple) else argument)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from repeats(branch)


def test_all_patterns_are_looked_at() -> None:
    assert len(PATTERNS) > 2 * len(VENDORS)


def unbounded(pattern: re.Pattern[Any]) -> Iterator[str]:
    """The repeats in a pattern that may take more than linear time."""
    for kind, low, high, inside in repeats(parser.parse(pattern.pattern, pattern.flags)):
        ambiguous = any(inner != "POSSESSIVE_REPEAT" and most - least > 1 for inner, least, most, _ in repeats(inside))
        if high > LONGEST or (ambiguous and high - low > DEEPEST and not (kind == "POSSESSIVE_REPEAT" and high <= 256)):
            yield f"{kind} {low}..{high}"


def test_no_pattern_repeats_without_bound_or_in_too_many_ways() -> None:
    offenders = {name: wrong for name, pattern in PATTERNS.items() if (wrong := list(unbounded(pattern)))}

    assert offenders == {}


@pytest.mark.parametrize("pattern", ["a*", "(?:a|b){1,70001}", "(?:a{1,9}b?){1,9}"])
def test_a_pattern_that_may_be_slow_is_named(pattern: str) -> None:
    assert list(unbounded(re.compile(pattern)))


DASHES = "-" * 5
BEGIN = f"{DASHES}BEGIN PRIVATE KEY{DASHES}"
END = f"{DASHES}END PRIVATE KEY{DASHES}"
LINE = "MIIEvQIBADAN" + "BgkqhkiG9w0BAQ"

UNITS = {
    "letters": "a",
    "chance": "aB3",
    "lines": "aB3dE6gH\n",
    "padded lines": "aB3dE6gH \n ",
    "escaped lines": "aB3dE6gH\\n",
    "newlines": "\n",
    "quotes": '"',
    "backslashes": "\\",
    "spaces": " ",
    "dashes": "-",
    "headers of keys": BEGIN,
    "footers of keys": END,
    "keys without end": f"{BEGIN}\n{LINE}\n",
    "keys without beginning": f"{LINE}\n{END}",
    "names": "password=",
    "names with quotes": 'password: "',
    "names in lists": '"password", "x", ',
    "names in columns": "token\t",
    "names in tables": "token | ",
    "names in elements": "<password>",
    "names in sentences": "token a a a is ",
    "parts of names": "a-b-",
    "lists": 'token: ["a", ',
    "flags": "--a-b-c-d-token ",
    "cookies": "Cookie: a=b1c2d3e4f5; ",
    "authorizations": "Authorization: Bearer ",
    "addresses": "http://a:",
    "other addresses": "a://b:c",
    "escapes of addresses": "%41",
    "entities": "&lt;",
    "web tokens": "eyJaaaaaaaaaaa.",
    "hashes": "$6$a",
    "terminal escapes": "\x1b[",
    "terminal strings": "\x1b]",
    "invisible": "a\u200b",
    "full width": "ｐａｓｓｗｏｒｄ＝",
    "options": " -u a:",
    "commands": "mysql -pxyz1",
    "logins": "login a password ",
    "marks": "password=[redacted:password]",
    "private": "<private>",
    "private and not": "<private></private>",
    "base 64 of text": "VGhpcyBpcyBh",
    "hexadecimal": "6162636465666768",
    "slashes": "aB3dE6gH9jK2mN5pQ8sT1/",
    "anchors within": "+ASt",
    "labels": "password ",
    "labels in other scripts": "密码 ",
    "headers of columns": "password,x\n",
    "cells": "| password ",
    "lines of labels": "password:\n",
    "sentences": "log in with a / ",
    "codes": "the pin code for the a a is ",
    "credentials": "creds are a a a ",
    "fields of forms": '<input type="password" ',
    "lists of numbers": "104, ",
    "dumps": "00000000: 6768 705f 4142 4344  ghp_\n",
    "joined literals": '"a" + ',
    "base 32": "M5UHAX2BMJBUIRKG",
    "fields of addresses": "?code=a&",
    "secrets": "gh" + "p_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6 ",
}
SOME = 100_000
MUCH = 5_000_000


@pytest.mark.parametrize("name", UNITS)
def test_a_text_made_to_be_slow_is_done_with_in_time(name: str) -> None:
    text = UNITS[name] * (SOME // len(UNITS[name]))
    once = redact(text)

    assert redact(once) == once
    assert len(drop_private(text)) <= len(text)


@pytest.mark.moonshot
@pytest.mark.parametrize("name", UNITS)
def test_so_is_a_long_one(name: str) -> None:
    text = UNITS[name] * (MUCH // len(UNITS[name]))

    assert len(redact(drop_private(text))) >= 0


def test_so_is_one_full_of_beginnings_of_tokens() -> None:
    unstable: list[str] = []
    for anchor in sorted({anchor for vendor in VENDORS for anchor in vendor.anchors}):
        once = redact((anchor + "aB3dE6gH9jK2m") * (10_000 // (len(anchor) + 13)))
        if redact(once) != once:
            unstable.append(anchor)

    assert unstable == []
