"""Names for notes that come out the same however often they are made."""

import hashlib
from datetime import datetime

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def note_id(at: datetime, *seed: str) -> str:
    """A ULID: 48 bits of time, then 80 bits of ``seed``'s hash. The same arguments give the same id, on any machine."""
    milliseconds = min(max(int(at.timestamp() * 1000), 0), (1 << 48) - 1)
    hashed = hashlib.sha256("\0".join(seed).encode("utf-8", "surrogatepass")).digest()[:10]
    number = (milliseconds << 80) | int.from_bytes(hashed)
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))
