"""Exports from and to an object store: a local S3 server, by moto."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from deltalake import DeltaTable
from pyarrow import fs
from pyiceberg.utils.config import Config

from kseg.export.commit.manifest import read_manifest
from kseg.export.commit.order import Job, execute_here
from kseg.export.commit.protocol import TableName
from kseg.export.destination import open_destination
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import FileOptions, Isolation, LogSelection, OffsetRange, ReadOptions
from kseg.log.selection import PartitionChoice
from kseg.store import remote_files as remote
from tests import golden
from tests.export import exports
from tests.export.exports import table_log
from tests.spark.processes import free_port, is_listening, running, wait_until

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[fs.FileSystem]:
    """Yield a server for s3:// URLs."""
    port = free_port()
    log = tmp_path_factory.mktemp("moto") / "log"
    settings = {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
    }
    server = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(server, log) as process, pytest.MonkeyPatch.context() as patch:
        wait_until(lambda: is_listening(port), "moto listens", process)
        for name, value in settings.items():
            patch.setenv(name, value)
        remote._store_at.cache_clear()
        endpoint = f"127.0.0.1:{port}"
        yield fs.S3FileSystem(endpoint_override=endpoint, scheme="http", region="us-east-1", allow_bucket_creation=True)
        remote._store_at.cache_clear()


@pytest.fixture
def s3(store: fs.FileSystem) -> Iterator[fs.FileSystem]:
    """Yield the store with an empty bucket `kafka`."""
    store.create_dir("kafka")
    yield store
    store.delete_dir_contents("kafka")


def test_export_from_and_to_s3_is_the_export_from_and_to_disks(s3: fs.FileSystem, tmp_path: Path) -> None:
    folder = golden.ROOT / "logs" / "4.3.1"
    fs.copy_files(str(folder), "kafka/logs", destination_filesystem=s3)
    wanted = Export(("s3://kafka/logs",), "s3://kafka/out", files=FileOptions(target_size=3000), order_size=3000)
    report = run_export(wanted, execute_here)
    local = exports.export([folder], tmp_path / "out", target_size=3000)
    assert [(part.topic, part.records_out) for part in report.partitions] == [
        (part.topic, part.records_out) for part in local.partitions
    ]
    assert pq.read_table("kafka/out", filesystem=s3).num_rows == pq.read_table(tmp_path / "out").num_rows
    assert run_export(wanted, execute_here).new_files == 0


def test_read_committed_and_offsets_from_s3(s3: fs.FileSystem, tmp_path: Path) -> None:
    folder = golden.ROOT / "logs" / "2.8.2"
    fs.copy_files(str(folder), "kafka/logs", destination_filesystem=s3)
    read = ReadOptions(isolation=Isolation.READ_COMMITTED)
    selection = LogSelection(PartitionChoice(("compacted-txn",)), OffsetRange(230, 270))
    run_export(Export(("s3://kafka/logs",), "s3://kafka/out", selection, read), execute_here)
    run_export(Export((str(folder),), str(tmp_path / "out"), selection, read), execute_here)
    assert pq.read_table("kafka/out", filesystem=s3).equals(pq.read_table(tmp_path / "out"))


def test_what_failed_attempts_left_is_swept(s3: fs.FileSystem) -> None:
    fs.copy_files(str(golden.ROOT / "docs"), "kafka/logs", destination_filesystem=s3)
    place = open_destination("s3://kafka/out")
    orphan = "topic=test-1/part-test-1-0-00000000000000203000-0123abcd-0-0123456789ab-0.parquet"
    wanted = Export(("s3://kafka/logs",), "s3://kafka/out")
    run_export(wanted, execute_here)
    place.replace(orphan, b"PAR1 torn")
    run_export(Export(wanted.sources, wanted.destination, overwrite=True), execute_here)
    manifest = read_manifest(place)
    assert manifest is not None
    there = [name for name in place.names() if name.endswith(".parquet") and not name.startswith("_kseg/")]
    assert sorted(there) == sorted(manifest.paths())


@pytest.fixture
def _lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure a catalog of that name. pyiceberg reads its environment once, when it is imported."""
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", "s3://kafka/lake")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())


@pytest.mark.usefixtures("_lake")
@pytest.mark.parametrize("table_format", ["delta", "iceberg"], ids=str)
def test_tables_in_s3_grow_and_change(table_format: str, s3: fs.FileSystem, tmp_path: Path) -> None:
    """The store is a separate process: deltalake blocks this one's other threads while it waits for an answer."""
    table = TableName("lake" if table_format == "iceberg" else None)
    files, source = FileOptions(table_format=table_format), tmp_path / "orders-0"
    wanted = Export((str(source),), "s3://kafka/out", files=files, table=table)
    exports.write_log(source, 0, 20)
    run_export(wanted, execute_here)
    exports.write_log(source, 20, 10)
    assert run_export(wanted, execute_here).new_files == 1
    exports.write_log(source, 20, 5, value=b"another")
    assert [part.records_out for part in run_export(wanted, execute_here).partitions] == [25]
    active = table_log(open_destination("s3://kafka/out"), table, files).active_files()
    assert sorted(pq.read_table(f"kafka/out/{name}", filesystem=s3).num_rows for name in active) == [5, 20]


def rows_of_table(out: str, table_format: str) -> list[tuple[str, int, bytes]]:
    """Return topic, offset and value of all rows, as the format's own library reads them."""
    columns = ("topic", "offset", "value")
    if table_format == "delta":
        table = DeltaTable(out, storage_options={"AWS_ALLOW_HTTP": "true"}).to_pyarrow_table(columns=list(columns))
    else:
        properties = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
        table = (
            pyiceberg.catalog.load_catalog("lake", **properties)
            .load_table("kafka.records")
            .scan(selected_fields=columns)
            .to_arrow()
        )
    return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


@pytest.mark.usefixtures("_lake")
@pytest.mark.parametrize("table_format", ["delta", "iceberg"], ids=str)
def test_tables_in_s3_are_exported_by_runs_that_meet(table_format: str, s3: fs.FileSystem, tmp_path: Path) -> None:
    for number in range(4):
        exports.write_log(tmp_path / f"topic{number}-0", 0, 10)
    sources, out = sorted(map(str, tmp_path.glob("topic*"))), "s3://kafka/out"
    table = TableName("lake" if table_format == "iceberg" else None)
    files = FileOptions(table_format=table_format)

    def meets_another(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(execute_here(orders, job))
        run_export(Export(tuple(sources[1:3]), out, files=files, table=table), execute_here)
        return results

    run_export(Export(tuple(sources[:2]), out, files=files, table=table), meets_another)
    exports.write_log(Path(sources[0]), 0, 5, value=b"another")
    report = run_export(Export(tuple(sources), out, files=files, table=table), execute_here)
    rows = rows_of_table(out, table_format)
    wanted = [(f"topic{number}", offset, b"value") for number in range(1, 4) for offset in range(10)]
    assert rows == [("topic0", offset, b"another") for offset in range(5)] + wanted
    assert [part.records_out for part in report.partitions] == [5, 10, 10, 10]
    log = table_log(open_destination(out), table, files)
    assert log.merge(1 << 30)["added"] == 0, "each topic has one file"
    assert not list(open_destination(out).names("_kseg/runs"))


def test_sparks_tasks_read_and_write_s3(s3: fs.FileSystem, tmp_path: Path) -> None:
    from kseg.spark.job import by_context, open_context

    folder = golden.ROOT / "logs" / "4.3.1"
    fs.copy_files(str(folder), "kafka/logs", destination_filesystem=s3)
    wanted = Export(
        ("s3://kafka/logs",), "s3://kafka/out", files=FileOptions(target_size=3000), order_size=3000, parallelism=2
    )
    with open_context("local[2]", {"spark.driver.memory": "1g"}) as context:
        report = run_export(wanted, by_context(context, 2))
        assert run_export(wanted, by_context(context, 2)).new_files == 0
    exports.export([folder], tmp_path / "out", target_size=3000)
    written = pq.read_table("kafka/out", filesystem=s3)
    assert sorted(exports.rows_of(written)) == sorted(exports.rows_of(pq.read_table(tmp_path / "out")))
    assert sum(part.records_out for part in report.partitions) == written.num_rows
