"""The messages of one v0 or v1 wrapper, for readers of damaged logs that need its first offset."""

from kseg import kernel
from kseg.codecs.bodies import decompress
from kseg.codecs.limits import DEFAULT_LIMIT
from kseg.formats.codes import compressed_body
from kseg.kernel.contract import SIZE, VALID, new_rows
from kseg.kernel.record import Record


def read_wrapper(entry: bytes) -> tuple[list[Record], int]:
    """Return the readable messages of a wrapper up to the first damage, and the bytes of its decompressed value."""
    view = memoryview(entry)
    codec, magic, start, end = compressed_body(view, 0, len(view))
    if start < 0:
        return [], 0
    body = decompress(codec, magic, view[start:end], DEFAULT_LIMIT).data
    rows = new_rows(1)
    rows[SIZE], rows[VALID] = len(view), 1
    parts = kernel.load().records(view, rows, 0, 1, 0, [body])
    return next((part for part in parts if isinstance(part, list)), []), len(body)
