"""MemPalace (PyPI): its miner of conversations and its search, one wing for each project.

Its embedder fetches all-MiniLM-L6-v2 from a hub at the first use. Where there is none, ``PEER_WEIGHTS`` names a folder with the
files that it would have unpacked.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mempalace.searcher import search_memories

from bench.peers.interface import serve, sessions_of


class MemPalace:
    def index(self, home: Path) -> None:
        self._home = home
        self._palace = str(home / "palace")
        if weights := os.environ.get("PEER_WEIGHTS"):
            shutil.copytree(weights, home / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx")
        for folder in sorted((home / ".claude" / "projects").iterdir()):
            project = folder.name.removeprefix("-home-ada-")
            mine = [sys.executable, "-m", "mempalace", "--palace", self._palace, "mine", str(folder), "--mode", "convos"]
            subprocess.run([*mine, "--wing", project, "--direct"], check=True, stdout=subprocess.DEVNULL)

    def search(self, query: str, project: str) -> Sequence[str]:
        there = sessions_of(self._home, project)
        found = search_memories(query, self._palace, wing=project, n_results=10)
        return [stem for hit in found.get("results", ()) if (stem := Path(hit["source_file"]).stem) in there]


if __name__ == "__main__":
    serve(MemPalace())
