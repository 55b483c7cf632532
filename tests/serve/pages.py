"""What docs/how-to/serve.md shows, for tests that run it as it stands there."""

import re

from tests import golden

PAGE = golden.ROOT.parent / "docs" / "how-to" / "serve.md"


def blocks(language: str = "") -> list[str]:
    """The fenced blocks of a language; by default those that say none."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def block(beginning: str, language: str = "") -> str:
    """The one block that begins so."""
    (found,) = (each for each in blocks(language) if each.startswith(beginning))
    return found


def lines(pattern: str) -> list[str]:
    """The lines of all blocks without a language that match from their beginning on."""
    return [line for each in blocks() for line in each.splitlines() if re.match(pattern, line)]
