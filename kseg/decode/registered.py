"""A decoder of messages with the id of a registered schema of any kind."""

from collections.abc import Callable

from kseg.decode.avro import fastavro, registered_avro_reader
from kseg.decode.decoded import Headers, Json, NotDecodable, Part
from kseg.decode.plain import read_json
from kseg.decode.protobuf import protobuf, registered_protobuf_reader
from kseg.decode.registry import RegisteredSchema, Registry
from kseg.decode.wire import SchemaId, WireMessage, parse_indexed, parse_wire, schema_name

ReadMessage = Callable[[WireMessage], Json]


class RegisteredReader:
    """Reads messages with a registry. Prepares each schema once; an error in it is reported for each message."""

    def __init__(self, registry: Registry, part: Part) -> None:
        """Takes the registry, and the part of records to read: it decides which header may hold the id.

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
        """Whether the message has an id that is in the registry."""
        message = parse_wire(data, headers, self._part)
        return message is not None and self._registry.find(message.schema_id) is not None

    def read(self, data: bytes, headers: Headers) -> Json:
        """The message's value. Raises NotDecodable."""
        message = parse_wire(data, headers, self._part)
        if message is None:
            raise NotDecodable("no schema id before the message or in a header")
        if message.schema_id not in self._readers:
            self._readers[message.schema_id] = self._prepared(message.schema_id)
        reader = self._readers[message.schema_id]
        if isinstance(reader, NotDecodable):
            raise NotDecodable(reader.message)
        return reader(message)

    def _prepared(self, schema_id: SchemaId) -> ReadMessage | NotDecodable:
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
