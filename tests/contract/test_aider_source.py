from collections.abc import Iterator
from pathlib import Path

from kite_memory.extensions.contract.source_contract import BUDGET, AppendOnlySourceContract
from kite_memory.sources import Source
from kite_memory.sources.aider import HISTORY, Aider
from tests.counts import one_in
from tests.sources.aider_log import a_day


class TestAider(AppendOnlySourceContract):
    cut_every = one_in()

    def make(self, folder: Path) -> Source:
        return Aider(tuple, always=(folder / "orchard",), own=(folder / "orchard",), own_state=folder / "state")

    def place(self, folder: Path) -> Path:
        return folder / "orchard" / HISTORY

    def transcript(self) -> bytes:
        return a_day().bytes

    def strangers(self, folder: Path) -> list[Path]:
        return [
            folder / "orchard" / ".aider.input.history",
            folder / "orchard" / f"{HISTORY}.bak",
            folder / "state" / "orchard" / HISTORY,
        ]

    def wildly(self, folder: Path) -> Iterator[Path]:
        lines = self.transcript().split(b"\n")
        for place in range(len(lines)):
            for wild in (
                b"",
                b"#### ",
                b"> ",
                b"```",
                b"# aider chat started at soon",
                b"\xff\x00\x1b[2J",
                b"#### /run " + b"x" * 9_000,
            ):
                yield self.written(folder, b"\n".join([*lines[:place], wild, *lines[place + 1 :]]))

    def of_another_version(self, folder: Path) -> Path:
        return self.written(folder, self.transcript().replace(b"# aider chat started", b"# Aider chat, begun"))

    def check_line(self, line: bytes) -> None:
        assert line == line.strip(b"\n") != b""

    def test_a_file_truncated_and_regrown_is_read_again_from_its_beginning(self, tmp_path: Path) -> None:
        """A look ends with a run, so that it takes more of them."""
        source, path = self.make(tmp_path), self.place(tmp_path)
        content = self.transcript()
        half = content.index(b"\n", len(content) // 2) + 1
        cursor = source.read(self.written(tmp_path, content[:half]), None, budget=BUDGET).cursor
        path.write_bytes(content[half:] + content[half:] + content)

        look = source.read(path, cursor, budget=BUDGET)

        assert look.problems[0].reason == "file rewritten"
        while look.more:
            look = source.read(path, look.cursor, budget=BUDGET)
        assert look.cursor.position == path.stat().st_size
