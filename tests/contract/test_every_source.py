"""No source is wired in that nothing holds to the contract."""

import dataclasses
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kite_memory.config import Config
from kite_memory.extensions.contract.source_contract import SourceContract
from kite_memory.wiring import sources_of
from tests.contract.held_sources import HELD


def everything_in(folder: Path) -> Config:
    """A root for every agent."""
    names = [field.name for field in dataclasses.fields(Config)]
    roots: dict[str, Any] = {name: folder / name for name in names if name.endswith("_root")}
    roots |= {name: (folder / name,) for name in names if name.endswith("_roots")}
    return Config(file=folder / "config.toml", state=folder / "state", vault=folder / "vault", git_history=True, **roots)


def test_every_source_is_held_to_the_contract(tmp_path: Path) -> None:
    providers = [source.provider for source in sources_of(everything_in(tmp_path))]

    assert sorted(providers) == sorted(HELD)


@pytest.mark.parametrize("provider", HELD)
def test_what_holds_a_source_makes_that_source(provider: str, tmp_path: Path) -> None:
    module, _, name = HELD[provider].partition(".")

    held = getattr(import_module(f"tests.contract.{module}"), name)

    assert issubclass(held, SourceContract)
    assert held().make(tmp_path).provider == provider


def test_an_agent_without_a_root_is_not_read(tmp_path: Path) -> None:
    alone = Config(file=tmp_path / "c", state=tmp_path / "s", vault=tmp_path / "v", claude_root=tmp_path / "claude")

    assert [source.provider for source in sources_of(alone)] == ["claude-code"]
