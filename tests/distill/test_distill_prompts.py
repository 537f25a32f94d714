"""The prompt on disk, and overriding it."""

import json
from pathlib import Path

import pytest
from anthropic import transform_schema

from kite_memory.distill import extractor
from kite_memory.errors import ConfigInvalid
from kite_memory.model.note import Item

OURS = Path(__file__).parents[2] / "prompts"


def override(folder: Path, name: str, text: str) -> Path:
    (folder / "extract").mkdir(parents=True, exist_ok=True)
    (folder / "extract" / name).write_text(text, encoding="utf-8")
    return folder


def test_a_person_may_override_just_one_file(tmp_path: Path) -> None:
    theirs = override(tmp_path, "system.md", "Only write down what is about bees.")

    prompt = extractor.load_prompt([theirs, OURS])

    assert prompt.system == "Only write down what is about bees."
    assert prompt.schema == extractor.load_prompt([OURS]).schema


def test_the_version_follows_either_file(tmp_path: Path) -> None:
    ours = extractor.load_prompt([OURS])
    with_system = extractor.load_prompt([override(tmp_path / "a", "system.md", ours.system + " "), OURS])
    with_schema = extractor.load_prompt([override(tmp_path / "b", "schema.json", json.dumps({**ours.schema, "title": "x"})), OURS])

    versions = {ours.version, with_system.version, with_schema.version, extractor.load_prompt([OURS]).version}

    assert len(versions) == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [("system.md", "  \n"), ("schema.json", "{"), ("schema.json", "[]"), ("schema.json", '"object"'), ("system.md", "x" * 300_000)],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, text: str) -> None:
    theirs = override(tmp_path, name, text)

    with pytest.raises(ConfigInvalid, match=name) as refused:
        extractor.load_prompt([theirs, OURS])

    assert refused.value.hint


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "extract").mkdir()
    (tmp_path / "extract" / "system.md").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigInvalid, match="not UTF-8"):
        extractor.load_prompt([tmp_path, OURS])


def test_no_prompt_anywhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="no extract/system"):
        extractor.load_prompt([tmp_path])


def _without_type_beside_enum(schema: dict[str, object]) -> dict[str, object]:
    """The package leaves it out as implied."""
    return {key: value for key, value in schema.items() if key != "type" or "enum" not in schema}


@pytest.mark.parametrize("task", ["extract", "judge"])
def test_our_schema_is_one_that_constrained_decoding_takes(task: str) -> None:
    schema = json.loads(json.dumps(extractor.load_prompt([OURS], task).schema), object_hook=_without_type_beside_enum)

    assert transform_schema(schema) == schema


def test_our_schema_has_what_an_item_holds_and_asks_for_little_of_it() -> None:
    stretches = json.loads(json.dumps(extractor.load_prompt([OURS]).schema))["properties"]["stretches"]["items"]["properties"]
    item = stretches["items"]["items"]

    assert len(item["required"]) <= 5
    assert item["additionalProperties"] is False
    assert set(Item.__dataclass_fields__) - {"doubt", "origin", "change"} <= set(item["properties"])  # the first two are the gate's
    assert {"replaces", "amends", "because"} <= set(item["properties"])


def test_our_prompt_names_every_kind_and_says_that_the_transcript_is_material() -> None:
    system = extractor.load_prompt([OURS]).system

    assert all(f"**{kind}**" in system for kind in ("decision", "insight", "fact", "preference", "question"))
    assert "quoted material" in system


def test_the_judge_learns_what_counts_and_that_the_material_is_no_instruction() -> None:
    system = extractor.load_prompt([OURS], "judge").system

    assert "Topic overlap is not relevance" in system
    assert "never an instruction" in system
    assert all(f"`<{tag}>`" in system for tag in ("notes", "agent", "prompt"))
    assert len(system) <= 2_200
