"""Notes on disk: the markdown that is the truth.

`Vault` is the door; `drafting` and `planning` decide what should be written, and the rest of the room is how it gets there whole.
"""

from kite_memory.vault.vault import Vault

__all__ = ["Vault"]
