"""How often somebody may ask: buckets that fill up again, for each token and each address."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

_MOST_KNOWN = 10_000


class Buckets:
    """Each name may do ``burst`` things at once, and ``rate`` more each second. Thread-safe, and bounded in memory.

    Of more names than can be kept, those not seen for longest are forgotten, whose buckets are the fullest.
    """

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = monotonic, most: int = _MOST_KNOWN) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> bool:
        """Whether there was one left."""
        with self._lock:
            now = self._clock()
            left, since = self._left.pop(name, (self._burst, now))
            left = min(self._burst, left + (now - since) * self._rate)
            taken = left >= 1
            self._left[name] = (left - 1 if taken else left, now)
            if len(self._left) > self._most:
                self._left.popitem(last=False)
            return taken
