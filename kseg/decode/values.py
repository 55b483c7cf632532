"""The decoders that `--key-decoder` and `--value-decoder` name."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.decode.decoded import (
    Decoded,
    Headers,
    Json,
    NotDecodable,
    Part,
    Read,
    ValueDecoder,
    decoder,
    json_able,
    not_too_deep,
    one_line,
    without_headers,
)
from kseg.decode.plain import (
    messagepack_decoder,
    number,
    read_base64,
    read_bytes,
    read_hex,
    read_json,
    read_string,
    read_uuid,
)
from kseg.errors import UsageError

if TYPE_CHECKING:
    from kseg.decode.registered import RegisteredReader
    from kseg.decode.registry import SchemaRecords


@dataclass(frozen=True, slots=True)
class DecoderOptions:
    """Options for decoders.

    `schema`: an Avro schema, a directory or JSON file of many by id, or a Protobuf descriptor set; `message`: the full
    name of the Protobuf message; `registry`: the records of `_schemas`.
    """

    schema: Path | None = None
    message: str | None = None
    registry: "SchemaRecords | None" = None


def value_decoder(name: str, options: DecoderOptions, part: Part) -> ValueDecoder:
    """The decoder with a name: one of DECODERS, a Kafka class that means one, or the user's own `module:callable`.

    Raises:
        UsageError: there is none, an option is missing or wrong, or a library isn't installed.
        OpenError: a schema or registry can't be read.
    """
    if _is_callable(name):
        return callable_decoder(name)
    known = known_name(name)
    if known not in DECODERS:
        raise UsageError(f"--{part}-decoder {one_line(name)}: there are {', '.join(DECODERS)}, and module:callable")
    return DECODERS[known](options, part)


def gives_text(name: str) -> bool:
    """Whether the decoder with a name makes nothing but text; others make values for JSON."""
    return not _is_callable(name) and known_name(name) in TEXT_DECODERS


def takes_schema(name: str) -> bool:
    """Whether a schema can tell what the values of the decoder with a name look like."""
    return not _is_callable(name) and known_name(name) in SCHEMA_DECODERS


def _is_callable(name: str) -> bool:
    return name not in DECODERS and ":" in name


def known_name(name: str) -> str:
    """The decoder that a Kafka class means; any other name unchanged."""
    return CLASSES.get(name.removesuffix("$").rpartition(".")[2], name)


def callable_decoder(name: str) -> ValueDecoder:
    """A decoder that calls the user's own with bytes and headers; an exception becomes the reason.

    Raises UsageError if it can't be imported or called.
    """
    module_name, _, attribute = name.partition(":")
    try:
        function: object = import_module(module_name)
        for part in attribute.split("."):
            function = getattr(function, part)
    except Exception as error:
        # The module is the user's own, so it may raise anything; or the name is wrong.
        raise UsageError(f"{one_line(name)} can't be imported: {one_line(error)}") from error
    if not callable(function):
        raise UsageError(f"{one_line(name)} can't be called")

    def read(data: bytes, headers: Headers) -> Json | bytes:
        try:
            value = function(data, headers)
        except Exception as error:
            # User's code: whatever it raises is this record's failure, not the program's.
            raise NotDecodable(f"{type(error).__name__}: {one_line(error)}") from error
        return value if isinstance(value, bytes) else json_able(value)

    return decoder(read)


def auto_decoder(options: DecoderOptions, part: Part) -> ValueDecoder:
    """A decoder that uses the first form that fits: JSON objects and lists, a schema id of the registry, text, bytes.

    JSON numbers, words and strings stay text. Text is UTF-8 without control characters except tabs and line ends. This
    decoder never gives a reason.
    """
    registered = None if options.registry is None else _registered_reader(options.registry, part)

    def decode(data: bytes, headers: Headers) -> Decoded:
        attempts: list[Read] = [_object_or_list, _plain_text]
        if registered is not None and registered.knows(data, headers):
            attempts.insert(1, registered.read)
        for read in attempts:
            try:
                return Decoded(not_too_deep(read(data, headers)))
            except NotDecodable:
                continue
        return Decoded(data)

    return decode


TEXT_CONTROLS = frozenset("\t\n\r")


def _object_or_list(data: bytes, _: Headers) -> Json:
    if data.lstrip()[:1] not in (b"{", b"["):
        raise NotDecodable("not a JSON object or list")
    return read_json(data)


def _plain_text(data: bytes, _: Headers) -> str:
    text = read_string(data)
    if any(char < " " and char not in TEXT_CONTROLS for char in text):
        raise NotDecodable("control characters")
    return text


def _registered_reader(topic: "SchemaRecords", part: Part) -> "RegisteredReader":
    from kseg.decode.registered import RegisteredReader
    from kseg.decode.registry import read_registry

    return RegisteredReader(read_registry(topic), part)


def _avro(options: DecoderOptions, part: Part) -> ValueDecoder:
    from kseg.decode.avro import avro_decoder

    if options.schema is not None:
        return avro_decoder(options.schema, part)
    return _registered("avro", options, part)


def _protobuf(options: DecoderOptions, part: Part) -> ValueDecoder:
    from kseg.decode.protobuf import protobuf_decoder

    if options.schema is not None:
        return protobuf_decoder(options.schema, options.message, part)
    return _registered("protobuf", options, part)


def _registered(name: str, options: DecoderOptions, part: Part) -> ValueDecoder:
    if options.registry is None:
        raise UsageError(f"--{part}-decoder {name} needs --schema or --schema-registry")
    return decoder(_registered_reader(options.registry, part).read)


Make = Callable[[DecoderOptions, Part], ValueDecoder]


def _plain(read: Callable[[bytes], Json | bytes]) -> Make:
    return lambda options, part: without_headers(read)


PRETTY_JSON = "json-pretty"
"""Reads what `json` reads; it is indented when it is printed as text."""

DECODERS: dict[str, Make] = {
    "string": _plain(read_string),
    "bytes": _plain(read_bytes),
    "hex": _plain(read_hex),
    "base64": _plain(read_base64),
    "int32": _plain(number(">i")),
    "int64": _plain(number(">q")),
    "double": _plain(number(">d")),
    "uuid": _plain(read_uuid),
    "json": _plain(read_json),
    PRETTY_JSON: _plain(read_json),
    "msgpack": lambda options, part: messagepack_decoder(),
    "avro": _avro,
    "protobuf": _protobuf,
    "auto": auto_decoder,
}
"""What makes each decoder, by name."""

TEXT_DECODERS = frozenset({"string", "hex", "base64", "uuid"})

SCHEMA_DECODERS = frozenset({"avro", "protobuf", "json"})

CLASSES = {
    "StringDecoder": "string",
    "StringDeserializer": "string",
    "DefaultDecoder": "bytes",
    "ByteArrayDecoder": "bytes",
    "ByteArrayDeserializer": "bytes",
    "ByteBufferDeserializer": "bytes",
    "BytesDeserializer": "bytes",
    "IntegerDecoder": "int32",
    "IntegerDeserializer": "int32",
    "LongDecoder": "int64",
    "LongDeserializer": "int64",
    "DoubleDeserializer": "double",
    "UUIDDeserializer": "uuid",
    "JsonDeserializer": "json",
    "KafkaJsonDeserializer": "json",
    "KafkaJsonSchemaDeserializer": "json",
    "KafkaAvroDeserializer": "avro",
    "KafkaProtobufDeserializer": "protobuf",
}
"""Kafka's and Confluent's classes, without their packages, to the decoder that reads the same."""
