"""What holds for every test."""

import os

from hypothesis import settings

# A landing must not hang on the luck of the draw: there the same examples are drawn every time; elsewhere new ones.
settings.register_profile("ci", derandomize=True, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
