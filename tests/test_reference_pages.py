"""The reference is what the program says of itself, and every setting is described in it."""

import dataclasses

from kite_memory import config as configuration
from tests.reference_pages import FOLDER, pages


def test_the_reference_is_what_the_program_says() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}

    assert written == pages(), "run `make reference`"


def test_every_setting_is_described() -> None:
    sections = {
        "extractor": configuration.ExtractorConfig,
        "embedder": configuration.EmbedderConfig,
        "recall": configuration.RecallConfig,
        "daemon": configuration.DaemonConfig,
        "team": configuration.TeamConfig,
    }
    settings = {f"{name}.{setting.name}" for name, kind in sections.items() for setting in dataclasses.fields(kind)}

    assert settings <= set(configuration.DESCRIPTIONS)
    assert {name.partition(".")[0] for name in configuration.DESCRIPTIONS} == set(configuration.SETTINGS)
