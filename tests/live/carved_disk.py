"""A broker's log directory on a loop-mounted file system: its topics are written, deleted, and partly overwritten."""

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kseg.reading.batch import Batch, scan_log
from kseg.reading.log_file import LogFile
from tests.log.real_broker import PATIENCE, Broker

SIZE = "3G"
"""The size of an image."""
SYNC_SECONDS = 3
CODECS = ("none", "lz4", "zstd", "snappy")
COMPACT = {"cleanup.policy": "compact", "segment.ms": "3000", "min.cleanable.dirty.ratio": "0.01"}
SLOW = tuple(f"slow-{number:02}" for number in range(30))
"""Topics in lockstep: a record of the same size at the same time in each."""
TWINS = ("twin-a", "twin-b")
TOPICS: Mapping[str, Mapping[str, str]] = {
    **{f"codec-{codec}-{number}": {} for codec in CODECS for number in range(3)},
    **{topic: {} for topic in ("plain", "paid", "blobs", *TWINS, *SLOW)},
    "compacted": COMPACT,
}
"""Topics of one partition, with their settings."""

Identity = tuple[int, int, int]
"""Base offset, size and CRC of a batch."""


class Contents(NamedTuple):
    """The batches of a log directory by partition, without control batches and the metadata log.

    internal: the partitions of the batches of other internal topics.
    """

    batches: Mapping[str, set[Identity]]
    internal: Mapping[Identity, str]

    @property
    def count(self) -> int:
        return sum(map(len, self.batches.values()))

    @property
    def size(self) -> int:
        return sum(size for each in self.batches.values() for _, size, _ in each)


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[Path]:
    subprocess.run(["mount", "-o", "loop", image, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def make_disk(kind: str, image: Path, place: Path, *, is_aged: bool) -> None:
    """Make a file system with the files of a directory; an aged one has been full twice."""
    subprocess.run(["truncate", "-s", SIZE, image], check=True)
    subprocess.run([f"mkfs.{kind}", "-q", image], check=True)
    kept = place.with_name("kept")
    place.rename(kept)
    place.mkdir()
    with mounted(image, place):
        for seed in range(2 if is_aged else 0):
            fill(place, seed)
        for path in place.iterdir():
            shutil.rmtree(path)  # lost+found is no partition
        shutil.copytree(kept, place, dirs_exist_ok=True)


def fill(place: Path, seed: int) -> None:
    """Write files of many sizes until the disk is full, remove every other one, fill it again, and empty it."""
    chance = random.Random(seed)
    noise = chance.randbytes(1 << 20)
    for turn in range(2):
        for number in range(1_000_000):
            size = round(4096 * 2 ** chance.uniform(0, 11))
            try:
                (place / f"{turn}-{number}").write_bytes((noise * (size // len(noise) + 1))[:size])
            except OSError:
                break
        for path in sorted(place.glob("*-*"))[:: 1 + (turn == 0)]:
            path.unlink()
        os.sync()


def write_other_files(image: Path, place: Path, size: int) -> None:
    """Append this many bytes to some files, in turn and synced."""
    noise = random.Random(size).randbytes(1 << 20)
    with mounted(image, place):
        directory = place / f"other-{size}"
        directory.mkdir()
        for number in range(size >> 20):
            with (directory / str(number % 5)).open("ab") as file:
                file.write(noise)
                os.fsync(file.fileno())


# --- the records ------------------------------------------------------------------------------------------------------


def value_of(topic: str, number: int, size: int) -> bytes:
    """Return a value that begins with its partition; twins have equal sizes."""
    return f"{topic}-0 {number:08} ".encode().ljust(22) + random.Random(f"{topic} {number}").randbytes(size)


def write_topics(broker: Broker, seconds: float) -> None:
    """Write all topics for some seconds, and sync the disk every few seconds in place of hours of writeback."""
    from confluent_kafka import Producer

    server = {"bootstrap.servers": f"127.0.0.1:{broker.port}"}
    producers = {codec: Producer({**server, "compression.type": codec, "linger.ms": 30}) for codec in CODECS}
    idempotent = Producer({**server, "enable.idempotence": True, "linger.ms": 5})
    paid = Producer({**server, "transactional.id": "payer"})
    paid.init_transactions(PATIENCE)
    end = time.monotonic() + seconds
    next_sync = 0.0
    number = 0
    while time.monotonic() < end:
        number += 1
        for codec, producer in producers.items():
            for each in range(3):
                topic = f"codec-{codec}-{each}"
                for part in range(8 * (each + 1)):
                    producer.produce(topic, value_of(topic, 100 * number + part, 50 * (part + each)), partition=0)
            producer.poll(0)
        for topic in (*TWINS, *SLOW, "plain"):
            idempotent.produce(topic, value_of(topic, number, 40 + number * 37 % 400), b"%d" % (number % 50), 0)
        idempotent.produce("compacted", value_of("compacted", number, 900), b"%d" % (number % 200), 0)
        if number % 5 == 0:
            idempotent.produce("blobs", value_of("blobs", number, 100_000 + number * 7919 % 800_000), partition=0)
            paid.begin_transaction()
            for part in range(10):
                paid.produce("paid", value_of("paid", 10 * number + part, 200), partition=0)
            paid.commit_transaction(PATIENCE)
        idempotent.flush(PATIENCE)
        if time.monotonic() > next_sync:
            os.sync()
            next_sync = time.monotonic() + SYNC_SECONDS
    for producer in (*producers.values(), idempotent, paid):
        producer.flush(PATIENCE)


def commit_groups(broker: Broker) -> None:
    """Commit offsets of some groups, so that the internal topic has several partitions."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    for number in range(6):
        settings: dict[str, Any] = {"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": f"group-{number}"}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        end = time.monotonic() + PATIENCE
        for offset in range(5):
            offsets = [TopicPartition(each, 0, offset) for each in TOPICS]
            while True:
                try:
                    consumer.commit(offsets=offsets, asynchronous=False)
                    break
                except KafkaException:  # the coordinator is still loading
                    assert time.monotonic() < end
                    time.sleep(0.2)
        consumer.close()


# --- what was carved --------------------------------------------------------------------------------------------------


def owner_of(batch: Batch) -> str | None:
    """Return the partition whose name the first value begins with; None for other batches."""
    record = next(iter(batch.records(on_damage="skip")), None)
    name = (b"" if record is None or batch.is_control else record.value or b"").partition(b" ")[0].decode("latin-1")
    return name if name.removesuffix("-0") in TOPICS else None


def batches_in(path: Path) -> Iterator[Batch]:
    with LogFile(path) as log_file:
        for item in scan_log(log_file):
            assert isinstance(item, Batch), f"{path}: {item}"
            assert item.is_valid, f"{path}: {item}"
            yield item


def identity_of(batch: Batch) -> Identity:
    return batch.base_offset, batch.size, batch.crc


def contents_of(log_dir: Path) -> Contents:
    """Return the batches of a broker's log directory."""
    found: dict[str, set[Identity]] = {}
    for path in sorted(log_dir.glob("*-*/*.log")):
        partition = path.parent.name
        if partition != "__cluster_metadata-0":
            batches = {identity_of(batch) for batch in batches_in(path) if not batch.is_control}
            found.setdefault(partition, set()).update(batches)
    internal = {each: partition for partition in found if partition.startswith("__") for each in found[partition]}
    return Contents(found, internal)


class Judgement(NamedTuple):
    """Batches and bytes of a disk that came back and that have their name; what is wrong; and carved directories."""

    batches: int
    size: int
    named_batches: int
    named_size: int
    wrong_names: int
    mixed: int
    directories: int
    largest: Mapping[str, str]
    """The directories with the most batches, by partition."""


def judge(carved: Path, truth: Contents) -> Judgement:
    """Compare what was carved with a disk's contents. A directory is mixed if it has batches of two partitions."""
    back: set[tuple[str, Identity]] = set()
    named: set[tuple[str, Identity]] = set()
    wrong_names = mixed = directories = 0
    largest: dict[str, tuple[int, str]] = {}
    for directory in sorted(path for path in carved.iterdir() if path.is_dir()):
        owners: Counter[str] = Counter()
        is_named = not directory.name.startswith("carved-")
        for path in sorted(directory.glob("*.log")):
            for batch in batches_in(path):
                identity = identity_of(batch)
                owner = owner_of(batch) or truth.internal.get(identity)
                if owner is None:
                    continue
                owners[owner] += 1
                if identity in truth.batches[owner]:
                    back.add((owner, identity))
                    if is_named:
                        named.add((owner, identity))
        mixed += len(owners) > 1
        directories += bool(owners)
        for owner, count in owners.items():
            wrong_names += is_named and directory.name.partition(".")[0] != owner
            largest[owner] = max(largest.get(owner, (0, "")), (count, directory.name))
    sizes = [sum(size for _, (_, size, _) in each) for each in (back, named)]
    names = {owner: name for owner, (_, name) in largest.items()}
    return Judgement(len(back), sizes[0], len(named), sizes[1], wrong_names, mixed, directories, names)
