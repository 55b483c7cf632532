"""Indexes rebuilt from the log against those that brokers wrote while they appended."""

from collections import Counter
from pathlib import Path
from struct import pack

from kseg.index.entries import OffsetIndex, TimeIndex, TransactionIndex
from kseg.index.header_scan import checked_headers
from kseg.index.producers import ProducerSnapshot, ProducerStates
from kseg.index.rebuild import IndexBuilder, RebuiltIndexes, rebuild
from kseg.reading.batch import NEW_HEADER, BatchHeader
from kseg.reading.log_file import LogFile
from tests import golden

INTERVALS = (4096, 500)
"""`index.interval.bytes` of the topics in golden: Kafka's default, and what the topics were created with."""


def segments(since: tuple[int, int]) -> list[Path]:
    """Logs of brokers from a release on that have indexes beside them."""
    found = []
    for path in golden.files(".log"):
        writer = path.relative_to(golden.ROOT).parts[1].partition("-")[0]
        if (
            writer[:1].isdigit()
            and tuple(map(int, writer.split(".")[:2])) >= since
            and path.with_suffix(".index").exists()
        ):
            found.append(path)
    return found


def written_entries(path: Path, kind: type[OffsetIndex | TimeIndex | TransactionIndex]) -> bytes:
    """An index's entries, without a zero tail."""
    with kind(path) as index:
        return path.read_bytes()[: index.count * (index.size // index.file.capacity if index.file.capacity else 0)]


def rebuilt(path: Path, interval: int = 4096) -> RebuiltIndexes:
    snapshot = path.with_suffix(".snapshot")
    states = ProducerStates()
    if snapshot.exists():
        with ProducerSnapshot(snapshot) as opened:
            states = ProducerStates(opened.entries())
    with LogFile(path) as log_file:
        return rebuild(log_file, interval=interval, states=states)


def headers(path: Path) -> list[BatchHeader]:
    with LogFile(path) as log_file:
        return [item for item in checked_headers(log_file) if isinstance(item, BatchHeader)]


def relation(path: Path) -> str:
    """Compare a broker's offset and time index with the rebuilt ones."""
    offsets, times = (
        written_entries(path.with_suffix(".index"), OffsetIndex),
        written_entries(path.with_suffix(".timeindex"), TimeIndex),
    )
    rebuilt_again = [rebuilt(path, interval) for interval in INTERVALS]
    if any((one.offset_index, one.time_index) == (offsets, times) for one in rebuilt_again):
        return "equal"
    same_offsets = [one for one in rebuilt_again if one.offset_index == offsets]
    if any(one.time_index[: len(times)] == times for one in same_offsets):
        return "not closed: the time index has no last entry yet"
    if same_offsets and names_largest_times(path):
        return "time entries of earlier closings, or that name the record with the largest time instead of its batch"
    if names_ends_of_appends(path) and names_largest_times(path):
        return "appends of several batches, or a broker that started to count again when it was started"
    return "unexplained"


def names_largest_times(path: Path) -> bool:
    """Return True if each time is the largest so far, and its offset is in the batch with this time."""
    batches = headers(path)
    with TimeIndex(path.with_suffix(".timeindex")) as index:
        for entry in index.entries():
            before = [batch.max_timestamp for batch in batches if (batch.base_offset or 0) <= entry.offset]
            holders = [b for b in batches if b.last_offset >= entry.offset]
            if max(before) != entry.timestamp or holders[0].max_timestamp != entry.timestamp:
                return False
    return True


def names_ends_of_appends(path: Path) -> bool:
    """Return True if each entry has the position of a batch, and the last offset of this batch or of a later one."""
    batches = {batch.position: batch for batch in headers(path)}
    ends = {batch.last_offset for batch in batches.values()}
    with OffsetIndex(path.with_suffix(".index")) as index:
        return all(
            entry.position in batches and entry.offset in ends and batches[entry.position].last_offset <= entry.offset
            for entry in index.entries()
        )


def test_indexes_since_2_4_are_rebuilt_as_the_broker_wrote_them_or_differ_by_what_the_log_does_not_keep() -> None:
    relations = Counter(relation(path) for path in segments((2, 4)))
    for how, count in relations.most_common():
        print(f"{count} segments: {how}")  # noqa: T201
    assert relations["unexplained"] == 0
    assert relations["equal"] > sum(relations.values()) / 2


def test_transaction_indexes_are_rebuilt_as_the_broker_wrote_them() -> None:
    """Not in the remote tier: the snapshot beside a segment there is that of its end."""
    found = [p for p in segments((2, 4)) if p.with_suffix(".txnindex").exists() and "remote" not in str(p)]
    assert found
    for path in found:
        assert rebuilt(path).transaction_index == written_entries(path.with_suffix(".txnindex"), TransactionIndex)


def batch(base_offset: int, count: int, size: int, max_timestamp: int) -> BatchHeader:
    return NEW_HEADER._replace(
        base_offset=base_offset,
        size=size,
        last_offset=base_offset + count - 1,
        base_timestamp=max_timestamp,
        max_timestamp=max_timestamp,
        records_count=count,
        is_valid=True,
    )


def test_first_batch_has_no_entry_and_an_entry_names_the_last_offset_of_its_batch() -> None:
    builder = IndexBuilder(100, interval=99)
    for header in (batch(100, 2, 100, 7), batch(102, 3, 50, 9), batch(105, 1, 50, 8), batch(106, 1, 50, 8)):
        builder.add(header)
    assert builder.entries.offset_index == pack(">ii", 4, 100) + pack(">ii", 6, 200)


def test_time_index_rises_and_closing_adds_the_largest_time() -> None:
    builder = IndexBuilder(100, interval=99)
    for header in (batch(100, 2, 100, 7), batch(102, 3, 100, 5), batch(105, 1, 100, 6), batch(106, 1, 10, 9)):
        builder.add(header)
    assert builder.entries.time_index == pack(">qi", 7, 1) + pack(">qi", 9, 6)
    builder.finish()
    assert builder.entries.time_index == pack(">qi", 7, 1) + pack(">qi", 9, 6)


def test_messages_without_times_give_an_empty_time_index() -> None:
    builder = IndexBuilder(0, interval=10)
    for offset in range(3):
        builder.add(batch(offset, 1, 100, -1))
    builder.finish()
    assert (len(builder.entries.offset_index), builder.entries.time_index) == (16, b"")


def test_offsets_that_an_index_cannot_hold_are_counted() -> None:
    builder = IndexBuilder(0, interval=10)
    for offset in (0, 2**31, 5):
        builder.add(batch(offset, 1, 100, -1))
    assert (builder.entries.offset_index, builder.entries.skipped) == (pack(">ii", 5, 200), 1)


def test_rebuilding_ends_where_recovery_would_cut_the_log() -> None:
    path = golden.ROOT / "damaged/004-torn-records/00000000000000077901.log"
    with LogFile(path) as log_file:
        rebuilt_again = rebuild(log_file)
    assert rebuilt_again.valid_size == 638
    assert rebuilt_again.damage is not None
    assert rebuilt_again.damage.position == 638
