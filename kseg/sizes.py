"""Sizes for people: in units of 1024 bytes, or exact."""

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_size(size: int) -> str:
    """Return a size in the largest unit of 1024 bytes that it fills, with a decimal: `6.5 KiB`; below one in bytes."""
    if size < 1024:
        return f"{size} B"
    value, slot = size / 1024, 0
    while round(value, 1) >= 1024 and slot < len(_UNITS) - 1:
        value, slot = value / 1024, slot + 1
    return f"{value:.1f} {_UNITS[slot]}"


def exact_size(size: int) -> str:
    """Return a size in bytes."""
    return str(size)
