"""One note made into several at its headings: every word of it is in one of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.note import Note, NoteKind
from kite_memory.vault.drafting import Division, NotePart, division, part_notes, remainder
from kite_memory.vault.notefile import render
from tests.vault.building import START

WHOLE = Note(
    id="01JD0000000000000000000001",
    path="projects/orchard-feb26.md",
    kind=NoteKind.FACT,
    title="The orchard",
    body="",
    created=START,
    updated=START,
    project="orchard",
    tags=("trees",),
    entities=("Marcheweg", "quince"),
    evidence=("claude-code:5e55-0001#00000001",),
    review="split",
)
SAID = (
    "Of trees.\n\n## Pears on quince stock\n\nThey drown.\n\n### Why\n\nFloods.\n\n## Gate\n\nAt Marcheweg.\n\n"
    "**Related:** [[pears]]"
)


@pytest.mark.parametrize(
    ("body", "divided"),
    [
        (
            SAID,
            Division(
                opening="Of trees.",
                parts=(
                    NotePart(heading="Pears on quince stock", text="They drown.\n\n### Why\n\nFloods."),
                    NotePart(heading="Gate", text="At Marcheweg."),
                ),
                closing="**Related:** [[pears]]",
            ),
        ),
        ("# One\n\na\n\n## Two\n\nb", None),
        ("a long story without any heading", None),
        ("```\n## not\n\na\n\n## one\n\nb\n```", None),
        (
            "# All\n\n## A ##\na\n## B\n\n## C\nc",
            Division(opening="# All", parts=(NotePart(heading="A", text="a\n## B"), NotePart(heading="C", text="c"))),
        ),
        (
            "## Why C#\na\n## F# \t##  \nb\n## #\nc",
            Division(
                opening="",
                parts=(NotePart(heading="Why C#", text="a"), NotePart(heading="F#", text="b"), NotePart(heading="#", text="c")),
            ),
        ),
    ],
)
def test_a_body_is_divided_at_its_highest_headings_of_which_there_are_several(body: str, divided: Division | None) -> None:
    assert division(body) == divided


LINES = st.sampled_from(["# A", "## B", "## C c c", "### D", "said", "", "```", "    code", "**Related:** [[x]]", "~~~", "`## E"])


@given(st.lists(LINES, max_size=16))
def test_no_line_is_lost_and_none_is_said_twice(lines: list[str]) -> None:
    body = "\n".join(lines).strip()

    divided = division(body)

    if divided is not None:
        again = [divided.opening, *(each for part in divided.parts for each in (part.heading, part.text)), divided.closing]
        listed = [line for text in again for line in text.split("\n") if line.strip()]
        assert sorted(line.lstrip("# ") for line in listed) == sorted(
            line.lstrip("# ") for line in body.split("\n") if line.strip()
        )


def test_what_held_for_the_whole_holds_for_its_parts() -> None:
    divided = division(SAID)
    assert divided is not None

    pears, gate = part_notes(replace(WHOLE, body=SAID), divided)

    assert (pears.title, gate.title) == ("Pears on quince stock", "The orchard: Gate")
    assert (gate.entities, pears.entities) == (("Marcheweg",), ("quince",))
    for part in (pears, gate):
        assert (part.project, part.tags, part.evidence, part.review) == ("orchard", ("trees",), WHOLE.evidence, "")
        assert part.body.endswith("**Related:** [[orchard-feb26]]")


SENTENCE = "Where the pears stand that were grafted on quince stock in the wet spring after the flood of the lower meadow"


@pytest.mark.parametrize("whole", ["The orchard", SENTENCE, "x" * 90])
@pytest.mark.parametrize(
    "headings", [("Gate", "Well"), ("g" * 70, "w" * 70), ("g" * 100, "w" * 100), (SENTENCE, f"{SENTENCE}, too")]
)
def test_every_heading_is_whole_in_the_title_of_its_part_or_above_its_text(whole: str, headings: tuple[str, str]) -> None:
    divided = Division(opening="", parts=tuple(NotePart(heading=heading, text="Said.") for heading in headings))

    made = part_notes(replace(WHOLE, title=whole), divided)

    for heading, part in zip(headings, made, strict=True):
        assert len(part.title) <= 90
        assert heading in part.title or part.body.startswith(f"# {heading}\n\nSaid.\n\n")
    assert len({(part.title, part.body) for part in made}) == 2


def test_a_short_heading_stands_behind_as_much_of_the_title_as_there_is_room_for() -> None:
    (part,) = part_notes(
        replace(WHOLE, title=SENTENCE), Division(opening="", parts=(NotePart(heading="Gate", text="At Marcheweg."),))
    )

    assert part.title == "Where the pears stand that were grafted on quince stock in the wet spring after…: Gate"
    assert part.body.startswith("At Marcheweg.")


def test_a_link_in_a_heading_is_a_link_in_the_part() -> None:
    (part,) = part_notes(WHOLE, Division(opening="", parts=(NotePart(heading="After [[Future Plan|the plan]]", text="Gate."),)))

    assert part.title == "After the plan"
    assert part.body.startswith("# After [[Future Plan|the plan]]\n\nGate.")


def test_a_whole_that_no_link_can_name_is_named_by_none() -> None:
    (part,) = part_notes(
        replace(WHOLE, path="C# tabs.md"), Division(opening="", parts=(NotePart(heading="Gate", text="At Marcheweg."),))
    )

    assert part.body == "At Marcheweg."


def test_the_whole_leads_to_its_parts_and_keeps_its_opening() -> None:
    divided = division(SAID)
    assert divided is not None
    made = part_notes(replace(WHOLE, body=SAID), divided)

    text = remainder(render(replace(WHOLE, body=SAID)), divided, made)

    assert "review: split" not in text and "\nid: 01JD0000000000000000000001\n" in text
    assert text.endswith(
        "---\nOf trees.\n\n- [[pears-on-quince-stock-feb26|Pears on quince stock]]\n"
        "- [[the-orchard-gate-feb26|The orchard: Gate]]\n\n**Related:** [[pears]]\n"
    )
