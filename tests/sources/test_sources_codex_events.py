"""What the lines of a Codex rollout tell."""

import json
from pathlib import Path

import pytest

from tests.sources.rollout import CWD, Home, Rollout, a_day
from tests.sources.transcript import kinds, only, texts_of


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_day_is_reported_in_order(home: Home) -> None:
    look = home.look(a_day())

    assert kinds(look.events) == [
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
        "user_message",
        "resume_point",
    ]
    assert [problem.reason for problem in look.problems] == ["unknown type surprise"]
    assert look.session is not None
    assert (look.session.cwd, look.session.branch, look.session.title) == (CWD, "main", "Pears on quinces")


@pytest.mark.parametrize("paginated", [False, True])
def test_a_message_in_two_renderings_is_reported_once(home: Home, paginated: bool) -> None:
    rollout = Rollout(paginated=paginated)
    rollout.ask("Which pear?", "The Conference.")
    rollout.ask("Which pear?", "The Conference.")

    events = home.events(rollout)

    assert texts_of(events, "user_message") == ["Which pear?", "Which pear?"]
    assert texts_of(events, "assistant_message") == ["The Conference.", "The Conference."]
    assert len({event.id for event in events}) == 4


def test_the_same_words_twice_in_a_turn_are_two_messages(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.prompt("go on")
    rollout.answer("Working.")
    rollout.answer("Working.")
    rollout.prompt("go on")

    events = home.events(rollout)

    assert texts_of(events, "user_message") == ["go on", "go on"]
    assert texts_of(events, "assistant_message") == ["Working.", "Working."]


def test_a_message_that_stands_only_as_an_item_is_reported(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.user_item("Which pear?")
    rollout.item("message", role="assistant", content=[{"type": "output_text", "text": "The Conference."}])

    assert texts_of(home.events(rollout), "user_message", "assistant_message") == ["Which pear?", "The Conference."]


def test_without_turns_the_same_prompt_later_is_another_one(home: Home) -> None:
    rollout = Rollout()
    for _ in range(2):
        rollout.prompt("yes")
        rollout.answer("Done.")

    events = home.events(rollout)

    assert texts_of(events, "user_message") == ["yes", "yes"]
    assert len({event.id for event in events}) == 4


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n<cwd>/x</cwd></environment_context>",
        "<user_instructions>Prefer tabs.</user_instructions>",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nPrefer tabs.\n</INSTRUCTIONS>",
        '<subagent_notification>\n{"agent_path":"x"}\n</subagent_notification>',
        "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>",
        "<skill>\n<name>graft</name>\n</skill>",
        "<vault-context>\n[Relevant vault context: quoted notes]\n--- [a.md] ---\n</vault-context>",
    ],
)
def test_what_the_client_writes_in_a_persons_place_is_no_ones_prompt(home: Home, text: str) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.user_item(text)
    rollout.event("user_message", message=text)

    assert home.events(rollout) == ()


def test_the_client_says_itself_which_parts_its_harness_wrote(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.user_item("Something new that we never saw.", "Which pear?", origins=["harness", "user"])

    assert texts_of(home.events(rollout), "user_message") == ["Which pear?"]


def test_instructions_of_developers_are_not_reported(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.item("message", role="developer", content=[{"type": "input_text", "text": "Always answer in verse."}])

    assert home.events(rollout) == ()


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ("## Open tabs:\n- pear.py\n\n## My request for Codex:\nPrune the pear", ["Prune the pear"]),
        ("## Active selection:\n\n## My request for Codex:\nUse the mirror\n\n## My request for Codex:\nPrune it", ["Prune it"]),
        ("## Active selection:\nUse the mirror\n\n## My request for Codex:\n", []),
        ("## Active selection:\nUse the mirror", []),
    ],
)
def test_an_editors_context_is_cut_off_the_request(home: Home, context: str, words: list[str]) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.prompt(f"# Context from my IDE setup:\n\n{context}")

    assert texts_of(home.events(rollout), "user_message") == words


def test_an_images_tags_are_not_words(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.user_item('<image name="[Image #1]">', "What is this?", "</image>")
    rollout.event("user_message", message="What is this?", images=["data:image/png;base64,AAAA"])

    assert texts_of(home.events(rollout), "user_message") == ["What is this?"]


@pytest.mark.parametrize(
    ("output", "status", "text"),
    [
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nfine\n", "ok", "fine"),
        ("Chunk ID: a1\nProcess exited with code 2\nOutput:\nbad", "failed", "bad"),
        ("Command: /bin/zsh -lc pwd\nChunk ID: a1\nProcess exited with code 0\nOutput:\n/x", "ok", "/x"),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.", "ok", "Success."),
        ("Exit code: 137\nWall time: 9 seconds\nOutput:\n", "failed", ""),
        ("Chunk ID: a1\nProcess running with session ID 42\nOutput:\nso far", "", "so far"),
        ('{"output":"old\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}', "ok", "old"),
        ('{"output":"old","metadata":{"exit_code":1}}', "failed", "old"),
        ({"content": "plain", "success": False}, "failed", "plain"),
        ([{"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": "data:…"}], "ok", "one\n[image]"),
        ({"type": "input_text", "text": "a.txt\n"}, "ok", "a.txt"),
        ("apply_patch verification failed: no such lines", "failed", "apply_patch verification failed: no such lines"),
        ("exec command rejected by user", "denied", "exec command rejected by user"),
        ("aborted by user after 2.0s", "interrupted", "aborted by user after 2.0s"),
        ("Plan updated", "ok", "Plan updated"),
        (None, "ok", ""),
        (17, "ok", ""),
    ],
)
def test_an_output_says_how_it_went(home: Home, output: object, status: str, text: str) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.call("call_1", "exec_command", cmd="make")
    rollout.output("call_1", output)

    events = home.events(rollout)

    result = only(events, "tool_result")
    assert (result.status, result.text) == (status, text)
    assert result.parent == only(events, "tool_call").id
    assert result.call == "call_1"


@pytest.mark.parametrize(
    ("tool", "given", "command"),
    [
        ("exec_command", {"cmd": "make test", "workdir": "/x"}, "make test"),
        ("shell", {"command": ["bash", "-lc", "make test"]}, "make test"),
        ("shell", {"command": ["git", "status"]}, "git status"),
        ("shell_command", {"command": "make test"}, "make test"),
    ],
)
def test_a_shell_call_is_a_command(home: Home, tool: str, given: dict[str, object], command: str) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.call("call_1", tool, **given)

    event = only(home.events(rollout), "command")

    assert (event.command, event.tool, event.role) == (command, tool, "assistant")


def test_a_command_of_the_first_clients_is_known_too(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.item("local_shell_call", call_id="call_1", status="completed", action={"type": "exec", "command": ["ls", "-l"]})
    rollout.output("call_1", "a\nb")

    events = home.events(rollout)

    assert only(events, "command").command == "ls -l"
    assert only(events, "tool_result").parent == only(events, "tool_call").id


def test_a_long_command_keeps_its_name_until_it_ends(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.call("call_1", "exec_command", cmd="pytest -q")
    rollout.output("call_1", "Process running with session ID 42\nOutput:\n2 passed in 0.10s\n")
    rollout.call("call_2", "write_stdin", session_id=42, chars="")
    rollout.output("call_2", "Process exited with code 1\nOutput:\n1 failed, 2 passed in 0.20s")

    events = home.events(rollout)

    tests = only(events, "test_result")
    assert (tests.command, tests.status, tests.text) == ("pytest -q", "failed", "1 failed, 2 passed in 0.20s")
    assert len([event for event in events if event.type == "command"]) == 1


PATCH = """*** Begin Patch
*** Add File: new/pear.py
+one
+two
*** Update File: /elsewhere/plum.py
*** Move to: plums.py
@@
-a
+b
+c
*** Delete File: ../old.py
*** End Patch
"""


@pytest.mark.parametrize("by_shell", [False, True])
def test_a_patch_is_what_it_does_to_files(home: Home, by_shell: bool) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    if by_shell:
        rollout.run("call_1", f"apply_patch <<'EOF'\n{PATCH}EOF\n", "Success.")
    else:
        rollout.custom_call("call_1", "apply_patch", PATCH)
        rollout.output("call_1", '{"output":"Success.","metadata":{"exit_code":0}}', custom=True)

    events = home.events(rollout)

    assert [(event.path, event.text) for event in events if event.type == "file_action"] == [
        (f"{CWD}/new/pear.py", "created"),
        (f"{CWD}/plums.py", "edited, 2 lines added, 1 removed"),
        ("/home/ada/old.py", "deleted"),
    ]


def test_a_patch_that_failed_did_nothing(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.custom_call("call_1", "apply_patch", PATCH)
    rollout.output("call_1", "apply_patch verification failed: Failed to find expected lines", custom=True)

    events = home.events(rollout)

    assert only(events, "error").text.startswith("apply_patch verification failed")
    assert texts_of(events, "file_action") == []


def test_what_a_script_executes_is_reported_though_it_stands_in_no_item(home: Home) -> None:
    rollout = Rollout(paginated=True)
    rollout.begin_turn()
    rollout.custom_call("call_1", "exec", "await tools.exec_command({cmd: 'make'})")
    run = {
        "type": "CommandExecution",
        "id": "exec-1",
        "command": ["bash", "-lc", "make"],
        "exit_code": 2,
        "aggregated_output": "no",
    }
    rollout.event("item_completed", turn_id=rollout.turn, item=run)
    change = {"/x/pear.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n"}}
    rollout.event(
        "item_completed", turn_id=rollout.turn, item={"type": "FileChange", "id": "p-1", "changes": change, "status": "completed"}
    )
    rollout.output("call_1", "Script completed\nWall time 0.1 seconds\nOutput:\ndone", custom=True)

    events = home.events(rollout)

    assert [(event.tool, event.status, event.text) for event in events if event.type == "tool_result"] == [
        ("exec_command", "failed", "no"),
        ("apply_patch", "ok", ""),
        ("exec", "ok", "done"),
    ]
    assert only(events, "command").command == "make"
    assert (only(events, "file_action").path, only(events, "file_action").text) == (
        "/x/pear.py",
        "edited, 1 lines added, 1 removed",
    )


@pytest.mark.parametrize("before_its_output", [True, False])
def test_what_an_item_shows_is_not_reported_again_by_its_execution(home: Home, before_its_output: bool) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.run("call_1", "make", "fine")
    rollout.event("exec_command_end", call_id="call_1", command=["make"], exit_code=0, aggregated_output="fine")
    if before_its_output:
        rollout.rows[-2:] = [rollout.rows[-1], rollout.rows[-2]]

    assert [event.type.value for event in home.events(rollout)] == ["tool_call", "command", "tool_result"]


def test_a_persons_own_command_is_theirs(home: Home) -> None:
    result_of_it = "<result>\nExit code: 1\nOutput:\nfatal: no\n</result>"
    said = f"<user_shell_command>\n<command>\ngit pull\n</command>\n{result_of_it}\n</user_shell_command>"
    rollout = Rollout()
    rollout.begin_turn()
    rollout.user_item(said)

    events = home.events(rollout)

    command, result = only(events, "command"), only(events, "tool_result")
    assert (command.role, command.command) == ("user", "git pull")
    assert (result.status, result.text, result.parent) == ("failed", "fatal: no", command.id)


def test_what_a_person_answers_is_a_decision(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.call("call_1", "request_user_input", questions=[{"id": "q", "question": "Which rootstock?", "options": []}])
    rollout.output("call_1", '{"answers":{"q":{"answers":["quince"]}}}')

    decision = only(home.events(rollout), "decision")

    assert decision.role == "user"
    assert decision.text == 'Which rootstock?\nAnswer: {"answers":{"q":{"answers":["quince"]}}}'


def test_an_interrupted_turn_is_a_place_to_resume(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.prompt("graft")
    rollout.event("turn_aborted", turn_id=rollout.turn, reason="interrupted")

    assert only(home.events(rollout), "resume_point").status == "interrupted"


def test_a_compactions_summary_is_a_place_to_resume_and_its_history_is_not_reported_again(home: Home) -> None:
    rollout = Rollout()
    rollout.ask("graft", "Done.")
    old = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "graft"}]}]
    rollout.row("compacted", {"message": "The pear was grafted.", "replacement_history": old})
    rollout.event("context_compacted")

    events = home.events(rollout)

    assert only(events, "resume_point").text == "The pear was grafted."
    assert texts_of(events, "user_message") == ["graft"]


def test_a_call_is_asked_by_the_message_before_it(home: Home) -> None:
    events = home.events(a_day())

    call = next(event for event in events if event.type == "tool_call")
    message = next(event for event in events if event.type == "assistant_message")
    assert call.parent == message.id
    assert message.parent == events[0].id


def test_an_unknown_type_is_counted_once(home: Home) -> None:
    rollout = Rollout()
    for _ in range(3):
        rollout.row("surprise", {})
        rollout.event("surprise")
        rollout.item("surprise")
        rollout.event("item_completed", item={"type": "Surprise"})

    assert [problem.reason for problem in home.look(rollout).problems] == [
        "unknown type surprise",
        "unknown event surprise",
        "unknown item surprise",
        "unknown completed item Surprise",
    ]


def test_the_oldest_rollouts_have_items_for_lines(home: Home) -> None:
    lines = [
        {
            "id": "5e551011-0000-4000-8000-000000000001",
            "timestamp": "2025-05-01T09:00:00Z",
            "instructions": "",
            "git": {"branch": "main"},
        },
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which pear?"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": '{"output":"a","metadata":{"exit_code":0}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "The Conference."}]},
    ]

    look = home.look(b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    assert look.problems == ()
    assert look.session is not None
    assert (look.session.id, look.session.branch) == ("5e551011-0000-4000-8000-000000000001", "main")
    assert texts_of(look.events, "user_message", "assistant_message", "tool_result") == ["Which pear?", "a", "The Conference."]


def test_glued_and_cut_lines_cost_what_they_damaged(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    for n in range(4):
        rollout.answer(f"Answer {n}.")
    lines = rollout.bytes.splitlines()
    glued = b"\n".join([*lines[:4], lines[4] + lines[5], lines[6][:40] + lines[7], *lines[8:], b""])

    look = home.look(glued)

    assert texts_of(look.events, "assistant_message") == ["Answer 0.", "Answer 1.", "Answer 2.", "Answer 3."]
    assert sorted(problem.reason for problem in look.problems) == ["damaged line", "glued objects"]


def test_a_rollout_without_a_header_is_named_after_its_file(home: Home) -> None:
    rollout = Rollout()
    rollout.ask("Which pear?", "The Conference.")
    headless = b"".join(line + b"\n" for line in rollout.bytes.splitlines()[1:])

    look = home.look(headless)

    assert look.session is not None
    assert look.session.id == rollout.thread
    assert len(look.events) == 2


@pytest.mark.parametrize("payload", [None, [], "x", {}, {"type": None}, {"type": "message", "role": "user", "content": 7}])
@pytest.mark.parametrize("kind", ["session_meta", "turn_context", "response_item", "event_msg", "compacted", None, 3])
def test_lines_of_any_shape_are_survived(home: Home, kind: object, payload: object) -> None:
    rollout = Rollout()
    rollout.rows += [{"timestamp": "not a time", "type": kind, "payload": payload}]
    rollout.ask("Which pear?", "The Conference.")

    assert len(home.events(rollout)) == 2


@pytest.mark.parametrize(
    ("command", "output", "branch"),
    [
        ("git switch -c ada/pears", "Switched to a new branch 'ada/pears'", "ada/pears"),
        ("git checkout -q -b ada/pears", "", "ada/pears"),
        ("git commit -m 'Graft the pear'", "[ada/pears 1a2b3c4] Graft the pear\n 1 file changed", "ada/pears"),
        ("git status", "On branch ada/pears\nnothing to commit, working tree clean", "ada/pears"),
        ("cd ../nursery && git switch plums", "Switched to branch 'plums'", "main"),
        ("git -C ../nursery commit -m x", "[plums 1a2b3c4] x", "main"),
        ("cat notes.txt", "Switched to branch 'plums'", "main"),
    ],
)
def test_the_branch_follows_what_git_said_of_the_sessions_folder(home: Home, command: str, output: str, branch: str) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.prompt("graft the pear")
    rollout.run("call_1", command, output)

    path = home.write(rollout)
    parts = home.read_on(path, budget=1)

    assert parts[-1].session is not None
    assert parts[-1].session.branch == branch


def test_what_git_said_in_another_folder_says_nothing_of_the_branch(home: Home) -> None:
    rollout = Rollout()
    rollout.begin_turn()
    rollout.call("call_1", "exec_command", cmd="git switch plums", workdir="/home/ada/nursery")
    rollout.output("call_1", "Process exited with code 0\nOutput:\nSwitched to branch 'plums'")
    rollout.prompt("graft the pear")

    session = home.look(rollout).session

    assert session is not None
    assert session.branch == "main"


def test_the_repository_names_the_project_where_its_folder_is_gone(home: Home) -> None:
    rollout = Rollout(cwd="/gone/worktrees/ab12", git={"branch": "main", "repository_url": "git@github.com:ada/orchard.git"})
    rollout.ask("graft the pear", "Grafted.")

    looks = home.read_on(home.write(rollout), budget=1)

    assert [look.session.project for look in looks if look.session] == ["orchard"] * len([look for look in looks if look.session])
    assert looks[-1].session is not None
