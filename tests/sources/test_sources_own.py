from collections.abc import Callable
from pathlib import Path

import pytest

from kite_memory.sources.common.words import OWN_EXTRACTOR_MARK
from tests.sources.transcript import SESSION, Home, Transcript

MARKED = f"<!-- {OWN_EXTRACTOR_MARK} -->\nRead these events and answer in JSON."


def in_our_folder(home: Home) -> Transcript:
    transcript = Transcript(cwd=str(home.own_state / "extractor"))
    transcript.user("Read these events and answer in JSON.")
    return transcript


def marked_prompt(home: Home) -> Transcript:
    transcript = Transcript()
    transcript.user(MARKED)
    return transcript


def marked_prompt_in_blocks(home: Home) -> Transcript:
    transcript = Transcript()
    transcript.user([{"type": "text", "text": MARKED}])
    return transcript


def marked_queue(home: Home) -> Transcript:
    transcript = Transcript()
    transcript.queue("enqueue", MARKED)
    transcript.user("Read these events")
    return transcript


def marked_system_line(home: Home) -> Transcript:
    transcript = Transcript()
    transcript.system("informational", content=MARKED)
    transcript.user("Read these events")
    return transcript


def marked_system_prompt(home: Home) -> Transcript:
    transcript = Transcript()
    transcript.attachment("prompt_snapshot", systemPrompt=["You extract.", MARKED])
    transcript.user("Read these events")
    return transcript


def marked_request(home: Home) -> Transcript:
    transcript = Transcript()
    transcript.note("api-request-shape", shape={"system": [{"type": "text", "text": MARKED}]})
    transcript.user("Read these events")
    return transcript


def scripted_with_the_mark_anywhere(home: Home) -> Transcript:
    transcript = Transcript(entrypoint="sdk-cli")
    transcript.attachment("environment", snapshot={"argv": ["--settings", OWN_EXTRACTOR_MARK]})
    transcript.user("Read these events")
    return transcript


Guard = Callable[[Home], Transcript]
GUARDS: list[Guard] = [
    in_our_folder,
    marked_prompt,
    marked_prompt_in_blocks,
    marked_queue,
    marked_system_line,
    marked_system_prompt,
    marked_request,
    scripted_with_the_mark_anywhere,
]


@pytest.mark.parametrize("guard", GUARDS)
def test_a_session_of_our_extractor_yields_nothing(tmp_path: Path, guard: Guard) -> None:
    home = Home(tmp_path)
    problems = guard(home)
    problems.assistant("{}")
    problems.user("and now something else")
    problems.note("surprise")

    look = home.look(problems)

    assert (look.session, look.events, look.problems) == (None, (), ())
    assert look.cursor.position == look.cursor.size


@pytest.mark.parametrize("guard", GUARDS)
def test_it_yields_nothing_in_later_looks_either(tmp_path: Path, guard: Guard) -> None:
    home = Home(tmp_path)
    problems = guard(home)
    path = home.write(problems)
    first = home.read(path)
    problems.assistant("{}")
    problems.user("and now something else")
    home.write(problems)

    second = home.read(path, first.cursor)

    assert (second.session, second.events, second.cursor.position) == (None, (), path.stat().st_size)


def test_a_state_folder_behind_a_link_is_ours_by_both_names(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "real").mkdir()
    home.own_state.symlink_to(tmp_path / "real")
    by_real_name = Transcript(cwd=str(tmp_path.resolve() / "real" / "extractor"))
    by_real_name.user("Read these events")
    later = Home(tmp_path / "later")
    later.source = type(later.source)(later.root, own_state=home.own_state)

    assert later.look(by_real_name).session is None


def test_talking_of_the_mark_later_is_no_sign(tmp_path: Path) -> None:
    transcript = Transcript()
    transcript.user("How do we know our own sessions?")
    transcript.assistant("By a mark.")
    transcript.user(f"By {OWN_EXTRACTOR_MARK}?")

    look = Home(tmp_path).look(transcript)

    assert [event.role for event in look.events] == ["user", "assistant", "user"]


def test_a_file_that_mentions_the_mark_is_no_sign_in_a_persons_session(tmp_path: Path) -> None:
    transcript = Transcript(entrypoint="cli")
    transcript.attachment("nested_memory", content=f"The mark is {OWN_EXTRACTOR_MARK}")
    transcript.user("How do we know our own sessions?")

    assert len(Home(tmp_path).events(transcript)) == 1


def test_a_sub_agent_that_is_asked_about_the_mark_is_read(tmp_path: Path) -> None:
    transcript = Transcript(isSidechain=True)
    transcript.user(f"Where is {OWN_EXTRACTOR_MARK} defined?")

    assert len(Home(tmp_path).events(transcript, "agent-a1b2c3d4.jsonl")) == 1


def test_a_folder_beside_ours_and_a_later_visit_to_ours_are_no_signs(tmp_path: Path) -> None:
    home = Home(tmp_path)
    beside = Transcript(cwd=f"{home.own_state}-of-mind")
    beside.user("prune the pear")
    visiting = Transcript()
    visiting.user("look into the state folder")
    visiting.user("and out again", cwd=str(home.own_state))

    assert len(home.events(beside, f"{SESSION[:-1]}2.jsonl")) == 1
    assert len(home.events(visiting)) == 2
