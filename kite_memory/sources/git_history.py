"""Parse the history of the repositories that agents worked in, so that decisions recorded only in a commit can be recalled."""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Cursor, Event, EventType, Problem, ReadResult, Session, Where
from kite_memory.projects import Repository, project_of, repository_around, stamp
from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.tool_text import PATH_LIMIT, shortened
from kite_memory.system.git import NO_COMMITS, Git, GitFailed

PROVIDER = "git"

MOST_COMMITS = 2_000
"""Limit of commits read from a history, newest first, and of new commits when it is read again."""

_VERSION = 1
_REPOSITORIES = 500
_TIPS = 200
_AT_ONCE = 500
_MESSAGE_LIMIT = 8_000
_MOST_FILE_EVENTS = 12
_FILES_NAMED = 40
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SIGNATURE = re.compile(r"(?:Signed-off-by|Co-authored-by|Change-Id|Reviewed-by|Acked-by|Tested-by|Cc): |\s*\Z", re.IGNORECASE)
_CHANGES = {"A": "added", "M": "changed", "D": "deleted", "T": "changed", "R": "renamed", "C": "copied"}
_EVENTS_OF_A_COMMIT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _HistoryState:
    """State of reading a history. ``seen`` are the tips whose history was returned completely.

    While more is being returned, ``goal`` are the tips to reach, and ``reported`` counts the commits returned so far.
    """

    seen: tuple[str, ...] = ()
    goal: tuple[str, ...] = ()
    reported: int = 0

    def to_carry(self) -> str:
        return orjson.dumps({"v": _VERSION, "seen": self.seen, "goal": self.goal, "told": self.reported}).decode()

    @staticmethod
    def from_carry(cursor: Cursor | None) -> "_HistoryState":
        """Parse what `to_carry` returned; start from the beginning if another version wrote it."""
        try:
            known: dict[str, Any] = orjson.loads(cursor.carry) if cursor else {"v": 0}
            if known["v"] != _VERSION:
                return _HistoryState()
            tips = [[tip for tip in known[key] if _COMMIT.fullmatch(tip)] for key in ("seen", "goal")]
            return _HistoryState(seen=tuple(tips[0]), goal=tuple(tips[1]), reported=int(known["told"]))
        except (ValueError, KeyError, TypeError):
            return _HistoryState()


class GitLog:
    """Source that reads commits. A repository's history is identified by its ``HEAD``; ``projects`` returns the folders to look in.

    Commits are not a conversation: they are neither prompts nor extracted by a model. A month of a repository is a session, a
    commit is an event of a file action, and the files it changed are separate events.
    """

    provider = PROVIDER

    def __init__(
        self,
        projects: Callable[[], Iterable[str]],
        *,
        environment: Mapping[str, str],
        home: Path,
        most: int = MOST_COMMITS,
    ) -> None:
        self._projects = projects
        self._git = Git(environment)
        self._home = home
        self._most = most
        self._known: dict[Path, Repository] = {}

    def roots(self) -> tuple[Path, ...]:
        """Return nothing to watch, since all tools write to repositories. The regular full comparison finds what is new."""
        return ()

    def flat_roots(self) -> tuple[Path, ...]:
        return ()

    def transcripts(self) -> Iterator[Path]:
        found: dict[Path, Repository] = {}
        for folder in self._projects():
            repository = repository_around(folder, home=self._home)
            if repository is not None and len(found) < _REPOSITORIES:
                found.setdefault(repository.head, repository)
        self._known = found
        yield from sorted(found)

    def owns(self, path: Path) -> bool:
        return path.name == "HEAD" and path.parent.name != "logs"

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(paths)

    def stamp(self, path: Path) -> tuple[int, int]:
        return stamp(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        """Return one month of new commits. ``budget`` is ignored; the number of commits is limited instead."""
        unmoved = cursor or Cursor(position=0, size=0, mtime_ns=0)
        try:
            now = stamp(path)
            if cursor and (cursor.size, cursor.mtime_ns) == now:
                return ReadResult(path=str(path), session=None, events=(), problems=(), cursor=cursor)
            repository = self._known.get(path) or _repository_of(path)
            return _HistoryReading(path, repository, self._git, self._most).read_next(_HistoryState.from_carry(cursor), now)
        except GitFailed as error:  # it would fail again until the repository changes
            unmoved = replace(unmoved, position=now[0], size=now[0], mtime_ns=now[1])
            if (reason := str(error)) == NO_COMMITS:
                return ReadResult(path=str(path), session=None, events=(), problems=(), cursor=unmoved)
        except FileNotFoundError:
            reason = "file is gone"
        except OSError:
            reason = "file cannot be read"
        return ReadResult(
            path=str(path), session=None, events=(), problems=(Problem(file=str(path), position=0, reason=reason),), cursor=unmoved
        )


def _repository_of(head: Path) -> Repository:
    if not head.is_file():
        raise FileNotFoundError(head) if not head.exists() else OSError("not a file")
    keeping = head.parent
    return Repository(kept=keeping, folder=keeping.parent if keeping.name == ".git" else keeping)


class _HistoryReading:
    def __init__(self, path: Path, repository: Repository, git: Git, most: int) -> None:
        self._path = path
        self._folder = repository.folder
        self._git = git
        self._most = most
        self._problems: list[Problem] = []

    def read_next(self, reading: _HistoryState, now: tuple[int, int]) -> ReadResult:
        goal = reading.goal or self._tips()
        listed = self._listed(goal, reading.seen)
        if not reading.reported and len(listed) >= self._most:
            self._problems.append(Problem(file=str(self._path), position=0, reason="older commits left out"))
        month, names = _next_month(listed, reading.reported)
        events = tuple(self._events(names, month, reading.reported)) if names else ()
        reported = reading.reported + len(names)
        more = reported < len(listed)
        carry = replace(reading, goal=goal, reported=reported) if more else _HistoryState(seen=goal)
        size, mtime_ns = (0, 0) if more else now
        return ReadResult(
            path=str(self._path),
            session=self._session(month, events) if events else None,
            events=events,
            problems=tuple(self._problems),
            cursor=Cursor(position=now[0], size=size, mtime_ns=mtime_ns, carry=carry.to_carry()),
            more=more,
        )

    def _tips(self) -> tuple[str, ...]:
        """Return the tips of local branches and of the folder's HEAD, newest first, without remote branches."""
        branches = self._git.ask(
            self._folder,
            ("for-each-ref", "--sort=-committerdate", f"--count={_TIPS}", "--format=%(objectname)", "refs/heads"),
        )
        tips = dict.fromkeys(branches.decode("ascii", "replace").split())
        try:
            tips.update(
                dict.fromkeys(self._git.ask(self._folder, ("rev-parse", "--verify", "HEAD")).decode("ascii", "replace").split())
            )
        except GitFailed:
            if not tips:
                raise GitFailed(NO_COMMITS) from None
        return tuple(tip for tip in tips if _COMMIT.fullmatch(tip))

    def _listed(self, goal: Sequence[str], seen: Sequence[str]) -> list[tuple[str, int]]:
        """Return the new commits with their times, oldest first."""
        there = self._existing([*goal, *seen])
        given = [*(tip for tip in goal if tip in there), *(f"^{tip}" for tip in seen if tip in there)]
        if not given or given[0].startswith("^"):
            return []
        words = ("log", "--stdin", "--no-show-signature", f"--max-count={self._most}", "--format=format:%H %ct")
        output = self._git.ask(self._folder, words, given=given).decode("ascii", "replace")
        found: list[tuple[str, int]] = []
        for line in output.splitlines():
            name, _, at = line.partition(" ")
            if _COMMIT.fullmatch(name):
                found.append((name, int(at) if at.isdigit() else 0))
        place = {name: number for number, (name, _) in enumerate(reversed(found))}
        return sorted(found, key=lambda each: (each[1], place[each[0]]))

    def _existing(self, tips: Sequence[str]) -> frozenset[str]:
        """Return those of ``tips`` that still exist."""
        output = self._git.ask(self._folder, ("cat-file", "--batch-check=%(objectname) %(objecttype)"), given=tips)
        lines = output.decode("ascii", "replace").splitlines()
        return frozenset(line.removesuffix(" commit") for line in lines if line.endswith(" commit"))

    def _events(self, names: Sequence[str], month: str, before: int) -> Iterator[Event]:
        try:
            records = self._shown(names, ("--name-status", "--no-renames", "-z"))
        except GitFailed:  # trees missing in a partial clone, or a million files: retry without files
            records = self._shown(names, ())
        for number, record in enumerate(records):
            yield from self._commit(record, month, before + number)

    def _shown(self, names: Sequence[str], more: Sequence[str]) -> list[list[bytes]]:
        """Return the name, time and message of each commit, then its changed files.

        Commits are separated by a random word that no commit message can contain.
        """
        begins = secrets.token_hex(16)
        words = ("log", "--stdin", "--no-walk=unsorted", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-color")
        form = f"--format=tformat:%x00{begins}%x00%H%x00%ct%x00%B%x00"
        output = self._git.ask(self._folder, (*words, "--no-decorate", "--encoding=UTF-8", form, *more), given=names)
        return [record.split(b"\x00")[1:] for record in output.split(begins.encode())[1:]]

    def _commit(self, record: Sequence[bytes], month: str, place: int) -> Iterator[Event]:
        name, at, message, *files = (*record, b"", b"", b"") if len(record) < 3 else record
        commit = name.decode("ascii", "replace")
        if not _COMMIT.fullmatch(commit):
            return
        changed = _changed(files)
        text = _unsigned(message.decode("utf-8", "replace").replace("\r\n", "\n").strip())
        text = shortened(text, _MESSAGE_LIMIT) or "A commit without a message."
        if len(changed) > _MOST_FILE_EVENTS:
            named = ", ".join(path for _, path in changed[_MOST_FILE_EVENTS : _MOST_FILE_EVENTS + _FILES_NAMED])
            text = beginning(f"{text}\n\n{len(changed)} files, among them {named}", 2 * _MESSAGE_LIMIT)
        common = Event(
            id=commit,
            session=self._name(month),
            provider=PROVIDER,
            ordinal=place * _EVENTS_OF_A_COMMIT,
            at=datetime.fromtimestamp(min(int(at), 4_000_000_000) if at.isdigit() else 0, UTC),
            role="system",
            type=EventType.FILE_ACTION,
            text=text,
            where=Where(file=str(self._path), start=place, end=place),
            tool="git commit",
            status="ok",
        )
        yield common
        for number, (how, path) in enumerate(changed[:_MOST_FILE_EVENTS], start=1):
            yield replace(
                common,
                id=f"{commit}:{number}",
                ordinal=common.ordinal + number,
                text=_CHANGES.get(how[:1], "changed"),
                path=beginning(str(self._folder / path), PATH_LIMIT),
                parent=commit,
            )

    def _session(self, month: str, events: Sequence[Event]) -> Session:
        folder = str(self._folder)
        return Session(
            id=self._name(month),
            provider=PROVIDER,
            started=min(event.at for event in events),
            project=project_of(folder),
            cwd=folder,
            title=f"Commits of {month}",
        )

    def _name(self, month: str) -> str:
        place = hashlib.blake2b(str(self._path).encode(), digest_size=4).hexdigest()
        return f"{project_of(str(self._folder)) or 'repository'}-{place}-{month}"


def _unsigned(message: str) -> str:
    """Return the message without the signature lines at its end."""
    lines = message.split("\n")
    while len(lines) > 1 and _SIGNATURE.match(lines[-1]):
        lines.pop()
    return "\n".join(lines).strip()


def _next_month(listed: Sequence[tuple[str, int]], reported: int) -> tuple[str, list[str]]:
    """Return the month of the commit at ``reported``, and the commits of that month from there on."""
    names: list[str] = []
    month = ""
    for name, at in listed[reported : reported + _AT_ONCE]:
        of = datetime.fromtimestamp(min(at, 4_000_000_000), UTC).strftime("%Y-%m")
        if month and of != month:
            break
        month = of
        names.append(name)
    return month, names


def _changed(files: Iterable[bytes]) -> list[tuple[str, str]]:
    """Parse the output of ``--name-status -z`` into the changes of each file."""
    parts = [part for file in files if (part := file.strip(b"\n"))]
    return [
        (how.decode("ascii", "replace"), path.decode("utf-8", "replace"))
        for how, path in zip(parts[::2], parts[1::2], strict=False)
    ]
