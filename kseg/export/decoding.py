"""Keys and values as text or JSON, in columns of their own beside the bytes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from kseg.decode.decoded import Decoded, Json, Part, ValueDecoder
    from kseg.decode.values import DecoderOptions
    from kseg.kernel.record import Header

COLUMNS: dict["Part", str] = {"key": "decodedKey", "value": "decodedValue"}
"""The column of each part that is decoded."""


@dataclass(frozen=True, slots=True)
class ColumnDecoding:
    """Names of decoders, as `kseg dump` knows them, of keys and of values; None decodes nothing.

    A column has JSON, unless the decoder makes nothing but text: then it has that text, without JSON's quotes.
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

    def decoders(self) -> dict["Part", "ValueDecoder"]:
        """The decoders by part. Raises UsageError, OpenError: as `value_decoder` does."""
        from kseg.decode.values import value_decoder

        needed = self._needed()
        return {part: value_decoder(name, needed, part) for part, name in self._named()}

    def text_parts(self) -> frozenset["Part"]:
        """The parts whose columns have text, not JSON."""
        from kseg.decode.values import gives_text

        return frozenset(part for part, name in self._named() if gives_text(name))

    def _named(self) -> list[tuple["Part", str]]:
        names: tuple[tuple[Part, str | None], ...] = (("key", self.key), ("value", self.value))
        return [(part, name) for part, name in names if name is not None]

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
        self._text_parts = decoding.text_parts()

    def added(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its columns of text."""
        headers = _headers(batch)
        for part, decode in self._decoders.items():
            cells = zip(batch.column(part).to_pylist(), headers, strict=True)
            shown = _plain_text if part in self._text_parts else _json_text
            texts = [None if data is None else self._text(decode(data, own), shown) for data, own in cells]
            batch = batch.append_column(pa.field(COLUMNS[part], pa.string()), pa.array(texts, pa.string()))
        return batch

    def _text(self, decoded: "Decoded", shown: "Callable[[Json | bytes], str]") -> str | None:
        from kseg.decode.decoded import NotDecodable

        if decoded.reason is None:
            try:
                return shown(decoded.value)
            except (NotDecodable, UnicodeEncodeError):
                pass  # text that isn't Unicode, for one: no form in JSON
        self.undecoded += 1
        return None


def _plain_text(value: "Json | bytes") -> str:
    return str(value)


def _json_text(value: "Json | bytes") -> str:
    from kseg.decode.decoded import json_able, json_bytes

    return json_bytes(json_able(value)).decode()


def _headers(batch: pa.RecordBatch) -> list[list["Header"]]:
    """Each record's headers; none where they weren't asked for."""
    from kseg.kernel.record import Header

    if "headers" not in batch.schema.names:
        return [[]] * batch.num_rows
    return [[Header(pair["key"], pair["value"]) for pair in pairs] for pairs in batch.column("headers").to_pylist()]
