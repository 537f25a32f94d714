"""What is to happen once a reply has arrived at the agent, or has been lost."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack


class Delivery:
    """Actions to run once a reply has arrived, or once it is lost. Whichever of the two comes first takes effect; the other does
    nothing.
    """

    def __init__(self) -> None:
        self._arrived: list[Callable[[], object]] = []
        self._lost: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        """Return whether any action is registered."""
        return bool(self._arrived or self._lost)

    def when(self, *, arrived: Callable[[], object] = lambda: None, lost: Callable[[], object] = lambda: None) -> None:
        self._arrived.append(arrived)
        self._lost.append(lost)

    def arrived(self) -> None:
        self._end(self._arrived)

    def lost(self) -> None:
        self._end(self._lost)

    def _end(self, steps: Sequence[Callable[[], object]]) -> None:
        steps = tuple(steps)
        self._arrived.clear()
        self._lost.clear()
        with ExitStack() as each:  # a failing step does not prevent the others
            for step in reversed(steps):
                each.callback(step)
