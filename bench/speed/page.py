"""How long the page's own pages take over many notes: ``python -m bench.speed.page [NOTES]``, 10,000 unless said."""

import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kite_memory.model.note import Note, NoteKind
from kite_memory.vault.notefile import render
from tests.fakes.lived_in import lived_in, note_id
from tests.web.browsing import Site, served

_TIMES = 7
_PAGES = (
    "/", "/notes", "/notes?page=150", "/notes?kind=fact&project=grove", "/note?name=grove-77", "/review",
    "/timeline", "/graph", "/graph?name=grove-hub-7", "/said",
)  # fmt: skip


def main() -> None:
    notes = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory(prefix="kmem-page-") as home, lived_in(Path(home), datetime.now(UTC)) as services:
        began = time.perf_counter()
        _plant(services.vault.root, notes)
        services.vault.scanner.compare()  # without vectors: searching is measured in `bench.speed.scale`
        print(f"{notes:,} notes planted and compared in {time.perf_counter() - began:.0f} s\n")
        print(f"{'page':34} {'first':>9} {'median':>9} {'size':>8}")
        with served(services) as link:
            site = Site(link)
            for page in _PAGES:
                took: list[float] = []
                for _ in range(_TIMES):
                    began = time.perf_counter()
                    answer = site.get(page)
                    took.append((time.perf_counter() - began) * 1_000)
                print(f"{page:34} {took[0]:6.0f} ms {statistics.median(took):6.0f} ms {len(answer.text) // 1024:5} kB")


def _plant(vault: Path, notes: int) -> None:
    folder = vault / "projects"
    for number in range(notes):
        hub = number % 100 == 0
        path = f"projects/grove-{'hub-' if hub else ''}{number // 100 if hub else number}.md"
        at = datetime.now(UTC) - timedelta(hours=number)
        body = f"Pear tree {number} stands in row {number % 90}. See [[grove-hub-{number % (notes // 100 or 1)}]]."
        note = Note(
            id=note_id(1_000 + number), path=path, kind=NoteKind.FACT, title=f"Pear tree {number}", body=body, project="grove",
            created=at, updated=at,
        )  # fmt: skip
        (folder / Path(path).name).write_text(render(note), encoding="utf-8")


if __name__ == "__main__":
    main()
