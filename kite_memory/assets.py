"""Locations of the data folders shipped with the code: prompts, hooks and the vault template."""

from pathlib import Path
from typing import Literal

AssetFolder = Literal["prompts", "hooks", "vault_template"]


def folder(name: AssetFolder) -> Path:
    """Return the path of a data folder: inside the package when installed from a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "assets" / name
    return installed if installed.is_dir() else package.parent / name
