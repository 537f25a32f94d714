"""Extensions that do not work stop nothing else."""

import logging
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from kite_memory import config as configuration
from kite_memory import extensions
from kite_memory.config import Config, ExtractorConfig
from kite_memory.errors import ConfigInvalid
from kite_memory.keys import keys_beside
from kite_memory.sources.gemini_cli.source import Gemini
from kite_memory.wiring import PROVIDERS, sources_of
from kite_memory.wiring.models import OfflineRules, extractor_of, second_embedder
from tests.contract.held_sources import HELD
from tests.fakes.hashing_embedder import HashingEmbedder


class Tarn(Gemini):
    provider = "tarn"

    def __init__(self, home: Path, *, own_state: Path) -> None:
        super().__init__(home / ".tarn", own_state=own_state)


def as_a_twin(home: Path, *, own_state: Path) -> Gemini:
    return Gemini(home, own_state=own_state)


def failing(home: Path, *, own_state: Path) -> Gemini:
    raise RuntimeError("no such disk")


def rules(settings: ExtractorConfig) -> OfflineRules:
    return OfflineRules()


HERE = __name__


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    found: list[EntryPoint] = []

    def entry_points(*, group: str) -> list[EntryPoint]:
        return [each for each in found if each.group == group]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    return found


def point(kind: extensions.Kind, name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=extensions.group(kind))


def config_at(folder: Path, **changes: Any) -> Config:
    return Config(file=folder / "c.toml", state=folder / "s", vault=folder / "v", claude_root=folder / "claude", **changes)


def test_the_providers_that_are_taken_are_those_of_our_sources() -> None:
    assert sorted(PROVIDERS) == sorted(HELD)


def test_a_source_that_fails_or_claims_a_taken_provider_is_left_out_and_logged(
    tmp_path: Path, points: list[EntryPoint], caplog: pytest.LogCaptureFixture
) -> None:
    points += [
        point("source", "absent", "no_such_module:Source"),
        point("source", "failing", f"{HERE}:failing"),
        point("source", "tarn", f"{HERE}:Tarn"),
        point("source", "twin", f"{HERE}:as_a_twin"),
    ]

    with caplog.at_level(logging.WARNING):
        found = sources_of(config_at(tmp_path, extensions=True))

    assert [source.provider for source in found] == ["claude-code", "tarn"]
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == ["absent", "failing", "twin"]
    problems = {each.name: each.problem for each in extensions.every(tmp_path, own_state=tmp_path, taken=PROVIDERS)}
    assert problems["tarn"] == ""
    assert "no_such_module" in problems["absent"]
    assert "no such disk" in problems["failing"]
    assert "taken" in problems["twin"]


def test_switched_off_none_is_imported(tmp_path: Path, points: list[EntryPoint]) -> None:
    points.append(point("source", "tarn", f"{HERE}:Tarn"))

    assert [source.provider for source in sources_of(config_at(tmp_path))] == ["claude-code"]


def test_an_extractor_and_an_embedder_are_chosen_by_name(tmp_path: Path, points: list[EntryPoint]) -> None:
    points += [
        point("extractor", "abacus", f"{HERE}:rules"),
        point("embedder", "hashes", "tests.fakes.hashing_embedder:HashingEmbedder"),
    ]
    file = tmp_path / "c.toml"

    config = configuration.check(b'extractor.name = "abacus"\nembedder.name = "hashes"\n', file)

    kept = keys_beside(file)
    assert isinstance(extractor_of(config, kept), OfflineRules)
    second = second_embedder(config, kept)
    assert second is not None
    assert second.space == HashingEmbedder().space


def test_a_name_that_no_one_has_is_refused(tmp_path: Path, points: list[EntryPoint]) -> None:
    with pytest.raises(ConfigInvalid, match="abacus"):
        configuration.check(b'extractor.name = "abacus"\n', tmp_path / "c.toml")


def test_one_that_cannot_be_imported_is_an_error_that_says_so(tmp_path: Path, points: list[EntryPoint]) -> None:
    points.append(point("extractor", "abacus", "no_such_module:make"))
    config = config_at(tmp_path, extractor=ExtractorConfig(name="abacus"))

    with pytest.raises(ConfigInvalid, match="no_such_module"):
        extractor_of(config, keys_beside(config.file))
