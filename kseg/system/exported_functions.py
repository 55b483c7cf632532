"""Addresses of C functions that the compiled modules of other packages export: the kernel can call these itself."""

from collections.abc import Sequence


def exported_addresses(path: str | None, names: Sequence[str]) -> tuple[int, ...]:
    """Where functions lie that a compiled module, or a library that it uses, exports; zeros if one isn't there."""
    if path is None:
        return (0,) * len(names)
    import ctypes

    try:
        library = ctypes.CDLL(path)
        return tuple(ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in names)
    except (OSError, AttributeError):
        return (0,) * len(names)
