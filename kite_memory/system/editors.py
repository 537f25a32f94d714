"""Folders in which VS Code and its variants store extension data, locally and on remote machines."""

from collections.abc import Mapping
from pathlib import Path

_EDITORS = (
    "Code",
    "Code - Insiders",
    "Code - OSS",
    "VSCodium",
    "VSCodium - Insiders",
    "Cursor",
    "Windsurf",
)
_SERVERS = (
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscode-remote",
    ".vscode-server-oss",
    ".vscodium-server",
    ".cursor-server",
    ".windsurf-server",
)


def extension_storages(extension: str, *, environment: Mapping[str, str], home: Path, platform: str) -> tuple[Path, ...]:
    """Return the folders that ``extension`` may have, whether or not they exist. ``platform`` is the value of ``sys.platform``.

    Respects the editors' own variables ``VSCODE_PORTABLE`` and ``VSCODE_APPDATA``.
    """
    applications = _named(environment, "VSCODE_APPDATA") or _applications(environment, home, platform)
    users = [applications / editor / "User" for editor in _EDITORS]
    users += [home / server / "data" / "User" for server in _SERVERS]
    users.append(home / ".local" / "share" / "code-server" / "User")
    if portable := _named(environment, "VSCODE_PORTABLE"):
        users.insert(0, portable / "user-data" / "User")
    return tuple(user / "globalStorage" / extension for user in users)


def user_folder(editor: str, *, environment: Mapping[str, str], home: Path, platform: str) -> Path:
    """Return the folder of one editor's user settings on this machine."""
    return _applications(environment, home, platform) / editor / "User"


def _applications(environment: Mapping[str, str], home: Path, platform: str) -> Path:
    match platform:
        case "darwin":
            return home / "Library" / "Application Support"
        case "win32":
            return _named(environment, "APPDATA") or home / "AppData" / "Roaming"
        case _:
            return _named(environment, "XDG_CONFIG_HOME") or home / ".config"


def _named(environment: Mapping[str, str], name: str) -> Path | None:
    folder = Path(environment.get(name) or "")
    return folder if folder.is_absolute() else None
