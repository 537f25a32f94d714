from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.model.note import Entry, Scope
from kite_memory.recall.catalogue import Catalogue, Columns
from tests.counts import examples
from tests.recall.notes import note

Step = tuple[str, int, int]
"""What is done to which note, and what it says from then on."""

STEPS = st.lists(st.tuples(st.sampled_from(["put", "remove", "look"]), st.integers(0, 5), st.integers(0, 3)), max_size=25)


def carry_out(catalogue: Catalogue, steps: Sequence[Step]) -> None:
    with catalogue.writing() as writer:
        for what, which, words in steps:
            path = f"facts/{which}.md"
            if what == "put":
                replaced = ("0",) if words == 3 and which else ()
                written = note(f"{which}", f"Note {which}", f"It says {words}. " * 100 * words, supersedes=replaced)
                Catalogue.put(writer, written, Entry(path=path, size=1, mtime_ns=1))
            elif what == "remove":
                Catalogue.remove(writer, path)


def shown(columns: Columns) -> list[object]:
    tables = (columns.notes, columns.passages, columns.first_passage, columns.replaced)
    return [columns.generation, *(table.tolist() for table in tables)]


@given(STEPS)
@settings(deadline=None, max_examples=examples(60))
def test_columns_read_on_from_earlier_ones_are_those_read_anew(steps: list[Step]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        catalogue = Catalogue(Path(folder) / "catalogue.db")
        columns = catalogue.columns()
        for step in steps:
            carry_out(catalogue, [step])
            if step[0] == "look":
                columns = catalogue.columns(columns)

                assert shown(columns) == shown(catalogue.columns())
        assert shown(catalogue.columns(columns)) == shown(catalogue.columns())
        catalogue.close()


def test_anyone_who_looks_again_after_very_long_reads_it_all_anew(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "catalogue.db")
    carry_out(catalogue, [("put", 0, 1), ("put", 1, 1)])
    columns = catalogue.columns()
    carry_out(catalogue, [("remove", 0, 0)])
    for turn in range(1100):
        carry_out(catalogue, [("put", 2, turn % 2)])

    assert shown(catalogue.columns(columns)) == shown(catalogue.columns())
    with catalogue.reading() as connection:
        assert connection.execute("SELECT count(*) FROM gone").fetchone()[0] <= 1000
    catalogue.close()


OF_PROJECTS = (("a", "plum", Scope.PROJECT, 1), ("b", "", Scope.GLOBAL, 900), ("c", "pear", Scope.PROJECT, 2))


def test_notes_of_a_project_and_of_none_are_distinguished_from_others_with_their_passages(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "catalogue.db")
    with catalogue.writing() as writer:
        for id, project, scope, words in OF_PROJECTS:
            written = note(id, f"Note {id}", "It says more. " * words, project=project, scope=scope)
            Catalogue.put(writer, written, Entry(path=written.path, size=1, mtime_ns=1))
    columns = catalogue.columns()

    near = columns.within(catalogue.project_number("plum"))

    assert near.tolist() == [True, True, False]
    counts = np.diff(columns.first_passage, append=len(columns.passages))
    assert counts[1] > 1
    assert columns.passages_of(near).tolist() == [True] * int(counts[0] + counts[1]) + [False] * int(counts[2])
    catalogue.close()
