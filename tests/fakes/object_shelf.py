"""Object storage that is a dictionary."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from kite_memory.team.postgres.conversations import ObjectMissing
from kite_memory.tools.store import StoreUnavailable


class ObjectShelf:
    """``down`` makes every call fail, as when no one answers. ``kept`` is what it holds, by name."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[bytes, datetime]] = {}
        self.down = False

    def put(self, tenant: str, content: bytes) -> str:
        self._answer()
        name = f"{tenant}/{uuid.uuid4().hex}"
        self.kept[name] = content, datetime.now(UTC)
        return name

    def get(self, name: str) -> bytes:
        self._answer()
        if name not in self.kept:
            raise ObjectMissing("not there")
        return self.kept[name][0]

    def remove(self, name: str) -> None:
        self._answer()
        self.kept.pop(name, None)

    def names(self, tenant: str, *, before: datetime) -> Iterator[str]:
        self._answer()
        yield from [name for name, (_, at) in self.kept.items() if name.startswith(f"{tenant}/") and at < before]

    def owns(self, tenant: str, name: str) -> bool:
        return name.startswith(f"{tenant}/")

    def _answer(self) -> None:
        if self.down:
            raise StoreUnavailable("object storage does not answer", hint="try again")
