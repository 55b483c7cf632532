"""Damage for each finding of `verify`, and its next step: `test_advice_kafka.py` applies both on real disks."""

import os
import shutil
from base64 import encodebytes
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

from tests import run
from tests.failing_disk import FailingDisk
from tests.log import edits

LENGTH, MAGIC, ATTRIBUTES, PRODUCER_ID, COUNT, RECORDS = 8, 16, 22, 43, 57, 61
"""Positions of fields in a v2 batch."""
CLEAN, KILLED = "clean", "killed"
"""The ways in which the broker was stopped before."""
HOUR = 3_600_000
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 946\n"
"""The remainder of a file in Git LFS."""
SPARSE = "index-sparse"
"""The finding that needs a log of some MiB."""
HOLES = frozenset({"offsets-lost", "sequence-gap"})
"""The findings that remain for a permanent hole."""


class Place(NamedTuple):
    """A damaged partition, its copy from before, the log directory name for it, and a scratch directory."""

    partition: Path
    intact: Path
    scratch: Path
    disk: FailingDisk | None = None

    @property
    def logs(self) -> list[Path]:
        return edits.logs(self.partition)

    @property
    def middle(self) -> Path:
        return self.logs[1]


Step = Callable[[Place], None]


class Case(NamedTuple):
    """A finding's damage and its next step.

    way: one of several. states: the ways in which the broker was stopped before, if the advice depends on it. remains:
    remaining findings afterwards, rightly so. is_keyed: whether the topic's records have keys. is_alone: whether the
    finding appears if the partition was copied without the others.
    """

    finding_id: str
    way: str
    damage: Step
    advice: Step
    states: tuple[str, ...] = (CLEAN, KILLED)
    remains: frozenset[str] = frozenset()
    is_keyed: bool = False
    is_alone: bool = False

    @property
    def topic(self) -> str:
        return f"{self.finding_id}.{self.way}"


# --- damage -----------------------------------------------------------------------------------------------------------


def overwrite(log: Path, number: int, position: int, content: bytes, *, mend: bool = True) -> None:
    """Put bytes into a v2 batch; `mend` corrects its CRC."""
    data = bytearray(log.read_bytes())
    start, size = list(edits.v2_batches(log))[number]
    data[start + position : start + position + len(content)] = content
    if mend:
        data[start + 17 : start + 21] = calc_crc32c(bytes(data[start + 21 : start + size])).to_bytes(4, "big")
    log.write_bytes(data)


def in_batch(position: int, content: bytes, *, mend: bool = True) -> Step:
    return lambda place: overwrite(place.middle, 1, position, content, mend=mend)


def flip(place: Place) -> None:
    start, size = list(edits.v2_batches(place.middle))[1]
    byte = place.middle.read_bytes()[start + size - 1]
    overwrite(place.middle, 1, size - 1, bytes([byte ^ 1]), mend=False)


def rearrange(log: Path, order: Callable[[list[bytes]], list[bytes]]) -> None:
    data = log.read_bytes()
    batches = [data[start : start + size] for start, size in edits.v2_batches(log)]
    log.write_bytes(b"".join(order(batches)))


def batches(order: Callable[[list[bytes]], list[bytes]]) -> Step:
    return lambda place: rearrange(place.middle, order)


def without_second(whole: list[bytes]) -> list[bytes]:
    return [whole[0], *whole[2:]]


def shorten(number: int, suffix: str, size: int) -> Step:
    def cut(place: Place) -> None:
        path = place.logs[number].with_suffix(suffix)
        os.truncate(path, path.stat().st_size - size)

    return cut


def lengthen(number: int, suffix: str, size: int) -> Step:
    def add(place: Place) -> None:
        path = place.logs[number].with_suffix(suffix)
        os.truncate(path, path.stat().st_size + size)

    return add


def empty(number: int, suffix: str) -> Step:
    return lambda place: os.truncate(place.logs[number].with_suffix(suffix), 0)


def empty_all(place: Place) -> None:
    """Empty all files but partition.metadata, without which no broker starts."""
    for path in place.partition.iterdir():
        if path.name != "partition.metadata":
            os.truncate(path, 0)


def remove(number: int, suffix: str) -> Step:
    return lambda place: place.logs[number].with_suffix(suffix).unlink()


def content(number: int, suffix: str, change: Callable[[bytes], bytes]) -> Step:
    def write(place: Place) -> None:
        path = place.logs[number].with_suffix(suffix)
        path.write_bytes(change(path.read_bytes()))

    return write


def edit_topic(number: int, batch: int, **changes: int) -> Step:
    return lambda place: edits.edit_batch(place.logs[number], batch, **changes)


def move_segment(partition: Path, base: int, new_base: int) -> None:
    for path in partition.glob(f"{base:020}.*"):
        path.rename(path.with_name(f"{new_base:020}{path.suffix}"))


def rename_first(place: Place) -> None:
    move_segment(place.partition, 0, 1)


def rename_last_log(place: Place) -> None:
    log = place.logs[-1]
    log.rename(log.with_name(f"{int(log.stem) - 1:020}.log"))


def write_epochs(*entries: str) -> Step:
    def write(place: Place) -> None:
        lines = ["0", str(len(entries)), *entries]
        (place.partition / "leader-epoch-checkpoint").write_text("".join(f"{line}\n" for line in lines))

    return write


def add_epoch(place: Place) -> None:
    lines = (place.partition / "leader-epoch-checkpoint").read_text().split("\n")[2:-1]
    write_epochs(*lines, "99 100000")(place)


def keep_last_epoch(place: Place) -> None:
    lines = (place.partition / "leader-epoch-checkpoint").read_text().split("\n")[2:-1]
    write_epochs(lines[-1])(place)


def last_snapshot(place: Place) -> Path:
    return sorted(place.partition.glob("*.snapshot"))[-1]


def change_snapshot(place: Place) -> None:
    edits.edit_snapshot(sorted(place.partition.glob("*.snapshot"))[0], 20, (77).to_bytes(4, "big"))


def break_snapshot(place: Place) -> None:
    path = sorted(place.partition.glob("*.snapshot"))[0]
    path.write_bytes(path.read_bytes()[:-3])


def break_newest_snapshot(place: Place) -> None:
    path = last_snapshot(place)
    path.write_bytes(path.read_bytes()[:-3])


def add_snapshot(place: Place) -> None:
    path = last_snapshot(place)
    shutil.copy(path, path.with_name(f"{int(path.stem) + 1000:020}.snapshot"))


def write_file(name: str, data: bytes) -> Step:
    return lambda place: (place.partition / name).write_bytes(data) and None


def set_checkpoint(name: str, offset: int | None) -> Step:
    """Return a change of the partition's line in a checkpoint of the log directory; None removes it."""

    def write(place: Place) -> None:
        path = place.partition.parent / name
        topic, _, number = place.partition.name.rpartition("-")
        lines = path.read_text().split("\n")[2:-1] if path.exists() else []
        lines = [line for line in lines if not line.startswith(f"{topic} {number} ")]
        if offset is not None:
            lines.append(f"{topic} {number} {offset}")
        path.write_text("".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)))

    return write


def add_aborted(place: Place) -> None:
    log = place.logs[0]
    index = log.with_suffix(".txnindex")
    before = index.read_bytes() if index.exists() else b""
    index.write_bytes(before + edits.ABORTED_TRANSACTION.pack(0, 4711, 1, 2, 3))


def beyond_index(place: Place) -> None:
    """Move the last batch's offset beyond the range of an index, as in a compacted log."""
    set_checkpoint("cleaner-offset-checkpoint", int(place.logs[-1].stem))(place)
    log = place.logs[-1]
    for number in range(1, len(list(edits.v2_batches(log)))):
        edits.edit_batch(log, number, base_offset=2**31 + 1000)


def swap_entries(size: int) -> Callable[[bytes], bytes]:
    def swap(data: bytes) -> bytes:
        return data[size : 2 * size] + data[:size] + data[2 * size :]

    return swap


def turn_round(data: bytes) -> bytes:
    """Return an .index with the positions of its entries in reverse."""
    places = range(0, len(data), 8)
    pairs = zip(places, reversed(places), strict=True)
    return b"".join(data[offset : offset + 4] + data[position + 4 : position + 8] for offset, position in pairs)


def move_entry(data: bytes) -> bytes:
    return data[:4] + (int.from_bytes(data[4:8], "big") + 1).to_bytes(4, "big") + data[8:]


def raise_time(data: bytes) -> bytes:
    return (int.from_bytes(data[:8], "big") + 1).to_bytes(8, "big") + data[8:]


def leave_old_time(data: bytes) -> bytes:
    """Add an entry that no longer matches and zeros, as a running broker leaves them after its own entries."""
    written = -(-len(data.rstrip(b"\0")) // 12) * 12
    return data[:written] + (1 << 42).to_bytes(8, "big") + (5000).to_bytes(4, "big") + bytes(1200)


def cut_last_batches(place: Place) -> None:
    """Remove the last batches completely: the log itself doesn't show it."""
    log = place.logs[-1]
    os.truncate(log, list(edits.v2_batches(log))[-2][0])


def change_newest_snapshot(place: Place) -> None:
    edits.edit_snapshot(last_snapshot(place), 20, (77).to_bytes(4, "big"))


def forget_producers(place: Place) -> None:
    """Leave a transaction open without a snapshot that has it."""
    open_transaction(place)
    for path in place.partition.glob("*.snapshot"):
        path.unlink()


def mark_deleted(place: Place) -> None:
    place.middle.rename(place.middle.with_name(f"{place.middle.name}.deleted"))


def shorten_name(place: Place) -> None:
    place.logs[0].rename(place.partition / "0.log")


def take_other_id(place: Place) -> None:
    shutil.copy(place.intact.parent / "bad-crc.alone-0" / "partition.metadata", place.partition)


def lose_block(place: Place) -> None:
    assert place.disk is not None
    place.disk.lose_blocks(place.middle, range(400, 500))


def lose_index(place: Place) -> None:
    assert place.disk is not None
    place.disk.lose_file(place.middle.with_suffix(".index"))


def leave_directory(place: Place) -> None:
    left = place.partition.with_name(f"{place.partition.name}.{'0' * 32}-delete")
    shutil.copytree(place.intact, left)


def open_transaction(place: Place) -> None:
    """Give the middle segment's aborted transaction to another producer, so that no marker ends it."""
    first, second = edits.markers(place.middle)
    for number in range(first + 1, second):
        overwrite(place.middle, number, PRODUCER_ID, (4711).to_bytes(8, "big"))
    reindex(place)


def let_hang(place: Place) -> None:
    """Do the same, and move the last marker an hour later."""
    log = place.logs[-1]
    edits.edit_batch(log, edits.markers(log)[-1], base_timestamp=HOUR, max_timestamp=HOUR)
    open_transaction(place)


def compact(place: Place) -> None:
    """Remove a batch, and write the cleaner's checkpoint after it."""
    batches(without_second)(place)
    set_checkpoint("cleaner-offset-checkpoint", int(place.logs[-1].stem))(place)


# --- advice -----------------------------------------------------------------------------------------------------------


def nothing(place: Place) -> None:
    """Do nothing: the broker repairs the damage, or it isn't any."""


def kseg(*arguments: object) -> None:
    ran = run.kseg([str(each) for each in arguments], Path.cwd())
    assert ran.status in (0, 1), ran.stderr


def fresh(place: Place) -> Path:
    shutil.rmtree(place.scratch / "new", ignore_errors=True)
    return place.scratch / "new"


def reindex(place: Place) -> None:
    new = fresh(place)
    kseg("reindex", place.partition, "--to", new)
    shutil.copytree(new, place.partition, dirs_exist_ok=True)


def remove_index(place: Place) -> None:
    """Remove the segment's .index: at start the broker rebuilds all indexes of such a segment."""
    for log in place.logs:
        log.with_suffix(".index").unlink(missing_ok=True)


def salvage_from(*options: str, with_replica: bool = False) -> Step:
    def salvage(place: Place) -> None:
        new = fresh(place)
        sources = [place.partition, *([place.intact] if with_replica else [])]
        kseg("salvage", *sources, "--to", new, *options)
        name = place.partition.name
        shutil.move(place.partition, place.scratch / f"damaged-{name}")
        shutil.copytree(new / name, place.partition)

    return salvage


salvage = salvage_from()
drop_unreadable = salvage_from("--drop-unreadable")
fill = salvage_from(with_replica=True)


def take_replica(place: Place) -> None:
    shutil.rmtree(place.partition)
    shutil.copytree(place.intact, place.partition)


def unmark_deleted(place: Place) -> None:
    for path in place.partition.glob("*.deleted"):
        path.rename(path.with_suffix(""))


def pad_name(place: Place) -> None:
    (log,) = place.partition.glob("0.log")
    log.rename(log.with_name(f"{0:020}.log"))


def restore_id(place: Place) -> None:
    shutil.copy(place.intact / "partition.metadata", place.partition)


def remove_last_indexes(place: Place) -> None:
    for suffix in (".index", ".timeindex"):
        place.logs[-1].with_suffix(suffix).unlink()


def remove_file(name: str) -> Step:
    return lambda place: (place.partition / name).unlink()


def remove_partition(place: Place) -> None:
    shutil.rmtree(place.partition)


def put_back(place: Place) -> None:
    shutil.copytree(place.intact, place.partition)


def rename_to_first_offset(place: Place) -> None:
    move_segment(place.partition, 1, 0)


def delete_epochs(place: Place) -> None:
    (place.partition / "leader-epoch-checkpoint").unlink()


def delete_epochs_and_reindex(place: Place) -> None:
    delete_epochs(place)
    reindex(place)


CASES = [
    # bytes of the log
    Case("unreadable", "alone", lose_block, salvage, remains=HOLES),
    Case("unreadable", "filled", lose_block, fill),
    Case("bad-length", "alone", in_batch(LENGTH, bytes(4), mend=False), salvage, remains=HOLES),
    Case("bad-length", "replica", in_batch(LENGTH, bytes(4), mend=False), take_replica),
    Case("bad-magic", "alone", in_batch(MAGIC, b"\3", mend=False), salvage, remains=HOLES),
    Case("bad-magic", "filled", in_batch(MAGIC, b"\3", mend=False), fill),
    Case("bad-crc", "alone", flip, salvage, remains=HOLES),
    Case("bad-crc", "filled", flip, fill),
    Case("bad-codec", "dropped", in_batch(ATTRIBUTES, b"\x15"), drop_unreadable, remains=HOLES),
    Case("bad-codec", "replica", in_batch(ATTRIBUTES, b"\x15"), take_replica),
    Case("bad-body", "dropped", in_batch(ATTRIBUTES, b"\x11"), drop_unreadable, remains=HOLES),
    Case("bad-body", "replica", in_batch(ATTRIBUTES, b"\x11"), take_replica),
    Case("bad-record", "dropped", in_batch(RECORDS, b"\1"), drop_unreadable, remains=HOLES),
    Case("bad-record", "replica", in_batch(RECORDS, b"\1"), take_replica),
    Case("bad-count", "dropped", in_batch(COUNT, (9).to_bytes(4, "big")), drop_unreadable, remains=HOLES),
    Case("bad-count", "replica", in_batch(COUNT, (9).to_bytes(4, "big")), take_replica),
    Case("record-offsets", "dropped", in_batch(RECORDS + 3, b"\6"), drop_unreadable, remains=HOLES),
    Case("record-offsets", "replica", in_batch(RECORDS + 3, b"\6"), take_replica),
    Case("torn-tail", "start", shorten(-1, ".log", 5), nothing, (KILLED,)),
    Case("torn-tail", "salvage", shorten(-1, ".log", 5), salvage, (KILLED,)),
    Case("unclean-tail", "salvage", shorten(-1, ".log", 5), salvage, (CLEAN,)),
    Case("zero-tail", "start", lengthen(-1, ".log", 300), nothing, (KILLED,)),
    Case("zero-tail", "salvage", lengthen(-1, ".log", 300), salvage, (KILLED,)),
    Case("unclean-zeros", "salvage", lengthen(-1, ".log", 300), salvage, (CLEAN,)),
    Case("log-end-lost", "replica", cut_last_batches, take_replica, (CLEAN,)),
    Case("cut-segment", "alone", shorten(0, ".log", 5), salvage, remains=HOLES),
    Case("cut-segment", "replica", shorten(0, ".log", 5), take_replica),
    Case("changed-as-text", "undone", content(1, ".log", encodebytes), salvage),
    Case("changed-as-text", "replica", content(1, ".log", encodebytes), take_replica),
    Case("foreign-content", "replica", content(1, ".log", lambda data: POINTER), take_replica),
    Case("emptied-files", "replica", empty_all, take_replica, (KILLED,)),
    # offsets
    Case("offsets-fall", "salvage", batches(lambda whole: [whole[0], whole[2], whole[1], *whole[3:]]), salvage),
    Case("duplicate-batch", "salvage", batches(lambda whole: [*whole[:2], *whole[1:]]), salvage),
    Case("offsets-lost", "filled", batches(without_second), fill),
    Case("offsets-lost", "alone", batches(without_second), reindex, remains=HOLES),
    Case("offsets-compacted", "nothing", compact, reindex, is_keyed=True),
    Case("offsets-missing", "filled", batches(without_second), fill, is_keyed=True, is_alone=True),
    Case("segment-overlap", "salvage", rename_last_log, salvage),
    Case("offset-below-base", "renamed", rename_first, rename_to_first_offset),
    Case("offset-below-base", "salvage", rename_first, salvage, remains=HOLES),
    Case("offset-too-far", "removed", beyond_index, remove_index),
    # times, epochs
    Case("max-timestamp", "replica", edit_topic(1, 1, max_timestamp=1000), take_replica),
    Case("leader-epoch-falls", "replica", edit_topic(0, 0, partition_leader_epoch=5), take_replica),
    Case("leader-epoch-checkpoint", "reindex", write_epochs("99 0"), reindex),
    Case("leader-epoch-unsorted", "reindex", write_epochs("0 0", "2 9", "1 20"), reindex),
    Case("leader-epochs-missing", "reindex", delete_epochs, reindex),
    Case("leader-epochs-missing", "empty", write_epochs(), reindex),
    Case("leader-epochs-cleared", "nothing", keep_last_epoch, nothing),
    Case("leader-epochs-cleared", "reindex", keep_last_epoch, delete_epochs_and_reindex),
    Case("leader-epoch-beyond-end", "start", add_epoch, nothing),
    # producers
    Case("sequence-gap", "replica", edit_topic(0, 1, base_sequence=7), take_replica),
    Case("sequence-repeated", "replica", edit_topic(0, 1, base_sequence=-3), take_replica),
    Case("producer-epoch-falls", "replica", edit_topic(0, 0, producer_epoch=1), take_replica),
    Case("open-transaction", "nothing", open_transaction, nothing),
    Case("long-transaction", "abort", let_hang, nothing, is_alone=True),
    Case("hanging-transaction", "abort", let_hang, nothing),
    # indexes
    Case("index-missing", "reindex", remove(0, ".index"), reindex),
    Case("index-missing", "start", remove(0, ".index"), nothing),
    Case("index-missing", "timeindex", remove(0, ".timeindex"), reindex),
    Case("index-missing", "removed", remove(0, ".timeindex"), remove_index),
    Case("index-unreadable", "reindex", lose_index, reindex),
    Case("index-cut", "reindex", shorten(0, ".index", 3), reindex),
    Case("index-cut", "removed", shorten(0, ".timeindex", 3), remove_index),
    Case("index-unsorted", "reindex", content(0, ".index", turn_round), reindex),
    Case("index-unsorted", "removed", content(0, ".index", turn_round), remove_index),
    Case("index-entry", "reindex", content(0, ".index", move_entry), reindex),
    Case("index-entry", "removed", content(0, ".index", move_entry), remove_index),
    Case(SPARSE, "reindex", content(0, ".index", lambda data: data[:8]), reindex),
    Case("index-inexact", "reindex", content(0, ".index", swap_entries(8)), reindex),
    Case("index-rebuilt", "start", empty(-1, ".txnindex"), nothing, (KILLED,)),
    Case("unclean-index", "removed", lengthen(-1, ".index", 800), remove_last_indexes, (CLEAN,)),
    Case("time-index-zeros", "reindex", lengthen(0, ".timeindex", 1200), reindex),
    Case("time-index-zeros", "removed", lengthen(0, ".timeindex", 1200), remove_index),
    Case("index-preallocated", "nothing", lengthen(0, ".index", 800), nothing),
    Case("index-old-entries", "nothing", content(-1, ".timeindex", leave_old_time), nothing, (KILLED,)),
    Case("time-index-entry", "reindex", content(0, ".timeindex", raise_time), reindex),
    Case("time-index-entry", "removed", content(0, ".timeindex", raise_time), remove_index),
    Case("time-index-entry", "swapped", content(0, ".timeindex", swap_entries(12)), remove_index),
    Case("time-index-ends-early", "reindex", empty(0, ".timeindex"), reindex),
    Case("time-index-ends-early", "removed", empty(0, ".timeindex"), remove_index),
    Case("transaction-unindexed", "reindex", empty(0, ".txnindex"), reindex),
    Case("transaction-unindexed", "removed", empty(0, ".txnindex"), remove_index),
    Case("transaction-unfounded", "reindex", add_aborted, reindex),
    Case("transaction-unfounded", "removed", add_aborted, remove_index),
    Case("orphan-index", "start", write_file("00000000000000000900.index", bytes(8)), nothing),
    Case("orphan-index", "replica", remove(1, ".log"), take_replica),
    # snapshots
    Case("snapshot-unreadable", "reindex", break_snapshot, reindex),
    Case("snapshot-unreadable", "newest", break_newest_snapshot, nothing),
    Case("snapshot-content", "reindex", change_snapshot, reindex),
    Case("snapshot-beyond-end", "start", add_snapshot, nothing),
    Case("producer-state-wrong", "reindex", change_newest_snapshot, reindex, (CLEAN,)),
    Case("producer-state-missing", "reindex", forget_producers, reindex, (CLEAN,)),
    # the directory
    Case("leftover-file", "start", write_file("00000000000000000000.log.cleaned", b""), nothing),
    Case("leftover-directory", "start", leave_directory, nothing),
    Case("leftover-log", "renamed", mark_deleted, unmark_deleted),
    Case("misnamed-file", "moved", write_file("copy.log", b""), remove_file("copy.log")),
    Case("unpadded-name", "renamed", shorten_name, pad_name),
    Case("another-topics-id", "restored", take_other_id, restore_id),
    Case("topic-id-missing", "reindex", remove_file("partition.metadata"), reindex),
    Case("copy-missing", "backup", remove_partition, put_back),
    Case("unreadable-text", "epochs", write_file("leader-epoch-checkpoint", b"\0" * 20), reindex),
    Case("unreadable-text", "metadata", write_file("partition.metadata", b"\0" * 43), reindex),
    Case("checkpoint-beyond-end", "start", set_checkpoint("recovery-point-offset-checkpoint", 5000), nothing),
    Case("checkpoint-beyond-end", "watermark", set_checkpoint("replication-offset-checkpoint", 5000), nothing),
    Case("checkpoint-stale", "nothing", set_checkpoint("cleaner-offset-checkpoint", 5000), nothing),
    Case(
        "log-start-beyond-end",
        "mended",
        set_checkpoint("log-start-offset-checkpoint", 5000),
        set_checkpoint("log-start-offset-checkpoint", None),
    ),
]

ELSEWHERE = {"partition-twice", "foreign-directory", "identity-missing", "bootstrap-checkpoint", "metadata-checkpoint"}
"""Findings whose advice other tests of `test_advice_kafka.py` follow."""
NOT_FOLLOWED = {
    "copies-diverged": "one broker has no copy to diverge from; tests/cluster tries `--keep-diverged`",
    "group-unloadable": "no broker loads the partition; its groups are reset by hand",
    "identity-differs": "which of two identities is right, only people know",
    "directory-unknown": "the same",
    "metadata-missing": "its advice is another voter's copy; tests/live tries `kseg rebuild-metadata`",
    "metadata-checkpoint-old": "a broker has no use for the file",
    "metadata-log": "its advice is to let the node start, which `golden/start` has measured",
    "other-owner": "the brokers of these tests run as a user who may read everything",
    "partial-disk": "there is nothing to do",
    "other-topic-id": "whether the records are wanted, only people know",
    "not-in-metadata": "the same",
}
"""Findings whose advice is tried on no broker, with the reasons."""
