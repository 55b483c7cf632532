"""All golden partitions as one log directory, their rows from independent readers, and tables of any format read back.

aiokafka reads sound logs, batch by batch. `kseg dump`, which shares no account of offsets with exports, reads damaged
logs, and batches that aiokafka reads differently from Kafka.
"""

import base64
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from aiokafka.record.memory_records import MemoryRecords  # type: ignore[import-untyped]

import kseg
from kseg.formats.file_names import parse_partition_directory
from tests import golden, run

ISOLATIONS = ("read_uncommitted", "read_committed")
COMMIT = 1
DAMAGED = "damaged"
YEARS_1_TO_9999 = range(-62_135_596_800_000_000, 253_402_300_800_000_000)
_OPEN = re.compile(r"producerId: (\d+) .*currentTxnFirstOffset: (?:OptionalLong\[|Some\()(\d+)")

Key = tuple[str, int | None]
Row = tuple[Any, ...]
"""Offset, microseconds, key, value, headers."""


class ReadBatch(NamedTuple):
    """A batch from an independent reader: the fields that decide whether its records count, and the records as rows."""

    base_offset: int
    epoch: int
    producer: int
    is_transactional: bool
    is_control: bool
    rows: list[Row]
    keys: list[bytes | None]


def link_partitions(directory: Path) -> dict[Key, Path]:
    """Link all golden partitions in a directory under unique names, and return the target of each."""
    places: dict[Key, Path] = {}
    for folder in [*(golden.ROOT / "logs").iterdir(), golden.ROOT / DAMAGED]:
        if folder.name.endswith("-tiered-remote"):
            continue  # segments named by their ids aren't a broker's partition
        for path in sorted({log.parent for log in folder.rglob("*.log") if log.stat().st_size}):
            name = (
                path.name if folder.name == DAMAGED else f"{folder.name}.{path.relative_to(folder)}".replace("/", ".")
            )
            link = directory / name
            link.symlink_to(path)
            parsed = parse_partition_directory(link)
            places[(name, None) if parsed is None else (parsed.topic, parsed.partition)] = path
    return places


def is_damaged(path: Path) -> bool:
    """Return True if a golden partition, or one of its files, was damaged on purpose."""
    return golden.ROOT / DAMAGED in path.parents


# --- independent readers ----------------------------------------------------------------------------------------------


@cache
def rows_of(path: Path, isolation: str) -> list[Row]:
    """Return the expected rows of a partition's table: one per offset, in their order, without control records."""
    batches = _batches(path)
    wanted = _dumped_offsets(path, isolation) if is_damaged(path) else None
    if wanted is None and isolation == "read_committed":
        wanted = _committed_offsets(batches, _open_before(path))
    best: dict[int, tuple[int, Row]] = {}
    for batch in batches:
        for row in () if batch.is_control else batch.rows:
            if (wanted is None or row[0] in wanted) and (row[0] not in best or best[row[0]][0] < batch.epoch):
                best[row[0]] = (batch.epoch, row)
    return [row for _, (_, row) in sorted(best.items())]


def _committed_offsets(batches: Iterable[ReadBatch], open_before: Mapping[int, int]) -> set[int]:
    """Return the offsets below the last stable one outside of aborted transactions, by the log's own markers."""
    first = dict(open_before)
    begun: dict[int, list[int]] = defaultdict(list)
    found: list[int] = []
    for batch in batches:
        offsets = [row[0] for row in batch.rows]
        if batch.is_control:
            for key in batch.keys:  # none if the cleaner has removed the marker
                first.pop(batch.producer, None)
                ended = begun.pop(batch.producer, [])
                found += ended if key is not None and key[3] == COMMIT else []
        elif batch.is_transactional:
            first.setdefault(batch.producer, batch.base_offset)  # of a batch without records, too
            begun[batch.producer] += offsets
        else:
            found += offsets
    stable = min(first.values(), default=1 << 63)
    return {offset for offset in found if offset < stable}


def _open_before(path: Path) -> dict[int, int]:
    """Return the first offsets of transactions open at the log's start, from the real tool's print of the snapshot."""
    snapshot = str(min(path.glob("*.log")).with_suffix(".snapshot").relative_to(golden.ROOT))
    texts = [case.stdout().decode() for case in golden.cases("healthy", {"snapshot"}) if snapshot in case.files]
    return {int(producer): int(first) for text in texts[:1] for producer, first in _OPEN.findall(text)}


@cache
def _batches(path: Path) -> list[ReadBatch]:
    return [batch for log in sorted(path.glob("*.log")) for batch in _read(log)]


def _read(log: Path) -> Iterator[ReadBatch]:
    if is_damaged(log):
        yield from _read_dump(log)
        return
    with kseg.open_segment(log) as segment:
        batches = list(segment.batches())
    content = log.read_bytes()
    dumped = None
    for number, one in enumerate(batches):
        if one.attributes & ~0x7F or (one.magic == 0 and one.codec):
            # aiokafka takes bits that Kafka ignores for a codec, and refuses v0's own kind of LZ4 frames.
            dumped = dumped or list(_read_dump(log))
            yield dumped[number]
        else:
            epoch = one.partition_leader_epoch
            yield _by_aiokafka(content[one.position : one.position + one.size], one.base_offset, epoch)


def _by_aiokafka(content: bytes, base_offset: int, epoch: int) -> ReadBatch:
    theirs = MemoryRecords(content).next_batch()
    assert theirs is not None
    assert theirs.validate_crc()
    records = list(theirs)
    rows = [
        (one.offset, _microseconds(one.timestamp), one.key, one.value, tuple(map(tuple, one.headers)))
        for one in records
    ]
    producer = getattr(theirs, "producer_id", -1)
    flags = theirs.is_transactional, theirs.is_control_batch
    return ReadBatch(base_offset, epoch, producer, *flags, rows, [one.key for one in records])


def _read_dump(log: Path) -> Iterator[ReadBatch]:
    """Yield the batches in the output of `kseg dump`, with their intact records."""
    batch: dict[str, Any] = {}
    records: list[dict[str, Any]] = []
    for line in [*_dump(log), {"type": "batch"}]:
        if line["type"] == "record" and line["isValid"]:
            records.append(line)
        elif line["type"] == "batch":
            if batch:
                yield _dumped_batch(batch, records)
            batch, records = line, []


def _dumped_batch(batch: dict[str, Any], records: list[dict[str, Any]]) -> ReadBatch:
    rows = [
        (
            record["offset"],
            _microseconds(-1 if record["timestamp"] is None else record["timestamp"]),
            _bytes(record, "key"),
            _bytes(record, "value"),
            tuple(
                ((_bytes(header, "key") or b"").decode(errors="replace"), _bytes(header, "value"))
                for header in record["headers"] or ()
            ),
        )
        for record in records
    ]
    epoch = batch["partitionLeaderEpoch"]
    return ReadBatch(
        batch["baseOffset"],
        -1 if epoch is None else epoch,
        batch["producerId"],
        bool(batch["isTransactional"]),
        bool(batch["isControl"]),
        rows,
        [row[2] for row in rows],
    )


def _bytes(members: Mapping[str, Any], name: str) -> bytes | None:
    if f"{name}Base64" in members:
        return base64.b64decode(members[f"{name}Base64"])
    text = members[name]
    return None if text is None else str(text).encode()


def _dumped_offsets(path: Path, isolation: str) -> set[int]:
    return {line["offset"] for line in _dump(path, "--isolation", isolation) if line["type"] == "record"}


def _dump(path: Path, *options: str) -> Iterator[dict[str, Any]]:
    ran = run.kseg(["dump", str(path), "-o", "json", "-q", *options], path if path.is_dir() else path.parent)
    yield from map(json.loads, ran.stdout.splitlines())


def _microseconds(timestamp: int | None) -> int | None:
    time = (-1 if timestamp is None else timestamp) * 1000
    return time if time in YEARS_1_TO_9999 else None


# --- exports ----------------------------------------------------------------------------------------------------------


def _parquet(destination: Path) -> pa.Table:
    try:
        return pq.read_table(destination)
    except pa.ArrowInvalid:  # without a value in any folder, pyarrow needs the types of the fields
        file = next(destination.rglob("*.parquet")).relative_to(destination)
        types = {"partition": pa.int32(), "bucket": pa.int32()}
        names = [folder.partition("=")[0] for folder in file.parts[:-1]]
        schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
        return pq.read_table(destination, partitioning=ds.partitioning(schema, flavor="hive"))


def _delta(destination: Path) -> pa.Table:
    from deltalake import DeltaTable

    return DeltaTable(str(destination)).to_pyarrow_table()


def _iceberg(destination: Path) -> pa.Table:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("kseg", uri=f"sqlite:///{destination / 'catalog.db'}", warehouse=str(destination))
    (name,) = catalog.list_tables("kafka")
    return catalog.load_table(name).scan().to_arrow()


TABLES: dict[str, Callable[[Path], pa.Table]] = {
    "parquet": _parquet,
    "delta": _delta,
    "iceberg": _iceberg,
}
"""Functions that read a table of a format without kseg."""


def rows_by_partition(table: pa.Table) -> dict[Key, list[Row]]:
    """Return the rows of a table in the order of offsets, by topic and partition."""
    found: dict[Key, list[Row]] = defaultdict(list)
    times = table.column("timestamp").cast(pa.int64()).to_pylist()
    names = ("topic", "partition", "offset", "key", "value", "headers")
    columns = [table.column(name).to_pylist() for name in names]
    for time, topic, partition, offset, key, value, headers in zip(times, *columns, strict=True):
        pairs = tuple((header["key"], header["value"]) for header in headers)
        found[topic, partition].append((offset, time, key, value, pairs))
    return {key: sorted(rows, key=lambda row: row[0]) for key, rows in found.items()}


def differences(places: Mapping[Key, Path], table: pa.Table, isolation: str) -> list[str]:
    """Return the differences between a table and independent readers."""
    found = rows_by_partition(table)
    different = [f"{key}: no such partition" for key in found.keys() - places.keys()]
    for key, path in places.items():
        wanted, rows = rows_of(path, isolation), found.get(key, [])
        if rows != wanted:
            first = next((pair for pair in zip(wanted, rows, strict=False) if pair[0] != pair[1]), None)
            different.append(f"{key}: {len(rows)} rows instead of {len(wanted)}; first difference: {first}")
    return different
