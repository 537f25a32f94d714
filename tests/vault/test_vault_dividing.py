"""One note made into several at its headings: every word of it is in one of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.model.note import Note, NoteKind
from kite_memory.vault.dividing import Division, Part, division, notes, remainder
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
                    Part(heading="Pears on quince stock", text="They drown.\n\n### Why\n\nFloods."),
                    Part(heading="Gate", text="At Marcheweg."),
                ),
                closing="**Related:** [[pears]]",
            ),
        ),
        ("# One\n\na\n\n## Two\n\nb", None),
        ("a long story without any heading", None),
        ("```\n## not\n\na\n\n## one\n\nb\n```", None),
        (
            "# All\n\n## A ##\na\n## B\n\n## C\nc",
            Division(opening="# All", parts=(Part(heading="A", text="a\n## B"), Part(heading="C", text="c"))),
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
        told = [line for text in again for line in text.split("\n") if line.strip()]
        assert sorted(line.lstrip("# ") for line in told) == sorted(line.lstrip("# ") for line in body.split("\n") if line.strip())


def test_what_held_for_the_whole_holds_for_its_parts() -> None:
    divided = division(SAID)
    assert divided is not None

    pears, gate = notes(replace(WHOLE, body=SAID), divided)

    assert (pears.title, gate.title) == ("Pears on quince stock", "The orchard: Gate")
    assert (gate.entities, pears.entities) == (("Marcheweg",), ("quince",))
    for part in (pears, gate):
        assert (part.project, part.tags, part.evidence, part.review) == ("orchard", ("trees",), WHOLE.evidence, "")
        assert part.body.endswith("**Related:** [[orchard-feb26]]")


def test_the_whole_leads_to_its_parts_and_keeps_its_opening() -> None:
    divided = division(SAID)
    assert divided is not None
    made = notes(replace(WHOLE, body=SAID), divided)

    text = remainder(render(replace(WHOLE, body=SAID)), divided, made)

    assert "review: split" not in text and "\nid: 01JD0000000000000000000001\n" in text
    assert text.endswith(
        "---\nOf trees.\n\n- [[pears-on-quince-stock-feb26|Pears on quince stock]]\n"
        "- [[the-orchard-gate-feb26|The orchard: Gate]]\n\n**Related:** [[pears]]\n"
    )
