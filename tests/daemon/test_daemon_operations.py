"""What can be asked, asked of real rooms in a folder of their own."""

import dataclasses
import json
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kite_memory.cli.demo import leave_transcripts
from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.daemon.operations import kept_head
from kite_memory.distill.scheduler import Asked
from kite_memory.errors import KiteError, NoteNotFound, UsageError, VaultMissing
from kite_memory.wiring import House, open_house

SESSION = "5e551011-0000-4000-8000-000000000001"
ASKS = "which database should the job queue migration target?"
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def config_in(folder: Path) -> Config:
    return Config(
        file=folder / "config.toml",
        state=folder / "state",
        vault=folder / "memory",
        claude_root=folder / "claude",
        extractor=ExtractorConfig(name="offline"),
        embedder=EmbedderConfig(name="local"),
    )


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[House]:
    with open_house(config_in(tmp_path)) as house:
        yield house


@pytest.fixture(scope="module")
def worked_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worked-in")
    (folder / "mycelia" / ".git").mkdir(parents=True)
    leave_transcripts(folder / "claude", folder / "mycelia")
    with open_house(config_in(folder)) as house:
        house.lay_out()
        distil_everything(house)
    return folder


@pytest.fixture
def house(worked_in: Path, tmp_path: Path) -> Iterator[House]:
    """With the notes of two sessions."""
    shutil.copytree(worked_in, tmp_path, dirs_exist_ok=True)
    with open_house(config_in(tmp_path)) as house:
        yield house


def distil_everything(house: House) -> None:
    house.pipeline.ingest_many([(source, path) for source, path, _ in house.pipeline.unread()])
    house.pipeline.open_sessions()
    house.pipeline.form_chunks()
    while isinstance(house.pipeline.distil(), Asked):
        pass


def hook(house: House, event: str = "UserPromptSubmit", **fields: Any) -> str:
    told = {"hook_event_name": event, "session_id": SESSION, "cwd": str(house.config.vault.parent / "mycelia"), **fields}
    return house.operations.hook(json.dumps(told).encode())


def prompts(house: House) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = house.operations.why()["prompts"]
    return kept


def everything_kept(house: House) -> bytes:
    return b"".join(path.read_bytes() for path in house.config.state.rglob("*") if path.is_file())


class TestHook:
    def test_a_prompt_is_given_its_note_once_a_session(self, house: House) -> None:
        first, again, elsewhere = hook(house, prompt=ASKS), hook(house, prompt=ASKS), hook(house, prompt=ASKS, session_id="other")

        assert "<vault-context>" in first and "decisions/postgresql" in first
        assert again == ""
        assert elsewhere == first

    @pytest.mark.parametrize("source", ["compact", "clear"])
    def test_what_left_the_agents_context_may_be_shown_again(self, house: House, source: str) -> None:
        first = hook(house, prompt=ASKS)

        assert hook(house, "SessionStart", source=source) == ""
        assert hook(house, prompt=ASKS) == first

    @pytest.mark.parametrize("source", ["startup", "resume", "", "newly-invented"])
    def test_what_is_still_in_the_context_is_not_shown_again(self, house: House, source: str) -> None:
        hook(house, prompt=ASKS)

        assert hook(house, "SessionStart", source=source) == ""
        assert hook(house, prompt=ASKS) == ""

    def test_a_compaction_elsewhere_changes_nothing_here(self, house: House) -> None:
        hook(house, prompt=ASKS)

        hook(house, "SessionStart", source="compact", session_id="other")

        assert hook(house, prompt=ASKS) == ""

    @pytest.mark.parametrize("event", ["Stop", "PreToolUse", "SubagentStart", "userpromptsubmit", "", "SessionEnd"])
    def test_other_events_are_given_nothing_and_not_remembered(self, house: House, event: str) -> None:
        assert hook(house, event, prompt=ASKS) == ""
        assert prompts(house) == []

    def test_sub_agents_are_given_nothing(self, house: House) -> None:
        assert hook(house, prompt=ASKS, agent_id="a1", agent_type="Explore") == ""
        assert prompts(house) == []

    @pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"prompt": "' + ASKS.encode() + b'"}'])
    def test_what_is_not_understood_is_given_nothing(self, house: House, body: bytes) -> None:
        assert house.operations.hook(body) == ""

    def test_a_prompt_without_session_or_folder_is_answered_all_the_same(self, house: House) -> None:
        body = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": ASKS}).encode()

        assert "<vault-context>" in house.operations.hook(body)

    @pytest.mark.parametrize("cwd", ["relative", "/gone", "\x00", "/" + "deep/" * 2_000, "C:\\Users\\ada", "//server/share"])
    def test_an_odd_folder_costs_nothing(self, house: House, cwd: str) -> None:
        hook(house, prompt=ASKS, cwd=cwd)

        assert [kept["prompt"] for kept in prompts(house)] == [ASKS]

    def test_a_megabyte_of_prompt_is_answered(self, house: House) -> None:
        assert "<vault-context>" in hook(house, prompt=ASKS + "\n" * 10 + "x = 1\n" * 160_000)

    @pytest.mark.parametrize("vault", ["folder gone", "never there"])
    def test_without_a_vault_nothing_is_raised(self, bare: House, vault: str) -> None:
        if vault == "folder gone":
            bare.lay_out()
            bare.operations.remember(text="The job queue database is PostgreSQL, the migration target")
            bare.config.vault.rename(bare.config.vault.with_name("elsewhere"))

        hook(bare, prompt=ASKS)

        assert len(prompts(bare)) == 1


class TestPromptLog:
    def test_it_tells_what_was_given_and_why_the_latest_first(self, house: House) -> None:
        hook(house, prompt=ASKS)
        hook(house, prompt="write a haiku about the sea")

        silent, given = prompts(house)

        assert silent["notes"] == [] and silent["reason"].startswith("below threshold")
        assert given["prompt"] == ASKS and given["session"] == SESSION and given["project"] == "mycelia"
        assert [note["path"].split("/")[0] for note in given["notes"]] == ["decisions"]

    def test_it_says_so_where_a_note_was_forgotten_since(self, house: House) -> None:
        hook(house, prompt=ASKS)
        house.operations.forget(note="postgresql")

        (given,) = prompts(house)

        assert [(note["title"], note["path"]) for note in given["notes"]] == [("(forgotten since)", "")]

    @pytest.mark.parametrize(
        "prompt",
        [
            f"{ASKS} <private>{TOKEN}</private>",
            f"<private>{TOKEN}</private> {ASKS}",
            f"{ASKS} <private>{TOKEN}",
            f"{ASKS} my token is {TOKEN}",
            f"{TOKEN} {ASKS}",
            " " * 1_590 + TOKEN + " " + ASKS,
            "\n" * 1_590 + TOKEN[:12] + TOKEN[12:] + " " + ASKS,
            ASKS + " " * 1_540 + TOKEN,
        ],
    )
    def test_no_secret_reaches_the_disk_nor_half_of_one(self, house: House, prompt: str) -> None:
        hook(house, prompt=prompt)

        assert len(prompts(house)) == 1
        assert TOKEN[:10].encode() not in everything_kept(house)

    def test_it_keeps_the_beginning_only(self, house: House) -> None:
        hook(house, prompt=f"{ASKS} {'and so on ' * 1_000}")

        (kept,) = prompts(house)
        assert len(kept["prompt"]) <= 200
        assert kept["prompt"].startswith(ASKS)

    def test_what_a_terminal_would_act_upon_is_gone(self, house: House) -> None:
        hook(house, prompt=f"\x1b[31m{ASKS}\x1b[0m\x07\u202e\r\nnext line")

        (kept,) = prompts(house)
        assert kept["prompt"] == f"{ASKS} next line"

    @given(st.text(max_size=3_000))
    def test_a_head_is_one_short_line_whatever_was_typed(self, prompt: str) -> None:
        head = kept_head(prompt)

        assert len(head) <= 200
        assert not {unicodedata.category(char) for char in head} & {"Cc", "Cf", "Cs", "Zl", "Zp"}

    @given(st.integers(0, 1_700), st.sampled_from(" \n\t"))
    def test_a_secret_anywhere_near_the_cut_is_not_kept(self, before: int, blank: str) -> None:
        head = kept_head(blank * before + TOKEN)

        assert TOKEN[:8] not in head


class TestPerform:
    def test_an_unknown_operation_is_refused(self, bare: House) -> None:
        with pytest.raises(UsageError, match="unknown operation 'dance'"):
            bare.operations.perform("dance", {})

    @pytest.mark.parametrize(
        ("op", "arguments"),
        [
            ("search", {}),
            ("search", {"query": 7}),
            ("search", {"query": "x", "limit": "many"}),
            ("search", {"query": "x", "limit": True}),
            ("search", {"query": "x", "colour": "red"}),
            ("search", {"query": "x", "mode": "fuzzy"}),
            ("recall", {"prompt": None}),
            ("recall", {"prompt": "x", "explain": "yes"}),
            ("remember", {"text": "x", "tags": "one"}),
            ("remember", {"text": "x", "tags": [1]}),
            ("remember", {"text": "x", "kind": "poem"}),
            ("forget", {"ids": ["x", None]}),
            ("forget", {}),
            ("status", {"verbose": True}),
        ],
    )
    def test_what_is_asked_wrongly_is_the_askers_to_mend(self, bare: House, op: str, arguments: dict[str, Any]) -> None:
        with pytest.raises(UsageError) as refused:
            bare.operations.perform(op, arguments)

        assert refused.value.hint

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
    @given(
        op=st.sampled_from(["search", "recall", "show", "remember", "forget", "mute", "why", "status"]),
        arguments=st.dictionaries(
            st.sampled_from(["query", "prompt", "note", "text", "limit", "last", "ids", "kind", "session", "since", "undo", "ttl"]),
            st.none() | st.booleans() | st.integers(-10, 10) | st.text(max_size=20) | st.lists(st.text(max_size=5), max_size=2),
            max_size=3,
        ),
    )
    def test_whatever_is_asked_it_is_answered_or_refused_in_our_words(
        self, house: House, op: str, arguments: dict[str, Any]
    ) -> None:
        try:
            told = house.operations.perform(op, arguments)
        except KiteError as refused:
            assert str(refused)
        else:
            json.dumps(told)

    @pytest.mark.parametrize("limit", [-5, 0, 1, 10**9])
    def test_limits_are_kept_within_reason(self, house: House, limit: int) -> None:
        hits = house.operations.perform("search", {"query": "job queue linter pool", "limit": limit})["hits"]

        assert 1 <= len(hits) <= 3


class TestSearch:
    def test_a_prefix_keeps_to_one_kind_and_is_no_word(self, house: House) -> None:
        everything = house.operations.search(query="linter workers pool")["hits"]
        insights = house.operations.search(query="insight: linter workers pool")["hits"]

        assert {hit["kind"] for hit in everything} > {"insight"}
        assert {hit["kind"] for hit in insights} == {"insight"}

    def test_several_prefixes_add_up(self, house: House) -> None:
        hits = house.operations.search(query="insight: decision:linter workers pool queue")["hits"]

        assert {hit["kind"] for hit in hits} == {"insight", "decision"}

    def test_a_project_goes_by_its_name_or_its_folder(self, house: House) -> None:
        by_name = house.operations.search(query="job queue", project="mycelia")["hits"]

        assert by_name
        assert house.operations.search(query="job queue", project="Mycelia")["hits"] == by_name
        assert house.operations.search(query="job queue", project=str(house.config.vault.parent / "mycelia"))["hits"] == by_name
        assert house.operations.search(query="job queue", project="orchard")["hits"] == []

    def test_a_project_that_only_a_person_wrote_is_known_by_their_word(self, house: House) -> None:
        (house.config.vault / "own.md").write_text("---\nproject: My Big Project\n---\nThe walnut tree is older than the house.\n")
        house.pipeline.compare_vault()

        hits = house.operations.search(query="walnut tree", project="My Big Project")["hits"]

        assert [hit["path"] for hit in hits] == ["own.md"]


class TestRemember:
    def test_it_is_found_when_the_call_returns(self, house: House) -> None:
        house.operations.remember(text="The walnut tree is older than the house", tags=["garden"], key="walnut")

        assert [hit["title"] for hit in house.operations.search(query="walnut")["hits"]] == [
            "The walnut tree is older than the house"
        ]

    def test_nothing_secret_is_written(self, house: House) -> None:
        house.operations.remember(
            text=f"The token is {TOKEN} <private>and {TOKEN}</private>", key=TOKEN, tags=[TOKEN], project=TOKEN
        )

        written = b"".join(path.read_bytes() for path in house.config.vault.rglob("*") if path.is_file())
        assert TOKEN.encode() not in written + everything_kept(house)
        assert b"[redacted:" in written

    def test_the_folder_says_which_project(self, house: House) -> None:
        project = house.config.vault.parent / "orchard"

        here = house.operations.remember(text="The walnut tree is old", cwd=str(project))
        everywhere = house.operations.remember(text="The ash tree is old", cwd=str(project), everywhere=True)

        assert (here["project"], everywhere["project"]) == ("orchard", "")

    def test_without_a_vault_it_says_so(self, bare: House) -> None:
        with pytest.raises(VaultMissing):
            bare.operations.remember(text="The walnut tree is old")


class TestForget:
    def test_a_dry_run_moves_nothing(self, house: House) -> None:
        before = len(list(house.vault.entries()))

        told = house.operations.forget(matching="linter", dry_run=True)["notes"]

        assert [note["path"].split("/")[0] for note in told] == ["people"]
        assert len(list(house.vault.entries())) == before

    def test_a_session_is_swept_with_all_that_rests_on_it(self, house: House) -> None:
        gone = house.operations.forget(session="d3300000-0000-4000-8000-000000000001")["notes"]

        assert {note["path"].split("/")[0] for note in gone} == {"decisions", "people"}
        assert all(Path(note["trash"]).is_file() for note in gone)
        assert house.operations.search(query="linter from src")["hits"] == []

    def test_what_was_forgotten_is_not_written_again(self, house: House) -> None:
        house.operations.forget(matching="linter")
        elsewhere = dataclasses.replace(house.config, state=house.config.state.with_name("elsewhere"))
        elsewhere.state.mkdir()
        for path in house.config.state.glob("vault.sqlite*"):
            shutil.copy(path, elsewhere.state)

        with open_house(elsewhere) as again:  # which reads and distils everything anew, but knows what was thrown away
            distil_everything(again)

            assert again.timeline.counts()[0].events == 6
            assert again.operations.search(query="linter from src")["hits"] == []

    def test_sweeps_narrow_each_other(self, house: House) -> None:
        both = house.operations.forget(session="d3300000-0000-4000-8000-000000000001", matching="linter", dry_run=True)["notes"]

        assert len(both) == 1


class TestWhy:
    def test_evidence_is_the_very_line(self, house: House) -> None:
        told = house.operations.why(note="postgresql")

        (piece, *_) = told["evidence"]
        (event, *_) = piece["events"]
        file, _, span = event["where"].rpartition(":")
        start, end = map(int, span.split("-"))
        line = json.loads(Path(file).read_bytes()[start:end])
        assert line["uuid"].startswith(piece["reference"].rpartition("#")[2])
        assert event["text"] in json.dumps(line)

    def test_a_reference_that_a_person_mangled_leads_nowhere_quietly(self, house: House) -> None:
        (house.config.vault / "own.md").write_text(
            '---\nevidence: ["nonsense", "claude-code:x#", "a:b#c"]\n---\nThe walnut tree is old.\n'
        )

        told = house.operations.why(note="own")

        assert [piece["events"] for piece in told["evidence"]] == [[], [], []]


class TestVault:
    def test_status_tells_what_is_known_and_does_not_look(self, house: House) -> None:
        (house.config.vault / "own.md").write_text("The walnut tree is older than the house.\n")

        before = house.operations.status()["notes"]["total"]
        house.pipeline.compare_vault()

        assert (before, house.operations.status()["notes"]["total"]) == (3, 4)

    def test_where_there_never_was_a_vault_that_is_what_is_said(self, bare: House) -> None:
        with pytest.raises(VaultMissing, match="there is no vault"):
            bare.operations.show(note="anything")

        assert bare.operations.status()["problems"] == []
        assert bare.operations.search(query="anything")["problems"] == [f"there is no vault at {bare.config.vault}"]

    def test_a_vault_that_is_away_is_told_from_a_note_that_is_not_there(self, house: House) -> None:
        with pytest.raises(NoteNotFound):
            house.operations.show(note="walnut")
        house.config.vault.rename(house.config.vault.with_name("elsewhere"))

        with pytest.raises(VaultMissing):
            house.operations.show(note="postgresql")
        (problem,) = house.operations.status()["problems"]
        assert str(house.config.vault) in problem["reason"]

    def test_what_is_shown_cannot_steer_a_terminal(self, house: House) -> None:
        (house.config.vault / "odd.md").write_text("The walnut \x1b[31mtree\x07 \x9b2J\u202e is old.\n", encoding="utf-8")
        house.pipeline.compare_vault()

        (hit,) = house.operations.search(query="walnut")["hits"]
        shown = house.operations.show(note=hit["id"])

        for text in (hit["title"], hit["snippet"], shown["text"].replace("\n", "")):
            assert text.isprintable()
