"""Tables of records that do harm hold the same rows whoever reads them: Spark, and the libraries of each format.

Delta's and Iceberg's jars come by Maven, for one release of Spark: `pip install pyspark==4.1.4` for them.
"""

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from kseg.export.commit.table_log import NO_TABLE
from kseg.export.settings import TableFormat
from tests import run
from tests.export.test_hostile_values import TIMES, held
from tests.export.test_tables import catalog
from tests.log_files import NewBatch, NewRecord, write_segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SPARK = "4.1"
"""The newest that both formats have jars for: another one reads Parquet alone."""
SCALA = f"{SPARK}_2.13"
JARS = (f"io.delta:delta-spark_{SCALA}:4.4.0", f"org.apache.iceberg:iceberg-spark-runtime-{SCALA}:1.12.0")
CATALOG = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.memory": "1g",
}
BYTES = (b"", None, b"\0", b"\xed\xa0\x80", "é\u202e".encode(), b"'\"\\\n,;", b"k" * 70_000)
"""Keys and values: no bytes, none, NUL, half of a surrogate pair, text that turns the line, quotes, a large one."""
NAMES = ("id", "naïve", "a b", "a.b", "", "`", "日本", "n" * 300, "=1+1", "select", "null")
"""Of fields in the values."""
TOPICS = ("orders", "Orders", "a.b_c-d", "0", "__HIVE_DEFAULT_PARTITION__")

Row = tuple[str, int, int, int | None, int, bytes | None, bytes | None]
"""Topic, partition, offset, timestamp in microseconds, in milliseconds, key, value."""


def write_disk(directory: Path, partition: int, topics: Sequence[str]) -> None:
    """A partition of each topic, with each time and each text."""
    for seed, topic in enumerate(topics):
        records = [
            NewRecord(BYTES[(n + seed) % len(BYTES)], BYTES[(n * 3 + seed) % len(BYTES)], time)
            for n, time in enumerate(TIMES * 2)
        ]
        batches = [NewBatch([record], offset) for offset, record in enumerate(records)]
        write_segment(directory / f"{topic}-{partition}", batches)


def rows_of_disk(partitions: int, topics: Sequence[str]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for partition in range(partitions):
        for seed, topic in enumerate(topics):
            for n, time in enumerate(TIMES * 2):
                key, value = BYTES[(n + seed) % len(BYTES)], BYTES[(n * 3 + seed) % len(BYTES)]
                found[topic, partition, n, held(time), time, key, value] += 1
    return found


COLUMNS = ["topic", "partition", "offset", "timestamp", "timestampMs", "key", "value"]


def of_arrow(table: pa.Table) -> Counter[Row]:
    """Rows of a table of Arrow."""
    chosen = table.select(COLUMNS)
    at = chosen.schema.get_field_index("timestamp")
    micros = chosen.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    lists = chosen.set_column(at, "timestamp", micros).to_pydict()
    texts = map(str, lists["topic"])
    return Counter(zip(texts, *(lists[name] for name in COLUMNS[1:]), strict=True))


def by_pyarrow(out: Path) -> pa.Table:
    hive = ds.partitioning(flavor="hive", schema=pa.schema([("topic", pa.string()), ("date", pa.string())]))
    return ds.dataset(
        sorted(map(str, out.rglob("*.parquet"))), partitioning=hive, partition_base_dir=str(out)
    ).to_table()


def by_duckdb(out: Path) -> pa.Table:
    types = ", hive_types = {'topic': VARCHAR}" if any(out.glob("topic=*")) else ""
    files = f"read_parquet('{out}/**/*.parquet', hive_partitioning = true{types})"
    return duckdb.sql(f"SELECT * FROM {files}").to_arrow_table()


def by_polars(out: Path) -> pa.Table:
    folders = {"topic": pl.String(), "date": pl.Date()}
    schema = {name: kind for name, kind in folders.items() if any(out.rglob(f"{name}=*"))}
    return pl.scan_parquet(f"{out}/**/*.parquet", hive_schema=schema or None).collect().to_arrow()


READERS: dict[TableFormat, tuple[Callable[[Path], pa.Table], ...]] = {
    TableFormat.PARQUET: (by_pyarrow, by_duckdb, by_polars),
    TableFormat.DELTA: (
        lambda out: DeltaTable(str(out)).to_pyarrow_table(),
        lambda out: pl.read_delta(str(out)).to_arrow(),
    ),
    TableFormat.ICEBERG: (
        lambda out: catalog(out).load_table(NO_TABLE.name).scan().to_arrow(),
        lambda out: pl.scan_iceberg(catalog(out).load_table(NO_TABLE.name)).collect().to_arrow(),
    ),
}


def by_spark(spark: "SparkSession", out: Path, table_format: TableFormat) -> Counter[Row]:
    place = str(out)
    if table_format is TableFormat.ICEBERG:
        place = catalog(out).load_table(NO_TABLE.name).metadata_location.removeprefix("file://")
    table = spark.read.format(table_format.value).load(place)
    wanted = [name if name != "timestamp" else "unix_micros(timestamp)" for name in COLUMNS]
    found = table.selectExpr(*(f"CAST({name} AS STRING)" if name == "topic" else name for name in wanted)).collect()
    return Counter(tuple(bytes(each) if isinstance(each, bytearray) else each for each in row) for row in found)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session that reads Delta's and Iceberg's tables."""
    from pyspark.sql import SparkSession

    from kseg.spark.job import open_context

    place = tmp_path_factory.mktemp("jars")
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><exclusions><exclusion>"
        "<groupId>org.apache.spark</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>".format(
            *jar.split(":")
        )
        for jar in JARS
    )
    (place / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>kseg</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )
    asked = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={place}/jars"]
    subprocess.run(asked, cwd=place, check=True)
    wanted = ("delta-", "iceberg-", "unitycatalog-")
    jars = ",".join(str(path) for path in (place / "jars").iterdir() if path.name.startswith(wanted))
    with open_context("local[2]", {"spark.jars": jars, **CATALOG}) as context:
        yield SparkSession(context)


WAYS = list(product(TableFormat, (("none",), ("date",), ("topic",), ("topic", "date"))))


@pytest.mark.parametrize(("table_format", "folders"), WAYS, ids=str)
def test_all_readers_find_the_same_rows(
    table_format: TableFormat, folders: tuple[str, ...], spark: "SparkSession", tmp_path: Path
) -> None:
    out, disk = tmp_path / "out", tmp_path / "disk"
    topics = TOPICS if folders == ("none",) or table_format is TableFormat.ICEBERG else TOPICS[:-1]
    command = ["export", str(disk), str(out), "--format", table_format.value, "-q"]
    command += ["--partition-by", ",".join(folders)]
    for partitions, more in ((1, []), (2, []), (2, ["--overwrite"])):
        write_disk(disk, partitions - 1, topics)
        ran = run.kseg([*command, *more], tmp_path)
        assert ran.status == 0, ran.stderr
        expected = rows_of_disk(partitions, topics)
        found = [of_arrow(read(out)) for read in READERS[table_format]]
        if table_format is TableFormat.PARQUET or spark.version.startswith(SPARK):
            found.append(by_spark(spark, out, table_format))
        assert [(len(each), sum((each - expected).values())) for each in found if each != expected] == []
