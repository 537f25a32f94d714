"""Run `kmem` as `python -m kite_memory`.

Running this file by its path under `python -P` does the same and keeps other folders from being imported first.
"""

import os
import sys
from pathlib import Path


def main() -> None:
    if not __package__:
        sys.path.append(str(Path(__file__).resolve().parent.parent))
    if sys.argv[1:] == ["daemon"]:
        sys.exit(_daemon())
    from kite_memory.cli.opening import run

    run()


def _daemon() -> int:
    """Run `kmem daemon` without loading the command line, which would cost the long-lived process ten megabytes."""
    from kite_memory.errors import KiteError

    os.umask(0o077)
    try:
        from kite_memory import config
        from kite_memory.daemon.protocol import DaemonLock

        settings = config.load()
        with DaemonLock.take(settings.state) as lock:  # before the rest is loaded: a second daemon ends at once
            from kite_memory.wiring.daemon import run_daemon

            return run_daemon(settings, lock)
    except KiteError as error:
        _print(f"error: {error}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _print(f"error: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}\n")
        return 1
    except Exception as error:  # noqa: BLE001 - the edge of the process
        _print(f"error: {type(error).__name__}: {error}\nhint: this is a bug in kmem; report what `kmem --debug daemon` prints\n")
        return 70


def _print(text: str) -> None:
    if sys.stderr is not None:  # pythonw has no console
        sys.stderr.write(text)


main()
