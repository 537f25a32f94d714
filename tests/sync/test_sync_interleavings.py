"""Machines that write, rename, delete and exchange in any order come to the same, and lose nothing."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.errors import NoteNotFound
from tests.counts import examples
from tests.sync.homes import Home, homes, settle

_NAMES = ("laptop", "desk", "shed")
_SUBJECTS = ("pears keep", "plums dry", "sheep graze", "frost bites")

Step = tuple[int, str, int]
"""Which machine does what, to which note."""

_STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["remember", "write", "write", "rename", "delete", "sync", "sync", "sync"]),
        st.integers(0, len(_SUBJECTS) - 1),
    ),
    max_size=16,
)


@settings(max_examples=examples(40), deadline=None)
@given(machines=st.integers(2, 3), steps=_STEPS)
def test_nothing_is_lost_and_nothing_doubled(machines: int, steps: Sequence[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder, homes(Path(folder), *_NAMES[:machines]) as opened:
        said: dict[str, list[str]] = {}
        deleted: set[str] = set()
        notes: dict[int, str] = {}
        for number, (machine, doing, which) in enumerate(steps):
            home = opened[machine % machines]
            if doing == "sync":
                home.sync()
            elif which not in notes:
                sentence = f"In the orchard {_SUBJECTS[which]}, as said {number} times."
                notes[which] = home.remember(sentence)
                said[notes[which]] = [sentence]
            else:
                _change(home, doing, notes[which], number, said, deleted)

        settle(*opened)

        first, *others = (home.files() for home in opened)
        assert all(other == first for other in others)
        text = "\n".join(first.values())
        copies = [path for path in first if "conflicted copy" in path]
        for id in notes.values():
            if id in deleted:
                assert f"id: {id}\n" not in "\n".join(text for path, text in first.items() if path not in copies)
            else:
                assert [sentence for sentence in said[id] if sentence not in text] == []
        assert len(first) - len(copies) == len(set(notes.values()) - deleted)


def _change(home: Home, doing: str, id: str, number: int, said: dict[str, list[str]], deleted: set[str]) -> None:
    try:
        if doing == "write":
            sentence = f"Sentence {number} was written on the {home.name}."
            home.write(id, sentence)
            said[id].append(sentence)
        elif doing == "rename":
            home.rename(id, f"note {number}")
        elif doing == "delete":
            home.services.vault.edits.forget(id)
            deleted.add(id)
    except NoteNotFound:
        pass  # it has not come here yet, or was deleted
