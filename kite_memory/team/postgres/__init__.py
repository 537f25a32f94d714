"""The team's store. Import it inside the function that needs it: its dependencies come with ``kite-memory[team]``."""

from kite_memory.team.postgres.audit import AuditEntry, AuditTrail
from kite_memory.team.postgres.connections import Patience, SchemaMissing
from kite_memory.team.postgres.conversations import Objects, S3Objects
from kite_memory.team.postgres.migrating import NotPermitted, migrate
from kite_memory.team.postgres.store import Housekeeping, PostgresStore, open_postgres

__all__ = [
    "AuditEntry",
    "AuditTrail",
    "Housekeeping",
    "NotPermitted",
    "Objects",
    "Patience",
    "PostgresStore",
    "S3Objects",
    "SchemaMissing",
    "migrate",
    "objects_of",
    "open_postgres",
]


def objects_of(*, bucket: str, endpoint: str = "", prefix: str = "kite-memory", region: str = "") -> Objects | None:
    """Return the object storage; ``None`` without a bucket, in which case long transcripts are refused."""
    return S3Objects(bucket=bucket, endpoint=endpoint, prefix=prefix, region=region) if bucket else None
