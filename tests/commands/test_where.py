"""`kseg where`, and its hash functions."""

import json
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import pytest

from kseg import Segment
from kseg.coordinators.home_partition import (
    Partitioner,
    coordinator_partition,
    java_string_hash,
    key_partition,
    murmur2,
)
from tests import golden, run
from tests.coordinators.coordinators import commit
from tests.log_files import NewBatch, NewRecord, write_segment


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # Known values of Kafka's UtilsTest.testMurmur2.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % 2**32


@pytest.mark.parametrize(
    ("text", "hashed"), [("", 0), ("abc", 96354), ("polygenelubricants", -(2**31)), ("😀", 1772899), ("ü", 252)]
)
def test_string_hash_is_javas(text: str, hashed: int) -> None:
    assert java_string_hash(text) == hashed


def test_the_hash_without_an_absolute_value_is_partition_0() -> None:
    assert coordinator_partition("polygenelubricants") == 0


def test_crc32_is_librdkafkas() -> None:
    assert key_partition(b"123456789", 1000, Partitioner.CRC32) == 0xCBF43926 % 1000


def test_groups_lie_where_brokers_put_them() -> None:
    """Keys of __consumer_offsets: int16 version, then the group as a string with an int16 length."""
    seen = 0
    for path in golden.files(".log"):
        topic, _, partition = path.parent.name.rpartition("-")
        if topic != "__consumer_offsets" or not partition.isdigit():
            continue
        with Segment(path) as segment:
            for batch in segment.batches():
                for record in () if batch.is_control else batch.records():
                    assert record.key is not None
                    group = record.key[4 : 4 + int.from_bytes(record.key[2:4], "big")].decode()
                    assert coordinator_partition(group, 2) == int(partition)
                    seen += 1
    assert seen > 100


def kseg(*arguments: str, directory: Path = golden.ROOT) -> run.Run:
    return run.kseg(["where", *arguments], directory)


def test_a_group_is_found_without_files() -> None:
    assert kseg("--group", "abc").stdout == b"__consumer_offsets-4; the topic has 50 partitions\n"
    assert kseg("--transactional-id", "abc").stdout == b"__transaction_state-4; the topic has 50 partitions\n"
    assert kseg("--key", "abc", "--partitions", "10").stdout == b"partition 7 of 10\n"


def test_the_directory_is_shown(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"orders-{number}").mkdir()
        (tmp_path / f"orders-{number}" / f"{0:020}.log").touch()
    ran = kseg("--key", "abc", "--topic", "orders", ".", "-o", "json", directory=tmp_path)
    assert json.loads(ran.stdout) == {
        "type": "where", "topic": "orders", "partition": 0, "partitions": 3, "isSupposed": False,
        "directories": ["orders-0"],
    }  # fmt: skip
    assert ran.status == 0
    assert kseg("--group", "abc", ".", directory=tmp_path).status == 1


def offsets_partitions(directory: Path, *numbers: int) -> None:
    for number in numbers:
        (directory / f"__consumer_offsets-{number}").mkdir(parents=True)
        (directory / f"__consumer_offsets-{number}" / f"{0:020}.log").touch()


@pytest.mark.parametrize(
    ("numbers", "options", "line", "hint"),
    [
        (
            range(51),
            (),
            "__consumer_offsets-15; the topic has 51 partitions",
            "kseg assumes 51 partitions, by the directories",
        ),
        (
            range(5),
            (),
            "__consumer_offsets-4; the topic has 50 partitions",
            "not all partitions are here, so kseg assumes 50",
        ),
        (
            (4, 9),
            (),
            "__consumer_offsets-4; the topic has 50 partitions",
            "not all partitions are here, so kseg assumes 50",
        ),
        ((0, 1, 2), ("--partitions", "4"), "__consumer_offsets-2; the topic has 4 partitions", None),
    ],
)
def test_partitions_are_as_many_as_the_directories_show(
    numbers: Sequence[int], options: tuple[str, ...], line: str, hint: str | None, tmp_path: Path
) -> None:
    offsets_partitions(tmp_path, *numbers)
    ran = kseg("--group", "abc", ".", *options, directory=tmp_path)
    assert ran.stdout.decode().splitlines() == [line, line.partition(";")[0]]
    said = "" if hint is None else f"kseg: __consumer_offsets: {hint}; specify --partitions to set another number\n"
    assert (ran.status, ran.stderr.decode()) == (0, said)


def write_groups(directory: Path, count: int, *, groups: int, only: Sequence[int] | None = None) -> None:
    """Write a topic with groups in the partitions of their hashes, and only some of its directories."""
    records: dict[int, list[NewRecord]] = {number: [] for number in range(count)}
    for name in (f"group-{number}" for number in range(groups)):
        records[coordinator_partition(name, count)].append(commit("orders", 1, group=name))
    for number in records if only is None else only:
        batches = [NewBatch(records[number])] if records[number] else []
        write_segment(directory / f"__consumer_offsets-{number}", batches)


@pytest.mark.parametrize(
    ("only", "groups", "count", "hint"),
    [
        (None, 400, 48, "kseg assumes 48 partitions, by the directories"),
        (range(0, 48, 3), 400, 48, "kseg assumes 48 partitions, by the ids in it"),
        (range(3), 400, 48, "kseg assumes 48 partitions, by the ids in it"),
        (None, 0, 50, "not all partitions are here, so kseg assumes 50"),
        (range(0, 48, 3), 0, 50, "not all partitions are here, so kseg assumes 50"),
    ],
    ids=["all", "a third", "the first ones", "no groups", "a third without groups"],
)
def test_groups_tell_how_many_partitions_there_are(
    only: Sequence[int] | None, groups: int, count: int, hint: str, tmp_path: Path
) -> None:
    write_groups(tmp_path, 48, groups=groups, only=only)
    ran = kseg("--group", "billing", ".", "-o", "json", directory=tmp_path)
    answer = json.loads(ran.stdout)
    assert (answer["partition"], answer["partitions"]) == (coordinator_partition("billing", count), count)
    assert answer["isSupposed"] == (count == 50)
    assert f"kseg: __consumer_offsets: {hint}; specify --partitions to set another number" in ran.stderr.decode()
    if groups and only is not None:
        said = run.kseg(["groups", ".", "--show", "groups"], tmp_path).stderr.decode()
        assert f"{len(only)} of 48 partitions of __consumer_offsets are here" in said


def test_the_number_of_partitions_is_supposed_without_files() -> None:
    ran = kseg("--group", "abc")
    said = (
        "kseg: __consumer_offsets: 50 partitions are assumed, Kafka's default; specify --partitions to set"
        " another number\n"
    )
    assert ran.stderr.decode() == said
    assert kseg("--group", "abc", "-q").stderr == b""
    assert json.loads(kseg("--group", "abc", "-o", "json").stdout)["isSupposed"] is True
    assert json.loads(kseg("--group", "abc", "--partitions", "50", "-o", "json").stdout)["isSupposed"] is False


def test_partitions_are_as_many_as_the_metadata_tell() -> None:
    logs = "logs/4.3.1"
    ran = kseg("--group", "abc", logs)
    assert ran.stdout.decode().splitlines()[0] == "__consumer_offsets-0; the topic has 2 partitions"
    assert ran.stderr == b"kseg: __consumer_offsets-0 isn't in the given directories\n"
    assert ran.status == 1
    ran = kseg("--key", "abc", "--topic", "meta.11", logs)
    assert ran.stdout.decode().splitlines()[0].endswith("; the topic has 3 partitions")
    there = kseg("--group", "a", f"{logs}/__consumer_offsets-1")
    assert there.stdout.decode().splitlines() == [
        "__consumer_offsets-1; the topic has 2 partitions", f"{logs}/__consumer_offsets-1",
    ]  # fmt: skip
    assert (there.status, there.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [[], ["--key", "a"], ["--key", "a", "--group", "b"]])
def test_what_is_missing_is_said(arguments: list[str]) -> None:
    assert kseg(*arguments).status == 2


def test_partitioners_are_named_as_the_help_names_them() -> None:
    arguments = ("--key", "abc", "--partitions", "10", "--partitioner")
    assert kseg(*arguments, "murmur2").stdout == b"partition 7 of 10\n"
    assert kseg(*arguments, "crc32").stdout == f"partition {crc32(b'abc') % 10} of 10\n".encode()


@pytest.mark.parametrize("key", ["hex:ff00", "base64:/wA="])
def test_a_key_may_be_bytes(key: str, tmp_path: Path) -> None:
    ran = run.kseg(["where", "--key", key, "--partitions", "1000"], tmp_path)
    partition = key_partition(b"\xff\0", 1000)
    assert ran.stdout.decode() == f"partition {partition} of 1000\n"
    assert run.kseg(["where", "--key", "hex:f", "--partitions", "1000"], tmp_path).status == 2


def test_a_topic_that_is_not_there_is_named(tmp_path: Path) -> None:
    ran = run.kseg(["where", "--key", "a", "--topic", "nosuch", str(golden.ROOT / "logs" / "4.3.1")], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"kseg: no partition of nosuch is here; ")
