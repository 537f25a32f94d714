"""A bounded search answers as if there were nothing else: same notes, same order, same figures, same words."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.model.hit import Hit
from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.recall.catalogue import VisibleNotes
from kite_memory.recall.index import Index
from kite_memory.recall.search import Mode, Query, search
from tests.counts import examples
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.recall.notes import DAY, Pile, note

WORDS = ["queue", "queues", "postgres", "lock", "locking", "token", "login", "colour", "リンタ", "設定", "the", "x7"]
PROJECTS = ["", "mycelia", "orchard"]
EVERYTHING = VisibleNotes()

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
bodies = st.tuples(texts, st.sampled_from(["", "\n\n**Related:** [[other]]", " [[n1]]"])).map("".join)


def sees(sight: VisibleNotes, each: Note) -> bool:
    """The rule, in words of its own."""
    if each.kind is NoteKind.ENTITY and not sight.whole:
        return False
    if sight.scopes is not None and each.scope not in sight.scopes:
        return False
    if sight.projects is None or each.project in sight.projects:
        return True
    return each.project == "" and each.scope in (Scope.GLOBAL, Scope.SHARED)


@st.composite
def piles(draw: st.DrawFn) -> list[Note]:
    return [
        note(
            f"n{number}",
            draw(texts),
            draw(bodies),
            age=draw(st.integers(0, 3)),
            project=draw(st.sampled_from(PROJECTS)),
            scope=draw(st.sampled_from(list(Scope))),
            kind=draw(st.sampled_from(list(NoteKind))),
            status=draw(st.sampled_from(list(NoteStatus))),
            supersedes=tuple(draw(st.lists(st.sampled_from(["n0", "n1", "n2"]), max_size=1))),
            path=f"facts/n{number}.md",
        )
        for number in range(draw(st.integers(1, 8)))
    ]


@st.composite
def sights(draw: st.DrawFn) -> VisibleNotes:
    return VisibleNotes(
        scopes=draw(st.none() | st.frozensets(st.sampled_from(list(Scope)))),
        projects=draw(st.none() | st.frozensets(st.sampled_from([*PROJECTS[1:], "nowhere"]))),
    )


def found(notes: list[Note], query: Query) -> tuple[Hit, ...]:
    with tempfile.TemporaryDirectory() as folder:
        index = Index(Path(folder), embedder=HashingEmbedder(dim=64))
        try:
            index.refresh(Pile(*notes))
            return search(index, query, DAY)
        finally:
            index.close()


@settings(max_examples=examples(60), deadline=None)
@given(notes=piles(), sight=sights(), text=texts, mode=st.sampled_from(["hybrid", "keyword", "semantic"]), within=st.booleans())
def test_what_is_out_of_sight_leaves_no_trace(notes: list[Note], sight: VisibleNotes, text: str, mode: Mode, within: bool) -> None:
    query = Query(text=text, mode=mode, project="mycelia", within="mycelia" if within else "", visible=sight, limit=20)
    in_sight = [each for each in notes if sees(sight, each)]

    hits = found(notes, query)

    assert all(sees(sight, hit.note) for hit in hits)
    if not sight.whole:
        assert hits == found(in_sight, query)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    made = Index(tmp_path, embedder=HashingEmbedder(dim=64))
    yield made
    made.close()


def test_a_rare_word_of_others_notes_is_as_rare_as_it_is_among_ones_own(index: Index) -> None:
    mine = note("mine", "The acquisition", "Quarterly figures are due.", project="mycelia")
    theirs = [replace(mine, id=f"t{number}", path=f"facts/t{number}.md", project="orchard") for number in range(150)]
    query = Query(text="acquisition figures", mode="keyword", visible=VisibleNotes(projects=frozenset({"mycelia"})))
    index.refresh(Pile(mine))
    (alone,) = search(index, query, DAY)

    index.refresh(Pile(mine, *theirs))

    assert search(index, query, DAY) == (alone,)


def test_an_entitys_page_is_out_of_a_bounded_sight(index: Index) -> None:
    page = note("page", "PostgreSQL", "**Related:** [[a-secret-plan]]", kind=NoteKind.ENTITY, scope=Scope.GLOBAL)
    index.refresh(Pile(page))

    assert search(index, Query(text="postgresql"), DAY)
    assert not search(index, Query(text="postgresql", visible=VisibleNotes(scopes=frozenset({Scope.GLOBAL}))), DAY)
    assert not search(index, Query(text="postgresql", visible=VisibleNotes(projects=frozenset({"mycelia"}))), DAY)


@pytest.mark.parametrize(
    "sight", [VisibleNotes(scopes=frozenset()), VisibleNotes(projects=frozenset({"nowhere"}), scopes=frozenset({Scope.PROJECT}))]
)
def test_who_may_see_nothing_finds_nothing(index: Index, sight: VisibleNotes) -> None:
    index.refresh(Pile(note("n", "Queues", "A queue.", project="mycelia")))

    assert search(index, Query(text="queue", visible=sight), DAY) == ()
