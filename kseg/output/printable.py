"""Text that does no harm to a terminal."""

from kseg.archive.shown_paths import shown
from kseg.control_characters import escaped_text


def printable(text: str) -> str:
    """The text as `escaped_text` gives it, with the paths that the user gave."""
    return escaped_text(shown(text))
