"""Looking back: colours and browsing only where a person watches, and a long session whole."""

import json
import re
import sys
from collections.abc import Iterator

import pytest

from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine
from tests.fakes.anthropic_server import Json, anthropic_server, text_message
from tests.fakes.work import FIRST, SECOND, leave_work
from tests.sources.transcript import Transcript

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are elsewhere")


@pytest.fixture
def worked_in(machine: Machine) -> Iterator[Machine]:
    leave_work(machine.home / ".claude", machine.home / "orchard")
    assert in_this_process(machine, ["backfill"], cwd=machine.home).code == 0
    machine.environment = {"COLUMNS": "120", "LINES": "30"}
    yield machine


def test_on_a_terminal_it_can_be_browsed_in_and_left(worked_in: Machine) -> None:
    from tests.cli.terminal import at_a_terminal

    shown = at_a_terminal(worked_in, ["timeline"], typed=[("Go on with the sweeper", b"q")])

    assert shown.code == 0
    assert "Traceback" not in shown.screen


def test_plain_is_coloured_on_a_terminal_and_nowhere_else(worked_in: Machine) -> None:
    from tests.cli.terminal import at_a_terminal

    watched = at_a_terminal(worked_in, ["timeline", FIRST, "--plain"])
    unwatched = in_this_process(worked_in, ["timeline", FIRST, "--plain"], cwd=worked_in.home)

    assert watched.code == unwatched.code == 0
    assert watched.coloured
    assert "\x1b" not in unwatched.out
    assert "Let the sweeper take back claims" in watched.screen


def test_json_is_json_on_a_terminal_too(worked_in: Machine) -> None:
    from tests.cli.terminal import at_a_terminal

    shown = at_a_terminal(worked_in, ["timeline", "--json"])

    assert shown.code == 0
    assert not shown.coloured
    assert SECOND in shown.screen


def test_a_brief_is_polished_by_the_model_that_is_set_up(worked_in: Machine) -> None:
    def model(request: Json) -> Json:
        number = re.findall(r"(\d+)\. asked last: ", json.dumps(request["messages"]))[0]
        better = {"n": int(number), "text": 'You asked last: "Go on with the sweeper: mend its test"'}
        return text_message(json.dumps({"lines": [better, {"n": int(number) + 1, "text": "All is well."}]}))

    with anthropic_server(model) as server:
        key = {"KMEM_EXTRACTOR": "anthropic", "ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": server.url}
        worked_in.environment = {**worked_in.environment, **key}
        plain = in_this_process(worked_in, ["resume", "--cwd", "orchard"], cwd=worked_in.home)
        shown = in_this_process(worked_in, ["resume", "--cwd", "orchard", "--polish"], cwd=worked_in.home)

    assert (plain.code, shown.code) == (0, 0), plain.err + shown.err
    assert shown.out == plain.out.replace("asked last: ", "You asked last: ")
    assert "1 line stayed as it was" in shown.err
    assert len(server.requests) == 1


@pytest.mark.parametrize(("folder", "given"), [("orchard/trees", ".."), ("shed", "../orchard")])
def test_a_folder_named_by_steps_upwards_is_that_folder(worked_in: Machine, folder: str, given: str) -> None:
    (worked_in.home / folder).mkdir(parents=True)
    later = Transcript("0c0c0000-0000-4000-8000-000000000003", first=0x0C000001, cwd=str(worked_in.home / "mill"))
    later.user("Grind the wheat before noon")
    later.assistant("It is ground.")
    (worked_in.home / ".claude/projects/-orchard/later.jsonl").write_bytes(later.bytes)
    assert in_this_process(worked_in, ["backfill"], cwd=worked_in.home).code == 0
    plain = in_this_process(worked_in, ["resume", "--cwd", str(worked_in.home / "orchard")], cwd=worked_in.home)

    shown = in_this_process(worked_in, ["resume", "--cwd", given], cwd=worked_in.home / folder)

    assert plain.out.startswith("orchard ")
    assert shown.out == plain.out


def test_without_a_model_the_plain_brief_is_shown_and_why(worked_in: Machine) -> None:
    plain = in_this_process(worked_in, ["resume", "--cwd", "orchard"], cwd=worked_in.home)
    shown = in_this_process(worked_in, ["resume", "--cwd", "orchard", "--polish"], cwd=worked_in.home)

    assert shown.out == plain.out
    assert "note:" not in plain.err
    assert shown.err.startswith("note: no model is set up that could polish it")


@pytest.mark.parametrize("how", [[], ["--json"], ["--tokens", "0"], ["--tokens", "0", "--json"]])
def test_a_conversation_is_shown_by_its_citation(worked_in: Machine, how: list[str]) -> None:
    asked = in_this_process(worked_in, ["timeline", FIRST, "--json"], cwd=worked_in.home).json()["events"][0]["id"]

    shown = in_this_process(worked_in, ["show", f"claude-code:{FIRST}#{asked[:8]}", *how], cwd=worked_in.home)

    assert shown.code == 0, shown.err
    assert "Let the sweeper take back claims" in shown.out


def test_several_notes_are_shown_whole(machine: Machine) -> None:
    for name in ("plums", "pears"):
        words = f"About {name}. " + f"A tree of {name} is watered. " * 500
        assert in_this_process(machine, ["remember", words], cwd=machine.home).code == 0

    one, both = (
        in_this_process(machine, ["show", *names, "--tokens", "0"], cwd=machine.home)
        for names in (["About plums"], ["About plums", "About pears"])
    )

    assert one.out.count("is watered") >= 500
    assert both.out.count("is watered") >= 1_000


@pytest.mark.parametrize("daemon", [False, True])
def test_a_long_session_is_reported_whole(machine: Machine, daemon: bool) -> None:
    transcript = Transcript(FIRST, cwd=str(machine.home / "orchard"))
    for number in range(1_200):
        transcript.user(f"Water tree {number}: " + f"it is dry {number} " * 190)
        transcript.assistant(f"Watered tree {number}.")
    folder = machine.home / ".claude/projects/-orchard"
    folder.mkdir(parents=True)
    (folder / f"{FIRST}.jsonl").write_bytes(transcript.bytes)
    assert in_this_process(machine, ["backfill", "--no-distill"], cwd=machine.home).code == 0
    if daemon:
        assert machine.kmem("up", "--no-hooks").code == 0

    whole = in_this_process(machine, ["timeline", FIRST, "--json"], cwd=machine.home).json()

    said = [event["text"].partition(":")[0] for event in whole["events"]]
    assert said == [text for number in range(1_200) for text in (f"Water tree {number}", f"Watered tree {number}.")]
    edges = [(edge["from"], edge["to"]) for edge in whole["edges"] if edge["kind"] == "next"]
    assert edges == [(one["id"], other["id"]) for one, other in zip(whole["events"], whole["events"][1:], strict=False)]
    assert "next" not in whole


def test_a_trace_shows_every_kind_of_request_and_sends_none(worked_in: Machine) -> None:
    secret = "sk-ant-api03-" + "Qz7" * 31 + "AA"
    written = Transcript("77777777-0000-4000-8000-000000000007", first=700)
    written.user("We decided: claims are kept in PostgreSQL, because the sweeper needs row locks. " + secret)
    written.assistant("Understood: PostgreSQL for claims, since the sweeper takes back stale claims row by row.")
    written.user("Which database keeps the claims of the sweeper, and why did we decide so?")
    written.assistant("PostgreSQL, for its row locks.")
    file = worked_in.home / ".claude" / "projects" / "-orchard" / "77777777-0000-4000-8000-000000000007.jsonl"
    file.write_bytes(written.bytes)
    with anthropic_server(lambda request: text_message("{}")) as server:
        assert in_this_process(worked_in, ["backfill"], cwd=worked_in.home).code == 0
        key = {"KMEM_EXTRACTOR": "anthropic", "ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": server.url}
        worked_in.environment = {**worked_in.environment, **key}
        shown = in_this_process(worked_in, ["trace", "7777", "--requests"], cwd=worked_in.home)
        result = in_this_process(worked_in, ["trace", "7777", "--requests", "--json"], cwd=worked_in.home)

    assert (shown.code, result.code) == (0, 0), shown.err
    assert server.requests == []
    requests = json.loads(result.out)
    assert {"extract", "judge", "ask", "polish", "embed"} <= {each["task"] for each in requests}
    assert {each["to"] for each in requests} == {"anthropic claude-haiku-5-5", "voyage"}
    assert "=== extract" in shown.out and "PERSON: We decided" in shown.out
    assert secret not in shown.out + result.out


def test_a_trace_names_line_chunk_note_and_index(worked_in: Machine) -> None:
    shown = in_this_process(worked_in, ["trace", SECOND], cwd=worked_in.home)

    assert shown.code == 0, shown.err
    assert re.search(r"^file +/.*\.jsonl: .* read, all of it$", shown.out, re.MULTILINE)
    assert re.search(r"^part 1 +\d+ events, .*\.jsonl:1-\d+$", shown.out, re.MULTILINE)
