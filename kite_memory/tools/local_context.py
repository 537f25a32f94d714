"""What this machine knows beside the store: each a callable, or ``None`` where nobody knows, as for a team's store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kite_memory.errors import UsageError
from kite_memory.model.event import Event
from kite_memory.model.note import Scope
from kite_memory.model.provenance import Provenance
from kite_memory.tools import argument_parsing
from kite_memory.tools.access import Asker, Grant
from kite_memory.tools.store import Place, State

Json = dict[str, Any]


def _as_it_is(name: str) -> str:
    return name


def _nobody(project: str) -> Provenance | None:
    return None


def _nothing(project: str) -> Sequence[Event]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """``project_of`` names the project of a folder, ``known_project`` that of a name or a folder that somebody gave.

    ``timeline`` and ``resume`` answer as the commands of these names do, and take the same arguments. ``working`` tells what
    agents had to do in a project's last sessions, or in one session, as their transcripts say. ``heard`` is what happened in a
    project's last sessions, ``known_of`` who had said something first in all of them. ``resume`` and ``working`` are told
    ``projects`` where there are others that whoever asks does not see: what happened in those is not even looked at.
    """

    project_of: Callable[[str], str] = _as_it_is
    known_project: Callable[[str], str] = _as_it_is
    timeline: Callable[..., Json] | None = None
    resume: Callable[..., Json] | None = None
    working: Callable[..., Sequence[State]] | None = None
    heard: Callable[[str], Sequence[Event]] = _nothing
    known_of: Callable[[str], Provenance | None] = _nobody

    def provenance(self, grant: Grant, project: str) -> Provenance | None:
        return self.known_of(project) if grant.sees(Scope.PROJECT, project) else None

    def heard_by(self, grant: Grant, project: str) -> Sequence[Event]:
        return self.heard(project) if grant.sees(Scope.PROJECT, project) else ()


def within(grant: Grant, scope: Scope) -> dict[str, list[str]]:
    """The argument ``projects`` of `Near.resume` and `Near.working`; none where all are seen."""
    if grant.scopes is not None and scope not in grant.scopes:
        return {"projects": []}
    return {} if grant.projects is None else {"projects": sorted(grant.projects)}


NOWHERE = "\x7f"
"""No project and no session is called so: `given.line` lets nobody say it."""


def project_named(asker: Asker, near: Near, name: str) -> str:
    """By name or folder. Whoever is not the owner of this machine names projects only: folders here are none of theirs."""
    name = argument_parsing.clean(name)
    if not name:
        return ""
    return near.known_project(name) if asker.grant.whole and not asker.grant.name else name


def around(asker: Asker, near: Near, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """The project and the session that are meant: those named, else the asker's own."""
    project = project_named(asker, near, argument_parsing.line(arguments, "project", longest=4_096)) or asker.project
    session = argument_parsing.line(arguments, "session_id") or asker.session
    return project, session


def place_of(asker: Asker, near: Near, arguments: Mapping[str, Any], scope: Scope) -> Place:
    """A global memory has neither project nor session; a shared one has a project only where it is named."""
    project, session = around(asker, near, arguments)
    match scope:
        case Scope.GLOBAL:
            return Place(scope=scope)
        case Scope.SHARED:
            return Place(scope=scope, project=project if arguments.get("project") else "")
        case Scope.PROJECT:
            if not project:
                raise UsageError(
                    "it is not known which project this is", hint='give `project`, or use scope "global", "shared" or "session"'
                )
            return Place(scope=scope, project=project)
        case Scope.SESSION:
            if not session:
                raise UsageError("it is not known which session this is", hint='give `session_id`, or use scope "project"')
            return Place(scope=scope, project=project, session=session)
