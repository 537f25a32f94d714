"""How many examples a test draws: a share on each run, the full count with ``-m moonshot``.

``KMEM_TEST_SHARE`` (1 by default) scales the examples of property tests; `make test` sets a smaller share.
"""

import os

_SHARE = float(os.environ.get("KMEM_TEST_SHARE", "1"))
_FEWEST = 10

_moonshot = False


def use_full_counts(yes: bool) -> None:
    """Set by `tests/goals/conftest.py` before any test module is imported."""
    global _moonshot
    _moonshot = yes


def how_many(full: int, *, share: int = 10) -> int:
    """``full`` with ``-m moonshot``, else one in ``share``."""
    return full if _moonshot else max(1, full // share)


def one_in() -> int:
    """Return how many cases of an exhaustive list stand for each that is tried: 1 with ``KMEM_TEST_SHARE=1``, 4 with 0.25."""
    return max(1, round(1 / _SHARE))


def examples(number: int) -> int:
    """``number`` scaled by ``KMEM_TEST_SHARE``, at least ten."""
    return max(min(number, _FEWEST), round(number * _SHARE))
