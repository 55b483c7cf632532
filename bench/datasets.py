"""Data sets, which Kafka's own record classes write (MakeData.java)."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from bench.peers import class_path

KIB = 1024
MIB = 1024 * KIB
HOME = Path(__file__).parent
DATA = HOME / "data"
MAKER = HOME / "MakeData.java"


class DataSet(NamedTuple):
    """One segment, with properties of its batches and records. Sizes are in bytes."""

    name: str
    codec: str = "none"
    magic: int = 2
    batch_size: int = 16 * KIB  # a producer's batch.size; 1: one record per batch
    value_sizes: tuple[int, int] = (100, 200)
    header_count: int = 0
    size: int | None = None  # None: from the command line


SMALL = DataSet("small", size=64 * KIB)
DATA_SETS = (
    DataSet("16k-none"),
    DataSet("16k-gzip", codec="gzip"),
    DataSet("16k-snappy", codec="snappy"),
    DataSet("16k-lz4", codec="lz4"),
    DataSet("16k-zstd", codec="zstd"),
    DataSet("single-none", batch_size=1, value_sizes=(100, 100)),
    DataSet("single-lz4", codec="lz4", batch_size=1, value_sizes=(100, 100)),
    DataSet("1m-zstd", codec="zstd", batch_size=MIB),
    DataSet("v1-none", magic=1),
    DataSet("v1-gzip", magic=1, codec="gzip"),
    DataSet("headers", header_count=5),
    DataSet("large-values", value_sizes=(100 * KIB, 100 * KIB)),
    DataSet("1g-none", size=1024 * MIB),
    SMALL,
)


class Segment(NamedTuple):
    """A data set on disk, with its counts. In v0 and v1, each log entry is a batch."""

    path: Path
    size: int
    records: int
    batches: int
    largest_batch: int

    def partition(self) -> Path:
        """Return a partition directory without indexes. The segment is closed, since an empty segment follows."""
        return self.path.parent / "topic-0"

    def empty_segment(self) -> Path:
        """Return the segment after this one in the partition."""
        return self.partition() / f"{self.records:020}.log"


def make_segment(data_set: DataSet, size: int) -> Segment:
    """Return the data set's file of up to `size` bytes, from an earlier run if it was made in the same way."""
    size = data_set.size or size
    path = DATA / f"{data_set.name}-{size // KIB}k" / "00000000000000000000.log"
    arguments = _arguments(data_set, size)
    recipe = [*arguments, hashlib.sha256(MAKER.read_bytes()).hexdigest()]
    made = path.with_name("made.json")
    if not (made.exists() and json.loads(made.read_text())["recipe"] == recipe):
        program = ["java", "-cp", class_path("4.3.1"), str(MAKER), str(path), *arguments]
        counts = json.loads(
            subprocess.run(program, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        )
        os.sync()  # so that its writeback disturbs no measurement
        made.write_text(json.dumps({"recipe": recipe, "counts": counts}))
    segment = Segment(path, **json.loads(made.read_text())["counts"])
    _make_partition(segment)
    return segment


def _make_partition(segment: Segment) -> None:
    partition = segment.partition()
    shutil.rmtree(partition, ignore_errors=True)
    partition.mkdir()
    (partition / segment.path.name).hardlink_to(segment.path)
    segment.empty_segment().touch()


def _arguments(data_set: DataSet, size: int) -> list[str]:
    """Return MakeData's arguments after the file name."""
    shape = (data_set.batch_size, *data_set.value_sizes, data_set.header_count)
    return [str(argument) for argument in (size, data_set.magic, data_set.codec, *shape)]
