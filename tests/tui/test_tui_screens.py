"""What is seen, character for character, at the least and at a comfortable size.

`python -m tests.tui.test_tui_screens` writes the screens anew; look at what changed.
"""

import asyncio
import html
import re
from collections import defaultdict
from pathlib import Path

import pytest

from kite_memory.tui.app import TimelineApp
from tests.tui.test_tui_app import Past, settled

FOLDER = Path(__file__).with_name("screens")
SIZES = ((80, 24), (160, 48))
STEPS = {
    "list": (),
    "session": ("enter",),
    "unfolded": ("enter", "down", "enter"),
    "failures": ("enter", "v", "v"),
    "searching": ("enter", "slash", *"pytest"),
    "filtered": ("slash", *"meadow"),
    "note": ("enter", "n", "n"),
    "brief": ("r",),
    "keys": ("question_mark",),
}
_TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="[\d.]+" textLength="[\d.]+" clip-path="url\(#[^)]*line-(\d+)\)">([^<]*)<')
_WIDE = 12.2


def characters(svg: str) -> str:
    """Of Textual's own screenshot: each text has its place in columns of a fixed width."""
    lines: dict[int, list[str]] = defaultdict(list)
    for x, line, text in _TEXT.findall(svg):
        row = lines[int(line)]
        said = html.unescape(text).replace("\xa0", " ")
        column = round(float(x) / _WIDE)
        row.extend(" " * (column - len(row)))
        row[column : column + len(said)] = said
    return "".join("".join(lines[number]).rstrip() + "\n" for number in range(max(lines) + 1))


def seen(keys: tuple[str, ...], size: tuple[int, int]) -> str:
    past = Past()

    async def run() -> str:
        app = TimelineApp(sessions=past.sessions, pieces=past.pieces, note=past.note, brief=past.brief, became=past.became)
        async with app.run_test(size=size) as pilot:
            await settled(app, pilot)
            for key in keys:
                await pilot.press(key)
                await settled(app, pilot)
            return characters(app.export_screenshot())

    return asyncio.run(run())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", STEPS)
def test_the_screen_is_as_it_was_looked_at(name: str, size: tuple[int, int]) -> None:
    result = seen(STEPS[name], size)

    assert result == (FOLDER / f"{name}-{size[0]}x{size[1]}.txt").read_text(encoding="utf-8")
    assert max(map(len, result.splitlines())) <= size[0]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, keys in STEPS.items():
        for size in SIZES:
            (FOLDER / f"{name}-{size[0]}x{size[1]}.txt").write_text(seen(keys, size), encoding="utf-8")
