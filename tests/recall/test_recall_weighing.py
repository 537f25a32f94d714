"""What the gate makes of a prompt's candidates: how many are said, what is left to a judge, and what never comes up."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.recall import gate
from kite_memory.recall.gate import Dial, Gate
from kite_memory.recall.index import Index
from kite_memory.recall.select import CANDIDATES, Prompt, Requirement, Situation, weigh
from kite_memory.recall.uptake import Tally
from tests.recall.notes import AUTH, QUEUE, VAULT, note
from tests.recall.services import LOCAL, Services

ON_THE_QUEUE = "should the job queue use PostgreSQL or SQLite?"
HAIKU = "write a haiku about the sea in autumn"
SHIPPED = gate.shipped()


def by_score(*, quiet: float = 0.9, normal: float = 0.5, eager: float = 0.2, second: float = 1.5, doubt: float = 0.03) -> Gate:
    """A gate that looks at the score alone: its probabilities are easy to predict."""
    return replace(
        SHIPPED,
        weights={"score": 10.0},
        bias=-5.0,
        thresholds={"quiet": quiet, "normal": normal, "eager": eager},
        second=second,
        doubt=doubt,
    )


def orchard(count: int) -> list[Note]:
    return [
        note(f"n{number}", f"The orchard's ladder {number}", "It leans on a tree.", project="mycelia") for number in range(count)
    ]


LADDERS = "which ladder of the orchard leans on a tree?"


@pytest.mark.parametrize("count", range(1, 12))
def test_a_note_that_plainly_fits_is_said_however_small_the_vault(services: Services, count: int) -> None:
    others = [note(f"other{number}", title, project="mycelia") for number, title in enumerate(_UNLIKE)]

    assert services.over(QUEUE, *others[: count - 1]).ids(ON_THE_QUEUE) == ["queue"]


_UNLIKE = (
    *("Pears ripen late", "Ada waters the quince", "Gravel on the northern path", "Bees winter in the shed"),
    *("Cider is pressed on Fridays", "Walls are white", "The gate squeaks", "Hedges are cut in March", "Rain fills the barrel"),
    *("Lanterns hang by the door",),
)


@pytest.mark.parametrize("count", range(1, 12))
def test_what_has_nothing_to_do_with_it_is_not_said_however_small_the_vault(services: Services, count: int) -> None:
    others = [note(f"other{number}", title, project="mycelia") for number, title in enumerate(_UNLIKE)]

    assert services.over(QUEUE, *others[: count - 1]).says("fix the colours of the landing page").silent


def test_in_a_small_vault_too_the_words_of_a_title_count(services: Services) -> None:
    (parts,) = services.over(QUEUE).weighed(ON_THE_QUEUE).parts

    assert parts["title"] > 0.5


def test_who_is_eager_is_said_at_least_what_who_is_quiet_is(services: Services) -> None:
    services.over(*VAULT, *orchard(5))
    prompts = (ON_THE_QUEUE, LADDERS, HAIKU, "run the linter please", "do JWT login tokens expire?", "commit the queue")
    dials: tuple[Dial, ...] = ("quiet", "normal", "eager")
    said = {}
    for dial in dials:
        services.reopened(requirement=Requirement(dial=dial, gate=by_score(quiet=0.9, normal=0.6, eager=0.4)))
        said[dial] = [{hit.note.id for hit in services.says(text, session="", remember=False).hits} for text in prompts]

    assert all(quiet <= normal <= eager for quiet, normal, eager in zip(said["quiet"], said["normal"], said["eager"], strict=True))
    assert sum(map(len, said["quiet"])) < sum(map(len, said["eager"]))


@pytest.mark.parametrize(("second", "count"), [(1.0, 2), (1.05, 2), (10.0, 1)])
def test_a_second_note_must_be_surer(services: Services, second: float, count: int) -> None:
    twin = replace(QUEUE, id="twin", path="decisions/twin.md")
    services.reopened(requirement=Requirement(gate=by_score(normal=0.8, second=second))).over(QUEUE, twin, *VAULT[1:])

    weighed = services.weighed(ON_THE_QUEUE)

    assert [hit.score >= 0.8 for hit in weighed.candidates[:2]] == [True, True]
    assert weighed.chosen == (2 if 0.8 * second <= weighed.candidates[1].score else 1) == count


def test_what_was_already_said_is_given_as_the_reason(services: Services) -> None:
    services.over(*VAULT).says(ON_THE_QUEUE)

    assert services.says(ON_THE_QUEUE).reason == "already shown in this session"
    assert services.says(HAIKU).reason.startswith("below threshold")


def test_each_part_is_reported_beside_its_own_candidate(services: Services) -> None:
    weighed = services.over(*VAULT, *orchard(9)).weighed(ON_THE_QUEUE)

    assert len(weighed.candidates) == len(weighed.parts) == len(weighed.figures) == 12
    for hit, parts in zip(weighed.candidates, weighed.parts, strict=True):
        assert hit.score == pytest.approx(1 / (1 + math.exp(-sum(parts.values()))), abs=1e-4)


SUPERSEDING = {
    "the old one says so": (replace(QUEUE, status=NoteStatus.SUPERSEDED, superseded_by="new"), note("new", "x")),
    "the new one says so": (QUEUE, note("new", "Something else", supersedes=("queue",))),
    "by its path": (QUEUE, note("new", "Something else", supersedes=("[[postgres-over-sqlite-feb26]]",))),
    "both say so": (replace(QUEUE, superseded_by="new"), note("new", "Something else", supersedes=("queue",))),
    "the new one is muted": (QUEUE, note("new", "x", supersedes=("queue",), status=NoteStatus.MUTED)),
}


@pytest.mark.parametrize("dial", ["quiet", "normal", "eager"])
@pytest.mark.parametrize("pair", SUPERSEDING.values(), ids=SUPERSEDING)
def test_a_superseded_note_never_comes_up(services: Services, pair: tuple[Note, Note], dial: Dial) -> None:
    services.reopened(requirement=Requirement(dial=dial, judged=True)).over(*pair, AUTH)

    injection = services.says(QUEUE.body + ON_THE_QUEUE)
    asked = injection.question.candidates if injection.question else ()
    brief = services.recall.brief(session="two", project="mycelia")

    assert "queue" not in {
        hit.note.id for hit in (*injection.hits, *asked, *brief.hits, *services.weighed(ON_THE_QUEUE).candidates)
    }


@pytest.mark.parametrize("status", [NoteStatus.MUTED, NoteStatus.REJECTED, NoteStatus.PROPOSED])
def test_a_note_that_is_muted_or_not_agreed_to_never_comes_up(services: Services, status: NoteStatus) -> None:
    services.reopened(requirement=Requirement(dial="eager", judged=True)).over(replace(QUEUE, status=status), AUTH)

    injection = services.says(ON_THE_QUEUE)
    brief = services.recall.brief(session="two", project="mycelia")

    assert injection.silent
    assert injection.question is None or "queue" not in {hit.note.id for hit in injection.question.candidates}
    assert "queue" not in {hit.note.id for hit in brief.hits}


class TestWithAJudge:
    @pytest.fixture
    def judged(self, services: Services) -> Services:
        return services.reopened(requirement=Requirement(gate=by_score(quiet=0.99, normal=0.5), judged=True))

    def test_what_is_only_likely_is_left_to_it(self, judged: Services) -> None:
        injection = judged.over(*VAULT).says(ON_THE_QUEUE)

        assert not injection.hits
        assert injection.question is not None
        assert injection.question.prompt == ON_THE_QUEUE
        assert injection.question.candidates[0].note.id == "queue"
        assert 0.5 < injection.question.candidates[0].score < 0.99

    def test_what_is_certain_is_said_at_once_and_no_one_is_asked(self, services: Services) -> None:
        services.reopened(requirement=Requirement(gate=by_score(quiet=0.5), judged=True))

        injection = services.over(*VAULT).says(ON_THE_QUEUE)

        assert [hit.note.id for hit in injection.hits] == ["queue"]
        assert injection.question is None

    def test_without_one_what_is_likely_is_said(self, services: Services) -> None:
        injection = (
            services.reopened(requirement=Requirement(gate=by_score(quiet=0.99, normal=0.5))).over(*VAULT).says(ON_THE_QUEUE)
        )

        assert [hit.note.id for hit in injection.hits] == ["queue"]
        assert injection.question is None

    @pytest.mark.parametrize(
        "text",
        ["", "yes", "ok, go ahead", "thanks!", "/compact", f"/review {ON_THE_QUEUE}", "commit it"],
    )
    def test_it_is_not_asked_about_what_needs_no_memory(self, judged: Services, text: str) -> None:
        assert judged.over(*VAULT).says(text).question is None

    def test_it_is_not_asked_where_nothing_is_in_doubt(self, services: Services) -> None:
        services.reopened(requirement=Requirement(gate=by_score(quiet=0.99, doubt=0.45), judged=True))

        assert services.over(*VAULT).says(HAIKU).question is None
        assert services.says(ON_THE_QUEUE).question is not None

    def test_it_is_not_asked_over_an_empty_vault(self, judged: Services) -> None:
        assert judged.says(ON_THE_QUEUE).question is None
        assert judged.over().says(ON_THE_QUEUE).question is None

    def test_it_reads_twenty_notes_at_most_the_likeliest_first(self, judged: Services) -> None:
        question = judged.over(*orchard(40)).says(LADDERS).question

        assert question is not None
        assert len(question.candidates) == CANDIDATES == 20
        scores = [hit.score for hit in question.candidates]
        assert scores == sorted(scores, reverse=True)

    def test_it_is_not_shown_what_the_session_has_seen(self, judged: Services) -> None:
        judged.over(*orchard(4)).recall.opened("one", ["n0", "n1", "n2", "n3"])

        assert judged.says(LADDERS).question is None
        assert judged.says(LADDERS, session="two").question is not None

    def test_it_never_sees_a_note_of_another_session(self, judged: Services) -> None:
        judged.over(replace(QUEUE, scope=Scope.SESSION, session="two"), *orchard(3))

        question = judged.says(f"{LADDERS} {ON_THE_QUEUE}").question

        assert question is not None
        assert {hit.note.id for hit in question.candidates} == {"n0", "n1", "n2"}

    def test_it_learns_what_was_said_before_and_what_the_gate_saw(self, judged: Services) -> None:
        judged.over(*VAULT)

        situation = Situation(exchange="The workers stalled.")
        prompt = Prompt(text=ON_THE_QUEUE, session="one", project="mycelia", head="should the", situation=situation)
        question = judged.recall.answer(prompt).question

        assert question is not None
        assert (question.exchange, question.head) == ("The workers stalled.", "should the")
        assert (question.session, question.project) == ("one", "mycelia")
        assert question.features == judged.recall.weigh(prompt).figures[0]


def test_a_note_ignored_again_and_again_gives_way(services: Services) -> None:
    services.over(*VAULT)
    index = Index(services.folder / "index", embedder=LOCAL)

    def score(tally: Tally) -> float:
        prompt = Prompt(text=ON_THE_QUEUE, project="mycelia")
        tallies = {"queue": tally}
        weighed = weigh(
            index,
            prompt,
            Requirement(gate=SHIPPED),
            shown=(),
            now=services.now.timestamp(),
            limit=2,
            tallies=tallies,
            explain_all=True,
        )
        return weighed.candidates[0].score

    ignored, new, used = score(Tally(shown=9, ignored=9)), score(Tally()), score(Tally(shown=9, used=9))
    index.close()

    assert ignored < new < used


def test_of_equals_the_newer_is_said(services: Services) -> None:
    older = replace(QUEUE, id="older", path="decisions/older.md", created=QUEUE.created - timedelta(days=90))

    assert services.over(QUEUE, older).ids(ON_THE_QUEUE)[0] == "queue"


def test_a_journal_and_an_entity_s_page_never_come_up(services: Services) -> None:
    pages = [replace(QUEUE, id=kind, path=f"{kind}.md", kind=kind) for kind in (NoteKind.JOURNAL, NoteKind.ENTITY)]

    assert services.reopened(requirement=Requirement(dial="eager", judged=True)).over(*pages).says(ON_THE_QUEUE).question is None
