"""Put the project's top-level pages into the documentation site: README.md as its home, and those that others link to.

Called by ProperDocs (`hooks` in mkdocs.yml). The pages stay where they are; links between them and docs/ are adjusted on the way.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    **{name: name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELIABILITY.md", "SECURITY.md")},
}
_LINK = re.compile(r"(\]\()((?!\w+:|#)[^)#\s]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the top-level pages."""
    from properdocs.structure.files import File

    for name, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Resolve relative links by a page's place in the repository, and rewrite them for its place on the site."""
    uri: str = page.file.src_uri
    top_level = {site: name for name, site in PAGES.items()}
    source = top_level.get(uri, f"docs/{uri}")

    def adjusted(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        on_site = PAGES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if on_site is None:
            return link[0]
        return link[1] + posixpath.relpath(on_site, posixpath.dirname(uri) or ".")

    return _LINK.sub(adjusted, markdown)
