"""What other packages build on: the interfaces, their contract suites, and here the loading of installed extensions."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kite_memory.errors import ConfigInvalid

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

log = logging.getLogger(__name__)

VERSION = 1
"""Version of the entry points' groups. A change that breaks extensions increases it; older groups are then no longer read."""

Kind = Literal["source", "extractor", "embedder", "contract"]
KINDS: tuple[Kind, ...] = ("source", "extractor", "embedder", "contract")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """An entry point of an installed package. ``problem`` says why it is not used; it is empty for one that is."""

    kind: Kind
    name: str
    package: str
    version: str
    problem: str = ""


def group(kind: Kind) -> str:
    """Return the entry points' group, as ``kite_memory.sources.v1``."""
    return f"kite_memory.{kind}s.v{VERSION}"


def found(kind: Kind) -> "Iterator[EntryPoint]":
    """Yield the entry points of one kind, by name. If two packages use one name, the first by package wins."""
    from importlib import metadata  # imported here: it takes 20 ms

    points = sorted(metadata.entry_points(group=group(kind)), key=lambda each: (each.name, each.dist.name if each.dist else ""))
    names: set[str] = set()
    for each in points:
        if each.name not in names:
            names.add(each.name)
            yield each


def load(kind: Kind, name: str) -> Callable[..., Any]:
    """Return what an entry point names. Raises `ConfigInvalid` if no entry point has that name or it cannot be imported."""
    for each in found(kind):
        if each.name == name:
            try:
                loaded: Callable[..., Any] = each.load()
            except Exception as error:
                raise ConfigInvalid(
                    f"the {kind} {name!r} cannot be imported: {type(error).__name__}: {error}", hint="`kmem extensions list`"
                ) from error
            return loaded
    raise ConfigInvalid(f"no {kind} is called {name!r}", hint="`kmem extensions list` shows those of installed packages")


def sources(home: Path, *, own_state: Path, taken: Sequence[str]) -> Iterator[Any]:
    """Yield the sources that extensions make. One that fails, or that claims a provider in ``taken``, is logged and left out.

    An entry point names a function that takes the home folder and the state folder of this program and returns a source.
    """
    used = set(taken)
    for each in found("source"):
        try:
            source = load("source", each.name)(home, own_state=own_state)
            provider = source.provider
        except Exception as error:  # noqa: BLE001 - it is somebody else's code, and must not stop every other source
            log.warning("extension %s is not used: %s", each.name, error)
            continue
        if not isinstance(provider, str) or not provider or provider in used:
            log.warning("extension %s is not used: the provider %r is taken or empty", each.name, provider)
            continue
        used.add(provider)
        yield source


def every(home: Path, *, own_state: Path, taken: Sequence[str]) -> list[Extension]:
    """Return all extensions, each with the reason why it is not used, if it is not."""
    listed: list[Extension] = []
    used = set(taken)
    for kind in KINDS:
        for each in found(kind):
            problem = ""
            try:
                loaded = load(kind, each.name)
                if kind == "source":
                    provider = loaded(home, own_state=own_state).provider
                    problem = f"the provider {provider!r} is taken" if provider in used else ""
                    used.add(provider)
            except Exception as error:  # noqa: BLE001 - it is somebody else's code
                problem = str(error)
            package = each.dist.name if each.dist else ""
            version = each.dist.version if each.dist else ""
            listed.append(Extension(kind=kind, name=each.name, package=package, version=version, problem=problem))
    return listed
