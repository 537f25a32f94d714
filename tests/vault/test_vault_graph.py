"""Which notes lead to which."""

import json
import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.vault.graph import FORMATS, Graph, as_dot, as_html, as_json, as_mermaid, centrality, fits_mermaid, graph
from tests.vault.building import linked, note, orchard


def test_links_are_followed_by_file_and_by_title_and_never_into_nothing() -> None:
    drawn = graph(orchard())

    assert drawn.arrows == (
        ("projects/plant-pears-feb26.md", "projects/pears-feb26.md"),
        ("projects/prune-in-march-feb26.md", "projects/pears-feb26.md"),
    )


def test_a_note_does_not_lead_to_itself() -> None:
    assert graph([linked("Pears", "[[pears-feb26]] again")]).arrows == ()


def test_what_many_notes_lead_to_is_central() -> None:
    drawn = graph(orchard())
    rank = centrality(drawn)

    assert max(rank, key=lambda path: rank[path]) == "projects/pears-feb26.md"
    assert sum(rank.values()) == pytest.approx(1)


def test_the_neighbourhood_grows_a_link_at_a_time_in_both_directions() -> None:
    drawn = graph(orchard())

    assert drawn.neighbours("projects/plant-pears-feb26.md") == {"projects/plant-pears-feb26.md", "projects/pears-feb26.md"}
    assert "projects/prune-in-march-feb26.md" in drawn.neighbours("projects/plant-pears-feb26.md", 2)


_TITLES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(titles=st.lists(_TITLES, min_size=1, max_size=5))
def test_no_title_breaks_out_of_a_drawing(titles: list[str]) -> None:
    notes = [replace(note("x", "y"), title=title, path=f"{place}.md") for place, title in enumerate(titles)]
    drawn = Graph(notes=tuple(notes), arrows=())

    assert len(as_mermaid(drawn).splitlines()) == 1 + len(notes) + 7
    assert all(line.count('"') == 2 for line in as_mermaid(drawn).splitlines()[1 : 1 + len(notes)])
    assert as_html(drawn).count("<section") == len(notes)
    assert [each["path"] for each in json.loads(as_json(drawn))["notes"]] == [each.path for each in notes]


def test_markup_in_titles_is_text_in_a_page() -> None:
    drawn = graph([note("<script>alert(1)</script>", "x", path="a.md")])

    assert "<script" not in as_html(drawn)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_it() -> None:
    drawn = as_dot(graph([*orchard(), note('quo"te \\ back', "x", path="q.md")]))

    subprocess.run(["dot", "-Tsvg"], input=drawn.encode(), check=True, capture_output=True)


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_vault_can_be_drawn(format: str) -> None:
    assert FORMATS[format](graph([]))


def test_notes_that_lead_to_each_other_in_a_ring_are_all_alike() -> None:
    ring = [linked(f"Row {number}", f"Next is [[row-{(number + 1) % 5}-feb26]].") for number in range(5)]

    drawn = graph(ring)

    assert list(centrality(drawn).values()) == pytest.approx([0.2] * 5)
    assert len(drawn.neighbours(ring[0].path, 6)) == 5


_ARROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


@given(arrows=_ARROWS, dead=st.lists(st.integers(0, 9), max_size=5))
def test_whatever_leads_where_ranks_add_up_and_every_arrow_is_drawn_once(arrows: list[tuple[int, int]], dead: list[int]) -> None:
    said = {number: " ".join(f"[[row-{to}-feb26]]" for one, to in arrows if one == number) for number in range(10)}
    said |= {number: f"{said[number]} [[nowhere]] [[#heading]]" for number in dead}

    drawn = graph([linked(f"Row {number}", said[number]) for number in range(10)])

    assert set(drawn.arrows) == {(f"projects/row-{one}-feb26.md", f"projects/row-{to}-feb26.md") for one, to in arrows if one != to}
    assert len(drawn.arrows) == len(set(drawn.arrows))
    assert sum(centrality(drawn).values()) == pytest.approx(1)
    assert sum(drawn.inbound().values()) == len(drawn.arrows)


def test_a_part_of_a_graph_has_no_arrow_that_leads_out_of_it() -> None:
    drawn = graph(orchard()).within(["projects/plant-pears-feb26.md"])

    assert (len(drawn.notes), drawn.arrows) == (1, ())


def test_what_mermaid_would_not_draw_is_known() -> None:
    many = [linked(f"Row {number}", " ".join(f"[[row-{to}-feb26]]" for to in range(30))) for number in range(30)]

    assert fits_mermaid(graph(orchard()))
    assert not fits_mermaid(graph(many))
    assert not fits_mermaid(graph([linked(f"Row {number}", "x") for number in range(3_000)]))


def test_an_alias_leads_to_its_note() -> None:
    page = replace(linked("PostgreSQL", "A database."), aliases=("PG",))

    assert graph([page, linked("Jobs", "They wait in [[PG]].")]).arrows == (("projects/jobs-feb26.md", page.path),)
