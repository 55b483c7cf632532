"""Log directories whose segments have any ages, for the tests of `retain --free`."""

from collections.abc import Sequence
from pathlib import Path

from kseg.log.partition import PartitionLog
from tests.log.cleaner_logs import NOW, batch, make

DAY = 86_400_000
Topics = dict[str, Sequence[Sequence[float]]]
"""The ages in days of each topic's segments by partition, the oldest first, the active one last."""


def write_disk(directory: Path, topics: Topics, now: int = NOW) -> Path:
    """Write topics; each segment has a record, with a short value in the topic `small`, else a long one."""
    for topic, partitions in topics.items():
        value = "v" * (100 if topic == "small" else 2000)
        for number, ages in enumerate(partitions):
            segments = [
                [batch(slot, ("k", value), timestamp=int(now - age * DAY))] for slot, age in enumerate(ages[:-1])
            ]
            make(directory / f"{topic}-{number}", *segments)
            active = PartitionLog(directory / f"{topic}-{number}").segments[-1].path
            active.write_bytes(batch(len(ages) - 1, ("k", "v"), timestamp=int(now - ages[-1] * DAY)))
            for index in active.parent.glob(f"{active.stem}.*index"):
                index.unlink()
    return directory
