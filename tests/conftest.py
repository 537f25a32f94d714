"""What holds for every test: how many examples are drawn, and which tests are slow."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.counts import examples
from tests.slow import has_fast_tests, has_slow_tests, is_slow

# No test asserts on time. In CI the same examples are drawn every time, so that no landing depends on the draw; elsewhere new ones.
settings.register_profile("here", deadline=None, max_examples=examples(100))
settings.register_profile("ci", settings.get_profile("here"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread that hold no test of the tier that is asked for."""
    if not collection_path.name.startswith("test_") or not collection_path.is_file():
        return None
    tier: str = config.option.markexpr
    if "not slow" in tier:
        return None if has_fast_tests(collection_path) else True
    if tier.startswith("slow and"):
        return None if has_slow_tests(collection_path) else True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
