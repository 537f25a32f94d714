"""What holds for every test."""

import os

from hypothesis import settings

# No test asserts on time. And a landing must not hang on the luck of the draw: there the same examples are drawn every time;
# elsewhere new ones.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
