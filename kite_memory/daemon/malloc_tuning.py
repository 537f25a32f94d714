"""Keeping the heap of a process that mostly waits as small as what it holds."""

import ctypes
import sys

_ARENA_MAX = -8
"""``M_ARENA_MAX`` of glibc's ``mallopt``."""

_ARENAS = 2

_MMAP_THRESHOLD = -3
_LARGE = 1 << 20
"""From here on a block is given back as it is freed: a layer's expanded weights, a matrix of many notes. Left to itself glibc
raises this to what was last freed, and keeps megabytes after every prompt.
"""


def few_arenas() -> None:
    """Let all threads share two heaps.

    glibc would give each its own, up to eight for every core, and memory freed in one is of no use to another: a dozen
    threads that each embedded one query hold thirty megabytes between them. Other C libraries do not do this.
    """
    if (libc := _glibc()) is not None:
        libc.mallopt(_ARENA_MAX, _ARENAS)
        libc.mallopt(_MMAP_THRESHOLD, _LARGE)


def give_back() -> None:
    """Return what is free to the system; after work that needed much."""
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None
