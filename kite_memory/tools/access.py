"""Grants and request identities. Whatever is outside a grant does not exist for its holder."""

from dataclasses import dataclass, replace

from kite_memory.errors import KiteError
from kite_memory.model.note import Note, NoteKind, Scope


class NotAllowed(KiteError):
    """The grant does not permit this. Does not reveal whether anything exists there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a caller may see and write.

    ``scopes`` and ``projects`` are those visible, ``None`` for all. ``name`` is recorded as ``created_by``. ``person`` is the one
    whose global memories are visible; those of others are not. It is empty for the owner of this machine's vault or of a team's
    server, and ``None`` for those of all persons, which only internal housekeeping uses.
    """

    name: str
    write: bool = True
    scopes: frozenset[Scope] | None = None
    projects: frozenset[str] | None = None
    person: str | None = ""

    def sees(self, scope: Scope, project: str) -> bool:
        """Return whether the grant covers this scope and project.

        Without a project, the scope alone decides, except for project and session scope, which need a visible project.
        """
        if self.scopes is not None and scope not in self.scopes:
            return False
        if self.projects is None or project in self.projects:
            return True
        return not project and scope in (Scope.GLOBAL, Scope.SHARED)

    @property
    def whole(self) -> bool:
        """Whether the grant sees everything."""
        return self.scopes is None and self.projects is None and not self.person

    @property
    def in_a_vault(self) -> "Grant":
        """The grant as it applies in a vault, where all global memories are the owner's: without them for any other person."""
        if not self.person:
            return self
        return replace(self, scopes=(self.scopes if self.scopes is not None else frozenset(Scope)) - {Scope.GLOBAL})

    def reads(self, note: Note) -> bool:
        """Return whether the grant may read the note.

        Entity notes need a whole grant, since they gather names and links from every project.
        """
        return self.sees(note.scope, note.project) and (self.whole or note.kind is not NoteKind.ENTITY)

    def demand(self, scope: Scope, project: str) -> None:
        """Raise `NotAllowed` if this grant may not write there."""
        if not self.write:
            raise NotAllowed("this token may only read", hint="ask for one that may write")
        if not self.sees(scope, project):
            if scope is Scope.GLOBAL and self.person:
                raise NotAllowed(
                    "this token does not reach global memories here",
                    hint='in a vault they are its owner\'s alone; use scope "shared" or "project"',
                )
            where = f"{scope.value} memories" + (f" of {project!r}" if project else "")
            raise NotAllowed(f"this token does not reach {where}", hint="`kmem token create` says what a token reaches")


OWNER = Grant(name="")
"""The vault's owner: sees everything, except other persons' global memories on a team's store."""
EVERYBODY = Grant(name="", person=None)
"""For housekeeping only; what it sees is returned to no caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Identity of one request: its grant, project, session and AI, as far as they are known."""

    grant: Grant
    project: str = ""
    session: str = ""
    ai: str = ""

    @property
    def name(self) -> str:
        return self.grant.name or self.ai
