"""Private keys, whole and cut."""

import json
import random
import string
from collections.abc import Callable

import pytest

from kite_memory.redaction import redact

DASHES = "-" * 5
BASE64 = string.ascii_letters + string.digits + "+/"


def key(label: str, lines: int = 12, seed: int = 0) -> tuple[list[str], str]:
    rng = random.Random(f"{label}/{seed}")
    body = ["".join(rng.choices(BASE64, k=64)) for _ in range(lines)] + ["".join(rng.choices(BASE64, k=22)) + "=="]
    return body, "\n".join([f"{DASHES}BEGIN {label}{DASHES}", *body, f"{DASHES}END {label}{DASHES}"])


LABELS = [
    *("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
]


@pytest.mark.parametrize("label", LABELS)
def test_a_key_goes_whole_and_what_is_around_it_stays(label: str) -> None:
    _, text = key(label)

    assert redact(f"before\n{text}\nafter") == "before\n[redacted:private-key]\nafter"


WAYS: dict[str, Callable[[str], str]] = {
    "in a json string": lambda text: json.dumps({"key": text}),
    "numbered": lambda text: "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1)),
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
    "indented": lambda text: "\n".join(f"      {line}" for line in text.split("\n")),
    "added in a diff": lambda text: "\n".join(f"+{line}" for line in text.split("\n")),
    "in one line": lambda text: text.replace("\n", " "),
    "with escapes": lambda text: text.replace("\n", "\\n"),
    "with carriage returns": lambda text: text.replace("\n", "\r\n"),
    "with headers": lambda text: text.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n", 1),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cut", ["", "footer", "header"])
def test_no_line_of_it_is_left_however_it_is_written_or_cut(way: str, cut: str) -> None:
    body, text = key("RSA PRIVATE KEY")
    if cut == "footer":
        text = text.rpartition("\n")[0]
    elif cut == "header":
        if way == "with headers":
            pytest.skip("the headers are cut off with it")
        text = "\n".join(text.split("\n")[3:])
        body = body[2:]

    out = redact(WAYS[way](text))

    assert [line for line in body if line[:16] in out or line[-16:] in out] == []


def test_a_cut_key_ends_where_its_base_64_ends() -> None:
    _, text = key("PRIVATE KEY", lines=3)
    cut = "\n".join(text.split("\n")[:3])

    assert redact(f"{cut}\n\nThe pears are ripe.") == "[redacted:private-key]\n\nThe pears are ripe."


def test_two_keys_are_two() -> None:
    (_, first), (_, second) = key("PRIVATE KEY", seed=1), key("EC PRIVATE KEY", seed=2)

    assert redact(f"{first}\nand\n{second}") == "[redacted:private-key]\nand\n[redacted:private-key]"


def test_a_web_key_loses_what_is_private_in_it() -> None:
    rng = random.Random("jwk")
    private, public = ("".join(rng.choices(string.ascii_letters + string.digits + "-_", k=43)) for _ in range(2))
    text = json.dumps({"kty": "EC", "crv": "P-256", "use": "sig", "d": private})

    assert private not in redact(text)
    assert '"crv": "P-256"' in redact(text)
    assert public not in text
