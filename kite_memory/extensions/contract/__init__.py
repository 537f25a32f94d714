"""Contract suites: what every source, extractor and embedder promises.

They are classes to subclass in a test module, and the only part of the package that needs pytest.
"""

import pytest

for _module in ("bad_input_contract", "source_contract", "extractor_contract", "embedder_contract"):
    pytest.register_assert_rewrite(f"{__name__}.{_module}")
