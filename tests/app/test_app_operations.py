"""What can be asked, asked of real services in a folder of their own."""

import dataclasses
import json
import math
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kite_memory.app.agent_hooks import kept_head
from kite_memory.cli.everyday import leave_transcripts
from kite_memory.config import Config, Dial, EmbedderConfig, ExtractorConfig, RecallConfig
from kite_memory.distill.scheduler import ChunkHandled
from kite_memory.errors import KiteError, NoteNotFound, UsageError, VaultMissing
from kite_memory.model.event import EventType
from kite_memory.recall.gate import shipped
from kite_memory.wiring.services import Services, open_services
from tests.counts import examples
from tests.e2e.kmem import eventually
from tests.sources import aider_log, copilot_session

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
def bare(tmp_path: Path) -> Iterator[Services]:
    with open_services(config_in(tmp_path)) as services:
        yield services


@pytest.fixture(scope="module")
def worked_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worked-in")
    (folder / "mycelia" / ".git").mkdir(parents=True)
    leave_transcripts(folder / "claude", folder / "mycelia")
    with open_services(config_in(folder)) as services:
        services.init_vault()
        distil_everything(services)
    return folder


@pytest.fixture
def services(worked_in: Path, tmp_path: Path) -> Iterator[Services]:
    """With the notes of two sessions."""
    shutil.copytree(worked_in, tmp_path, dirs_exist_ok=True)
    with open_services(config_in(tmp_path)) as services:
        yield services


def distil_everything(services: Services) -> None:
    services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
    services.pipeline.open_sessions()
    services.pipeline.form_chunks()
    while isinstance(services.pipeline.distil(), ChunkHandled):
        pass


def hook(services: Services, event: str = "UserPromptSubmit", **fields: Any) -> str:
    result = {"hook_event_name": event, "session_id": SESSION, "cwd": str(services.config.vault.parent / "mycelia"), **fields}
    return services.hooks.answer(json.dumps(result).encode())


def prompts(services: Services) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = services.operations.perform("why", {"silent": True})["prompts"]
    return kept


def everything_kept(services: Services) -> bytes:
    return b"".join(path.read_bytes() for path in services.config.state.rglob("*") if path.is_file())


class TestHook:
    def test_a_prompt_is_given_its_note_once_a_session(self, services: Services) -> None:
        first, again, elsewhere = (
            hook(services, prompt=ASKS),
            hook(services, prompt=ASKS),
            hook(services, prompt=ASKS, session_id="other"),
        )

        assert "<vault-context>" in first and "decisions/postgresql" in first
        assert again == ""
        assert elsewhere == first

    @pytest.mark.parametrize("folder", ["", "home"])
    def test_outside_a_project_only_what_belongs_to_none_is_given(
        self, services: Services, folder: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = services.config.vault.parent
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("USERPROFILE", str(home))
        services.operations.perform("remember", {"text": "The ladder is kept in the northern shed", "everywhere": True})

        of_a_project = hook(services, prompt=ASKS, cwd=str(home) if folder else "")
        of_none = hook(services, prompt="where is the ladder kept, in which shed?", cwd=str(home) if folder else "")

        assert of_a_project == ""
        assert "northern shed" in of_none

    def test_a_note_that_never_arrived_is_said_again_and_one_that_is_on_its_way_is_not(self, services: Services) -> None:
        cwd = str(services.config.vault.parent / "mycelia")
        fields = {"hook_event_name": "UserPromptSubmit", "session_id": SESSION, "prompt": ASKS, "cwd": cwd}
        asked, asked_meanwhile, asked_again, asked_later = (
            json.dumps({**fields, "prompt_id": number}).encode() for number in range(4)
        )

        first, lost = services.hooks.prepare(asked)
        while_on_its_way, silent = services.hooks.prepare(asked_meanwhile)
        silent.arrived()
        lost.lost()
        again, arrived = services.hooks.prepare(asked_again)
        arrived.arrived()

        assert "decisions/postgresql" in first
        assert again == first
        assert while_on_its_way == services.hooks.answer(asked_later) == ""
        assert [bool(each["notes"]) for each in prompts(services)] == [False, True, False]

    def test_before_the_vault_was_compared_nothing_is_given_and_what_shall_be_kept_is_kept(self, services: Services) -> None:
        cwd = str(services.config.vault.parent / "mycelia")
        fields = {"hook_event_name": "UserPromptSubmit", "session_id": SESSION, "cwd": cwd}
        asked, kept = (
            json.dumps({**fields, "prompt": prompt}).encode()
            for prompt in (ASKS, "Remember that the ladder is in the northern shed.")
        )

        silent = [services.hooks.prepare(body, silent=True)[0] for body in (asked, kept)]
        said, _ = services.hooks.prepare(asked)

        assert silent == ["", ""]
        assert "decisions/postgresql" in said
        assert eventually(lambda: bool(services.operations.perform("search", {"query": "northern shed"})["hits"]))

    def test_a_session_that_starts_before_the_vault_was_compared_is_opened_with_its_first_prompt(self, services: Services) -> None:
        cwd = str(services.config.vault.parent / "mycelia")
        started, prompted, again = (
            json.dumps({"session_id": SESSION, "cwd": cwd, **fields}).encode()
            for fields in (
                {"hook_event_name": "SessionStart", "source": "startup"},
                {"hook_event_name": "UserPromptSubmit", "prompt": "Please tidy the shed today."},
                {"hook_event_name": "UserPromptSubmit", "prompt": "And then sweep the yard, please."},
            )
        )

        early, _ = services.hooks.prepare(started, silent=True)
        opened = services.hooks.answer(prompted)

        assert early == ""
        assert "titles of this user's own notes" in opened
        assert "titles of this user's own notes" not in services.hooks.answer(again)

    def test_a_brief_that_never_arrived_comes_with_the_next_prompt_and_once(self, services: Services) -> None:
        body = {"session_id": SESSION, "cwd": str(services.config.vault.parent / "mycelia")}
        started = json.dumps({**body, "hook_event_name": "SessionStart"}).encode()
        asked = json.dumps({**body, "hook_event_name": "UserPromptSubmit", "prompt": "good morning"}).encode()

        first, lost = services.hooks.prepare(started)
        lost.lost()
        with_prompt, lost_again = services.hooks.prepare(asked)
        lost_again.lost()

        assert "<vault-context>" in first
        assert with_prompt == services.hooks.answer(asked) == first
        assert services.hooks.answer(asked) == ""

    def test_a_brief_that_never_arrived_leaves_its_notes_to_be_said(self, services: Services) -> None:
        started = {"hook_event_name": "SessionStart", "session_id": SESSION, "cwd": str(services.config.vault.parent / "mycelia")}

        first, lost = services.hooks.prepare(json.dumps(started).encode())
        lost.lost()

        assert "<vault-context>" in first
        assert prompts(services) == []
        assert services.hooks.answer(json.dumps(started).encode()) == first

    @pytest.mark.parametrize("source", ["compact", "clear"])
    def test_what_left_the_agents_context_may_be_shown_again(self, services: Services, source: str) -> None:
        first = hook(services, prompt=ASKS, prompt_id=1)

        brief = hook(services, "SessionStart", source=source)

        assert "decisions/postgresql" in first
        assert (brief + hook(services, prompt=ASKS, prompt_id=2)).count("decisions/postgresql") == 1

    @pytest.mark.parametrize("source", ["startup", "resume", "", "newly-invented"])
    def test_what_is_still_in_the_context_is_not_shown_again(self, services: Services, source: str) -> None:
        hook(services, prompt=ASKS)

        assert "decisions/postgresql" not in hook(services, "SessionStart", source=source)
        assert hook(services, prompt=ASKS) == ""

    def test_a_compaction_elsewhere_changes_nothing_here(self, services: Services) -> None:
        hook(services, prompt=ASKS)

        hook(services, "SessionStart", source="compact", session_id="other")

        assert hook(services, prompt=ASKS) == ""

    @pytest.mark.parametrize("event", ["Stop", "PreToolUse", "SubagentStart", "userpromptsubmit", "", "SessionEnd"])
    def test_other_events_are_given_nothing_and_not_remembered(self, services: Services, event: str) -> None:
        assert hook(services, event, prompt=ASKS) == ""
        assert prompts(services) == []

    def test_sub_agents_are_given_nothing(self, services: Services) -> None:
        assert hook(services, prompt=ASKS, agent_id="a1", agent_type="Explore") == ""
        assert prompts(services) == []

    @pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"prompt": "' + ASKS.encode() + b'"}'])
    def test_what_is_not_understood_is_given_nothing(self, services: Services, body: bytes) -> None:
        assert services.hooks.answer(body) == ""

    def test_a_prompt_without_session_or_folder_is_answered_all_the_same(self, services: Services) -> None:
        services.operations.perform(
            "remember", {"text": "The job queue migration targets a PostgreSQL database", "everywhere": True}
        )
        body = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": ASKS}).encode()

        assert "<vault-context>" in services.hooks.answer(body)

    @pytest.mark.parametrize("cwd", ["relative", "/gone", "\x00", "/" + "deep/" * 2_000, "C:\\Users\\ada", "//server/share"])
    def test_an_odd_folder_costs_nothing(self, services: Services, cwd: str) -> None:
        hook(services, prompt=ASKS, cwd=cwd)

        assert [kept["prompt"] for kept in prompts(services)] == [ASKS]

    def test_a_megabyte_of_prompt_is_answered(self, services: Services) -> None:
        assert "<vault-context>" in hook(services, prompt=ASKS + "\n" * 10 + "x = 1\n" * 160_000)

    @pytest.mark.parametrize("vault", ["folder gone", "never there"])
    def test_without_a_vault_nothing_is_raised(self, bare: Services, vault: str) -> None:
        if vault == "folder gone":
            bare.init_vault()
            bare.operations.perform("remember", {"text": "The job queue database is PostgreSQL, the migration target"})
            bare.config.vault.rename(bare.config.vault.with_name("elsewhere"))

        hook(bare, prompt=ASKS)

        assert len(prompts(bare)) == 1


class TestPromptLog:
    def test_it_shows_what_was_given_and_why_the_latest_first(self, services: Services) -> None:
        hook(services, prompt=ASKS)
        hook(services, prompt="write a haiku about the sea")

        silent, given = prompts(services)

        assert silent["notes"] == [] and silent["reason"].startswith("below threshold")
        assert given["prompt"] == ASKS and given["session"] == SESSION and given["project"] == "mycelia"
        assert [note["path"].split("/")[0] for note in given["notes"]] == ["decisions"]

    def test_it_says_so_where_a_note_was_forgotten_since(self, services: Services) -> None:
        hook(services, prompt=ASKS)
        services.operations.perform("forget", {"note": "postgresql"})

        (given,) = prompts(services)

        assert [(note["title"], note["path"], note["id"]) for note in given["notes"]] == [("(forgotten since)", "", "")]

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
    def test_no_secret_reaches_the_disk_nor_half_of_one(self, services: Services, prompt: str) -> None:
        hook(services, prompt=prompt)

        assert len(prompts(services)) == 1
        assert TOKEN[:10].encode() not in everything_kept(services)

    def test_it_keeps_the_beginning_only(self, services: Services) -> None:
        hook(services, prompt=f"{ASKS} {'and so on ' * 1_000}")

        (kept,) = prompts(services)
        assert len(kept["prompt"]) <= 200
        assert kept["prompt"].startswith(ASKS)

    def test_what_a_terminal_would_act_upon_is_gone(self, services: Services) -> None:
        hook(services, prompt=f"\x1b[31m{ASKS}\x1b[0m\x07\u202e\r\nnext line")

        (kept,) = prompts(services)
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
    def test_an_unknown_operation_is_refused(self, bare: Services) -> None:
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
    def test_what_is_asked_wrongly_is_the_askers_to_mend(self, bare: Services, op: str, arguments: dict[str, Any]) -> None:
        with pytest.raises(UsageError) as refused:
            bare.operations.perform(op, arguments)

        assert refused.value.hint

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
    @given(
        op=st.sampled_from(["search", "recall", "show", "remember", "forget", "mute", "why", "status"]),
        arguments=st.dictionaries(
            st.sampled_from(["query", "prompt", "note", "text", "limit", "last", "ids", "kind", "session", "since", "undo", "ttl"]),
            st.none() | st.booleans() | st.integers(-10, 10) | st.text(max_size=20) | st.lists(st.text(max_size=5), max_size=2),
            max_size=3,
        ),
    )
    def test_whatever_is_asked_it_is_answered_or_refused_in_our_words(
        self, services: Services, op: str, arguments: dict[str, Any]
    ) -> None:
        try:
            answer = services.operations.perform(op, arguments)
        except KiteError as refused:
            assert str(refused)
        else:
            json.dumps(answer)

    @pytest.mark.parametrize("limit", [-5, 0, 1, 10**9])
    def test_limits_are_kept_within_reason(self, services: Services, limit: int) -> None:
        hits = services.operations.perform("search", {"query": "job queue linter pool", "limit": limit})["hits"]

        assert 1 <= len(hits) <= 3


class TestSearch:
    def test_a_prefix_keeps_to_one_kind_and_is_no_word(self, services: Services) -> None:
        everything = services.operations.perform("search", {"query": "linter workers pool"})["hits"]
        insights = services.operations.perform("search", {"query": "insight: linter workers pool"})["hits"]

        assert {hit["kind"] for hit in everything} > {"insight"}
        assert {hit["kind"] for hit in insights} == {"insight"}

    def test_a_project_that_no_one_knows_is_reported_as_such(self, services: Services) -> None:
        unknown = services.operations.perform("search", {"query": "job queue", "project": "nope"})
        known = services.operations.perform("search", {"query": "job queue", "project": "mycelia"})

        assert unknown["problems"] == ["no project called nope is known"]
        assert known["problems"] == []
        assert unknown["hits"] == []

    def test_what_scores_next_to_nothing_is_not_listed(self, services: Services) -> None:
        for query in ("decision: linter", "decision: error: folder", "queue size", "linter"):
            assert all(
                hit["score"] >= 0.02 for hit in services.operations.perform("search", {"query": query, "cwd": "/elsewhere"})["hits"]
            )
        assert services.operations.perform("search", {"query": "decision: zebra crossing"})["hits"] == []

    def test_a_kind_alone_lists_its_newest_notes(self, services: Services) -> None:
        found = services.operations.perform("search", {"query": "decision:"})
        later = services.operations.perform("search", {"query": "insight:", "since": "2026-03-04"})

        assert [hit["kind"] for hit in found["hits"]] == ["decision"]
        assert {event["type"] for event in found["events"]} <= {"decision"}
        assert later["hits"] == []

    def test_notes_are_not_searched_by_session_and_that_is_said(self, services: Services) -> None:
        found = services.operations.perform("search", {"query": "insight: session:d3300000 pool"})

        assert (found["hits"], found["events"]) == ([], [])
        assert found["problems"] == ["no note is of a tool, a file or a session: leave one of the prefixes out"]

    def test_several_prefixes_add_up(self, services: Services) -> None:
        hits = services.operations.perform("search", {"query": "insight: decision:linter workers pool queue"})["hits"]

        assert {hit["kind"] for hit in hits} == {"insight", "decision"}

    def test_a_project_goes_by_its_name_or_its_folder(self, services: Services) -> None:
        by_name = services.operations.perform("search", {"query": "job queue", "project": "mycelia"})["hits"]

        assert by_name
        assert services.operations.perform("search", {"query": "job queue", "project": "Mycelia"})["hits"] == by_name
        assert (
            services.operations.perform("search", {"query": "job queue", "project": str(services.config.vault.parent / "mycelia")})[
                "hits"
            ]
            == by_name
        )
        assert services.operations.perform("search", {"query": "job queue", "project": "orchard"})["hits"] == []

    def test_a_project_that_only_a_person_wrote_is_known_by_their_word(self, services: Services) -> None:
        (services.config.vault / "own.md").write_text(
            "---\nproject: My Big Project\n---\nThe walnut tree is older than the house.\n"
        )
        services.pipeline.compare_vault()

        hits = services.operations.perform("search", {"query": "walnut tree", "project": "My Big Project"})["hits"]

        assert [hit["path"] for hit in hits] == ["own.md"]

    def test_an_event_is_reported_with_its_evidence(self, services: Services) -> None:
        found = services.operations.perform("search", {"query": "session:d3300000 find out why"})

        (asked, *_) = found["events"]
        assert (asked["type"], asked["provider"], asked["project"]) == ("user_message", "claude-code", "mycelia")
        assert asked["snippet"] == "The worker tests hang in CI. Find out why."
        file, _, span = asked["where"].rpartition(":")
        start, end = map(int, span.split("-"))
        assert "The worker tests hang in CI." in Path(file).read_bytes()[start:end].decode()
        assert asked["reference"].endswith(f"{asked['session']}#{asked['id'][:8]}")

    def test_what_a_note_says_already_is_not_reported_again_as_its_event(self, services: Services) -> None:
        found = services.operations.perform("search", {"query": "connection pool size"})

        rests_on = {reference for hit in found["hits"] for reference in hit["evidence"]}
        assert rests_on
        assert rests_on.isdisjoint(event["reference"] for event in found["events"])

    def test_a_prefix_of_events_finds_events_alone(self, services: Services) -> None:
        found = services.operations.perform("search", {"query": "session:d3300000 pool"})

        assert found["hits"] == []
        assert {event["session"] for event in found["events"]} == {"d3300000-0000-4000-8000-000000000002"}

    @pytest.mark.parametrize("query", ["insight: pool", "error: pool", "session:beef pool"])
    def test_no_event_is_reported_that_was_not_asked_for(self, services: Services, query: str) -> None:
        assert services.operations.perform("search", {"query": query})["events"] == []

    def test_events_are_those_of_the_project_and_the_time_asked_for(self, services: Services) -> None:
        assert services.operations.perform(
            "search", {"query": "session:d33 hanging tests", "project": "mycelia", "since": "2026-03-03"}
        )["events"]
        assert services.operations.perform("search", {"query": "session:d33 hanging tests", "project": "orchard"})["events"] == []
        assert services.operations.perform("search", {"query": "session:d33 hanging tests", "since": "2026-03-04"})["events"] == []

    def test_by_meaning_alone_no_event_is_found_that_has_no_vector(self, services: Services) -> None:
        assert services.operations.perform("search", {"query": "hanging tests", "mode": "semantic"})["events"] == []

    @pytest.mark.parametrize("limit", [1, 3])
    def test_no_more_events_than_asked_for(self, services: Services, limit: int) -> None:
        assert len(services.operations.perform("search", {"query": "session:d33", "limit": limit})["events"]) == limit


class TestRecall:
    def test_it_is_what_the_hook_gives(self, services: Services) -> None:
        answer = services.operations.perform("recall", {"prompt": ASKS, "cwd": str(services.config.vault.parent / "mycelia")})

        assert answer["block"] == hook(services, prompt=ASKS)
        assert answer["for_the_judge"] == 0

    @pytest.mark.parametrize(("head", "given"), [("main", False), ("fix/queue", True)])
    def test_it_is_what_the_hook_gives_on_this_branch(self, services: Services, head: str, given: bool) -> None:
        folder = services.config.vault.parent / "mycelia"
        (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{head}\n")
        for path in services.config.vault.glob("decisions/*.md"):
            path.write_text(path.read_text().replace("project: mycelia\n", "project: mycelia\nbranch: fix/queue\n"))
        services.pipeline.compare_vault()

        answer = services.operations.perform("recall", {"prompt": ASKS, "cwd": str(folder)})

        assert ("decisions/" in answer["block"]) is given
        assert answer["block"] == hook(services, prompt=ASKS)

    def test_it_is_explained_part_by_part(self, services: Services) -> None:
        answer = services.operations.perform("recall", {"prompt": ASKS, "explain": True})

        explained = answer["explained"]["candidates"]
        assert [each["id"] for each in explained] == [each["id"] for each in answer["candidates"]]
        for candidate, each in zip(answer["candidates"], explained, strict=True):
            assert candidate["score"] == pytest.approx(1 / (1 + math.exp(-sum(each["parts"].values()))), abs=1e-3)
            assert each["figures"]["margin"] <= explained[0]["figures"]["margin"]
        assert answer["explained"]["query"]["prompt"] == ASKS

    def test_a_session_is_what_the_timeline_has_of_it(self, services: Services) -> None:
        (session, *_) = services.timeline.sessions.named("")
        last = [
            event
            for event in services.timeline.events.of_session(session.provider, session.id)
            if event.type is EventType.USER_MESSAGE
        ][-1]

        answer = services.operations.perform(
            "recall", {"prompt": "and which of them is faster?", "session": session.id, "explain": True}
        )

        surroundings = answer["explained"]["query"]["surroundings"]
        assert surroundings["prompts"][0] == last.text[:400]
        assert surroundings["exchange"]
        assert surroundings["position"] >= 1

    @pytest.mark.parametrize("session", ["", "never-seen", "\ud800", "\x00", "%", "d" * 100_000, "d"])
    def test_a_session_never_seen_or_not_distinguished_from_another_says_nothing(self, services: Services, session: str) -> None:
        cwd = str(services.config.vault.parent / "mycelia")
        answer = services.operations.perform("recall", {"prompt": ASKS, "session": session, "cwd": cwd, "explain": True})

        assert not answer["silent"]
        assert answer["explained"]["query"]["surroundings"]["position"] == 0

    def test_what_the_session_was_shown_is_left_out(self, services: Services) -> None:
        (session, *_) = services.timeline.sessions.named("")
        hook(services, prompt=ASKS, session_id=session.id)

        asked = {"prompt": ASKS, "cwd": str(services.config.vault.parent / "mycelia")}

        again = services.operations.perform("recall", {**asked, "session": session.id})

        assert again["reason"] == "already shown in this session"
        assert not services.operations.perform("recall", asked)["silent"]

    def test_nothing_of_the_asking_is_kept(self, services: Services) -> None:
        services.operations.perform("recall", {"prompt": ASKS, "session": "never-seen", "explain": True})

        assert prompts(services) == []

    @pytest.mark.parametrize(("dial", "least"), [("quiet", 0.3), ("eager", 0.05)])
    def test_the_dial_is_the_persons(self, worked_in: Path, tmp_path: Path, dial: Dial, least: float) -> None:
        shutil.copytree(worked_in, tmp_path, dirs_exist_ok=True)
        config = dataclasses.replace(config_in(tmp_path), recall=RecallConfig(dial=dial))
        with open_services(config) as services:
            asked = {"prompt": ASKS, "explain": True, "cwd": str(tmp_path / "mycelia")}
            answer = services.operations.perform("recall", asked)

        assert answer["threshold"] == pytest.approx(shipped().thresholds[dial])
        assert answer["threshold"] > least


class TestKeys:
    def test_a_key_is_kept_as_agents_keep_theirs(self, services: Services) -> None:
        for text in ("Port 80", "Port 443"):
            answer = services.operations.perform("remember", {"text": text, "key": "deploy.port", "project": "mycelia"})

        shown = services.operations.perform("show", {"note": answer["id"], "history": True})

        assert [(each["version"], each["text"], each["by"]) for each in shown["versions"]] == [
            (2, "Port 443", "you"),
            (1, "Port 80", "you"),
        ]
        asked = {
            "tool": "read_memory",
            "arguments": {"key": "deploy.port"},
            "asker": {"project": "mycelia", "session": "", "ai": ""},
        }
        assert services.operations.perform("bridge", asked)["result"]["value"] == "Port 443"
        assert services.operations.perform("status", {})["notes"]["keyed"] == 1

    @pytest.mark.parametrize("ttl", ["0s", "0d"])
    @pytest.mark.parametrize("key", ["", "deploy.port"])
    def test_what_would_last_no_time_is_refused(self, services: Services, key: str, ttl: str) -> None:
        with pytest.raises(UsageError):
            services.operations.perform("remember", {"text": "Port 80", "key": key, "ttl": ttl})

        assert not any("80" in hit["title"] for hit in services.operations.perform("search", {"query": "port 80"})["hits"])

    def test_a_note_without_a_key_has_no_versions(self, services: Services) -> None:
        answer = services.operations.perform("remember", {"text": "The walnut tree is old"})

        assert services.operations.perform("show", {"note": answer["id"], "history": True})["versions"] == []

    def test_forgotten_it_is_gone_for_agents_too(self, services: Services) -> None:
        answer = services.operations.perform("remember", {"text": "Port 80", "key": "deploy.port", "project": "mycelia"})

        services.operations.perform("forget", {"note": answer["id"]})

        assert services.vault.keys.count() == 0
        assert services.vault.keys.called("deploy.port") == []

    @pytest.mark.parametrize("key", ["/etc/passwd", "a*", "a/../b", "x" * 300])
    def test_a_key_that_agents_could_not_write_is_refused(self, services: Services, key: str) -> None:
        with pytest.raises(UsageError) as refused:
            services.operations.perform("remember", {"text": "Port 80", "key": key})
        assert refused.value.hint


class TestExpiry:
    def test_what_has_expired_is_shown_by_nothing_but_stays_its_owners_to_edit(self, services: Services) -> None:
        answer = services.operations.perform("remember", {"text": "The walnut tree sleeps", "ttl": "1s", "project": "mycelia"})
        file = services.config.vault / answer["path"]
        lines = [
            line if not line.startswith("expires:") else "expires: 2026-01-01T00:00:00Z" for line in file.read_text().splitlines()
        ]
        file.write_text("\n".join(lines) + "\n")
        services.pipeline.compare_vault()

        for op, arguments in (("show", {"note": answer["id"]}), ("why", {"note": answer["id"]})):
            with pytest.raises(NoteNotFound) as refused:
                services.operations.perform(op, arguments)
            assert "expired" in str(refused.value) and refused.value.hint
        assert services.operations.perform("search", {"query": "walnut"})["hits"] == []
        assert answer["id"] not in [each["id"] for each in services.operations.perform("status", {})["last_notes"]]
        assert services.operations.perform("show", {"note": answer["id"], "expired": True})["file"] == str(file)
        assert services.operations.perform("forget", {"note": answer["id"]})["notes"]


class TestRemember:
    def test_it_is_found_when_the_call_returns(self, services: Services) -> None:
        services.operations.perform(
            "remember", {"text": "The walnut tree is older than the house", "tags": ["garden"], "key": "walnut"}
        )

        assert [hit["title"] for hit in services.operations.perform("search", {"query": "older house"})["hits"]] == ["walnut"]

    def test_nothing_secret_is_written(self, services: Services) -> None:
        services.operations.perform(
            "remember",
            {"text": f"The token is {TOKEN} <private>and {TOKEN}</private>", "key": TOKEN, "tags": [TOKEN], "project": TOKEN},
        )

        written = b"".join(path.read_bytes() for path in services.config.vault.rglob("*") if path.is_file())
        assert TOKEN.encode() not in written + everything_kept(services)
        assert b"[redacted:" in written

    @pytest.mark.parametrize(
        ("text", "redacted"),
        [
            ("The pear\x01 press stands in the yard", False),
            ("The mark [redacted:password] was in the mail", False),
            ("The press uses password=pq7Rk29vLm4T here", True),
        ],
    )
    def test_only_a_secret_counts_as_left_out(self, services: Services, text: str, redacted: bool) -> None:
        assert services.operations.perform("remember", {"text": text})["redacted"] is redacted

    def test_a_password_in_a_sentence_is_not_written(self, services: Services) -> None:
        services.operations.perform("remember", {"text": "password hunter2Xy!99z on host db1"})

        written = b"".join(path.read_bytes() for path in services.config.vault.rglob("*") if path.is_file())
        assert b"on host db1" in written
        assert b"hunter2" not in written + everything_kept(services)

    def test_the_folder_says_which_project(self, services: Services) -> None:
        project = services.config.vault.parent / "orchard"

        here = services.operations.perform("remember", {"text": "The walnut tree is old", "cwd": str(project)})
        everywhere = services.operations.perform(
            "remember", {"text": "The ash tree is old", "cwd": str(project), "everywhere": True}
        )

        assert (here["project"], everywhere["project"]) == ("orchard", "")

    def test_without_a_vault_it_says_so(self, bare: Services) -> None:
        with pytest.raises(VaultMissing):
            bare.operations.perform("remember", {"text": "The walnut tree is old"})


class TestForget:
    def test_a_dry_run_moves_nothing(self, services: Services) -> None:
        before = len(list(services.vault.notes.entries()))

        notes = services.operations.perform("forget", {"matching": "linter", "dry_run": True})["notes"]

        assert [note["path"].split("/")[0] for note in notes] == ["people"]
        assert len(list(services.vault.notes.entries())) == before

    def test_a_session_is_swept_with_all_that_rests_on_it(self, services: Services) -> None:
        gone = services.operations.perform("forget", {"session": "d3300000-0000-4000-8000-000000000001"})["notes"]

        assert {note["path"].split("/")[0] for note in gone} == {"decisions", "people"}
        assert all(Path(note["trash"]).is_file() for note in gone)
        assert services.operations.perform("search", {"query": "linter from src"})["hits"] == []

    def test_what_was_forgotten_is_not_written_again(self, services: Services) -> None:
        services.operations.perform("forget", {"matching": "linter"})
        elsewhere = dataclasses.replace(services.config, state=services.config.state.with_name("elsewhere"))
        elsewhere.state.mkdir()
        for path in services.config.state.glob("vault.sqlite*"):
            shutil.copy(path, elsewhere.state)

        with open_services(elsewhere) as again:  # which reads and distils everything anew, but knows what was thrown away
            distil_everything(again)

            assert again.timeline.files.counts()[0].events == 6
            assert again.operations.perform("search", {"query": "linter from src"})["hits"] == []

    def test_sweeps_narrow_each_other(self, services: Services) -> None:
        both = services.operations.perform(
            "forget", {"session": "d3300000-0000-4000-8000-000000000001", "matching": "linter", "dry_run": True}
        )["notes"]

        assert len(both) == 1


class TestWhy:
    def test_evidence_is_the_very_line(self, services: Services) -> None:
        report = services.operations.perform("why", {"note": "postgresql"})

        (piece, *_) = report["evidence"]
        (event, *_) = piece["events"]
        file, _, span = event["where"].rpartition(":")
        start, end = map(int, span.split("-"))
        line = json.loads(Path(file).read_bytes()[start:end])
        assert line["uuid"].startswith(piece["reference"].rpartition("#")[2])
        assert event["text"] in json.dumps(line)

    def test_of_a_saved_conversation_the_record_and_its_turns_are_evidence(self, services: Services) -> None:
        uuid = "0b9a9c1e-2f3d-4c55-9a6b-7d8e9f001122"
        record = {
            "claude_conversation_uuid": uuid,
            "summary": "The walnut trees of the orchard are grafted in May.",
            "decisions": [{"decision": "Graft the walnuts in May", "reasoning": "their sap runs late"}],
        }
        said = "User: we decided to prune the quinces in February, because their buds open early in this valley."
        mine: dict[str, Any] = {"project": "orchard", "session": "", "ai": "codex"}
        result, turns = (
            services.operations.perform("bridge", {"tool": "save-conversation", "arguments": each, "asker": mine})["result"]
            for each in (record, {"claude_conversation_uuid": uuid.replace("0", "1"), "full_transcript": said})
        )

        for id in (result["journal"], *result["notes"]):
            (piece,) = services.operations.perform("why", {"note": id})["evidence"]
            (event,) = piece["events"]
            file, _, span = event["where"].rpartition(":")
            assert piece["reference"].endswith("#record") and "sap runs late" in event["text"]
            assert uuid in Path(file).read_text() and span == f"0-{Path(file).stat().st_size}"
        (piece,) = services.operations.perform("why", {"note": turns["notes"][0]})["evidence"]
        assert [event["text"] for event in piece["events"]] == [said.removeprefix("User: ")]

    def test_a_reference_that_a_person_mangled_leads_nowhere_quietly(self, services: Services) -> None:
        (services.config.vault / "own.md").write_text(
            '---\nevidence: ["nonsense", "claude-code:x#", "a:b#c"]\n---\nThe walnut tree is old.\n'
        )

        report = services.operations.perform("why", {"note": "own"})

        assert [piece["events"] for piece in report["evidence"]] == [[], [], []]


class TestSources:
    def test_status_shows_for_each_provider_what_was_found_and_read(self, tmp_path: Path) -> None:
        config = dataclasses.replace(config_in(tmp_path), copilot_root=tmp_path / "copilot", aider_roots=())
        with open_services(config) as services:
            path = tmp_path / "copilot" / "session-state" / f"{SESSION}.jsonl"
            path.parent.mkdir(parents=True)
            path.write_bytes(copilot_session.a_day().bytes)
            before = {source["provider"]: source for source in services.operations.perform("status", {})["sources"]}
            services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
            after = {source["provider"]: source for source in services.operations.perform("status", {})["sources"]}

        assert list(before) == ["aider", "claude-code", "copilot-cli"]
        assert [before[name]["there"] for name in before] == [False, False, True]
        assert [(result["copilot-cli"]["found"], result["copilot-cli"]["read"]) for result in (before, after)] == [(1, 0), (1, 1)]
        assert (after["copilot-cli"]["skipped"], after["copilot-cli"]["events"]) == (1, 11)

    def test_aider_is_looked_for_where_other_agents_have_worked(self, tmp_path: Path) -> None:
        project = aider_log.Project(tmp_path)
        project.path.write_bytes(aider_log.a_day().bytes)
        with open_services(dataclasses.replace(config_in(tmp_path), copilot_root=tmp_path / "copilot", aider_roots=())) as services:
            path = tmp_path / "copilot" / "session-state" / f"{SESSION}.jsonl"
            path.parent.mkdir(parents=True)
            path.write_bytes(copilot_session.Session(cwd=str(project.folder)).bytes + b"{}\n")
            first = [path for _, path, _ in services.pipeline.unread()]
            services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])

            then = [path for _, path, _ in services.pipeline.unread()]

        assert (first, then) == ([path], [project.path])


class TestVault:
    def test_status_shows_for_the_vault_as_it_is_now(self, services: Services) -> None:
        away = services.config.vault.with_name("elsewhere")
        services.config.vault.rename(away)
        services.operations.perform("status", {})

        frozen = services.vault.scanner.frozen
        away.rename(services.config.vault)
        (services.config.vault / "own.md").write_text("The walnut tree is older than the house.\n")
        report = services.operations.perform("status", {})

        assert str(services.config.vault) in frozen
        assert (services.vault.scanner.frozen, report["problems"], report["notes"]["total"]) == ("", [], 4)

    def test_where_a_daemon_follows_the_vault_status_only_looks_for_one_that_is_away(self, worked_in: Path, tmp_path: Path) -> None:
        shutil.copytree(worked_in, tmp_path, dirs_exist_ok=True)
        with open_services(config_in(tmp_path), running=lambda: {"running": True}) as services:
            (services.config.vault / "own.md").write_text("The walnut tree is older than the house.\n")
            before = services.operations.perform("status", {})["notes"]["total"]
            services.config.vault.rename(services.config.vault.with_name("elsewhere"))
            services.operations.perform("status", {})

            assert (before, bool(services.vault.scanner.frozen)) == (3, True)

    def test_of_the_notes_written_last_the_latest_session_s_stands_first(self, services: Services) -> None:
        created = [note["created"] for note in services.operations.perform("status", {})["last_notes"]]

        assert len(created) == 3
        assert created == sorted(created, reverse=True)

    def test_a_note_that_was_edited_is_not_newer_for_that(self, services: Services) -> None:
        new = [services.operations.perform("remember", {"text": f"Row {number} was dug up."})["path"] for number in range(5)]
        edited = services.config.vault / services.operations.perform("notes", {})["notes"][-1]["path"]
        edited.write_text(edited.read_text() + "\nAnd plums.\n")

        shown = [note["path"] for note in services.operations.perform("status", {})["last_notes"]]

        assert sorted(shown) == sorted(new)

    def test_where_there_never_was_a_vault_that_is_what_is_said(self, bare: Services) -> None:
        with pytest.raises(VaultMissing, match="there is no vault"):
            bare.operations.perform("show", {"note": "anything"})

        assert bare.operations.perform("status", {})["problems"] == []
        assert bare.operations.perform("search", {"query": "anything"})["problems"] == [f"there is no vault at {bare.config.vault}"]

    def test_a_vault_that_is_away_is_distinguished_from_a_note_that_is_not_there(self, services: Services) -> None:
        with pytest.raises(NoteNotFound):
            services.operations.perform("show", {"note": "walnut"})
        services.config.vault.rename(services.config.vault.with_name("elsewhere"))

        with pytest.raises(VaultMissing):
            services.operations.perform("show", {"note": "postgresql"})
        (problem,) = services.operations.perform("status", {})["problems"]
        assert str(services.config.vault) in problem["reason"]

    def test_what_is_shown_cannot_steer_a_terminal(self, services: Services) -> None:
        (services.config.vault / "odd.md").write_text("The walnut \x1b[31mtree\x07 \x9b2J\u202e is old.\n", encoding="utf-8")
        services.pipeline.compare_vault()

        (hit,) = services.operations.perform("search", {"query": "walnut"})["hits"]
        shown = services.operations.perform("show", {"note": hit["id"]})

        for text in (hit["title"], hit["snippet"], shown["text"].replace("\n", "")):
            assert text.isprintable()
