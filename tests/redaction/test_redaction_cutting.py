"""Where a long text is cut: never through what may be a secret, never behind its name, and losing next to nothing else."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.redaction import redact
from kite_memory.redaction.cutting import beginning, ends

KEY = "QmFzZTY0IG9mIGEga2V5IHRoYXQgbm9ib2R5IG93bnMu"
PROSE = "The pears are grafted in spring, and the ladders lie in the shed. " * 200
TEXTS = st.lists(
    st.sampled_from((KEY, KEY[:9], "pears ", "in the shed", " ", "\n", "\\n", "\n    12→", " │\n│ ", "\x1b[32m", '":"', "é"))
).map("".join)


@given(TEXTS, st.integers(0, 200))
def test_a_beginning_is_one_and_goes_through_no_word(text: str, limit: int) -> None:
    kept = beginning(text, limit)

    if len(text) <= limit:
        assert kept == text
    else:
        assert text.startswith(kept)
        assert len(kept) <= limit
        assert not (re.search(r"(?<!\\)[\w+/=-]\Z", kept) and re.match(r"[\w+/=-]", text[len(kept) :]))


@given(TEXTS, st.integers(0, 100), st.integers(0, 100))
def test_ends_are_ends_and_go_through_no_word(text: str, first: int, last: int) -> None:
    text += "." * max(0, first + last + 1 - len(text))

    head, tail = ends(text, first, last)

    assert text.startswith(head) and text.endswith(tail)
    assert len(head) <= first and len(tail) <= last
    between = text[len(head) : len(text) - len(tail)]
    assert not (re.search(r"(?<!\\)[\w+/=-]\Z", head) and re.match(r"[\w+/=-]", between))
    assert not (re.search(r"(?<!\\)[\w+/=-]\Z", between) and re.match(r"[\w+/=-]", tail))


def test_a_text_that_is_short_enough_stays_as_it_is() -> None:
    assert beginning("pears ", 6) == "pears "


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "".join(f"kite_memory/pears/shed_{letter}.py\n" for letter in "abcdefghij") * 40,
        "\n".join(["    def graft(self):"] * 500),
    ],
    ids=["prose", "a list of files", "code"],
)
def test_of_plain_text_nearly_all_is_kept(text: str) -> None:
    head, tail = ends(text, 2_400, 1_600)

    assert len(head) > 2_340
    assert len(tail) > 1_500


def pieces_in(text: str) -> int:
    return sum(KEY[start : start + 8] in text for start in range(len(KEY) - 7))


@pytest.mark.parametrize("at", range(10, 10 + len(KEY) + 30, 7))
@pytest.mark.parametrize(
    "secret",
    [
        f'"api_key": "{KEY}"',
        f"PASSWORD={KEY}",
        f"token: {KEY[:20]}\n    {KEY[20:]}",
        f"    11→token: {KEY[:20]}\n    12→{KEY[20:]}",
        f"token: {KEY[:20]}\x1b[1;32m{KEY[20:]}",
        f"token: {KEY[:20]}\\u001b[1;32m{KEY[20:]}",
        f"token: {KEY[:20]}\\n{KEY[20:]}",
    ],
)
def test_a_cut_beside_a_secret_leaves_neither_half_of_it_nor_the_whole_without_its_name(secret: str, at: int) -> None:
    text = f"{PROSE}{secret} {PROSE}"
    here = len(PROSE) + at

    head, _ = ends(text, here, 100)
    _, tail = ends(text, 100, len(text) - here)

    assert pieces_in(tail) == 0
    assert pieces_in(re.sub(r"\s+(?:12→)?|\\n|(?:\x1b|\\u001b)\[[\d;]*m", "", head)) in (0, len(KEY) - 7)


def test_where_secrets_stand_in_a_row_the_search_for_a_place_ends() -> None:
    text = "".join(f"PASSWORD_{number}=pear-{number}-in-the-shed\n" for number in range(4_000))

    head, tail = ends(text, 30_000, 20_000)

    assert text.startswith(head)
    assert text.endswith(tail)
    assert "in-the-shed" not in redact(f"{head}\n…\n{tail}")


def test_rows_of_frames_and_padding_are_cut_like_any_text() -> None:
    rows = ("\n" + " " * 120) * 60 + "\n" + "│ " * 400 + "\\" * 900

    head, tail = ends(f"pears {rows} plums {rows} end", 1_000, 1_000)

    assert head.startswith("pears")
    assert tail.endswith("end")


def test_of_a_list_of_digests_nearly_all_is_kept() -> None:
    text = "".join(f"{number:040x}\n" for number in range(10**30, 10**30 + 400))

    assert all(len(end) > 1_800 for end in ends(text, 2_000, 2_000))


def test_of_lines_of_a_key_none_is_kept() -> None:
    key = f"{KEY}\n" * 40
    text = f"Here it is:\n{key}"

    assert beginning(text, 500) == "Here it"
    assert ends(text + "\n" + PROSE, 500, len(PROSE) + 600) == ("Here it ", "\n" + PROSE)


def test_a_password_known_by_its_line_goes_wherever_the_line_is_cut() -> None:
    chance = random.Random(2)
    words = ("the orchard", "has trees", "in spring,", "that are grafted")
    left = []
    for _ in range(1_200):
        before = " ".join(chance.choices(words, k=chance.randrange(8, 60)))
        text = f"{before}, echo 'meadowpebble10' | sudo -S apt update\n{' '.join(chance.choices(words, k=40))}"
        cut = text.index("echo") + chance.randrange(48)
        if "meadowpebble" in redact("\n[…]\n".join(ends(text, cut, 60))):
            left.append((before, cut))

    assert left == []


def test_a_part_of_a_long_text_is_compared_as_part_of_one() -> None:
    """In a short text more words are weighed: the part behind the cut, looked at alone, would lose what the whole keeps."""
    setting = 'variable "db_password" {\n  type = string\n  default = "summer-copper-98"\n}\n'
    around = '"kinds":["a","b"],"ripe":true,"size":12,"at":{"x":1},"name":"pear",' * 60
    text = f"{around}\n{setting}{around}"
    assert "summer-copper-98" not in redact(text)

    for cut in range(len(setting)):
        last = len(setting) + len(around) - cut
        assert "summer-copper-98" not in redact("\n[…]\n".join(ends(text, 2_400, last))), cut
