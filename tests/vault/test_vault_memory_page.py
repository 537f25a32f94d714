"""`MEMORY.md`: the vault on one page."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.note import NoteKind, NoteStatus
from kite_memory.vault import links
from kite_memory.vault.graph import graph
from kite_memory.vault.links import Resolver
from kite_memory.vault.memory_page import BEGIN, MOST_LINES, Edited, best, framed, merged, page
from kite_memory.vault.usefulness import asked_and_said, questions_about
from tests.vault.building import START, linked, orchard

ONE, TWO = framed(["", "one"]), framed(["", "two"])


def test_the_page_shows_concepts_decisions_preferences_and_questions() -> None:
    more = [
        linked("Plant pears instead of apples", "Because [[pears-feb26|pears]] bear frost.", kind=NoteKind.DECISION, importance=3),
        linked("Never prune pears after March", "They bleed.", kind=NoteKind.PREFERENCE),
        linked("Pears need a second tree because they are not self-fertile", "So it is.", kind=NoteKind.FACT),
    ]
    more.append(linked("Which rootstock suits the wet field", "Quince or pear?", kind=NoteKind.QUESTION))
    made = page(graph([*orchard(), *(replace(each, entities=("pears",)) for each in more)]), START)

    assert "- [[pears-feb26|Pears]] (6)" in made
    told = "- [[plant-pears-instead-of-apples-feb26|Plant pears instead of apples]]: Because pears bear frost."
    assert f"- **orchard**\n  {told}" in made
    assert "Plant pears]]" not in made
    assert made.index("## Preferences") < made.index("## Decisions") < made.index("## Facts") < made.index("## Open questions")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("The person: “oh no. can we?” Rows across the slope are never watered evenly. And so on.", "watered evenly."),
        ("You're right. I moved it. Rows wash away across the slope.", ": Rows wash away across the slope."),
        ("They wash away. All tests passed now. Is it so?", "slope]]"),
        ("Rows are never planted across the slope because hail washes `Row.earth` away.", "hail washes 'Row.earth' away]]"),
        ("It " + "really " * 60 + "calls `git push`. Not e`ven so", "slope]]"),
    ],
)
def test_a_note_is_shown_with_a_sentence_that_is_whole_and_stands_alone(body: str, said: str) -> None:
    note = replace(linked("Rows are never planted across the slope", body, kind=NoteKind.DECISION), origin="assistant")

    (line,) = [line for line in page(graph([note]), START).splitlines() if "[[" in line]

    assert line.endswith(said)


@pytest.mark.parametrize(
    ("kind", "title", "body", "given", "shown"),
    [
        ("preference", "Never push on a Friday", "“never push on a Friday”", {}, True),
        ("preference", "Push it to the mill", "“push it to the mill”", {}, False),
        ("preference", "Push to the mill first", "“push to the mill first”", {"evidence": ("claude-code:a#1", "codex:b#2")}, True),
        ("preference", "Answer in British English", "So.", {"origin": "user", "evidence": ()}, True),
        ("preference", "Answer in British English", "So.", {"origin": "user", "triggers": ("writing",)}, True),
        ("preference", "Don't forget a comment on #91", "“…”", {}, False),
        ("decision", "Add a shed to the tree row", "From an approved plan: A shed is missing. Paint it", {}, False),
        ("decision", "Add a shed", "From an approved plan: The shed faces east since hail comes west. Paint it", {}, True),
        ("decision", "Quince over seedlings for pears", "Quince it is.", {}, True),
        ("decision", "The beam is painted — red, white and blue instead of green", "So.", {}, True),
        ("decision", "Bigger beams — red, white and blue instead of green", "So.", {}, False),
        ("fact", "The press is not running now because its belt is worn", "So.", {}, False),
        ("fact", "The press cannot run in frost because of this limitation", "So.", {}, False),
        ("fact", "The `press` takes pears by the crate", "So.", {}, True),
        ("insight", "Fix the press because it squeaks", "So.", {}, False),
        ("fact", "The mill's stamp is always in local time because of its clock", "So.", {}, False),
        ("fact", "The stamp of `mill.log` is always in local time because of its clock", "So.", {}, True),
        ("fact", "The stamp is in local time", "So.", {"origin": "user", "evidence": ()}, True),
        ("insight", "`mill plan` takes the option only because its parser is shared", "So.", {}, False),
        ("insight", "`mill plan` cannot take wet pears because its belt slips", "So.", {}, True),
        ("insight", "`mill plan` needs its belt dry, so it stops", "So.", {}, False),
        ("insight", "Use `mill dry` instead of the oven", "So.", {}, True),
        ("fact", "`Mill.turn()` returns the turns of an hour", "So.", {}, False),
        ("fact", "Pears only ripen unless they hang in shade", "So.", {}, False),
        ("fact", "`mill.toml` only holds what its owner wrote", "So.", {}, True),
        ("fact", "`mill.toml` is better than a second file here", "So.", {}, False),
        ("fact", "`mill.port` would never be open in winter", "So.", {}, False),
        ("fact", "Bootstrap of `mill` without a belt, never with one", "So.", {}, False),
        ("fact", "Returns never more than `mill.most` pears", "So.", {}, False),
        ("fact", "`mill.wheel` is deprecated since Millwright 3", "So.", {}, True),
        ("decision", "Grinding by `mill` for wet pears", "The wheel is best. Grinding by `mill` never wets pears.", {}, False),
        ("decision", "Never wet the pears for `mill`", "So.", {}, True),
        (
            "decision",
            "Two mills",
            "From an approved plan: When both mills turn, `mill.toml` becomes the source of truth.",
            {},
            True,
        ),
        ("preference", "Send the pears without crates", "“send the pears without crates”", {}, False),
        ("preference", "Always give it to me without line breaks", "“always give it to me without line breaks”", {}, True),
        ("preference", "Give it to me without line breaks, always", "“give it to me without line breaks, always”", {}, False),
    ],
)
def test_only_what_lasts_and_stands_alone_is_worth_a_line(
    kind: str, title: str, body: str, given: dict[str, Any], shown: bool
) -> None:
    note = replace(linked(title, body, kind=NoteKind(kind)), **{"origin": "assistant", **given})

    assert ("[[" in page(graph([note]), START)) == shown


def test_a_person_is_first_shown_what_they_chose_and_plans_that_say_what_was_to_be_done() -> None:
    plan = "From an approved plan: The pears freeze in March. Fleece keeps the frost off."
    worth = linked("Plant pears instead of apples because they bear frost", "So be it.", kind=NoteKind.DECISION)
    planned = linked("Cover the Pears in March", plan, kind=NoteKind.DECISION)
    ordered = linked("Add Fleece over the Pears in March", plan, kind=NoteKind.DECISION)
    momentary = linked("Push it to the mill", "“push it to the mill”", kind=NoteKind.PREFERENCE)
    fragment = linked("Add fleece (over the pears in", plan, kind=NoteKind.DECISION)
    fertile = "Pears need a second tree because they are not self-fertile"
    cut = linked(fertile, f"{fertile} (as apples) in March.", kind=NoteKind.FACT)
    status = linked("The pears were pruned and all tests passed", "Done.", kind=NoteKind.FACT)

    shown = best([status, momentary, fragment, cut, planned, ordered, worth], 5)

    assert shown == [worth, ordered]
    assert best([status, momentary], 5) == []
    for rest in (" (as apples).", ", unlike quinces.", " because of their pollen."):
        assert best([replace(cut, body=f"{fertile}{rest}")], 5)


def test_of_a_young_memory_whole_sentences_about_something_named_are_shown() -> None:
    whole = linked("The gardener's script runs `git fetch` for each of its trees", "So it is.", kind=NoteKind.FACT)
    unnamed = linked("The order of the trees in their rows is obvious by now", "So it is.", kind=NoteKind.FACT)
    worth = [
        linked(f"{name} need a second tree because they are not self-fertile", "So it is.", kind=NoteKind.FACT)
        for name in ("Pears", "Sweet cherries of the south", "Kiwis")
    ]

    assert best([unnamed, whole], 5) == [whole]
    assert best([unnamed, whole, *worth[:1]], 5) == [worth[0], whole]
    assert whole not in best([whole, *worth], 5)


@pytest.mark.parametrize(
    ("kind", "title", "body", "questions"),
    [
        (
            "decision",
            "Pears instead of apples for the orchard",
            "They bear frost.",
            ["why Pears instead of apples for the orchard?"],
        ),
        ("decision", "Use `fleece` because it is warm", "It is.", []),
        ("decision", "Use `fleece` over the pears because it is warm", "It is.", ["why did we use fleece over the pears?"]),
        ("preference", "Always prune from the south", "“always”", ["why do we always prune from the south?"]),
        (
            "decision",
            "Add Fleece Over the Pears of Anna (max 10 m)",
            "For Anna, who likes pears, it is warm.",
            ["why did we add fleece over the pears of Anna?"],
        ),
        (
            "fact",
            "Pears freeze in March",
            "The person: “ok. why do pears freeze in March?” They bud early.",
            ["why do pears freeze in March?"],
        ),
        ("fact", "Pears freeze in March", "The person: “why does this freeze in March again?” They bud early.", []),
        ("fact", "Pears freeze in March", "The person: “can you prune the pears in March?” Pruned.", []),
        (
            "fact",
            "Pears freeze in March",
            "The person: “is `rm -rf $HOME` a way to freeze pears?” No.",
            ["is rm -rf HOME a way to freeze pears?"],
        ),
    ],
)
def test_a_note_is_asked_about_as_its_owner_would(kind: str, title: str, body: str, questions: list[str]) -> None:
    assert list(questions_about(linked(title, body, kind=NoteKind(kind)))) == questions


def test_what_was_asked_is_told_from_what_was_said() -> None:
    assert asked_and_said("The person: “Why? Tell me.” Because it freezes.") == (
        "The person: “Why? Tell me.”",
        "Because it freezes.",
    )
    assert asked_and_said("From an approved plan: It freezes.") == ("From an approved plan:", "It freezes.")
    assert asked_and_said("The person: “Prune it.”") == ("", "The person: “Prune it.”")
    assert asked_and_said("It freezes.") == ("", "It freezes.")


YOUNG = ["The till has an Atom without a second core, so `hash_all` runs at 35 MB/s"]
WORTH = [
    f"The {what} `{name}` is never {done} because of its {why}"
    for what, name, done, why in (
        ("row", "north_3", "watered", "clay"),
        ("pump", "pump_a", "oiled", "bearing"),
        ("crate", "crate_7", "stacked", "handles"),
        ("printer", "label_1", "paused", "ribbon"),
        ("ladder", "ladder_2", "painted", "rungs"),
        ("vat", "oak_5", "painted", "taste"),
        ("scanner", "scan_9", "rebooted", "battery"),
        ("lorry", "lorry_4", "washed", "canvas"),
        ("kiln", "kiln_8", "opened", "glaze"),
    )
]


def test_of_a_young_vault_whole_statements_are_on_the_page() -> None:
    young = [linked(title, "So it is.", kind=NoteKind.INSIGHT) for title in (*YOUNG, "The other one: see above, it was fixed")]
    grown = [linked(title, "So it is.", kind=NoteKind.INSIGHT) for title in WORTH]

    made, later = (page(graph([replace(each, origin="assistant") for each in notes]), START) for notes in (young, [*young, *grown]))

    assert made.count("[[") == len(YOUNG) and "see above" not in made
    assert later.count("[[") == len(WORTH) and "Atom" not in later


@pytest.mark.parametrize(("given", "shown"), [({"importance": 3}, True), ({}, False), ({"importance": 3, "origin": "tool"}, False)])
def test_what_a_person_asked_to_keep_is_on_the_page(given: dict[str, Any], shown: bool) -> None:
    asked = replace(linked("Write the changelog entry before the code", "So it is.", kind=NoteKind.PREFERENCE), origin="user")

    assert ("changelog" in page(graph([replace(asked, **given)]), START)) == shown


def test_a_file_is_no_concept() -> None:
    notes = [replace(linked(f"Row {number}", "So.", kind=NoteKind.FACT), entities=("pears/press.py",)) for number in range(9)]
    page_of_it = replace(linked("pears/press.py", "So.", kind=NoteKind.ENTITY), links=())

    assert "press.py" not in page(graph([*notes, page_of_it]), START)


def test_what_a_person_asks_for_in_several_sessions_is_a_preference_and_says_so() -> None:
    titles = ("Weigh the pears and update the ledger", "Weigh these pears and update the ledger", "Update the ledger")
    said = [linked(title, "So.", kind=NoteKind.PREFERENCE) for title in titles]
    often = [replace(note, evidence=(f"claude-code:{number}#1",)) for number, note in enumerate(said)]
    once = [replace(note, evidence=("claude-code:0#1",)) for note in said]

    assert page(graph(often), START).count("(in 3 sessions)") == 1
    assert "[[" not in page(graph(once), START)


@pytest.mark.parametrize("label", ["Medium", "Ruled out"])
def test_a_sentence_with_a_rank_is_not_shown(label: str) -> None:
    body = f"{label}: `mill.toml` must be read before the wheel turns, because it names the wheel."
    note = replace(linked("`mill.toml` must be read first, never the wheel", body, kind=NoteKind.FACT), origin="assistant")

    assert label not in page(graph([note]), START)


def test_of_lines_that_repeat_each_other_one_is_shown() -> None:
    titles = ("Never water the quince at noon", "Never water quince trees at noon", "Never water the quince after 8")
    notes = [linked(title, "So.", kind=NoteKind.PREFERENCE) for title in titles]

    assert sum("[[" in line for line in page(graph(notes), START).splitlines()) == 2


def test_the_page_does_not_depend_on_the_order_of_the_notes() -> None:
    assert page(graph(orchard()), START) == page(graph(orchard()[::-1]), START)


@pytest.mark.parametrize("status", [NoteStatus.SUPERSEDED, NoteStatus.PROPOSED, NoteStatus.REJECTED, NoteStatus.MUTED])
def test_only_what_holds_is_on_the_page(status: NoteStatus) -> None:
    gone = [replace(each, status=status) for each in orchard()]

    assert "[[" not in page(graph(gone), START)


@pytest.mark.parametrize("change", [{"expires": START - timedelta(days=1)}, {"branch": "new-press"}])
def test_what_has_expired_or_holds_on_a_branch_alone_is_not_on_the_page(change: dict[str, Any]) -> None:
    old = [replace(each, **change) for each in orchard()]

    assert "[[" not in page(graph(old), START)


def test_the_page_is_short_however_large_the_vault() -> None:
    many = [linked(f"Row {number} of pears", "Planted.", kind=kind) for kind in NoteKind for number in range(200)]

    assert len(page(graph(many), START).splitlines()) <= MOST_LINES


def test_a_note_cannot_end_the_page() -> None:
    end = framed([]).splitlines()[-1]

    made = page(graph([linked(f"Evil {end}", f"{end} [[x]] **bold**", kind=NoteKind.DECISION)]), START)

    assert made.count("<!-- kmem: end ") == 1


def test_text_around_the_marks_stays() -> None:
    first = merged("", ONE)
    assert isinstance(first, str)

    second = merged(f"mine above\n{first}\nmine below\n", TWO)

    assert second == f"mine above\n# Memory\n\n{TWO}\n\nmine below\n"


def test_a_page_without_marks_is_added_to() -> None:
    assert merged("# My own page\n", ONE) == f"# My own page\n\n{ONE}\n"


def test_what_a_person_wrote_between_the_marks_is_not_overwritten_unless_they_let_it_go() -> None:
    edited = f"{ONE}\n".replace("one", "one\nmine")

    assert merged(edited, TWO) == Edited()
    assert merged(edited, TWO, replace=True) == f"{TWO}\n"


def test_another_machine_that_shares_the_vault_may_rewrite_the_page() -> None:
    assert merged(f"{ONE}\n", TWO, ours="what that machine wrote last") == f"{TWO}\n"


def test_a_page_whose_second_mark_is_gone_is_left_alone() -> None:
    unended = f"{BEGIN}\n\none\nmine\n"

    assert merged(unended, TWO) == Edited()
    assert merged(unended, TWO, replace=True) == f"{TWO}\n\none\nmine\n"


def test_a_stray_mark_does_not_make_the_page_grow() -> None:
    stray = f"{ONE.splitlines()[-1]}\nmine\n{ONE}\n"

    second = merged(stray, TWO)

    assert isinstance(second, str)
    assert merged(second, TWO) == second
    assert second.count(BEGIN) == 1


def test_line_ends_are_as_they_are_there() -> None:
    first = merged("# Mine\r\n", ONE)
    assert isinstance(first, str)

    second = merged(first, TWO)

    assert isinstance(second, str)
    assert second.count("\n") == second.count("\r\n") == first.count("\n")
    assert merged(second, TWO) == second


_AROUND = st.lists(st.sampled_from(["a", " ", "\n", "#", "- ", "<!-- kmem: end", "<!-- x -->", "é"]), max_size=12).map("".join)
_LINES = st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=20), max_size=6)


@given(above=_AROUND, below=_AROUND, one=_LINES, two=_LINES)
def test_a_page_is_rewritten_between_its_marks_and_nowhere_else(above: str, below: str, one: list[str], two: list[str]) -> None:
    written = f"{above}{framed(one)}{below}"

    again = merged(written, framed(two))

    assert again == f"{above}{framed(two)}{below}"
    assert merged(again, framed(two)) == again


@given(stems=st.lists(st.sampled_from(["a", "A", "b#c", "d|e", "f^g", "[h]", "i j", "ä", "k.md"]), min_size=1, max_size=6))
def test_every_link_of_the_page_leads_to_the_note_that_it_names(stems: list[str]) -> None:
    notes = [
        replace(linked(f"Rows must never be planted before week {at}", "Said.", kind=NoteKind.DECISION), path=f"f{at}/{stem}.md")
        for at, stem in enumerate(stems)
    ]
    resolver = Resolver(notes)

    made = page(graph(notes), START)

    assert all(f"before week {at}" in made for at in range(len(stems)))
    for link in links.find(made):
        at = int(link.label.rpartition(" ")[2])
        assert resolver.follow(link.target, by_file_only=True) == f"f{at}/{stems[at]}.md"


def test_a_full_page_with_its_heading_has_room_for_every_part() -> None:
    many = [
        replace(linked(f"Row {number} of {kind} is never watered", "Planted.", kind=kind), project=f"field {number % 40}")
        for kind in NoteKind
        for number in range(100)
    ]
    made = merged("", page(graph(many), START))

    assert isinstance(made, str)
    assert len(made.splitlines()) <= MOST_LINES
    assert all(f"## {heading}" in made for heading in ("Preferences", "Decisions", "Insights", "Facts", "Open questions"))
