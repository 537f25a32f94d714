"""What there is on the disk of somebody else's, asked so that one odd entry costs no other."""

import os
import stat
from pathlib import Path


def is_text(path: Path) -> bool:
    """Names that are not UTF-8 cannot be written down, so such files cannot be read on from where we were."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_file(path: Path) -> bool:
    """Links followed; what may not be looked at, or is too long a name to be one, is none."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def names_in(folder: Path) -> list[str]:
    """Sorted; none of what is no folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def folders_in(folder: Path) -> list[Path]:
    """Links to folders are folders too; one that leads to itself is none."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_folder(entry))
    except OSError:
        return []
    return [folder / name for name in names]


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
