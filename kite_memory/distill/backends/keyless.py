"""A model that was asked for and has no key: what it would be asked waits for a person, and all else goes on."""

from dataclasses import dataclass

from kite_memory.distill.extractor import Misconfigured, Usage
from kite_memory.model.chunk import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyless:
    name: str
    hint: str
    version: str = ""

    @property
    def lack(self) -> Misconfigured:
        return Misconfigured(reason=f"the extractor `{self.name}` has no key", hint=self.hint)

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage()

    def extract(self, chunk: Chunk) -> Misconfigured:
        return self.lack
