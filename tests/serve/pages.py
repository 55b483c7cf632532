"""What docs/how-to/serve.md and serve-others.md show, for tests that run it as it stands there."""

import re

from tests import golden

HOW_TO = golden.ROOT.parent / "docs" / "how-to"
PAGES = (HOW_TO / "serve.md", HOW_TO / "serve-others.md")


def blocks(language: str = "") -> list[str]:
    """The fenced blocks of a language; by default those that say none."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def block(beginning: str, language: str = "") -> str:
    """The one block that begins so."""
    (found,) = (each for each in blocks(language) if each.startswith(beginning))
    return found


def lines(pattern: str) -> list[str]:
    """The lines of all blocks without a language that match from their beginning on."""
    return [line for each in blocks() for line in each.splitlines() if re.match(pattern, line)]
