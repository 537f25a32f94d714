"""What holds for every test: how many examples are drawn, and which tests are slow."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.counts import examples
from tests.slow import is_slow, is_slow_file

# No test asserts on time. In CI the same examples are drawn every time, so that no landing depends on the draw; elsewhere new ones.
settings.register_profile("here", deadline=None, max_examples=examples(100))
settings.register_profile("ci", settings.get_profile("here"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave whole slow folders unread where no slow test is asked for."""
    fast_only = "not slow" in config.option.markexpr
    return True if fast_only and collection_path.is_file() and is_slow_file(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
