"""Replicas of a partition as brokers would leave them: batches by leader epoch, and the files next to them."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.log_files import NewBatch, NewRecord, write_segment

TOPIC = "orders-0"


class Part(NamedTuple):
    """Records of a leader epoch from an offset on, as one batch; their values begin with a word."""

    epoch: int
    first: int
    count: int
    word: str = "value"


def batch(part: Part) -> NewBatch:
    """Return a part as a batch; its keys are the offsets."""
    records = [NewRecord(b"%d" % offset, f"{part.word} {offset}".encode()) for offset in _offsets(part)]
    return NewBatch(records, base_offset=part.first, partition_leader_epoch=part.epoch)


def replica(side: Path, parts: Sequence[Part], epochs: Iterable[tuple[int, int]] | None = None) -> Path:
    """Write a partition on a side: batches and leader epochs with start offsets, by default the batches'."""
    directory = side / TOPIC
    base = parts[0].first if parts else 0
    write_segment(directory, map(batch, parts), base)
    if epochs is None:
        starts: dict[int, int] = {}
        for part in parts:
            starts.setdefault(part.epoch, part.first)
        epochs = starts.items()
    write_epochs(directory, list(epochs))
    return directory


def write_epochs(directory: Path, epochs: Sequence[tuple[int, int]]) -> None:
    """Write a leader-epoch-checkpoint."""
    lines = ["0", str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs), ""]
    (directory / "leader-epoch-checkpoint").write_text("\n".join(lines), encoding="utf-8")


def write_high_watermark(side: Path, offset: int) -> None:
    """Write the checkpoint of a log directory."""
    name, partition = TOPIC.rsplit("-", 1)
    content = f"0\n1\n{name} {partition} {offset}\n"
    (side / "replication-offset-checkpoint").write_text(content, encoding="utf-8")


def copy_partition(source: Path, side: Path) -> Path:
    """Copy a partition directory to another side."""
    side.mkdir(parents=True, exist_ok=True)
    return shutil.copytree(source, side / source.name)


def _offsets(part: Part) -> range:
    return range(part.first, part.first + part.count)
