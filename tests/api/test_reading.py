"""Records, batches and tables of what `kseg.open` opens, held against what `kseg dump` prints of the same files."""

import gc
import os
import re
import shutil
import struct
import tracemalloc
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import kseg
from tests import golden
from tests.loops import for_each, some
from tests.selections import CONTROL_OPTIONS, OPTIONS, PARTITIONS, Chosen, Object, records_of, selections, text_of

BROKER = golden.ROOT / "logs" / "4.3.1"
TRANSACTIONS = "logs/4.3.1/compacted-txn-0"
SAMPLE = golden.ROOT / "docs" / "test-1-0"
LOCAL = [each for each in PARTITIONS if "-remote/" not in each]
pytestmark = pytest.mark.filterwarnings("ignore::kseg.KsegWarning")
NUMBERS = {"from_offset", "to_offset", "producer_id"}


def as_keywords(chosen: Chosen) -> dict[str, Any]:
    """The options of a command line as keywords."""
    options: dict[str, Any] = {"control": None}
    arguments = iter(chosen.arguments)
    for argument in arguments:
        name = argument.removeprefix("--").replace("-", "_")
        if name in ("control", "no_control", "transactional_only"):
            options[name.removeprefix("no_")] = not name.startswith("no_")
        else:
            text = next(arguments)
            options[name] = int(text) if name in NUMBERS else text
    return options


def record_fields(record: kseg.Record) -> tuple[object, ...]:
    return record.offset, record.timestamp, record.key, record.value, record.position


def printed_fields(record: Object) -> tuple[object, ...]:
    timestamp = -1 if record["timestamp"] is None else record["timestamp"]
    return record["offset"], timestamp, text_of(record, "key"), text_of(record, "value"), record["position"]


# --- which records ---------------------------------------------------------------------------------------------------


@for_each("partition", some(LOCAL, 3))
def test_all_records_of_a_partition_are_those_that_dump_prints(partition: str) -> None:
    found = kseg.open(golden.ROOT / partition).records(control=None)
    assert list(map(record_fields, found)) == [
        printed_fields(each) for each in records_of(partition) if is_of_segment(each)
    ]


def is_of_segment(record: Object) -> bool:
    """Not of a metadata snapshot, or of a log that was deleted: `dump` prints these too."""
    return re.fullmatch(r"[0-9]{20}\.log", Path(record["file"]).name) is not None


@given(selections() | selections((*OPTIONS[:3], *CONTROL_OPTIONS)))
def test_selected_records_batches_and_rows_are_those_of_the_same_options(chosen: Chosen) -> None:
    opened, wanted, options = kseg.open(golden.ROOT / chosen.partition), chosen.records(), as_keywords(chosen)
    assert list(map(record_fields, opened.records(**options))) == list(map(printed_fields, wanted))
    assert opened.to_arrow(**options).read_all()["offset"].to_pylist() == [record["offset"] for record in wanted]
    assert len(list(opened.batches(**options))) == len({(each["file"], each["position"]) for each in wanted})


@for_each(
    "partition, count",
    list(product([TRANSACTIONS, "logs/classes-3.9.1/mixed", "docs/test-1-0"], [0, 1, 7, 150, 10**6])),
)
def test_limit_and_tail_take_the_first_and_the_last_records(partition: str, count: int) -> None:
    opened = kseg.open(golden.ROOT / partition)
    everything = [record.offset for record in opened.records()]
    assert [record.offset for record in opened.records(limit=count)] == everything[:count]
    assert [record.offset for record in opened.records(tail=count)] == everything[max(len(everything) - count, 0) :]
    assert opened.to_arrow(tail=count).read_all().num_rows == min(count, len(everything))
    assert len(list(opened.records(tail=5, limit=3))) == min(3, len(everything))


def test_limit_is_for_all_partitions_together_and_tail_for_each() -> None:
    directory = kseg.open(BROKER)
    assert isinstance(directory, kseg.LogDirectory)
    everything = list(directory.records(on_damage="skip"))
    assert list(directory.records(limit=300)) == everything[:300]
    counts = Counter(directory.to_arrow(tail=2).read_all()["topic"].to_pylist())
    assert set(counts.values()) == {2}
    assert len(counts) == 7  # one topic has no records


def test_control_records_are_given_only_if_asked_for() -> None:
    partition, records = kseg.open(golden.ROOT / TRANSACTIONS), records_of(TRANSACTIONS)
    for control in (None, True, False):
        wanted = [each["offset"] for each in records if control in (None, each["isControl"])]
        assert [record.offset for record in partition.records(control=control)] == wanted
        assert partition.to_arrow(control=control).read_all()["offset"].to_pylist() == wanted
    assert [each.offset for each in partition.records()] == [
        each["offset"] for each in records if not each["isControl"]
    ]
    only = kseg.Selection(is_control=True)
    assert all(batch.is_control for batch in partition.batches(only))
    assert len(list(partition.records(only))) == len([each for each in records if each["isControl"]])
    assert any(batch.is_control for batch in partition.batches())


def test_committed_records_are_those_that_dump_prints() -> None:
    lines = golden_dump("logs/classes-4.3.1/transactions", "--isolation", "read_committed")
    opened = kseg.open(golden.ROOT / "logs" / "classes-4.3.1" / "transactions")
    committed = [record.offset for record in opened.records(isolation="read_committed")]
    assert committed == lines
    assert 0 < len(committed) < len(list(opened.records()))


def golden_dump(partition: str, *options: str) -> list[int]:
    from tests import run

    ran = run.kseg(["dump", partition, "-q", "--template", "{offset}", *options], golden.ROOT)
    return list(map(int, ran.stdout.split()))


@pytest.mark.parametrize(
    "options",
    [
        {"from_time": 1581597478320, "to_time": "2020-02-13T12:37:58.325Z"},
        {"from_time": datetime(2020, 2, 13, 12, 37, 58, 320_000, UTC), "to_time": 1581597478325},
        {"from_time": "2020-02-13 13:37:58.320", "to_time": "2020-02-13T13:37:58.325", "tz": "Europe/Berlin"},
        {"from_time": datetime(2020, 2, 13, 13, 37, 58, 320_000), "to_time": 1581597478325, "tz": "+01:00"},  # noqa: DTZ001
    ],
)
def test_times_are_texts_milliseconds_or_datetimes(options: dict[str, Any]) -> None:
    found = [record.timestamp for record in kseg.open(SAMPLE).records(**options)]
    assert found == [
        record.timestamp for record in kseg.open(SAMPLE).records() if 1581597478320 <= record.timestamp < 1581597478325
    ]
    assert found


def test_a_selection_and_keywords_ask_together_and_keywords_win() -> None:
    selection = kseg.Selection(from_offset=203100, limit=5)
    assert [record.offset for record in kseg.open(SAMPLE).records(selection)] == list(range(203100, 203105))
    found = kseg.open(SAMPLE).records(selection, limit=2, to_offset=203200)
    assert [record.offset for record in found] == [203100, 203101]


def test_keys_and_headers_are_bytes_texts_or_hex(tmp_path: Path) -> None:
    records = kseg.RecordsBuilder()
    for number in range(4):
        records.append(1000 + number, b"key-%d" % (number % 2), b"value", [("trace", b"%d" % number)])
    path = tmp_path / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(records.build().raw)
    opened = kseg.open(path)
    for key in ("key-1", b"key-1", "hex:6b65792d31"):
        assert [record.offset for record in opened.records(key=key)] == [1, 3]
    for header in ("trace=2", [("trace", b"2")], [("trace", "hex:32")], ["trace", "trace=2"]):
        assert [record.offset for record in opened.records(header=header)] == [2]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"from_ofset": 3}, "from_ofset: no such option; specify one of from_offset, "),
        ({"is_committed": True}, "is_committed: no such option; specify one of "),
        ({"limit": -1}, "limit -1"),
        ({"from_offset": 2**70}, "from_offset"),
        ({"sample": 2.0}, "2.0"),
        ({"sample": "200%"}, "200%"),
        ({"isolation": "committed"}, "read_uncommitted or read_committed"),
        ({"from_time": "tomorrow"}, "isn't a valid time"),
        ({"key_regex": "("}, "key-regex"),
        ({"tz": "Mars"}, "no such time zone"),
        ({"isolation": "read_committed", "control": True}, "--control can't be used with"),
    ],
)
def test_what_no_selection_can_be_is_refused(options: dict[str, Any], reason: str) -> None:
    opened = kseg.open(SAMPLE)
    for read in (opened.records, opened.batches, opened.to_arrow):
        with pytest.raises(kseg.UsageError, match=reason):
            read(**options)


def test_an_index_that_is_not_believed_is_a_warning(tmp_path: Path) -> None:
    directory = tmp_path / "test-1-0"
    shutil.copytree(SAMPLE, directory)
    (directory / "00000000000000203000.index").write_bytes(struct.pack(">ii", 900, 12345))
    with pytest.warns(kseg.KsegWarning, match="203000.index"):
        found = [record.offset for record in kseg.open(directory).records(from_offset=204000, limit=2)]
    assert found == [204000, 204001]


def test_a_log_is_not_followed() -> None:
    with pytest.raises(kseg.UsageError, match="follow"):
        kseg.open(SAMPLE).records(kseg.Selection(is_followed=True))


# --- damage ----------------------------------------------------------------------------------------------------------


DAMAGED = sorted({path.parent for path in (golden.ROOT / "damaged").glob("*/*.log")})


def test_damage_is_raised_skipped_or_given_to_a_function() -> None:
    """On each damaged partition, and alike for records and rows."""
    raised = 0
    for directory in DAMAGED:
        damages: list[kseg.Damage] = []
        opened = kseg.open(directory)
        intact = list(opened.records(on_damage="skip"))
        assert list(opened.records(on_damage=damages.append)) == intact, directory
        assert all(record.is_valid for record in intact)
        rows = opened.to_arrow(on_damage="skip").read_all()
        assert rows["offset"].to_pylist() == [record.offset for record in intact], directory
        for read in (lambda each: list(each.records()), lambda each: each.to_arrow().read_all()):
            if damages:
                with pytest.raises(kseg.DamagedError, match=str(directory)):
                    read(opened)
                raised += 1
            else:
                read(opened)
    assert raised > 400


def test_records_before_damage_are_given_first() -> None:
    directory = golden.ROOT / "damaged" / "210-wiped-batch"
    given: list[kseg.Record] = []
    with pytest.raises(kseg.DamagedError):
        given.extend(kseg.open(directory).records())
    everything = list(kseg.open(directory).records(on_damage="skip"))
    assert 0 < len(given) < len(everything)
    assert given == everything[: len(given)]


def test_a_selection_does_not_hide_damage_in_what_it_reads() -> None:
    for case in ("024-crc-zero", "066-codec-5"):
        opened = kseg.open(golden.ROOT / "damaged" / case)
        with pytest.raises(kseg.DamagedError):
            list(opened.records(key="there is no such key"))
        assert list(opened.records(key="there is no such key", on_damage="skip")) == []


def test_a_log_that_cannot_be_opened_is_damage_of_its_partition(tmp_path: Path, failing_disk: Any) -> None:
    directory = tmp_path / "test-1-0"
    shutil.copytree(SAMPLE, directory)
    failing_disk.lose_file(directory / "00000000000000203000.log")
    with pytest.raises(kseg.DamagedError, match="unreadable"):
        list(kseg.open(directory).records())


# --- what is read once, and how much is in memory --------------------------------------------------------------------


def test_what_is_read_keeps_its_file_open() -> None:
    records = kseg.open(SAMPLE / "00000000000000203000.log").records()
    scanned = kseg.open_segment(SAMPLE / "00000000000000203000.log").scan()
    reader = kseg.open(SAMPLE).to_arrow()
    gc.collect()
    assert len(list(records)) == reader.read_all().num_rows > 0
    assert len(list(scanned)) > 10


def test_two_readers_of_a_segment_do_not_disturb_each_other() -> None:
    with kseg.open_segment(SAMPLE / "00000000000000203000.log") as segment:
        pairs = list(zip(segment.records(), segment.records(), strict=True))
    assert len(pairs) > 1000
    assert all(one == other for one, other in pairs)


@pytest.mark.parametrize(
    "read", [lambda each: each.records(), lambda each: each.to_arrow(), lambda each: each.batches()]
)
def test_memory_does_not_grow_with_the_log(read: Callable[[Any], Any], tmp_path: Path) -> None:
    records = kseg.RecordsBuilder()
    for number in range(100):
        records.append(number, b"key", bytes(1000))
    one = records.build()
    peaks = []
    for count in (100, 400):  # some 10 and 40 MB
        path = tmp_path / f"big-{count}" / f"{0:020}.log"
        path.parent.mkdir()
        with path.open("wb") as file:
            for batch in range(count):
                file.write(one.assign_offsets(batch * 100).raw)
        tracemalloc.start()
        for _ in read(kseg.open(path.parent)):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.5 + 1_000_000


def test_what_came_after_a_partition_was_opened_is_read_too(tmp_path: Path) -> None:
    directory = tmp_path / "test-1-0"
    shutil.copytree(SAMPLE, directory)
    os.utime(directory, (1, 1))
    opened, whole = kseg.open(tmp_path), list(kseg.open(SAMPLE).records())
    assert list(opened.records()) == whole
    records = kseg.RecordsBuilder(209300)
    records.append(5, None, b"later")
    (directory / "00000000000000209300.log").write_bytes(records.build().raw)
    assert [record.offset for record in opened.records()] == [*(record.offset for record in whole), 209300]
