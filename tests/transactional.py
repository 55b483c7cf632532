"""Golden partitions with transactions, their committed records, and changes to the files next to their logs."""

import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from crc32c import crc32c

import kseg
from tests import golden
from tests.fuzz.mutations import havoc
from tests.log.edits import ABORTED_TRANSACTION, copy_partition

TRANSACTIONAL = ("2.3.1/txn-1", "2.8.2/compacted-txn-0", "4.3.1/compacted-txn-0")


def committed_offsets(partition: Path) -> list[int]:
    """Return the offsets that a consumer gets, only by the batches of the log."""
    begun: dict[int, int] = {}
    pending: dict[int, list[int]] = {}
    found: list[int] = []
    for path in sorted(partition.glob("*.log")):
        with kseg.open_segment(path) as segment:
            for batch in segment.scan():
                if not isinstance(batch, kseg.Batch):
                    continue  # damage
                records = list(batch.records(on_damage="skip"))
                if not batch.is_transactional:
                    found += [] if batch.is_control else [record.offset for record in records]
                elif batch.is_control and not records:
                    continue  # compacted away, with all records of the transaction
                elif batch.is_control:
                    is_commit = any(record.key is not None and record.key[3] == 1 for record in records)
                    found += pending.pop(batch.producer_id, []) if is_commit else []
                    pending.pop(batch.producer_id, None)
                    begun.pop(batch.producer_id, None)
                else:
                    begun.setdefault(batch.producer_id, batch.base_offset)
                    pending.setdefault(batch.producer_id, []).extend(record.offset for record in records)
    stable = min(begun.values(), default=1 << 63)
    return sorted(offset for offset in found if offset < stable)


SNAPSHOT_HEADER = struct.Struct(">hIi")
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
Mutation = Callable[[Random, bytes], bytes]


def snapshot(*producers: Sequence[int]) -> bytes:
    """Return a producer snapshot with a right CRC."""
    rest = len(producers).to_bytes(4, "big") + b"".join(SNAPSHOT_ENTRY.pack(*producer) for producer in producers)
    return (1).to_bytes(2, "big") + crc32c(rest).to_bytes(4, "big") + rest


def truncate(random: Random, content: bytes) -> bytes:
    """Cut the content somewhere, or empty it."""
    return content[: random.choice((0, random.randrange(len(content) + 1)))]


def stale(random: Random, content: bytes, suffix: str) -> bytes:
    """Return another file of the same kind: of another segment, another partition, another release."""
    others = [path.read_bytes() for name in TRANSACTIONAL for path in (golden.ROOT / "logs" / name).glob(f"*{suffix}")]
    return random.choice([other for other in others if other != content])


def other_abort(random: Random, content: bytes) -> bytes:
    """Return entries of a .txnindex dropped, doubled, with another field, or in another order."""
    entries = [list(entry) for entry in ABORTED_TRANSACTION.iter_unpack(content)]
    slot = random.randrange(len(entries))
    match random.randrange(4):
        case 0:
            del entries[slot]
        case 1:
            entries.insert(slot, list(entries[slot]))
        case 2:
            random.shuffle(entries)
        case _:
            field = random.randrange(1, 5)
            entries[slot][field] = random.choice((0, entries[slot][field] + random.randrange(-9, 10), 10**6))
    return b"".join(ABORTED_TRANSACTION.pack(*entry) for entry in entries)


def other_producer(random: Random, content: bytes) -> bytes:
    """Return a snapshot with another first offset of an open transaction, or none, and a right CRC."""
    entries = [list(entry) for entry in SNAPSHOT_ENTRY.iter_unpack(content[SNAPSHOT_HEADER.size :])]
    if entries:
        entry = random.choice(entries)
        entry[-1] = random.choice((-1, entry[3], entry[3] - random.randrange(20)))
    return snapshot(*entries)


def other_offsets(random: Random, content: bytes) -> bytes:
    """Return a checkpoint with another number at the end of each line."""
    return re.sub(rb"\b\d+$", lambda _: b"%d" % random.choice((0, 7, 50, 95, 250, 10**6)), content, flags=re.MULTILINE)


BY_SUFFIX: dict[str, tuple[Mutation, ...]] = {
    ".txnindex": (other_abort,) * 4,
    ".snapshot": (other_producer,) * 3,
    "checkpoint": (other_offsets,) * 2,
}


def mutate(random: Random, partition: Path, count: int) -> list[str]:
    """Change, remove or exchange files next to the logs; return descriptions of the changes."""
    beside = [path for path in partition.iterdir() if path.suffix != ".log"]
    return [
        change(random, path) for path in random.sample(sorted([*beside, *partition.parent.glob("*-checkpoint")]), count)
    ]


def change(random: Random, path: Path) -> str:
    """Change one file in a way that its kind allows; return a description."""
    suffix = "checkpoint" if path.name.endswith("checkpoint") else path.suffix
    if random.randrange(6) == 0:
        path.unlink()
        return f"{path.name} removed"
    kinds: list[Mutation] = [havoc, truncate, *BY_SUFFIX.get(suffix, ())]
    if suffix in (".txnindex", ".snapshot", ".index", ".timeindex"):
        kinds += [lambda random, content: stale(random, content, suffix)] * 2
    kind = random.choice(kinds)
    path.write_bytes(kind(random, path.read_bytes()))
    return f"{path.name} {getattr(kind, '__name__', 'changed')}"


def mutate_partition(seed: int, directory: Path) -> tuple[Path, list[str], Random]:
    """Return a golden partition with up to three changed files next to its logs; and the seed's generator."""
    random = Random(seed)
    partition = copy_partition(directory, TRANSACTIONAL[seed % len(TRANSACTIONAL)])
    return partition, mutate(random, partition, random.choice((1, 1, 2, 3))), random
