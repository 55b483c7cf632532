"""Every golden file is read and built again with the same bytes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from construct import Construct

from kseg.formats.batch import BATCH_HEADER, COMPRESSED_RECORD_BATCH, LOG_ENTRY, RECORD_BATCH
from kseg.formats.checkpoints import (
    build_clean_shutdown,
    build_leader_epoch_checkpoint,
    build_meta_properties,
    build_offset_checkpoint,
    build_partition_metadata,
    build_quorum_state,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_quorum_state,
)
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, LOG_OVERHEAD, MAGIC_POSITION, ControlType
from kseg.formats.control import CONTROL_RECORD_KEY, CONTROL_VALUES
from kseg.formats.indexes import ABORTED_TRANSACTION, OFFSET_INDEX_ENTRY, PRODUCER_SNAPSHOT, TIME_INDEX_ENTRY
from tests.golden import ROOT, files
from tests.loops import for_each, some


def golden(suffix: str) -> list[Path]:
    """The golden files with this suffix, of which there must be some."""
    found = files(suffix)
    assert found, suffix
    return found


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def batches(content: bytes) -> Iterator[bytes]:
    """The batches and log entries of a log in order, by their size field, to the end of the file."""
    position = 0
    while position < len(content):
        size = LOG_OVERHEAD + int.from_bytes(content[position + 8 : position + LOG_OVERHEAD], "big")
        yield content[position : position + size]
        position += size


def grammar_of(batch: bytes) -> Construct:
    if batch[MAGIC_POSITION] < 2:
        return LOG_ENTRY
    is_compressed = len(batch) > BATCH_HEADER_SIZE and batch[22] & CODEC_MASK
    return COMPRESSED_RECORD_BATCH if is_compressed else RECORD_BATCH


@for_each("path", [*some(golden(".log"), 3), *golden(".log.deleted"), *golden(".checkpoint")], ids=place)
def test_log_comes_back(path: Path) -> None:
    content = path.read_bytes()
    built = []
    for batch in batches(content):
        grammar = grammar_of(batch)
        built.append(grammar.build(grammar.parse(batch)))
    assert b"".join(built) == content


def control_records() -> Iterator[tuple[bytes, bytes]]:
    for path in [*golden(".log"), *golden(".checkpoint")]:
        for batch in batches(path.read_bytes()):
            if batch[MAGIC_POSITION] == 2 and BATCH_HEADER.parse(batch).attributes.is_control:
                for record in RECORD_BATCH.parse(batch).records:
                    yield record.key, record.value


def test_control_records_come_back() -> None:
    seen = set()
    for key, value in set(control_records()):
        fields = CONTROL_RECORD_KEY.parse(key)
        assert CONTROL_RECORD_KEY.build(fields) == key
        if fields.type in CONTROL_VALUES:
            grammar = CONTROL_VALUES[ControlType(fields.type)]
            assert grammar.build(grammar.parse(value)) == value
            seen.add(fields.type)
    assert seen == set(ControlType)


@pytest.mark.parametrize(
    ("suffix", "grammar"),
    [(".index", OFFSET_INDEX_ENTRY), (".timeindex", TIME_INDEX_ENTRY), (".txnindex", ABORTED_TRANSACTION)],
)
def test_index_comes_back(suffix: str, grammar: Construct) -> None:
    size = grammar.sizeof()
    for path in golden(suffix):
        content = path.read_bytes()
        entries = [content[start : start + size] for start in range(0, len(content), size)]
        assert b"".join(grammar.build(grammar.parse(entry)) for entry in entries) == content, place(path)


def test_producer_snapshot_comes_back() -> None:
    for path in golden(".snapshot"):
        content = path.read_bytes()
        assert PRODUCER_SNAPSHOT.build(PRODUCER_SNAPSHOT.parse(content)) == content, place(path)


@pytest.mark.parametrize(
    ("suffix", "parse", "build"),
    [
        ("-offset-checkpoint", parse_offset_checkpoint, build_offset_checkpoint),
        ("cleaner-offset-checkpoint.tmp", parse_offset_checkpoint, build_offset_checkpoint),
        ("leader-epoch-checkpoint", parse_leader_epoch_checkpoint, build_leader_epoch_checkpoint),
        (".leader_epoch_checkpoint", parse_leader_epoch_checkpoint, build_leader_epoch_checkpoint),
        ("partition.metadata", parse_partition_metadata, build_partition_metadata),
        ("meta.properties", parse_meta_properties, build_meta_properties),
        ("quorum-state", parse_quorum_state, build_quorum_state),
        (".kafka_cleanshutdown", parse_clean_shutdown, build_clean_shutdown),
    ],
)
def test_text_file_comes_back(suffix: str, parse: Callable, build: Callable) -> None:
    for path in golden(suffix):
        content = path.read_bytes()
        assert build(parse(content)) == content, place(path)
