"""Make the README's pictures from invented data: ``python -m bench.release.pictures [FOLDER]``.

Those of the page need Chromium and Playwright for Python, which the `dev` group has. `terminal.svg` plays a terminal
session that was really run, with its pauses shortened.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

from kite_memory.cli.everyday import leave_transcripts
from tests.cli.terminal import at_a_terminal
from tests.e2e.kmem import Machine
from tests.fakes.lived_in import lived_in, note_id
from tests.web.browsing import browser, served

DESK, PHONE = (1180, 800), (390, 844)
_PICTURES: tuple[tuple[str, str, tuple[int, int], str], ...] = (
    ("page-today", "", DESK, "light"),
    ("page-notes", "notes", DESK, "light"),
    ("page-note", f"note?name={note_id(0)}", DESK, "light"),
    ("page-timeline", "timeline", DESK, "light"),
    ("page-graph", "graph", DESK, "light"),
    ("page-said-dark", "said", DESK, "dark"),
    ("page-today-phone", "", PHONE, "light"),
)


_SESSION: tuple[tuple[str, ...], ...] = (
    ("up",),
    ("ask", "why do we always run the linter from the src folder?"),
    ("recall", "which database should the job queue migration target?"),
)
_STEERING = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_COLUMNS, _CELL, _LINE, _MARGIN = 88, 8.43, 19, 16
_TYPING, _READING = 1.2, 1.6


def _record(home: Path) -> Iterator[tuple[bool, str]]:
    """Run the session and yield its lines: whether a line was typed, and the line."""
    machine = Machine(home, environment={"KMEM_EXTRACTOR": "offline", "COLUMNS": str(_COLUMNS)}, usual_places=True)
    (home / "mycelia" / ".git").mkdir(parents=True)
    leave_transcripts(home / ".claude", home / "mycelia")
    try:
        for command in _SESSION:
            yield True, "$ kmem " + " ".join(f'"{word}"' if " " in word else word for word in command)
            ran = at_a_terminal(machine, list(command), typed=[("[Y/n", b"\n")])
            for line in ran.screen.rstrip("\n").split("\n"):
                shown = _STEERING.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip()
                for start in range(0, max(1, len(shown)), _COLUMNS):
                    yield False, shown[start : start + _COLUMNS]
            yield False, ""
    finally:
        machine.kmem("down")


def _drawn(lines: list[tuple[bool, str]]) -> str:
    """Return an SVG in which the lines appear one after another. Without animation all are there."""
    rows, at = [], 0.0
    for number, (typed, line) in enumerate(lines):
        y = _MARGIN + _LINE * (number + 1)
        style = f' style="animation-delay:{at:.2f}s"'
        rows.append(f'<text class="{"typed" if typed else "said"}" x="{_MARGIN}" y="{y}"{style}>{escape(line)}</text>')
        at += _TYPING if typed else _READING if not line else 0.05
    width, height = round(_COLUMNS * _CELL + 2 * _MARGIN), _LINE * len(lines) + 2 * _MARGIN
    return _SVG.format(width=width, height=height, rows="\n".join(rows))


_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>kmem up, search and recall in a terminal</title>
<style>
text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; fill: #d8dee9 }}
.typed {{ fill: #a3d99b; font-weight: bold }}
@media (prefers-reduced-motion: no-preference) {{ text {{ animation: appear .01s backwards }} }}
@keyframes appear {{ from {{ opacity: 0 }} }}
</style>
<rect width="100%" height="100%" rx="8" fill="#1f242d"/>
{rows}
</svg>
"""


def main() -> None:
    os.environ["TZ"] = (
        f"UTC{(datetime.now(UTC).hour - 17 + 36) % 24 - 12:+d}"  # late in the afternoon, so that the day has something to tell
    )
    time.tzset()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kmem-terminal-") as home:
        file = folder / "terminal.svg"
        file.write_text(_drawn(list(_record(Path(home)))), encoding="utf-8")
        print(f"{file.stat().st_size // 1024:5} kB  {file}")
    with (
        tempfile.TemporaryDirectory(prefix="kmem-pictures-") as home,
        lived_in(Path(home), datetime.now(UTC)) as services,
        served(services) as link,
        browser() as opened,
    ):
        for name, page, (width, height), scheme in _PICTURES:
            context = opened.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            tab = context.new_page()
            tab.goto(link)
            tab.wait_for_url("**/")
            tab.goto(f"{tab.url}{page}")
            file = folder / f"{name}.png"
            tab.screenshot(path=file)
            print(f"{file.stat().st_size // 1024:5} kB  {file}")
            context.close()


if __name__ == "__main__":
    main()
