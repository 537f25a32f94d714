"""The schema page is what the code makes, and the pages about the packages name packages, modules and names that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.config import DESCRIPTIONS
from tests.schema_page import PAGE, page

ROOT = Path(__file__).parent.parent
CODE = ROOT / "kite_memory"
ABOUT_CODE = [
    *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "SECURITY")),
    ROOT / "docs" / "glossary.md",
    *sorted(page for page in PAGE.parent.glob("*.md") if page != PAGE),
]
_QUOTED = re.compile(r"`([\w./]+\.\w+)`")
_FILES = {
    "sqlite",
    "names",
    "json",
    "md",
    "txt",
    "toml",
    "log",
    "lock",
    "sock",
    "patience",
    "prefix",
    "token",
    "key",
    "rs",
    "ts",
    "swift",
}


def test_the_schema_page_is_what_the_code_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make schema`"


def test_every_package_has_a_page_and_every_page_names_code() -> None:
    pages = {path.stem for path in PAGE.parent.glob("*.md")} - {"README", "schema"}
    packages = {path.parent.name for path in (ROOT / "kite_memory").glob("*/__init__.py")}
    modules = {path.stem for path in (ROOT / "kite_memory").glob("*.py")}

    assert packages <= pages <= packages | modules


def test_links_between_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
    dead = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]

    assert dead == []


@pytest.mark.parametrize("about", ABOUT_CODE, ids=lambda about: about.stem)
def test_a_page_names_modules_and_names_that_exist(about: Path) -> None:
    assert [each for each in _QUOTED.findall(about.read_text(encoding="utf-8")) if not _exists(each, about)] == []


@pytest.mark.parametrize("name", ["locks.py", "sync/versions.py", "delivery.deliver", "select.no_such_name", "House.open"])
def test_a_name_that_does_not_exist_is_found(name: str) -> None:
    assert not _exists(name, PAGE.parent / "recall.md")


def _exists(name: str, about: Path) -> bool:
    """Return whether ``name`` is a module or a name in one; what is plainly another file, a setting or a placeholder passes."""
    *parts, last = name.split(".")
    if last == "py":
        places = (ROOT, CODE, CODE / about.stem)
        return "NAME" in name or any((place / name).is_file() for place in places)
    if last in _FILES or name in DESCRIPTIONS:
        return True
    return any(re.search(rf"\b{last}\b", code) for code in _code_of(parts[-1]))


def _code_of(owner: str) -> Iterator[str]:
    """Yield the text of each module of this name, and of each class of this name with what follows it."""
    for module in CODE.rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        if module.stem == owner:
            yield text
        yield from re.findall(rf"^class {owner}\b.*", text, re.MULTILINE | re.DOTALL)
