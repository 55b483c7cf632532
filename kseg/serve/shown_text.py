"""What clients say, in lines of ours."""

MOST_SHOWN = 200
"""Characters of a text."""


def shown_text(text: str, most: int = MOST_SHOWN) -> str:
    """A text of a client in one line, not longer than that; what can't be printed becomes a question mark."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(character if character.isprintable() else "?" for character in short)
