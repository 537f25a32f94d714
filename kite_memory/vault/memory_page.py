"""`MEMORY.md`: the vault on one page, made only from its notes, so that an unchanged vault gives the same page.

Our part of it stands between two marks, and the second holds a hash of what stood there when we wrote it. So any machine that
shares the vault can detect whether it was edited in between, and a lost page can be made again.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.text.quoting import quoted
from kite_memory.vault import links
from kite_memory.vault.graph import Graph, deserves_a_page, is_place_in_code, stem
from kite_memory.vault.lifecycle import sessions_of
from kite_memory.vault.links import tame_line, titled
from kite_memory.vault.usefulness import is_cut, is_worth_a_line, names_a_choice, says_something_whole, statement, strength
from kite_memory.vault.wording import digest, entity_key, one_line, stem_key, title_key, words

PAGE = "MEMORY.md"
BEGIN = "<!-- kmem: made from the notes below; write above or under these two lines -->"
_END = re.compile(r"<!-- kmem: end ([0-9a-f]{12}) -->")

MOST_LINES = 200
"""Of the whole page: what an agent reads at its start has to be short."""

_CONCEPTS, _DECISIONS, _QUESTIONS, _PREFERENCES, _INSIGHTS, _FACTS = 15, 50, 10, 25, 20, 20
_PER_PART = 3
_LEAST_SPEAKING = 3
_SAID = 320
_TITLE = 160
_HEADING = "# Memory\n\n"
_REPEATED, _TELLING = 0.75, 4
_FEW = 3
"""Good notes, below which others that are at least whole are shown too."""
_ENOUGH, _FILLS, _TO_KEEP = 8, 1.3, 3
"""Lines of a part up to which a young vault's whole statements fill it, their strength, and importance of what a person asked to
keep.
"""
_FRAME = 5
"""Lines of a page beside its content: its heading, the two marks, and blank lines around them."""

_UNLINKABLE = re.compile(r"[#^|\[\]]")
"""Characters of a file's name that a link cannot hold."""

Weight = tuple[float, int, float, str]
"""The least comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """Result where the text between the two marks was edited: the page is left alone."""


def page(graph: Graph, now: datetime, *, says: Callable[[str], str] = lambda said: said) -> str:
    """Return the content of the page, with its marks. ``now`` only decides what has expired.

    ``says`` maps a note's sentence to the wording shown on the page.
    """
    inbound = graph.inbound()
    current = [note for note in graph.notes if _is_current(note, now)]
    rendered = _Lines(Counter(stem_key(stem(note)) for note in graph.notes), says)

    def weight(note: Note) -> Weight:
        return (-strength(note), -inbound[note.path], -note.created.timestamp(), note.path)

    often = _sessions([note for note in current if note.kind is NoteKind.PREFERENCE])

    def best(kind: NoteKind, most: int) -> list[Note]:
        of_kind = [note for note in current if note.kind is kind]
        of_kind.sort(key=lambda note: (-often.get(note.path, 1), weight(note)))
        worth = [note for note in of_kind if is_worth_a_line(note, sessions=often.get(note.path, 1))]
        kept = [note for note in of_kind if note.origin == "user" and note.importance >= _TO_KEEP and not is_cut(note)]
        others = [note for note in of_kind if strength(note) >= _FILLS and says_something_whole(note) and not is_cut(note)]
        found = list(_without_repetitions(dict.fromkeys([*worth, *kept])))[:most]
        return found if len(found) >= _ENOUGH else list(_without_repetitions(dict.fromkeys([*found, *others])))[:_ENOUGH]

    def asked(note: Note) -> str:
        return f"{rendered.line(note)} (in {often[note.path]} sessions)" if often[note.path] > 1 else rendered.line(note)

    speaking = _speaking(current)
    concepts = [note for note in current if note.kind is NoteKind.ENTITY and speaking[note.path] >= _LEAST_SPEAKING]
    concepts = [note for note in concepts if not is_place_in_code(note.title)]
    concepts.sort(key=lambda note: (-speaking[note.path], note.path))
    parts = {
        "Main subjects": [f"- {', '.join(f'{rendered.link(note)} ({speaking[note.path]})' for note in concepts[:_CONCEPTS])}"]
        if concepts
        else [],
        "Preferences": [asked(note) for note in best(NoteKind.PREFERENCE, _PREFERENCES)],
        "Decisions": [],
        "Insights": [rendered.line(note) for note in best(NoteKind.INSIGHT, _INSIGHTS)],
        "Facts": [rendered.line(note) for note in best(NoteKind.FACT, _FACTS)],
        "Open questions": [rendered.line(note) for note in best(NoteKind.QUESTION, _QUESTIONS)],
    }
    room = MOST_LINES - _FRAME - sum(len(lines) + _PER_PART for lines in parts.values() if lines) - _PER_PART
    parts["Decisions"] = _by_project(best(NoteKind.DECISION, _DECISIONS), rendered, room)
    return framed([line for heading, lines in parts.items() if lines for line in ("", f"## {heading}", "", *lines)])


def sentences(graph: Graph, now: datetime) -> list[str]:
    """Return the sentences that stand on the page, as the notes have them."""
    found: list[str] = []

    def heard(said: str) -> str:
        found.append(said)
        return said

    page(graph, now, says=heard)
    return found


def best(notes: Iterable[Note], most: int) -> list[Note]:
    """Return the notes to show first to a person: of those that are worth a line the most important, then approved plans.

    What a person said or chose comes before what an agent found out. Fewer than ``most`` are returned rather than poor ones.
    """
    whole = [note for note in notes if len(note.title) <= _TITLE and not is_cut(note)]
    worth = [(is_worth_a_line(note), note) for note in whole]
    chosen = [(first, note) for first, note in worth if first or names_a_choice(note)]
    if len(chosen) < _FEW:
        chosen += [(first, note) for first, note in worth if (first, note) not in chosen and says_something_whole(note)]

    def rank(each: tuple[bool, Note]) -> tuple[bool, int, bool, bool, float, float, str]:
        first, note = each
        own = note.origin == "user"
        settled = note.kind in (NoteKind.DECISION, NoteKind.PREFERENCE)
        return (not first, -note.importance, not own, not settled, -strength(note), -note.created.timestamp(), note.path)

    return list(_without_repetitions(note for _, note in sorted(chosen, key=rank)))[:most]


def framed(lines: Sequence[str]) -> str:
    """Return the lines between the marks."""
    inner = "\n".join([*lines, "", ""])
    return f"{BEGIN}\n{inner}<!-- kmem: end {_seal(inner)} -->"


def merged(before: str, made: str, *, ours: str = "", replace: bool = False) -> str | Edited:
    """Return the page with ``made`` between its marks; all around them belongs to the person. Line ends are as they are there.

    What stands between is as we wrote it if its hash matches, or if it is ``ours``, which we know to have written. Anything else is
    only overwritten with ``replace``.
    """
    if not before.strip():
        return f"{_HEADING}{made}\n"
    newline = "\r\n" if "\r\n" in before else "\n"
    made = made.replace("\n", newline)
    start = before.find(BEGIN)
    if start < 0:
        return f"{before.rstrip()}{newline}{newline}{made}{newline}"
    end = _END.search(before, start)
    if end is None:  # the second mark was removed, so the end of our part is unknown: all of it stays
        return before[:start] + made + before[start + len(BEGIN) :] if replace else Edited()
    inner = before[start + len(BEGIN) : end.start()].replace("\r\n", "\n").removeprefix("\n")
    known = _seal(inner) == end[1] or before[start : end.end()].replace("\r\n", "\n") == ours
    return before[:start] + made + before[end.end() :] if known or replace else Edited()


def _seal(inner: str) -> str:
    return digest(inner)[:12]


def _is_current(note: Note, now: datetime) -> bool:
    """Return whether a note holds now, in every session and on every branch."""
    return (
        note.status is NoteStatus.ACCEPTED
        and note.scope is not Scope.SESSION
        and not note.superseded_by
        and not note.branch
        and (note.expires is None or note.expires > now)
    )


def _speaking(notes: Sequence[Note]) -> Counter[str]:
    """Return how many notes name the subject of each page, whether they link to it or not."""
    pages = [note for note in notes if note.kind is NoteKind.ENTITY and deserves_a_page(note.title)]
    of = {entity_key(name): page.path for page in pages for name in (page.title, *page.aliases)}
    at = {stem_key(stem(page)): page.path for page in pages}
    found: Counter[str] = Counter()
    for note in notes:
        if note.kind is not NoteKind.ENTITY:
            named = {of.get(entity_key(name), "") for name in (*note.entities, *note.links)}
            named |= {at.get(stem_key(link), "") for link in note.links}
            found.update(named - {""})
    return found


def _sessions(notes: Sequence[Note]) -> dict[str, int]:
    """Return in how many sessions each note was said, be it in notes of their own."""
    said = [(note, _telling(note), sessions_of(note.evidence)) for note in notes]
    found: dict[str, int] = {}
    for note, own, sessions in said:
        alike = (there for other, theirs, there in said if other.project == note.project and _repeats(own, theirs))
        found[note.path] = len(sessions.union(*alike))
    return found


def _telling(note: Note) -> frozenset[str]:
    return frozenset(word for word in words(note.title) if len(word) >= _TELLING or word.isdigit())


def _without_repetitions(notes: Iterable[Note]) -> Iterator[Note]:
    """Yield the notes without those whose title says little that an earlier one of the project does not."""
    shown: dict[str, list[frozenset[str]]] = {}
    for note in notes:
        said = _telling(note)
        before = shown.setdefault(note.project, [])
        if not any(_repeats(said, other) for other in before):
            before.append(said)
            yield note


def _repeats(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether most words of the shorter are in the longer; another figure is another matter."""
    if {word for word in one ^ other if word.isdigit()}:
        return False
    return bool(one and other) and len(one & other) >= _REPEATED * min(len(one), len(other))


def _by_project(notes: Iterable[Note], rendered: "_Lines", room: int) -> list[str]:
    """Return lines with the strongest project first, and within it the strongest decision; as many as there is ``room`` for."""
    projects: dict[str, list[Note]] = {}
    for note in notes:
        if room - len(projects) - (note.project not in projects) < 1:
            break
        projects.setdefault(note.project, []).append(note)
        room -= 1
    return [line for project, those in projects.items() for line in _of_project(project, those, rendered)]


def _of_project(project: str, notes: Sequence[Note], rendered: "_Lines") -> Iterator[str]:
    yield f"- **{_plain(project, _TITLE) or 'everywhere'}**"
    yield from (f"  {rendered.line(note)}" for note in notes)


class _Lines:
    """Renders a note as a line, by a link that leads to it and to no other."""

    def __init__(self, stems: Mapping[str, int], says: Callable[[str], str]) -> None:
        self._stems = stems
        self._says = says

    def line(self, note: Note) -> str:
        said = _plain(statement(note), _SAID)
        title, sentence = title_key(note.title), title_key(said)
        if sentence.startswith(title) and title:
            return f"- {self.link(note, said.rstrip('.'))}"
        if not said or title.startswith(sentence) or title in sentence:
            return f"- {self.link(note)}"
        better = self._says(said)
        return f"- {self.link(note)}: {said if better == said else _plain(better, _SAID)}"

    def link(self, note: Note, label: str = "") -> str:
        title = _plain(label or note.title, _SAID if label else _TITLE)
        target = stem(note) if self._stems[stem_key(stem(note))] == 1 else note.path.removesuffix(".md")
        return title if _UNLINKABLE.search(target) or links.target_of(target) != target else titled(target, title)


def _plain(text: str, limit: int) -> str:
    """Return a text without links and markup of its own, so that it cannot change the page's structure."""
    line = one_line(quoted(links.unlinked(one_line(text)))).replace("**", "").replace("-->", "")
    return tame_line(line, limit)
