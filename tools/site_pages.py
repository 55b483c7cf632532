"""A hook of mkdocs that adds pages from outside docs/ to the site, and turns links to files into links to pages.

README.md and its kin are read in the repository too, so their links name files there. On the site, a link to a file
that has a page leads to this page, and one to any other file of the repository is shown as its path.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "help/security.md": "SECURITY.md",
    "help/changelog.md": "CHANGELOG.md",
    "developers/contributing.md": "CONTRIBUTING.md",
    "developers/golden.md": "golden/README.md",
    "developers/tools.md": "tools/README.md",
    "developers/benchmarks.md": "bench/README.md",
}
"""Pages of the site that are files elsewhere in the repository."""
PAGE_OF = {source: page for page, source in OUTSIDE.items()} | {"README.md": "index.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere."""
    for page, source in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with links for the site."""
    return site_links(markdown, page.file.src_uri)


def site_links(markdown: str, page: str) -> str:
    """Return a page's text, with links to files of the repository as links to pages."""
    source = OUTSIDE.get(page, f"docs/{page}")

    def link(match: re.Match[str]) -> str:
        picture, text, target, anchor = match.groups()
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        there = PAGE_OF.get(file, file.removeprefix("docs/") if file.startswith("docs/") else None)
        if there is None:
            return f"{text} (`{file}`)" if (ROOT / file).exists() else match[0]
        return f"{picture}[{text}]({posixpath.relpath(there, posixpath.dirname(page))}{anchor or ''})"

    return LINK.sub(link, markdown)
