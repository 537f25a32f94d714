"""Which memory a key means, for whoever asks."""

from collections.abc import Mapping
from typing import Any

from kite_memory.errors import UsageError
from kite_memory.model.scope import Scope
from kite_memory.tools import argument_parsing
from kite_memory.tools.access import Asker
from kite_memory.tools.local_context import Near
from kite_memory.tools.store import Place

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
