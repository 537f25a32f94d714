"""What a command answered, kept until something it was made from has changed."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kite_memory import __version__
from kite_memory.config import Config
from kite_memory.system import sqlite
from kite_memory.system.private_files import make_private_folder, names_in, replace_file, stamp_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """An answer that a command gave, which holds ``until`` then if nothing has changed. Transcripts are compared besides."""

    found: str
    """The `inputs_digest` at that time."""
    answer: Any
    until: float

    def keep(self, state: Path, name: str) -> None:
        fields = {"found": self.found, "until": self.until, "answer": self.answer}
        make_private_folder(state / _ANSWERS)
        replace_file(state / _ANSWERS / f"{name}.json", json.dumps(fields).encode())


_ANSWERS = "answers"


def drop_answers(state: Path) -> bool:
    """Delete all kept answers, which name notes. Return ``False`` if any cannot be deleted."""
    left = False
    for name in names_in(state / _ANSWERS):
        try:
            (state / _ANSWERS / name).unlink(missing_ok=True)
        except OSError:
            left = True
    return not left


def kept_answer(config: Config, name: str, now: datetime, *, keys: Sequence[str]) -> Any:
    """Return the answer that is kept under a name; ``None`` without one that still holds."""
    try:
        kept = json.loads((config.state / _ANSWERS / f"{name}.json").read_bytes())
    except (OSError, ValueError):
        return None
    match kept:
        case {"found": str(found), "until": int() | float() as until, "answer": answer} if now.timestamp() < until:
            return answer if found == inputs_digest(config, now, keys=keys) else None
        case _:
            return None


def _stamp_of(path: str) -> tuple[int, int] | None:
    try:
        return stamp_of(Path(path))
    except OSError:  # deleted meanwhile, or a link that leads nowhere, as an editor makes one beside a file that is not saved
        return None


def inputs_digest(config: Config, now: datetime, *, keys: Sequence[str]) -> str:
    """Return a digest of all that answers are made of, transcripts aside: settings, ``keys``, state, vault, and the day."""
    beside = {path.name: stamp_of(path) for path in sorted(config.file.parent.glob("*.*")) if path.is_file()}
    state = {name: stamp for name, stamp in sqlite.stamps(config.state).items() if not name.endswith(".html")}  # `kmem web`'s link
    vault: list[tuple[str, tuple[int, int] | None]] = []
    for here, folders, names in os.walk(config.vault):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        vault += ((path := os.path.join(here, name), _stamp_of(path)) for name in sorted(names))  # noqa: PTH118 - a vault may have many
    whole = repr((__version__, config, sorted(keys), f"{now:%Y-%m-%d}", beside, state, vault))
    return hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()
