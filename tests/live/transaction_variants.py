"""Damage to partitions with transactions: each variant changes a copy of one of the history's partitions."""

import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kseg.formats.codes import CONTROL_MASK, TRANSACTIONAL_MASK
from tests.live.transaction_history import ENDED, HANGING, OPEN
from tests.log.edits import ABORTED_TRANSACTION, logs, v2_batches
from tests.log_files import ABORT, COMMIT
from tests.transactional import SNAPSHOT_HEADER

# Positions in a v2 batch, and in the only record of a marker.
CRC, AFTER_CRC, FLAGS, LAST_DELTA, PRODUCER_ID = 17, 21, 22, 23, 43
TYPE, VALUE = 69, 73
CLOSED, NEWEST = 1, -1
"""A marker's choice among its kind: one in a closed segment, the last one."""
FOREIGN_PRODUCER = 5_000_000
Edit = Callable[[Path], None]


class Place(NamedTuple):
    """The place of a batch."""

    log: Path
    position: int
    size: int

    def read(self) -> bytearray:
        return bytearray(self.log.read_bytes()[self.position : self.position + self.size])

    def write(self, batch: bytes) -> None:
        content = self.log.read_bytes()
        self.log.write_bytes(content[: self.position] + batch + content[self.position + self.size :])


def place_batches(partition: Path) -> list[Place]:
    """Return all batches of an intact partition, in order."""
    return [Place(log, *each) for log in logs(partition) for each in v2_batches(log)]


def is_marker(batch: bytes) -> bool:
    return bool(batch[FLAGS] & CONTROL_MASK)


def markers(partition: Path, kind: int) -> list[Place]:
    """Return markers of a kind that end a transaction: of producers that have records before them."""
    found, seen = [], set()
    for place in place_batches(partition):
        batch = place.read()
        if not is_marker(batch):
            seen.add(producer_of(batch))
        elif batch[TYPE] == kind and producer_of(batch) in seen:
            found.append(place)
    return found


def producer_of(batch: bytes) -> int:
    return int.from_bytes(batch[PRODUCER_ID : PRODUCER_ID + 8], "big", signed=True)


def seal(batch: bytearray) -> bytearray:
    """Return the batch with its right CRC."""
    from crc32c import crc32c

    batch[CRC:AFTER_CRC] = crc32c(bytes(batch[AFTER_CRC:])).to_bytes(4, "big")
    return batch


def _end_of(partition: Path) -> int:
    batch = place_batches(partition)[-1].read()
    return int.from_bytes(batch[:8], "big") + int.from_bytes(batch[LAST_DELTA : LAST_DELTA + 4], "big") + 1


def _base(path: Path) -> int:
    return int(path.name[:20])


# --- markers ----------------------------------------------------------------------------------------------------------


def flip(kind: int, slot: int, at: int, *, bit: int = 1, with_crc: bool = False) -> Edit:
    """Return an edit of one bit in a marker."""

    def edit(partition: Path) -> None:
        place = markers(partition, kind)[slot]
        batch = place.read()
        batch[at] ^= bit
        place.write(seal(batch) if with_crc else batch)

    return edit


def destroy(kind: int, slot: int, *, byte: int = 0xFF) -> Edit:
    """Return an edit of all bytes of a marker."""

    def edit(partition: Path) -> None:
        place = markers(partition, kind)[slot]
        place.write(bytes([byte]) * place.size)

    return edit


def spoil_records(kind: int, slot: int) -> Edit:
    """Return an edit of a bit in the last records of the transaction that a marker ends."""

    def edit(partition: Path) -> None:
        marker = markers(partition, kind)[slot]
        before = place_batches(partition)[: place_batches(partition).index(marker)]
        producer_id = producer_of(marker.read())
        place = [each for each in before if producer_of(each.read()) == producer_id][-1]
        batch = place.read()
        batch[-2] ^= 1
        place.write(batch)

    return edit


def spoil_open(partition: Path) -> None:
    """Change a bit in the first batch of the last open transaction."""
    ended = {producer_of(place.read()) for place in place_batches(partition) if is_marker(place.read())}
    place = [
        each
        for each in place_batches(partition)
        if producer_of(each.read()) >= 0 and producer_of(each.read()) not in ended
    ][-1]
    batch = place.read()
    batch[-2] ^= 1
    place.write(batch)


def double_in_place(kind: int, slot: int) -> Edit:
    """Return an edit that doubles a marker at the same offset."""

    def edit(partition: Path) -> None:
        place = markers(partition, kind)[slot]
        place.write(bytes(place.read()) * 2)

    return edit


def append_marker(kind: int, *, producer_id: int | None = None) -> Edit:
    """Return an edit that appends a copy of the newest marker of a kind; or an unknown producer's marker."""

    def edit(partition: Path) -> None:
        batch = markers(partition, kind)[NEWEST].read()
        batch[:8] = _end_of(partition).to_bytes(8, "big")
        if producer_id is not None:
            batch[PRODUCER_ID : PRODUCER_ID + 8] = producer_id.to_bytes(8, "big")
        with logs(partition)[-1].open("ab") as log:
            log.write(seal(batch))

    return edit


def replace_producer(kind: int, slot: int) -> Edit:
    """Return an edit that makes a marker another, unknown producer's, with a right CRC."""

    def edit(partition: Path) -> None:
        place = markers(partition, kind)[slot]
        batch = place.read()
        batch[PRODUCER_ID : PRODUCER_ID + 8] = FOREIGN_PRODUCER.to_bytes(8, "big")
        place.write(seal(batch))

    return edit


def swap(slot: int) -> Edit:
    """Return an edit that swaps a commit and an abort; their offsets stay, as CRCs don't cover these."""

    def edit(partition: Path) -> None:
        one, other = markers(partition, COMMIT)[slot], markers(partition, ABORT)[slot]
        first, second = one.read(), other.read()
        assert one.size == other.size
        assert producer_of(first) != producer_of(second)
        first[:8], second[:8] = second[:8], first[:8]
        one.write(second)
        other.write(first)

    return edit


def all_of(*edits: Edit) -> Edit:
    def edit(partition: Path) -> None:
        for each in edits:
            each(partition)

    return edit


# --- the log's end ----------------------------------------------------------------------------------------------------


def cut(kind: int, slot: int, *, inside: int = 0, keeps_files: bool = False) -> Edit:
    """Return an edit that ends the log at a marker, or within it; of later segments at most snapshots stay."""

    def edit(partition: Path) -> None:
        place = markers(partition, kind)[slot]
        place.log.write_bytes(place.log.read_bytes()[: place.position + inside])
        for path in list(partition.glob("0*")):
            if _base(path) > _base(place.log) and not (keeps_files and path.suffix == ".snapshot"):
                path.unlink()

    return edit


def add_tail(make: Callable[[bytes], bytes]) -> Edit:
    """Return an edit that appends bytes made from the last batch."""

    def edit(partition: Path) -> None:
        with logs(partition)[-1].open("ab") as log:
            log.write(make(bytes(place_batches(partition)[-1].read())))

    return edit


# --- files next to the log
# --------------------------------------------------------------------------------------------


def edit_files(suffix: str, change: Callable[[list[Path]], None]) -> Edit:
    """Return an edit of the nonempty files of a kind, in order."""
    return lambda partition: change(sorted(path for path in partition.glob(f"*{suffix}") if path.stat().st_size))


def delete(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()


def cut_file(slot: int, size: int) -> Callable[[list[Path]], None]:
    return lambda paths: paths[slot].write_bytes(paths[slot].read_bytes()[:size]) and None


def put(slot: int, source: int) -> Callable[[list[Path]], None]:
    """Return an edit that replaces one file by another."""
    return lambda paths: shutil.copyfile(paths[source], paths[slot]) and None


def wrong_crc(paths: list[Path]) -> None:
    content = bytearray(paths[-1].read_bytes())
    content[SNAPSHOT_HEADER.size + 9] ^= 1
    paths[-1].write_bytes(content)


def claim_abort(partition: Path) -> None:
    """Add an entry to the transaction index for a committed transaction."""
    place = markers(partition, COMMIT)[NEWEST]
    batch = place.read()
    producer_id, offset = producer_of(batch), int.from_bytes(batch[:8], "big")
    own = [each.read() for each in place_batches(partition) if producer_of(each.read()) == producer_id]
    before = own[: own.index(batch)]
    since = max((number for number, each in enumerate(before) if is_marker(each)), default=-1)
    first = int.from_bytes(before[since + 1][:8], "big")
    path = place.log.with_suffix(".txnindex")
    content = path.read_bytes() if path.exists() else b""
    entries = [*ABORTED_TRANSACTION.iter_unpack(content), (0, producer_id, first, offset, offset)]
    entries.sort(key=lambda entry: entry[3])
    path.write_bytes(b"".join(ABORTED_TRANSACTION.pack(*entry) for entry in entries))


# --- the table --------------------------------------------------------------------------------------------------------


class Reason(StrEnum):
    """The reasons for differences between a broker and kseg."""

    INDEX = "a broker takes aborted transactions from its .txnindex, whatever the log says"
    SNAPSHOT = (
        "a broker that was stopped in order takes open transactions from its newest snapshot, whatever the log says"
    )
    TORN = "the .txnindex has the abort whose marker is torn off; a broker takes the transaction for open"
    STUCK = "a broker's consumers don't get beyond bytes that are no batch"
    REFUSES = "a broker that was stopped in order doesn't start with such bytes in a last segment"


MAY_DIFFER = {
    Reason.INDEX: {"records"},
    Reason.SNAPSHOT: {"records", "stable", "open"},
    Reason.TORN: {"records", "stable", "open"},
    Reason.STUCK: {"records"},
}
"""The answers that may differ for each reason."""


class Variant(NamedTuple):
    """A copy of a partition with a change.

    clean, unclean: the reason for a broker's differing answers, if it was stopped cleanly or not. is_misleading: the
    remaining files show another history.
    """

    source: int
    edit: Edit
    clean: Reason | None = None
    unclean: Reason | None = None
    is_misleading: bool = False


def _nothing(_: Path) -> None:
    """Leave a partition unchanged."""


def _bits(name: str, at: int) -> dict[str, Variant]:
    """Return edits of a marker's bit: of both kinds, in a closed segment and in the last one."""
    return {
        f"{slot}-{kind}-{name}": Variant(ENDED, flip(KINDS[kind], SLOTS[slot], at)) for slot in SLOTS for kind in KINDS
    }


KINDS = {"commit": COMMIT, "abort": ABORT}
SLOTS = {"closed": CLOSED, "newest": NEWEST}
SNAPSHOTS, INDEXES = ".snapshot", ".txnindex"
INDEX, SNAPSHOT, TORN, STUCK, REFUSES = Reason

VARIANTS: dict[str, Variant] = {
    "intact-open": Variant(OPEN, _nothing),
    "intact-ended": Variant(ENDED, _nothing),
    "intact-hanging": Variant(HANGING, _nothing),
    **_bits("value-bit", VALUE),
    **_bits("type-bit", TYPE),
    **{
        f"{slot}-{kind}-records-bit": Variant(ENDED, spoil_records(KINDS[kind], SLOTS[slot]))
        for slot in SLOTS
        for kind in KINDS
    },
    "closed-commit-destroyed": Variant(ENDED, destroy(COMMIT, CLOSED), STUCK),
    "closed-abort-destroyed": Variant(ENDED, destroy(ABORT, CLOSED), STUCK),
    "newest-commit-destroyed": Variant(ENDED, destroy(COMMIT, NEWEST), REFUSES),
    "newest-abort-destroyed": Variant(ENDED, destroy(ABORT, NEWEST), REFUSES, TORN),
    "abort-control-bit": Variant(ENDED, flip(ABORT, CLOSED, FLAGS, bit=CONTROL_MASK)),
    "abort-transactional-bit": Variant(ENDED, flip(ABORT, CLOSED, FLAGS, bit=TRANSACTIONAL_MASK)),
    "commit-transactional-bit": Variant(ENDED, flip(COMMIT, CLOSED, FLAGS, bit=TRANSACTIONAL_MASK)),
    "newest-abort-zeroed": Variant(ENDED, destroy(ABORT, NEWEST, byte=0), REFUSES, TORN),
    "two-bits": Variant(ENDED, all_of(flip(COMMIT, 3, VALUE), flip(ABORT, 3, VALUE))),
    "bit-no-index": Variant(ENDED, all_of(flip(ABORT, 2, VALUE), edit_files(INDEXES, delete)), INDEX),
    "destroyed-no-index": Variant(
        ENDED, all_of(destroy(ABORT, 2), edit_files(INDEXES, delete)), INDEX, is_misleading=True
    ),
    "destroyed-no-snapshots": Variant(ENDED, all_of(destroy(COMMIT, 2), edit_files(SNAPSHOTS, delete)), STUCK),
    "open-commit-bit": Variant(OPEN, flip(COMMIT, NEWEST, VALUE)),
    "open-abort-destroyed": Variant(OPEN, destroy(ABORT, NEWEST), REFUSES, TORN),
    "open-records-bit": Variant(OPEN, spoil_open),
    "hanging-commit-destroyed": Variant(HANGING, destroy(COMMIT, NEWEST), REFUSES),
    "cut-newest-commit": Variant(ENDED, cut(COMMIT, NEWEST)),
    "cut-newest-abort": Variant(ENDED, cut(ABORT, NEWEST)),
    "cut-in-marker": Variant(ENDED, cut(ABORT, NEWEST, inside=70), TORN, TORN),
    "cut-closed-commit": Variant(ENDED, cut(COMMIT, 4)),
    "cut-snapshots-stay": Variant(ENDED, cut(COMMIT, 4, keeps_files=True)),
    "doubled-commit": Variant(ENDED, append_marker(COMMIT)),
    "doubled-abort": Variant(ENDED, append_marker(ABORT)),
    "doubled-in-place": Variant(ENDED, double_in_place(ABORT, NEWEST)),
    "swapped-closed": Variant(ENDED, swap(CLOSED), is_misleading=True),
    "swapped-newest": Variant(ENDED, swap(NEWEST), SNAPSHOT, is_misleading=True),
    "foreign-abort": Variant(ENDED, append_marker(ABORT, producer_id=FOREIGN_PRODUCER)),
    "foreign-commit-open": Variant(OPEN, append_marker(COMMIT, producer_id=FOREIGN_PRODUCER)),
    "foreign-closed-abort": Variant(ENDED, replace_producer(ABORT, CLOSED), is_misleading=True),
    "foreign-newest-commit": Variant(ENDED, replace_producer(COMMIT, NEWEST), SNAPSHOT, is_misleading=True),
    "forged-commit": Variant(ENDED, flip(ABORT, 2, TYPE, with_crc=True), INDEX, is_misleading=True),
    "indexes-deleted": Variant(ENDED, edit_files(INDEXES, delete), INDEX),
    "indexes-deleted-open": Variant(OPEN, edit_files(INDEXES, delete), INDEX),
    "index-deleted": Variant(ENDED, edit_files(INDEXES, lambda paths: paths[0].unlink()), INDEX),
    "index-cut": Variant(ENDED, edit_files(INDEXES, cut_file(0, 40)), INDEX),
    "index-entry-cut": Variant(ENDED, edit_files(INDEXES, cut_file(1, 34)), INDEX),
    "index-emptied": Variant(ENDED, edit_files(INDEXES, cut_file(1, 0)), INDEX),
    "index-stale": Variant(ENDED, edit_files(INDEXES, put(-1, 0))),
    "index-claims": Variant(ENDED, claim_abort, INDEX),
    "snapshots-deleted": Variant(OPEN, edit_files(SNAPSHOTS, delete), SNAPSHOT),
    "snapshots-deleted-hanging": Variant(HANGING, edit_files(SNAPSHOTS, delete), SNAPSHOT),
    "snapshot-deleted": Variant(OPEN, edit_files(SNAPSHOTS, lambda paths: paths[-1].unlink())),
    "snapshot-stale-open": Variant(OPEN, edit_files(SNAPSHOTS, put(-1, 0)), SNAPSHOT),
    "snapshot-stale": Variant(ENDED, edit_files(SNAPSHOTS, put(-1, 3)), SNAPSHOT),
    "snapshot-cut": Variant(OPEN, edit_files(SNAPSHOTS, cut_file(-1, 100))),
    "snapshot-wrong-crc": Variant(OPEN, edit_files(SNAPSHOTS, wrong_crc)),
    "snapshot-middle-stale": Variant(ENDED, edit_files(SNAPSHOTS, put(4, 1))),
    "torn-tail": Variant(OPEN, add_tail(lambda batch: batch[:40])),
    "zero-tail": Variant(ENDED, add_tail(lambda _: bytes(500)), REFUSES),
    "random-tail": Variant(ENDED, add_tail(lambda batch: batch[::-1]), REFUSES),
}
