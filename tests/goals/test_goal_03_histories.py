"""Whatever becomes of a transcript between two looks, no whole line of it is passed over in silence and none is reported twice."""

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from kite_memory.app.pipeline import redacted
from kite_memory.model.event import Cursor, ReadResult
from kite_memory.sources import Source
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.sources.common.jsonl import AppendOnlyFile, Unreadable
from kite_memory.timeline.store import Timeline
from tests.counts import how_many

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, owners and open files that vanish are Unix's")

STEPS = 50
BUDGETS = (200, 1500, 1 << 20)
UNPRIVILEGED = 65_534
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Nothing here is about disks, and a thousand small databases wait long for them."""

NAMES = st.sampled_from([f"{name}0000000-0000-4000-8000-000000000000.jsonl" for name in "abc"] + ["agent-d.jsonl"])
FEW = st.integers(1, 4)


class WhoeverMayRead(ClaudeCode):
    """As an ordinary user reads: to the superuser no file would be closed."""

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        if os.geteuid() != 0:
            return super().read(path, cursor, budget=budget)
        os.seteuid(UNPRIVILEGED)
        try:
            return super().read(path, cursor, budget=budget)
        finally:
            os.seteuid(0)


class TrustsThePosition(WhoeverMayRead):
    """The first planted bug: a file is taken for the one that was read, whatever it begins with."""

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        if cursor is not None:
            try:
                with AppendOnlyFile(path, within=self.roots()[0]) as file:
                    cursor = replace(cursor, identity=file.identity(min(cursor.position, file.size)))
            except (Unreadable, OSError):
                pass
        return super().read(path, cursor, budget=budget)


class NamesByPlace(WhoeverMayRead):
    """The second: an event is known by where it stands, not by the agent's own name for it."""

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        look = super().read(path, cursor, budget=budget)
        named = tuple(replace(event, id=f"{path.name}-{event.where.start}") for event in look.events)
        return replace(look, events=named)


class Histories(RuleBasedStateMachine):
    """An agent, its user, a log rotation and a clock, all at work on four transcripts; now and then somebody looks."""

    source_of: Callable[..., ClaudeCode] = WhoeverMayRead
    comparisons = 0

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="kmem-histories-", dir=MEMORY))
        self.root.chmod(0o755)
        self.folder = self.root / "claude" / "projects" / "-orchard"
        self.folder.mkdir(parents=True)
        self.outside = self.root / "outside"
        self.outside.mkdir()
        self.source: Source = self.source_of(self.root / "claude", own_state=self.root / "own")
        self.now = 1_790_000_000_000_000_000
        self.matters = 0
        self.barred: set[str] = set()
        self.due: set[str] = set()
        self.forbidden: set[str] = set()
        self.start()

    def start(self) -> None:
        self.timeline = Timeline(self.root / "timeline.sqlite", clock=lambda: self.now / 1e9)

    def teardown(self) -> None:
        self.timeline.close()
        shutil.rmtree(self.root)

    def line(self, *, named: bool = True) -> bytes:
        self.matters += 1
        token = f"matter-{self.matters:05d}"
        row: dict[str, object] = {
            "parentUuid": None,
            "type": "user",
            "sessionId": "s",
            "cwd": "/home/ada/orchard",
            "userType": "external",
            "timestamp": "2026-03-02T09:00:00.000Z",
            "message": {"role": "user", "content": f"{token} is settled{'.' * (self.matters % 61)}"},
        }
        if named:
            row["uuid"] = str(UUID(int=self.matters << 96 | 4 << 76 | 8 << 60))
        return json.dumps(row).encode() + b"\n"

    def lines(self, count: int) -> bytes:
        return b"".join(self.line(named=number % 3 != 2) for number in range(count))

    def touched(self, path: Path) -> None:
        """No two writes have one time: a file system's clock ticks every few milliseconds, and agents are slower than this."""
        self.now += 1_000_003
        os.utime(path, ns=(self.now, self.now))

    def at(self, name: str) -> Path | None:
        path = self.folder / name
        return path if path.is_file() and not path.is_symlink() else None

    @rule(name=NAMES, count=FEW)
    def append(self, name: str, count: int) -> None:
        path = self.folder / name
        if not path.is_symlink():
            with path.open("ab") as file:
                file.write(self.lines(count))
            self.touched(path)

    @rule(name=NAMES, share=st.floats(0.05, 0.95))
    def half_a_line(self, name: str, share: float) -> None:
        if path := self.at(name):
            line = self.line()
            with path.open("ab") as file:
                file.write(line[: int(len(line) * share)])
            self.touched(path)

    @rule(name=NAMES, share=st.floats(0, 1))
    def truncate(self, name: str, share: float) -> None:
        if path := self.at(name):
            os.truncate(path, int(path.stat().st_size * share))
            self.touched(path)

    @rule(name=NAMES, share=st.sampled_from([0.0, 0.3, 0.9]))
    def truncate_and_regrow_past_where_it_was(self, name: str, share: float) -> None:
        if path := self.at(name):
            before = path.stat().st_size
            os.truncate(path, int(before * share))
            with path.open("ab") as file:
                file.write(b"\n")
                while file.tell() <= before:
                    file.write(self.line())
            self.touched(path)

    @rule(name=NAMES, new=NAMES)
    def rename(self, name: str, new: str) -> None:
        if (path := self.at(name)) and name != new:
            path.rename(self.folder / new)
            self.barred = self.barred - {name, new} | ({new} if name in self.barred else set())

    @rule(name=NAMES, count=FEW)
    def delete_and_make_again(self, name: str, count: int) -> None:
        """Often with the same inode: file systems hand it out again at once."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.write_bytes(self.lines(count))
        self.barred.discard(name)
        self.touched(path)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        self.barred.discard(name)

    @rule(name=NAMES, kept=st.sampled_from(["e0000000-0000-4000-8000-000000000000.jsonl", "rotated.1"]), count=st.integers(0, 4))
    def copy_and_truncate(self, name: str, kept: str, count: int) -> None:
        if path := self.at(name):
            (self.folder / kept).unlink(missing_ok=True)
            shutil.copy(path, self.folder / kept)
            (self.folder / kept).chmod(0o644)
            os.truncate(path, 0)
            with path.open("ab") as file:
                file.write(self.lines(count))
            self.touched(path)

    @rule(name=NAMES, count=FEW, keeps=st.booleans())
    def replace(self, name: str, count: int, keeps: bool) -> None:
        """As an editor saves: another file takes the name, with what was there or without."""
        path = self.folder / name
        new = self.folder / "new.tmp"
        there = path.read_bytes() if keeps and self.at(name) else b""
        new.write_bytes(there + self.lines(count))
        new.replace(path)
        self.barred.discard(name)
        self.touched(path)

    @rule(name=NAMES, other=NAMES, out=st.booleans())
    def swap_for_a_link(self, name: str, other: str, out: bool) -> None:
        path = self.folder / name
        target = self.outside / "elsewhere.jsonl" if out else self.folder / other
        if out:
            line = self.line()
            self.forbidden.add(token_of(line))
            with target.open("ab") as file:
                file.write(line)
        elif name == other or target.is_symlink():
            return
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        self.barred.discard(name)

    @rule(name=NAMES)
    def close_to_us(self, name: str) -> None:
        if path := self.at(name):
            path.chmod(0)
            self.barred.add(name)

    @precondition(lambda self: self.barred)
    @rule()
    def open_to_us(self) -> None:
        for name in self.barred:
            if path := self.at(name):
                path.chmod(0o644)
        self.barred.clear()

    @rule(days=st.sampled_from([-20_000, -400, -1, 1, 400, 40_000]))
    def the_clock_jumps(self, days: int) -> None:
        self.now = max(self.now + days * 86_400_000_000_000, 1_000_000_000_000) + self.matters

    @rule()
    def restart(self) -> None:
        self.timeline.close()
        self.start()

    @rule(budget=st.sampled_from(BUDGETS), looks=st.integers(0, 6))
    def die_amid_reading(self, budget: int, looks: int) -> None:
        """A look that ended on its budget is committed, the next is not."""
        for path in self.unread()[:looks]:
            self.look(path, budget)
        self.restart()

    @rule(budget=st.sampled_from(BUDGETS))
    def compare(self, budget: int) -> None:
        """What the daemon does every few minutes. Whatever happened before, all that is there now must be known then."""
        self.due |= {token for path in self.folder.glob("*.jsonl") for token in self.tokens(path)}
        for path in self.unread():
            while self.look(path, budget).more:
                pass
        self.check()

    def unread(self) -> list[Path]:
        known = self.timeline.files.looked_at()
        found = []
        for path in self.source.transcripts():
            if path.exists():
                status = path.stat()
                if known.get(str(path)) != (status.st_size, status.st_mtime_ns):
                    found.append(path)
        return found

    def look(self, path: Path, budget: int) -> ReadResult:
        look = self.source.read(path, self.timeline.files.cursor(str(path)), budget=budget)
        self.timeline.commit([redacted(look)], self.source.provider)
        return look

    def tokens(self, path: Path) -> list[str]:
        """Of the whole lines that may be read there now. One that is glued or cut owes a problem instead, if it gives no event."""
        real = path.resolve()
        if not real.is_file() or real.parent != self.folder or path.name in self.barred or real.name in self.barred:
            return []
        return [token_of(line) for line in real.read_bytes().split(b"\n")[:-1] if is_whole(line)]

    def check(self) -> None:
        type(self).comparisons += 1
        events = [
            event
            for state in self.timeline.sessions.states()
            for event in self.timeline.events.of_session(state.session.provider, state.session.id)
        ]
        counts = Counter(word for event in events for word in [event.text.split()[0]])
        assert self.due <= set(counts), f"passed over: {sorted(self.due - set(counts))}"
        assert not (twice := [token for token, count in counts.items() if count > 1]), f"told twice: {twice}"
        assert self.forbidden.isdisjoint(counts), "a link led us out"
        problems = {(problem.file, problem.reason) for problem in self.timeline.files.problems(1_000)}
        for path in self.folder.glob("*.jsonl"):
            if self.tokens(path) and (
                damaged := [line for line in path.read_bytes().split(b"\n")[:-1] if line and not is_whole(line)]
            ):
                missed = {token for line in damaged for token in tokens_in(line)} - set(counts)
                assert not missed or any(str(path) == file for file, _ in problems), f"not told of: {missed}"


def is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def token_of(line: bytes) -> str:
    return tokens_in(line)[0]


def tokens_in(line: bytes) -> list[str]:
    parts = line.split(b"matter-")[1:]
    return [f"matter-{part[:5].decode()}" for part in parts if part[:5].isdigit() and len(part) > 5]


def run(machine: type[Histories], histories: int, *phases: Phase) -> None:
    checked = settings(
        max_examples=histories,
        stateful_step_count=STEPS,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=checked)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_no_line_is_passed_over_and_none_reported_twice() -> None:
    Histories.comparisons = 0

    run(Histories, how_many(5_000, share=40), Phase.generate, Phase.shrink)

    print(f"{Histories.comparisons:,} comparisons")
    assert Histories.comparisons > how_many(5_000, share=40)


class WithTrust(Histories):
    source_of = TrustsThePosition


class WithPlaces(Histories):
    source_of = NamesByPlace


def test_control_a_reader_that_trusts_its_position_is_caught() -> None:
    with pytest.raises(AssertionError, match="passed over"):
        run(WithTrust, 500, Phase.generate)


def test_control_events_known_by_their_place_are_caught() -> None:
    with pytest.raises(AssertionError, match=r"told twice|passed over"):
        run(WithPlaces, 500, Phase.generate)
