"""How much of a goal's count is run: a part of it each time, the whole of it with ``-m moonshot``."""

_moonshot = False


def shoot_for_the_moon(yes: bool) -> None:
    """Said once, by this folder's `conftest`, before any test module is imported."""
    global _moonshot
    _moonshot = yes


def how_many(full: int, *, share: int = 10) -> int:
    """``full`` with ``-m moonshot``, else one in ``share``."""
    return full if _moonshot else max(1, full // share)
