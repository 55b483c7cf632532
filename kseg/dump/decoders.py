"""Kafka's decoder classes for keys and values: bytes to the text that the tool prints."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kseg.errors import UsageError

if TYPE_CHECKING:
    from kseg.kernel.contract import Decode

TextOf = Callable[[bytes], bytes]


def _as_is(data: bytes) -> bytes:
    return data


def _as_hex(data: bytes) -> bytes:
    return data.hex().encode()


def _integer_of(size: int) -> TextOf:
    """Big-endian, as Java's ByteBuffer reads it; bytes that are too few are shown in hex, since the tool dies there."""

    def text_of(data: bytes) -> bytes:
        if len(data) < size:
            return _as_hex(data)
        return str(int.from_bytes(data[:size], "big", signed=True)).encode()

    return text_of


OLD_PREFIX, NEW_PREFIX = "kafka.serializer.", "org.apache.kafka.tools.api."
_DECODERS: dict[str, TextOf] = {
    "StringDecoder": _as_is,
    "DefaultDecoder": _as_hex,
    "ByteArrayDecoder": _as_hex,
    "IntegerDecoder": _integer_of(4),
    "LongDecoder": _integer_of(8),
}


def text_decoder(key_class: str | None, value_class: str | None) -> "Decode | None":
    """What prints keys and values by these classes; None if the bytes are printed as they are.

    Raises UsageError for a class that kseg doesn't know.
    """
    if key_class is None and value_class is None:
        return None
    of_key, of_value = _decoder(key_class, "--key-decoder-class"), _decoder(value_class, "--value-decoder-class")

    def decode(key: bytes | None, value: bytes | None, _: int) -> tuple[bytes | None, bytes | None]:
        return None if key is None else of_key(key), None if value is None else of_value(value)

    return decode


def _decoder(name: str | None, option: str) -> TextOf:
    short = (name or "StringDecoder").removeprefix(OLD_PREFIX).removeprefix(NEW_PREFIX)
    if short not in _DECODERS:
        raise UsageError(f"{option} {name}: kseg knows {', '.join(_DECODERS)}, also by their Kafka names")
    return _DECODERS[short]
