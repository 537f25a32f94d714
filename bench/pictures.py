"""Take the README's pictures of the page, from an invented memory: ``python -m bench.pictures [FOLDER]``.

Needs Chromium and Playwright for Python, which the `dev` group has.
"""

import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

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


def main() -> None:
    os.environ["TZ"] = (
        f"UTC{(datetime.now(UTC).hour - 17 + 36) % 24 - 12:+d}"  # late in the afternoon, so that the day has something to tell
    )
    time.tzset()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
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
