"""Text that does no harm to a terminal."""

from kseg.archive.shown_paths import shown


def printable(text: str) -> str:
    """The text with control characters as \\xNN, and so bytes of a name that aren't UTF-8."""
    text = shown(text)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escaped_character(char) for char in text)


def escaped_character(char: str) -> str:
    r"""`\n` and the like; \xNN also for a byte that isn't UTF-8, which Python has as \udcNN."""
    byte = ord(char) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else char.encode("unicode_escape").decode("ascii")
