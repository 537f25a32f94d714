"""Ends exchanges at random steps, again and again, and then counts what was lost, doubled or came back.

Run as a program: it forks, so it must have no threads of its own. Prints one JSON object; ``violations`` should be empty.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

from kite_memory.app.syncing import Syncing
from kite_memory.sync.state import PendingSegments
from tests.sync.homes import Clock, Home, homes, open_home, said, session_of, settle

NAMES = ("laptop", "desk")
_KILLED = 9
_MOST_STEPS = 60
_MANY = 12


class Life:
    """Counts steps once it is asked to, and ends the process at the given one."""

    def __init__(self, steps: int) -> None:
        self._left = 0
        self._steps = steps

    def begin(self) -> None:
        self._left = self._steps

    def step(self, doing: str) -> None:
        self._left -= 1
        if self._left == 0:
            os._exit(_KILLED)


def live(folder: Path, number: int, chance: random.Random) -> None:
    """Change something on one machine, then exchange, maybe not to the end."""
    life = Life(chance.randint(1, _MOST_STEPS))
    name = chance.choice(NAMES)
    with open_home(folder / name, folder / "shared", Clock(), life.step) as home:
        _change(home, folder / "written.txt", number, chance)
        life.begin()
        home.sync()


def _change(home: Home, log: Path, number: int, chance: random.Random) -> None:
    """Make a change; what must be found at the end is written down once it is on disk."""
    notes = sorted(path for path in home.files() if "conflicted copy" not in path)
    doing = chance.choice(["remember", "remember", "remember many", "write", "write", "rename", "read"])
    if doing == "read":
        session = session_of("1" if home.name == "laptop" else "2")
        home.read(said(number, f"event {number}", session), session=session)
        _log(log, f"event {number}")
    elif doing.startswith("remember") or not notes:
        for row in range(_MANY if doing == "remember many" else 1):
            tree = number * 7919 + row
            home.remember(f"In row {number} of the orchard grows tree {tree}.")
            _log(log, f"tree {tree}.")
    elif doing == "write":
        with (home.vault / chance.choice(notes)).open("a") as file:
            file.write(f"\nSentence {number}.\n")
        _log(log, f"Sentence {number}.")
    else:
        path = home.vault / chance.choice(notes)
        path.rename(path.with_name(f"named {number}.md"))


def _log(log: Path, line: str) -> None:
    with log.open("a") as file:
        file.write(line + "\n")


def judge(folder: Path) -> list[str]:
    """Return what is wrong once all have exchanged to the end."""
    clock, shared = Clock(), folder / "shared"
    with open_home(folder / NAMES[0], shared, clock) as laptop, open_home(folder / NAMES[1], shared, clock) as desk:
        try:
            settle(laptop, desk)
        except AssertionError as error:  # they report problems for good
            return [f"not settled: {error}"]
        found: list[str] = []
        if laptop.files() != desk.files():
            found.append("the machines hold different notes")
        texts = "\n".join(laptop.files().values())
        events = laptop.texts(session_of("1")) + laptop.texts(session_of("2"))
        if sorted(events) != sorted(desk.texts(session_of("1")) + desk.texts(session_of("2"))):
            found.append("the machines hold different events")
        for line in (folder / "written.txt").read_text().splitlines():
            if line.startswith("event "):
                if events.count(line) != 1:
                    found.append(f"{line} is there {events.count(line)} times")
            elif line not in texts:
                found.append(f"lost: {line}")
        whole = [text for path, text in laptop.files().items() if "conflicted copy" not in path]
        lines = (folder / "written.txt").read_text().splitlines()
        trees = [line for line in lines if line.startswith("tree ")]
        return found + [f"doubled: {line}" for line in trees if sum(f" {line}\n" in text for text in whole) > 1]


def forget_what_was_not_sent() -> None:
    """Plant a bug: a segment is known only to the process that recorded it, and so is lost if that ends before sending it."""
    added: set[int] = set()
    add, every = PendingSegments.add, PendingSegments.all

    def add_and_remember(self: PendingSegments, number: int, content: bytes) -> None:
        added.add(number)
        add(self, number, content)

    def all_of_this_process(self: PendingSegments) -> list[tuple[int, bytes]]:
        return [each for each in every(self) if each[0] in added]

    PendingSegments.add = add_and_remember  # type: ignore[method-assign]
    PendingSegments.all = all_of_this_process  # type: ignore[method-assign]
    Syncing._replace_lost = lambda self, under_way: None  # type: ignore[method-assign]  # it would mend it


def in_a_child(work: Callable[[], None]) -> int:
    """Return the exit code of a forked process that does the work."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - reported to the parent
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--planted", action="store_true", help="with a bug that the violations must show")
    asked = parser.parse_args()
    if asked.planted:
        forget_what_was_not_sent()
    chance, kills, lives = random.Random(asked.seed), 0, 0
    violations: list[str] = []
    with homes(asked.folder, *NAMES):
        pass
    while kills < asked.kills and lives < asked.kills * 20:
        lives += 1
        seed = chance.random()
        code = in_a_child(lambda seed=seed, lives=lives: live(asked.folder, lives, random.Random(seed)))  # type: ignore[misc]
        kills += code == _KILLED
        if code not in (0, _KILLED):
            violations.append(f"life {lives} ended with {code}")
    violations += judge(asked.folder)
    print(json.dumps({"kills": kills, "lives": lives, "violations": violations}))


if __name__ == "__main__":
    main()
