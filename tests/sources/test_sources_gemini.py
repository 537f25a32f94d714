"""What Gemini CLI's sessions tell, in both of its formats, and that nothing is reported twice."""

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kite_memory.model.event import Event, RedactedResult
from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK
from kite_memory.timeline.store import Timeline
from tests.sources.gemini_session import CWD, SESSION, GeminiSession, Home, a_day, context
from tests.sources.transcript import kinds, only, texts_of


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def plain(events: Iterable[Event]) -> list[tuple[str, ...]]:
    """Events but for where they stand."""
    return [(e.id, e.type, e.role, e.text, e.tool, e.command, e.path, e.status, e.parent, e.call) for e in events]


def in_timeline(home: Home, *paths: Path) -> list[Event]:
    with closing(Timeline(home.own_state / "timeline.sqlite")) as timeline:
        for path in paths:
            timeline.commit(map(RedactedResult, home.read_on(path)), "gemini-cli")
        return timeline.events.of_session("gemini-cli", SESSION)


def test_both_formats_tell_the_same_under_the_same_ids(home: Home) -> None:
    lines, document = home.both(a_day())

    assert plain(lines) == plain(document)
    assert kinds(lines) == [
        "user_message",
        "assistant_message",
        "tool_call",
        "command",
        "tool_result",
        "test_result",
        "error",
        "tool_call",
        "tool_result",
        "file_action",
        "assistant_message",
    ]


def test_a_session_knows_its_folder_and_title(home: Home) -> None:
    session = a_day()
    for path in (home.write_lines(session), home.write_document(session)):
        found = home.read_on(path)[-1].session

        assert found is not None
        assert (found.id, found.title, found.cwd) == (SESSION, "Pears on quinces", CWD)


def test_a_document_that_goes_on_as_lines_is_one_session_and_reported_once(home: Home) -> None:
    session = GeminiSession()
    session.user("Which pear?")
    session.gemini("The Conference.", session.call("call_1", "read_file", "pears", file_path=f"{CWD}/pears.txt"))
    document = home.write_document(session)
    session.user("And which plum?")

    events = in_timeline(home, document, home.write_lines(session))

    assert texts_of(events, "user_message") == ["Which pear?", "And which plum?"]
    assert len(texts_of(events, "tool_call")) == len(texts_of(events, "tool_result")) == 1


def test_a_checkpoint_neither_repeats_nor_changes_what_was_reported(home: Home) -> None:
    session = GeminiSession()
    session.user("Which pear?")
    output = "Output: pears\nProcess Group PGID: 7"
    session.gemini("I look.", session.call("call_1", "run_shell_command", output, command="ls"))
    session.gemini("The Conference.")
    before = in_timeline(home, home.write_lines(session))
    session.checkpoint()
    session.user("And which plum?")

    events = in_timeline(home, home.write_lines(session))

    assert events[:-1] == before
    assert events[-1].text == "And which plum?"


def test_a_checkpoint_may_be_glued_to_the_message_before_it(home: Home) -> None:
    session = GeminiSession()
    first = session.user("Which pear?")
    other = {**first, "content": [{"text": "Which pear, please?"}]}
    session.messages = [other]
    session.checkpoint()
    header, *rows = (json.dumps(row) for row in (session.rows[0], first, other, session.rows[-1]))
    path = home.write(f"{header}\n{''.join(rows)}\n".encode(), "session-2026-03-02T09-00-5e551011.jsonl")

    messages = home.read(path)
    checkpoint = home.read(path, messages.cursor)

    assert [event.text for event in messages.events] == ["Which pear?", "Which pear, please?"]
    assert (messages.amends, messages.more) == (True, True)
    assert (checkpoint.events, checkpoint.more) == ((), False)


def test_what_only_a_checkpoint_shows_is_reported(home: Home) -> None:
    session = GeminiSession()
    session.user("Which pear?")
    output = "Output: pears\nExit Code: 2"
    session.gemini("I look.", session.call("call_1", "run_shell_command", output, command="ls"))
    session.checkpoint()
    session.rows[1:] = session.rows[-1:]

    events = in_timeline(home, home.write_lines(session))

    assert texts_of(events, "user_message", "assistant_message") == ["Which pear?", "I look."]
    assert only(events, "command").command == "ls"
    result = only(events, "tool_result")
    assert (result.parent, result.status, result.text) == (only(events, "tool_call").id, "failed", "pears")


def test_after_many_messages_a_checkpoint_still_changes_nothing(home: Home) -> None:
    session = GeminiSession()
    for n in range(120):
        session.user(f"Question {n}")
        session.gemini(f"Answer {n}", session.call(f"call_{n}", "read_file", f"file {n}", file_path=f"/x/{n}"))
    before = in_timeline(home, home.write_lines(session))
    session.checkpoint()

    events = in_timeline(home, home.write_lines(session))

    assert events == before
    assert len(events) == 120 * 5


def test_a_message_that_grows_is_brought_up_to_date(home: Home) -> None:
    session = GeminiSession()
    message = session.gemini("I look", session.call("call_1", "run_shell_command", status="executing", command="ls"))
    first = in_timeline(home, home.write_lines(session))
    message["content"] = "I look everywhere."
    message["toolCalls"] = [session.call("call_1", "run_shell_command", "Output: pears", command="ls")]
    session.write(message)

    events = in_timeline(home, home.write_lines(session))

    assert kinds(first) == ["assistant_message", "tool_call", "command"]
    assert texts_of(events, "assistant_message") == ["I look everywhere."]
    assert [event.id for event in events[:3]] == [event.id for event in first]
    assert only(events, "tool_result").text == "pears"


def test_a_result_that_stands_in_its_call_and_in_a_message_is_reported_once_whenever_they_are_read(home: Home) -> None:
    session = GeminiSession()
    call = session.call("call_1", "read_file", "pears", file_path="/x/pears.txt")
    session.gemini("", call)
    session.message("user", call["result"])
    path = home.write_lines(session)

    steps = [event for look in home.read_on(path, budget=1) for event in look.events]

    assert [(event.type.value, event.path) for event in steps] == [
        ("tool_call", "/x/pears.txt"),
        ("tool_result", "/x/pears.txt"),
        ("file_action", "/x/pears.txt"),
    ]


def test_what_a_rewind_takes_back_did_happen(home: Home) -> None:
    session = GeminiSession()
    session.user("Which pear?")
    session.rows.append({"$rewindTo": session.messages[0]["id"]})
    session.user("Which plum?")

    look = home.read(home.write_lines(session))

    assert texts_of(look.events, "user_message") == ["Which pear?", "Which plum?"]
    assert look.problems == ()


HOOKED = (
    "<hook_context>&lt;vault-context&gt;\n[Relevant vault context: quoted notes]\n--- [a.md] ---\nPears.\n"
    "&lt;/vault-context&gt;</hook_context>"
)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"text": f"{HOOKED}\n\nGraft the pear"}], "Graft the pear"),
        ([{"text": f"{HOOKED}\n\nGraft the pear"}, {"text": HOOKED}], "Graft the pear"),
        ([{"text": "Graft the pear"}, {"text": HOOKED}], "Graft the pear"),
        ("Graft the pear", "Graft the pear"),
        ([{"text": "Look at @pear.py\n--- Content from referenced files ---\nsecret"}], "Look at @pear.py"),
        ([{"text": "User steering update:\n<user_input>\nPrune less\n</user_input>\nApply it."}], "Prune less"),
    ],
)
def test_a_persons_words_are_reported_without_what_stands_around_them(home: Home, content: Any, words: str) -> None:
    session = GeminiSession()
    session.message("user", content)

    for events in home.both(session):
        assert texts_of(events, "user_message") == [words]


@pytest.mark.parametrize(
    "text",
    [
        context(),
        "This is the Gemini CLI. We are setting up the context for our chat.\nToday's date is Monday.",
        HOOKED,
        "System: Please continue.",
        "/compress",
        "?",
        "Background execution update:\n<background_output>\ndone\n</background_output>",
        "<vault-context>\n[Relevant vault context: quoted notes]\n--- [a.md] ---\n</vault-context>",
        "",
    ],
)
def test_what_the_client_writes_in_a_persons_place_is_no_ones_prompt(home: Home, text: str) -> None:
    session = GeminiSession()
    session.user(text)

    for events in home.both(session):
        assert events == []


def test_what_is_typed_counts_where_files_come_with_it(home: Home) -> None:
    session = GeminiSession()
    session.user("the whole of pear.py", displayContent=[{"text": "Explain @pear.py"}])

    for events in home.both(session):
        assert texts_of(events, "user_message") == ["Explain @pear.py"]


@pytest.mark.parametrize("text", ["System: Arch Linux. Which pear grows there?", "/graft the pear", "Please continue with it."])
def test_what_only_looks_like_the_clients_is_a_persons(home: Home, text: str) -> None:
    session = GeminiSession()
    session.user(text)

    for events in home.both(session):
        assert texts_of(events, "user_message") == [text]


def test_thoughts_and_messages_for_the_screen_are_not_reported(home: Home) -> None:
    session = GeminiSession()
    session.gemini("")
    session.message("gemini", [{"text": "Hm.", "thought": True}])
    for kind in ("info", "warning", "error"):
        session.message(kind, "Something.")

    for events in home.both(session):
        assert events == []


def test_a_snapshot_of_a_compressed_conversation_is_a_place_to_resume(home: Home) -> None:
    session = GeminiSession()
    session.user("<state_snapshot>\n<overall_goal>Graft the pear.</overall_goal>\n</state_snapshot>")

    for events in home.both(session):
        assert only(events, "resume_point").text.startswith("<state_snapshot>")


@pytest.mark.parametrize(
    ("output", "status", "text"),
    [
        ("<untrusted_context>\nOutput: fine\nProcess Group PGID: 7\n</untrusted_context>", "ok", "fine"),
        ("Output: bad\nExit Code: 2\nProcess Group PGID: 7", "failed", "bad"),
        ("Output: (empty)", "ok", ""),
        (
            "Command: ls\nDirectory: (root)\nOutput: a\nb\nError: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)\n"
            "Process Group PGID: 7",
            "ok",
            "a\nb",
        ),
        ("Command: ls\nDirectory: (root)\nOutput: no\nError: (none)\nExit Code: 1\nSignal: 0", "failed", "no"),
        (
            "Command was cancelled by user before it could complete.",
            "interrupted",
            "Command was cancelled by user before it could complete.",
        ),
        ("prints Exit Code: 3 in a line of its own", "ok", "prints Exit Code: 3 in a line of its own"),
        ("Output: it printed\nExit Code: 1\nand went on\nProcess Group PGID: 7", "ok", "it printed\nExit Code: 1\nand went on"),
    ],
)
def test_a_shells_output_says_how_it_went(home: Home, output: str, status: str, text: str) -> None:
    session = GeminiSession()
    session.gemini("", session.call("call_1", "run_shell_command", output, command="make"))

    for events in home.both(session):
        result = only(events, "tool_result")
        assert (result.status, result.text, result.call) == (status, text, "call_1")
        assert only(events, "command").command == "make"


@pytest.mark.parametrize(
    "text",
    [
        "Got it. Thanks for the context!",
        "Got it. Thanks for the additional context!",
        "[The previous response was interrupted before it completed.]",
    ],
)
def test_what_the_client_says_in_the_agents_place_is_not_the_agents(home: Home, text: str) -> None:
    session = GeminiSession()
    session.user("Which pear?")
    session.gemini(text)

    for events in home.both(session):
        assert [event.role for event in events] == ["user"]


def test_what_a_hook_adds_to_a_tools_output_is_not_the_tools(home: Home) -> None:
    session = GeminiSession()
    output = f"<untrusted_context>\nOutput: pears\nExit Code: 1\n</untrusted_context>\n\n{HOOKED}"
    session.gemini("", session.call("call_1", "run_shell_command", output, command="ls"))

    for events in home.both(session):
        assert (only(events, "tool_result").text, only(events, "tool_result").status) == ("pears", "failed")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"status": "error", "error": "File not found: pear.py"}, "failed"),
        ({"status": "success", "error": "File not found: pear.py"}, "failed"),
        ({"status": "cancelled", "error": "[Operation Cancelled] Reason: User did not allow tool call"}, "denied"),
        ({"status": "cancelled", "error": "[Operation Cancelled] Reason: Operation cancelled."}, "interrupted"),
        ({"status": "success", "error": "[Operation Cancelled] Reason: User cancelled the operation."}, "interrupted"),
        ({"status": "success", "error": "[Operation Cancelled] Reason: User denied execution."}, "denied"),
    ],
)
def test_a_call_that_came_to_nothing_says_why(home: Home, fields: dict[str, str], status: str) -> None:
    session = GeminiSession()
    session.gemini("", session.call("call_1", "read_file", None, file_path="pear.py", **fields))

    for events in home.both(session):
        assert only(events, "tool_result").status == status
        assert texts_of(events, "file_action") == []


@pytest.mark.parametrize(
    ("tool", "output", "display", "path", "how"),
    [
        ("write_file", f"Successfully created and wrote to new file: {CWD}/new.py.", "", f"{CWD}/new.py", "created"),
        ("write_file", f"Successfully overwrote file: {CWD}/pear.py.", "", f"{CWD}/pear.py", "written"),
        ("write_file", "Done.", {"filePath": f"{CWD}/new.py", "isNewFile": True}, f"{CWD}/new.py", "created"),
        ("replace", f"Successfully modified file: {CWD}/pear.py (2 replacements).", "", f"{CWD}/pear.py", "edited"),
        (
            "replace",
            "Done.",
            {"filePath": "pear.py", "diffStat": {"model_added_lines": 3, "model_removed_lines": 1, "user_added_lines": 1}},
            f"{CWD}/pear.py",
            "edited, 3 lines added, 1 removed; the user changed it before accepting",
        ),
        ("replace", "Done.", "", f"{CWD}/pear.py", "edited"),
        ("read_file", "pears", "", f"{CWD}/pear.py", "read"),
    ],
)
def test_a_file_that_was_changed_is_reported_with_its_whole_path(
    home: Home, tool: str, output: str, display: Any, path: str, how: str
) -> None:
    session = GeminiSession()
    session.user("Graft")
    session.gemini("", session.call("call_1", tool, output, display=display, file_path="pear.py"))
    (home.root / "tmp" / "orchard").mkdir(parents=True)
    (home.root / "tmp" / "orchard" / ".project_root").write_text(CWD)

    for events in home.both(session):
        action = only(events, "file_action")
        assert (action.path, action.text) == (path, how)


def test_what_a_person_answers_is_a_decision(home: Home) -> None:
    session = GeminiSession()
    asked = session.call("call_1", "ask_user", "Answer: quince", questions=[{"question": "Which rootstock?", "type": "choice"}])
    session.gemini("", asked)

    for events in home.both(session):
        decision = only(events, "decision")
        assert (decision.role, decision.text) == ("user", "Which rootstock?\nAnswer: Answer: quince")


@pytest.mark.parametrize("known_by", ["project_root", "projects", "hash in projects", "context", "directories", "a path in a call"])
def test_the_folder_is_found_wherever_it_is_noted(home: Home, known_by: str) -> None:
    session = GeminiSession(directories=[CWD]) if known_by == "directories" else GeminiSession()
    session.user(context() if known_by == "context" else "Which pear?")
    at_home = f"{CWD}/src/pear.py" if known_by == "a path in a call" else "pear.py"
    session.gemini("The Conference.", session.call("call_1", "read_file", "pears", file_path=at_home))
    home.project.mkdir(parents=True)
    if known_by == "project_root":
        (home.project / ".project_root").write_text(CWD + "\n")
    elif known_by in ("projects", "hash in projects"):
        name = "orchard" if known_by == "projects" else "another"
        (home.root / "projects.json").write_text(json.dumps({"projects": {"/elsewhere": "x", CWD: name}}))

    for path in (home.write_lines(session), home.write_document(session)):
        found = home.read(path).session
        assert found is not None
        assert found.cwd == CWD
        assert found.project == "orchard"


def test_a_folder_that_nothing_shows_stays_unknown(home: Home) -> None:
    session = GeminiSession()
    session.user("Which pear?")
    (home.root / "tmp").mkdir(parents=True)
    (home.root / "projects.json").write_text("{half")

    found = home.read(home.write_lines(session)).session

    assert found is not None
    assert (found.cwd, found.project) == ("", "")


def test_an_agent_that_works_for_another_is_given_no_persons_prompts(home: Home) -> None:
    session = GeminiSession("5e551011-0000-4000-8000-000000000009", kind="subagent")
    session.user("Review the graft.")
    path = home.write(session.lines, f"{SESSION}/5e551011-0000-4000-8000-000000000009.jsonl")

    look = home.read(path)

    assert home.source.owns(path)
    assert look.session is not None
    assert look.session.parent == SESSION
    assert kinds(look.events) == ["assistant_message"]


def test_sessions_of_our_own_extractor_are_never_read(home: Home) -> None:
    marked, inside = GeminiSession(), GeminiSession(directories=[str(home.own_state / "extractor")])
    marked.user(f"{OWN_EXTRACTOR_MARK} What was decided?")
    inside.user("What was decided?")

    for session in (marked, inside):
        for path in (home.write_lines(session), home.write_document(session)):
            look = home.read(path)
            assert (look.session, look.events, look.problems) == (None, (), ())


def test_ids_that_other_sessions_use_too_are_made_this_sessions_own(home: Home) -> None:
    named: list[str] = []
    for session_id in (SESSION, "another"):
        session = GeminiSession(session_id)
        session.message("user", "Which pear?", id="m1")
        session.messages[0]["id"] = session.rows[1]["id"] = "m1"
        lines, document = home.both(session)
        assert [event.id for event in lines] == [event.id for event in document]
        named += [event.id for event in lines]

    assert len(set(named)) == 2


def test_unknown_things_are_counted_once(home: Home) -> None:
    session = GeminiSession()
    for _ in range(3):
        session.message("surprise", "?")
        session.rows.append({"what": "is this"})

    look = home.read(home.write_lines(session))

    assert [problem.reason for problem in look.problems] == ["unknown message surprise", "unknown line"]


@pytest.mark.parametrize("document", [[], {}, {"messages": None}, {"history": []}, 7, "text", None, {"messages": {}}])
def test_what_is_no_session_is_a_problem(home: Home, document: object) -> None:
    look = home.read(home.write(json.dumps(document).encode(), "session-1.json"))

    assert (look.session, look.events, len(look.problems)) == (None, (), 1)


@pytest.mark.parametrize("field", ["id", "timestamp", "type", "content", "toolCalls"])
@pytest.mark.parametrize("value", [None, 7, [], {}, "x", [None], [{}], [{"text": 7}], {"functionCall": 1}])
def test_messages_of_any_shape_are_survived(home: Home, field: str, value: object) -> None:
    session = GeminiSession()
    session.gemini("The Conference.", session.call("call_1", "read_file", "x", file_path="pear.py"))
    session.messages[0][field] = value
    session.rows[1][field] = value
    session.user("Which pear?")

    for events in home.both(session):
        assert "Which pear?" in texts_of(events, "user_message")


def test_a_document_too_long_to_be_taken_apart_is_passed_over(tmp_path: Path) -> None:
    from kite_memory.sources.gemini_cli.source import Gemini

    home = Home(tmp_path)
    home.source = Gemini(home.root, own_state=home.own_state, document_limit=100)

    look = home.read(home.write_document(a_day()))

    assert (look.events, [problem.reason for problem in look.problems]) == ((), ["document too large"])


def test_a_folder_that_is_a_file_holds_nothing(home: Home) -> None:
    home.root.mkdir(parents=True)
    (home.root / "tmp").write_text("not a folder")

    assert list(home.source.transcripts()) == []


def test_a_document_comes_before_the_lines_it_went_on_as(home: Home) -> None:
    lines, document = home.write_lines(a_day()), home.write_document(a_day())
    other = home.write(a_day().lines, f"{SESSION}/x.jsonl")

    assert list(home.source.transcripts()) == [document, lines, other]
