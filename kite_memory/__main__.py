"""`python -m kite_memory` is `kmem`."""

from kite_memory.cli.main import run

run()
