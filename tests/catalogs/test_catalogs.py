"""Exports into Iceberg tables of catalogs, by pyiceberg's settings: each offset once, however runs meet or end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest
from pyiceberg.catalog import load_catalog

from tests import golden
from tests.catalogs import servers
from tests.catalogs.stopping_export import AFTER, BEFORE, KILLED, MEET, OTHER
from tests.export import exports
from tests.export.debezium import Database
from tests.export.object_store import CREDENTIALS
from tests.export.test_unwrap import expected
from tests.spark.processes import free_port

KSEG = (sys.executable, "-m", "kseg")
NAMESPACES = count()
CATALOGS = [
    pytest.param("sqlite"),
    *(pytest.param(name, marks=pytest.mark.stores) for name in ("rest", "hive", "postgresql", "glue")),
]


@dataclass(frozen=True)
class Lake:
    """A catalog named `lake`, a namespace of its own, and a place for tables. home: has pyiceberg's settings."""

    home: Path
    properties: servers.Properties
    namespace: str
    place: str

    def write_settings(self) -> None:
        """Write pyiceberg's file."""
        lines = [f"    {name}: {value}" for name, value in self.properties.items()]
        (self.home / ".pyiceberg.yaml").write_text("\n".join(["catalog:", "  lake:", *lines, ""]))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a command that uses the catalog."""
        own = {"PYICEBERG_HOME": str(self.home), "PYTHONPATH": str(golden.ROOT.parent)}
        endpoint = self.properties.get("s3.endpoint")
        of_store = {} if endpoint is None else {"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": servers.REGION}
        return {**os.environ, **own, **CREDENTIALS, **of_store}

    def arguments(self, *sources: Path, options: tuple[str, ...] = ()) -> list[str]:
        """Return the arguments of an export of sources into a table per topic."""
        to, table = f"{self.place}/{self.namespace}/{{topic}}", f"{self.namespace}.{{topic}}"
        fixed = ["--format", "iceberg", "--catalog", "lake", "--table", table, "-q"]
        return ["export", *map(str, sources), "--to", to, *fixed, *options]

    def run(self, command: "list[str]", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a command, and return its end."""
        environment = {**self.environment, **more}
        return subprocess.run(command, env=environment, cwd=self.home, capture_output=True, text=True, check=False)

    def export(self, *sources: Path, options: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        """Export sources into a table per topic."""
        return self.run([*KSEG, *self.arguments(*sources, options=options)])

    def stopping(self, point: str, *sources: Path, **more: str) -> "subprocess.CompletedProcess[str]":
        """Export sources, and stop at the first commit."""
        command = [sys.executable, "-m", "tests.catalogs.stopping_export", point, *self.arguments(*sources)]
        return self.run(command, **more)

    def rows(self, topic: str) -> list[dict[str, Any]]:
        """Return a table's rows as pyiceberg reads them through the catalog."""
        return self.table(topic).scan().to_arrow().to_pylist()

    def table(self, topic: str) -> Any:
        """Return a table of the catalog."""
        keys = {"s3.access-key-id": "x", "s3.secret-access-key": "y", "glue.access-key-id": "x"}
        own = {**self.properties, **keys, "glue.secret-access-key": "y"}
        return load_catalog("lake", **own).load_table(f"{self.namespace}.{topic}")

    def offsets(self, topic: str) -> list[tuple[int, int]]:
        """Return partition and offset of a table's rows, in order."""
        return sorted((row["partition"], row["offset"]) for row in self.rows(topic))


@pytest.fixture(scope="module", params=CATALOGS)
def catalog(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Yield each catalog, with the tables of Glue in S3 and those of the others on this machine."""
    home = tmp_path_factory.mktemp(request.param)
    with getattr(servers, request.param)(home) as properties:
        if "s3.endpoint" in properties:
            own = {"aws_access_key_id": "x", "aws_secret_access_key": "y", "region_name": servers.REGION}
            boto3.client("s3", endpoint_url=properties["s3.endpoint"], **own).create_bucket(Bucket="lake")
        lake = Lake(home, properties, "", "s3://lake" if "s3.endpoint" in properties else str(home / "lake"))
        lake.write_settings()
        yield lake


@pytest.fixture
def lake(catalog: Lake) -> Lake:
    """Return a catalog with an empty namespace."""
    return Lake(catalog.home, catalog.properties, f"raw{next(NAMESPACES)}", catalog.place)


def write(folder: Path, topic: str, partition: int, first: int, rows: int) -> Path:
    """Add a segment to a log, and return its directory."""
    path = folder / f"{topic}-{partition}"
    exports.write_log(path, first, rows)
    return path


def test_a_table_per_topic_grows_with_each_run(lake: Lake, tmp_path: Path) -> None:
    for first in (0, 20):
        for topic in ("orders", "pays.eu"):
            write(tmp_path, topic, 0, first, 20)
        for _ in range(2):  # the second time, nothing is new
            ended = lake.export(tmp_path)
            assert (ended.returncode, ended.stderr) == (0, "")
        for table in ("orders", "pays_eu"):
            assert lake.offsets(table) == [(0, offset) for offset in range(first + 20)]


def test_rows_of_changes_are_the_databases(lake: Lake, tmp_path: Path) -> None:
    database = Database(seed=3)
    database.snapshot(50)
    for number in range(3):
        database.change(100)
        database.write(tmp_path / "logs", late=[number] if number < 2 else ())
        ended = lake.export(tmp_path / "logs", options=("--unwrap", "debezium"))
        assert (ended.returncode, ended.stderr) == (0, "")
    rows = [
        {name: value for name, value in row.items() if value is not None and not name.startswith("_kseg")}
        for row in lake.rows("srv_customers")
    ]
    assert sorted(rows, key=lambda row: row["id"]) == expected(database)


@pytest.mark.parametrize("point", [BEFORE, AFTER])
@pytest.mark.parametrize("exists", [False, True], ids=["new", "grown"])
def test_a_run_killed_around_its_commit_is_continued(point: str, exists: bool, lake: Lake, tmp_path: Path) -> None:
    write(tmp_path, "orders", 0, 0, 20)
    if exists:
        assert lake.export(tmp_path).returncode == 0
        write(tmp_path, "orders", 0, 20, 20)
    assert lake.stopping(point, tmp_path).returncode == KILLED
    ended = lake.export(tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert lake.offsets("orders") == [(0, offset) for offset in range(40 if exists else 20)]


@pytest.mark.parametrize("exists", [False, True], ids=["new", "grown"])
def test_a_run_that_another_overtakes_adds_its_rows_too(exists: bool, lake: Lake, tmp_path: Path) -> None:
    one, other = (write(tmp_path, "orders", number, 0, 20) for number in range(2))
    ends = {0: 20, 1: 20}
    if exists:
        assert lake.export(tmp_path).returncode == 0
        for number in ends:
            write(tmp_path, "orders", number, 20, 20)
            ends[number] = 40
    ended = lake.stopping(MEET, one, **{OTHER: json.dumps([*KSEG, *lake.arguments(other)])})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert lake.offsets("orders") == [(number, offset) for number, end in ends.items() for offset in range(end)]


def test_runs_at_once_commit_each_offset_once_or_say_why_not(lake: Lake, tmp_path: Path) -> None:
    own = [write(tmp_path, "orders", number, 0, 20) for number in range(3)]
    commands = [[*KSEG, *lake.arguments(path)] for path in own]
    started = [
        subprocess.Popen(command, env=lake.environment, cwd=lake.home, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    for process in started:
        _, said = process.communicate()
        assert said.count("\n") == (process.returncode != 0), said
    assert lake.export(tmp_path).returncode == 0
    assert lake.offsets("orders") == [(number, offset) for number in range(3) for offset in range(20)]


def test_another_table_in_the_same_place_is_refused(lake: Lake, tmp_path: Path) -> None:
    write(tmp_path, "orders", 0, 0, 20)
    assert lake.export(tmp_path).returncode == 0
    ended = lake.run([*KSEG, *lake.arguments(tmp_path), "--table", f"{lake.namespace}.other_{{topic}}"])
    assert ended.returncode == 2
    assert f"has another table than {lake.namespace}.other_orders, or it is in another catalog;" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:{port}",
        pytest.param("thrift://127.0.0.1:{port}", marks=pytest.mark.stores),
        pytest.param("postgresql+psycopg2://kseg:secret@127.0.0.1:{port}/lake", marks=pytest.mark.stores),
    ],
)
def test_a_catalog_that_does_not_answer_is_one_line(uri: str, tmp_path: Path) -> None:
    write(tmp_path / "logs", "orders", 0, 0, 20)
    home = tmp_path / "home"
    home.mkdir()
    lake = Lake(home, {"uri": uri.format(port=free_port())}, "raw", str(tmp_path / "lake"))
    lake.write_settings()
    ended = lake.export(tmp_path / "logs")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert "the Iceberg table raw.orders can't be " in ended.stderr
    assert "secret" not in ended.stderr
