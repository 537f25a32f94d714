"""What a new note does to an older one, reported without a model; and what becomes of both."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.note import (
    SAID_TO_A_REFUSAL,
    Action,
    Amend,
    Create,
    Note,
    NoteKind,
    NoteStatus,
    Rejected,
    Ruling,
    Scope,
    SimilarNote,
    Skip,
    Supersede,
    Surroundings,
)
from kite_memory.vault import lifecycle
from kite_memory.vault.planning import PlanContext, plan
from kite_memory.vault.vault import Vault
from tests.vault.building import START, decision, drafts, fact, note

LONG_AGO = START - timedelta(days=40)


def old(title: str, body: str, **changes: Any) -> Note:
    made = note(title, body, number=77)
    return replace(made, created=LONG_AGO, origin="assistant", evidence=("claude-code:before#00000001",), **changes)


def around(*notes: Note, cosine: float = 0.7) -> Surroundings:
    return Surroundings(near=tuple(SimilarNote(note=each, cosine=cosine) for each in notes))


def planned(
    made: Sequence[Any], *near: Note, cosine: float = 0.7, rulings: dict[tuple[str, str], Ruling] | None = None
) -> list[Action]:
    return plan(made, PlanContext(around={each.note.id: around(*near, cosine=cosine) for each in made}, rulings=rulings or {}))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("SQLite holds the job queue", "The job queue moved to PostgreSQL, SQLite had one writer at a time"),
        ("Apples go to the northern cellar until Easter", "Apples no longer go to the northern cellar, the loft is drier"),
        ("The press room opens at 8:00", "The press room opens at 9:30"),
        ("Never prune the pears in March", "Pears are pruned in March now"),
    ],
)
def test_what_differs_on_one_thing_is_asked_about_and_replaces_nothing(before: str, now: str) -> None:
    other = old(before, "So it was said.", kind=NoteKind.DECISION)
    (made,) = drafts(decision(now, "It was agreed on Monday.", rejected=[Rejected(alternative="SQLite", reason="one writer")]))

    (action,) = planned([made], other)

    assert isinstance(action, Create)
    assert action.note.conflicts == (Path(other.path).stem,)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Importer dropped rows with BOM", "Importer dropped rows after midnight"),
        ("Access keys expire after 15 minutes", "Refresh keys expire after 30 days"),
        ("Removed the unused helper in press.py", "Removed the unused import in cellar.py"),
        ("The apple crate holds 20 kilos", "The pear crate holds 12 kilos"),
        ("Docs are built with Sphinx", "Ladders are checked by Ben"),
    ],
)
def test_what_only_sounds_alike_is_no_ones_question(before: str, now: str) -> None:
    other = old(before, "")
    (made,) = drafts(fact(now, now))

    (action,) = planned([made], other, cosine=0.55)

    assert isinstance(action, Create)
    assert action.note.conflicts == ()


def test_neither_an_aside_nor_another_side_of_one_session_is_asked_about() -> None:
    before = old("The cider press runs at 40 bar", "The cider press runs at 40 bar, twelve crates an hour.")
    (made,) = drafts(fact("The cider press runs at 55 bar", "The cider press runs at 55 bar, twelve crates an hour."))
    aside = replace(made, note=replace(made.note, importance=1))
    first = old("The cider press is cleaned by hand", "The cider press is cleaned by hand, after each crate.")
    (second,) = drafts(fact("The cider press needs a second hand", "The cider press is cleaned by hand in the yard."))
    of_one = replace(first, evidence=second.note.evidence)

    actions = [*planned([aside], before, cosine=0.98), *planned([second], of_one, cosine=0.98)]

    assert [action.note.conflicts for action in actions if isinstance(action, Create)] == [(), ()]
    (asked,) = planned([second], first, cosine=0.98)
    assert isinstance(asked, Create) and asked.note.conflicts


def test_a_choice_taken_back_in_the_same_session_names_the_first() -> None:
    first, second = drafts(
        decision("The press runs at 40 bar", "The press runs at 40 bar.", evidence=1),
        decision("The press runs at 55 bar after all", "The press runs at 55 bar after all.", evidence=2),
    )

    one, other = plan([first, second], PlanContext())

    assert isinstance(one, Create) and isinstance(other, Create)
    assert one.note.conflicts == ()
    assert other.note.conflicts == (Path(one.note.path).stem,)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Lotte answers the phone in the mornings", "Lotte has the keys of the lab"),
        ("The frost alarm rings at two degrees", "The frost alarm is tested every friday"),
        ("The washer is serviced every first monday", "The hose of the washer is changed on tuesdays"),
        ("The till login is at /till and uses a passkey", "The till logs in with a passkey under /till"),
        ("An outbox of labels that a printer job empties every minute", "The labels are sent by the printer once every minute"),
    ],
)
def test_two_facts_of_one_person_or_thing_are_no_ones_question(before: str, now: str) -> None:
    other = old(before, f"{before}.", kind=NoteKind.FACT)
    (made,) = drafts(fact(now, f"{now}."))

    (action,) = planned([made], other, cosine=0.65)

    assert isinstance(action, Create) and action.note.conflicts == ()


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("The frost alarm rings at two degrees", "The frost alarm rings at one degree"),
        ("Lotte answers the phone in the mornings", "Lotte no longer answers the phone in the mornings"),
        ("The crate wiki lives on the NAS", "The crate wiki moved from the NAS to a rented server"),
    ],
)
def test_two_facts_that_differ_on_one_thing_are_asked_about(before: str, now: str) -> None:
    other = old(before, f"{before}.", kind=NoteKind.FACT)
    (made,) = drafts(fact(now, f"{now}."))

    (action,) = planned([made], other, cosine=0.65)

    assert isinstance(action, Create) and action.note.conflicts == (Path(other.path).stem,)


def test_the_same_with_another_figure_is_for_somebody_to_decide() -> None:
    before = old("The cider press runs at 40 bar", "The cider press runs at 40 bar, twelve crates an hour.")
    (made,) = drafts(fact("The cider press runs at 55 bar", "The cider press runs at 55 bar, twelve crates an hour."))

    (action,) = planned([made], before, cosine=0.98)

    assert isinstance(action, Create)
    assert action.note.conflicts == ("the-cider-press-runs-at-40-bar-feb26",)


REVERSALS = [
    (
        "Ben prunes the pear trees in winter; Ida picks the cherries in June",
        "Ida prunes the pear trees in winter; Ben picks the cherries in June",
    ),
    (
        "Invoices use port 7001 on staging, quotes use port 7999 on staging",
        "Invoices use port 7999 on staging, quotes use port 7001 on staging",
    ),
    (
        "Read the ledger from the replica, write the ledger to the primary",
        "Read the ledger from the primary, write the ledger to the replica",
    ),
    ("Write thumbnails to disk, never to the bucket of the shop", "Write thumbnails to the bucket of the shop, never to disk"),
    ("Sort orchards by name and then by age in the export", "Sort orchards by age and then by name in the export"),
    (
        "Labels are printed in the cellar, and crates are washed in the yard",
        "Labels are printed in the yard, and crates are washed in the cellar",
    ),
    (
        "The press may store ciders and must not heat the bottled juices",
        "The press must not store ciders and may heat the bottled juices",
    ),
    (
        "Guests are admitted and vendors are refused when the orchard gate opens",
        "Guests are refused and vendors are admitted when the orchard gate opens",
    ),
    (
        "Logs of the press are rotated daily, logs of the cellar are rotated weekly",
        "Logs of the press are rotated weekly, logs of the cellar are rotated daily",
    ),
]
REPETITIONS = [
    (
        "Don't mock the harvest database in orchard tests, use the real one",
        "Use the real harvest database in orchard tests, don't mock it",
    ),
    ("Use integer cents for orchard money amounts, never floats", "For orchard money amounts use integer cents, never floats"),
    (
        "Check the copper and silver lamps before each start of the press",
        "Check the silver and copper lamps before each start of the press",
    ),
    (
        "Ciders are pressed in October, and juices are bottled in November",
        "Juices are bottled in November, and ciders are pressed in October",
    ),
    (
        "Every migration needs a down file, and every table a primary key",
        "Every table needs a primary key, and every migration a down file",
    ),
    (
        "Run the formatter before a commit reaches the orchard, not after it",
        "Before a commit reaches the orchard run the formatter, not after it",
    ),
    (
        "The cider press is cleaned by hand after each crate in the yard",
        "After each crate, the cider press in the yard is cleaned by hand",
    ),
]


@pytest.mark.parametrize(("before", "now"), REVERSALS)
def test_the_same_words_in_other_places_are_another_note_and_asked_about(before: str, now: str) -> None:
    other = old(before, f"{before}.", kind=NoteKind.FACT)
    (made,) = drafts(fact(now, f"{now}."))

    (action,) = planned([made], other, cosine=0.98)

    assert isinstance(action, Create)
    assert action.note.conflicts == (Path(other.path).stem,)


@pytest.mark.parametrize(("before", "now"), REPETITIONS)
def test_the_same_said_in_another_order_stays_one_note(before: str, now: str) -> None:
    other = old(before, f"{before}.", kind=NoteKind.FACT)
    (made,) = drafts(fact(now, f"{now}."))

    (action,) = planned([made], other)

    assert isinstance(action, Amend) and not action.addition


def test_the_same_in_other_words_adds_its_evidence_and_makes_no_note() -> None:
    before = old("Pears on quince", "Old pear varieties are grafted on quince stock because meadow floods drown pear roots.")
    (made,) = drafts(
        fact(
            "Quince stock for the pears", "Because meadow floods drown pear roots, old pear varieties are grafted on quince stock."
        )
    )

    (action,) = planned([made], before)

    assert isinstance(action, Amend)
    assert (action.id, action.evidence, action.absorbs) == (before.id, made.note.evidence, made.note.id)


@pytest.mark.parametrize(
    "body",
    [
        "Old pear varieties are never grafted on quince stock because meadow floods drown pear roots.",
        "Old pear varieties are grafted on quince stock 12 because meadow 40 floods drown pear roots.",
        "Old apple varieties are grafted on quince stock because meadow floods drown pear roots.",
        "Old pear varieties are no longer grafted on quince stock because meadow floods drown pear roots.",
        "Old pear varieties are grafted on Quittenunterlage because meadow floods drown pear roots.",
    ],
)
def test_a_denial_and_another_name_or_figure_are_no_repetition(body: str) -> None:
    before = old("Pears 7", "Old pear varieties are grafted on quince stock because meadow floods drown pear roots.")

    assert not lifecycle.repeats(replace(before, title="Pears 9", body=body), before)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Prefer tabs over spaces for the indentation of all Python files of this project.",
            "Prefer spaces over tabs for the indentation of all Python files of this project.",
        ),
        (
            "The catalogue of the seeds moves from ledgers to cards before the autumn fair opens.",
            "The catalogue of the seeds moves from cards to ledgers before the autumn fair opens.",
        ),
        (
            "The press of the cellar keeps max_turns = 1 in the autumn and in winter.",
            "The press of the cellar keeps max_turns = -1 in the autumn and in winter.",
        ),
        (
            "The gate is refused once the frost > 200 minutes for the whole orchard.",
            "The gate is refused once the frost < 200 minutes for the whole orchard.",
        ),
    ],
)
def test_the_same_words_the_other_way_round_or_with_another_sign_are_no_repetition(one: str, other: str) -> None:
    before = old("Pears 7", one)

    assert lifecycle.repeats(replace(before, title="Pears 7"), before)
    assert not lifecycle.repeats(replace(before, body=other), before)


def test_what_is_not_here_but_there_is_repeated_by_what_is_there_and_not_here() -> None:
    before = old("Pears 7", "Seeds are not stored in the cellar but in the loft, where growers sort them monthly.")
    same = replace(before, body="Seeds are stored in the loft, where growers sort them monthly, not in the cellar.")
    other = replace(before, body="Seeds are not stored in the loft but in the cellar, where growers sort them monthly.")

    assert lifecycle.repeats(same, before)
    assert not lifecycle.repeats(other, before)
    assert not lifecycle.repeats(other, same)


def test_one_reason_for_opposite_decisions_makes_one_of_them_no_repetition_of_the_other() -> None:
    tabs = old("Tabs over spaces", "It is easier to read.", kind=NoteKind.DECISION)
    spaces = replace(tabs, title="Spaces over tabs")
    first, second = drafts(decision(tabs.title, tabs.body), decision(spaces.title, spaces.body))

    assert lifecycle.repeats(tabs, replace(tabs, title="tabs over spaces."))
    assert not lifecycle.repeats(spaces, tabs)
    assert [type(action) for action in planned([first, second])] == [Create, Create]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (
            "The pool of the pump is limited to 8 buckets for each worker.",
            "The pool of the pump is limited to 16 buckets for each worker.",
        ),
        (
            "The pump retries after a dry run because the well is slow.",
            "The pump never retries after a dry run because the well is slow.",
        ),
    ],
)
def test_what_has_changed_is_added_under_an_old_title_and_does_not_make_the_old_weigh_more(before: str, now: str) -> None:
    evidence = tuple(f"claude-code:s{number}#00000001" for number in range(3))
    standing = replace(old("The pump", before, importance=2), evidence=evidence)
    (made,) = drafts(fact("The pump", now))

    (action,) = plan([made], PlanContext(alike=(standing,)))

    assert isinstance(action, Amend)
    assert now in action.addition
    assert action.importance == 0

    (again,) = plan([made], PlanContext(alike=(replace(standing, body=f"{before}\n\n{action.addition}"),)))

    assert isinstance(again, Amend)
    assert again.addition == ""


def test_what_a_person_says_again_after_it_was_replaced_holds_again() -> None:
    (made,) = drafts(fact("Frost comes late", "It does."))
    replaced = old("Frost comes late", "It does.", status=NoteStatus.SUPERSEDED, valid_until=START - timedelta(days=9))

    (action,) = plan([made], PlanContext(alike=(replaced,)))
    (result,) = plan([replace(made, note=replace(made.note, origin="assistant"))], PlanContext(alike=(replaced,)))
    (earlier,) = plan([made], PlanContext(alike=(replace(replaced, valid_until=START + timedelta(days=9)),)))

    assert isinstance(action, Create)
    assert isinstance(result, Amend)
    assert isinstance(earlier, Amend)


def test_what_is_said_everywhere_in_the_words_of_a_branch_contradicts_it_in_nothing() -> None:
    (made,) = drafts(fact("Frost comes late", "It does."))
    there = old("Frost comes late", "It does.", branch="fix/press")

    (action,) = planned([made], there, cosine=1.0, rulings={(made.note.id, there.id): "conflicts"})

    assert isinstance(action, Create)
    assert action.note.conflicts == ()


@pytest.mark.parametrize(
    "changes",
    [{"expires": START + timedelta(days=1)}, {"branch": "fix/press"}, {"scope": Scope.SESSION, "session": "before"}],
    ids=["ends", "branch", "session"],
)
def test_what_ends_or_holds_in_one_place_alone_does_not_take_in_what_stays(changes: dict[str, Any]) -> None:
    (made,) = drafts(fact("Frost comes late", "It does."))

    (action,) = plan([made], PlanContext(alike=(old("Frost comes late", "It does.", **changes),)))

    assert isinstance(action, Create)


@pytest.mark.parametrize(
    "changes",
    [{"expires": START + timedelta(days=1)}, {"branch": "fix/press"}, {"scope": Scope.SESSION, "session": "now"}],
    ids=["ends", "branch", "session"],
)
@pytest.mark.parametrize("body", ["It does.", "It came on the third of May, as the diary of the north field says."])
@pytest.mark.parametrize("status", [NoteStatus.ACCEPTED, NoteStatus.SUPERSEDED])
def test_what_ends_or_holds_in_one_place_alone_writes_nothing_into_what_stays(
    changes: dict[str, Any], body: str, status: NoteStatus
) -> None:
    (made,) = drafts(fact("Frost comes late", body))
    narrow = replace(made, note=replace(made.note, **changes))
    stays, likewise = old("Frost comes late", "It does.", status=status), old("Frost comes late", "It does.", **changes)

    (action,) = plan([narrow], PlanContext(alike=(stays,)))
    (beside,) = plan([narrow], PlanContext(alike=(stays, likewise)))

    assert isinstance(action, Create)
    assert isinstance(beside, Amend) and beside.id == likewise.id


def test_on_a_branch_a_thought_stays_turned_down_and_what_a_person_wrote_is_not_written_again() -> None:
    (made,) = drafts(fact("Frost comes late", "It does."))
    on_branch = replace(made, note=replace(made.note, branch="fix/press"))
    waiting = replace(on_branch, note=replace(on_branch.note, status=NoteStatus.PROPOSED))

    (turned_down,) = plan([on_branch], PlanContext(alike=(old("Frost comes late", "It does.", status=NoteStatus.REJECTED),)))
    (written,) = plan([on_branch], PlanContext(alike=(replace(old("Frost comes late", "It does."), id=""),)))
    (nothing_new,) = plan([waiting], PlanContext(alike=(old("Frost comes late", "It does."),)))

    assert [type(each) for each in (turned_down, written, nothing_new)] == [Skip, Skip, Skip]


def test_sessions_that_say_it_again_make_it_weigh_more() -> None:
    evidence = tuple(f"claude-code:s{number}#00000001" for number in range(3))
    before = old("Frost comes late", "It does.", importance=2)
    (made,) = drafts(fact("Frost comes late", "It does."))

    (action,) = plan([made], PlanContext(alike=(replace(before, evidence=evidence),)))
    (again,) = plan([made], PlanContext(alike=(replace(before, evidence=(*evidence, "claude-code:s9#00000001")),)))

    assert isinstance(action, Amend)
    assert isinstance(again, Amend)
    assert (action.importance, again.importance) == (3, 0)


def test_what_no_one_can_decide_stays_beside_it_and_says_so() -> None:
    before = old(
        "Storage layout", "Crates lie in numbered rows in the northern cellar, the newest at the door, all other ones behind it."
    )
    (made,) = drafts(
        fact(
            "New storage layout",
            "Crates hang from the roof beams on hooks since October; numbered rows have been given up, and mice with them.",
        )
    )

    (action,) = planned([made], before, cosine=0.8)

    assert isinstance(action, Create)
    assert action.note.conflicts == ("storage-layout-feb26",)
    assert action.note.status is NoteStatus.ACCEPTED


@pytest.mark.parametrize(("ruling", "kind"), [("replaces", Supersede), ("conflicts", Create), ("neither", Create)])
def test_what_a_model_says_of_a_pair_holds(ruling: Ruling, kind: type[Action]) -> None:
    before = old(
        "Storage layout", "Crates lie in numbered rows in the northern cellar, the newest at the door, all other ones behind it."
    )
    (made,) = drafts(
        fact(
            "New storage layout",
            "Crates hang from the roof beams on hooks since October; numbered rows have been given up, and mice with them.",
        )
    )

    (action,) = planned([made], before, cosine=0.8, rulings={(made.note.id, before.id): ruling})

    assert type(action) is kind
    assert isinstance(action, Create | Supersede)
    assert bool(action.note.conflicts) is (ruling == "conflicts")


def test_a_persons_word_gives_way_to_a_persons_alone() -> None:
    before = old("The press runs at 40 bar", "The cider press runs at 40 bar.")
    (made,) = drafts(fact("The press runs at 55 bar", "The cider press runs at 55 bar."))
    theirs, ours = replace(before, origin="user"), replace(made, note=replace(made.note, origin="assistant"))

    (by_a_person,) = planned([made], theirs, rulings={(made.note.id, theirs.id): "replaces"})
    (by_an_agent,) = planned([ours], theirs, rulings={(ours.note.id, theirs.id): "replaces"})

    assert isinstance(by_a_person, Supersede)
    assert isinstance(by_an_agent, Create)
    assert by_an_agent.note.conflicts == ("the-press-runs-at-40-bar-feb26",)


def test_what_waits_for_review_replaces_nothing() -> None:
    before = old("The press runs at 40 bar", "The cider press runs at 40 bar.")
    (made,) = drafts(fact("The press runs at 55 bar", "The cider press runs at 55 bar."))

    waiting = replace(made, note=replace(made.note, status=NoteStatus.PROPOSED))
    (action,) = planned([waiting], before, rulings={(waiting.note.id, before.id): "replaces"})

    assert isinstance(action, Create)


def test_an_old_session_read_late_comes_in_as_replaced() -> None:
    (made,) = drafts(fact("The press runs at 40 bar", "The cider press runs at 40 bar."))
    newer = replace(
        old("The press runs at 55 bar", "The cider press runs at 55 bar."), created=START + timedelta(days=9), origin="user"
    )

    (action,) = planned([made], newer, rulings={(newer.id, made.note.id): "replaces"})

    assert isinstance(action, Supersede)
    assert (action.old_id, action.late) == (newer.id, True)


def test_a_pair_that_was_decided_is_not_decided_again() -> None:
    before = old("The press runs at 40 bar", "The cider press runs at 40 bar.")
    (made,) = drafts(fact("The press runs at 55 bar", "The cider press runs at 55 bar."))
    known = PlanContext(around={made.note.id: around(before)}, settled=frozenset({(made.note.id, before.id)}))

    (action,) = plan([made], known)

    assert isinstance(action, Create)
    assert action.note.conflicts == ()


@given(st.text(max_size=3_000), st.text(max_size=3_000), st.floats(-1, 1))
def test_any_two_texts_can_be_held_against_each_other(one: str, other: str, cosine: float) -> None:
    (made,) = drafts(fact("a title", one or "x"))
    before = old("another title", other)

    planned([made], before, cosine=cosine)

    assert lifecycle.repeats(before, before) in (True, False)


def superseding(vault: Vault, *, branch: str = "") -> tuple[Note, Note]:
    """An old note and the one in its place, as they are on disk."""
    before = drafts(fact("The press runs at 40 bar", "The cider press runs at 40 bar."), name="chunk-old")
    vault.planner.carry_out(vault.planner.plan(before))
    earlier = vault.notes.find("The press runs at 40 bar")
    made = drafts(fact("The press runs at 55 bar", "The cider press runs at 55 bar."), name="chunk-new", first=500)
    made = [replace(each, note=replace(each.note, evidence=("claude-code:later#00000001",), branch=branch)) for each in made]
    rulings: dict[tuple[str, str], Ruling] = {(made[0].note.id, earlier.id): "replaces"}
    vault.planner.carry_out(
        vault.planner.plan(made, around=vault.planner.around(made, lambda draft: around(earlier)), rulings=rulings)
    )
    return vault.notes.find("The press runs at 40 bar"), vault.notes.find("The press runs at 55 bar")


def test_both_say_of_each_other_what_they_are_and_since_when(vault: Vault) -> None:
    older, newer = superseding(vault)

    assert (older.status, older.superseded_by, older.valid_until) == (
        NoteStatus.SUPERSEDED,
        "the-press-runs-at-55-bar-feb26",
        newer.created,
    )
    assert older.body == "The cider press runs at 40 bar."
    assert (newer.status, newer.supersedes, newer.valid_from) == (
        NoteStatus.ACCEPTED,
        ("the-press-runs-at-40-bar-feb26",),
        newer.created,
    )


def test_what_is_said_on_a_branch_replaces_nothing_elsewhere_until_it_is_merged(vault: Vault) -> None:
    older, newer = superseding(vault, branch="new-press")
    beside = (older.status, older.superseded_by, newer.status, newer.supersedes)
    vault.scanner.compare()
    waits = vault.relations.bring_in_line()

    vault.edits.annotate(newer.id, {"branch": ""})
    marked = vault.relations.bring_in_line()

    assert beside == (NoteStatus.ACCEPTED, "", NoteStatus.ACCEPTED, ())
    assert waits == []
    assert marked == [older.path]
    older, newer = vault.notes.find(older.id), vault.notes.find(newer.id)
    assert (older.status, older.superseded_by) == (NoteStatus.SUPERSEDED, "the-press-runs-at-55-bar-feb26")
    assert newer.supersedes == ("the-press-runs-at-40-bar-feb26",)


@pytest.mark.parametrize("bound", [{"branch": "new-press"}, {"expires": "2030-01-01T00:00:00Z"}])
def test_a_note_that_holds_less_replaces_a_lasting_one_only_where_it_holds(vault: Vault, bound: dict[str, object]) -> None:
    vault.planner.carry_out(
        vault.planner.plan(drafts(fact("The press runs at 40 bar", "The cider press runs at 40 bar."), name="chunk-old"))
    )
    vault.planner.carry_out(
        vault.planner.plan(drafts(fact("Cider is pressed at 55 bar", "It is pressed at 55 bar."), name="chunk-new", first=500))
    )
    older, newer = vault.notes.find("The press runs at 40 bar"), vault.notes.find("Cider is pressed at 55 bar")
    vault.edits.annotate(newer.id, bound)

    vault.relations.settle(newer.id, older.id, "replaces")

    older, newer = vault.notes.find(older.id), vault.notes.find(newer.id)
    assert (older.status, older.superseded_by, older.valid_until) == (NoteStatus.ACCEPTED, "", None)
    assert newer.supersedes == ("the-press-runs-at-40-bar-feb26",)
    vault.relations.settle(newer.id, older.id, "neither")
    assert vault.notes.find(newer.id).supersedes == ()


def test_an_older_thing_that_is_read_late_stands_beside_what_is_of_a_branch(vault: Vault) -> None:
    vault.planner.carry_out(
        vault.planner.plan(drafts(fact("The press runs at 55 bar", "The cider press runs at 55 bar."), name="chunk-new", first=500))
    )
    newer = vault.notes.find("The press runs at 55 bar")
    vault.edits.annotate(newer.id, {"branch": "new-press"})
    newer = vault.notes.find(newer.id)
    made = drafts(fact("The press runs at 40 bar", "The cider press runs at 40 bar."), name="chunk-old")
    made = [replace(each, note=replace(each.note, evidence=("claude-code:before#00000001",))) for each in made]
    rulings: dict[tuple[str, str], Ruling] = {(newer.id, made[0].note.id): "replaces"}

    vault.planner.carry_out(
        vault.planner.plan(made, around=vault.planner.around(made, lambda draft: around(newer)), rulings=rulings)
    )

    assert vault.notes.find(made[0].note.id).status is NoteStatus.ACCEPTED


def test_what_a_person_lets_stand_again_stands(vault: Vault) -> None:
    older, newer = superseding(vault)
    file = vault.root / older.path
    file.write_text(file.read_text().replace("status: superseded", "status: accepted"))
    vault.scanner.compare()

    changed = vault.relations.bring_in_line()

    assert sorted(changed) == sorted([older.path, newer.path])
    again, other = vault.notes.find(older.id), vault.notes.find(newer.id)
    assert (again.status, again.superseded_by, again.valid_until, other.supersedes) == (NoteStatus.ACCEPTED, "", None, ())
    assert vault.relations.bring_in_line() == []
    assert (newer.id, older.id) in vault.known.settled()


def test_to_mute_what_was_replaced_takes_nothing_back(vault: Vault) -> None:
    older, newer = superseding(vault)
    vault.edits.mute(older.id)
    vault.scanner.compare()

    assert vault.relations.bring_in_line() == []
    assert (vault.notes.find(older.id).superseded_by, vault.notes.find(newer.id).supersedes) != ("", ())


def test_nothing_is_heeded_where_no_one_changed_a_thing(vault: Vault) -> None:
    superseding(vault)
    vault.scanner.compare()

    assert vault.relations.bring_in_line() == []


def test_a_person_may_decide_a_conflict(vault: Vault) -> None:
    older, newer = superseding(vault)

    vault.relations.settle(newer.id, older.id, "neither")
    apart = vault.notes.find(newer.id).supersedes
    vault.relations.settle(newer.id, older.id, "replaces")

    assert apart == ()
    assert vault.notes.find(older.id).superseded_by == "the-press-runs-at-55-bar-feb26"
    assert vault.notes.find(newer.id).supersedes == ("the-press-runs-at-40-bar-feb26",)


def refused(quoted: str, said_to: str = "Edit (`orchard/queue.py`)", *, number: int = 1) -> Any:
    (made,) = drafts(fact(quoted, f"“{quoted}”, {SAID_TO_A_REFUSAL} {said_to}. I drop the queue's retry.", evidence=number))
    return replace(made, note=replace(made.note, kind=NoteKind.PREFERENCE, origin="user"))


OTHERS = (
    ("Keep the port at 80", "“Keep the port at 80”, {} Edit (`orchard/queue.py`). I drop the other one."),
    ("Name the rows", "“Name the rows, just not by number”, {} Edit (`orchard/queue.py`). I drop the numbers."),
    ("Just say which pear it is", "“Just say which pear it is”, {} Edit (`orchard/queue.py`). I drop the guess."),
    ("Calls of the editor", "A refused call of Edit (`orchard/queue.py`) was said to drop the queue."),
)


@pytest.mark.parametrize("quoted", ["Just drop the helper", "Just drop the retry of jobs", "No longer stop there"])
@pytest.mark.parametrize(("title", "body"), OTHERS)
def test_words_of_ours_around_a_refusal_are_not_shared_with_another_note(quoted: str, title: str, body: str) -> None:
    made = refused(quoted)
    other = old(title, body.format(SAID_TO_A_REFUSAL), kind=NoteKind.PREFERENCE)

    assert lifecycle.likeness(made.note, other, 0.4) == lifecycle.likeness(replace(made.note, body=quoted), other, 0.4)
    assert [type(action) for action in planned([made], other, cosine=0.75)] == [Create]


def test_a_refusal_replaces_nothing_that_no_one_has_seen() -> None:
    made = refused("Never retry a job in the queue, drop the retry of jobs")
    other = old("Retry a job in the queue", "Retry a job in the queue, never drop jobs.", kind=NoteKind.PREFERENCE)

    (action,) = planned([made], other, cosine=0.95, rulings={(made.note.id, other.id): "replaces"})

    assert isinstance(action, Create)
    assert action.note.conflicts == ("retry-a-job-in-the-queue-feb26",)
