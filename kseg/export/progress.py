"""What a table's commit says of the export: its options and accounts, as a text for the commit's metadata."""

import base64
import binascii

from kseg.errors import KsegError
from kseg.export.manifest import MOST_BYTES, Manifest, manifest_name

LEVEL = 9
"""Of zstd: paths and names of members repeat."""


def progress_text(manifest: Manifest) -> str:
    """The manifest, compressed. Raises KsegError if it is too large to be read again."""
    import zstandard

    compressed = zstandard.ZstdCompressor(level=LEVEL).compress(manifest.to_bytes())
    return base64.b64encode(compressed).decode("ascii")


def parse_progress(text: object, number: int, where: str) -> Manifest:
    """The manifest of `progress_text`; number: the one that it must have. Raises KsegError if it can't be believed."""
    import zstandard

    if not isinstance(text, str):
        raise KsegError("what the table's log says of the export is no text: kseg didn't write it", where)
    try:
        compressed = base64.b64decode(text, validate=True)
        content = zstandard.ZstdDecompressor().stream_reader(compressed).read(MOST_BYTES + 1)
    except (binascii.Error, ValueError, zstandard.ZstdError) as error:
        raise KsegError("what the table's log says of the export was cut or damaged", where) from error
    try:
        found = Manifest.from_bytes(content, manifest_name(number))
    except KsegError as error:
        raise KsegError(f"what the table's log says of the export: {error.message}", where) from error
    if not isinstance(found, Manifest):
        raise KsegError("what the table's log says of the export is a stub: kseg didn't write it", where)
    return found
