"""Write the plugins' files from the code: `python -m tests.plugin_files`."""

from pathlib import Path

from kite_memory.agents import registry
from kite_memory.agents.registry import CODEX_HOOKS, GEMINI_HOOKS
from kite_memory.paths import asset_folder


def main() -> None:
    for name, text in registry.files(CODEX_HOOKS, GEMINI_HOOKS).items():
        path = Path(asset_folder("hooks")) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
