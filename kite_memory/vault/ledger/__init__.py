"""What we know of the vault that its files do not hold: which bodies are ours, what its owner deleted, what is unfinished.

Not derived data: notes can be read again, but not who wrote them, nor that one was deleted. A rebuild of the index leaves it alone.
"""

from kite_memory.vault.ledger.database import Intent, Keyed, KeyPlace, KnownFile, OpenedFile, Wording, link_key
from kite_memory.vault.ledger.keys import FORGOTTEN
from kite_memory.vault.ledger.ledger import Ledger, PageOfNotes

__all__ = ["FORGOTTEN", "Intent", "KeyPlace", "Keyed", "KnownFile", "Ledger", "OpenedFile", "PageOfNotes", "Wording", "link_key"]
