"""Write the plugins' files from the code: `python -m tests.plugin_files`."""

from kite_memory import assets
from kite_memory.agents import registry
from kite_memory.agents.registry import CODEX_HOOKS, GEMINI_HOOKS


def main() -> None:
    for name, text in registry.files(CODEX_HOOKS, GEMINI_HOOKS).items():
        path = assets.folder("hooks") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
