"""What a forgotten note rested on is offered to no one any more, and erased where a person wants that."""

import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kite_memory.app.kept_answers import KeptAnswer
from kite_memory.distill.budget import Budget
from kite_memory.distill.condense import Span
from kite_memory.distill.extractor import Usage
from kite_memory.errors import NoteNotFound
from kite_memory.extensions.contract.extractor_contract import SESSION
from kite_memory.model.event import Event, EvidenceReference, evidence_reference, line_of
from kite_memory.model.note import Fact, Record, Topic
from kite_memory.system import sqlite
from kite_memory.timeline import writing
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline
from kite_memory.tools.store import OWNER, Asker
from kite_memory.vault import memory_page
from kite_memory.wiring.services import Services, open_services
from tests.app.test_app_operations import config_in
from tests.fakes.work import Work
from tests.tools.conversing import QUEUE

HOME = SESSION.cwd
GATE = "The gate of the orchard is always opened with zanzibar pepper"
SHARED = "Quinces stand on their own roots, whatever the catalogue of Xylander says"
OTHER = "The pump wants oil every third week"


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with opened(tmp_path) as services:
        yield services


@contextmanager
def opened(folder: Path) -> Iterator[Services]:
    """Two notes: one rests on a line of its own and on one that both share."""
    with open_services(config_in(folder)) as services:
        services.init_vault()
        services.timeline.commit([worked().look()], SESSION.provider)
        write(services, "facts", "gate", GATE, cited(GATE), cited(SHARED))
        write(services, "facts", "quinces", SHARED, cited(SHARED))
        services.pipeline.compare_vault()
        yield services


def worked() -> Work:
    work = Work().asked(GATE).said("I shall.").asked(SHARED).edited(f"{HOME}/quince.py").ran("make lint", "done").asked(OTHER)
    work.session = replace(work.session, title=GATE[:40])
    return work


def event(text: str) -> Event:
    return next(each for each in worked().events if each.text == text)


def cited(text: str) -> str:
    return evidence_reference(SESSION.provider, SESSION.id, event(text).id)


def write(services: Services, folder: str, name: str, body: str, *evidence: str, kind: str = "fact") -> None:
    listed = [
        "---",
        f"id: {name}",
        f"kind: {kind}",
        f"title: The {name} of the orchard must always be kept that way",
        "project: orchard",
        "created: 2026-03-01T10:00:00Z",
    ]
    listed += ["evidence:", *(f'  - "{each}"' for each in evidence), "---", body, ""]
    (services.vault.root / "projects").mkdir(exist_ok=True)
    (services.vault.root / "projects" / f"{name}.md").write_text("\n".join(listed))


def holding(services: Services, words: bytes) -> set[str]:
    return {path.name for path in services.config.state.rglob("*") if path.is_file() and words in path.read_bytes()}


def perform(services: Services, op: str, **arguments: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(services.operations.perform(op, arguments)))
    return content


def found(services: Services, query: str) -> list[str]:
    return [event["snippet"] for event in perform(services, "search", query=query)["events"]]


def texts(services: Services) -> list[str]:
    return [event["text"] for event in perform(services, "timeline", session=SESSION.id)["events"]]


class TestForgetting:
    def test_with_evidence_the_transcript_goes_that_an_agent_saved_with_it(self, services: Services) -> None:
        saved = services.bridge.perform("save-conversation", QUEUE, Asker(grant=OWNER))

        answer = perform(services, "forget", note=saved["notes"][0], with_evidence=True)

        assert [QUEUE["claude_conversation_uuid"] in problem for problem in answer["problems"]] == [True]
        kept = services.bridge.perform("get_note", {"note": saved["journal"], "transcript": True}, Asker(grant=OWNER))
        assert kept["transcript"] == ""

    def test_nothing_offers_what_only_it_rested_on(self, services: Services) -> None:
        before = perform(services, "ask", question="what opens the gate of the orchard?", offline=True)["answer"]

        perform(services, "forget", note="gate")

        assert "zanzibar" in before
        assert "zanzibar" not in perform(services, "ask", question="what opens the gate of the orchard?", offline=True)["answer"]
        assert found(services, "zanzibar pepper") == []
        assert found(services, f"session:{SESSION.id[:8]} zanzibar") == []
        assert "zanzibar" not in perform(services, "resume", session=SESSION.id, tokens=4_000)["text"]
        started = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "new", "cwd": HOME}
        assert "zanzibar" not in services.hooks.answer(json.dumps(started).encode())

    def test_an_agents_word_over_mcp_does_the_same(self, services: Services) -> None:
        assert services.bridge.perform("forget", {"note": "gate"}, Asker(grant=OWNER))["forgotten"]

        assert found(services, "zanzibar pepper") == []

    def test_an_agents_word_takes_it_off_the_page_of_contents_too(self, services: Services) -> None:
        write(services, "facts", "gate", GATE, cited(GATE), kind="decision")
        services.pipeline.compare_vault()
        perform(services, "synthesize")
        before = services.vault.pages.read("MEMORY.md")

        services.bridge.perform("forget", {"note": "gate"}, Asker(grant=OWNER))

        assert "zanzib" in before
        assert "zanzib" not in services.vault.pages.read("MEMORY.md")

    def test_what_was_kept_of_a_conversation_goes_with_a_journal_that_was_deleted_by_hand(self, services: Services) -> None:
        uuid = services.bridge.perform("generate-conversation-id", {}, Asker(grant=OWNER))["claude_conversation_uuid"]
        record = {
            "claude_conversation_uuid": uuid,
            "topic": "late frost",
            "summary": "Frost came late.",
            "full_transcript": "A: frost.",
        }
        services.bridge.perform("save-conversation", record, Asker(grant=OWNER, project="orchard"))
        kept = services.config.state / "conversations"
        before = [path for path in kept.rglob("*") if path.is_file()]

        for journal in (services.vault.root / "journals").glob("*.md"):
            journal.unlink()
        services.pipeline.compare_vault()

        assert before
        assert [path for path in kept.rglob("*") if path.is_file()] == []

    def test_what_happened_is_still_shown_as_it_happened(self, services: Services) -> None:
        perform(services, "forget", note="gate")

        assert GATE in texts(services)

    def test_what_another_note_rests_on_is_still_offered(self, services: Services) -> None:
        answer = perform(services, "forget", note="gate")

        assert [(line["lets_go"], line["others"]) for line in answer["evidence"]] == [(True, []), (False, ["projects/quinces.md"])]
        assert [hit.event.text for hit in services.timeline.search.find(EventQuery(text="Xylander catalogue"))] == [SHARED]

    def test_a_rehearsal_changes_nothing(self, services: Services) -> None:
        answer = perform(services, "forget", note="gate", with_evidence=True, dry_run=True)

        assert [(line["text"], line["blank"]) for line in answer["evidence"]] == [(GATE, True), (SHARED, True)]
        assert GATE in texts(services)
        assert [note["id"] for note in perform(services, "search", query="zanzibar pepper")["hits"]] == ["gate"]

    def test_a_citation_lets_a_line_go_without_a_note(self, services: Services) -> None:
        answer = perform(services, "forget", note=cited(OTHER))

        assert answer["notes"] == []
        assert found(services, "pump oil") == []

    def test_the_journal_keeps_the_rest_of_a_day_on_which_a_note_is_forgotten(self, tmp_path: Path) -> None:
        with open_services(replace(config_in(tmp_path), vault_journal=True)) as services:
            services.init_vault()
            write(services, "facts", "gate", GATE)
            write(services, "facts", "quinces", SHARED)
            services.pipeline.compare_vault()
            perform(services, "consolidate")
            before = services.vault.notes.find("journals/2026-03-01.md").body

            answer = perform(services, "forget", matching="the gate")
            day = services.vault.notes.find("journals/2026-03-01.md").body

        assert "gate" in before and "quinces" in before
        assert [each["path"] for each in answer["notes"]] == ["projects/gate.md"]
        assert "gate" not in day and "quinces" in day

    def test_a_journal_page_is_forgotten_by_its_own_name(self, tmp_path: Path) -> None:
        with open_services(replace(config_in(tmp_path), vault_journal=True)) as services:
            services.init_vault()
            write(services, "facts", "gate", GATE)
            services.pipeline.compare_vault()
            perform(services, "consolidate")

            answer = perform(services, "forget", note="journals/2026-03-01.md")

            assert [each["path"] for each in answer["notes"]] == ["journals/2026-03-01.md"]
            assert perform(services, "consolidate")["done"] == 0

    def test_no_note_is_made_of_it_later(self, services: Services) -> None:
        perform(services, "forget", note="gate")

        chunk = services.pipeline._chunk("c", SESSION.provider, SESSION.id, 1, 99)

        assert chunk is not None
        assert [each.text for each in chunk.events if "zanzibar" in each.text] == []


class TestErasing:
    def erased(self, services: Services) -> dict[str, Any]:
        return perform(services, "forget", note="gate", with_evidence=True)

    def test_no_file_of_ours_holds_its_words_once_we_are_done(self, tmp_path: Path) -> None:
        with opened(tmp_path) as services:
            prompt = {"hook_event_name": "UserPromptSubmit", "session_id": SESSION.id, "cwd": HOME, "prompt": GATE}
            services.hooks.answer(json.dumps(prompt).encode())
            while services.timeline.vectors.embed(services.meaning):
                pass
            before = holding(services, b"zanzib")
            self.erased(services)
            at_once = holding(services, b"zanzib")

        assert {"timeline.sqlite-wal", "shown.sqlite-wal"} <= before
        assert not {name for name in at_once if name.startswith("timeline")}
        assert holding(services, b"zanzib") == set()

    def test_nor_do_the_page_of_contents_and_what_undo_would_need(self, tmp_path: Path) -> None:
        with opened(tmp_path) as services:
            write(services, "facts", "gate", GATE, cited(GATE), kind="decision")
            services.pipeline.compare_vault()
            perform(services, "synthesize")
            page = services.vault.pages.read("MEMORY.md")
            (services.config.state / "consolidated.json").write_text(page)
            KeptAnswer(found="", answer={"notes": [GATE]}, until=0.0).keep(services.config.state, "status")
            before = holding(services, b"zanzib")
            erased = self.erased(services)
            at_once = holding(services, b"zanzib")

        assert {"vault.sqlite-wal", "consolidated.json", "status.json"} <= before
        assert "zanzib" in page and "zanzib" not in services.vault.pages.read("MEMORY.md")
        assert erased["problems"] == []
        assert at_once == set()

    def test_a_page_that_a_person_wrote_into_is_said_to_tell_of_it_still(self, services: Services) -> None:
        write(services, "facts", "gate", GATE, cited(GATE), kind="decision")
        services.pipeline.compare_vault()
        perform(services, "synthesize")
        page = services.vault.root / "MEMORY.md"
        page.write_text(page.read_text().replace("zanzib", "Zanzib"))

        (remark,) = perform(services, "forget", note="gate")["problems"]

        assert "MEMORY.md may still tell of it" in remark

    def test_a_page_that_a_person_took_away_stays_away(self, services: Services) -> None:
        write(services, "facts", "gate", GATE, cited(GATE), kind="decision")
        services.pipeline.compare_vault()
        perform(services, "synthesize")
        (services.vault.root / "MEMORY.md").unlink()

        erased = self.erased(services)

        assert erased["problems"] == []
        assert not (services.vault.root / "MEMORY.md").exists()
        assert holding(services, b"zanzib") == set()

    def test_no_one_waits_for_the_vault_while_the_page_is_made(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        write(services, "facts", "gate", GATE, cited(GATE), kind="decision")
        services.pipeline.compare_vault()
        perform(services, "synthesize")
        free: list[bool] = []

        def tried() -> None:
            free.append(services.vault.lock.acquire(blocking=False))
            if free[-1]:
                services.vault.lock.release()

        def page(*arguments: Any, **more: Any) -> str:
            beside = threading.Thread(target=tried)
            beside.start()
            beside.join()
            return made(*arguments, **more)

        made = memory_page.page
        monkeypatch.setattr(memory_page, "page", page)

        self.erased(services)

        assert free == [True]

    def test_no_vector_of_it_is_kept(self, services: Services) -> None:
        for row in ("one", "two", "three", "four", "five", "six"):
            write(services, "facts", row, f"Row {row} of the pears is pruned by Ada")
        services.pipeline.compare_vault()
        rows = services.recall.index.status().rows
        vectors = sum(path.stat().st_size for path in services.config.state.glob("index/local-*/vectors-*.npy"))

        self.erased(services)

        assert services.recall.index.status().rows < rows
        assert sum(path.stat().st_size for path in services.config.state.glob("index/local-*/vectors-*.npy")) < vectors

    def test_the_order_of_what_happened_stays(self, services: Services) -> None:
        before = texts(services)

        self.erased(services)

        after = texts(services)
        assert after == [writing.BLANK if text in (GATE, SHARED) else text for text in before]

    def test_the_sessions_title_goes_too_and_stays_away(self, services: Services) -> None:
        self.erased(services)
        services.timeline.commit([worked().look()], SESSION.provider)

        assert perform(services, "timeline")["sessions"][0]["title"] == ""

    @pytest.mark.parametrize("amends", [False, True])
    def test_a_transcript_read_again_brings_nothing_back(self, services: Services, amends: bool) -> None:
        self.erased(services)

        services.timeline.commit([replace(worked().look(), amends=amends)], SESSION.provider)

        assert GATE not in texts(services)
        assert found(services, "zanzibar pepper") == []

    @pytest.mark.parametrize("crashed", [b"", b'["half a li', b"[1]\n{}\n\xff\n"])
    def test_nor_does_a_timeline_that_is_made_anew(self, tmp_path: Path, crashed: bytes) -> None:
        file = tmp_path / "timeline.sqlite"
        with closing(Timeline(file)) as timeline:
            timeline.commit([worked().look()], SESSION.provider)
            timeline.forgotten.add([event(SHARED)])
            with (tmp_path / "timeline.let-go").open("ab") as kept:
                kept.write(crashed)
            timeline.forgotten.add([event(GATE)], blank=True)
        for part in tmp_path.glob("timeline.sqlite*"):
            part.unlink()

        with closing(Timeline(file)) as anew:
            anew.commit([worked().look()], SESSION.provider)
            texts = [each.text for each in anew.events.of_session(SESSION.provider, SESSION.id)]
            offered = [each.text for each in anew.events.offered(anew.events.of_session(SESSION.provider, SESSION.id))]

        assert GATE not in texts and writing.BLANK in texts
        assert SHARED in texts and SHARED not in offered
        assert (tmp_path / "timeline.let-go").stat().st_mode & 0o077 == 0

    def test_a_note_that_rested_on_it_too_stays_and_says_so(self, services: Services) -> None:
        self.erased(services)

        (piece,) = perform(services, "why", note="quinces")["evidence"]

        assert [each["text"] for each in piece["events"]] == [writing.BLANK]
        assert [note["id"] for note in perform(services, "search", query="quinces roots")["hits"]] == ["quinces"]

    def test_it_can_be_repeated(self, services: Services) -> None:
        perform(services, "forget", note=cited(GATE))
        perform(services, "forget", note=cited(GATE), with_evidence=True)

        erased = self.erased(services)

        assert GATE not in texts(services)
        assert [note["id"] for note in erased["notes"]] == ["gate"]

    def test_the_failure_that_it_was_is_forgotten_by_its_signature(self, tmp_path: Path) -> None:
        failed = Work().asked("Run it").ran("make deploy", "Error: the depot at Zanzibar is closed to you", "failed")
        with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
            timeline.commit([failed.look()], SESSION.provider)
            before = timeline._database.all("SELECT text FROM signatures")

            timeline.forgotten.add(failed.events, blank=True)

            assert before and timeline._database.all("SELECT text FROM signatures") == []
            assert timeline._database.all("SELECT * FROM raised") == []


class TestLines:
    @pytest.mark.parametrize(
        ("event", "line"),
        [("5e55", "5e55"), ("5e55:1", "5e55"), ("5e55:12", "5e55"), ("5e55:a", "5e55:a"), ("git:5e55", "git:5e55"), (":1", "")],
    )
    def test_events_of_one_line_share_its_name(self, event: str, line: str) -> None:
        assert line_of(event) == line

    def test_everything_read_from_the_line_goes(self, tmp_path: Path) -> None:
        one = event(GATE)
        with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
            both = (one, replace(one, id=f"{one.id}:1", ordinal=77, text="zanzibar"), replace(one, id=f"{one.id}9", ordinal=78))
            timeline.commit([replace(worked().look(), events=both)], SESSION.provider)

            timeline.forgotten.add([one], blank=True)

            assert [each.text for each in timeline.events.of_session(SESSION.provider, SESSION.id)] == [
                writing.BLANK,
                writing.BLANK,
                GATE,
            ]

    def test_another_line_whose_name_begins_so_is_not_meant(self, tmp_path: Path) -> None:
        one = event(GATE)
        reference = EvidenceReference(provider=SESSION.provider, session=SESSION.id, event=one.id[:8])
        with closing(Timeline(tmp_path / "timeline.sqlite")) as timeline:
            both = (one, replace(one, id=f"{one.id[:8]}-another-line", ordinal=77))
            timeline.commit([replace(worked().look(), events=both)], SESSION.provider)

            assert [each.id for each in timeline.events.line(reference)] == [one.id]


class TestLeavingNothing:
    """While the services are open: the write-ahead logs are there, and are searched like every other file."""

    def filled(self, services: Services) -> None:
        """Every database has held the words, and some no longer do."""
        for session in (SESSION.id, "goes-on-from-it"):
            prompt = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": HOME, "prompt": GATE}
            services.hooks.answer(json.dumps(prompt).encode())
        services.outbox.formed.add([Span(id="c1", provider=SESSION.provider, session=SESSION.id, first=1, last=99, weight=9)])
        services.outbox.reserve("c1", Usage(), Budget(dollars=1.0, calls=9), day="2026-03-01")
        item = Fact(title="The gate", body=GATE, evidence=(event(GATE).id,), importance=2, origin="user")
        record = Record(topics=(Topic(name="the gate", summary=GATE, items=(item,)),))
        services.outbox.answer("c1", record, Usage(), extractor="x")

    def test_no_file_holds_a_word_of_it_while_the_databases_are_open(self, services: Services) -> None:
        self.filled(services)
        before = holding(services, b"zanzib")

        answer = perform(services, "forget", note="gate", with_evidence=True)

        assert {"outbox.sqlite-wal", "shown.sqlite-wal", "timeline.sqlite-wal"} <= before
        assert holding(services, b"zanzib") == set()
        assert answer["problems"] == []

    def test_what_an_answer_said_is_overwritten_once_it_is_written_down(self, services: Services) -> None:
        self.filled(services)
        services.outbox.written("c1")

        perform(services, "forget", note="gate", with_evidence=True)

        assert holding(services, b"zanzib") == set()

    def test_what_another_process_still_reads_is_named(self, services: Services) -> None:
        self.filled(services)
        with closing(sqlite3.connect(services.config.state / "index" / "shown.sqlite", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM occasion").fetchall()

            answer = perform(services, "forget", note="gate", with_evidence=True)

        assert [remark.partition(":")[0] for remark in answer["problems"]] == ["index may still hold it"]

    def test_a_kept_answer_that_cannot_be_deleted_is_named(self, services: Services) -> None:
        self.filled(services)
        (services.config.state / "answers" / "status.json").mkdir(parents=True)

        answer = perform(services, "forget", note="gate", with_evidence=True)

        assert [remark.partition("answers")[2] for remark in answer["problems"]] == [" may still hold it: it cannot be deleted"]

    def test_every_database_of_the_state_folder_overwrites_what_it_deletes(self, services: Services, monkeypatch: Any) -> None:
        settings: dict[str, int] = {}
        connect = sqlite.connect

        def seen(path: Path, *, timeout: float) -> sqlite3.Connection:
            connection = connect(path, timeout=timeout)
            settings[path.name] = connection.execute("PRAGMA secure_delete").fetchone()[0]
            return connection

        monkeypatch.setattr(sqlite, "connect", seen)
        with opened(services.config.state.parent / "another") as another:
            kept = [path for path in another.config.state.rglob("*") if path.is_file()]
            files = {path.name for path in kept if path.read_bytes().startswith(b"SQLite format 3")}

        assert files == set(settings)
        assert set(settings.values()) == {1}


class TestIds:
    def test_every_id_that_a_search_prints_can_be_forgotten(self, services: Services) -> None:
        for query in ("zanzibar pepper", "pump oil", "type:file_action quince"):
            answer = perform(services, "search", query=query)
            ids = [each["id"] for each in (*answer["hits"], *answer["events"])]
            ids += [each[name] for each in answer["events"] for name in ("session", "reference")]

            for id in ids:
                rehearsed = perform(services, "forget", note=id, dry_run=True)
                assert rehearsed["notes"] or rehearsed["evidence"], id

    def test_an_events_id_lets_its_line_go(self, services: Services) -> None:
        answer = perform(services, "forget", note=event(OTHER).id)

        assert [line["text"] for line in answer["evidence"]] == [OTHER]
        assert found(services, "pump oil") == []

    def test_a_sessions_id_is_the_sweep_of_it(self, services: Services) -> None:
        answer = perform(services, "forget", note=SESSION.id, dry_run=True)

        assert {each["id"] for each in answer["notes"]} == {"gate", "quinces"}
        assert answer["session"] == SESSION.id

    def test_what_is_no_id_is_not_found(self, services: Services) -> None:
        with pytest.raises(NoteNotFound):
            perform(services, "forget", note="5e55-nothing-of-ours")

    @pytest.mark.parametrize("folder", ["a", "work"])
    def test_a_sweep_over_a_note_and_its_copy_forgets_the_rest_too(self, services: Services, folder: str) -> None:
        root = services.vault.root
        (root / folder).mkdir()
        shutil.copy(root / "projects" / "gate.md", root / folder / "gate.md")
        write(services, "facts", "yard", OTHER, cited(OTHER))
        services.pipeline.compare_vault()

        answer = perform(services, "forget", session=SESSION.id, with_evidence=True)

        assert {each["path"] for each in answer["notes"]} >= {f"{folder}/gate.md", "projects/gate.md", "projects/yard.md"}
        assert all(Path(each["trash"]).is_file() for each in answer["notes"])
        assert len({each["trash"] for each in answer["notes"]}) == len(answer["notes"]) == 4
        assert not any((root / each["path"]).exists() for each in answer["notes"])
        assert answer["problems"] == []
        assert holding(services, b"zanzib") == set()
