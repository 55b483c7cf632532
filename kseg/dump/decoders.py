"""Decoders of a dump: Kafka's classes, decoders of internal topics, and control records."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kseg.errors import UsageError
from kseg.formats.codes import ControlType
from kseg.formats.header_fields import CONTROL_KEY_TYPE
from kseg.layouts.release_lines import CLASS_PREFIX, OLD_CLASS_PREFIX
from kseg.releases import Release
from kseg.system.terminal_text import json_bytes_escaped

if TYPE_CHECKING:
    from kseg.kernel.contract import Decode, Headers

TextOf = Callable[[bytes], bytes]


def _as_is(data: bytes) -> bytes:
    return data


def _as_hex(data: bytes) -> bytes:
    return data.hex().encode()


def _integer_of(size: int) -> TextOf:
    """Return the text function of big-endian integers, as Java's ByteBuffer reads them.

    Too few bytes are shown in hex, where the real tool dies.
    """

    def text_of(data: bytes) -> bytes:
        if len(data) < size:
            return _as_hex(data)
        return str(int.from_bytes(data[:size], "big", signed=True)).encode()

    return text_of


_CLASSES: dict[str, TextOf] = {
    "StringDecoder": _as_is,
    "DefaultDecoder": _as_hex,
    "ByteArrayDecoder": _as_hex,
    "IntegerDecoder": _integer_of(4),
    "LongDecoder": _integer_of(8),
}


def class_decoder(key_class: str | None, value_class: str | None) -> "Decode":
    """Return the printer of keys and values by these classes. Raises UsageError for an unknown class."""
    of_key, of_value = (
        _find_class(key_class, "--key-decoder-class"),
        _find_class(value_class, "--value-decoder-class"),
    )

    def decode(key: bytes | None, value: bytes | None, _: int, __: "Headers") -> tuple[bytes | None, bytes | None]:
        return None if key is None else of_key(key), None if value is None else of_value(value)

    return decode


def _find_class(name: str | None, option: str) -> TextOf:
    short = (name or "StringDecoder").removeprefix(OLD_CLASS_PREFIX).removeprefix(CLASS_PREFIX)
    if short not in _CLASSES:
        raise UsageError(
            f"{option} {name}: kseg has no such decoder; specify one of {', '.join(_CLASSES)}, or a Kafka name of one"
        )
    return _CLASSES[short]


class InternalDecoder:
    """A decoder of an internal topic that continues where the real tool dies. Such records are shown as stored.

    failures: their offsets, each with a reason.
    """

    def __init__(self, option: str, release: Release) -> None:
        """Take the option without its dashes, and the release whose texts are used."""
        from kseg.decode.decoded import DecodeError
        from kseg.decode.kafka_text import decoder_for

        self._decode = decoder_for(option, release.numbers)
        self._error = DecodeError
        self.failures: list[tuple[int, str]] = []

    def __call__(
        self, key: bytes | None, value: bytes | None, offset: int, headers: "Headers"
    ) -> tuple[bytes | None, bytes | None]:
        """Return the texts of a record; a failure is recorded with its offset."""
        try:
            return self._decode(key, value, offset)
        except self._error as error:
            self.failures.append((offset, error.message))
            return key, value

    def take_counts(self) -> list[tuple[int, str]]:
        """Return the failures, and forget them."""
        failures, self.failures = self.failures, []
        return failures

    def add_counts(self, failures: list[tuple[int, str]]) -> None:
        """Add the failures at the following records, which another process decoded."""
        self.failures += failures


def control_json(key: bytes, value: bytes | None) -> bytes | None:
    """Return the JSON of a control record that isn't a transaction marker, or None if it is unreadable."""
    from kseg.decode import internal_records as control
    from kseg.decode.decoded import DecodeError

    read: dict[int, Callable[[bytes], str]] = {
        ControlType.LEADER_CHANGE: control.leader_change_json,
        ControlType.SNAPSHOT_HEADER: control.snapshot_header_json,
        ControlType.SNAPSHOT_FOOTER: control.snapshot_footer_json,
        ControlType.KRAFT_VERSION: control.kraft_version_json,
        ControlType.KRAFT_VOTERS: control.kraft_voters_json,
    }
    kind = CONTROL_KEY_TYPE.read(key)
    try:
        return None if kind not in read or value is None else read[kind](value).encode()
    except DecodeError:
        return None


def escaped_control_json(key: bytes, value: bytes | None) -> bytes | None:
    """Return the same in the form of `-o json`."""
    text = control_json(key, value)
    return None if text is None else json_bytes_escaped(text)
