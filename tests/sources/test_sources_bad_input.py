"""What the files of one agent alone can hold that no one meant; `tests/contract` has what all of theirs can."""

import contextlib
import json
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from kite_memory.model.event import Event, EventType, ReadResult
from kite_memory.sources.aider import Aider
from kite_memory.sources.antigravity import Antigravity
from kite_memory.sources.copilot_cli import CopilotCli
from kite_memory.sources.cursor.source import CursorApp
from kite_memory.sources.gemini_cli.source import Gemini
from kite_memory.sources.git_history import GitLog
from kite_memory.sources.opencode.source import OpenCode
from tests.contract.database_contract import looks
from tests.fakes.cursor_store import CommandLineStore, EditorState
from tests.fakes.opencode_store import OpenCodeStore, call
from tests.fakes.repositories import FakeRepository, environment
from tests.fakes.steps import Steps

LONG = "a" * (17 << 20)


def reasons(found: list[ReadResult]) -> list[str]:
    return [problem.reason for look in found for problem in look.problems]


def events(found: list[ReadResult]) -> list[Event]:
    return [event for look in found for event in look.events]


def open_files(folder: Path) -> list[str]:
    """What this process has open below ``folder``; always empty on a system without /proc."""
    found: list[str] = []
    for descriptor in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):  # closed since it was listed
            found.append(os.readlink(descriptor))  # noqa: PTH115 -- a socket's name is no path
    return [name for name in found if name.startswith(f"{folder}/")]


def test_a_folder_whose_name_is_too_long_holds_no_history(tmp_path: Path) -> None:
    (tmp_path / ".aider.chat.history.md").write_text("# aider chat started at 2026-03-02 09:00:00\n\n#### Graft\n")

    found = Aider(lambda: [str(tmp_path), "/" + "a" * 3_000], own_state=tmp_path / "state").transcripts()

    assert list(found) == [tmp_path / ".aider.chat.history.md"]


@pytest.mark.parametrize("entry", ["loop", "loop.jsonl"])
def test_a_link_to_itself_among_sessions_costs_none_of_them(tmp_path: Path, entry: str) -> None:
    sessions = tmp_path / "session-state"
    for name in ("a", "z"):
        (sessions / name).mkdir(parents=True)
        (sessions / name / "events.jsonl").touch()
    (sessions / entry).symlink_to(entry)

    found = list(CopilotCli(tmp_path, own_state=tmp_path / "state").transcripts())

    assert found == [sessions / "a" / "events.jsonl", sessions / "z" / "events.jsonl"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
class TestPipes:
    """No one writes to them: any reader of one would wait for ever."""

    def done(self, work: threading.Thread) -> bool:
        work.start()
        work.join(60.0)
        return not work.is_alive()

    def test_where_gemini_notes_a_folder(self, tmp_path: Path) -> None:
        chats = tmp_path / "tmp" / "orchard" / "chats"
        chats.mkdir(parents=True)
        path = chats / "session-1.json"
        path.write_text('{"sessionId":"s","messages":[]}')
        os.mkfifo(tmp_path / "tmp" / "orchard" / ".project_root")
        os.mkfifo(tmp_path / "projects.json")
        gemini = Gemini(tmp_path, own_state=tmp_path / "state")

        assert self.done(threading.Thread(target=lambda: gemini.read(path, None, budget=1 << 20), daemon=True))

    def test_where_git_notes_a_worktrees_repository(self, tmp_path: Path) -> None:
        kept = tmp_path / "kept"
        kept.mkdir()
        os.mkfifo(kept / "commondir")
        (kept / "HEAD").write_text("ref: refs/heads/main\n")
        (tmp_path / "orchard").mkdir()
        (tmp_path / "orchard" / ".git").write_text(f"gitdir: {kept}\n")
        git = GitLog(lambda: [str(tmp_path / "orchard")], environment=environment(tmp_path), home=tmp_path)

        assert self.done(threading.Thread(target=lambda: list(git.transcripts()), daemon=True))


class TestCursor:
    def read(self, home: Path, path: Path) -> list[ReadResult]:
        return looks(CursorApp(home / "User", home / "cli"), path)

    def test_a_description_too_long_is_passed_over_with_its_conversation(self, tmp_path: Path) -> None:
        path = tmp_path / "cli" / "chats" / "h" / "talk" / "store.db"
        with closing(CommandLineStore(path)) as store:
            store.connection.execute("INSERT INTO meta VALUES ('0', ?)", (LONG,))

        found = self.read(tmp_path, path)

        assert (events(found), reasons(found)) == ([], ["value too long"])

    def test_bubbles_whose_names_are_no_names_are_reported(self, tmp_path: Path) -> None:
        path = tmp_path / "User" / "globalStorage" / "state.vscdb"
        with closing(EditorState(path)) as state:
            names: list[object] = [{}, [], None, 4]
            inline = [{"bubbleId": name, "type": 1, "text": f"Water {number}"} for number, name in enumerate(names)]
            state.put("composerData:c1", {"composerId": "c1", "conversation": inline, "status": "generating"})

        found = self.read(tmp_path, path)

        assert [event.text for event in events(found)] == ["Water 0", "Water 1", "Water 2", "Water 3"]


class TestOpenCode:
    def read(self, home: Path, after: ReadResult | None = None, *, now: float = 4e9) -> list[ReadResult]:
        return looks(OpenCode(home, clock=lambda: now), home / "opencode.db", after)

    def test_a_session_with_a_value_too_long_costs_no_other(self, tmp_path: Path) -> None:
        with closing(OpenCodeStore(tmp_path / "opencode.db")) as store:
            for name, title in (("ses_1", "A pump"), ("ses_2", LONG), ("ses_3", "A well")):
                store.session(name, title=title)
                store.prompt(name, f"Look at {name}")

        found = self.read(tmp_path)

        assert [event.text for event in events(found)] == ["Look at ses_1", "Look at ses_3"]
        assert reasons(found) == ["value too long"]

    def test_what_is_brought_up_to_date_after_a_clock_was_ahead_is_noticed(self, tmp_path: Path) -> None:
        with closing(OpenCodeStore(tmp_path / "opencode.db")) as store:
            store.session("ses_1")
            message = store.message("ses_1", "assistant")
            part = store.part("ses_1", message, **call("bash", "c1", {"command": "ls"}, status="running"))
            now, store.now = store.now, 4_102_444_800_000
            store.prompt("ses_1", "Written in another century")
            store.now = now
            before = self.read(tmp_path, now=now / 1000)
            store.rewrite(part, **call("bash", "c1", {"command": "ls"}, output="pump.py"))

            after = self.read(tmp_path, before[-1], now=now / 1000)

        assert EventType.TOOL_RESULT not in {event.type for event in events(before)}
        assert [event.text for event in events(after) if event.type is EventType.TOOL_RESULT] == ["pump.py"]

    def test_files_cut_anywhere_are_counted_and_reported_when_they_are_whole(self, tmp_path: Path) -> None:
        session = tmp_path / "storage" / "session" / "p1" / "ses_1.json"
        message = tmp_path / "storage" / "message" / "ses_1" / "msg_1.json"
        part = tmp_path / "storage" / "part" / "msg_1" / "prt_1.json"
        whole = {
            session: json.dumps({"id": "ses_1", "directory": "/home/ada/orchard"}),
            message: json.dumps({"id": "msg_1", "role": "user", "time": {"created": 1_772_442_000_000}}),
            part: json.dumps({"type": "text", "text": "Graft"}),
        }
        for path, text in whole.items():
            path.parent.mkdir(parents=True)
            path.write_text(text)
        source = OpenCode(tmp_path)

        for path, text in whole.items():
            for cut in range(1, len(text) - 1, 5):
                path.write_text(text[:cut])
                (half,) = looks(source, session)
                path.write_text(text)
                os.utime(path, ns=(cut, 2_000_000_000_000_000_000 + cut))
                (rest,) = looks(source, session, half)

                assert half.problems
                assert [event.text for event in rest.events] == ["Graft"], (path.name, cut)


class TestGit:
    def test_a_message_of_signatures_takes_no_longer_than_it_is_long(self, tmp_path: Path) -> None:
        message = tmp_path / "message"
        message.write_text("Graft" + "\nCc: Bo" * 300_000 + "\nz")
        orchard = FakeRepository(tmp_path / "orchard")
        orchard.git("commit", "--quiet", "--allow-empty", f"--file={message}")
        git = GitLog(lambda: [str(tmp_path / "orchard")], environment=environment(tmp_path), home=tmp_path)

        (look,) = looks(git, next(git.transcripts()))

        assert look.events[0].text.startswith("Graft\nCc: Bo")


class TestAntigravity:
    def lay(self, root: Path, content: bytes, name: str = "c-1") -> Path:
        path = root / "antigravity-cli" / "brain" / name / ".system_generated" / "logs" / "transcript_full.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def test_what_a_running_command_printed_so_far_says_nothing_of_its_tests(self, tmp_path: Path) -> None:
        steps = Steps()
        steps.plan(run_command={"CommandLine": "go test ./..."})
        steps.add("RUN_COMMAND", "ok  \torchard/pear\t0.1s", status="RUNNING")

        found = looks(Antigravity(tmp_path), self.lay(tmp_path, steps.bytes))

        assert [event.status for event in events(found) if event.type is EventType.TOOL_RESULT] == [""]
        assert [event for event in events(found) if event.type is EventType.TEST_RESULT] == []

    def test_a_helper_is_known_whose_parents_line_was_half_written_at_first(self, tmp_path: Path) -> None:
        steps = Steps()
        steps.add("INVOKE_SUBAGENT", json.dumps({"conversationId": "helper-0001"}))
        whole = steps.bytes
        parent = self.lay(tmp_path, whole[: whole.index(b"conversationId")])
        helper = Steps()
        helper.prompt("Count the pears")
        first, second = (self.lay(tmp_path, helper.bytes, name) for name in ("other-0001", "helper-0001"))
        seconds = [0.0]
        source = Antigravity(tmp_path, clock=lambda: seconds[0])
        looks(source, first)
        parent.write_bytes(whole)
        seconds[0] = 60.0

        (look,) = looks(source, second)

        assert look.session is not None
        assert look.session.parent == "c-1"
        assert [(event.type, event.role) for event in look.events] == [(EventType.ASSISTANT_MESSAGE, "assistant")]


class TestGemini:
    def read(self, root: Path, *messages: dict[str, object]) -> ReadResult:
        path = root / "tmp" / "orchard" / "chats" / "session-1.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"sessionId": "s", "startTime": "2026-03-02T09:00:00Z", "messages": messages}))
        return Gemini(root, own_state=root / "state").read(path, None, budget=1 << 20)

    def test_a_folder_that_a_person_quotes_is_not_where_they_are(self, tmp_path: Path) -> None:
        words = "The log says: Current Working Directory: /home/bo/cellar\nWhy?"

        look = self.read(tmp_path, {"id": "1", "type": "user", "timestamp": "2026-03-02T09:00:01Z", "content": words})

        assert look.session is not None
        assert (look.session.cwd, look.session.project) == ("", "")
        assert [event.text for event in look.events] == [words]

    def test_a_message_without_a_name_may_have_any_time(self, tmp_path: Path) -> None:
        look = self.read(tmp_path, {"type": "user", "timestamp": [[["noon"]]], "content": "Graft"})

        assert [event.text for event in look.events] == ["Graft"]


def test_a_database_left_open_with_a_log_of_its_owners_alone_is_read_without_a_trace(tmp_path: Path) -> None:
    """In its exclusive mode SQLite keeps the log's index in memory, and no one else can tell how far the log goes."""
    path = tmp_path / "opencode.db"
    with closing(OpenCodeStore(path)) as store:
        store.connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        store.session("ses_1")
        store.prompt("ses_1", "Graft")
        before = sorted(each.name for each in tmp_path.iterdir())

        found = looks(OpenCode(tmp_path), path)

        store.prompt("ses_1", "Water")
        assert sorted(each.name for each in tmp_path.iterdir()) == before
        assert [event.text for event in events(found)] == ["Graft"] or reasons(found) == ["busy, later"]


def test_no_database_stays_open(tmp_path: Path) -> None:
    """Damaged ones neither."""
    path = tmp_path / "opencode.db"
    OpenCodeStore(path).close()
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE part")
    database.close()
    source = OpenCode(tmp_path)

    for _ in range(3):
        looks(source, path)

    assert open_files(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no list of open files here")
def test_an_open_database_is_seen(tmp_path: Path) -> None:
    with closing(OpenCodeStore(tmp_path / "opencode.db")) as store:
        store.session("ses_1")

        assert open_files(tmp_path)
