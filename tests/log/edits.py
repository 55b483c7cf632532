"""Copies of golden partitions with small edits, for checks that no golden file fails."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

from tests import golden

# Positions and widths of fields in a v2 batch.
FIELDS = {
    "base_offset": (0, 8),
    "partition_leader_epoch": (12, 4),
    "attributes": (21, 2),
    "base_timestamp": (27, 8),
    "max_timestamp": (35, 8),
    "producer_epoch": (51, 2),
    "base_sequence": (53, 4),
}
ABORTED_TRANSACTION = Struct(">hqqqq")
CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint")


def copy_partition(directory: Path, name: str) -> Path:
    """Copy a golden partition such as `2.3.1/txn-1` into a log directory with its checkpoints."""
    source = golden.ROOT / "logs" / name
    target = directory / source.parent.name / source.name
    shutil.copytree(source, target)
    for path in source.parent.glob("*-checkpoint"):
        shutil.copy(path, target.parent)
    return target


def logs(partition: Path) -> list[Path]:
    """Return the logs of a partition, by base offset."""
    return sorted(partition.glob("*.log"))


def v2_batches(log: Path) -> Iterator[tuple[int, int]]:
    """Yield position and size of each batch of an intact log."""
    data, position = log.read_bytes(), 0
    while position < len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        yield position, size
        position += size


def edit_batch(log: Path, number: int, **changes: int) -> None:
    """Add to fields of a v2 batch, counted from the end if `number` is negative; corrects its CRC."""
    data = bytearray(log.read_bytes())
    position, size = list(v2_batches(log))[number]
    for name, change in changes.items():
        start, width = FIELDS[name]
        place = slice(position + start, position + start + width)
        data[place] = (int.from_bytes(data[place], "big", signed=True) + change).to_bytes(width, "big", signed=True)
    data[position + 17 : position + 21] = calc_crc32c(bytes(data[position + 21 : position + size])).to_bytes(4, "big")
    log.write_bytes(data)


def markers(log: Path) -> list[int]:
    """Return numbers of the control batches of a log of v2 batches."""
    data = log.read_bytes()
    return [number for number, (position, _) in enumerate(v2_batches(log)) if data[position + 22] & 0x20]


def edit_snapshot(snapshot: Path, position: int, content: bytes) -> None:
    """Put bytes into a producer snapshot; corrects its CRC."""
    data = bytearray(snapshot.read_bytes())
    data[position : position + len(content)] = content
    data[2:6] = calc_crc32c(bytes(data[6:])).to_bytes(4, "big")
    snapshot.write_bytes(data)


def write_checkpoint(partition: Path, name: str, offset: int) -> None:
    """Write a checkpoint of the log directory with this partition alone."""
    topic, _, number = partition.name.rpartition("-")
    (partition.parent / name).write_text(f"0\n1\n{topic} {number} {offset}\n")


def repeat_log(log: Path, size: int) -> None:
    """Grow a log of v2 batches to a size, by batches with rising offsets."""
    batches = [log.read_bytes()[position : position + length] for position, length in v2_batches(log)]
    first = int.from_bytes(batches[0][:8], "big")
    span = int.from_bytes(batches[-1][:8], "big") + int.from_bytes(batches[-1][23:27], "big") + 1 - first
    content = bytearray()
    rounds = 0
    while len(content) < size:
        for batch in batches:
            offset = int.from_bytes(batch[:8], "big") + rounds * span
            content += offset.to_bytes(8, "big") + batch[8:]
        rounds += 1
    log.write_bytes(content)


def write_bytes(path: Path, position: int, content: bytes) -> None:
    """Overwrite bytes of a file at a position."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)
