"""The `_schemas` topic of a schema registry: records as Confluent's registry writes them, from its client's mock."""

import json
from base64 import b64encode
from pathlib import Path
from uuid import UUID

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from tests.log_files import NewBatch, NewRecord, write_segment


def new_client() -> SchemaRegistryClient:
    """A registry in memory, which confluent-kafka's serializers register with."""
    return SchemaRegistryClient.new_client({"url": "mock://"})


def schema_key(subject: str, version: int) -> bytes:
    return json.dumps({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}).encode()


def schema_value(subject: str, version: int, schema_id: int, schema: Schema, **more: object) -> bytes:
    value = {"subject": subject, "version": version, "id": schema_id, "schema": schema.schema_str, "deleted": False}
    if schema.schema_type != "AVRO":
        value["schemaType"] = schema.schema_type
    if schema.references:
        names = ("name", "subject", "version")
        value["references"] = [{name: getattr(reference, name) for name in names} for reference in schema.references]
    return json.dumps(value | more).encode()


def schema_records(client: SchemaRegistryClient, with_guid: bool = True) -> list[NewRecord]:
    """The records that the topic holds of all schemas of a registry."""
    records = [NewRecord(b'{"keytype":"NOOP","magic":0}', None)]
    for subject in client.get_subjects():
        for version in sorted(client.get_versions(subject)):
            found = client.get_version(subject, version)
            more = {"md5": b64encode(UUID(found.guid).bytes).decode()} if with_guid else {}
            value = schema_value(subject, version, found.schema_id, found.schema, **more)
            records.append(NewRecord(schema_key(subject, version), value))
    return records


def write_topic(log_directory: Path, records: list[NewRecord]) -> Path:
    """The topic's partition directory."""
    directory = log_directory / "_schemas-0"
    write_segment(directory, [NewBatch([record], offset) for offset, record in enumerate(records)])
    return directory
