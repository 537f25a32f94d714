"""Whether a note was taken up, distinguished from what the agent came out with that no one had said before."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Note
from kite_memory.recall.uptake import Uptake, beyond_chance, signs_of, uptake
from tests.recall.notes import note

LINT = note(
    "lint",
    "Lint runs from src",
    "Start `make lint-all --fix` in src: the settings lie in `src/conf/lint_rules.toml`, and `RuleLoader` reads no other file.",
    entities=("RuleLoader", "nightly build", "Ada Lark"),
)
QUEUE = note(
    "queue",
    "PostgreSQL over SQLite for the job queue",
    "The job queue uses PostgreSQL, since `claim_jobs` wants row-level locks.\n\n"
    "**Rejected:** RedisStreams: it loses jobs when `flush_window` is over.",
    entities=("PostgreSQL", "SQLite", "RedisStreams"),
)
PROMPT = event(1, "the linter finds nothing, why?")


def said(number: int, text: str) -> Event:
    return event(number, text, EventType.ASSISTANT_MESSAGE)


def ran(number: int, command: str) -> Event:
    return event(number, "", EventType.COMMAND, command=command)


def edited(number: int, path: str, text: str = "") -> Event:
    return replace(event(number, text, EventType.TOOL_CALL), path=path, tool="Edit")


def printed(number: int, text: str) -> Event:
    return event(number, text, EventType.TOOL_RESULT)


def read(*after: Event, of: Note = LINT, before: tuple[Event, ...] = (PROMPT,)) -> Uptake:
    return uptake(of, before=before, after=after)


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (edited(2, "/home/ada/orchard/src/conf/lint_rules.toml"), "“src/conf/lint_rules.toml” in a call of Edit"),
        (ran(2, "cd src && make lint-all --fix"), "“make lint-all --fix” in a command"),
        (said(2, "The RuleLoader looks elsewhere."), "“RuleLoader” in what it said"),
        (edited(2, "/home/ada/orchard/app.py", "new_string: ruleloader(path)"), "“RuleLoader” in a call of Edit"),
        (
            said(2, "As the nightly\nbuild does, and as Ada  Lark wrote."),
            "“nightly build” in what it said, “Ada Lark” in what it said",
        ),
    ],
)
def test_a_note_is_used_when_the_agent_is_the_first_to_come_out_with_what_it_knows(act: Event, why: str) -> None:
    found = read(act)

    assert found.outcome == "used"
    assert why in found.why


def test_work_that_has_nothing_of_the_note_ignores_it() -> None:
    found = read(said(2, "Let me look at the settings of the linter in src."), ran(3, "ls -la"), printed(4, "README.md"))

    assert found.outcome == "ignored"


@pytest.mark.parametrize(
    "text",
    ["the settings lie in src, start all, read no other", "superRuleLoaders", "my_src/conf/lint_rules.tomls", "RuleLoader2_x"],
)
def test_common_words_and_parts_of_longer_ones_prove_nothing(text: str) -> None:
    assert read(said(2, text)).outcome == "ignored"


def test_one_name_alone_may_be_chance() -> None:
    found = read(said(2, "I asked Ada Lark."))

    assert found == Uptake(outcome="unknown", why="too little of it to tell from chance: “Ada Lark” in what it said")


@pytest.mark.parametrize(
    "teller", [event(1, "what does RuleLoader do?"), said(1, "RuleLoader it is."), printed(1, "class RuleLoader:")]
)
def test_what_had_been_said_before_the_showing_proves_nothing(teller: Event) -> None:
    found = read(said(2, "RuleLoader reads one file."), before=(teller,))

    assert found.outcome == "ignored"


@pytest.mark.parametrize("teller", [printed(2, "conf.py: class RuleLoader"), event(2, "look at RuleLoader")])
def test_what_somebody_else_said_first_proves_nothing_either_way(teller: Event) -> None:
    found = read(teller, said(3, "RuleLoader reads one file."))

    assert found.outcome == "unknown"
    assert found.why.startswith("the agent had just been given it: “RuleLoader”")


def test_what_a_tool_repeats_after_the_agent_takes_nothing_back() -> None:
    assert read(ran(2, "grep -r RuleLoader"), printed(3, "class RuleLoader"), said(4, "RuleLoader is here.")).outcome == "used"


def test_where_everything_had_been_said_no_one_can_tell() -> None:
    everything = event(0, f"{LINT.title} {LINT.body} {' '.join(LINT.entities)}")

    found = read(said(2, "I start make lint-all --fix."), before=(everything,))

    assert found == Uptake(outcome="unknown", why="all that is distinctive in it had been said before")


@pytest.mark.parametrize("after", [(), (printed(2, "ok"), event(3, "RuleLoader, please"))])
def test_no_one_can_tell_before_the_agent_has_done_anything(after: tuple[Event, ...]) -> None:
    assert read(*after).outcome == "unknown"


@pytest.mark.parametrize("body", ["", "Be brief.", "It is as it is, and that for a good reason.", "日本語のメモです。"])
def test_of_a_note_without_anything_distinctive_no_one_can_tell(body: str) -> None:
    plain = note("plain", "Be brief", body, entities=("tests",))

    assert read(said(2, "Be brief: it is as it is. 日本語のメモです。"), of=plain).outcome == "unknown"


def test_an_alternative_that_was_turned_down_is_no_sign_of_use() -> None:
    found = read(said(2, "RedisStreams with a flush_window would do."), of=QUEUE)

    assert found.outcome == "unknown"
    assert found.why.startswith("what it rejects came up, for or against: “RedisStreams”")


def test_what_was_chosen_is() -> None:
    assert read(said(2, "No RedisStreams here: claim_jobs locks rows."), of=QUEUE).outcome == "used"


def test_everyday_commands_and_files_are_not_rare() -> None:
    daily = note("daily", "Daily", "Run `git status` and `git push`, then read package.json, README.md and config.toml on GitHub.")

    assert [sign.said for sign in signs_of(daily).own if sign.rare] == []


@pytest.mark.parametrize(
    ("text", "rare"),
    [
        ("go on with git hooks and make sense", []),
        ("git read-tree HEAD mends it", ["git read-tree"]),
        ("run `git worktree list` first", ["git worktree list"]),
        ("run `git push origin` first", []),
        ("run `git worktree` first", ["git worktree"]),
        ("`npm run build:docs --watch`", []),
        ("`npm run build:docs -- --watch`", ["npm run build:docs -- --watch"]),
        ("see cmd/serve/main_loop.go", ["cmd/serve/main_loop.go", "main_loop.go"]),
        ("`FirstOne/second_one` differ", ["FirstOne", "second_one"]),
        ("error TS2345 and GH-0134", ["TS2345", "GH-0134"]),
        ("os.path and e.g. i.e. and/or 24h v2", []),
    ],
)
def test_what_counts_as_rare(text: str, rare: list[str]) -> None:
    found = [sign.said for sign in signs_of(note("one", "One", text)).own if sign.rare]

    assert set(rare) <= set(found) if rare else found == []


def test_names_that_share_a_word_count_once() -> None:
    pair = signs_of(note("one", "One", "A shadow branch. The shadow branches. A branch holds it.")).own

    assert [sign.form for sign in pair] == ["shadow branch", "shadow branches", "branch holds"]
    assert not beyond_chance(pair)


WORDS = st.sampled_from(
    ["RuleLoader", "src/conf/lint_rules.toml", "make", "lint-all", "--fix", "nightly build", "Ada Lark", "`", "\n", "x"]
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=60)
EVENTS = st.lists(st.tuples(st.sampled_from([said, printed, ran, event]), TEXTS), max_size=8).map(
    lambda drawn: [make(number, text) for number, (make, text) in enumerate(drawn)]
)


@given(EVENTS, EVENTS, TEXTS)
def test_nothing_that_was_said_before_is_ever_evidence(before: list[Event], after: list[Event], body: str) -> None:
    shown = note("any", "Any", body, entities=("RuleLoader", "Ada Lark"))

    assert uptake(shown, before=[*before, *after], after=after).outcome != "used"


@given(EVENTS, TEXTS)
def test_evidence_is_in_what_the_agent_did(after: list[Event], body: str) -> None:
    others = [each for each in after if each.role != "assistant"]

    assert uptake(note("any", "Any", body, entities=("RuleLoader",)), before=[], after=others).outcome == "unknown"


@given(st.text(max_size=400), st.lists(st.text(max_size=30), max_size=4))
def test_signs_are_few_and_none_is_empty(body: str, entities: list[str]) -> None:
    signs = signs_of(note("any", "Any", body, entities=tuple(entities)))

    assert len(signs.own) <= 64
    assert all(sign.form and sign.within(f" {sign.form} ") for sign in (*signs.own, *signs.rejected))
