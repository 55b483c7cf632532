"""aiokafka, another reader, reads the same batches and records from every healthy log."""

from collections.abc import Iterator
from typing import NamedTuple

from aiokafka.record.memory_records import MemoryRecords  # type: ignore[import-untyped]

import kseg
from kseg.formats.codes import Codec
from tests import golden


class Read(NamedTuple):
    """The values that both readers have of a record."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    crc: int | None


class ReadBatch(NamedTuple):
    """The values that both readers have of a batch; records are None if aiokafka can't read them as Kafka does."""

    next_offset: int
    is_valid: bool
    is_control: bool
    is_transactional: bool
    records: list[Read] | None


def by_aiokafka(content: bytes, batches: list[kseg.Batch]) -> Iterator[ReadBatch]:
    """Yield the file's batches; one by one if formats mix, since aiokafka applies the first one's format to all."""
    is_mixed = len({one.magic for one in batches}) > 1
    memory = MemoryRecords(b"" if is_mixed else content)
    for one in batches:
        if is_mixed:
            memory = MemoryRecords(content[one.position : one.position + one.size])
        theirs = memory.next_batch()
        assert theirs is not None
        is_valid = theirs.validate_crc()  # before its records are read
        records = [aiokafkas(record) for record in theirs] if can_be_read(one) else None
        yield ReadBatch(theirs.next_offset, is_valid, theirs.is_control_batch, theirs.is_transactional, records)
    assert not memory.has_next()


# aiokafka's records have no common type.
def aiokafkas(record) -> Read:  # type: ignore[no-untyped-def]
    return Read(
        record.offset,
        -1 if record.timestamp is None else record.timestamp,
        -1 if record.timestamp_type is None else record.timestamp_type,
        record.key,
        record.value,
        tuple(record.headers),
        record.checksum,
    )


def by_kseg(one: kseg.Batch) -> ReadBatch:
    records = [ksegs(record, one) for record in one.records()] if can_be_read(one) else None
    return ReadBatch(one.next_offset, one.is_valid, one.is_control, one.is_transactional, records)


def ksegs(record: kseg.Record, one: kseg.Batch) -> Read:
    has_no_type = one.magic == 1 and record.timestamp == -1  # aiokafka takes that for a missing timestamp
    crc = record.crc if one.is_legacy else None  # aiokafka has none for v2
    kind = -1 if has_no_type else int(record.timestamp_type)
    return Read(record.offset, record.timestamp, kind, record.key, record.value, tuple(record.headers), crc)


def can_be_read(one: kseg.Batch) -> bool:
    """Return True if aiokafka reads the records of a batch as Kafka does."""
    if one.magic == 0 and one.codec == Codec.LZ4:
        return False  # it refuses them: the header checksum of v0's frames is wrong
    # aiokafka takes bits of the attributes without meaning in Kafka, or their high byte, for a codec.
    return not one.attributes & ~0x7F


LOGS = [path for path in [*golden.files(".log"), *golden.files(".checkpoint")] if path.stat().st_size]


def test_aiokafka_reads_the_same_from_every_healthy_log() -> None:
    different = []
    for path in LOGS:
        with kseg.open_segment(path) as segment:
            batches = list(segment.batches())
        if list(map(by_kseg, batches)) != list(by_aiokafka(path.read_bytes(), batches)):
            different.append(path)
    assert different == []


def test_nearly_all_batches_can_be_compared() -> None:
    batches = []
    for path in LOGS:
        with kseg.open_segment(path) as segment:
            batches += list(segment.batches())
    assert sum(map(can_be_read, batches)) > 0.95 * len(batches)
