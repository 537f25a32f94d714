"""What an extractor is given beside a chunk, and what its doubts become."""

import dataclasses
from pathlib import Path

from kite_memory.distill.extractor import Answer, Usage
from kite_memory.model.note import Chunk, Fact, NoteStatus, Record, Topic
from tests.fakes.extractors import ScriptedExtractor, plain_answer
from tests.fakes.services import fake_services
from tests.sources.transcript import SESSION, Transcript


class Listener(ScriptedExtractor):
    """Keeps the chunks themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[Chunk] = []

    def extract(self, chunk: Chunk) -> Answer:
        self.chunks.append(chunk)
        return plain_answer(chunk, f"Wording {len(self.chunks)}")


def path_in(home: Path) -> Path:
    folder = home / "claude" / "projects" / "-orchard"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{SESSION}.jsonl"


def test_a_later_chunk_comes_with_what_was_before_it_and_with_how_much_was_noted(tmp_path: Path) -> None:
    listener, written = Listener(), Transcript(SESSION)
    with fake_services(tmp_path, listener) as services:
        for said in ("We graft the old pear on quince stock.", "We graft the young plum on its own root, far from the wall."):
            written.user(said)
            written.assistant(f"Understood: {said} The orchard floods in spring, so that is what its roots can bear.")
            path_in(tmp_path).write_bytes(written.bytes)
            services.run_until_idle()

    first, second = listener.chunks
    assert (first.before, first.noted) == ((), 0)
    assert second.before == first.events
    assert second.noted == 1


def test_an_item_in_doubt_becomes_a_proposed_note(tmp_path: Path) -> None:
    def doubting(chunk: Chunk) -> Answer:
        sure = Fact(
            title="Pears drown",
            body="Pear roots drown in spring.",
            evidence=(chunk.events[0].id,),
            importance=2,
            origin="assistant",
        )
        unsure = dataclasses.replace(sure, title="Plums float", body="Plum roots can bear it.", doubt="nobody said so")
        return Answer(record=Record(topics=(Topic(name="roots", summary="", items=(sure, unsure)),)), usage=Usage())

    written = Transcript(SESSION)
    written.user("What do the roots of our trees bear, when the orchard floods in spring?")
    written.assistant("Pear roots drown in spring; what plum roots can bear, nobody has tried in this orchard so far.")
    with fake_services(tmp_path, ScriptedExtractor([doubting])) as services:
        path_in(tmp_path).write_bytes(written.bytes)
        services.run_until_idle()
        made = {
            note.title: note.status
            for entry in services.vault.notes.entries()
            if (note := services.vault.notes.read(entry.path)) is not None
        }

    assert made["Pears drown"] is NoteStatus.ACCEPTED
    assert made["Plums float"] is NoteStatus.PROPOSED
