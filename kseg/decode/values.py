"""Decoders of keys and values by name, some with a schema registry."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.decode.avro import fastavro, registered_avro_reader
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
from kseg.decode.protobuf import protobuf, registered_protobuf_reader
from kseg.decode.schema_registry import RegisteredSchema, Registry
from kseg.decode.simple_values import (
    SchemaId,
    WireMessage,
    messagepack_decoder,
    number,
    parse_indexed,
    parse_wire,
    read_base64,
    read_bytes,
    read_hex,
    read_json,
    read_string,
    read_uuid,
    schema_name,
    without_id,
)
from kseg.errors import UsageError

if TYPE_CHECKING:
    from kseg.decode.schema_registry import SchemaRecords


@dataclass(frozen=True, slots=True)
class DecoderOptions:
    """Options for decoders.

    `schema`: an Avro schema, a directory or JSON file of several by id, or a Protobuf descriptor set; `message`: the
    full name of the Protobuf message; `registry`: the records of `_schemas`.
    """

    schema: Path | None = None
    message: str | None = None
    registry: "SchemaRecords | None" = None


def value_decoder(name: str, options: DecoderOptions, part: Part) -> ValueDecoder:
    """Return the decoder with a name: in DECODERS, of an equivalent Kafka class, or the user's own `module:callable`.

    Raises:
        UsageError: there is none, an option is missing or wrong, or a library isn't installed.
        OpenError: a schema or registry can't be read.
    """
    if _is_callable(name):
        return callable_decoder(name)
    known = known_name(name)
    if known not in DECODERS:
        raise UsageError(
            f"--{part}-decoder {one_line(name)}: no such decoder; specify one of {', '.join(DECODERS)}, or"
            " module:callable"
        )
    return DECODERS[known](options, part)


def gives_text(name: str) -> bool:
    """Return True if a decoder returns only text, rather than values for JSON."""
    return not _is_callable(name) and known_name(name) in TEXT_DECODERS


def takes_schema(name: str) -> bool:
    """Return True if a schema can describe the values of a decoder."""
    return not _is_callable(name) and known_name(name) in SCHEMA_DECODERS


def _is_callable(name: str) -> bool:
    return name not in DECODERS and ":" in name


def known_name(name: str) -> str:
    """Return the decoder that is equivalent to a Kafka class; other names unchanged."""
    return CLASSES.get(name.removesuffix("$").rpartition(".")[2], name)


def callable_decoder(name: str) -> ValueDecoder:
    """Return a decoder that calls the user's function with bytes and headers; an exception becomes the reason.

    Raises UsageError if it can't be imported or called.
    """
    module_name, _, attribute = name.partition(":")
    try:
        function: object = import_module(module_name)
        for part in attribute.split("."):
            function = getattr(function, part)
    except Exception as error:
        # The user's module may raise anything; or the name is wrong.
        raise UsageError(f"{one_line(name)} can't be imported: {one_line(error)}") from error
    if not callable(function):
        raise UsageError(f"{one_line(name)} can't be called")

    def read(data: bytes, headers: Headers) -> Json | bytes:
        try:
            value = function(data, headers)
        except Exception as error:
            # Any error of the user's code is this record's failure, rather than the program's.
            raise NotDecodable(f"{type(error).__name__}: {one_line(error)}") from error
        return value if isinstance(value, bytes) else json_able(value)

    return decoder(read)


def auto_decoder(options: DecoderOptions, part: Part) -> ValueDecoder:
    """Return a decoder that tries JSON objects and lists, the registry's schema ids, text, then bytes.

    JSON numbers, words and strings stay text. Text is UTF-8 without control characters except tabs and line ends. This
    decoder never returns a reason.
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
    from kseg.decode.schema_registry import read_registry

    return RegisteredReader(read_registry(topic), part)


def _avro(options: DecoderOptions, part: Part) -> ValueDecoder:
    from kseg.decode.avro import avro_decoder

    if options.schema is not None:
        return avro_decoder(options.schema, part)
    return _registry_decoder("avro", options, part)


def _protobuf(options: DecoderOptions, part: Part) -> ValueDecoder:
    from kseg.decode.protobuf import protobuf_decoder

    if options.schema is not None:
        return protobuf_decoder(options.schema, options.message, part)
    return _registry_decoder("protobuf", options, part)


def _registry_decoder(name: str, options: DecoderOptions, part: Part) -> ValueDecoder:
    if options.registry is None:
        raise UsageError(f"--{part}-decoder {name} needs --schema or --schema-registry")
    return decoder(_registered_reader(options.registry, part).read)


Make = Callable[[DecoderOptions, Part], ValueDecoder]


def _plain(read: Callable[[bytes], Json | bytes]) -> Make:
    return lambda options, part: without_headers(read)


PRETTY_JSON = "json-pretty"
"""A decoder that reads like `json`; its text output is indented."""

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
"""Functions that make the decoders, by name."""

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
"""Equivalent decoders of Kafka's and Confluent's classes, without their packages."""


ReadMessage = Callable[[WireMessage], Json]


class RegisteredReader:
    """A reader of messages with a registry. It prepares each schema once, and reports its error for each message."""

    def __init__(self, registry: Registry, part: Part) -> None:
        """Take the registry, and the part of records to read, which determines the header that may hold the id.

        Raises:
            UsageError: the library that a schema of the registry needs is missing.
        """
        self._registry = registry
        self._part = part
        self._readers: dict[SchemaId, ReadMessage | NotDecodable] = {}
        kinds = {schema.kind for schema in registry.schemas}
        if "AVRO" in kinds:
            fastavro()
        if "PROTOBUF" in kinds:
            protobuf("descriptor_pb2")

    def knows(self, data: bytes, headers: Headers) -> bool:
        """Return True if the message has an id that is in the registry."""
        message = parse_wire(data, headers, self._part)
        return message is not None and self._registry.find(message.schema_id) is not None

    def read(self, data: bytes, headers: Headers) -> Json:
        """Return the message's value. Raises NotDecodable."""
        message = parse_wire(data, headers, self._part)
        if message is None:
            raise without_id(data)
        if message.schema_id not in self._readers:
            self._readers[message.schema_id] = self._prepare(message.schema_id)
        reader = self._readers[message.schema_id]
        if isinstance(reader, NotDecodable):
            raise NotDecodable(reader.message)
        return reader(message)

    def _prepare(self, schema_id: SchemaId) -> ReadMessage | NotDecodable:
        schema = self._registry.find(schema_id)
        if schema is None:
            return NotDecodable(f"{schema_name(schema_id)} isn't in the registry")
        try:
            return self._reader_of(schema)
        except NotDecodable as error:
            return NotDecodable(f"{schema_name(schema_id)}: {error.message}")

    def _reader_of(self, schema: RegisteredSchema) -> ReadMessage:
        match schema.kind:
            case "AVRO":
                read_avro = registered_avro_reader(self._registry, schema)
                return lambda message: read_avro(message.body)
            case "PROTOBUF":
                read_protobuf = registered_protobuf_reader(self._registry, schema)
                return lambda message: read_protobuf(parse_indexed(message))
            case "JSON":
                return lambda message: read_json(message.body)
            case _:
                raise NotDecodable(f"schemas of kind {schema.kind} can't be read")
