"""The bill of materials of an installation, as CycloneDX JSON: what `requirements.lock` pins, with its hashes.

python -m bench.release.sbom > sbom.json
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kite_memory import __version__

LOCK = Path(__file__).parents[2] / "requirements.lock"

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    name: str
    version: str
    hashes: tuple[str, ...]


def pinned(lock: str) -> Iterator[Pinned]:
    """Every requirement of a lock file. One that is not pinned to a version and to hashes is a `ValueError`."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", "\n" + lock.strip()):
        if not (text := block.strip()) or text.startswith("#"):
            continue
        pin, hashes = _PIN.match(text), tuple(_HASH.findall(text))
        if pin is None or not hashes:
            raise ValueError(f"not pinned: {text.splitlines()[0]}")
        yield Pinned(name=pin[1], version=pin[2], hashes=hashes)


def bill(lock: str) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "kite-memory", "version": __version__}},
        "components": [
            {
                "type": "library",
                "name": each.name,
                "version": each.version,
                "purl": f"pkg:pypi/{each.name.lower()}@{each.version}",
                "hashes": [{"alg": "SHA-256", "content": content} for content in each.hashes],
            }
            for each in pinned(lock)
        ],
    }


def main() -> None:
    json.dump(bill(LOCK.read_text(encoding="utf-8")), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
