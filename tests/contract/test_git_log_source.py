from collections.abc import Iterator
from pathlib import Path

from kite_memory.extensions.contract.source_contract import BUDGET, SourceContract
from kite_memory.sources import Source
from kite_memory.sources.git_history import GitLog
from tests.fakes.repositories import FakeRepository, environment


class TestGitLog(SourceContract):
    """A repository for a transcript, which is no file that could be written by its bytes."""

    def make(self, folder: Path) -> Source:
        return GitLog(lambda: [str(folder / "orchard")], environment=environment(folder), home=folder, most=2)

    def place(self, folder: Path) -> Path:
        return folder / "orchard" / ".git" / "HEAD"

    def transcript(self) -> bytes:
        return b"ref: refs/heads/main\n"

    def written(self, folder: Path, content: bytes | None = None) -> Path:
        repository = FakeRepository(folder / "orchard")
        for message in ("Plant", "Water", "Prune the old wood"):
            repository.commit(message)
        return self.place(folder)

    def wildly(self, folder: Path) -> Iterator[Path]:
        repository = FakeRepository(folder / "orchard")
        for message in ("\x1b[2J\x07", "a" * 100_000, "b\n" * 10_000, "\u202e\U000e0001", "Graft\n\n" + "Cc: Bo\n" * 2_000):
            repository.commit(message)
            yield self.place(folder)

    def with_clocks_that_jump(self, folder: Path) -> Path:
        repository = FakeRepository(folder / "orchard")
        for message, days in (("Plant", -18_000), ("Water", 40_000), ("Prune the old wood", -30_000)):
            repository.commit(message, days=days)
        return self.place(folder)

    def of_another_version(self, folder: Path) -> Path:
        path = self.written(folder)
        FakeRepository(folder / "orchard").git("config", "core.repositoryformatversion", "99")
        return path

    def strangers(self, folder: Path) -> list[Path]:
        return [folder / "orchard" / name for name in ("HEAD.txt", "logs/HEAD", "pump.py")]

    def test_an_agent_that_was_never_used_has_no_transcripts(self, tmp_path: Path) -> None:
        assert list(self.make(tmp_path).transcripts()) == []

    def test_a_transcript_is_found_owned_and_watched(self, tmp_path: Path) -> None:
        """Found and owned; no one watches a repository."""
        source, path = self.make(tmp_path), self.written(tmp_path)

        assert list(source.transcripts()) == [path]
        assert source.owns(path)
        assert source.roots() == ()

    def test_reading_on_at_the_end_yields_nothing(self, tmp_path: Path) -> None:
        source, path = self.make(tmp_path), self.written(tmp_path)
        first = source.read(path, None, budget=BUDGET)

        second = source.read(path, first.cursor, budget=BUDGET)

        assert (second.events, second.problems, second.cursor, second.more) == ((), (), first.cursor, False)
