"""Tool calls and their results as JSON, between the process that serves MCP and the one that holds the store.

An error is raised again as its own class, a `Conflict` with its version.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from kite_memory.errors import KiteError, NoteNotFound, NotFound, UsageError
from kite_memory.model.note import Scope
from kite_memory.redaction import redact_id
from kite_memory.tools.access import OWNER, Asker, Grant, NotAllowed
from kite_memory.tools.store import Conflict, StoreUnavailable

Json = dict[str, Any]
Perform = Callable[[str, Json, Asker], Json]
"""`Bridge.perform`, in this process or another. Raises `KiteError`."""

_KINDS: dict[str, type[KiteError]] = {
    "not_allowed": NotAllowed,
    "not_found": NoteNotFound,
    "unavailable": StoreUnavailable,
    "usage": UsageError,
}
_LONG_NUMBER = re.compile(r"\d{19}")
_OTHER_VERSION = "kmem and its daemon may be of different versions: `kmem down`, then `kmem up`, restarts it"


def request_body(tool: str, arguments: Json, asker: Asker) -> bytes:
    """Return the body of a request. Raises `UsageError` for what JSON cannot express."""
    grant = asker.grant
    identity: Json = {"project": asker.project, "session": asker.session, "ai": asker.ai}
    if grant != OWNER:
        identity["grant"] = {
            "name": grant.name,
            "write": grant.write,
            "scopes": None if grant.scopes is None else sorted(grant.scopes),
            "projects": None if grant.projects is None else sorted(grant.projects),
            "person": grant.person or "",
        }
    try:
        body = json.dumps({"tool": tool, "arguments": arguments, "asker": identity}, ensure_ascii=False, allow_nan=False)
        if _LONG_NUMBER.search(body):
            json.loads(body, parse_int=_fitting)
        return body.encode("utf-8", "replace")  # an unpaired surrogate becomes a question mark
    except (ValueError, RecursionError) as error:  # faster JSON writers would silently write null
        raise UsageError("NaN, Infinity and very deep nesting are not JSON", hint="write null, or the number as text") from error


def _fitting(digits: str) -> int:
    """Parse an integer, or raise `UsageError` beyond 64 bits: faster JSON parsers would turn it into a fraction."""
    number = int(digits)
    if not -(1 << 63) <= number < 1 << 64:
        raise UsageError("a number is too large", hint="give it as text")
    return number


def perform(performs: Perform, tool: str, arguments: Json, asker: Json) -> Json:
    """Perform the call and return ``{"result": …}`` or ``{"error": …}``. Raises `UsageError` for an invalid asker."""
    speaks = _asker(asker)
    try:
        return {"result": performs(tool, arguments, speaks)}
    except KiteError as error:
        return {"error": error_json(error)}


def result_of(answer: Json) -> Json:
    """Return the result, or raise the error that `perform` caught."""
    match answer:
        case {"result": dict(result)}:
            return result
        case {"error": {"kind": str(kind), "message": str(message), "hint": str(hint), **rest}}:
            if kind == "conflict" and isinstance(version := rest.get("version"), int):
                raise Conflict(message, version=version, hint=hint)
            raise _KINDS.get(kind, KiteError)(message, hint=hint)
        case _:
            raise KiteError("the daemon gave no proper answer", hint=_OTHER_VERSION)


def error_json(error: KiteError) -> Json:
    details: Json = {"kind": _kind(error), "message": str(error), "hint": error.hint}
    if isinstance(error, Conflict):
        details["version"] = error.version
    return details


def _kind(error: KiteError) -> str:
    if isinstance(error, Conflict):
        return "conflict"
    if isinstance(error, NotFound):
        return "not_found"
    return next((kind for kind, each in _KINDS.items() if isinstance(error, each)), "failed")


def _asker(sent: Json) -> Asker:
    match sent:
        case {"project": str(project), "session": str(session), "ai": str(ai)}:
            return Asker(grant=_grant(sent.get("grant")), project=project, session=redact_id(session), ai=ai)
        case _:
            raise UsageError("the request does not say who asks", hint=_OTHER_VERSION)


def _grant(sent: object) -> Grant:
    """Parse a grant. Raises `UsageError` for what cannot be read, so a grant is never widened."""
    match sent:
        case None:
            return OWNER
        case {
            "name": str(name),
            "write": bool(write),
            "scopes": None | list() as scopes,
            "projects": None | list() as projects,
            "person": str(person),
        }:
            try:
                return Grant(
                    name=name,
                    write=write,
                    scopes=None if scopes is None else frozenset(map(Scope, scopes)),
                    projects=None if projects is None else frozenset(map(str, projects)),
                    person=person,
                )
            except ValueError as error:
                raise UsageError(f"a grant of this kind is not known: {error}", hint=_OTHER_VERSION) from error
        case _:
            raise UsageError("a grant of this kind is not known", hint=_OTHER_VERSION)
