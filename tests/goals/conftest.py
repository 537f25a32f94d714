"""The goals: the same tests run a part of their counts, or all of them with ``-m moonshot``."""

from pathlib import Path

import pytest

from tests import counts

FOLDER = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    counts.use_full_counts(config.option.markexpr == "moonshot")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``-m moonshot`` every goal is one, and may take as long as it takes. A machine that is busy else may be slow, too."""
    moonshot = config.option.markexpr == "moonshot"
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.timeout(0 if moonshot else 900), append=False)
            if moonshot:
                item.add_marker(pytest.mark.moonshot)
