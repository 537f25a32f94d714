"""The schema page is what the code makes, and the pages about the rooms name rooms that are there."""

import re
from pathlib import Path

from tests.schema_page import PAGE, page

ROOT = Path(__file__).parent.parent


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
