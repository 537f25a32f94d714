"""`python -m kite_memory` is `kmem`. So is this file by its path under `python -P`, where no other folder can come in between."""

import sys
from pathlib import Path


def main() -> None:
    if not __package__:
        sys.path.append(str(Path(__file__).resolve().parent.parent))
    from kite_memory.cli.main import run

    run()


main()
