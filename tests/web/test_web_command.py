"""`kmem web` as a person runs it: a link on standard output, kept from other users, gone when it ends."""

import http.client
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ends by a signal")


def test_the_link_is_for_this_user_alone_and_ends_with_the_command(tmp_path: Path) -> None:
    environment = {**os.environ, "KMEM_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment.pop("PYTHONUNBUFFERED", None)
    command = [sys.executable, "-m", "kite_memory", "web", "--no-open"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            link = running.stdout.readline().strip()
            parts = urlsplit(link)
            file = tmp_path / "state" / f"web-{parts.port}.html"  # another `kmem web` has its own
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
            assert parts.hostname == "127.0.0.1"
            assert parts.query not in Path(f"/proc/{running.pid}/cmdline").read_text() if sys.platform == "linux" else True
            connection = http.client.HTTPConnection(parts.netloc, timeout=30)
            connection.request("GET", f"{parts.path}?{parts.query}")
            assert connection.getresponse().status == 200
            connection.close()
        finally:
            running.send_signal(signal.SIGTERM)
            _, said = running.communicate(timeout=60)

    assert running.returncode == 0
    assert "Traceback" not in said
    assert not file.exists()
    assert not (tmp_path / "memory").exists()  # looking makes no vault
