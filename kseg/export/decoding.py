"""Keys and values as JSON text, in columns of their own beside the bytes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from kseg.decode.decoded import Headers, ValueDecoder
    from kseg.decode.values import DecoderOptions
    from kseg.kernel.record import Header

COLUMNS = {"key": "decodedKey", "value": "decodedValue"}
"""The column of each part that is decoded."""


@dataclass(frozen=True, slots=True)
class ColumnDecoding:
    """Names of decoders, as `kseg dump` knows them, of keys and of values; None decodes nothing.

    schema, message, registry: what these decoders need, paths as text.
    """

    key: str | None = None
    value: str | None = None
    schema: str | None = None
    message: str | None = None
    registry: str | None = None

    def fields(self) -> list[pa.Field]:
        """The columns that it adds."""
        return [pa.field(COLUMNS[part], pa.string()) for part, _ in self._named()]

    def decoders(self) -> dict[str, "ValueDecoder"]:
        """The decoders by part. Raises UsageError, OpenError: as `value_decoder` does."""
        from kseg.decode.values import value_decoder

        needed = self._needed()
        return {part: value_decoder(name, needed, "key" if part == "key" else "value") for part, name in self._named()}

    def _named(self) -> list[tuple[str, str]]:
        return [(part, name) for part, name in (("key", self.key), ("value", self.value)) if name is not None]

    def _needed(self) -> "DecoderOptions":
        from kseg.decode.values import DecoderOptions

        schema, registry = (None if path is None else Path(path) for path in (self.schema, self.registry))
        return DecoderOptions(schema, self.message, registry)


NOTHING = ColumnDecoding()
"""Keys and values stay bytes."""


class RecordTexts:
    """Adds decoded columns to record batches. undecoded: keys and values so far that don't decode; they are null."""

    def __init__(self, decoding: ColumnDecoding) -> None:
        self.undecoded = 0
        self._decoders = decoding.decoders()

    def added(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its columns of text."""
        headers = _headers(batch)
        for part, decode in self._decoders.items():
            cells = zip(batch.column(part).to_pylist(), headers, strict=True)
            texts = [None if data is None else self._text(decode, data, own) for data, own in cells]
            batch = batch.append_column(pa.field(COLUMNS[part], pa.string()), pa.array(texts, pa.string()))
        return batch

    def _text(self, decode: "ValueDecoder", data: bytes, headers: "Headers") -> str | None:
        from kseg.decode.decoded import NotDecodable, json_able, json_bytes

        decoded = decode(data, headers)
        if decoded.reason is None:
            try:
                return json_bytes(json_able(decoded.value)).decode()
            except (NotDecodable, UnicodeEncodeError):
                pass  # text that isn't Unicode, for one: no form in JSON
        self.undecoded += 1
        return None


def _headers(batch: pa.RecordBatch) -> list[list["Header"]]:
    """Each record's headers; none where they weren't asked for."""
    from kseg.kernel.record import Header

    if "headers" not in batch.schema.names:
        return [[]] * batch.num_rows
    return [[Header(pair["key"], pair["value"]) for pair in pairs] for pairs in batch.column("headers").to_pylist()]
