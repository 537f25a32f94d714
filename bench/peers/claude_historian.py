"""claude-historian-mcp (npm): the search behind its MCP tool, in a Node process that stays.

Its packages lie in the folder that PEER_PACKAGES names.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.peers.interface import serve, sessions_of

_ASK = """
import { createInterface } from "node:readline";
const { UniversalHistorySearchEngine } = await import(process.argv[1]);
const engine = new UniversalHistorySearchEngine();
await engine.initialize();
for await (const line of createInterface({ input: process.stdin })) {
  const { query, project } = JSON.parse(line);
  const { results } = await engine.searchConversations(query, project, undefined, 50);
  console.log("=" + JSON.stringify(results.messages.map((message) => message.sessionId)));
}
"""


class ClaudeHistorian:
    def index(self, home: Path) -> None:
        """Start it. It keeps no index: every search reads the transcripts."""
        self._home = home
        engine = Path(os.environ["PEER_PACKAGES"]) / "node_modules" / "claude-historian-mcp" / "dist" / "universal-engine.js"
        command = ["node", "--input-type=module", "-e", _ASK, str(engine)]
        self._node = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def search(self, query: str, project: str) -> Sequence[str]:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.write(json.dumps({"query": query, "project": project}) + "\n")
        self._node.stdin.flush()
        there = sessions_of(self._home, project)
        for line in self._node.stdout:
            if line.startswith("="):
                return [session for session in json.loads(line[1:]) if session in there]
        raise RuntimeError("claude-historian-mcp ended")


if __name__ == "__main__":
    serve(ClaudeHistorian())
