"""Text that is safe on a terminal: no control characters."""

import re
from collections.abc import Iterator
from functools import cache

RANGES = (
    (0x00, 0x08),  # C0, except for tab and line feed
    (0x0B, 0x1F),
    (0x7F, 0x9F),  # DEL, C1
    (0x061C, 0x061C),  # direction marks
    (0x180E, 0x180E),
    (0x200B, 0x200B),  # zero width space
    (0x200E, 0x200F),
    (0x2028, 0x202E),  # line and paragraph ends, embeddings and overrides of direction
    (0x2060, 0x206F),  # invisible operators, isolates of direction
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFF9, 0xFFFB),  # interlinear annotations
    (0xE0000, 0xE007F),  # tags
)
"""First and last characters, without joiners (U+200C, U+200D), which shape scripts and emoji."""

CHARACTER_CLASS = "".join(f"{chr(first)}-{chr(last)}" for first, last in RANGES)
"""The same for the brackets of a regular expression."""


def control_characters() -> Iterator[str]:
    """Yield each control character."""
    for first, last in RANGES:
        yield from map(chr, range(first, last + 1))


def escaped_text(text: str) -> str:
    """Return the text with unprintable characters as \\xNN, including bytes of a name that aren't UTF-8."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escaped_character(char) for char in text)


def escaped_character(char: str) -> str:
    r"""Return a character as `\n` and the like, else as \xNN, also for a byte that isn't UTF-8 (in Python \udcNN)."""
    byte = ord(char) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else char.encode("unicode_escape").decode("ascii")


def json_escaped(text: str) -> str:
    r"""Return JSON with these characters as `\u009b`, which has the same meaning; above U+FFFF as two halves."""
    if (text.isascii() and "\x7f" not in text) or re.search(f"[{CHARACTER_CLASS}]", text) is None:
        return text
    return text.translate(_json_escapes())


def json_bytes_escaped(content: bytes) -> bytes:
    """Return the same in UTF-8; other bytes are unchanged."""
    if content.isascii() and b"\x7f" not in content:
        return content
    return json_escaped(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


@cache
def _json_escapes() -> dict[int, str]:
    """Return the escapes by the character's number."""
    return {ord(character): _json_escape(character) for character in control_characters()}


def _json_escape(character: str) -> str:
    halves = character.encode("utf-16-be").hex()
    return "".join(f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4))
