"""Who asks, and what there is for them. Everything outside a grant does not exist for whoever holds it."""

from dataclasses import dataclass, replace

from kite_memory.errors import KiteError
from kite_memory.model.note import Note, NoteKind, Scope


class NotAllowed(KiteError):
    """The grant itself does not reach that far; says nothing of what lies there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """``scopes`` and ``projects`` are those that may be seen; ``None`` for all. ``name`` is told as ``created_by``.

    ``person`` is whose global memories are meant: its own, and no others. Empty for the owner of this machine's vault, or of the
    server that stands before a team's store; ``None`` for everybody's, which only our own housekeeping holds.
    """

    name: str
    write: bool = True
    scopes: frozenset[Scope] | None = None
    projects: frozenset[str] | None = None
    person: str | None = ""

    def sees(self, scope: Scope, project: str) -> bool:
        """What belongs to no project is bounded by its scope alone, unless its scope is that of a project or a session."""
        if self.scopes is not None and scope not in self.scopes:
            return False
        if self.projects is None or project in self.projects:
            return True
        return not project and scope in (Scope.GLOBAL, Scope.SHARED)

    @property
    def whole(self) -> bool:
        """Whether there is nothing that it does not see."""
        return self.scopes is None and self.projects is None and not self.person

    @property
    def in_a_vault(self) -> "Grant":
        """What is left of it where all global memories are the owner's: none of them for anybody else."""
        if not self.person:
            return self
        return replace(self, scopes=(self.scopes if self.scopes is not None else frozenset(Scope)) - {Scope.GLOBAL})

    def reads(self, note: Note) -> bool:
        """An entity's page gathers names and links from every project: only a whole grant sees it."""
        return self.sees(note.scope, note.project) and (self.whole or note.kind is not NoteKind.ENTITY)

    def demand(self, scope: Scope, project: str) -> None:
        """Raises `NotAllowed` where this grant may not write."""
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
"""Whoever runs programs as the vault's owner: everything; on a team's store all but the global memories of others."""
EVERYBODY = Grant(name="", person=None)
"""For housekeeping alone: what it sees is told to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """One request's: under which grant, for which project and session, and which AI speaks, as far as anybody said."""

    grant: Grant
    project: str = ""
    session: str = ""
    ai: str = ""

    @property
    def name(self) -> str:
        return self.grant.name or self.ai
