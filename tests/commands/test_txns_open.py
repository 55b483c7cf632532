"""`kseg txns`: open transactions, as their coordinator's state judges them."""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

from kseg.coordinators.transactions import Coordinators, Judge
from kseg.index.producers import ProducerState, ProducerStates, build_producer_snapshot
from kseg.log.partition import PartitionLog
from kseg.log.transactions import PartitionTransactions
from tests.commands.made_transactions import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    IDLE,
    ONGOING,
    PREPARE_COMMIT,
    objects,
    opened,
    write_coordinator,
    write_damaged,
    write_two,
)
from tests.log.edits import v2_batches
from tests.log_files import COMMIT, NewBatch, NewRecord, batch_bytes, marker, write_segment
from tests.run import kseg
from tests.terminal import in_terminal


def test_one_that_its_coordinator_will_end_is_open_however_old(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("pay", 8, ONGOING, {"orders": [3, 4]}))
    run = kseg(["txns", ".", "--open", "--now", "64000"], tmp_path)
    assert (run.status, run.stderr) == (0, b"")
    tool = "kafka-transactions.sh --bootstrap-server localhost:9092"
    state = "Ongoing as pay; ends at 1970-01-01T00:01:04.000Z, when its timeout of 1m00s expires"
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert kseg(["txns", ".", "--open", "--now", "64000"], tmp_path).stdout.decode().splitlines()[-4:] == [
        f"# orders-4 from offset 2: {state}, or now with this command",
        f"{tool} abort --topic orders --partition 4 --start-offset 2",
        f"# orders-3: {state}, or now with this command; this prints its first offset, for"
        " `kafka-transactions.sh abort --start-offset`",
        f"{tool} describe-producers --topic orders --partition 3",
    ]
    assert f"  {state}\n" in run.stdout.decode()
    assert b"abort" not in kseg(["txns", ".", "--now", "64000"], tmp_path).stdout
    row = opened(tmp_path, "--now", "64001")
    assert (row["isHanging"], row["reason"], row["transactionalId"]) == (False, "Ongoing as pay", "pay")
    assert (row["timeoutTimestamp"], row["timeoutTime"]) == (64_000, "1970-01-01T00:01:04.000Z")
    coordinator = objects([".", "--open", "--now", "64001"], tmp_path)[0]
    assert row["durationMs"] == coordinator["durationMs"] == 60_001
    assert coordinator["isOverdue"] is True


def test_commands_that_end_very_many_sooner_are_not_all_shown(tmp_path: Path) -> None:
    write_coordinator(tmp_path, ("pay", 8, ONGOING, {"orders": list(range(25))}))
    said = kseg(["txns", ".", "--open", "--now", "5000"], tmp_path).stdout.decode().splitlines()
    assert said[-1] == "# 20 more will end at their timeouts: select some with --topic and --partition"
    assert sum(line.startswith("kafka-transactions.sh") for line in said) == 5


def test_terminal_of_80_columns_shows_what_one_acts_by(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("pay", 8, ONGOING, {"orders": [4]}))
    shown = in_terminal(tmp_path, "txns", ".", "--open", "--now", "5000", columns=80).replace("\r", "")
    titles = [line.split() for line in shown.splitlines() if "PRODUCER" in line and "Hidden" not in line]
    for line, began in zip(titles, ("BEGAN", "PRODUCED"), strict=True):
        assert {"PRODUCER", "STATE", began} <= set(line)
    assert (
        "    WHY: Ongoing as pay; ends at 1970-01-01T00:01:04.000Z, when its timeout of\n      1m00s expires\n" in shown
    )


def test_overdue_one_comes_first_with_the_command_that_ends_it(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("pay", 8, ONGOING, {"orders": [3, 4]}))
    (tmp_path / "meta.properties").write_text("version=1\n")
    run = kseg(["txns", ".", "--now", "64001"], tmp_path)
    assert (run.status, run.stderr) == (1, b"kseg: 2 transactions, 3 records\n")
    *_, lost, start, overdue, abort = run.stdout.decode().splitlines()
    tool = "kafka-transactions.sh --bootstrap-server localhost:9092"
    reason = "Ongoing as pay for longer than its 1m00s; run this if its coordinator doesn't abort it"
    assert lost == (
        f"# orders-3: {reason}; this prints its first offset, for `kafka-transactions.sh abort --start-offset`"
    )
    assert start == f"{tool} describe-producers --topic orders --partition 3"
    assert overdue == f"# orders-4 from offset 2: {reason}"
    assert abort == f"{tool} abort --topic orders --partition 4 --start-offset 2"
    states = [row["state"] for row in objects(["orders-4", "--now", "64001"], tmp_path) if row["type"] == "transaction"]
    assert states == ["open", "committed"]
    assert opened(tmp_path, "--now", "64001")["abortCommand"] == abort


def test_coordinators_times_of_a_copy_are_counted_to_the_newest_that_a_broker_wrote(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("pay", 8, ONGOING, {"orders": [4]}), written_at=70_000)
    run = kseg(["txns", ".", "--open"], tmp_path)
    assert run.status == 1
    said = (
        'kseg: no broker is using this disk, so "now" is 1970-01-01T00:01:10.000Z, the newest timestamp that a broker'
        " wrote; specify --now"
    )
    assert run.stderr.decode() == f"{said} to set another time\n"
    assert opened(tmp_path)["durationMs"] == 66_000


def test_nothing_open_is_one_line_with_what_was_looked_through(tmp_path: Path) -> None:
    ended = NewBatch([NewRecord(b"k", b"v", 1000)], 0, 7, 0, True)
    for number in (1, 2):
        write_segment(tmp_path / f"orders-{number}", [ended, marker(COMMIT, ended, 2000)])
    run = kseg(["txns", "orders-1", "orders-2", "--open"], tmp_path)
    said = b"kseg: found no open transactions in 2 partitions\n"
    assert (run.status, run.stdout, run.stderr) == (0, b"", said)
    assert kseg(["txns", "orders-1", "--open", "-v", "-q"], tmp_path).stdout.startswith(b"Last stable offsets:")
    write_coordinator(tmp_path, IDLE)
    said = b"found no open transactions in 2 partitions and 1 transactional id in 1 partition of __transaction_state\n"
    assert kseg(["txns", ".", "--open"], tmp_path).stderr.endswith(said)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (("pay", 9, ONGOING, {"orders": [4]}), "no transactional id has producer id 8"),
        (("pay", 8, ONGOING, {"orders": [3]}), "pay is Ongoing, without this partition"),
        (("pay", 8, PREPARE_COMMIT, {"orders": [3]}), "pay is PrepareCommit, without this partition"),
        (("pay", 8, COMPLETE_ABORT, {}), "pay is CompleteAbort, without this partition"),
        (("pay", 8, EMPTY, {}), "pay is Empty, without this partition"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_that_no_coordinator_will_end_hangs(state: tuple[Any, ...], reason: str, tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, state)
    row = opened(tmp_path)
    assert (row["isHanging"], row["reason"], row["durationMs"]) == (True, reason, None)
    run = kseg(["txns", "orders-4", "--open"], tmp_path)
    assert run.status == 1
    assert run.stdout.decode().splitlines()[-2] == f"# orders-4 from offset 2: {reason}"
    young = opened(tmp_path, "--now", "903000")
    assert (young["isHanging"], young["abortCommand"]) == (False, None)
    assert opened(tmp_path, "--now", "903001")["isHanging"] is True


def test_verify_says_the_same_of_it(tmp_path: Path) -> None:
    write_two(tmp_path)
    alone = kseg(["verify", "-v", "orders-4"], tmp_path)
    assert (alone.status, alone.stdout.endswith(b"open since offset 2; __transaction_state isn't here\nok\n")) == (
        0,
        True,
    )
    write_coordinator(tmp_path, ("pay", 8, ONGOING, {"orders": [4]}))
    living = kseg(["verify", "-v", "orders-4"], tmp_path)
    assert living.status == 0
    assert (
        b"note open-transaction: producer 8: open since offset 2; Ongoing as pay; ends at 1970-01-01T00:01:04.000Z"
        in living.stdout
    )
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_ABORT, {}))
    hanging = kseg(["verify", "orders-4"], tmp_path)
    assert hanging.status == 1
    assert b"warning hanging-transaction: producer 8: open since offset 2; pay is CompleteAbort" in hanging.stdout


def test_doctor_judges_it_by_the_given_time(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_ABORT, {}))
    young, old = (kseg(["doctor", ".", "-v", "--now", at], tmp_path).stdout for at in ("903000", "903001"))
    assert b"hanging-transaction" not in young
    assert b"hanging-transaction" in old


def test_transaction_hangs_in_its_cluster_whichever_others_are_checked_too(tmp_path: Path) -> None:
    for cluster in ("one", "two"):
        (tmp_path / cluster).mkdir()
        write_two(tmp_path / cluster)
        identity = f"version=1\nnode.id=1\ncluster.id={cluster}\n"
        (tmp_path / cluster / "meta.properties").write_text(identity, encoding="utf-8")
    write_coordinator(tmp_path / "one", ("pay", 8, COMPLETE_ABORT, {}))
    for paths in (["one", "two"], ["two", "one"]):
        ran = kseg(["verify", "-v", *paths], tmp_path)
        assert ran.status == 1
        found = [line for line in ran.stdout.decode().splitlines() if "open since" in line]
        assert sorted(line.partition("/")[0] for line in found) == ["one", "two"]
        assert [line.partition("/")[0] for line in found if "warning hanging-transaction" in line] == ["one"]


@pytest.mark.parametrize(
    ("written_at", "partition_at", "is_hanging"),
    [(903_000, 2000, None), (903_001, 2000, True), (5000, 903_000, None), (5000, 903_001, True)],
    ids=["young by the coordinators", "old by the coordinators", "young by the partition", "old by the partition"],
)
def test_without_a_time_the_newest_that_brokers_wrote_decides(
    written_at: int, partition_at: int, is_hanging: bool | None, tmp_path: Path
) -> None:
    """If disks were copied in order, a coordinator's copy may be newer."""
    begun = NewBatch([NewRecord(b"k", b"v", 3000)], 0, 8, 1, True)
    other = NewBatch([NewRecord(b"k", b"v", 3000)], 1, 9, 1, True)
    write_segment(tmp_path / "orders-4", [begun, other, marker(COMMIT, other, partition_at)])
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_COMMIT, {}), written_at=written_at)
    row = opened(tmp_path)
    assert (row["isHanging"], row["abortCommand"] is None) == (is_hanging, is_hanging is None)
    run = kseg(["txns", "orders-4", "--open"], tmp_path)
    verified = kseg(["verify", "-v", "orders-4"], tmp_path)
    if is_hanging:
        assert (run.status, verified.status, run.stderr) == (1, 1, b"")
        return
    reason = "pay is CompleteCommit, without this partition; its last record is not older than 15m00s by the latest"
    assert row["reason"] == f"{reason} time here"
    assert (run.status, verified.status) == (0, 0)
    assert b"and --now, or run" in run.stderr
    assert b"note open-transaction: producer 8: open since offset 0; pay is CompleteCommit" in verified.stdout
    assert opened(tmp_path, "--now", "903001")["isHanging"] is True
    assert opened(tmp_path, "--transaction-max-timeout-ms", "1")["isHanging"] is True


@pytest.mark.parametrize("end", ["none", "goes on", "marker"])
def test_verify_has_transactions_from_before_the_log_as_txns_has_them(end: str, tmp_path: Path) -> None:
    """The snapshots before and after the first batch have one that began at an offset deleted by retention."""
    goes_on = NewBatch([NewRecord(b"k", b"v", 1000)], 12, 8, 1, True)
    more = {"none": [], "goes on": [goes_on], "marker": [marker(COMMIT, goes_on._replace(base_offset=11), 2000)]}
    write_segment(tmp_path / "orders-4", [NewBatch([NewRecord(b"k", b"v", 1000)] * 2, 10), *more[end]], 10)
    carried = ProducerState(8, 1, 0, 5, 0, 1000, -1, 5)
    for offset in (10, 12):
        snapshot = build_producer_snapshot(ProducerStates([carried]))
        (tmp_path / "orders-4" / f"{offset:020}.snapshot").write_bytes(snapshot)
    verified = kseg(["verify", "-v", "orders-4"], tmp_path).stdout
    expected = [] if end == "marker" else [5]
    listed = objects(["orders-4", "--open"], tmp_path)
    assert [row["firstOffset"] for row in listed if row["type"] == "transaction"] == expected
    named = [line for line in verified.splitlines() if b"open-transaction" in line]
    assert len(named) == len(expected)
    assert all(b"producer 8: open since offset 5; " in line for line in named)


def test_verify_has_a_transaction_whose_first_batch_is_damaged_as_txns_has_it(tmp_path: Path) -> None:
    batches = [NewBatch([NewRecord(b"k", b"v", 1000)], offset, 8, 1, True) for offset in (1, 2)]
    log = write_segment(tmp_path / "orders-4", [NewBatch([NewRecord(b"k", b"v", 1000)]), *batches])
    data = bytearray(log.read_bytes())
    (_, _), (start, size), _ = v2_batches(log)
    data[start + size - 1] ^= 1
    log.write_bytes(data)
    verified = kseg(["verify", "-v", "orders-4"], tmp_path).stdout
    (row,) = (row for row in objects(["orders-4", "--open"], tmp_path) if row["type"] == "transaction")
    assert b"producer 8: open since offset %d; " % row["firstOffset"] in verified


@pytest.mark.parametrize("goes_on", [False, True])
def test_salvage_opens_no_transaction_from_before_the_log_that_has_ended(goes_on: bool, tmp_path: Path) -> None:
    """Its marker is destroyed; only the second snapshot, which no longer has it, shows that it has ended."""
    plain, own = NewBatch([NewRecord(b"k", b"v", 1000)]), NewBatch([NewRecord(b"k", b"v", 1000)], 11, 8, 1, True)
    begin = own if goes_on else plain._replace(base_offset=11)
    batches = [plain._replace(base_offset=10), begin, marker(COMMIT, own, 2000)]
    log = write_segment(tmp_path / "orders-4", batches, 10)
    data = bytearray(log.read_bytes())
    start, size = list(v2_batches(log))[2]
    data[start : start + size] = random.Random(7).randbytes(size)
    log.write_bytes(data)
    write_segment(tmp_path / "orders-4", [plain._replace(base_offset=offset) for offset in (13, 14)], 13)
    for offset, first in ((10, 5), (13, -1)):
        state = ProducerState(8, 1, 0, 11 if goes_on and offset == 13 else 9, 0, 1000, -1, first)
        snapshot = build_producer_snapshot(ProducerStates([state]))
        (tmp_path / "orders-4" / f"{offset:020}.snapshot").write_bytes(snapshot)
    assert kseg(["salvage", "orders-4", "--to", "new"], tmp_path).status == 1
    for directory in ("orders-4", "new/orders-4"):
        rows = objects([directory, "--open"], tmp_path)
        assert [row for row in rows if row["type"] == "transaction"] == []
        shown = kseg(["dump", directory, "--isolation", "read_committed", "--template", "{offset}"], tmp_path).stdout
        assert shown.split()[-2:] == [b"13", b"14"]


def test_one_whose_marker_may_be_damaged_is_not_called_hanging(tmp_path: Path) -> None:
    write_damaged(tmp_path)
    reason = "the log is damaged after it, so its marker may be lost"
    alone = kseg(["verify", "-v", "orders-4"], tmp_path)
    assert b"note open-transaction: producer 8: open since offset 2; %s; __tr" % reason.encode() in alone.stdout
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_COMMIT, {}))
    row = opened(tmp_path, "--now", "now")
    assert (row["isHanging"], row["reason"], row["abortCommand"]) == (None, reason, None)
    assert b"abort" not in kseg(["txns", "orders-4"], tmp_path).stdout
    judged = kseg(["verify", "-v", "orders-4"], tmp_path)
    assert b"note open-transaction: producer 8: open since offset 2; %s\n" % reason.encode() in judged.stdout


@pytest.mark.parametrize("size", [66, 66 + 70], ids=["its own size", "reaching over the next batch"])
def test_a_marker_whose_header_can_be_read_may_be_damaged_too(size: int, tmp_path: Path) -> None:
    """It belongs to another producer then: only the CRC shows it."""
    begun = NewBatch([NewRecord(b"k", b"v", 1000)], 0, 8, 1, True)
    plain = NewBatch([NewRecord(b"k", b"v", 3000)], 2)
    log = write_segment(tmp_path / "orders-4", [begun, marker(COMMIT, begun, 2000), plain, plain])
    data = bytearray(log.read_bytes())
    start = len(batch_bytes(begun))
    data[start + 8 + 3], data[start + 43 + 7] = size, 99
    log.write_bytes(data)
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_COMMIT, {}))
    row = opened(tmp_path)
    assert (row["firstOffset"], row["isHanging"], row["abortCommand"]) == (0, None, None)


def test_damage_before_a_transaction_hides_no_marker_of_it(tmp_path: Path) -> None:
    log = write_damaged(tmp_path, is_before=True)
    content = log.read_bytes()
    end = marker(COMMIT, NewBatch([NewRecord(b"k", b"v", 1000)], 2, 8, 1, True), 2000)
    log.write_bytes(content.replace(batch_bytes(end), b""))
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_COMMIT, {}))
    assert opened(tmp_path)["isHanging"] is True


@pytest.mark.parametrize(
    ("state", "finding_id"),
    [
        (None, "warning long-transaction"),
        (("pay", 8, ONGOING, {"orders": [4]}), "note open-transaction"),
        (("pay", 8, COMPLETE_ABORT, {}), "warning hanging-transaction"),
        (("done-1", 9, ONGOING, {"orders": [4]}), "warning long-transaction"),
    ],
    ids=["no coordinator", "ongoing", "over", "some coordinators"],
)
def test_verify_warns_of_a_long_one_unless_its_coordinator_is_known(
    state: tuple[Any, ...] | None, finding_id: str, tmp_path: Path
) -> None:
    hours = 48 * 3_600_000
    begun = NewBatch([NewRecord(b"k", b"v")], 0, 8, 1, True)
    plain = NewBatch([NewRecord(b"k", b"v")], 1)
    log = with_log_append_time(begun, 5000) + with_log_append_time(plain, 5000 + hours)
    write_segment(tmp_path / "orders-4", []).write_bytes(log)
    if state is not None:
        write_coordinator(tmp_path, state)
    run = kseg(["verify", "-v", "orders-4"], tmp_path)
    assert f"{finding_id}: producer 8: open since offset 0, for at least {hours} ms; " in run.stdout.decode()
    assert run.status == int(finding_id.startswith("warning"))


def with_log_append_time(batch: NewBatch, timestamp: int) -> bytes:
    """Return the bytes of the batch with the broker's time."""
    data = bytearray(batch_bytes(batch))
    data[22] |= 0x08
    data[35:43] = timestamp.to_bytes(8, "big")
    data[17:21] = calc_crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def test_one_whose_log_goes_while_it_is_judged_is_unknown(tmp_path: Path) -> None:
    """A partition may be moving to another disk, so it isn't reported as ended."""
    write_two(tmp_path)
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_ABORT, {}))
    found = PartitionTransactions(PartitionLog(tmp_path / "orders-4"))
    list(found.transactions())
    (tmp_path / "orders-4").rename(tmp_path / "moved")
    (verdict,) = Judge(Coordinators([tmp_path]), None).verdicts(found.partition, found.open_transactions).values()
    assert (verdict.is_hanging, verdict.is_certain) == (None, False)
    assert verdict.reason == "the log changed while kseg was reading it"


@pytest.fixture(scope="module")
def listings() -> Iterator[Counter[str]]:
    """Yield counts of listed directories; a hook can't be removed, so it only counts during the tests."""
    counts: Counter[str] = Counter()
    is_counting = True

    def watch(event: str, _: tuple[object, ...]) -> None:
        if is_counting and event == "os.scandir":
            counts[event] += 1

    sys.addaudithook(watch)
    yield counts
    is_counting = False


@pytest.mark.parametrize("command", ["txns", "verify"])
@pytest.mark.parametrize("status", [ONGOING, COMPLETE_ABORT], ids=["open", "hanging"])
def test_directories_are_listed_as_often_as_there_are_partitions(
    command: str, status: int, tmp_path: Path, listings: Counter[str]
) -> None:
    """They aren't listed once more for each open transaction."""
    counts = []
    for count in (5, 10, 20):
        disk = tmp_path / str(count)
        for number in range(count):
            write_segment(disk / f"orders-{number}", [NewBatch([NewRecord(b"k", b"v", 3000)], 0, 8, 1, True)])
        # written at a time at which it isn't overdue
        state = ("pay", 8, status, {"orders": list(range(count)) if status == ONGOING else []})
        write_coordinator(disk, state, written_at=10_000 if status == ONGOING else 1_700_000_000_000)
        before = listings.total()
        assert kseg([command, "."], disk).status == int(status != ONGOING)
        counts.append(listings.total() - before)
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


def test_verify_judges_all_of_many_open_ones(tmp_path: Path) -> None:
    begun = [NewBatch([NewRecord(b"k", b"v", 3000)], number, 100 + number, 1, True) for number in range(26)]
    write_segment(tmp_path / "orders-4", begun)
    living: list[tuple[str, int, int, dict[str, list[int]]]] = [
        (f"pay-{number}", 100 + number, ONGOING, {"orders": [4]}) for number in range(25)
    ]
    write_coordinator(tmp_path, IDLE, *living, ("gone", 125, COMPLETE_ABORT, {}))
    run = kseg(["verify", "-v", "orders-4"], tmp_path)
    assert run.status == 1
    assert b"warning hanging-transaction: producer 125: open since offset 25; gone is CompleteAbort" in run.stdout
    assert run.stdout.count(b"note open-transaction") == 20
    ends = b"ends at 1970-01-01T00:01:04.000Z, when its timeout of 1m00s expires"
    assert (
        b"producer 119: open since offset 19; Ongoing as pay-19; %s; and 5 more like this in the file\n" % ends
        in run.stdout
    )


def test_the_line_that_aborts_has_the_form_that_the_brokers_take(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, IDLE)
    line = "kafka-transactions.sh --bootstrap-server kafka:1 abort --topic orders --partition 4"
    server = ("--bootstrap-server", "kafka:1")
    command = opened(tmp_path, *server)["abortCommand"]
    assert command == f"{line} --producer-id 8 --producer-epoch 1 --coordinator-epoch 0"
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert opened(tmp_path, *server)["abortCommand"] == f"{line} --start-offset 2"


def test_the_address_in_the_line_that_aborts_is_a_word_to_the_shell(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, IDLE)
    command = str(opened(tmp_path, "--bootstrap-server", "[::1]:9092")["abortCommand"])
    assert "--bootstrap-server '[::1]:9092' abort" in command


def test_the_coordinator_epoch_is_that_of_the_last_marker(tmp_path: Path) -> None:
    first = NewBatch([NewRecord(b"k", b"v")], 0, 8, 1, True)
    write_segment(tmp_path / "orders-4", [first, marker(COMMIT, first), first._replace(base_offset=2)])
    write_coordinator(tmp_path, IDLE)
    assert str(opened(tmp_path, "--now", "now")["abortCommand"]).endswith("--coordinator-epoch 7")


def test_coordinators_below_the_parent_of_a_given_partition_are_not_its_own(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path / "another-cluster" / "disk", ("pay", 8, COMPLETE_ABORT, {}))
    assert (opened(tmp_path)["isHanging"], opened(tmp_path)["reason"]) == (None, "__transaction_state isn't here")


def test_some_partitions_of_the_coordinators_are_not_enough(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("open-0", 1, EMPTY, {}), number=2)  # its hash gives partition 2 of three
    row = opened(tmp_path)
    assert (row["isHanging"], row["reason"]) == (
        None,
        "only 1 of probably 3 partitions of __transaction_state are here",
    )
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_ABORT, {}), number=2)
    assert opened(tmp_path)["isHanging"] is True


@pytest.mark.parametrize("states", [(), (("done-1", 1, EMPTY, {}),)], ids=["none", "a hash that fits both"])
def test_one_partition_may_be_one_of_fifty(states: tuple[Any, ...], tmp_path: Path) -> None:
    """Fifty is Kafka's default, unless a transactional id proves that there are fewer."""
    write_two(tmp_path)
    write_coordinator(tmp_path, *states)
    row = opened(tmp_path)
    assert (row["isHanging"], row["reason"]) == (
        None,
        "only 1 of probably 50 partitions of __transaction_state are here",
    )


def test_transactional_ids_that_are_not_here_are_said(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("open-0", 8, ONGOING, {"orders": [4]}), number=1)  # partition 1 of two
    assert kseg(["txns", ".", "--now", "5000"], tmp_path).stderr == (
        b"kseg: 2 transactions, 3 records\n"
        b"kseg: 1 of probably 2 partitions of __transaction_state are here: the output lacks their transactional"
        b" ids\n"
    )
    assert kseg(["txns", "__transaction_state-1", "--now", "5000"], tmp_path).stderr == b""


def test_coordinators_whose_beginning_is_missing_are_not_enough(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, IDLE)
    log = tmp_path / "__transaction_state-0" / f"{0:020}.log"
    log.rename(log.with_name(f"{9:020}.log"))
    assert opened(tmp_path)["reason"] == "__transaction_state-0 is here only from offset 9 on"


@pytest.mark.parametrize("state", [(COMPLETE_ABORT, {}), (ONGOING, {"orders": [4]})], ids=["over", "ongoing"])
def test_an_older_state_is_not_believed_where_the_newest_cannot_be_read(state: tuple[Any, ...], tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("pay", 8, ONGOING, {"orders": [4]}))
    log = next((tmp_path / "__transaction_state-0").glob("*.log"))
    newest = bytearray(log.read_bytes())
    newest[7], newest[-1] = 1, newest[-1] ^ 1
    write_coordinator(tmp_path, ("pay", 8, *state))
    with log.open("ab") as older:
        older.write(newest)
    row = opened(tmp_path)
    reason = "__transaction_state-0: offset 1: the CRC of its batch is wrong"
    assert (row["isHanging"], row["reason"], row["abortCommand"]) == (None, reason, None)
    assert row["transactionalId"] == "pay"


def test_coordinators_may_lie_on_another_disk(tmp_path: Path) -> None:
    write_two(tmp_path / "disk1")
    write_coordinator(tmp_path / "disk2", ("pay", 8, ONGOING, {"orders": [4]}))
    for paths in (["."], ["disk1", "disk2"], ["disk2", "disk1/orders-4"]):
        (row,) = (row for row in objects([*paths, "--open"], tmp_path) if row["type"] == "transaction")
        assert row["reason"] == "Ongoing as pay"
