"""Sizes for people."""

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size_text(size: int) -> str:
    """Bytes in the largest unit of which there is one: `812 bytes`, `1.4 GiB`."""
    if size < 1024:
        return f"{size} byte{'' if size == 1 else 's'}"
    amount, unit = size / 1024, 0
    while amount >= 1000 and unit + 1 < len(_UNITS):
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}"
