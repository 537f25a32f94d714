"""Optional lookups that only this machine can answer; ``None`` for a team's store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kite_memory.errors import UsageError
from kite_memory.model.event import Event, Provenance
from kite_memory.model.note import Scope
from kite_memory.tools import argument_parsing
from kite_memory.tools.arguments import PROJECT, SESSION, Arguments
from kite_memory.tools.store import Asker, Grant, MemoryPlace, State

Json = dict[str, Any]


def _as_it_is(name: str) -> str:
    return name


def _unknown(project: str) -> Provenance | None:
    return None


def _nothing(project: str) -> Sequence[Event]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalContext:
    """Lookups that only this machine can answer.

    ``project_of`` returns the project of a folder, ``known_project`` that of a given name or folder. ``timeline`` and ``resume``
    answer like the commands of these names and take the same arguments. ``passages`` returns what was said and done on a search's
    subject, with the ranks of these and of the notes that it found; ``conversation`` returns a cited one in brief.
    ``working`` returns what agents had in progress in a project's last sessions, or in one session, according to transcripts.
    ``heard`` returns the events of a project's last sessions, ``known_of`` who said something first in all of its sessions.
    ``resume``, ``passages`` and ``working`` take ``projects`` if the caller does not see all; events of other projects are then not
    read.
    """

    project_of: Callable[[str], str] = _as_it_is
    known_project: Callable[[str], str] = _as_it_is
    timeline: Callable[..., Json] | None = None
    resume: Callable[..., Json] | None = None
    passages: Callable[..., Json] | None = None
    conversation: Callable[[str], str] | None = None
    working: Callable[..., Sequence[State]] | None = None
    heard: Callable[[str], Sequence[Event]] = _nothing
    known_of: Callable[[str], Provenance | None] = _unknown

    def provenance(self, grant: Grant, project: str) -> Provenance | None:
        return self.known_of(project) if grant.sees(Scope.PROJECT, project) else None

    def heard_by(self, grant: Grant, project: str) -> Sequence[Event]:
        return self.heard(project) if grant.sees(Scope.PROJECT, project) else ()


def within(grant: Grant, scope: Scope) -> dict[str, list[str]]:
    """Return the argument ``projects`` for `LocalContext.resume`, `LocalContext.passages` and
    `LocalContext.working`; empty if the grant sees all."""
    if grant.scopes is not None and scope not in grant.scopes:
        return {"projects": []}
    return {} if grant.projects is None else {"projects": sorted(grant.projects)}


NOWHERE = "\x7f"
"""A value that is neither a project nor a session: `argument_parsing.line` refuses it as input."""


def project_named(asker: Asker, local: LocalContext, name: str) -> str:
    """Return a project by name or folder. Only the owner of this machine may name a folder."""
    name = argument_parsing.clean(name)
    if not name:
        return ""
    return local.known_project(name) if asker.grant.whole and not asker.grant.name else name


def around(asker: Asker, local: LocalContext, arguments: Arguments) -> tuple[str, str]:
    """Return the project and session that are named, or else the caller's own."""
    return project_named(asker, local, arguments[PROJECT]) or asker.project, arguments[SESSION] or asker.session


def place_of(asker: Asker, local: LocalContext, arguments: Arguments, scope: Scope) -> MemoryPlace:
    """Return the place that the arguments name, as `place_in` does."""
    return place_in(asker, local, scope, project=arguments[PROJECT], session=arguments[SESSION])


def place_in(asker: Asker, local: LocalContext, scope: Scope, *, project: str, session: str = "") -> MemoryPlace:
    """Return the place of a memory; project and session are the caller's own if they are empty.

    A global one has neither project nor session; a shared one has a project only if it is named.
    """
    named = project_named(asker, local, project)
    project, session = named or asker.project, session or asker.session
    match scope:
        case Scope.GLOBAL:
            return MemoryPlace(scope=scope)
        case Scope.SHARED:
            return MemoryPlace(scope=scope, project=named)
        case Scope.PROJECT:
            if not project:
                raise UsageError(
                    "it is not known which project this is", hint='give `project`, or use scope "global", "shared" or "session"'
                )
            return MemoryPlace(scope=scope, project=project)
        case Scope.SESSION:
            if not session:
                raise UsageError("it is not known which session this is", hint='give `session_id`, or use scope "project"')
            return MemoryPlace(scope=scope, project=project, session=session)
