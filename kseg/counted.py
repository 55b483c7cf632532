"""Counts with their nouns, for sentences."""


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun, `1 segment` or `2 segments`; plural: None adds an s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
