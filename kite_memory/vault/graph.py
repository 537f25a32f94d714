"""Links between notes and their centrality, and which names are distinctive enough for a page of their own."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from kite_memory.model.note import Note
from kite_memory.text import lazy_regex
from kite_memory.text.display import clip
from kite_memory.text.quoting import plain
from kite_memory.vault.links import Resolver
from kite_memory.vault.wording import COMMON_WORDS, one_line

_COMMANDS = frozenset(
    re.findall(
        r"\S+",
        """
        alter apt apt-get assert async await awk bash brew bun bundle cargo cat cd chmod chown composer conda const cp
        create curl cut def defer delete deno docker dotnet drop echo eval exec export find for from func gem gh git go
        golangci-lint gradle grep head helm if import insert java jq kubectl less let ln ls make mkdir mv mvn mypy new node
        not npm npx perl php pip pip3 pipx pnpm podman poetry private psql public pytest python python3 rails raise rake
        return rm rsync ruby ruff rustup scp sed select sh sleep sort ssh static sudo tail tar tee terraform throw time
        touch tox tsc type update uv uvx var wc wget which while xargs yarn zip zsh
        """,
    )
)
"""Words that come first in a command line or in code, not in a name of several words."""

_SHELL = frozenset(
    re.findall(
        r"\S+",
        """
        awk bash cat cd chmod chown cp curl cut echo eval export find grep head kill less ln ls mkdir mv rm rsync scp sed sh sleep
        sort ssh sudo tail tar tee touch uniq unzip wc wget which xargs zip zsh
        """,
    )
)
"""Common shell commands."""

_BRANCH = lazy_regex(
    r"(?:refs|origin|upstream|heads|remotes|feat|features?|fix|bugfix|hotfix|release|chore|wip|dependabot)/", re.IGNORECASE
)
_SOURCE = lazy_regex(r"[\w.@+-]+\.(?=[a-z0-9]{1,6}$)[a-z]\w*")
_PRODUCT = lazy_regex(r"[A-Z]\w*\.(?:js|io|ai)")
_PLACE = lazy_regex(r"[~/.\\]|[A-Za-z]:[\\/]")
_HEX = lazy_regex(r"(?=.*\d)[0-9a-f]{6,64}|[0-9a-f]{8}-[0-9a-f-]{27}", re.IGNORECASE)
_VERSION = lazy_regex(r"v?\d[\w.+-]*", re.IGNORECASE)
_MARKS = lazy_regex(r"[=<>{}\[\]|\"`'’“”;:,*?!%^$\\&~]|\.\.|\s-|/$|//")
_ORDINARY = lazy_regex(r"[a-z]+(?:ing|edly|ed|tion|tions|ness|ment|ments|ally|ably|ible|able|fully|less|wise|ously)")


def deserves_a_page(name: str) -> bool:
    """Return whether the name alone identifies one thing.

    These do not: ordinary words and technical terms in whatever case, branches, flags, command lines, paths on one machine, hashes,
    versions, and files and members whose like are in every project (``main.py``, ``ctx.Err()``).
    """
    text = name.strip()
    bare = text.removesuffix("()")
    if len(bare) < 2 or text.startswith(("-", "@{", "#")) or _MARKS.search(text) or "(" in bare:
        return False
    if _BRANCH.match(bare) or _HEX.fullmatch(bare) or _VERSION.fullmatch(bare):
        return False
    words = bare.split()
    if len(words) > 1:
        return words[0] not in _COMMANDS
    if "/" in bare:
        return _is_scoped(bare) or (_PLACE.match(bare) is None and _SOURCE.fullmatch(bare.rpartition("/")[2]) is not None)
    if _PRODUCT.fullmatch(bare):
        return True
    if _SOURCE.fullmatch(bare) or "." in bare.strip("."):
        return not _is_generic(_distinctive_part(bare))
    return not _is_generic(bare)


def is_place_in_code(name: str) -> bool:
    """Return whether the name is a file's path or a function."""
    return name.endswith("()") or ("/" in name and not _is_scoped(name) and " " not in name)


def _is_scoped(name: str) -> bool:
    """Return whether the name is of the form ``@owner/package``."""
    return name.startswith("@") and name.count("/") == 1


def _distinctive_part(name: str) -> str:
    """Return the distinctive part: of a file its name without the suffix, of a member its own name."""
    head, _, tail = name.rpartition(".")
    return head.rpartition(".")[2] if tail.islower() and len(tail) <= 5 and _SOURCE.fullmatch(name) else tail


def _is_generic(word: str) -> bool:
    lowered = word.casefold().strip("_.-")
    if lowered in _SHELL or lowered in COMMON_WORDS or lowered.removesuffix("s") in COMMON_WORDS or _ORDINARY.fullmatch(word):
        return True
    return len(lowered) < 3 and word == word.casefold()


_DAMPING = 0.85
_ROUNDS = 60
_SETTLED = 1e-9
_LABEL = 60
_MERMAID_ARROWS, _MERMAID_CHARACTERS = 500, 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Notes and the links between them.

    ``arrows`` are (from, to) by path, each once, never to the note itself; both are in the order of their paths.
    """

    notes: tuple[Note, ...]
    arrows: tuple[tuple[str, str], ...]

    def inbound(self) -> Counter[str]:
        """Return how many notes link to each."""
        return Counter(to for _, to in self.arrows)

    def neighbours(self, path: str, hops: int = 1) -> frozenset[str]:
        """Return what can be reached from a note in ``hops`` steps, in either direction; the note itself included."""
        reached = frozenset((path,))
        for _ in range(hops):
            reached |= {to for one, to in self.arrows if one in reached} | {one for one, to in self.arrows if to in reached}
        return reached

    def within(self, paths: Iterable[str]) -> "Graph":
        kept = frozenset(paths)
        return Graph(
            notes=tuple(note for note in self.notes if note.path in kept),
            arrows=tuple((one, to) for one, to in self.arrows if one in kept and to in kept),
        )


def graph(notes: Sequence[Note]) -> Graph:
    """Build the graph from links in bodies and in the properties that lead to notes. A broken link is no arrow."""
    ordered = sorted(notes, key=lambda note: note.path)
    resolver = Resolver(ordered)
    arrows = {
        (note.path, to)
        for note in ordered
        for target in (*note.links, *note.supersedes, note.superseded_by)
        if target and (to := resolver.follow(target)) is not None and to != note.path
    }
    return Graph(notes=tuple(ordered), arrows=tuple(sorted(arrows)))


def centrality(graph: Graph) -> Mapping[str, float]:
    """Return the PageRank (Brin and Page, 1998) of every note, by path; the ranks add up to one."""
    paths = [note.path for note in graph.notes]
    if not paths:
        return {}
    leads: dict[str, list[str]] = {path: [] for path in paths}
    for one, to in graph.arrows:
        leads[one].append(to)
    share = 1 / len(paths)
    rank = dict.fromkeys(paths, share)
    for _ in range(_ROUNDS):
        lost = sum(rank[path] for path in paths if not leads[path])
        following = dict.fromkeys(paths, (1 - _DAMPING + _DAMPING * lost) * share)
        for path in paths:
            for to in leads[path]:
                following[to] += _DAMPING * rank[path] / len(leads[path])
        moved = sum(abs(following[path] - rank[path]) for path in paths)
        rank = following
        if moved < _SETTLED:
            break
    return rank


def as_json(graph: Graph) -> str:
    inbound, rank = graph.inbound(), centrality(graph)
    content = {
        "notes": [
            {
                "path": note.path,
                "id": note.id,
                "kind": note.kind.value,
                "title": one_line(plain(note.title)),
                "project": one_line(plain(note.project)),
                "status": note.status.value,
                "inbound": inbound[note.path],
                "centrality": round(rank[note.path], 6),
            }
            for note in graph.notes
        ],
        "links": [{"from": one, "to": to} for one, to in graph.arrows],
    }
    return json.dumps(content, ensure_ascii=False, indent=1)


def fits_mermaid(graph: Graph) -> bool:
    """Return whether Mermaid draws the graph: beyond these bounds it shows an error, and no page may raise them."""
    return len(graph.arrows) <= _MERMAID_ARROWS and len(as_mermaid(graph)) <= _MERMAID_CHARACTERS


def as_mermaid(graph: Graph) -> str:
    """Return the graph for a markdown page: Obsidian and GitHub draw it."""
    names = _names(graph)
    lines = ["graph LR"]
    lines += [f'  {names[note.path]}["{_mermaid(note.title)}"]:::{note.kind.value}' for note in graph.notes]
    lines += [f"  {names[one]} --> {names[to]}" for one, to in graph.arrows]
    lines += [f"  classDef {kind} fill:{colour}" for kind, colour in _COLOURS.items()]
    return "\n".join(lines)


def as_dot(graph: Graph) -> str:
    """Return the graph for Graphviz."""
    names = _names(graph)
    lines = ["digraph memory {", "  rankdir=LR; node [shape=box, style=filled, fontname=sans];"]
    for note in graph.notes:
        label = _label(note.title).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {names[note.path]} [label="{label}", fillcolor="{_COLOURS[note.kind.value]}"];')
    lines += [f"  {names[one]} -> {names[to]};" for one, to in graph.arrows]
    return "\n".join([*lines, "}"])


FORMATS: Mapping[str, Callable[[Graph], str]] = {"mermaid": as_mermaid, "dot": as_dot, "json": as_json}

_COLOURS = {  # those of the vault's own graph view, by kind
    "decision": "#e8c07d",
    "insight": "#9ad0a0",
    "fact": "#9fc3e7",
    "preference": "#d7a6d8",
    "question": "#e7a59f",
    "journal": "#c9c9c9",
    "entity": "#b7d9cf",
}


def _names(graph: Graph) -> dict[str, str]:
    return {note.path: f"n{place}" for place, note in enumerate(graph.notes)}


def _label(title: str) -> str:
    return clip(one_line(plain(title)), _LABEL) or "untitled"


def _mermaid(title: str) -> str:
    """Return a title with HTML entities and markdown, which Mermaid would interpret, as plain characters."""
    return "".join(letter if letter.isalnum() or letter in " .,:;-+/()=?!…'" else f"#{ord(letter)};" for letter in _label(title))


def stem(note: Note) -> str:
    return PurePosixPath(note.path).stem
