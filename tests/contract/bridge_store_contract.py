"""What every store of the bridge promises. Subclass it, and give it the fixture `store`: a new one, empty."""

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kite_memory.errors import UsageError
from kite_memory.model.note import (
    TURNED_DOWN,
    Decision,
    Fact,
    Insight,
    Note,
    NoteKind,
    NoteStatus,
    OpenQuestion,
    Preference,
    Record,
    Rejected,
    Scope,
    Topic,
)
from kite_memory.tools.argument_parsing import fits
from kite_memory.tools.store import (
    OWNER,
    Conflict,
    Grant,
    JsonValue,
    Memory,
    MemoryPlace,
    MemoryQuery,
    NotAllowed,
    NoteQuery,
    Saved,
    SavedConversation,
    State,
    Store,
    Todo,
)
from tests.contract.whole_note import ELSEWHERE, OTHERS, differing, whole_note
from tests.counts import examples

GLOBAL = MemoryPlace(scope=Scope.GLOBAL)
SHARED = MemoryPlace(scope=Scope.SHARED)
ORCHARD = MemoryPlace(scope=Scope.PROJECT, project="orchard")
HARBOUR = MemoryPlace(scope=Scope.PROJECT, project="harbour")
MORNING = MemoryPlace(scope=Scope.SESSION, project="orchard", session="morning")
EVENING = MemoryPlace(scope=Scope.SESSION, project="orchard", session="evening")
PLACES = (
    GLOBAL,
    SHARED,
    replace(SHARED, project="orchard"),
    replace(SHARED, project="harbour"),
    ORCHARD,
    HARBOUR,
    MORNING,
    EVENING,
)

ORCHARD_ONLY = Grant(name="orchardist", projects=frozenset({"orchard"}))
READ_ONLY = Grant(name="reader", write=False)
GRANTS = (
    OWNER,
    READ_ONLY,
    ORCHARD_ONLY,
    Grant(name="both", projects=frozenset({"orchard", "harbour"})),
    Grant(name="elsewhere", projects=frozenset({"lighthouse"})),
    Grant(name="nowhere", projects=frozenset()),
    Grant(name="nothing", scopes=frozenset()),
    Grant(name="global", scopes=frozenset({Scope.GLOBAL})),
    Grant(name="shared", scopes=frozenset({Scope.SHARED}), projects=frozenset({"harbour"})),
    Grant(name="projects", scopes=frozenset({Scope.PROJECT})),
    Grant(name="sessions", scopes=frozenset({Scope.SESSION}), projects=frozenset({"orchard"})),
)

CHAT = "5f0c9a52-6d7e-4c1b-9a3e-0b6f2d1c8e47"
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
WILD_TEXTS = (
    "tea",
    "a\0b\x1b[31mred",
    "مرحبا \u202eبالعالم\u202c שלום",
    "👩‍👩‍👧 emoji 🏳️‍🌈",
    "日本語のメモ",
    "line\r\nbreaks\n\n---\nid: x\n---\n</vault-context>",
    "'; DROP TABLE note; -- %s %(x)s {} \\",
    "[[link]] `code` <% tp.run %>",
    "  blanks around  ",
    "x" * 200_000,
    "",
)
HALVES = "half \ud83d a pair \udc00"
"""What no encoding holds, though JSON can spell it: values and notes meet it, other text is mended before it gets this far."""
SQL_KEYS = ("a%b", "a_b", "a\\b", "axb", "a.b", "a'b", 'a"b', "a;b", "ä.b", "a%%b", "a\\%b", "A.B", "$a", "[a]")

_PIECES = (
    "[[", "]]", "![[", "|", "`", "```", "```json", "~~~", "---", "\n", "\r", "\r\n", " ", "\t", "\n---\nid: x\n", "<%", "%>",
    "\u2028", "\x85", "\ufeff", "\x1c", "\xa0", "\u200b", "\u202e", "\ufffd", "\uffff", "\U0001ffff", "\x00", "é", "e\u0301",
    "\ud800", "#", "> ", "**Related:**", "- ", "\\", '"', "{", "}", "null", "NaN", "1e5", "-0.0", "[[Home]]", "%%", "a",
)  # fmt: skip
"""What means something to markdown, YAML, JSON, Obsidian, or one of those who cut text into lines."""
_TEXTS = st.text() | st.lists(st.sampled_from(_PIECES), max_size=8).map("".join)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)
_with_one_store = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))


def wanted_keys(store: Store, wanted: MemoryQuery, grant: Grant = OWNER) -> list[str]:
    return [memory.key for memory in store.memories(grant, wanted)]


def values(store: Store, wanted: MemoryQuery, grant: Grant = OWNER) -> list[JsonValue]:
    return [memory.value for memory in store.memories(grant, wanted)]


def only(store: Store, key: str, grant: Grant = OWNER) -> Memory:
    (memory,) = store.memories(grant, MemoryQuery(pattern=key))
    return memory


def decision(title: str, body: str = "") -> Decision:
    return Decision(
        title=title,
        body=body or f"{title}, since it was asked for.",
        evidence=("e1",),
        importance=2,
        origin="user",
        rejected=(Rejected(alternative="Fences", reason="deer jump them"),),
    )


def conversation(uuid: str = CHAT, *topics: Topic, **fields: Any) -> SavedConversation:
    conversation = SavedConversation(
        uuid=uuid,
        source="claude_code",
        project="orchard",
        record=Record(
            topics=topics or (Topic(name="Keeping deer out", summary="How to keep deer out.", items=(decision("Plant hedges"),)),)
        ),
        overall="About the deer.",
        created=NOW,
        updated=NOW,
    )
    return replace(conversation, **fields)


def state(ai: str = "claude", session: str = "morning", **fields: Any) -> State:
    state = State(
        ai=ai,
        session=session,
        project="orchard",
        todos=(Todo(text="water the seedlings"), Todo(text="mend the gate", status="done")),
        working_notes="the pump is loud",
        context_summary="planting",
        saved=NOW,
    )
    return replace(state, **fields)


def in_threads(*calls: Callable[[], object]) -> list[BaseException]:
    """Run at once; what they raised."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        start.wait()
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: whatever it is, the test wants to see it
            raised.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


class MemoriesContract:
    def test_what_is_written_is_read(self, store: Store) -> None:
        written = store.write_memory(OWNER, "project.database", {"port": 5432}, ORCHARD, by="claude", tags=["stack"])

        read = only(store, "project.database")

        assert read == written
        assert (read.key, read.value, read.place) == ("project.database", {"port": 5432}, ORCHARD)
        assert (read.version, read.created_by, read.tags) == (1, "claude", ("stack",))
        assert read.created <= read.updated
        assert read.created.tzinfo is not None
        assert read.expires is None

    def test_anyone_who_holds_the_grant_has_written_it_where_no_one_says(self, store: Store) -> None:
        store.write_memory(ORCHARD_ONLY, "k", 1, ORCHARD)

        assert only(store, "k").created_by == "orchardist"
        assert [version.by for version in store.versions(OWNER, "k", ORCHARD)] == ["orchardist"]

    @pytest.mark.parametrize("text", [*WILD_TEXTS, HALVES])
    def test_any_text_comes_back_as_it_was(self, store: Store, text: str) -> None:
        value: JsonValue = {"text": text, text[:50]: [text[:100], {"deep": text[:100]}]}

        store.write_memory(OWNER, "bare", text, ORCHARD)
        store.write_memory(OWNER, "within", value, ORCHARD)

        assert only(store, "bare").value == text
        assert only(store, "within").value == value

    @_with_one_store
    @given(value=_JSON)
    def test_any_json_comes_back_as_it_was(self, store: Store, value: JsonValue) -> None:
        store.write_memory(OWNER, "value", value, ORCHARD)

        read = only(store, "value").value

        assert read == value
        assert type(read) is type(value)

    def test_what_a_caller_does_to_a_value_afterwards_stays_its_own(self, store: Store) -> None:
        value: dict[str, JsonValue] = {"list": [1]}
        store.write_memory(OWNER, "k", value, ORCHARD)
        value["list"] = [2]

        read = only(store, "k").value
        assert isinstance(read, dict)
        read["list"] = [3]

        assert only(store, "k").value == {"list": [1]}

    def test_versions_count_up_and_are_kept_newest_first(self, store: Store) -> None:
        for number, by in enumerate(("claude", "codex", "gemini")):
            store.write_memory(OWNER, "k", {"n": number}, ORCHARD, by=by)

        kept = store.versions(OWNER, "k", ORCHARD)

        assert [(each.version, each.value, each.by) for each in kept] == [
            (3, {"n": 2}, "gemini"), (2, {"n": 1}, "codex"), (1, {"n": 0}, "claude"),
        ]  # fmt: skip
        assert [each.at for each in kept] == sorted((each.at for each in kept), reverse=True)
        assert only(store, "k").created_by == "claude"

    def test_the_same_value_again_is_no_new_version(self, store: Store) -> None:
        store.write_memory(OWNER, "k", {"n": 1}, ORCHARD, tags=["old"])

        written = store.write_memory(OWNER, "k", {"n": 1}, ORCHARD, tags=["new"], expected=1)

        assert (written.version, written.tags) == (1, ("new",))
        assert len(store.versions(OWNER, "k", ORCHARD)) == 1

    def test_tags_and_expiry_are_those_of_the_last_write(self, store: Store) -> None:
        soon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        store.write_memory(OWNER, "k", 1, ORCHARD, tags=["a", "b"], expires=soon)
        first = only(store, "k")
        store.write_memory(OWNER, "k", 2, ORCHARD, tags=["c"])

        second = only(store, "k")

        assert (set(first.tags), first.expires) == ({"a", "b"}, soon)
        assert (second.tags, second.expires) == (("c",), None)

    def test_what_is_said_beside_a_value_is_that_of_the_last_write(self, store: Store) -> None:
        store.write_memory(OWNER, "k", 1, ORCHARD, context={"why": "measured", "by": ["ada"]})
        assert only(store, "k").context == {"why": "measured", "by": ["ada"]}

        assert store.write_memory(OWNER, "k", 2, ORCHARD).context == {}
        assert only(store, "k").context == {}

    def test_a_write_over_the_expected_version_goes_through(self, store: Store) -> None:
        store.write_memory(OWNER, "k", "first", ORCHARD, expected=0)

        written = store.write_memory(OWNER, "k", "second", ORCHARD, expected=1)

        assert (written.version, only(store, "k").value) == (2, "second")

    @pytest.mark.parametrize("expected", [0, 1, 3, 10**9])
    def test_a_write_over_another_version_learns_which_there_is(self, store: Store, expected: int) -> None:
        store.write_memory(OWNER, "k", "first", ORCHARD)
        store.write_memory(OWNER, "k", "second", ORCHARD)

        with pytest.raises(Conflict) as result:
            store.write_memory(OWNER, "k", "lost?", ORCHARD, expected=expected)

        assert result.value.version == 2
        assert result.value.hint
        assert only(store, "k").value == "second"
        assert len(store.versions(OWNER, "k", ORCHARD)) == 2

    def test_a_write_over_what_is_not_there_learns_that_nothing_is(self, store: Store) -> None:
        with pytest.raises(Conflict) as result:
            store.write_memory(OWNER, "k", 1, ORCHARD, expected=1)

        assert result.value.version == 0
        assert store.memories(OWNER, MemoryQuery()) == []

    def test_a_deleted_memory_is_nowhere(self, store: Store) -> None:
        memory = store.write_memory(OWNER, "project.pond", "frogs live there", ORCHARD)

        deleted = store.delete_memory(OWNER, "project.pond", ORCHARD)

        assert deleted
        assert store.memories(OWNER, MemoryQuery()) == []
        assert store.versions(OWNER, "project.pond", ORCHARD) == []
        assert store.note(OWNER, memory.id) is None
        assert store.search(OWNER, NoteQuery(text="frogs pond")) == []
        assert not store.delete_memory(OWNER, "project.pond", ORCHARD)

    def test_a_version_never_comes_again_so_that_a_stale_one_never_fits(self, store: Store) -> None:
        stale = store.write_memory(OWNER, "k", "before", ORCHARD).version
        store.delete_memory(OWNER, "k", ORCHARD)
        anew = store.write_memory(OWNER, "k", "after", ORCHARD, expected=0)

        with pytest.raises(Conflict) as result:
            store.write_memory(OWNER, "k", "lost", ORCHARD, expected=stale)

        assert result.value.version == anew.version
        assert [each.value for each in store.versions(OWNER, "k", ORCHARD)] == ["after"]

    def test_what_has_expired_is_nowhere(self, store: Store) -> None:
        past = datetime.now(UTC) - timedelta(seconds=1)
        memory = store.write_memory(OWNER, "current.mood", "rainbows everywhere", ORCHARD, expires=past)

        assert store.memories(OWNER, MemoryQuery()) == []
        assert store.memories(OWNER, MemoryQuery(pattern="current.mood")) == []
        assert store.versions(OWNER, "current.mood", ORCHARD) == []
        assert store.search(OWNER, NoteQuery(text="rainbows mood")) == []
        assert store.note(OWNER, memory.id) is None
        assert store.recent(OWNER, "orchard", frozenset(), 10) == []
        assert not store.delete_memory(OWNER, "current.mood", ORCHARD)

    def test_what_has_expired_makes_room_for_a_new_one(self, store: Store) -> None:
        past = datetime.now(UTC) - timedelta(seconds=1)
        stale = store.write_memory(OWNER, "k", "old", ORCHARD, expires=past).version

        with pytest.raises(Conflict) as result:
            store.write_memory(OWNER, "k", "lost", ORCHARD, expected=stale)
        store.write_memory(OWNER, "k", "new", ORCHARD, expected=0)

        assert result.value.version == 0
        assert only(store, "k").value == "new"
        assert [each.value for each in store.versions(OWNER, "k", ORCHARD)] == ["new"]

    def test_the_same_key_elsewhere_is_another_memory(self, store: Store) -> None:
        for number, place in enumerate(PLACES):
            store.write_memory(OWNER, "k", number, place)

        store.delete_memory(OWNER, "k", ORCHARD)

        found = {memory.place: memory.value for memory in store.memories(OWNER, MemoryQuery())}
        assert found == {place: number for number, place in enumerate(PLACES) if place != ORCHARD}

    def test_the_nearest_comes_first_and_others_sessions_and_projects_not_at_all(self, store: Store) -> None:
        for place in PLACES:
            store.write_memory(OWNER, "k", f"{place.scope} {place.project} {place.session}", place)

        found = values(store, MemoryQuery(pattern="k", project="orchard", session="morning"))

        assert found == ["session orchard morning", "project orchard ", "shared orchard ", "shared  ", "global  "]

    @pytest.mark.parametrize("scope", [Scope.SHARED, Scope.SESSION])
    def test_of_one_scope_a_projects_own_comes_before_no_ones(self, store: Store, scope: Scope) -> None:
        session = "morning" if scope is Scope.SESSION else ""
        for project in ("", "orchard", "harbour"):
            store.write_memory(OWNER, "k", project, MemoryPlace(scope=scope, project=project, session=session))

        nearest = values(store, MemoryQuery(pattern="k", scope=scope, project="orchard", session=session, limit=1))

        assert nearest == ["orchard"]
        assert values(store, MemoryQuery(pattern="k", scope=scope)) == ["harbour", "orchard", ""]

    def test_by_key_and_within_a_key_the_nearest_first(self, store: Store) -> None:
        for key, place in itertools.product(("b", "a", "B", "é", "a.a"), (GLOBAL, MORNING, SHARED, ORCHARD)):
            store.write_memory(OWNER, key, 1, place)

        found = [(memory.key, memory.place.scope) for memory in store.memories(OWNER, MemoryQuery())]

        scopes = (Scope.SESSION, Scope.PROJECT, Scope.SHARED, Scope.GLOBAL)
        assert found == [(key, scope) for key in ("B", "a", "a.a", "b", "é") for scope in scopes]

    def test_a_scope_is_asked_for_alone(self, store: Store) -> None:
        for place in PLACES:
            store.write_memory(OWNER, f"{place.scope}.{place.project}.{place.session}", 1, place)

        assert wanted_keys(store, MemoryQuery(scope=Scope.GLOBAL)) == ["global.."]
        assert wanted_keys(store, MemoryQuery(scope=Scope.PROJECT)) == ["project.harbour.", "project.orchard."]
        assert wanted_keys(store, MemoryQuery(scope=Scope.SESSION, session="evening")) == ["session.orchard.evening"]

    def test_all_the_tags_asked_for_must_be_there(self, store: Store) -> None:
        store.write_memory(OWNER, "both", 1, ORCHARD, tags=["red", "round"])
        store.write_memory(OWNER, "one", 1, ORCHARD, tags=["red"])
        store.write_memory(OWNER, "none", 1, ORCHARD)

        assert wanted_keys(store, MemoryQuery(tags=("red",))) == ["both", "one"]
        assert wanted_keys(store, MemoryQuery(tags=("round", "red"))) == ["both"]
        assert wanted_keys(store, MemoryQuery(tags=("re",))) == []

    def test_a_limit_keeps_the_first(self, store: Store) -> None:
        for number in range(12):
            store.write_memory(OWNER, f"k{number:02}", number, ORCHARD)

        assert values(store, MemoryQuery(limit=3)) == [0, 1, 2]
        assert len(values(store, MemoryQuery(limit=100))) == 12

    def test_the_newest_come_first_where_they_are_asked_for_whatever_they_are_called(self, store: Store) -> None:
        for number in range(60):
            store.write_memory(OWNER, f"current.k{number:02}", number, ORCHARD)
        store.write_memory(OWNER, "current.elsewhere", "hidden", HARBOUR)
        store.write_memory(OWNER, "project.other", "another namespace", ORCHARD)
        store.write_memory(OWNER, "current.a", "newest but one", ORCHARD)
        store.write_memory(OWNER, "current.k05", "changed last", ORCHARD)

        wanted = MemoryQuery(pattern="current.*", project="orchard", limit=4, newest=True)

        assert values(store, wanted) == ["changed last", "newest but one", 59, 58]
        assert values(store, replace(wanted, project="harbour")) == ["hidden"]

    @pytest.mark.parametrize(
        "pattern", ["*", "a*", "*b", "a?b", "?.b", "a%*", "a_?", "a\\*", "*\\*", "**", "a**b", "?*?", "[a]*", "*'*"]
    )
    def test_patterns_know_two_signs_and_take_all_others_as_they_are(self, store: Store, pattern: str) -> None:
        for key in SQL_KEYS:
            store.write_memory(OWNER, key, key, ORCHARD)

        found = wanted_keys(store, MemoryQuery(pattern=pattern))

        assert found == sorted(key for key in SQL_KEYS if fits(pattern, key))
        assert found

    @pytest.mark.parametrize("key", SQL_KEYS)
    def test_a_key_finds_itself_alone(self, store: Store, key: str) -> None:
        for each in SQL_KEYS:
            store.write_memory(OWNER, each, each, ORCHARD)

        assert values(store, MemoryQuery(pattern=key)) == [key]

    @pytest.mark.parametrize("pattern", ["", "nothing*", "no\0thing", "a" * 5000, "*a" * 300])
    def test_a_pattern_that_fits_nothing_finds_nothing(self, store: Store, pattern: str) -> None:
        store.write_memory(OWNER, "key", 1, ORCHARD)

        assert store.memories(OWNER, MemoryQuery(pattern=pattern)) == []

    def test_being_looked_at_is_counted_and_changes_nothing_else(self, store: Store) -> None:
        written = store.write_memory(OWNER, "k", 1, ORCHARD)
        for _ in range(3):
            store.memories(OWNER, MemoryQuery(pattern="k"), touch=True)

        read = only(store, "k")

        assert read.access_count == 3
        assert read.accessed is not None
        assert replace(read, access_count=0, accessed=None) == written

    def test_who_may_only_read_is_counted_too(self, store: Store) -> None:
        store.write_memory(OWNER, "k", 1, ORCHARD)
        store.memories(READ_ONLY, MemoryQuery(), touch=True)

        assert only(store, "k").access_count == 1

    def test_only_what_is_shown_is_counted(self, store: Store) -> None:
        store.write_memory(OWNER, "a", 1, ORCHARD)
        store.write_memory(OWNER, "b", 1, HARBOUR)
        store.memories(ORCHARD_ONLY, MemoryQuery(), touch=True)
        store.memories(OWNER, MemoryQuery(limit=1), touch=True)

        assert {memory.key: memory.access_count for memory in store.memories(OWNER, MemoryQuery())} == {"a": 2, "b": 0}

    def test_a_memory_is_a_note(self, store: Store) -> None:
        memory = store.write_memory(OWNER, "project.pond", {"depth": "bottomless"}, ORCHARD, tags=["water"])

        note = store.note(OWNER, memory.id)
        by_value = store.search(OWNER, NoteQuery(text="bottomless"))
        by_key = store.search(OWNER, NoteQuery(text="pond"))

        assert note is not None
        assert (note.id, note.key, note.project, note.scope) == (memory.id, "project.pond", "orchard", Scope.PROJECT)
        assert "bottomless" in note.body
        assert [found.note.id for found in by_value] == [memory.id]
        assert [found.note.id for found in by_key] == [memory.id]

    def test_a_memory_is_found_by_what_it_says_now(self, store: Store) -> None:
        memory = store.write_memory(OWNER, "project.pond", "full of salamanders", ORCHARD)
        store.write_memory(OWNER, "project.pond", "full of kingfishers", ORCHARD)

        assert store.search(OWNER, NoteQuery(text="salamanders")) == []
        assert [found.note.id for found in store.search(OWNER, NoteQuery(text="kingfishers"))] == [memory.id]

    def test_forgetting_its_note_deletes_a_memory(self, store: Store) -> None:
        memory = store.write_memory(OWNER, "k", 1, ORCHARD)

        assert store.forget(OWNER, memory.id)
        assert store.memories(OWNER, MemoryQuery()) == []


class NotesContract:
    not_put: frozenset[str] = frozenset()
    """What only a method of the store's own gives a note; needs the fixture `put`: a note, kept as it is in the store."""

    def test_what_is_remembered_is_found_at_once(self, store: Store) -> None:
        note = store.remember(
            OWNER,
            "We chose hedges over fences for the deer",
            NoteKind.DECISION,
            ORCHARD,
            tags=["garden"],
            title="Hedges over fences",
        )

        (found,) = store.search(OWNER, NoteQuery(text="hedges fences"))

        assert found.note.id == note.id
        assert (note.kind, note.title, note.project, note.scope) == (
            NoteKind.DECISION, "Hedges over fences", "orchard", Scope.PROJECT,
        )  # fmt: skip
        assert "hedges over fences for the deer" in note.body
        assert "garden" in note.tags
        assert 0 < found.score <= 1
        assert found.why
        assert "hedges" in found.snippet

    @pytest.mark.parametrize("text", [*filter(None, WILD_TEXTS), HALVES])
    def test_any_text_can_be_remembered_and_asked_for(self, store: Store, text: str) -> None:
        note = store.remember(OWNER, f"about {text[:-10]}", NoteKind.FACT, ORCHARD, title=text[:500])

        store.search(OWNER, NoteQuery(text=text))
        found = store.note(OWNER, note.id)

        assert found is not None
        assert "\0" not in found.body + found.title
        found.body.encode()
        assert found == note

    def test_half_a_character_breaks_nothing_wherever_it_stands(self, store: Store) -> None:
        place = MemoryPlace(scope=Scope.SESSION, project=f"orchard {HALVES}", session=HALVES)
        item = replace(
            decision(f"Plant {HALVES}"),
            entities=(HALVES,),
            evidence=(HALVES,),
            rejected=(Rejected(alternative=HALVES, reason=HALVES),),
        )
        topic = Topic(name=HALVES, summary=HALVES, items=(item,), categories=(HALVES,), entities=(HALVES,))
        result = conversation(
            CHAT, topic, overall=HALVES, source=HALVES, project=place.project, created_by=HALVES, transcript=HALVES
        )

        memory = store.write_memory(OWNER, HALVES, 1, place, by=HALVES, tags=[HALVES])
        note = store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, place, by=HALVES, tags=[HALVES], title=HALVES)
        store.save_state(OWNER, state(HALVES, HALVES, project=place.project, working_notes=HALVES, todos=(Todo(text=HALVES),)))
        store.transfer_state(OWNER, HALVES, from_session=HALVES, to_session="evening", at=NOW)
        store.save_conversation(OWNER, result)

        assert [each.version for each in store.versions(OWNER, HALVES, place)] == [1]
        assert [each.id for each in store.memories(OWNER, MemoryQuery(pattern=memory.key, project=memory.place.project))] == [
            memory.id
        ]
        assert len(store.states(OWNER, ai=HALVES, project=place.project)) == 2
        kept, text = store.conversation(OWNER, CHAT), store.transcript(OWNER, CHAT)
        assert kept is not None and text is not None
        assert kept.record.topics[0].items[0].title.startswith("Plant half ")
        store.search(OWNER, NoteQuery(text=HALVES, project=HALVES, within=True))
        store.recent(OWNER, HALVES, frozenset(), 10)
        assert store.note(OWNER, HALVES) is None and not store.forget(OWNER, HALVES)
        assert store.conversation(OWNER, HALVES) is None and store.transcript(OWNER, HALVES) is None
        assert store.note(OWNER, note.id) is not None
        assert store.delete_memory(OWNER, HALVES, place)

    def test_all_that_a_note_holds_comes_back(self, store: Store, put: Callable[[Note], Note]) -> None:
        stems = (PurePosixPath(put(each).path).stem for each in OTHERS)
        note = whole_note(*stems)
        put(note)

        kept = store.note(OWNER, note.id)

        assert kept is not None
        assert differing(kept, note, but=ELSEWHERE | self.not_put) == {}

    def test_a_note_is_called_by_id_and_by_path(self, store: Store) -> None:
        note = store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)

        assert store.note(OWNER, note.id) == note
        assert store.note(OWNER, note.path) == note
        assert store.note(OWNER, "no such note") is None
        assert store.note(OWNER, "") is None

    def test_notes_of_a_title_are_those_that_the_grant_sees(self, store: Store) -> None:
        here = store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD, title="The gate")
        there = store.remember(OWNER, "Gulls guard the gate", NoteKind.FACT, HARBOUR, title="The gate")
        store.remember(OWNER, "Ducks swim", NoteKind.FACT, ORCHARD, title="The pond")

        assert {note.id for note in store.titled(OWNER, "The gate")} == {here.id, there.id}
        assert [note.id for note in store.titled(ORCHARD_ONLY, "The gate")] == [here.id]
        assert store.titled(OWNER, "No such gate") == store.titled(OWNER, HALVES) == store.titled(OWNER, "") == []

    def test_the_same_words_again_in_the_same_place_are_one_note(self, store: Store) -> None:
        first = store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)

        store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)

        assert [found.note.id for found in store.search(OWNER, NoteQuery(text="geese guard"))] == [first.id]

    def test_the_same_words_elsewhere_are_another_note(self, store: Store) -> None:
        ids = {store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, place).id for place in (ORCHARD, HARBOUR, GLOBAL)}

        assert len(ids) == 3

    def test_a_forgotten_note_is_nowhere(self, store: Store) -> None:
        note = store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)

        assert store.forget(OWNER, note.path)
        assert store.note(OWNER, note.id) is None
        assert store.search(OWNER, NoteQuery(text="geese")) == []
        assert store.recent(OWNER, "orchard", frozenset(), 10) == []
        assert not store.forget(OWNER, note.id)

    def test_recent_are_a_projects_and_everybodys_newest_first(self, store: Store) -> None:
        first = store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, ORCHARD)
        second = store.remember(OWNER, "Everyone drinks tea at four", NoteKind.PREFERENCE, GLOBAL)
        store.remember(OWNER, "Boats leave at dawn", NoteKind.FACT, HARBOUR)
        third = store.remember(OWNER, "Which trees bear first?", NoteKind.QUESTION, ORCHARD)

        assert [note.id for note in store.recent(OWNER, "orchard", frozenset(), 10)] == [third.id, second.id, first.id]
        assert [note.id for note in store.recent(OWNER, "orchard", frozenset(), 1)] == [third.id]
        assert [note.id for note in store.recent(OWNER, "orchard", frozenset({NoteKind.FACT}), 10)] == [first.id]

    def test_a_search_keeps_to_what_is_asked_for(self, store: Store) -> None:
        ours = store.remember(OWNER, "The orchard's gate squeaks", NoteKind.FACT, ORCHARD).id
        theirs = store.remember(OWNER, "The harbour's gate rattles", NoteKind.INSIGHT, HARBOUR).id
        everybodys = {
            store.remember(OWNER, "A gate is shut behind you", NoteKind.PREFERENCE, GLOBAL).id,
            store.remember(OWNER, "The gate of the toolshed sticks", NoteKind.INSIGHT, replace(SHARED, project="harbour")).id,
        }
        later = datetime.now(UTC) + timedelta(minutes=1)

        def found(asked: NoteQuery) -> set[str]:
            return {each.note.id for each in store.search(OWNER, asked)}

        assert found(NoteQuery(text="gate")) == {ours, theirs, *everybodys}
        assert found(NoteQuery(text="gate", project="orchard")) == {ours, theirs, *everybodys}
        assert found(NoteQuery(text="gate", project="orchard", within=True)) == {ours, *everybodys}
        assert found(NoteQuery(text="gate", kinds=frozenset({NoteKind.QUESTION, NoteKind.FACT}))) == {ours}
        assert found(NoteQuery(text="gate", since=later)) == set()
        assert len(found(NoteQuery(text="gate", limit=2))) == 2

    def test_of_two_alike_the_project_s_own_stands_first(self, store: Store) -> None:
        store.remember(OWNER, "The gate squeaks when it rains", NoteKind.FACT, HARBOUR)
        ours = store.remember(OWNER, "The gate squeaks when it rains", NoteKind.FACT, ORCHARD)

        assert store.search(OWNER, NoteQuery(text="gate squeaks", project="orchard"))[0].note.id == ours.id

    def test_the_best_stands_first_and_scores_say_so(self, store: Store) -> None:
        for number in range(6):
            store.remember(OWNER, f"Ladder number {number} hangs in the barn", NoteKind.FACT, ORCHARD)
        best = store.remember(OWNER, "The tall ladder is cracked at the third rung", NoteKind.INSIGHT, ORCHARD)

        found = store.search(OWNER, NoteQuery(text="cracked rung of the tall ladder"))

        assert found[0].note.id == best.id
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)

    @pytest.mark.parametrize(
        "text", ["", "   ", "the of and", "\0", "\ud800", "'", "' | '' & !", "%_\\", ":*", "(((", "a" * 100_000]
    )
    def test_a_question_that_says_nothing_finds_nothing(self, store: Store, text: str) -> None:
        store.remember(OWNER, "Geese guard every gate", NoteKind.FACT, ORCHARD)

        assert store.search(OWNER, NoteQuery(text=text)) == []


class ConversationsContract:
    def test_a_conversation_comes_back_whole(self, store: Store) -> None:
        changed = conversation(
            CHAT,
            Topic(
                name="Keeping deer out",
                summary="Hedges it is.",
                items=(
                    decision("Plant hedges"),
                    Insight(
                        title="Deer jump", body="They clear two metres.", evidence=("e2",), importance=3, origin="tool",
                        symptom="broken fence", entities=("deer",), triggers=("fence is down",),
                    ),
                ),
                categories=("garden",),
                entities=("deer", "hedge"),
            ),
            Topic(
                name="Watering",
                summary="At dusk.",
                items=(
                    Fact(title="The well is deep", body="Forty metres.", evidence=("e3",), importance=1, origin="user"),
                    Preference(
                        title="No sprinklers", body="They waste.", evidence=("e4",), importance=2, origin="user", everywhere=True
                    ),
                    OpenQuestion(title="Which pump?", body="Electric, or by hand?", evidence=("e5",), importance=2, origin="tool"),
                ),
            ),
            source="gemini_cli",
            created_by="gemini",
        )  # fmt: skip
        changed = replace(changed, record=replace(changed.record, cross_topic_insights=("Water draws deer",)))

        saved = store.save_conversation(OWNER, changed)
        back = store.conversation(OWNER, CHAT)

        assert back == changed
        assert (saved.uuid, saved.amended, len(saved.notes)) == (CHAT, False, 5)

    def test_it_is_found_by_its_journal_and_by_what_it_yields(self, store: Store) -> None:
        saved = store.save_conversation(OWNER, conversation())

        journal = store.note(OWNER, saved.journal)
        (yielded,) = (store.note(OWNER, name) for name in saved.notes)
        found = {each.note.id for each in store.search(OWNER, NoteQuery(text="hedges"))}

        assert journal is not None
        assert (journal.kind, journal.session, journal.project) == (NoteKind.JOURNAL, CHAT, "orchard")
        assert yielded is not None
        assert (yielded.kind, yielded.title, yielded.project) == (NoteKind.DECISION, "Plant hedges", "orchard")
        assert "deer jump them" in yielded.body
        assert found == {saved.journal, *saved.notes}

    @pytest.mark.parametrize("text", WILD_TEXTS)
    def test_any_transcript_comes_back_as_it_was(self, store: Store, text: str) -> None:
        store.save_conversation(OWNER, conversation(transcript=text))

        back = store.conversation(OWNER, CHAT)

        assert store.transcript(OWNER, CHAT) == (text or None)
        assert back is not None
        assert (back.transcript, back.has_transcript) == ("", bool(text))

    @pytest.mark.parametrize("text", [text for text in WILD_TEXTS if text.strip()])
    def test_any_text_may_be_reported(self, store: Store, text: str) -> None:
        result = conversation(
            CHAT,
            Topic(name=text[:80], summary=text[:5000], items=(decision(text[:200], f"because {text[:5000]}"),)),
            overall=text[:5000],
        )

        saved = store.save_conversation(OWNER, result)
        back = store.conversation(OWNER, CHAT)

        assert back is not None
        assert len(back.record.items()) == 1
        assert store.note(OWNER, saved.journal) is not None

    def test_what_no_one_saved_is_not_there(self, store: Store) -> None:
        for uuid in ("nothing", "", "\0", "../nothing"):
            assert store.conversation(OWNER, uuid) is None
            assert store.transcript(OWNER, uuid) is None

    def test_saving_it_again_amends_it(self, store: Store) -> None:
        first = store.save_conversation(OWNER, conversation(transcript="all of it", created_by="claude"))
        later = NOW + timedelta(hours=1)
        again = conversation(
            CHAT,
            Topic(name="Keeping deer out", summary="Hedges, after all.", items=(decision("Plant hedges", "Thorny ones."),)),
            Topic(name="Watering", summary="At dusk.", items=(decision("Dig a well"),)),
            created=later,
            updated=later,
            created_by="codex",
        )

        second = store.save_conversation(OWNER, again)
        back = store.conversation(OWNER, CHAT)

        assert (second.amended, second.journal) == (True, first.journal)
        assert set(first.notes) < set(second.notes)
        assert back is not None
        assert (back.created, back.created_by, back.updated) == (NOW, "claude", later)
        assert [topic.summary for topic in back.record.topics] == ["Hedges, after all.", "At dusk."]
        assert back.has_transcript
        assert store.transcript(OWNER, CHAT) == "all of it"
        amended = store.note(OWNER, first.notes[0])
        assert amended is not None
        assert "Thorny ones" in amended.body

    def test_it_stays_where_it_was_and_says_so(self, store: Store) -> None:
        store.save_conversation(OWNER, conversation())

        saved = store.save_conversation(OWNER, conversation(project="harbour", scope=Scope.SHARED))

        assert (saved.amended, saved.project, saved.scope) == (True, "orchard", Scope.PROJECT)

    @pytest.mark.parametrize("elsewhere", [{"project": "harbour"}, {"scope": Scope.SHARED}], ids=str)
    def test_who_asks_for_another_place_learns_where_it_is(self, store: Store, elsewhere: dict[str, Any]) -> None:
        store.save_conversation(OWNER, conversation())

        with pytest.raises(UsageError, match=r"'orchard'.*'project'"):
            store.save_conversation(OWNER, conversation(overall="Moved.", **elsewhere), named=elsewhere)

        kept = store.conversation(OWNER, CHAT)
        assert kept is not None
        assert kept.overall == "About the deer."

    def test_who_does_not_see_where_it_is_may_ask_for_any_place(self, store: Store) -> None:
        store.save_conversation(OWNER, conversation(project="harbour"))

        saved = store.save_conversation(ORCHARD_ONLY, conversation(), named=("scope", "project"))

        assert (saved.amended, saved.project) == (False, "orchard")

    def test_saving_it_again_keeps_what_the_second_telling_leaves_out(self, store: Store) -> None:
        first = store.save_conversation(OWNER, conversation())
        other = Topic(name="Watering", summary="At dusk.", items=(decision("Dig a well"),))

        store.save_conversation(OWNER, conversation(CHAT, other, updated=NOW + timedelta(hours=1)))
        back = store.conversation(OWNER, CHAT)

        assert back is not None
        assert {item.title for item in back.record.items()} == {"Plant hedges", "Dig a well"}
        assert store.note(OWNER, first.notes[0]) is not None

    def test_saving_the_same_again_changes_nothing(self, store: Store) -> None:
        first = store.save_conversation(OWNER, conversation())

        second = store.save_conversation(OWNER, conversation())

        assert (second.journal, second.notes) == (first.journal, first.notes)
        assert len(store.recent(OWNER, "orchard", frozenset(), 10)) == 2

    def test_a_note_of_it_that_was_forgotten_does_not_come_back(self, store: Store) -> None:
        saved = store.save_conversation(OWNER, conversation())
        store.forget(OWNER, saved.notes[0])

        again = store.save_conversation(OWNER, conversation(updated=NOW + timedelta(hours=1)))

        assert again.notes == ()
        assert [reason for _, reason in again.refused]
        assert store.note(OWNER, saved.notes[0]) is None

    def test_what_was_forgotten_of_it_is_not_reported_again(self, store: Store) -> None:
        topic = Topic(name="Keeping deer out", summary="Both.", items=(decision("Plant hedges"), decision("Dig a ditch")))
        saved = store.save_conversation(OWNER, conversation(CHAT, topic))
        store.forget(OWNER, saved.notes[0])

        back = store.conversation(OWNER, CHAT)

        assert back is not None
        assert [item.title for item in back.record.items()] == ["Dig a ditch"]

    def test_its_journal_says_nothing_of_what_was_forgotten(self, store: Store) -> None:
        hedges, ditch = decision("Plant hedges", "Hawthorn grows quickly."), decision("Dig a ditch", "Deer dislike wet feet.")
        topic = Topic(name="Keeping deer out", summary="Both.", items=(hedges, ditch))
        saved = store.save_conversation(OWNER, conversation(CHAT, topic))
        (gone,) = (id for id in saved.notes if (note := store.note(OWNER, id)) is not None and note.title == "Plant hedges")
        store.forget(OWNER, gone)

        for later, items in enumerate(((), (decision("Buy a dog"),), (hedges,))):
            if items:
                again = replace(topic, items=items)
                store.save_conversation(OWNER, conversation(CHAT, again, updated=NOW + timedelta(hours=later)))
            journal = store.note(OWNER, saved.journal)
            assert journal is not None
            assert "wet feet" in journal.body
            assert "awthorn" not in journal.body + str(store.conversation(OWNER, CHAT))
            assert "edges" not in journal.body
            assert store.search(OWNER, NoteQuery(text="hawthorn")) == []

    def test_a_change_of_mind_replaces_what_was_decided(self, store: Store) -> None:
        first = store.save_conversation(OWNER, conversation())
        topic = Topic(name="Keeping deer out", summary="No hedges.", items=(decision(f"{TURNED_DOWN}Plant hedges", "Too slow."),))

        second = store.save_conversation(OWNER, conversation(CHAT, topic, updated=NOW + timedelta(hours=1)))
        back = store.conversation(OWNER, CHAT)

        old = store.note(OWNER, first.notes[0])
        assert old is not None
        assert old.status is NoteStatus.SUPERSEDED
        new = store.note(OWNER, next(id for id in second.notes if id != old.id))
        assert new is not None
        assert (old.superseded_by, new.supersedes) == (PurePosixPath(new.path).stem, (PurePosixPath(old.path).stem,))
        assert old.valid_until == new.valid_from is not None
        assert back is not None
        assert [item.title for item in back.record.items()] == [f"{TURNED_DOWN}Plant hedges"]
        found = [each.note.id for each in store.search(OWNER, NoteQuery(text="plant hedges", kinds=frozenset({NoteKind.DECISION})))]
        assert set(found) >= set(second.notes)

    def test_one_of_the_same_id_elsewhere_does_not_capture_it(self, store: Store) -> None:
        elsewhere = Grant(name="harbourer", scopes=frozenset({Scope.PROJECT}), projects=frozenset({"harbour"}))
        first = store.save_conversation(OWNER, conversation(transcript="of the orchard"))
        later = conversation(project="harbour", updated=NOW + timedelta(hours=1), transcript="of the harbour")
        store.save_conversation(elsewhere, later)

        for named in ((), ("project",)):
            topic = Topic(name="Wells", summary="Two.", items=(decision("Dig a second well"),))
            again = conversation(CHAT, topic, updated=NOW + timedelta(hours=2))
            saved = store.save_conversation(OWNER, again, named=named)
            assert (saved.journal, saved.project, saved.amended) == (first.journal, "orchard", True)

        theirs = store.conversation(elsewhere, CHAT)
        assert theirs is not None
        assert "Dig a second well" not in {item.title for item in theirs.record.items()}
        assert [store.transcript(OWNER, CHAT, near=place) for place in (ORCHARD, HARBOUR)] == ["of the orchard", "of the harbour"]
        near = store.conversation(OWNER, CHAT, near=HARBOUR)
        assert near is not None
        assert near.project == "harbour"

    def test_a_forgotten_one_does_not_come_back(self, store: Store) -> None:
        saved = store.save_conversation(OWNER, conversation(transcript="all of it"))
        store.forget(OWNER, saved.journal)

        again = store.save_conversation(OWNER, conversation(updated=NOW + timedelta(hours=1), transcript="all of it"))

        assert (again.journal, again.notes, [what for what, _ in again.refused]) == ("", (), [CHAT])
        assert store.note(OWNER, saved.journal) is None
        assert store.conversation(OWNER, CHAT) is None
        assert store.transcript(OWNER, CHAT) is None

    def test_it_is_gone_with_its_journal(self, store: Store) -> None:
        saved = store.save_conversation(OWNER, conversation(transcript="all of it"))

        assert store.forget(OWNER, saved.journal)
        assert store.conversation(OWNER, CHAT) is None
        assert store.transcript(OWNER, CHAT) is None


class StatesContract:
    def test_a_state_comes_back_as_it_was_saved(self, store: Store) -> None:
        store.save_state(OWNER, state())

        assert store.states(OWNER) == [state()]

    @pytest.mark.parametrize("text", WILD_TEXTS)
    def test_any_text_may_be_in_hand(self, store: Store, text: str) -> None:
        result = state(todos=(Todo(text=text),), working_notes=text, context_summary=text)
        store.save_state(OWNER, result)

        assert store.states(OWNER) == [result]

    def test_saving_again_replaces_and_others_keep_their_own(self, store: Store) -> None:
        later = NOW + timedelta(hours=1)
        store.save_state(OWNER, state("claude", "morning"))
        store.save_state(OWNER, state("codex", "morning", saved=NOW - timedelta(hours=1)))
        store.save_state(OWNER, state("claude", "evening", saved=NOW + timedelta(minutes=1)))
        store.save_state(OWNER, state("claude", "morning", working_notes="now", saved=later))

        found = [(each.ai, each.session, each.working_notes) for each in store.states(OWNER)]

        assert found == [
            ("claude", "morning", "now"),
            ("claude", "evening", "the pump is loud"),
            ("codex", "morning", "the pump is loud"),
        ]

    def test_of_a_state_that_is_there_only_what_is_named_changes(self, store: Store) -> None:
        later = state(working_notes="the pump is mended", todos=(), saved=NOW + timedelta(hours=1))
        first = store.save_state(OWNER, state(), only={"todos"})

        result = store.save_state(OWNER, later, only={"working_notes"})

        assert first == state()
        assert result == replace(state(), working_notes="the pump is mended", saved=later.saved)
        assert store.states(OWNER) == [result]

    def test_states_are_asked_for_by_who_where_and_how_many(self, store: Store) -> None:
        for number, (ai, session, project) in enumerate(itertools.product("ab", "st", ("orchard", "harbour"))):
            store.save_state(OWNER, state(ai, session, project=project, saved=NOW + timedelta(minutes=number)))

        def found(**asked: Any) -> set[tuple[str, str, str]]:
            return {(each.ai, each.session, each.project) for each in store.states(OWNER, **asked)}

        assert {ai for ai, _, _ in found(ai="a")} == {"a"}
        assert {session for _, session, _ in found(session="t")} == {"t"}
        assert {project for _, _, project in found(project="harbour")} == {"harbour"}
        assert found(ai="b", session="s", project="orchard") == {("b", "s", "orchard")}
        assert found(ai="\0") == set()
        assert [each.saved for each in store.states(OWNER, limit=3)] == [NOW + timedelta(minutes=number) for number in (7, 6, 5)]

    def test_a_state_is_handed_over_and_the_old_session_keeps_its_own(self, store: Store) -> None:
        store.save_state(OWNER, state())
        at = NOW + timedelta(hours=2)

        moved = store.transfer_state(OWNER, "claude", from_session="morning", to_session="evening", at=at)

        assert moved is not None
        assert (moved.session, moved.transferred_from, moved.transferred_at) == ("evening", "morning", at)
        assert (moved.todos, moved.working_notes, moved.context_summary) == (state().todos, "the pump is loud", "planting")
        assert store.states(OWNER, session="evening") == [moved]
        assert store.states(OWNER, session="morning") == [state()]

    def test_of_a_session_in_two_projects_the_state_of_the_named_one_is_handed_over(self, store: Store) -> None:
        store.save_state(OWNER, state(working_notes="ours"))
        store.save_state(OWNER, state(project="harbour", working_notes="planted", saved=NOW + timedelta(minutes=1)))
        handed_over = partial(store.transfer_state, OWNER, "claude", from_session="morning", to_session="evening", at=NOW)

        moved = [handed_over(near=near) for near in ("orchard", "harbour", "mill", "")]

        assert [each.working_notes for each in moved if each] == ["ours", "planted", "planted", "planted"]

    def test_where_none_exists_nothing_is_handed_over(self, store: Store) -> None:
        store.save_state(OWNER, state("codex"))

        moved = store.transfer_state(OWNER, "claude", from_session="morning", to_session="evening", at=NOW)

        assert moved is None
        assert store.states(OWNER) == [state("codex")]

    def test_who_may_only_read_is_informed_whether_or_not_there_is_a_state(self, store: Store) -> None:
        store.save_state(OWNER, state("claude", "morning"))

        for session in ("morning", "never"):
            with pytest.raises(NotAllowed):
                store.transfer_state(
                    Grant(name="reader", write=False), "claude", from_session=session, to_session="evening", at=NOW
                )


class GrantsContract:
    @pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.name or "owner")
    def test_nothing_outside_a_grant_is_seen_by_any_method(self, store: Store, grant: Grant) -> None:
        memories = {place: store.write_memory(OWNER, "quince", "quinces ripen", place) for place in PLACES}
        notes = {place: store.remember(OWNER, "medlars ripen late", NoteKind.FACT, place) for place in PLACES}

        visible = {place for place in PLACES if grant.sees(place.scope, place.project)}

        ids = {memories[place].id for place in visible} | {notes[place].id for place in visible}
        assert {memory.place for memory in store.memories(grant, MemoryQuery())} == visible
        assert {memory.place for memory in store.memories(grant, MemoryQuery(pattern="q*", limit=200), touch=True)} == visible
        assert {place for place in PLACES if store.versions(grant, "quince", place)} == visible
        assert {each.note.id for each in store.search(grant, NoteQuery(text="quinces medlars ripen", limit=50))} == ids
        assert {each.note.id for each in store.search(grant, NoteQuery(text="ripen", project="harbour", limit=50))} == ids
        for project in ("orchard", "harbour"):
            recent = {note.id for note in store.recent(grant, project, frozenset(), 50)}
            near = [place for place in visible if place.project in ("", project) or place.scope is Scope.SHARED]
            assert recent == {memories[place].id for place in near} | {notes[place].id for place in near}
        for place in PLACES:
            for name in (memories[place].id, notes[place].id, notes[place].path):
                assert (store.note(grant, name) is not None) == (place in visible)

    @pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.name or "owner")
    def test_nothing_outside_a_grant_is_written_or_deleted(self, store: Store, grant: Grant) -> None:
        for place in PLACES:
            store.write_memory(OWNER, "there", "before", place)

        for place in PLACES:
            may = grant.write and grant.sees(place.scope, place.project)
            for write in (
                partial(store.write_memory, grant, "there", "after", place),
                partial(store.write_memory, grant, "new", "after", place),
                partial(store.remember, grant, "Geese guard the gate", NoteKind.FACT, place),
                partial(store.delete_memory, grant, "new", place),
                partial(store.delete_memory, grant, "never was", place),
            ):
                if may:
                    write()
                else:
                    with pytest.raises(NotAllowed):
                        write()

        for memory in store.memories(OWNER, MemoryQuery(pattern="there")):
            may = grant.write and grant.sees(memory.place.scope, memory.place.project)
            assert memory.value == ("after" if may else "before")

    @pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.name or "owner")
    def test_a_conversation_outside_a_grant_is_not_there(self, store: Store, grant: Grant) -> None:
        for number, place in enumerate((GLOBAL, SHARED, ORCHARD, HARBOUR)):
            result = conversation(
                f"0000000{number}-0000-4000-8000-000000000000", scope=place.scope, project=place.project, transcript="all of it"
            )
            saved = store.save_conversation(OWNER, result)
            visible = grant.sees(place.scope, place.project)

            assert (store.conversation(grant, result.uuid) is not None) == visible
            assert (store.transcript(grant, result.uuid) is not None) == visible
            assert (store.note(grant, saved.journal) is not None) == visible
            if not (visible and grant.write):
                with pytest.raises(NotAllowed):
                    store.save_conversation(grant, replace(result, overall="overwritten", updated=NOW + timedelta(hours=1)))
                kept = store.conversation(OWNER, result.uuid)
                assert kept is not None
                assert kept.overall == "About the deer."

    def test_a_name_that_is_taken_where_a_grant_does_not_see_is_free_for_it(self, store: Store) -> None:
        store.save_conversation(OWNER, conversation(CHAT, project="harbour", transcript="secret", overall="Secret."))

        saved = store.save_conversation(ORCHARD_ONLY, conversation(CHAT, overall="Ours."))

        assert not saved.amended
        ours = store.conversation(ORCHARD_ONLY, CHAT)
        assert ours is not None
        assert (ours.overall, ours.project, ours.has_transcript) == ("Ours.", "orchard", False)
        theirs = store.conversation(Grant(name="h", projects=frozenset({"harbour"})), CHAT)
        assert theirs is not None
        assert (theirs.overall, theirs.has_transcript) == ("Secret.", True)

    @pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.name or "owner")
    def test_what_a_grant_does_not_see_it_cannot_forget(self, store: Store, grant: Grant) -> None:
        for place in PLACES:
            note = store.remember(OWNER, "Geese guard the gate", NoteKind.FACT, place)
            if not grant.write:
                for name in (note.id, "never was"):
                    with pytest.raises(NotAllowed):
                        store.forget(grant, name)
                continue

            forgotten = store.forget(grant, note.id)

            assert forgotten == grant.sees(place.scope, place.project)
            assert (store.note(OWNER, note.id) is None) == forgotten

    @pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.name or "owner")
    def test_states_outside_a_grant_are_not_there(self, store: Store, grant: Grant) -> None:
        for project in ("orchard", "harbour", ""):
            store.save_state(OWNER, state("claude", f"in {project}", project=project))
            visible = grant.sees(Scope.SESSION, project)

            assert bool(store.states(grant, session=f"in {project}")) == visible
            if visible and grant.write:
                store.save_state(grant, state("codex", f"in {project}", project=project))
            else:
                with pytest.raises(NotAllowed):
                    store.save_state(grant, state("codex", f"in {project}", project=project))
            if grant.write:
                moved = store.transfer_state(grant, "claude", from_session=f"in {project}", to_session="next", at=NOW)
                assert (moved is not None) == visible

    def test_what_is_global_is_its_persons_alone(self, store: Store) -> None:
        """Another person's token neither reads it nor writes over it, whatever scopes and projects it has."""
        ada = Grant(name="ada", person="ada")
        written = store.write_memory(OWNER, "preference.editor", "helix", GLOBAL)
        note = store.remember(OWNER, "The owner prefers larches", NoteKind.FACT, GLOBAL)
        saved = store.save_conversation(OWNER, conversation(CHAT, scope=Scope.GLOBAL, project="", transcript="all of it"))
        store.write_memory(OWNER, "team.rule", "squash", SHARED)

        assert [memory.key for memory in store.memories(ada, MemoryQuery())] == ["team.rule"]
        assert store.versions(ada, "preference.editor", GLOBAL) == []
        assert {found.note.id for found in store.search(ada, NoteQuery(text="larches helix deer", limit=50))}.isdisjoint(
            {written.id, note.id, saved.journal, *saved.notes}
        )
        for name in (written.id, note.id, note.path, saved.journal):
            assert store.note(ada, name) is None
            assert not store.forget(ada, name)
        assert store.conversation(ada, CHAT) is None
        assert store.transcript(ada, CHAT) is None
        assert store.titled(ada, note.title) == []
        with suppress(NotAllowed):  # a vault has room for its owner's alone
            store.write_memory(ada, "preference.editor", "ed", GLOBAL)
            assert store.delete_memory(ada, "preference.editor", GLOBAL)
            store.save_conversation(ada, conversation(CHAT, scope=Scope.GLOBAL, project="", overall="Ada's."))
        assert only(store, "preference.editor").value == "helix"
        kept = store.conversation(OWNER, CHAT)
        assert kept is not None
        assert kept.overall == "About the deer."

    def test_who_amends_a_conversation_of_the_team_keeps_their_own_global_notes(self, store: Store) -> None:
        result = conversation(
            CHAT,
            Topic(
                name="tools",
                summary="",
                items=(
                    Preference(
                        title="Squash",
                        body="Always squash commits before a merge",
                        evidence=(),
                        importance=2,
                        origin="user",
                        everywhere=True,
                    ),
                ),
            ),
        )
        for person in ("ada", "ben"):
            saved = store.save_conversation(Grant(name=person, person=person), result)
            assert saved.project == "orchard"

    def test_a_count_shows_nothing_of_what_is_hidden(self, store: Store) -> None:
        for number in range(5):
            store.write_memory(OWNER, f"hidden{number}", number, HARBOUR)
        store.write_memory(OWNER, "visible", 1, ORCHARD)

        assert values(store, MemoryQuery(limit=1), ORCHARD_ONLY) == [1]

    def test_a_conflict_shows_nothing_of_what_is_hidden(self, store: Store) -> None:
        for number in range(5):
            store.write_memory(OWNER, "k", number, HARBOUR)

        with pytest.raises(NotAllowed):
            store.write_memory(ORCHARD_ONLY, "k", "guess", HARBOUR, expected=5)
        assert store.write_memory(ORCHARD_ONLY, "k", "ours", ORCHARD, expected=0).version == 1

    def test_scores_tell_nothing_of_what_is_hidden(self, store: Store) -> None:
        store.remember(OWNER, "The tall ladder is cracked", NoteKind.FACT, ORCHARD)
        store.remember(OWNER, "The short ladder is new", NoteKind.FACT, ORCHARD)
        before = [(found.note.id, found.score) for found in store.search(ORCHARD_ONLY, NoteQuery(text="cracked ladder"))]
        for number in range(20):
            store.remember(OWNER, f"Cracked hull number {number}", NoteKind.FACT, HARBOUR)

        after = [(found.note.id, found.score) for found in store.search(ORCHARD_ONLY, NoteQuery(text="cracked ladder"))]

        assert after == before


class ConcurrencyContract:
    clients = 8
    increments = 12

    @pytest.fixture
    def beside(self, store: Store) -> Store:
        """What another process has open of the same store, where one can."""
        return store

    def test_no_increment_is_lost(self, store: Store) -> None:
        store.write_memory(OWNER, "counter", 0, ORCHARD)

        raised = in_threads(*[partial(self._increment, store)] * self.clients)

        assert raised == []
        final = only(store, "counter")
        assert final.value == self.clients * self.increments
        assert final.version == self.clients * self.increments + 1
        assert {each.value for each in store.versions(OWNER, "counter", ORCHARD)} >= {final.value, final.value - 1}

    def _increment(self, store: Store) -> None:
        for _ in range(self.increments):
            while True:
                seen = only(store, "counter")
                assert isinstance(seen.value, int)
                try:
                    store.write_memory(OWNER, "counter", seen.value + 1, ORCHARD, expected=seen.version)
                except Conflict as conflict:
                    assert conflict.version > seen.version
                    continue
                break

    def test_of_those_who_would_be_first_one_is(self, store: Store) -> None:
        raised = in_threads(
            *[partial(store.write_memory, OWNER, "k", number, ORCHARD, expected=0) for number in range(self.clients)]
        )

        assert len(raised) == self.clients - 1
        assert all(isinstance(error, Conflict) and error.version == 1 for error in raised)
        assert only(store, "k").version == 1

    def test_writes_without_an_expectation_are_all_kept_as_versions(self, store: Store) -> None:
        raised = in_threads(*[partial(store.write_memory, OWNER, "k", {"by": number}, ORCHARD) for number in range(self.clients)])

        assert raised == []
        kept = store.versions(OWNER, "k", ORCHARD)
        assert [each.version for each in kept] == list(range(self.clients, 0, -1))
        assert {str(each.value) for each in kept} == {str({"by": number}) for number in range(self.clients)}

    def test_every_look_is_counted(self, store: Store) -> None:
        store.write_memory(OWNER, "k", 1, ORCHARD)
        store.write_memory(OWNER, "l", 1, ORCHARD)

        def look() -> None:
            for pattern in ("*", "k", "l"):
                store.memories(OWNER, MemoryQuery(pattern=pattern), touch=True)

        raised = in_threads(*[look] * self.clients)

        assert raised == []
        assert [memory.access_count for memory in store.memories(OWNER, MemoryQuery())] == [2 * self.clients] * 2

    def test_of_what_many_save_of_one_state_no_field_is_lost(self, store: Store, beside: Store) -> None:
        fields: tuple[dict[str, Any], ...] = (
            {"todos": (Todo(text="graft"),)},
            {"working_notes": "in the cellar"},
            {"context_summary": "half done"},
        )
        empty = State(ai="codex", session="", project="orchard", todos=(), working_notes="", context_summary="", saved=NOW)
        for number in range(self.increments):
            bare = replace(empty, session=f"s{number}")

            raised = in_threads(
                *[
                    partial(each.save_state, OWNER, replace(bare, **field), only=field.keys())
                    for field in fields
                    for each in (store, beside)
                ]
            )

            assert raised == []
            assert store.states(OWNER, session=bare.session) == [
                replace(bare, todos=(Todo(text="graft"),), working_notes="in the cellar", context_summary="half done")
            ]

    def test_two_who_save_one_conversation_leave_it_whole(self, store: Store) -> None:
        def save(number: int) -> Saved:
            topic = Topic(name=f"Topic {number}", summary="s", items=(decision(f"Decision number {number}"),))
            return store.save_conversation(OWNER, conversation(CHAT, topic, updated=NOW + timedelta(minutes=number)))

        raised = in_threads(*[partial(save, number) for number in range(4)])
        back = store.conversation(OWNER, CHAT)

        assert raised == []
        assert back is not None
        assert {item.title for item in back.record.items()} == {f"Decision number {number}" for number in range(4)}
        notes = store.recent(OWNER, "orchard", frozenset({NoteKind.DECISION}), 20)
        assert {note.title for note in notes} == {f"Decision number {number}" for number in range(4)}

    def test_all_that_many_do_at_once_is_there_afterwards(self, store: Store) -> None:
        def work(number: int) -> None:
            store.write_memory(OWNER, f"k{number}", number, ORCHARD)
            store.remember(OWNER, f"Goose number {number} guards gate {number}", NoteKind.FACT, ORCHARD)
            store.save_state(OWNER, state(f"ai{number}"))
            store.search(OWNER, NoteQuery(text="goose"))
            store.delete_memory(OWNER, f"k{number}", ORCHARD)

        raised = in_threads(*[partial(work, number) for number in range(self.clients)])

        assert raised == []
        assert store.memories(OWNER, MemoryQuery()) == []
        assert len(store.states(OWNER)) == self.clients
        assert len(store.search(OWNER, NoteQuery(text="goose guards", limit=50))) == self.clients


class BridgeStoreContract(
    MemoriesContract, NotesContract, ConversationsContract, StatesContract, GrantsContract, ConcurrencyContract
):
    """All of it."""
