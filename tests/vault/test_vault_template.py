"""What a new vault looks like."""

import json
import re
from pathlib import Path

import pytest
import yaml

from kite_memory.vault import notefile
from kite_memory.vault.links import targets
from kite_memory.vault.notefile import FOLDERS, sheet_of, written_properties
from kite_memory.vault.vault import Vault
from tests.vault.building import TEMPLATE, note

SETTINGS = sorted((TEMPLATE / ".obsidian").glob("*.json"))


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.name)
def test_settings_are_valid_json(path: Path) -> None:
    assert isinstance(json.loads(path.read_text(encoding="utf-8")), dict)


def test_every_folder_of_notes_is_there_and_has_a_colour() -> None:
    groups = json.loads((TEMPLATE / ".obsidian" / "graph.json").read_text())["colorGroups"]

    for folder in set(FOLDERS.values()):
        assert (TEMPLATE / folder / ".gitkeep").exists()
        assert [group["color"]["rgb"] for group in groups if group["query"] == f"path:{folder}/"]
    assert len({group["color"]["rgb"] for group in groups}) == len(groups) == 6


def test_every_property_that_we_write_has_a_type() -> None:
    from dataclasses import replace

    full = replace(
        note(), session="s", key="k", tags=("t",), aliases=("a",), entities=("e",), triggers=("t",), supersedes=("x",),
        superseded_by="y", valid_from=note().created, expires=note().created, valid_until=note().created,
        drifted=note().created, anchors=("a@b",), branch="b", conflicts=("c",),
    )  # fmt: skip
    types = json.loads((TEMPLATE / ".obsidian" / "types.json").read_text())["types"]

    assert set(written_properties(full)) <= set(types)
    for name, value in written_properties(full).items():
        if isinstance(value, list):
            assert types[name] in ("multitext", "tags", "aliases")


def test_obsidian_throws_notes_where_we_can_see_that_they_were_thrown_away() -> None:
    assert json.loads((TEMPLATE / ".obsidian" / "app.json").read_text())["trashOption"] == "local"


@pytest.mark.parametrize("name", ["Home.md", "README.md"])
def test_the_pages_lead_nowhere_that_is_not_there(name: str) -> None:
    text = (TEMPLATE / name).read_text(encoding="utf-8")

    assert targets(text) == ()
    assert notefile.load(sheet_of(text).yaml) == {}


@pytest.mark.parametrize("path", sorted((TEMPLATE / "views").glob("*.base")), ids=lambda path: path.name)
def test_views_ask_for_properties_that_notes_have(path: Path) -> None:
    view = yaml.safe_load(path.read_text(encoding="utf-8"))
    types = json.loads((TEMPLATE / ".obsidian" / "types.json").read_text())["types"]
    formulas = {f"formula.{name}" for name in view.get("formulas", {})}
    asked = {name for each in view["views"] for name in each["order"]} | {
        sorting["property"] for each in view["views"] for sorting in each.get("sort", [])
    }

    assert {each["type"] for each in view["views"]} <= {"table", "cards", "list"}
    for name in asked:
        assert name in formulas or name in ("file.name", "file.mtime") or name.removeprefix("note.") in types, name
    for condition in re.findall(r"^\s*- '(\w+)\b", path.read_text(encoding="utf-8"), re.MULTILINE):
        assert condition in (*types, "file"), condition


def test_templates_are_no_notes(vault: Vault) -> None:
    assert (vault.root / "templates" / "Decision.md").is_file()

    assert list(vault.notes.entries()) == []
