"""Topics with values of confluent-kafka's serializers, next to the registry's own topic."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kseg.kernel.record import Header
from tests import run
from tests.decode.schemas_topic import new_client, schema_records, write_topic
from tests.log_files import NewBatch, NewRecord, write_segment

PER_BATCH = 50


class TypedLogs:
    """A log directory that grows, with its registry."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.client: SchemaRegistryClient = new_client()
        self._next: dict[str, int] = {}

    def register(self, subject: str, schema: object, kind: str = "AVRO") -> int:
        """Register a schema, and return its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return int(self.client.register_schema(subject, Schema(text, kind)))

    def avro(self, topic: str, schema: object, values: Iterable[object]) -> None:
        """Register a schema, and add a segment with values of it."""
        text = json.dumps(schema)
        serialize = AvroSerializer(self.client, text)
        context = SerializationContext(topic, MessageField.VALUE)
        self.raw(topic, [serialize(value, context) for value in values])

    def raw(self, topic: str, values: Sequence[bytes | None], headers: Sequence[Header] = ()) -> None:
        """Add a segment with these values."""
        first = self._next.get(topic, 0)
        pairs = [(header.key, header.value) for header in headers]
        records = [NewRecord(b"k%d" % number, value, headers=pairs) for number, value in enumerate(values)]
        batches = [
            NewBatch(records[at : at + PER_BATCH], first + at) for at in range(0, len(records), PER_BATCH)
        ]  # the builder takes at most a MiB
        write_segment(self.directory / f"{topic}-0", batches, first)
        self._next[topic] = first + len(values)

    def registry(self) -> Path:
        """Return the current partition of the registry."""
        return write_topic(self.directory, schema_records(self.client))

    def export(self, destination: Path, *options: str, topic: str = "orders") -> run.Run:
        """Export a topic with typed values."""
        chosen = [str(self.directory), str(destination), "--topic", topic, "--schema-registry", str(self.registry())]
        return run.kseg(["export", *chosen, "--value-decoder", "avro", "-o", "json", *options], self.directory)


def values(destination: Path, column: str = "valueDecoded") -> list[Any]:
    """Return a column as DuckDB reads it, by offset."""
    files = f"read_parquet('{destination}/**/*.parquet', union_by_name = true)"
    rows = duckdb.sql(f'select "{column}" from {files} order by "offset"').fetchall()
    return [row[0] for row in rows]


def report(ran: run.Run) -> dict[str, Any]:
    """Return the first partition's accounts."""
    assert ran.status in (0, 1), ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[0])
    return found
