"""The examples of docs/how-to/serve.md and serve-others.md, for tests that run them unchanged."""

import re

from tests import golden

HOW_TO = golden.ROOT.parent / "docs" / "how-to"
PAGES = (HOW_TO / "serve.md", HOW_TO / "serve-others.md")


def blocks(language: str = "") -> list[str]:
    """Return the fenced blocks of a language; by default those without one."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def block(beginning: str, language: str = "") -> str:
    """Return the only block with a beginning."""
    (found,) = (each for each in blocks(language) if each.startswith(beginning))
    return found


def lines(pattern: str) -> list[str]:
    """Return the lines of all blocks without a language whose beginnings match."""
    return [line for each in blocks() for line in each.splitlines() if re.match(pattern, line)]
