"""Requests to an object store: few, concurrent, and only for wanted bytes."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from pyarrow import fs

from kseg.errors import OpenError
from kseg.export.commit.order import execute_here
from kseg.export.plan import ByteRange
from kseg.export.planning import Export
from kseg.export.read.ranges import RangeReader
from kseg.export.run import run_export
from kseg.export.settings import LogSelection, OffsetRange
from kseg.store import objects
from kseg.store import remote_files as remote
from tests.export import exports
from tests.export.object_store import CountingStore, Request, redirect_to, serving

PARTITIONS, FILES = 60, 4
PAGE = 20
"""Objects per answer in these tests, instead of a thousand."""


@pytest.fixture(scope="module")
def url() -> Iterator[tuple[CountingStore, str]]:
    """Yield a store for s3:// URLs."""
    store = CountingStore()
    with serving(store) as url, redirect_to(url) as patch:
        patch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", str(PAGE))
        yield store, url


@pytest.fixture
def system(url: tuple[CountingStore, str]) -> Iterator[fs.FileSystem]:
    """Yield its empty bucket `kafka`."""
    place = url[1].removeprefix("http://")
    system = fs.S3FileSystem(
        endpoint_override=place,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )
    system.create_dir("kafka")
    yield system
    system.delete_dir("kafka")


@pytest.fixture
def store(url: tuple[CountingStore, str]) -> CountingStore:
    """Return the counting store."""
    return url[0]


def put(key: str, content: bytes = b"content") -> None:
    """Put an object into the bucket without a request, and without objects for its folders."""
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object("kafka", key, content)


def listings(store: CountingStore) -> int:
    """Return the number of listings."""
    return sum(request.is_listing for request in store.requests)


def is_of_a_range(request: Request) -> bool:
    """Return True if a request lists from some key on."""
    return "start-after" in request.query and "delimiter" not in request.query


def test_a_folder_that_one_answer_lists_takes_one_request(system: fs.FileSystem, store: CountingStore) -> None:
    for number in range(PAGE):
        put(f"logs/orders-{number}/00000000000000000000.log")
    store.requests.clear()
    assert len(list(remote.list_files("s3://kafka/logs"))) == PAGE
    assert listings(store) == 1


@pytest.mark.parametrize("disks", [("",), ("disk1/", "disk2/", "disk3/")], ids=["partitions", "disks"])
def test_many_partitions_are_listed_by_ranges_at_the_same_time(
    system: fs.FileSystem, store: CountingStore, disks: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(PARTITIONS):
        for file in range(FILES):
            put(f"logs/{disks[number % len(disks)]}orders-{number}/{file:020}.log", b"x" * file)
        put(f"logs/meta-{number % 7}.properties")
    put("logs/örtlich +%20-0/00000000000000000000.log")
    monkeypatch.setattr(objects, "PAGE", PAGE)
    put("logs.other/orders-0/00000000000000000000.log")
    store.expect_at_once(2, is_of_a_range)
    found = list(remote.list_files("s3://kafka/logs"))
    assert store.were_at_once
    pages = -(-len(found) // PAGE)
    assert listings(store) <= 2 * pages + len(disks)
    monkeypatch.setattr(objects, "PAGE", 1000)
    assert sorted(found) == sorted(remote.list_files("s3://kafka/logs/"))
    assert len(set(found)) == len(found) == PARTITIONS * FILES + 7 + 1


def test_a_partition_of_many_segments_is_listed(system: fs.FileSystem) -> None:
    for number in range(5 * PAGE):
        put(f"logs/orders-0/{number:020}.log")
    put("logs/orders-1/00000000000000000000.log")
    assert len(list(remote.list_files("s3://kafka/logs"))) == 5 * PAGE + 1
    assert len(list(remote.list_files("s3://kafka/logs/orders-0"))) == 5 * PAGE


def test_a_folder_that_is_not_there_is_an_error(system: fs.FileSystem) -> None:
    put("logs/orders-0/00000000000000000000.log")
    with pytest.raises(OpenError, match="can't be listed"):
        list(remote.list_files("s3://kafka/logz"))


@pytest.fixture
def log(tmp_path: Path, system: fs.FileSystem) -> Path:
    """Return a partition with a segment of some hundred KiB, which is in the store too."""
    path = exports.write_log(tmp_path / "orders-0", 0, 2000, per_batch=50, value=b"v" * 200)
    fs.copy_files(str(tmp_path), "kafka/logs", destination_filesystem=system)
    return path


def read_of(store: CountingStore, ending: str) -> list[int]:
    """Return the requested positions of the bytes of a file."""
    return list(chain.from_iterable(request.bytes for request in store.requests if request.path.endswith(ending)))


def test_an_order_reads_its_bytes_only_and_each_once(
    log: Path, store: CountingStore, tmp_path: Path, system: fs.FileSystem
) -> None:
    store.requests.clear()
    wanted = LogSelection(offsets=OffsetRange(1000, 1200))
    report = run_export(Export(("s3://kafka/logs",), str(tmp_path / "out"), wanted), execute_here)
    assert report.partitions[0].records_out == 200
    read = read_of(store, ".log")
    assert len(read) == len(set(read)) < log.stat().st_size // 5
    assert listings(store) == 1


def test_a_second_run_reads_what_is_new(log: Path, store: CountingStore, tmp_path: Path, system: fs.FileSystem) -> None:
    half = LogSelection(offsets=OffsetRange(None, 1000))
    out = str(tmp_path / "out")
    run_export(Export(("s3://kafka/logs",), out, half), execute_here)
    store.requests.clear()
    run_export(Export(("s3://kafka/logs",), out), execute_here)
    read = read_of(store, ".log")
    assert len(read) == len(set(read)) < log.stat().st_size * 3 // 5
    assert exports.offsets(tmp_path / "out", "orders") == list(range(2000))


def test_pieces_of_a_large_range_are_read_at_the_same_time(
    log: Path, store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PIECE", 50_000)
    size = log.stat().st_size
    store.expect_at_once(2, lambda request: len(request.bytes) == remote.PIECE)
    part = ByteRange(f"s3://kafka/logs/orders-0/{log.name}", 0, 0, size, size, 0)
    with RangeReader(part, 1 << 20) as reader, reader.open(0, size, None) as copied:
        assert copied.read(0, size) == log.read_bytes()
    assert store.were_at_once
    assert len([request for request in store.requests if request.method == "GET"]) == -(-size // remote.PIECE)


def test_small_orders_are_executed_at_the_same_time(
    store: CountingStore, tmp_path: Path, system: fs.FileSystem
) -> None:
    for number in range(6):
        exports.write_log(tmp_path / "logs" / f"orders-{number}", 0, 10)
    fs.copy_files(str(tmp_path / "logs"), "kafka/logs", destination_filesystem=system)
    store.expect_at_once(4, lambda request: request.path.endswith(".log") and bool(request.bytes))
    report = run_export(Export(("s3://kafka/logs",), "s3://kafka/out", merge_files=True), execute_here)
    assert store.were_at_once
    assert [part.records_out for part in report.partitions] == [10] * 6
    names = [file.url for file in remote.list_files("s3://kafka/out") if file.url.endswith(".parquet")]
    assert len(names) == 1
