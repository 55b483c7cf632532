"""Measures `lookup` in a large segment from cold, and `ls` and `verify` of disks of many partitions; prints a table."""

import argparse
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.datasets import DATA, HOME, KIB, MIB, DataSet, make_segment
from bench.measure import Command, Measurement, measure
from bench.works import KSEG, PYTHON

PARTITION = HOME.parent / "golden/logs/4.3.1/zstd-0"
"""The original of each partition on the disk: a broker's, with indexes, snapshots and checkpoints."""
PER_TOPIC = 20
FIRST_TIMESTAMP = 1_760_000_000_001
# Bytes that a lookup reads by read() and pread(), after all modules are loaded.
ALONE = """
import sys
from pathlib import Path
from kseg.log.lookup import lookup_offset, lookup_time
from kseg.log.partition import (PartitionLog)

def lookup(path, target):
    return (lookup_time if target > 10**12 else lookup_offset)(PartitionLog(path), target).record

def counted():
    return int(Path("/proc/self/io").read_text().split()[1])

path, target, other = sys.argv[1], int(sys.argv[2]), sys.argv[3]
lookup(other, 300), lookup(other, 1795255129000)
nothing = counted()
nothing = counted() - nothing
before = counted()
assert lookup(path, target) is not None
print(counted() - before - nothing)
"""


class Work(NamedTuple):
    """A measured command. If it has a `directory`, this is not in memory at the start."""

    name: str
    arguments: tuple[str, ...]
    directory: Path | None = None


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.lookup", description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="MiB of the segment (default 1024)")
    parser.add_argument("--partitions", type=int, default=10_000, help="partitions of a disk (default 10,000)")
    parser.add_argument("--repeat", type=int, default=15, help="repetitions (default 15)")
    parser.add_argument("--kseg", default=KSEG, help="the measured command; a plain installation starts faster")
    options = parser.parse_args()
    partition, records = make_partition(options.size * MIB)
    disk, empty = make_disk(options.partitions), make_empty_disk(options.partitions)
    middle = records // 2
    timestamp = FIRST_TIMESTAMP + middle * 3
    works = [
        Work("help", ("--help",)),
        Work("lookup by offset", ("lookup", str(partition), "--offset", str(middle)), partition),
        Work("lookup by offset, JSON", ("lookup", str(partition), "--offset", str(middle), "-o", "json"), partition),
        Work("lookup by time", ("lookup", str(partition), "--timestamp", str(timestamp)), partition),
        Work(f"ls of {options.partitions} partitions", ("ls", str(disk), "--now", "0")),
        Work(f"ls of {options.partitions} partitions from cold", ("ls", str(disk), "--now", "0"), disk),
        Work(f"verify of {options.partitions} empty partitions", ("verify", str(empty), "-j", "1")),
    ]
    measured: dict[Work, list[Measurement]] = {work: [] for work in works}
    for _ in range(options.repeat):
        for work, found in measured.items():
            if work.directory is not None:
                forget(work.directory)
            found.append(measure(Command((options.kseg, *work.arguments)), "null"))
    print_table(measured)
    for name, target in (("offset", middle), ("time", timestamp)):
        program = [PYTHON, "-c", ALONE, str(partition), str(target), str(PARTITION)]
        read = int(subprocess.run(program, check=True, stdout=subprocess.PIPE).stdout)
        print(f"A lookup by {name} reads {read / KIB:.0f} KiB of {options.size} MiB (target: below 1024 KiB)")


def make_partition(size: int) -> tuple[Path, int]:
    """Return a partition of one segment with its indexes, and its number of records."""
    segment = make_segment(DataSet("16k-none"), size)
    partition = DATA / f"lookup-{size // KIB}k" / "orders-0"
    if not partition.exists():
        subprocess.run([KSEG, "reindex", str(segment.path), "--to", str(partition)], check=True)
        os.link(segment.path, partition / segment.path.name)
    return partition, segment.records


def make_disk(count: int) -> Path:
    """Return a log directory with the given number of partitions."""
    offsets = {"replication": 571, "recovery-point": 571, "log-start": 281}
    return _disk(f"{count}-partitions", count, offsets, lambda path: shutil.copytree(PARTITION, path))


def make_empty_disk(count: int) -> Path:
    """Return a log directory with the given number of empty partitions."""

    def make_partition(path: Path) -> None:
        path.mkdir(parents=True)
        for suffix in (".log", ".index", ".timeindex"):
            (path / f"{0:020}{suffix}").touch()
        (path / "leader-epoch-checkpoint").write_text("0\n0\n")
        shutil.copy(PARTITION / "partition.metadata", path)

    return _disk(f"{count}-empty-partitions", count, {"replication": 0, "recovery-point": 0}, make_partition)


def _disk(name: str, count: int, offsets: dict[str, int], make_partition: Callable[[Path], object]) -> Path:
    disk = DATA / name
    if disk.exists():
        return disk
    new = disk.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    names = [(f"topic-{number // PER_TOPIC}", number % PER_TOPIC) for number in range(count)]
    for topic, number in names:
        make_partition(new / f"{topic}-{number}")
    for checkpoint, offset in offsets.items():
        lines = ["0", str(count), *(f"{topic} {number} {offset}" for topic, number in names)]
        (new / f"{checkpoint}-offset-checkpoint").write_text("\n".join(lines) + "\n")
    return new.rename(disk)


def forget(directory: Path) -> None:
    """Remove the files of a directory from the page cache."""
    for path in filter(Path.is_file, directory.rglob("*")):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def print_table(measured: dict[Work, list[Measurement]]) -> None:
    """Yield a line for each work: minimum and median of its repetitions, and their difference from `--help`."""
    print("| work | CPU ms | over --help | wall ms | over --help | peak MiB | KiB from disk |")
    print("|---|---|---|---|---|---|---|")
    start = next(iter(measured.values()))
    for work, found in measured.items():
        columns = [
            *_milliseconds(found, start, lambda each: each.cpu_seconds),
            *_milliseconds(found, start, lambda each: each.wall_seconds),
            f"{max(each.peak_size for each in found) / MIB:.0f}",
            f"{max(each.disk_size or 0 for each in found) / KIB:.0f}",
        ]
        print(f"| {work.name} | {' | '.join(columns)} |")


def _milliseconds(
    found: list[Measurement], start: list[Measurement], seconds: Callable[[Measurement], float]
) -> tuple[str, str]:
    """Return minimum and median of some runs, and their difference from other runs."""
    values, others = ((min(each), median(each)) for each in (list(map(seconds, found)), list(map(seconds, start))))
    return _pair(values), _pair((values[0] - others[0], values[1] - others[1]))


def _pair(values: tuple[float, float]) -> str:
    return ", ".join(f"{value * 1000:.1f}" for value in values)


if __name__ == "__main__":
    main()
