"""What waits for a person, decided on the page or by a command: done once, and never to a note that says something else by now."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kite_memory.app import review as reviewing_module
from kite_memory.app.consolidation import Consolidation
from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.app.review import NoteChanged, Review
from kite_memory.app.vault_pages import VaultPages
from kite_memory.errors import NoteNotFound, UsageError
from kite_memory.model.event import Cursor, EvidenceReference, ReadResult, RedactedResult
from kite_memory.model.hit import Hit
from kite_memory.model.note import Create, Note, NoteKind, NoteStatus, Skip
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.search import Query
from kite_memory.vault.drafting import Draft, Memo, draft
from kite_memory.vault.usefulness import NoteUse
from kite_memory.vault.writing import MOST_WAITING, Written
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.fakes.services import FakeServices, fake_services
from tests.vault.building import SESSION, START, chunk, decision, event, fact, record

DOUBTFUL = "The staging server has 8 GB of memory, as the tool says."
STANDING = "The staging server has 8 GB of memory and two cores."
OF_STAGING = ("Redis", "the nightly backup", "Kafka", "an old crawler", "Grafana", "a mail relay")


@pytest.fixture
def services(tmp_path: Path) -> Iterator[FakeServices]:
    (tmp_path / "claude").mkdir()
    with fake_services(tmp_path, ScriptedExtractor()) as opened:
        yield opened


@pytest.fixture
def reviewing(services: FakeServices) -> Review:
    return reviewing_of(services, services.recall)


def reviewing_of(services: FakeServices, recall: Recall) -> Review:
    indexer = NoteIndexer(notes=services.vault.notes, events=services.timeline.events, recall=recall)
    consolidating = Consolidation(
        vault=services.vault,
        refresh=indexer.refresh,
        pages=VaultPages(vault=services.vault, clock=lambda: START),
        folder=services.vault.root.parent / "state",
        clock=lambda: START,
    )
    return Review(vault=services.vault, recall=recall, indexer=indexer, events=services.timeline.events, dividing=consolidating)


def test_triage_begins_with_what_was_never_shown_and_names_little(services: FakeServices) -> None:
    rich, poor, shown = (
        remember(services, text)
        for text in (
            "The press runs at 40 bar because the belt is worn",
            "The cellar is cold in winter",
            "The barn is dry in summer",
        )
    )
    services.vault.edits.annotate(rich.id, {"entities": ["Ada", "Ben"]})
    indexer = NoteIndexer(notes=services.vault.notes, events=services.timeline.events, recall=services.recall)

    def use(note: Note) -> NoteUse:
        return NoteUse(shown=START) if note.id == shown.id else NoteUse()

    triage = Review(
        vault=services.vault,
        recall=services.recall,
        indexer=indexer,
        events=services.timeline.events,
        dividing=NeverDivided(),
        used=lambda: use,
    ).triage()

    assert [each["id"] for each in triage["notes"]] == [poor.id, rich.id, shown.id]
    assert [each["shown"] for each in triage["notes"]] == [False, False, True]


class NeverDivided:
    def divide(self, note: Note) -> Sequence[str]:
        raise AssertionError(note.path)

    def keep_whole(self, note: Note) -> None:
        raise AssertionError(note.path)


def test_what_lapses_to_make_room_is_found_as_archived(services: FakeServices, reviewing: Review) -> None:
    first = propose(services, replace(fact("Perhaps the hedge is too high", "A tool said so of the hedge."), importance=1))[0]
    more = [fact(f"Perhaps row {number} is dry", f"Nothing grew in row {number} of the field.") for number in range(MOST_WAITING)]
    indexer = NoteIndexer(notes=services.vault.notes, events=services.timeline.events, recall=services.recall)

    outcomes = services.vault.planner.carry_out(services.vault.planner.plan(proposals(*more, name="chunk-2")))
    indexer.refresh({outcome.path for outcome in outcomes if isinstance(outcome, Written)})

    assert reviewing.review()["waiting"] == MOST_WAITING
    (hit,) = [hit for hit in services.recall.search(Query(text="hedge", mode="keyword")) if hit.note.id == first.id]
    assert hit.note.status is NoteStatus.ARCHIVED


def propose(services: FakeServices, *items: Any, name: str = "chunk-1") -> list[Note]:
    services.vault.planner.carry_out(services.vault.planner.plan(proposals(*items, name=name)))
    services.pipeline.compare_vault()
    return [note for note in notes(services) if note.status is NoteStatus.PROPOSED]


def propose_of_staging(services: FakeServices) -> list[Note]:
    """Notes that have little to do with each other, and each of them something with what is standing."""
    facts = (fact(f"Memory of {name}", f"On the staging server {name} takes memory in GB.") for name in OF_STAGING)
    return propose(services, *facts)


def proposals(*items: Any, name: str = "chunk-1") -> list[Draft]:
    return draft(record(*(replace(item, origin="tool") for item in items)), chunk(name))


def remember(services: FakeServices, text: str) -> Note:
    note = services.vault.edits.remember(Memo(text=text, project="orchard"))
    services.pipeline.compare_vault()
    return note


def notes(services: FakeServices) -> list[Note]:
    return [note for entry in services.vault.notes.entries() if (note := services.vault.notes.read(entry.path)) is not None]


def page(services: FakeServices) -> Path:
    return services.vault.root / "Review.md"


def tick(services: FakeServices, words: str, *, of: str = "") -> None:
    """The first such box, or the first below the name of a note."""
    text = page(services).read_text(encoding="utf-8")
    above, found, below = text.partition(of) if of else ("", "", text)
    assert f"- [ ] {words}" in below
    page(services).write_text(above + found + below.replace(f"- [ ] {words}", f"- [x] {words}", 1), encoding="utf-8")


def look(services: FakeServices, reviewing: Review) -> list[dict[str, Any]]:
    """As the daemon does after a change to the vault."""
    services.pipeline.compare_vault()
    done: list[dict[str, Any]] = reviewing.keep_page()["done"]
    return done


def status(services: FakeServices, note: Note) -> NoteStatus:
    found = services.vault.notes.read(note.path)
    assert found is not None
    return found.status


def found(services: FakeServices, words: str) -> list[str]:
    return [hit.note.id for hit in services.recall.search(Query(text=words, mode="keyword"))]


def test_without_anything_to_review_there_is_no_page(services: FakeServices, reviewing: Review) -> None:
    remember(services, STANDING)

    assert reviewing.keep_page() == {"done": [], "changed": False}
    assert not page(services).exists()


def test_what_waits_is_on_the_page_and_an_unchanged_vault_leaves_it_alone(services: FakeServices, reviewing: Review) -> None:
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))

    assert reviewing.keep_page()["changed"]
    before, stamp = page(services).read_bytes(), page(services).stat().st_mtime_ns
    again = reviewing_of(services, services.recall)

    assert [reviewing.keep_page()["changed"], again.keep_page()["changed"]] == [False, False]
    assert (page(services).read_bytes(), page(services).stat().st_mtime_ns) == (before, stamp)
    assert note.id in before.decode()


def test_one_more_that_waits_is_no_reason_to_read_all_the_others_again(
    services: FakeServices, reviewing: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing = remember(services, STANDING)
    waiting = propose_of_staging(services)
    reviewing.keep_page()
    read, searched = services.vault.notes.read, services.recall.search
    reads: list[str] = []
    searches: list[Query] = []

    def counted_read(path: str) -> Note | None:
        reads.append(path)
        return read(path)

    def counted_search(query: Query) -> tuple[Hit, ...]:
        searches.append(query)
        return searched(query)

    monkeypatch.setattr(services.vault.notes, "read", counted_read)
    monkeypatch.setattr(services.recall, "search", counted_search)

    services.vault.planner.carry_out(
        services.vault.planner.plan(proposals(fact("Frost", "The frost of April took the plum blossoms."), name="chunk-2"))
    )
    look(services, reviewing)

    assert len(waiting) == len(OF_STAGING)
    assert len(searches) <= 1 + reviewing_module._LOOKED_FOR_AGAIN
    assert len([path for path in reads if path != standing.path]) <= 1 + 2 * len(searches) * 8
    assert "Frost" in page(services).read_text(encoding="utf-8")


def test_a_nearer_note_is_noticed_after_some_looks_however_many_wait(services: FakeServices, reviewing: Review) -> None:
    propose_of_staging(services)
    reviewing.keep_page()
    assert "merge into" not in page(services).read_text(encoding="utf-8")
    remember(services, STANDING)

    for number in range(3):
        propose(
            services, fact(f"Frost {number}", f"The frost of April {number} took the plum blossoms."), name=f"chunk-{number + 2}"
        )
        reviewing.keep_page()

    assert page(services).read_text(encoding="utf-8").count("merge into") == len(OF_STAGING)


def test_words_that_were_let_go_are_not_quoted_at_the_next_look(services: FakeServices, reviewing: Review) -> None:
    said = replace(event(1), text="There are forty plum trees.")
    seen = ReadResult(
        path="transcript.jsonl", session=SESSION, events=(said,), problems=(), cursor=Cursor(position=1, size=1, mtime_ns=1)
    )
    services.timeline.commit([RedactedResult(seen)], SESSION.provider)
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))
    reviewing.keep_page()
    assert "forty plum trees" in page(services).read_text(encoding="utf-8")
    reference = EvidenceReference.parse(note.evidence[0])
    assert reference is not None

    services.timeline.forgotten.add(services.timeline.events.evidence(reference), blank=True)
    propose(services, fact("Frost", "The frost of April took the plum blossoms."), name="chunk-2")
    reviewing.keep_page()

    assert "forty plum trees" not in page(services).read_text(encoding="utf-8")


def test_a_ticked_accept_is_obeyed_once(services: FakeServices, reviewing: Review) -> None:
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))
    reviewing.keep_page()
    tick(services, "accept")

    done = look(services, reviewing)

    assert [(each["id"], each["verdict"]) for each in done] == [(note.id, "accept")]
    assert status(services, note) is NoteStatus.ACCEPTED
    assert look(services, reviewing) == []
    assert "Nothing waits." in page(services).read_text(encoding="utf-8")


def test_what_was_rejected_is_not_found_and_never_proposed_again(services: FakeServices, reviewing: Review) -> None:
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))
    reviewing.keep_page()
    tick(services, "reject")

    look(services, reviewing)

    assert status(services, note) is NoteStatus.REJECTED
    assert found(services, "staging memory") == []
    again = proposals(fact("Staging memory", "Another thing altogether, that a tool said of the cellar."), name="chunk-2")
    assert services.vault.planner.plan(again) == [Skip(title="Staging memory", because="you rejected it")]


def test_a_merge_adds_what_is_new_and_leads_on(services: FakeServices, reviewing: Review) -> None:
    standing = remember(services, STANDING)
    (note,) = propose(
        services, fact("Staging server memory", f"{DOUBTFUL} Its swap lies on a spinning disk named Vesta, bought second-hand.")
    )
    reviewing.keep_page()
    tick(services, "merge into")

    look(services, reviewing)

    grown = services.vault.notes.read(standing.path)
    assert grown is not None
    assert grown.body.startswith(STANDING)
    assert "Vesta" in grown.body
    assert set(note.evidence) <= set(grown.evidence)
    assert status(services, note) is NoteStatus.SUPERSEDED
    assert services.vault.notes.unresolved_links() == []
    again = services.vault.planner.plan(proposals(fact("Staging server memory", DOUBTFUL), name="chunk-2"))
    assert not any(isinstance(action, Create) for action in again)


def test_a_merge_that_a_person_asks_for_loses_not_even_one_word(services: FakeServices, reviewing: Review) -> None:
    standing = remember(services, STANDING)
    propose(services, fact("Staging server memory", f"{STANDING.removesuffix('.')} Vesta."))
    reviewing.keep_page()
    tick(services, "merge into")

    look(services, reviewing)

    grown = services.vault.notes.read(standing.path)
    assert grown is not None
    assert grown.body.startswith(STANDING)
    assert "Vesta" in grown.body


def test_a_box_of_a_note_that_has_changed_since_is_not_obeyed_but_drawn_anew(services: FakeServices, reviewing: Review) -> None:
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))
    reviewing.keep_page()
    file = services.vault.root / note.path
    file.write_text(file.read_text(encoding="utf-8").replace("8 GB", "16 GB"), encoding="utf-8")
    tick(services, "accept")

    assert look(services, reviewing) == []

    assert status(services, note) is NoteStatus.PROPOSED
    text = page(services).read_text(encoding="utf-8")
    assert "16 GB" in text
    assert "[x]" not in text
    tick(services, "accept")
    look(services, reviewing)
    assert status(services, note) is NoteStatus.ACCEPTED


def test_what_a_person_writes_on_the_page_stays(services: FakeServices, reviewing: Review) -> None:
    propose(services, fact("Staging memory", DOUBTFUL), fact("Pears", "Pears stand in the north field."))
    reviewing.keep_page()
    text = page(services).read_text(encoding="utf-8")
    page(services).write_text(text.replace("> Pears", "ask Bob\n> Pears") + "\nmine\n", encoding="utf-8")
    tick(services, "accept")

    look(services, reviewing)

    after = page(services).read_text(encoding="utf-8")
    assert after.count("ask Bob") == after.count("\nmine\n") == 1


def test_a_box_that_is_ticked_while_the_page_is_drawn_is_obeyed(services: FakeServices, reviewing: Review) -> None:
    note, other = propose(services, fact("Staging memory", DOUBTFUL), fact("Pears", "Pears stand in the north field."))
    reviewing.keep_page()
    tick(services, "reject")
    late = [lambda: tick(services, "accept", of="staging-memory")]

    class Meanwhile(Recall):
        """Somebody saves the page while what is near to a note is looked for."""

        def search(self, query: Query) -> tuple[Hit, ...]:
            if late:
                late.pop()()
            return super().search(query)

    index = Index(services.vault.root.parent / "state" / "index", embedder=HashingEmbedder(dim=32))
    recall = Meanwhile(index=index, memory=services.recall.memory)
    busy = reviewing_of(services, recall)
    done = look(services, busy)

    assert len(done) == 2
    assert {status(services, note), status(services, other)} == {NoteStatus.REJECTED, NoteStatus.ACCEPTED}


def test_a_deleted_page_stays_away_until_there_is_something_new(services: FakeServices, reviewing: Review) -> None:
    propose(services, fact("Staging memory", DOUBTFUL))
    reviewing.keep_page()
    page(services).unlink()

    look(services, reviewing)

    assert not page(services).exists()
    propose(services, fact("Pears", "Pears stand in the north field."), name="chunk-2")
    look(services, reviewing)
    assert page(services).exists()


def test_a_box_of_a_note_that_is_gone_means_nothing(services: FakeServices, reviewing: Review) -> None:
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))
    reviewing.keep_page()
    (services.vault.root / note.path).unlink()
    tick(services, "accept")

    assert look(services, reviewing) == []
    assert "[x]" not in page(services).read_text(encoding="utf-8")


def test_the_list_says_what_a_person_needs_to_judge(services: FakeServices, reviewing: Review) -> None:
    standing = remember(services, STANDING)
    (note,) = propose(services, fact("Staging server memory", DOUBTFUL))

    report = reviewing.review()

    (each,) = report["notes"]
    assert report["waiting"] == 1
    assert (each["id"], each["origin"], each["status"]) == (note.id, "tool", "proposed")
    assert each["choices"] == ["accept", "merge", "reject"]
    assert each["nearest"]["id"] == standing.id
    assert [line["reference"] for line in each["evidence"]] == list(note.evidence)


def test_a_verdict_by_command_is_for_the_wording_that_was_seen(services: FakeServices, reviewing: Review) -> None:
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))

    with pytest.raises(NoteChanged):
        reviewing.judge(note=note.id, verdict="accept", seen="0123456789abcdef")
    (result,) = reviewing.review()["notes"]
    judged = reviewing.judge(note=note.id, verdict="accept", seen=result["version"])

    assert judged["verdict"] == "accept"
    assert status(services, note) is NoteStatus.ACCEPTED
    with pytest.raises(UsageError, match="does not wait"):
        reviewing.judge(note=note.id, verdict="reject")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"verdict": "burn"}, UsageError),
        ({"verdict": "merge"}, UsageError),
        ({"verdict": "merge", "into": "nowhere at all"}, NoteNotFound),
    ],
)
def test_a_verdict_that_cannot_be_is_refused(
    services: FakeServices, reviewing: Review, arguments: dict[str, str], error: type[Exception]
) -> None:
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))

    with pytest.raises(error):
        reviewing.judge(note=note.id, **arguments)


def test_a_page_of_an_entity_is_accepted_with_the_first_note_that_links_to_it(services: FakeServices, reviewing: Review) -> None:
    (made,) = draft(record(fact("Grafana runs on the old disk", "Grafana runs on [[vesta]].")), chunk())
    doubtful = replace(made.note, status=NoteStatus.PROPOSED, body="Grafana runs on [[vesta]].", links=("vesta",))
    disk = replace(
        doubtful, id=f"{doubtful.id[:-1]}Z", path="topics/vesta.md", kind=NoteKind.ENTITY, title="Vesta", body="", links=()
    )
    services.vault.planner.carry_out([Create(note=disk, because="a test"), Create(note=doubtful, because="a test")])
    services.pipeline.compare_vault()

    shown = reviewing.review()["notes"]
    for each in shown:
        reviewing.judge(note=each["id"], verdict="accept")

    assert [each["kind"] for each in shown] == ["fact"]
    assert {note.status for note in notes(services)} == {NoteStatus.ACCEPTED}


@pytest.mark.parametrize(("words", "older"), [("it replaces", NoteStatus.SUPERSEDED), ("both hold", NoteStatus.ACCEPTED)])
def test_what_may_contradict_is_settled_by_a_box(services: FakeServices, reviewing: Review, words: str, older: NoteStatus) -> None:
    standing = remember(services, STANDING)
    (made,) = draft(record(decision("Staging moves", "Staging has 16 GB now.")), chunk())
    later = replace(made.note, created=standing.created + timedelta(days=1))
    conflicting = replace(later, conflicts=(standing.path.removesuffix(".md").rpartition("/")[2],), body="Staging has 16 GB now.")
    services.vault.planner.carry_out([Create(note=conflicting, because="a test")])
    look(services, reviewing)
    tick(services, words)

    look(services, reviewing)

    new = services.vault.notes.called(conflicting.id)
    assert new is not None
    assert new.conflicts == ()
    assert status(services, standing) is older
    assert "Nothing waits." in page(services).read_text(encoding="utf-8")


def late_note(services: FakeServices, standing: Note) -> Note:
    """An older one, made later, that may contradict what stands."""
    (made,) = draft(record(decision("Staging moves", "Staging has 16 GB now.")), chunk())
    stem = standing.path.removesuffix(".md").rpartition("/")[2]
    late = replace(made.note, created=standing.created - timedelta(days=30), conflicts=(stem,))
    services.vault.planner.carry_out([Create(note=late, because="a test")])
    services.pipeline.compare_vault()
    return services.vault.notes.find(late.id)


@pytest.mark.parametrize("words", ["it is replaced by", "both hold"])
def test_of_two_that_contradict_each_other_the_newer_holds_whichever_came_last(
    services: FakeServices, reviewing: Review, words: str
) -> None:
    standing = remember(services, STANDING)
    late = late_note(services, standing)
    reviewing.keep_page()
    tick(services, words)

    look(services, reviewing)

    older, newer = services.vault.notes.find(late.id), services.vault.notes.find(standing.id)
    replaced = words != "both hold"
    assert (older.status, newer.status) == (NoteStatus.SUPERSEDED if replaced else NoteStatus.ACCEPTED, NoteStatus.ACCEPTED)
    assert (older.valid_until, newer.valid_until) == (newer.created if replaced else None, None)
    assert (bool(older.superseded_by), bool(newer.supersedes), older.conflicts) == (replaced, replaced, ())
    assert (newer.id, older.id) in services.vault.known.settled()
    assert "Nothing waits." in page(services).read_text(encoding="utf-8")


def test_what_is_accepted_already_is_not_said_to_be_accepted_now(services: FakeServices, reviewing: Review) -> None:
    late = late_note(services, remember(services, STANDING))

    with pytest.raises(UsageError, match="does not wait for that verdict") as refused:
        reviewing.judge(note=late.id, verdict="accept")

    assert refused.value.hint == "choose one of: replace, both, reject"
    assert [each["id"] for each in reviewing.review()["notes"]] == [late.id]


def long_note(services: FakeServices, *, headings: bool = True) -> Note:
    """One of which consolidation asks whether it should be divided."""
    about = ("Where the pears stand", "What the gate needs", "Who prunes in March")
    said = [f"## {each}\n\n" * headings + f"{each}, told at length. " * 120 for each in about]
    note = remember(services, "\n\n".join(("Of the orchard.", *said)))
    services.vault.edits.annotate(note.id, {"review": "split"})
    services.pipeline.compare_vault()
    return services.vault.notes.find(note.id)


def test_a_note_that_holds_several_matters_is_asked_about_and_divided_by_a_box(services: FakeServices, reviewing: Review) -> None:
    note = long_note(services)
    (result,) = reviewing.review()["notes"]
    reviewing.keep_page()
    shown = page(services).read_text(encoding="utf-8")
    tick(services, "make a note of each")

    look(services, reviewing)

    assert result["choices"] == ["divide", "whole"]
    assert "could be 3 notes: Where the pears stand · What the gate needs · Who prunes in March" in shown
    parts = [each for each in notes(services) if each.id != note.id]
    assert sorted(part.title for part in parts) == ["What the gate needs", "Where the pears stand", "Who prunes in March"]
    assert services.vault.notes.find(note.id).body.startswith("Of the orchard.\n\n- [[where-the-pears-stand")
    assert reviewing.review()["notes"] == [] and "Nothing waits." in page(services).read_text()
    assert [link for link in services.vault.notes.unresolved_links() if link.ours] == []
    assert set(found(services, "what the gate needs")) >= {part.id for part in parts if part.title == "What the gate needs"}


def test_a_note_that_was_left_whole_is_as_it_was_and_not_asked_about_again(services: FakeServices, reviewing: Review) -> None:
    note = long_note(services)
    reviewing.keep_page()
    tick(services, "leave it whole")

    look(services, reviewing)

    assert services.vault.notes.find(note.id).body == note.body
    assert reviewing.review()["notes"] == []
    assert not consolidating(reviewing).consolidate(dry_run=True)["steps"]


def consolidating(reviewing: Review) -> Consolidation:
    found = reviewing._dividing
    assert isinstance(found, Consolidation)
    return found


def test_where_there_is_nothing_to_divide_it_at_a_person_learns_what_to_do(services: FakeServices, reviewing: Review) -> None:
    long_note(services, headings=False)

    (result,) = reviewing.review()["notes"]
    reviewing.keep_page()

    assert result["choices"] == ["whole"]
    assert "without headings: put one above each matter (`## …`)" in page(services).read_text(encoding="utf-8")


@pytest.mark.parametrize("verdict", ["accept", "reject", "merge"])
def test_a_note_that_only_is_long_cannot_be_turned_down_by_mistake(services: FakeServices, reviewing: Review, verdict: str) -> None:
    note = long_note(services)

    with pytest.raises(UsageError, match="does not wait for that"):
        reviewing.judge(note=note.id, verdict=verdict)

    assert status(services, note) is NoteStatus.ACCEPTED


def test_a_doubtful_note_cannot_be_divided(services: FakeServices, reviewing: Review) -> None:
    (note,) = propose(services, fact("Staging memory", DOUBTFUL))

    with pytest.raises(UsageError, match="does not wait for that"):
        reviewing.judge(note=note.id, verdict="divide")


def test_a_note_that_shares_a_few_words_is_not_offered_for_merging(services: FakeServices, reviewing: Review) -> None:
    remember(services, "The deploys to the staging server run at night, and take forty minutes in all.")
    propose(services, fact("Staging server memory", "The staging server has 8 GB of memory and two cores, which fill up at noon."))

    (each,) = reviewing.review()["notes"]

    assert (each["nearest"], each["choices"]) == (None, ["accept", "reject"])
