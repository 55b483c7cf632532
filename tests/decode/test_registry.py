"""A schema registry rebuilt from `_schemas`."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference

from kseg.cluster.schemas_topic import SchemasTopic
from kseg.decode.schema_registry import Reference, read_registry, registry_of
from kseg.decode.values import DecoderOptions, value_decoder
from kseg.errors import KsegError, UsageError
from tests.decode.schemas_topic import new_client, schema_key, schema_records, schema_value, write_topic
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import run_bounded

STRING, LONG = Schema('"string"', "AVRO"), Schema('"long"', "AVRO")


def test_schemas_of_a_registry_are_found_by_id_and_guid(tmp_path: Path) -> None:
    client = new_client()
    ids = [client.register_schema("a-value", schema) for schema in (STRING, LONG)]
    registry = read_registry(SchemasTopic(write_topic(tmp_path, schema_records(client))))
    for schema_id, schema in zip(ids, (STRING, LONG), strict=True):
        found = registry.find(schema_id)
        assert found is not None
        assert (found.text, found.kind, found.subject) == (schema.schema_str, "AVRO", "a-value")
        guid = client.get_version("a-value", found.version).guid
        assert registry.find(UUID(guid)) == found
    assert registry.find(99) is None
    assert registry.unreadable == 0


def test_a_log_directory_and_a_log_file_will_do(tmp_path: Path) -> None:
    records = [NewRecord(schema_key("a", 1), schema_value("a", 1, 5, STRING))]
    partition = write_topic(tmp_path, records)
    for path in (tmp_path, partition, partition / "00000000000000000000.log"):
        assert read_registry(SchemasTopic(path)).find(5) is not None


def test_a_compacted_topic_is_read_over_all_its_segments(tmp_path: Path) -> None:
    partition = tmp_path / "_schemas-0"
    first = NewRecord(schema_key("a", 1), schema_value("a", 1, 5, STRING))
    second = NewRecord(schema_key("b", 1), schema_value("b", 1, 9, LONG))
    write_segment(partition, [NewBatch([second], 70)], 60)
    write_segment(partition, [NewBatch([first], 3)], 0)
    registry = read_registry(SchemasTopic(partition))
    assert [registry.find(5) is not None, registry.find(9) is not None] == [True, True]


def test_a_guid_that_isnt_stored_is_the_md5_of_the_schema() -> None:
    # The text and its MD5 stand in a test of Confluent's registry.
    text = '{"type":"record","name":"myrecord","fields":[{"type":"string","default":null,"name":"f"}]}'
    value = schema_value("a", 1, 5, Schema(text, "AVRO"))
    registry = registry_of([(schema_key("a", 1), value)])
    guid = UUID(
        bytes=bytes(byte % 256 for byte in (29, 32, -53, -71, -27, -29, 94, -105, 84, -25, -38, 23, 11, 110, 93, -37))
    )
    assert registry.find(guid) == registry.find(5) is not None


def deletions() -> list[tuple[str, list[tuple[bytes, bytes | None]]]]:
    deleted = {"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}
    cleared = {"keytype": "CLEAR_SUBJECT", "subject": "a", "magic": 0}
    value = json.dumps({"subject": "a", "version": 1}).encode()
    return [
        ("flag", [(schema_key("a", 1), schema_value("a", 1, 5, STRING, deleted=True))]),
        ("tombstone", [(schema_key("a", 1), None)]),
        ("subject", [(json.dumps(deleted).encode(), value)]),
        ("cleared", [(json.dumps(cleared).encode(), json.dumps({"subject": "a"}).encode())]),
    ]


@pytest.mark.parametrize("records", [records for _, records in deletions()], ids=[name for name, _ in deletions()])
def test_deleted_schemas_still_read_what_was_written_with_them(records: list[tuple[bytes, bytes | None]]) -> None:
    registry = registry_of([(schema_key("a", 1), schema_value("a", 1, 5, STRING)), *records])
    found = registry.find(5)
    assert found is not None
    assert found.is_deleted


def test_deleting_a_subject_leaves_later_versions() -> None:
    deleted = json.dumps({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}).encode()
    versions = [(schema_key("a", n), schema_value("a", n, n, STRING)) for n in (1, 2)]
    registry = registry_of([*versions, (deleted, json.dumps({"subject": "a", "version": 1}).encode())])
    assert [schema.is_deleted for schema in registry.schemas] == [True, False]


def test_ids_of_the_default_context_come_first() -> None:
    records = [
        (schema_key(subject, 1), schema_value(subject, 1, 5, schema))
        for subject, schema in ((":.one:a", LONG), ("a", STRING), (":.two:a", LONG))
    ]
    found = registry_of(records).find(5)
    assert found is not None
    assert found.text == STRING.schema_str


def test_references_name_subjects_and_versions() -> None:
    needing = Schema('"n.Needed"', "AVRO", [SchemaReference("n.Needed", "needed", 2)])
    versions = [(schema_key("needed", n), schema_value("needed", n, n, STRING)) for n in (1, 2)]
    registry = registry_of([*versions, (schema_key("a", 1), schema_value("a", 1, 9, needing))])
    found = registry.find(9)
    assert found is not None
    assert found.references == (Reference("n.Needed", "needed", 2),)
    assert [registry.resolve_reference(reference) for reference in found.references] == [registry.find(2)]
    assert registry.resolve_reference(Reference("n.Needed", "needed", -1)) == registry.find(2)
    assert found.guid is None


def test_records_that_are_no_registrys_are_counted() -> None:
    good = (schema_key("a", 1), schema_value("a", 1, 5, STRING))
    bad: list[tuple[bytes | None, bytes | None]] = [
        (b"\xff", b"{}"),
        (None, b"{}"),
        (schema_key("b", 1), b"[]"),
        (schema_key("b", 1), b'{"id": "x", "schema": "y"}'),
        (schema_key("b", 1), b'{"id": 1, "schema": "y", "references": [{}]}'),
    ]
    registry = registry_of([good, *bad])
    assert registry.unreadable == len(bad)
    assert registry.find(5) is not None


def test_very_many_deletions_cost_little_each(tmp_path: Path) -> None:
    """Neither subjects nor versions are gone through for each of them."""
    deleted = json.dumps({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}).encode()
    records = [NewRecord(schema_key("a", n), schema_value("a", n, n, STRING)) for n in range(1, 20_001)]
    records += [NewRecord(deleted, b'{"subject":"a","version":0}')] * 20_000
    write_segment(tmp_path / "_schemas-0", [NewBatch(records)])
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(None, b"\0\0\0\0\1\2a")])])
    arguments = ["dump", "orders-0", "--value-decoder", "avro", "--schema-registry", "_schemas-0", "-o", "json"]
    ran = run_bounded(arguments, tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    assert b'"valueDecoded":"a"' in ran.stdout


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF"])
def test_a_schema_that_needs_very_many_others_is_the_reason(kind: str, tmp_path: Path) -> None:
    """A chain of them would be gone through for each."""
    records = []
    for n in range(300):
        needs = [SchemaReference(f"n{n - 1}", f"s{n - 1}", -1)] if n else []
        fields = [{"name": "a", "type": need.name} for need in needs]
        text = json.dumps({"type": "record", "name": f"n{n}", "fields": fields})
        records.append(NewRecord(schema_key(f"s{n}", 1), schema_value(f"s{n}", 1, n, Schema(text, kind, needs))))
    registry = SchemasTopic(write_topic(tmp_path, records))
    part = "avro" if kind == "AVRO" else "protobuf"
    found = value_decoder(part, DecoderOptions(registry=registry), "value")(b"\0\0\0\1\x2b\0", ())
    assert found.reason == "schema 299: it needs more than 256 other schemas"


def test_large_schemas_are_no_schemas_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [(schema_key("a", n), schema_value("a", n, n, STRING)) for n in range(1, 9)]
    size = len(STRING.schema_str or "")
    monkeypatch.setattr("kseg.decode.schema_registry.LARGEST_TEXT", size - 1)
    assert registry_of(versions).unreadable == 8
    monkeypatch.setattr("kseg.decode.schema_registry.LARGEST_TEXT", size)
    monkeypatch.setattr("kseg.decode.schema_registry.MOST_TEXT", 8 * size)
    assert len(registry_of(versions).schemas) == 8
    monkeypatch.setattr("kseg.decode.schema_registry.MOST_TEXT", 8 * size - 1)
    with pytest.raises(UsageError, match=f"more than {8 * size - 1} characters"):
        registry_of(versions)


def test_a_partition_without_schemas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no schema"):
        read_registry(SchemasTopic(write_topic(tmp_path, [NewRecord(b"k", b"v")])))


def test_a_directory_without_the_topic_is_refused(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k", b"v")])])
    with pytest.raises(KsegError, match="_schemas-0"):
        read_registry(SchemasTopic(tmp_path))
