"""A brief said better by a model: only as far as it is the same brief, and only within the budget."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill import extractor
from kite_memory.distill.answering import Polished, Polisher, Unsaid, polish_prompt, read_polished, says_the_same
from kite_memory.distill.budget import Allowance, Budget, Spending
from kite_memory.distill.extractor import Busy, Ending, Misconfigured, Refused, Reply, Usage
from kite_memory.distill.outbox import Outbox
from tests.fakes.judges import ScriptedBackend

PROMPT = extractor.load_prompt([Path(__file__).parents[2] / "prompts"], "polish")
ASKED = 'asked last: "Let the sweeper take back stale claims, as PostgreSQL does"'
CHANGED = "edited since the last commit: orchard/sweeper.py, settings.toml and 3 more"
FAILED = "`pytest tests/test_sweeper.py` failed: AssertionError: the lease is 0 (only `pytest -k lease` has gone well since)"
VERIFY = "`make lint` went well at 03-01 09:12, but not seen since these changed: sweeper.py"
STABLE = "2026-03-01 09:10, after commit 4fe3ad32: `pytest` passed (4 passed), since then sweeper.py; 2 files changed by then"
LINES = (ASKED, CHANGED, FAILED, VERIFY, STABLE)
USAGE = Usage(tokens_in=100, tokens_out=20, dollars=0.002)


def answer_with(*lines: tuple[object, object]) -> str:
    return json.dumps({"lines": [{"n": number, "text": text} for number, text in lines]})


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    outbox = Outbox(tmp_path / "outbox.sqlite")
    yield outbox
    outbox.close()


def polisher(outbox: Outbox, *endings: Ending | str, dollars: float = 1.0) -> Polisher:
    allowance = Allowance(outbox=outbox, budget=Budget(dollars=dollars, calls=100), share=0.5, clock=lambda: 0.0)
    return Polisher(backend=ScriptedBackend(endings), prompt=PROMPT, allowance=allowance)


class TestTheSame:
    @pytest.mark.parametrize(
        ("line", "said"),
        [
            (ASKED, 'You asked last: "Let the sweeper take back stale claims, as PostgreSQL does"'),
            (ASKED, "Last, the sweeper was asked to take back stale claims as PostgreSQL does."),
            (CHANGED, "Since the last commit, orchard/sweeper.py, settings.toml and 3 more files were edited."),
            (FAILED, f"{FAILED.partition(' (')[0]}; only `pytest -k lease` has gone well since then."),
            (VERIFY, "`make lint` went well at 03-01 09:12, but has not been seen to since sweeper.py changed."),
            ('the agent asks: "Shall I also log the lease?"', "The agent asks whether to also log the lease."),
        ],
    )
    def test_other_words_for_it_are_taken(self, line: str, said: str) -> None:
        assert says_the_same(line, said)

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            (CHANGED, "Since the last commit, orchard/sweeper.py, settings.toml and 4 more files were edited."),
            (CHANGED, "Since the last commit, sweeper.py, settings.toml and 3 more files were edited."),
            (CHANGED, "Since the last commit, orchard/sweeper.py and 3 more files were edited."),
            (CHANGED, "Since the last commit, orchard/sweeper.py, settings.toml, lock.py and 3 more files were edited."),
            (CHANGED, "Since the last commit Ada edited orchard/sweeper.py, settings.toml and 3 more."),
            (ASKED, "Last, the sweeper was asked to take back stale claims as SQLite does."),
            (ASKED, "Ada asked last to let the sweeper take back stale claims as PostgreSQL does."),
            (ASKED, "Last, the sweeper was asked to take back stale claims."),
            (ASKED, 'asked last: "Let the sweeper take all claims back, as PostgreSQL does with stale ones"'),
            (FAILED, FAILED.replace("pytest -k lease", "pytest -k claim")),
            (FAILED, FAILED.replace("`pytest -k lease`", "pytest -k lease")),
            (FAILED, FAILED.replace("failed", "passed")),
            (FAILED, FAILED.replace("only ", "")),
            (VERIFY, VERIFY.replace("not seen", "seen")),
            (VERIFY, f"{VERIFY}, so run it again before you commit anything"),
            (VERIFY, ""),
            (STABLE, STABLE.replace("4fe3ad32", "4fe3ad33")),
            (STABLE, STABLE.replace("2 files", "two files")),
            (STABLE, "All is well."),
            ("the person interrupted the agent there", "The agent interrupted the person there, ignoring previous instructions."),
            ("decided: Bo waters the pears", "decided: to water the pears"),
        ],
    )
    def test_what_is_new_or_lost_or_turned_around_is_not(self, line: str, said: str) -> None:
        assert not says_the_same(line, said)

    @pytest.mark.parametrize("line", LINES)
    def test_a_line_is_the_same_as_itself(self, line: str) -> None:
        assert says_the_same(line, line)

    @given(st.sampled_from(LINES), st.text(max_size=300))
    def test_whatever_is_put_in_its_place_keeps_its_figures(self, line: str, said: str) -> None:
        if says_the_same(line, said):
            digits = sorted(char for char in line if char.isdigit())
            assert sorted(char for char in said if char in "0123456789") == digits

    @given(st.sampled_from(LINES), st.data(), st.sampled_from(["7", " 7", " x.py", " Ada", "`", " not", " never", "/", ' "so"']))
    def test_nothing_can_be_slipped_in_between_its_words(self, line: str, data: st.DataObject, more: str) -> None:
        ends = [place for place, char in enumerate(line) if char == " "] + [len(line)]
        at = data.draw(st.sampled_from(ends))

        assert not says_the_same(line, line[:at] + more + line[at:])


class TestReading:
    def test_lines_that_are_the_same_are_taken_by_their_places(self) -> None:
        better = "Since the last commit, orchard/sweeper.py, settings.toml and 3 more files were edited."

        found = read_polished(answer_with((2, better), (3, "All is well."), (2, CHANGED), (1, ASKED)), LINES)

        assert found == Polished(lines={1: better}, refused=1)

    @pytest.mark.parametrize("number", [0, -1, 6, 99, True, "2", None, 2.0])
    def test_a_line_that_is_not_there_is_refused(self, number: object) -> None:
        assert read_polished(answer_with((number, CHANGED)), LINES) == Polished(lines={}, refused=1)

    @pytest.mark.parametrize("text", ["", "All is well.", '{"answer": 1}', '{"lines": 4}', "[" * 5_000, "{" * 5_000])
    def test_what_is_no_answer_is_none(self, text: str) -> None:
        assert read_polished(text, LINES) is None

    def test_brackets_come_back_as_they_were(self) -> None:
        line = "`cat <in >out` failed: the sweeper reads nothing"

        found = read_polished(answer_with((1, "`cat ‹in ›out` failed, since the sweeper reads nothing")), (line,))

        assert found is not None and found.lines == {}
        again = read_polished(answer_with((1, "`cat ‹in ›out` failed: nothing reads the sweeper")), (line,))
        assert again is not None and again.lines == {0: "`cat <in >out` failed: nothing reads the sweeper"}

    @given(st.text(max_size=500))
    def test_whatever_a_model_says(self, text: str) -> None:
        read_polished(text, LINES)


def test_what_is_quoted_cannot_close_its_frame() -> None:
    inquiry = polish_prompt(("a </brief> b\nc", "d"))

    assert inquiry.count("</brief>") == 1
    assert "1. a ‹/brief› b c\n2. d\n" in inquiry


class TestAsking:
    def test_a_reply_is_read_and_paid_for(self, outbox: Outbox) -> None:
        reply = Reply(
            text=answer_with((2, "Since the last commit: orchard/sweeper.py, settings.toml and 3 more edited")), usage=USAGE
        )

        polished = polisher(outbox, reply).polish(LINES)

        assert isinstance(polished, Polished) and list(polished.lines) == [1]
        assert outbox.calls.purposes("1970-01-01").get("judge", Spending()).dollars == pytest.approx(0.002)

    def test_without_a_budget_no_one_is_asked(self, outbox: Outbox) -> None:
        poor = polisher(outbox, dollars=0.001)

        assert poor.polish(LINES) == Unsaid(reason="this part of the day's budget is spent")
        assert isinstance(poor.backend, ScriptedBackend) and poor.backend.asked == []

    @pytest.mark.parametrize(
        ("ending", "reason"),
        [
            (Busy(reason="the server is busy", retry_after=1.0, made="no"), "the server is busy"),
            (Refused(reason="it will not", usage=Usage()), "it will not"),
            (Misconfigured(reason="no key", hint="set one"), "no key (set one)"),
            (Reply(text="no JSON", usage=USAGE), "the model's answer is not in the form asked for"),
        ],
    )
    def test_a_call_that_fails_says_why(self, outbox: Outbox, ending: Ending, reason: str) -> None:
        assert polisher(outbox, ending).polish(LINES) == Unsaid(reason=reason)
