from pathlib import Path

import pytest

from kite_memory.config import extension_storages

HOME = Path("/home/ada").absolute()
EXTENSION = "rooveterinaryinc.roo-cline"


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".config/Code/User"),
        ("linux", ".config/Code - Insiders/User"),
        ("linux", ".config/VSCodium/User"),
        ("linux", ".config/Cursor/User"),
        ("linux", ".vscode-server/data/User"),
        ("linux", ".cursor-server/data/User"),
        ("linux", ".local/share/code-server/User"),
        ("darwin", "Library/Application Support/Code/User"),
        ("win32", "AppData/Roaming/Cursor/User"),
    ],
)
def test_an_extension_is_looked_for_in_every_editor(platform: str, folder: str) -> None:
    found = extension_storages(EXTENSION, environment={}, home=HOME, platform=platform)

    assert HOME / folder / "globalStorage" / EXTENSION in found


@pytest.mark.parametrize(
    ("platform", "variable", "folder"),
    [
        ("linux", "XDG_CONFIG_HOME", "Code/User"),
        ("win32", "APPDATA", "Code/User"),
        ("darwin", "VSCODE_APPDATA", "Code/User"),
        ("linux", "VSCODE_PORTABLE", "user-data/User"),
    ],
)
def test_editors_can_be_elsewhere(platform: str, variable: str, folder: str) -> None:
    elsewhere = Path("/mnt/elsewhere").absolute()

    found = extension_storages(EXTENSION, environment={variable: str(elsewhere)}, home=HOME, platform=platform)

    assert elsewhere / folder / "globalStorage" / EXTENSION in found


def test_what_is_no_whole_path_is_not_heeded() -> None:
    found = extension_storages(EXTENSION, environment={"XDG_CONFIG_HOME": "config"}, home=HOME, platform="linux")

    assert found == extension_storages(EXTENSION, environment={}, home=HOME, platform="linux")
