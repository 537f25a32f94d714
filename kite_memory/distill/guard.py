"""Run a command that dies with its parent, however that ends: ``python -I -S guard.py FD COMMAND …``.

The parent holds the other end of the pipe FD and makes this process the leader of a group. When the pipe closes, the whole
group is killed: a daemon that is itself killed leaves no client calling a model. Standard library only, since it runs without
`site`.
"""

import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    control, command = int(sys.argv[1]), sys.argv[2:]
    threading.Thread(target=_end_with, args=(control,), daemon=True).start()
    try:
        return subprocess.call(command)
    except OSError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the only way this process has to tell its starter
        return 127


def _end_with(control: int) -> None:
    while os.read(control, 1):
        pass
    if sys.platform != "win32":
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
