"""Start of `kmem`: sends frequent commands of agents to the daemon before the rest of the command line is loaded."""

import sys
from time import monotonic

_SECONDS = 2.0
_MOST = 20


def run() -> None:
    """Run `kmem` as the console script."""
    words = sys.argv[1:]
    if words[:1] == ["show"] and 1 < len(words) <= _MOST and not any(word.startswith("-") for word in words):
        text = _shown(words[1:])
        if text:
            from kite_memory.cli import console

            console.speak_any_encoding()
            console.say(text)
            console.finish()
            return
    if words == ["statusline"]:
        from kite_memory.cli.status_line import print_segment

        print_segment()
        return
    from kite_memory.cli.main import run as run_any  # Typer alone takes twice as long as all of the above

    run_any()


def _shown(notes: list[str]) -> str:
    """Return the notes' text from the daemon. Empty if it does not show all of them: the full command then reports why."""
    import json

    from kite_memory import endpoint, paths

    try:
        end = monotonic() + _SECONDS
        asked = json.dumps({"notes": notes}).encode()
        word, answer = endpoint.exchange(endpoint.connect(paths.state_dir(), end), "open", asked, end)
        told = json.loads(answer) if word == "ok" else {}
    except (OSError, ValueError):
        return ""
    return "" if told.get("missing", True) else str(told.get("text", ""))
