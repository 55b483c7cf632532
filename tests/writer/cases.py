"""Batches to build: their settings and records, as hypothesis makes them."""

from dataclasses import dataclass

from hypothesis import strategies as st

from kseg.formats.codes import Codec, ControlType, TimestampType
from kseg.writer.batches import MemoryRecords, RecordsBuilder, end_marker

HeaderPair = tuple[str, bytes | None]
Appended = tuple[int, int, bytes | None, bytes | None, tuple[HeaderPair, ...]]
"""Offset, timestamp, key, value, headers."""

_CONTENT = st.none() | st.binary(max_size=20) | st.binary(min_size=8190, max_size=8200)
_SMALL = st.none() | st.binary(max_size=300)
_HEADER_KEY = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_TIMES = st.one_of(
    st.just(-1), st.integers(0, 100), st.integers(1_700_000_000_000, 1_700_000_010_000), st.integers(0, 2**62)
)


@dataclass(frozen=True)
class Case:
    """A batch to build."""

    magic: int
    codec: Codec
    timestamp_type: TimestampType
    base_offset: int
    log_append_time: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    partition_leader_epoch: int
    delete_horizon_ms: int | None
    records: tuple[Appended, ...]

    def build(self) -> MemoryRecords:
        """By kseg."""
        builder = RecordsBuilder(
            self.base_offset,
            magic=self.magic,
            codec=self.codec,
            timestamp_type=self.timestamp_type,
            log_append_time=self.log_append_time,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_transactional=self.is_transactional,
            is_control=self.is_control,
            partition_leader_epoch=self.partition_leader_epoch,
            delete_horizon_ms=self.delete_horizon_ms,
        )
        for record in self.records:
            builder.append_at(*record)
        return builder.build()


@st.composite
def cases(draw: st.DrawFn, codecs: tuple[Codec, ...]) -> Case:
    """A batch of any format that has one of the codecs."""
    magic = draw(st.integers(0, 2))
    codec = draw(st.sampled_from([codec for codec in codecs if magic == 2 or codec != Codec.ZSTD] or [Codec.NONE]))
    types = (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME) if magic else (TimestampType.NO_TIMESTAMP_TYPE,)
    is_control = magic == 2 and codec is Codec.NONE and draw(st.booleans())
    is_idempotent = magic == 2 and (is_control or draw(st.booleans()))
    base_offset = draw(st.sampled_from([0, 5, 2**40]))
    return Case(
        magic,
        codec,
        draw(st.sampled_from(types)),
        base_offset,
        draw(st.integers(0, 2**50)),
        draw(st.integers(0, 2**63 - 1)) if is_idempotent else -1,
        draw(st.integers(0, 2**15 - 1)) if is_idempotent else -1,
        draw(st.integers(0, 2**31 - 1)) if is_idempotent and not is_control else -1,
        is_control or (is_idempotent and draw(st.booleans())),
        is_control,
        draw(st.integers(-1, 1000)) if magic == 2 else -1,
        draw(st.none() | st.integers(0, 2**50)) if magic == 2 and not is_control else None,
        draw(_marker(base_offset) if is_control else _records(base_offset, magic)),
    )


@st.composite
def _records(draw: st.DrawFn, base_offset: int, magic: int) -> tuple[Appended, ...]:
    records, offset = [], base_offset
    for _ in range(draw(st.integers(1, 6))):
        headers = draw(st.lists(st.tuples(_HEADER_KEY, _SMALL), max_size=3)) if magic == 2 else []
        records.append((offset, draw(_TIMES), draw(_SMALL), draw(_CONTENT), tuple(headers)))
        offset += draw(st.sampled_from([1, 1, 1, 2, 100, 9000]))
    return tuple(records)


@st.composite
def _marker(draw: st.DrawFn, base_offset: int) -> tuple[Appended, ...]:
    kind = draw(st.sampled_from([ControlType.ABORT, ControlType.COMMIT]))
    content = end_marker(kind, draw(st.integers(0, 2**31 - 1)))
    return ((base_offset, draw(st.integers(0, 2**50)), *content, ()),)
