"""Results of decoders: values for JSON, texts, or the reason why bytes can't be decoded."""

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from types import ModuleType
from typing import Literal, NamedTuple, TypeAlias, overload
from uuid import UUID

from kseg.errors import KsegError, UsageError, missing_library, plural
from kseg.formats.codes import VERSION
from kseg.kernel.record import Header

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""Values that JSON can hold; floats are finite."""

Part = Literal["key", "value"]
Headers = Sequence[Header]

MOST_NESTED = 200
"""The deepest nesting of a value that is shown."""
_MANY_HEADERS = 1000
MAXIMUM_REASON = 200
"""The most characters of a reason that are shown."""


class Decoded(NamedTuple):
    """The result of decoding some bytes.

    `value`: for JSON; may be bytes. `reason`: one line about a failure, in which case `value` is the original bytes;
    None after success.
    """

    value: Json | bytes
    reason: str | None = None


ValueDecoder = Callable[[bytes, Headers], Decoded]
"""A function that decodes the bytes of a key or value (never null), given the record's headers; it never raises."""

Read = Callable[[bytes, Headers], Json | bytes]
"""A function like ValueDecoder that raises NotDecodable."""


def decode_header_names(headers: Sequence[tuple[bytes, bytes | None]]) -> Headers:
    """Decode the header names of a record. Invalid UTF-8 is replaced like in Java."""
    if len(headers) > _MANY_HEADERS:
        return NamedHeaders(headers)
    return [Header(name.decode("utf-8", "replace"), value) for name, value in headers]


class NamedHeaders(Sequence[Header]):
    """Many headers with names as text, converted only on use: most decoders never use them."""

    def __init__(self, headers: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._headers = headers

    def __len__(self) -> int:
        return len(self._headers)

    def __iter__(self) -> Iterator[Header]:
        return (Header(name.decode("utf-8", "replace"), value) for name, value in self._headers)

    @overload
    def __getitem__(self, index: int) -> Header: ...
    @overload
    def __getitem__(self, index: slice) -> list[Header]: ...
    def __getitem__(self, index: int | slice) -> Header | list[Header]:
        return list(self)[index]


class NotDecodable(KsegError):
    """The error of bytes that a decoder can't read; its message is one line."""


def decoder(read: Read) -> ValueDecoder:
    """Return a decoder that shows bytes unchanged if reading them fails."""

    def decode(data: bytes, headers: Headers) -> Decoded:
        try:
            return Decoded(not_too_deep(read(data, headers)))
        except NotDecodable as error:
            return Decoded(data, error.message)

    return decode


def not_too_deep(value: Json | bytes) -> Json | bytes:
    """Return the value unchanged. Raises NotDecodable if its nesting would exhaust the stack when it is printed."""
    level = [value]
    for _ in range(MOST_NESTED):
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, dict | list)]
        if not level:
            return value
    raise NotDecodable(f"nested more than {MOST_NESTED} levels deep")


def _inside(value: Json | bytes) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def without_headers(read: Callable[[bytes], Json | bytes]) -> ValueDecoder:
    """Return a decoder that uses only the bytes."""
    return decoder(lambda data, _: read(data))


def one_line(text: object) -> str:
    """Return a library's message as one line of bounded length, without control characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())
    return line if len(line) <= MAXIMUM_REASON else f"{line[: MAXIMUM_REASON - 1]}…"


def decoded_text(value: Json | bytes, *, pretty: bool = False) -> bytes:
    """Format a decoded value for printing. Values other than bytes and text are printed as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json_bytes(value, pretty=pretty)


def json_bytes(value: Json, *, pretty: bool = False) -> bytes:
    """Return JSON in UTF-8 with names in their order; compact, or indented by two spaces."""
    return (_PRETTY if pretty else _COMPACT).encode(value).encode()


_PRETTY = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2)
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_able(value: object) -> Json:
    """Return a library's value, converted for JSON.

    Bytes become base64; decimals, uuids and times (ISO 8601) become text; infinities and NaN become text as in Java.

    Raises:
        NotDecodable: JSON has no form for its type, or two keys of a map have the same text.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID() | timedelta():
            return str(value)
        case Mapping():
            return _json_object(value)
        case list() | tuple() | set() | frozenset():
            return [json_able(element) for element in value]
        case _:
            raise NotDecodable(f"a value of type {type(value).__name__} can't be written as JSON")


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _json_object(value: Mapping[object, object]) -> Json:
    shown = {_name(name): json_able(inner) for name, inner in value.items()}
    if len(shown) < len(value):
        raise NotDecodable("two keys of a map have the same text")
    return shown


def _name(name: object) -> str:
    if isinstance(name, str):
        return name
    return decoded_text(json_able(name)).decode()


def library(module: str, extra: str) -> ModuleType:
    """Return a module of an optional library. Raises UsageError if it isn't installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(f"{missing_library(module.split('.')[0], extra)} ({one_line(error)})") from error


def unique_members(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    """Return the members of a JSON object. Raises NotDecodable if a name occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NotDecodable(f"the name {one_line(name)} is repeated in an object")
    return members


class Parts(NamedTuple):
    """The texts, in UTF-8, after `key: ` and `payload: `, or None if that part isn't printed."""

    key: bytes | None
    payload: bytes | None


Decoder = Callable[[bytes | None, bytes | None, int], Parts]
"""A function that makes the parts from a record's key, value and offset, or raises DecodeError."""


class DecodeError(KsegError):
    """The error of a record at which the release's real tool exits."""


def parts(key: str | None, payload: str | None) -> Parts:
    """Return parts made of texts."""
    return Parts(None if key is None else key.encode(), None if payload is None else payload.encode())


def key_version(key: bytes | None) -> int:
    """Return the type, or version, at the start of a coordinator's key. Raises DecodeError if there is none."""
    if key is None:
        raise DecodeError("the record has no key; Kafka's tool stops here")
    if len(key) < 2:
        raise DecodeError(f"the key has {plural(len(key), 'byte')}, too few for its type; Kafka's tool stops here")
    return VERSION.read(key)
