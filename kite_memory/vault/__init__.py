"""Notes on disk: the markdown files are the source of truth.

`Vault` is the entry point; `drafting` and `planning` decide what should be written, and the other modules write it atomically.
"""

from kite_memory.vault.vault import Vault

__all__ = ["Vault"]
