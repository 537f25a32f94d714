"""Decide which names are distinctive enough for a page of their own: not common words, nor names of one machine."""

import re

from kite_memory.vault.wording import COMMON_WORDS

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

_BRANCH = re.compile(
    r"(?:refs|origin|upstream|heads|remotes|feat|features?|fix|bugfix|hotfix|release|chore|wip|dependabot)/", re.IGNORECASE
)
_SOURCE = re.compile(r"[\w.@+-]+\.(?=[a-z0-9]{1,6}$)[a-z]\w*")
_PRODUCT = re.compile(r"[A-Z]\w*\.(?:js|io|ai)")
_PLACE = re.compile(r"[~/.\\]|[A-Za-z]:[\\/]")
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{6,64}|[0-9a-f]{8}-[0-9a-f-]{27}", re.IGNORECASE)
_VERSION = re.compile(r"v?\d[\w.+-]*", re.IGNORECASE)
_MARKS = re.compile(r"[=<>{}\[\]|\"`'’“”;:,*?!%^$\\&~]|\.\.|\s-|/$|//")
_ORDINARY = re.compile(r"[a-z]+(?:ing|edly|ed|tion|tions|ness|ment|ments|ally|ably|ible|able|fully|less|wise|ously)")


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
