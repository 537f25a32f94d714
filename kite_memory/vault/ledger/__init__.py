"""What we know of the vault beside what it says itself: which bodies are ours, what its owner deleted, what is half done.

Not derived data: notes can be read again, but not who wrote them, nor that one was thrown away. A rebuild leaves it alone.
"""

from kite_memory.vault.ledger.ledger import Ledger
from kite_memory.vault.ledger.values import Intent, Keyed, Known, Sight, Wording, link_key, place_digest

__all__ = ["Intent", "Keyed", "Known", "Ledger", "Sight", "Wording", "link_key", "place_digest"]
