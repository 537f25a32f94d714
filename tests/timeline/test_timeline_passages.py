"""Who said something first, asked of hashes alone."""

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.model.event import Cursor, Passage, ReadResult, RedactedResult, Session, Speaker, Trace
from kite_memory.timeline import passages, schema
from kite_memory.timeline.shingles import packed, pairs_of
from kite_memory.timeline.store import Timeline

CLAIM = "Packages of the orchard are published through the old mirror since the registry was closed in March."
OTHER = "The river rose over the wooden bridge while nobody watched the lantern on the northern meadow."
BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
KEY = bytes(range(16))


def passage(text: str, said_by: Speaker = "tool", *, at: float = 100.0, start: int = 0) -> Passage:
    return Passage(text=text, said_by=said_by, at=at, start=start)


@pytest.fixture
def timeline(tmp_path: Path) -> Timeline:
    return Timeline(tmp_path / "timeline.sqlite")


def heard(timeline: Timeline, *said: Passage, session: str = "s1", project: str = "orchard") -> None:
    look = ReadResult(
        path=f"/{session}.jsonl",
        session=Session(id=session, provider="claude-code", started=BEGIN, project=project),
        events=(),
        problems=(),
        cursor=Cursor(position=1, size=1, mtime_ns=1),
        passages=said,
    )
    timeline.commit([RedactedResult(look)], "claude-code")


def trace(timeline: Timeline, text: str, project: str = "orchard") -> Trace:
    (found,) = timeline.provenance(project).traces([text])
    return found


@pytest.mark.parametrize(
    "text",
    [
        CLAIM,
        f"{OTHER} {CLAIM} {OTHER}",
        OTHER * 400 + CLAIM + OTHER * 400,
        CLAIM.upper(),
        CLAIM.replace("Packages", "Pack\u200bages"),
        f"“{CLAIM}”",
    ],
    ids=["alone", "among others", "deep inside", "loud", "with unseen characters", "quoted"],
)
def test_what_a_tool_said_is_known_again_wherever_it_stood(timeline: Timeline, text: str) -> None:
    heard(timeline, passage(text))

    assert trace(timeline, CLAIM).foreign > 0.8
    assert trace(timeline, "Rows of pears run north so that frost drains towards the valley below the house.").foreign == 0.0


def test_it_is_known_in_the_next_session_of_the_project_and_in_no_other(timeline: Timeline) -> None:
    heard(timeline, passage(CLAIM), session="s1")
    heard(timeline, passage(OTHER), session="s2")

    assert trace(timeline, CLAIM).foreign == 1.0
    assert trace(timeline, CLAIM, project="mill").foreign == 0.0


@pytest.mark.parametrize(("at", "first"), [(99.0, True), (101.0, False)], ids=["before", "after"])
def test_what_an_agent_had_said_before_is_its_own(timeline: Timeline, at: float, first: bool) -> None:
    heard(timeline, passage(CLAIM), passage(CLAIM, "assistant", at=at, start=int(at)))

    assert (trace(timeline, CLAIM).foreign == 0.0) is first


def test_a_persons_words_count_whenever_they_were_said(timeline: Timeline) -> None:
    heard(timeline, passage(CLAIM), passage(CLAIM, "user", at=500.0))

    assert trace(timeline, CLAIM).person == 1.0


def test_what_failed_is_kept_apart(timeline: Timeline) -> None:
    heard(timeline, passage(CLAIM, "failure"))

    assert (trace(timeline, CLAIM).foreign, trace(timeline, CLAIM).failure) == (0.0, 1.0)


def test_scripts_without_blanks_are_known_too(timeline: Timeline) -> None:
    claim = "果樹園のデプロイは必ず鏡を通して行われ、古い登録所は三月に閉鎖された。"
    heard(timeline, passage(f"まえがき\n{claim}\nあとがき"))

    assert trace(timeline, claim).foreign > 0.8


def test_reading_again_keeps_one_and_the_earliest_time(timeline: Timeline, tmp_path: Path) -> None:
    heard(timeline, passage(CLAIM, at=100.0))
    heard(timeline, passage(CLAIM, at=50.0), session="s2")

    with sqlite3.connect(tmp_path / "timeline.sqlite") as database:
        assert database.execute("SELECT COUNT(*), MIN(at) FROM passages").fetchone() == (1, 50.0)


@pytest.mark.parametrize(
    "secret",
    [
        "hunter2xyz",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "password: swordfish",
        "PASS=swordfish",
        "https://ada:swordfish@press",
    ],
)
def test_what_looks_like_a_secret_leaves_no_hash(secret: str) -> None:
    """A guess of it cannot be checked."""
    other = secret.replace("hunter2xyz", "gatherer9abc").replace("swordfish", "starling")
    other = other.replace("16C7e42F292c6912E7710c838347Ae178B4a", "99D8f53G303d7023F8821d949458Bf289C5b")
    one, two = pairs_of([f"the deploy box opens {each} for everybody".encode() for each in (secret, other)], KEY)

    assert one.tolist() == two.tolist()


def test_hashes_are_keyed_and_tell_no_order() -> None:
    ((mine,), (theirs,)) = pairs_of([OTHER.encode()], KEY), pairs_of([OTHER.encode()], bytes(16))
    forward, backward = pairs_of([OTHER.encode(), " ".join(reversed(OTHER.split())).encode()], KEY)

    assert not set(mine.tolist()) & set(theirs.tolist())
    assert packed([forward]) == packed([backward])


def test_the_oldest_go_when_there_are_too_many_or_they_are_too_old(timeline: Timeline, tmp_path: Path) -> None:
    heard(timeline, *(passage(f"{OTHER} {chr(97 + number) * 5}", at=float(number)) for number in range(10)))
    timeline.close()

    with sqlite3.connect(tmp_path / "timeline.sqlite") as database:
        database.execute("UPDATE passages SET read_at = key")
        passages.tidy(database, now=4.5 + passages.KEPT_SECONDS)
        assert database.execute("SELECT MIN(read_at), COUNT(*) FROM passages").fetchone() == (5.0, 6)
        ((size,),) = database.execute("SELECT MAX(LENGTH(pairs)) FROM passages").fetchall()
        passages.tidy(database, now=5.0, most=3 * size)
        assert database.execute("SELECT MIN(read_at), COUNT(*) FROM passages").fetchone() == (8.0, 3)


def test_a_timeline_of_the_version_before_gets_its_tables_and_keeps_its_events(tmp_path: Path) -> None:
    path = tmp_path / "timeline.sqlite"
    with sqlite3.connect(path) as database:
        for version in range(1, 6):
            for statement in schema.MIGRATIONS[version]:
                database.execute(statement)
        database.execute(
            "INSERT INTO sessions (provider, id, project, cwd, branch, started, parent, title, last_at, committed_at)"
            " VALUES ('claude-code', 's0', 'orchard', '', '', ?, '', '', ?, 0)",
            (BEGIN.isoformat(), BEGIN.isoformat()),
        )
        database.execute("PRAGMA user_version = 5")
    database.close()

    timeline = Timeline(path)
    heard(timeline, passage(CLAIM), session="s0")

    assert timeline.sessions.get("claude-code", "s0") is not None
    assert trace(timeline, CLAIM).foreign == 1.0
    timeline.close()


def test_what_was_erased_leaves_no_hash_and_none_comes_back(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path / "timeline.sqlite")
    said = event(1)
    look = ReadResult(
        path="/s.jsonl",
        session=Session(id=said.session, provider=said.provider, started=BEGIN, project="orchard"),
        events=(said,),
        problems=(),
        cursor=Cursor(position=1, size=1, mtime_ns=1),
        passages=(passage(CLAIM, start=said.where.start),),
    )
    timeline.commit([RedactedResult(look)], said.provider)
    timeline.forgotten.add([said], blank=True)
    gone = trace(timeline, CLAIM)
    timeline.commit([RedactedResult(replace(look, cursor=Cursor(position=2, size=2, mtime_ns=2)))], said.provider)

    assert gone.foreign == trace(timeline, CLAIM).foreign == 0.0
    timeline.close()


def pair_counts(texts: Sequence[str]) -> list[int]:
    return [len(pairs) for pairs in pairs_of([text.encode() for text in texts], KEY)]


def test_each_text_has_its_own_pairs() -> None:
    assert pair_counts(["", "orchard", "orchard mirror", "orchard mirror", "a b c"]) == [0, 0, 1, 1, 0]


def test_the_index_of_passages_answers_as_reading_all_of_them(
    timeline: Timeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is written, changed, and dropped meanwhile, also where a new passage gets the number of one that is gone."""
    monkeypatch.setattr(passages, "_AT_ONCE", 3)
    chance = random.Random(3)
    words = [f"{one}{two}{three}" for one in "bdfgklm" for two in "aeiou" for three in ("rst", "nnel", "lp")]
    said = [" ".join(chance.choices(words, k=12)) for _ in range(60)]
    speakers: tuple[Speaker, ...] = ("tool", "assistant", "user", "failure")
    found = 0
    for turn in range(30):
        texts = chance.choices(said, k=3)
        heard(
            timeline,
            *(passage(text, chance.choice(speakers), at=float(chance.randrange(100))) for text in texts),
            project=chance.choice(["orchard", "cellar", ""]),
            session=f"s{turn}",
        )
        if turn % 4 == 3:
            with closing(sqlite3.connect(tmp_path / "timeline.sqlite")) as database, database:
                order = "DESC" if turn % 8 == 3 else "ASC"
                database.execute(f"DELETE FROM passages WHERE key IN (SELECT key FROM passages ORDER BY key {order} LIMIT 5)")
        for text in (*texts, *chance.choices(said, k=5), f"{said[turn]} {OTHER}"):
            indexed = timeline.provenance("orchard").traces([text])

            assert indexed == passages.IndexedPassages(timeline._database.all).lookup("orchard").traces([text])
            found += max(indexed[0].foreign, indexed[0].failure, indexed[0].person) > 0
    assert found > 50


def test_a_passage_with_the_number_of_one_that_is_gone_is_found(
    timeline: Timeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "_AT_ONCE", 1)
    heard(timeline, passage(OTHER))
    assert trace(timeline, OTHER).foreign == 1
    with closing(sqlite3.connect(tmp_path / "timeline.sqlite")) as database, database:
        database.execute("DELETE FROM passages")
    assert trace(timeline, OTHER).foreign == 0

    heard(timeline, passage(CLAIM))

    assert trace(timeline, CLAIM).foreign == 1
