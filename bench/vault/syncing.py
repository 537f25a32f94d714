"""How long an exchange takes between two machines with many notes, when little has changed and at first.

    python -m bench.vault.syncing [--notes 10000] [--events 20000]

Notes and events are invented. Both machines are folders of this one, so the time of the sync tool or of the network is not in it.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.sync.homes import Home, homes, said, session_of

_SESSION = session_of("1")


def fill(home: Home, notes: int, events: int) -> None:
    """Write notes as a person does, in an editor, and read events of one session."""
    folder = home.vault / "facts"
    folder.mkdir()
    for number in range(notes):
        lines = "\n".join(f"Row {number}, tree {tree}, grafted on quince in the spring of {1900 + tree}." for tree in range(20))
        ulid = f"01M85SM75G17W60J3A{number:08d}"
        (folder / f"row-{number}.md").write_text(f"---\nid: {ulid}\nkind: fact\ntitle: Row {number}\n---\n{lines}\n")
    for start in range(0, events, 1_000):
        home.read(*(said(number, f"event {number} " * 20, _SESSION) for number in range(start, start + 1_000)), session=_SESSION)


def measured(name: str, work: Callable[[], Any]) -> None:
    began = time.perf_counter()
    result = work()
    counts = "".join(f"  {way} {result[way]['notes']} notes, {result[way]['events']} events" for way in ("came", "went"))
    print(f"{name:<44} {time.perf_counter() - began:7.2f} s {counts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=20_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, homes(Path(folder), "laptop", "desk") as (laptop, desk):
        fill(laptop, asked.notes, asked.events)
        laptop.services.vault.scanner.compare()
        measured("laptop, everything is new", laptop.sync)
        measured("desk, everything is new", desk.sync)
        measured("laptop, nothing changed", laptop.sync)
        measured("desk, nothing changed", desk.sync)
        for number in range(20):
            with (laptop.vault / "facts" / f"row-{number * 7}.md").open("a") as file:
                file.write("Pruned in March.\n")
        measured("laptop, 20 notes changed", laptop.sync)
        measured("desk, 20 notes changed", desk.sync)
        size = sum(path.stat().st_size for path in laptop.shared.rglob("*") if path.is_file())
        print(f"{'the shared folder':<44} {size / 1e6:7.1f} MB")


if __name__ == "__main__":
    main()
