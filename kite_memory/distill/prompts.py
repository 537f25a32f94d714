"""Loading of a task's prompt from disk: the built-in one, or a person's override."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kite_memory.errors import ConfigInvalid

MARK = "kite-memory:extract"
"""Mark in every prompt that Kite Memory sends, so that sessions with it are recognised and never read."""

REVISION = 1
"""Increased when condensing, checking or the gate change the result of the same answer."""

_LARGEST = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """A task's prompt. ``version`` is a hash of both files only: the caller adds the model's name."""

    system: str
    schema: Mapping[str, object] = field(hash=False)
    version: str


def load(folders: Sequence[Path], task: str = "extract") -> PromptTemplate:
    """Load each file of ``<folder>/<task>/`` from the first folder that has it, so that a person may override just one.

    Raises `ConfigInvalid`, naming the file, if one cannot be used.
    """
    system_file, system = _first(folders, task, "system.md")
    schema_file, written = _first(folders, task, "schema.json")
    if not system.strip():
        raise ConfigInvalid(f"the prompt in {system_file} is empty", hint="delete the file to use the built-in prompt")
    try:
        schema = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid(f"{schema_file} is not valid JSON: {error}", hint="delete it to use the built-in one") from error
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ConfigInvalid(f'{schema_file} is not a schema of type "object"', hint="delete the file to use the built-in schema")
    digest = hashlib.sha256(f"{REVISION}\0{system}\0{json.dumps(schema, sort_keys=True)}".encode())
    return PromptTemplate(system=system, schema=schema, version=digest.hexdigest()[:12])


def _first(folders: Sequence[Path], task: str, name: str) -> tuple[Path, str]:
    for folder in folders:
        file = folder / task / name
        try:
            if file.stat().st_size > _LARGEST:
                raise ConfigInvalid(f"{file} is larger than {_LARGEST} bytes", hint="a prompt is a page or two of text")
            return file, file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ConfigInvalid(f"cannot read {file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigInvalid(f"{file} is not UTF-8 text", hint="save it as UTF-8, or delete it") from error
    looked_in = ", ".join(map(str, folders)) or "any folder"
    raise ConfigInvalid(f"no {task}/{name} in {looked_in}", hint="the installation is incomplete")
