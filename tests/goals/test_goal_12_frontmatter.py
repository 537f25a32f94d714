"""Goal 12: frontmatter that anybody may have written costs next to nothing to read, and never the body.

`tests/vault/test_vault_properties.py` says what each bomb is refused for.
"""

import random
import time
import tracemalloc
from datetime import UTC, datetime

import pytest
import yaml

from kite_memory.model.note import Note, NoteStatus
from kite_memory.vault import notefile
from kite_memory.vault.notefile import UnreadableNote, body_of, parse, with_properties
from tests.counts import how_many
from tests.vault.test_vault_properties import BOMBS, HOSTILE

FUZZED = how_many(5_000)
MOST_BYTES = 5_000_000
MOST_SECONDS = 0.05
BODY = "The pears are ripe.\n\n---\nid: not-mine\n---\n\nAnd the apples: too."
AT = datetime(2026, 3, 1, tzinfo=UTC)

_TOKENS = (
    "id: ", "kind: ", "title: ", "tags: ", "aliases: ", "status: ", "evidence: ", "created: ", "importance: ", "a: ", "? ", "- ",
    ": ",
    "[", "]", "{", "}", ", ", "\n", "\n  ", "\n- ", "|\n ", ">\n ", "|-9\n", "&a ", "*a", "<<: *a", "!!python/name:os.system ",
    "!x ", "!!binary ", '"', "'", "#", " # x", "%YAML 9.9\n", "@", "`", "\t", "\0", "\x07", "\x85", "\u2028", "\ufeff", "...", "~",
    "\ud800", "0o17", "1:59:59", "9" * 40, "x" * 400, "[[a]]", "2026-02-30", "--- ", "0x", ".inf", "\\", "\\u0000", "\r",
)  # fmt: skip


def fuzzed(number: int) -> str:
    chance = random.Random(f"frontmatter {number}")
    parts = chance.choices((*_TOKENS, *HOSTILE), k=chance.randrange(1, 40))
    if number % 7 == 0:
        parts *= chance.randrange(2, 30)
    return "".join(parts).replace("\n---", "\n --")


def read(front: str) -> tuple[Note | UnreadableNote, float]:
    """The note, and how long the processor had to do with it; what others have it do at the time is not counted."""
    text = f"---\n{front}\n---\n{BODY}\n"
    began = time.process_time()
    note = parse(text, "facts/x.md", created=AT, updated=AT)
    return note, time.process_time() - began


def wrong(front: str, *, measured: bool = False) -> str:
    """What is not as it should be, if anything."""
    text = f"---\n{front}\n---\n{BODY}\n"
    if measured:
        tracemalloc.start()
    try:
        note, took = read(front)
        peak = tracemalloc.get_traced_memory()[1] if measured else 0
    finally:
        tracemalloc.stop()
    if BODY not in note.body:
        return "the body is lost"
    if peak > MOST_BYTES:
        return f"{peak:,} bytes"
    if not measured and took > MOST_SECONDS and min(read(front)[1] for _ in range(3)) > MOST_SECONDS:
        return f"{took * 1000:.0f} ms"
    changed = with_properties(text, {"status": NoteStatus.MUTED.value})
    if changed is not None and body_of(changed) != body_of(text):
        return "a change of ours loses the body"
    return ""


def test_whatever_stands_there_is_read_in_a_moment_and_the_body_is_kept() -> None:
    assert [f"{number}: {found}" for number in range(FUZZED) if (found := wrong(fuzzed(number)))] == []


def test_whatever_stands_there_takes_little_room() -> None:
    assert [f"{number}: {found}" for number in range(0, FUZZED, 10) if (found := wrong(fuzzed(number), measured=True))] == []


@pytest.mark.parametrize("name", BOMBS)
def test_no_bomb_goes_off(name: str) -> None:
    assert (wrong(BOMBS[name]), wrong(BOMBS[name], measured=True)) == ("", "")


def test_there_are_sixteen_bombs_and_more() -> None:
    assert len(BOMBS) >= 16


def test_control_an_ordinary_reader_of_yaml_is_hurt(monkeypatch: pytest.MonkeyPatch) -> None:
    def believing(front: str) -> object:
        try:
            return yaml.safe_load(front)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise notefile.InvalidFrontmatter("not YAML") from error

    monkeypatch.setattr(notefile, "load", believing)
    bomb = "a: &a [x]\n" + "\n".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]" for n in range(5))
    deep = "a: " + "[" * 30_000

    hurt = []
    for front in (bomb, deep, "a: 1" + ":59" * 20_000, *(BOMBS[name] for name in ("many values", "a list", "one huge text"))):
        try:
            hurt.append(wrong(front) or wrong(front, measured=True))
        except (AttributeError, TypeError, RecursionError, MemoryError) as error:
            hurt.append(type(error).__name__)

    assert any(hurt)
