"""Saved conversations: the record, its journal and its notes in one transaction; a long transcript in object storage.

Any service that supports S3 will do.
"""

import contextlib
import hashlib
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kite_memory.model.note import Note, NoteKind, RecordItem, Scope
from kite_memory.recall.embedder import Embedder
from kite_memory.team.postgres import notes
from kite_memory.team.postgres.connections import Cursor, Row, storable
from kite_memory.team.postgres.finding import Indexed, indexed
from kite_memory.team.postgres.rows import aware, clean, encoded, note_row, record_json, record_of
from kite_memory.tools.conversation_notes import drafts_of, identity, item_id, journal_of, merged, opposite, place_of, without
from kite_memory.tools.store import OWNER, Grant, MemoryPlace, Saved, SavedConversation, StoreUnavailable
from kite_memory.vault.planning import compose

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_SECONDS: Final = 10
_STORAGE_HINT: Final = "try again in a moment; see `[team]` in the configuration if it stays so"


class ObjectMissing(StoreUnavailable):
    """A row refers to an object that is missing or differs from what was stored."""


class Objects(Protocol):
    """Interface of object storage. Names are generated and never reused. Raises `StoreUnavailable`."""

    def put(self, tenant: str, content: bytes) -> str:
        """Store the content and return its name. It can be read once this returns."""
        ...

    def get(self, name: str) -> bytes: ...

    def remove(self, name: str) -> None:
        """Delete an object; a missing one is ignored."""
        ...

    def names(self, tenant: str, *, before: datetime) -> Iterator[str]:
        """Yield the names of objects stored before a time."""
        ...

    def owns(self, tenant: str, name: str) -> bool:
        """Return whether `put` made this name for the tenant. In a restored backup it may be another's."""
        ...


class S3Objects:
    """Object storage over S3. boto3 finds the credentials: in the environment, its own files, or the machine's role."""

    def __init__(self, *, bucket: str, endpoint: str = "", prefix: str = "kite-memory", region: str = "") -> None:
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._client: S3Client = boto3.client(
            "s3",
            endpoint_url=endpoint or None,
            region_name=region or None,
            config=Config(
                connect_timeout=_SECONDS / 3,
                read_timeout=_SECONDS,
                retries={"mode": "standard", "total_max_attempts": 2},
                request_checksum_calculation="when_required",  # services other than Amazon's do not support the newer checksums
                response_checksum_validation="when_required",
            ),
        )

    def put(self, tenant: str, content: bytes) -> str:
        name = f"{self._folder(tenant)}{uuid.uuid4().hex}"
        try:
            self._client.put_object(Bucket=self._bucket, Key=name, Body=content, ContentType="application/octet-stream")
        except (BotoCoreError, ClientError) as error:
            raise _unavailable(error) from error
        return name

    def get(self, name: str) -> bytes:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=name)["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
                raise ObjectMissing(
                    "the transcript is no longer in object storage", hint="tell the server's administrator"
                ) from error
            raise _unavailable(error) from error
        except BotoCoreError as error:
            raise _unavailable(error) from error

    def remove(self, name: str) -> None:
        try:
            self._client.delete_object(Bucket=self._bucket, Key=name)
        except (BotoCoreError, ClientError) as error:
            raise _unavailable(error) from error

    def names(self, tenant: str, *, before: datetime) -> Iterator[str]:
        try:
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._folder(tenant)):
                for found in page.get("Contents", ()):
                    if found["LastModified"] < before:
                        yield found["Key"]
        except (BotoCoreError, ClientError) as error:
            raise _unavailable(error) from error

    def owns(self, tenant: str, name: str) -> bool:
        return name.startswith(self._folder(tenant))

    def _folder(self, tenant: str) -> str:
        """Return a tenant's folder in hexadecimal, so that no tenant's name is a prefix of another's, or a path."""
        return f"{self._prefix}/{tenant.encode().hex()}/"


def _unavailable(error: BotoCoreError | ClientError) -> StoreUnavailable:
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "unknown")
        return StoreUnavailable(f"object storage refused: {code}", hint=_STORAGE_HINT)
    return StoreUnavailable("object storage does not answer", hint=_STORAGE_HINT)


LONG: Final = 40_000
"""Bytes, about 10,000 tokens; a longer transcript is kept in object storage."""
_COLUMNS: Final = (
    "uuid, scope, project, source, record, overall, created, updated, created_by, object, kite.person() AS person,"
    " transcript IS NOT NULL OR object <> '' AS has_transcript"
)
_KEEPS: Final = "%(object)s = '' AND %(transcript)s::bytea IS NULL"
_WRITE: Final = f"""
INSERT INTO kite.conversation AS known (tenant, uuid, scope, project, source, record, overall, created, updated, created_by,
                                        transcript, object, object_hash, person)
VALUES (%(tenant)s, %(uuid)s, %(scope)s, %(project)s, %(source)s, %(record)s::json, %(overall)s::json, %(created)s, %(updated)s,
        %(created_by)s, %(transcript)s::bytea, %(object)s, %(hash)s, kite.whose(%(scope)s))
ON CONFLICT (tenant, uuid, scope, project, person) DO UPDATE SET
    record = excluded.record, overall = excluded.overall, source = excluded.source,
    updated = greatest(excluded.updated, known.updated + interval '1 microsecond'),
    transcript = CASE WHEN {_KEEPS} THEN known.transcript ELSE excluded.transcript END,
    object = CASE WHEN {_KEEPS} THEN known.object ELSE excluded.object END,
    object_hash = CASE WHEN {_KEEPS} THEN known.object_hash ELSE excluded.object_hash END
"""  # noqa: S608 - every part is ours
_HINT: Final = "set `bucket` in `[team]`, or save the conversation without its transcript"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTranscript:
    """A transcript in its row, or the name of its object with the expected hash."""

    content: bytes | None = None
    object: str = ""
    hash: str = ""

    def fetched(self, objects: Objects | None) -> str | None:
        if not self.object:
            return None if self.content is None else self.content.decode("utf-8", "surrogatepass")
        if objects is None:
            raise StoreUnavailable("this transcript is in object storage, which is not set up here", hint="see `[team]`")
        content = objects.get(self.object)
        if hashlib.sha256(content).hexdigest() != self.hash:
            raise ObjectMissing(
                "the transcript in object storage is not what was put there", hint="tell the server's administrator"
            )
        return content.decode("utf-8", "surrogatepass")


def ready(conversation: SavedConversation, objects: Objects | None, tenant: str) -> StoredTranscript:
    """Return where the transcript is kept. A long one is uploaded first, before any database lock is held."""
    if not conversation.transcript:
        return StoredTranscript()
    content = conversation.transcript.encode("utf-8", "surrogatepass")
    if len(content) <= LONG:
        return StoredTranscript(content=content)
    if objects is None:
        raise StoreUnavailable("a transcript this long needs object storage, which is not set up", hint=_HINT)
    return StoredTranscript(object=objects.put(tenant, content), hash=hashlib.sha256(content).hexdigest())


def take_away(objects: Objects | None, tenant: str, name: str) -> None:
    """Delete an object of the tenant. If that fails, `PostgresStore.sweep` does it later."""
    if objects is not None and name and objects.owns(tenant, name):
        with contextlib.suppress(StoreUnavailable):
            objects.remove(name)


def own_copy(objects: Objects | None, tenant: str, name: str) -> str:
    """Return the name of the tenant's own copy of an object, which is copied if it is another tenant's and still there."""
    if objects is None or not name or objects.owns(tenant, name):
        return name
    try:
        return objects.put(tenant, objects.get(name))
    except ObjectMissing:
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """All that is to be written, computed before any lock is held.

    ``over`` is when the conversation to amend was last changed. ``forgotten`` are titles of forgotten notes, which neither the
    conversation nor its journal may contain.
    """

    conversation: SavedConversation
    over: datetime | None
    journal: tuple[Note, Indexed]
    notes: tuple[tuple[Note, Indexed], ...]
    forgotten: tuple[str, ...] = ()


def prepared(
    conversation: SavedConversation, old: SavedConversation | None, gone: Collection[str], grant: Grant, embedder: Embedder
) -> Prepared:
    """Return what to write. ``gone`` are the ids of forgotten notes."""
    over = old.updated if old else None
    if old is not None:
        conversation = merged(old, conversation)
    everywhere = grant.sees(Scope.GLOBAL, "")
    forgotten = tuple(note.title for note in _notes(conversation, everywhere=everywhere) if note.id in gone)
    conversation = _unsaid(conversation, gone)
    made = tuple(_notes(conversation, everywhere=everywhere))
    journal = clean(journal_of(conversation, [note.path.rpartition("/")[2].removesuffix(".md") for note in made]))
    return Prepared(
        conversation=conversation,
        over=over,
        journal=(journal, indexed(journal, embedder)),
        notes=tuple((note, indexed(note, embedder)) for note in made),
        forgotten=forgotten,
    )


def prepare_removal(id: str, conversation: SavedConversation, *, embedder: Embedder) -> Prepared:
    """Return the conversation without the note of this id; its other notes do not change."""
    less = prepared(conversation, None, {id}, OWNER, embedder)
    return replace(less, over=conversation.updated, notes=())


def note_ids(conversation: SavedConversation) -> list[str]:
    return [id for item in conversation.record.items() for id in _ids(conversation, item)]


def _unsaid(conversation: SavedConversation, gone: Collection[str]) -> SavedConversation:
    items = {
        item_id(conversation, item) for item in conversation.record.items() if not set(_ids(conversation, item)).isdisjoint(gone)
    }
    return replace(conversation, record=without(conversation, items))


def save(cursor: Cursor, tenant: str, prepared: Prepared, kept: StoredTranscript) -> tuple[Saved, str] | None:
    """Save the conversation.

    Return the result and the name of an object no longer needed; ``None`` if it was amended or forgotten meanwhile.
    """
    conversation = prepared.conversation
    _take_turn(cursor, tenant, conversation.uuid)
    old = _row(cursor, tenant, conversation.uuid, place_of(conversation))
    written = [prepared.journal[0].id, *(note.id for note, _ in prepared.notes)]
    if (old["updated"] if old else None) != prepared.over or forgotten(cursor, tenant, written):
        return None
    _write(cursor, tenant, conversation, kept)
    row = note_row(prepared.journal[0], by=conversation.created_by, conversation=conversation.uuid)
    notes.put(cursor, tenant, row, prepared.journal[1])
    contraries = {item_id(conversation, item): opposite(conversation, item) for item in conversation.record.items()}
    for note, index in prepared.notes:
        if (contrary := contraries.get(note.id)) and (stem := notes.replace_by(cursor, tenant, contrary, note)):
            note = replace(note, supersedes=(stem,), valid_from=note.holds_from)
        notes.put(cursor, tenant, note_row(note, by=conversation.created_by, conversation=conversation.uuid), index)
    saved = Saved(
        uuid=conversation.uuid,
        journal=prepared.journal[0].id,
        notes=tuple(note.id for note, _ in prepared.notes),
        refused=tuple((title, "it was forgotten") for title in prepared.forgotten),
        amended=old is not None,
        scope=conversation.scope,
        project=conversation.project,
    )
    return saved, old["object"] if old and (kept.object or kept.content is not None) else ""


def source_of(cursor: Cursor, grant: Grant, tenant: str, name: str) -> tuple[str, SavedConversation] | None:
    """Return the id of a note by its name, and the conversation it came from, or ``None`` if it came from none."""
    note = notes.called(cursor, grant, tenant, name)
    if note is None or note.kind is NoteKind.JOURNAL:
        return None
    rows = cursor.execute(
        f"SELECT {_COLUMNS} FROM kite.conversation WHERE tenant = %(tenant)s AND uuid ="  # noqa: S608 - ours
        " (SELECT conversation FROM kite.note WHERE tenant = %(tenant)s AND id = %(id)s)",
        {"tenant": tenant, "id": note.id},
    ).fetchall()
    return next(((note.id, conversation) for conversation in map(_conversation, rows) if note.id in note_ids(conversation)), None)


def forget(cursor: Cursor, grant: Grant, tenant: str, name: str, less: Prepared | None) -> tuple[bool, str] | None:
    """Do what `notes.forget` does. ``less`` is the note's conversation without it. ``None`` if ``less`` is out of date."""
    if less is not None:
        _take_turn(cursor, tenant, less.conversation.uuid)
    source = source_of(cursor, grant, tenant, name)
    if (source[1].updated if source else None) != (less.over if less else None):
        return None
    if less is not None:
        _write(cursor, tenant, less.conversation, StoredTranscript())
        journal, index = less.journal
        row = note_row(journal, by=less.conversation.created_by, conversation=less.conversation.uuid)
        notes.put(cursor, tenant, row, index)
    return notes.forget(cursor, grant, tenant, name)


def _take_turn(cursor: Cursor, tenant: str, uuid: str) -> None:
    cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s || chr(10) || %s, 0))", (tenant, storable(uuid)))


def _notes(conversation: SavedConversation, *, everywhere: bool) -> Iterator[Note]:
    for draft in drafts_of(conversation, everywhere=everywhere):
        note = draft.note
        lifted = note.scope is not conversation.scope
        yield clean(
            replace(
                note,
                id=_lifted(conversation, note.id, note.scope) if lifted else note.id,
                body=compose(draft, {}, ()),
                session=conversation.uuid if note.scope is Scope.SESSION else note.session,
                updated=conversation.updated,
            )
        )


def _lifted(conversation: SavedConversation, id: str, scope: Scope) -> str:
    """Return a note's id in another scope than the conversation's.

    It differs from the id in the conversation's own place, so that a caller who cannot see that place does not meet it.
    """
    return identity(conversation, scope.value, *filter(None, [conversation.person]), id)


def _standing(cursor: Cursor, tenant: str, conversation: SavedConversation) -> SavedConversation:
    """Return the conversation without items whose notes were forgotten, rejected or replaced since."""
    ids = note_ids(conversation)
    rows = cursor.execute(
        "SELECT id FROM kite.trash WHERE tenant = %(tenant)s AND id = ANY (%(ids)s::text[]) UNION ALL SELECT id FROM kite.note"
        " WHERE tenant = %(tenant)s AND id = ANY (%(ids)s::text[]) AND status IN ('rejected', 'superseded')",
        {"tenant": tenant, "ids": ids},
    ).fetchall()
    return _unsaid(conversation, {row["id"] for row in rows})


def _ids(conversation: SavedConversation, item: RecordItem) -> tuple[str, str]:
    return item_id(conversation, item), _lifted(conversation, item_id(conversation, item), Scope.GLOBAL)


def _write(cursor: Cursor, tenant: str, conversation: SavedConversation, kept: StoredTranscript) -> None:
    cursor.execute(
        _WRITE,
        {
            "tenant": tenant,
            "uuid": storable(conversation.uuid),
            "scope": conversation.scope.value,
            "project": storable(conversation.project),
            "source": storable(conversation.source),
            "record": encoded(record_json(conversation.record)),
            "overall": encoded(conversation.overall),
            "created": aware(conversation.created),
            "updated": aware(conversation.updated),
            "created_by": storable(conversation.created_by),
            "transcript": kept.content,
            "object": kept.object,
            "hash": kept.hash,
        },
    )


def forgotten(cursor: Cursor, tenant: str, ids: list[str]) -> frozenset[str]:
    """Return those of the ids that belong to forgotten notes."""
    rows = cursor.execute("SELECT id FROM kite.trash WHERE tenant = %s AND id = ANY (%s::text[])", (tenant, ids)).fetchall()
    return frozenset(row["id"] for row in rows)


def refused(conversation: SavedConversation) -> Saved:
    """Return the answer for a conversation whose journal was forgotten."""
    because = "this conversation was deleted; save what is new under a new id"
    return Saved(
        uuid=conversation.uuid,
        journal="",
        notes=(),
        refused=((conversation.uuid, because),),
        amended=False,
        scope=conversation.scope,
        project=conversation.project,
    )


def saved(cursor: Cursor, tenant: str, uuid: str, near: MemoryPlace | None) -> SavedConversation | None:
    row = _row(cursor, tenant, uuid, near)
    return _standing(cursor, tenant, _conversation(row)) if row else None


def transcript(cursor: Cursor, tenant: str, uuid: str, near: MemoryPlace | None) -> StoredTranscript | None:
    row = _row(cursor, tenant, uuid, near, "transcript, object, object_hash")
    return StoredTranscript(content=row["transcript"], object=row["object"], hash=row["object_hash"]) if row else None


def refers(cursor: Cursor, tenant: str, name: str) -> bool:
    return (
        cursor.execute("SELECT 1 FROM kite.conversation WHERE tenant = %s AND object = %s", (tenant, name)).fetchone() is not None
    )


def _row(cursor: Cursor, tenant: str, uuid: str, near: MemoryPlace | None, columns: str = _COLUMNS) -> Row | None:
    """Return the row of the conversation in the place ``near``, else of the one saved last.

    It is read without the transcript, unless ``columns`` names it.
    """
    place = (near.scope.value, storable(near.project)) if near is not None else ("", "")
    return cursor.execute(
        f"SELECT {columns} FROM kite.conversation WHERE tenant = %s AND uuid = %s"  # noqa: S608 - ours
        " ORDER BY (scope = %s AND project = %s) DESC, updated DESC LIMIT 1",
        (tenant, storable(uuid), *place),
    ).fetchone()


def _conversation(row: Row) -> SavedConversation:
    return SavedConversation(
        uuid=row["uuid"],
        source=row["source"],
        project=row["project"],
        record=record_of(row["record"]),
        overall=row["overall"],
        created=row["created"],
        updated=row["updated"],
        scope=Scope(row["scope"]),
        has_transcript=row["has_transcript"],
        created_by=row["created_by"],
        person=row["person"],
    )
