"""Records in Parquet files equal those in brokers' logs; damage is accounted for to the last offset."""

from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
from pyarrow import csv

from kseg.export.settings import MIB
from tests import golden
from tests.export import exports
from tests.export.conftest import WIPED, Exported
from tests.loops import for_each, some

# Segments in a remote tier are named by ids, too: no broker reads them as a partition.
FOLDERS = sorted(path for path in (golden.ROOT / "logs").iterdir() if not path.name.endswith("-tiered-remote"))


def expected_rows(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    directories = {path.parent for path in folder.rglob("*.log")}
    rows = {path.name: [exports.row_of(record) for record in exports.records_of(path)] for path in directories}
    return {name: found for name, found in rows.items() if found}


def assert_rows_are_the_logs_records(folder: Path, target_size: int, tmp_path: Path) -> None:
    report = exports.export([folder], tmp_path / "out", control=True, target_size=target_size)
    written = defaultdict(list)
    for topic, partition, table in exports.tables(tmp_path / "out"):
        written[topic if partition is None else f"{topic}-{partition}"] += exports.rows_of(table)
    assert written == expected_rows(folder)
    assert report.is_whole


@for_each("folder", some(FOLDERS, 2), ids=lambda folder: folder.name)
def test_rows_are_the_logs_records(folder: Path, tmp_path: Path) -> None:
    assert_rows_are_the_logs_records(folder, 256 * MIB, tmp_path)


@for_each("folder", some([path for path in FOLDERS if "-" not in path.name], 2), ids=lambda folder: folder.name)
def test_rows_are_the_logs_records_when_segments_are_cut(folder: Path, tmp_path: Path) -> None:
    assert_rows_are_the_logs_records(folder, 3000, tmp_path)


def test_internal_topics_are_not_hidden_from_readers(tmp_path: Path) -> None:
    report = exports.export([golden.ROOT / "logs" / "4.3.1"], tmp_path / "out")
    assert pq.read_table(tmp_path / "out").num_rows == sum(part.records_out for part in report.partitions)


def test_every_offset_of_damaged_logs_is_accounted_for(damaged_disk: Path, damaged_logs: Exported) -> None:
    partitions = damaged_logs.report.partitions
    assert [part for part in partitions if part.unexplained] == []
    assert sum(part.records_out + part.passed_over for part in partitions) == sum(
        record.is_valid for path in damaged_disk.rglob("*.log") for record in exports.records_of(path.parent)
    )


def test_a_side_table_has_a_row_for_each_damage(damaged_logs_without_control: Exported) -> None:
    report, out = damaged_logs_without_control
    rows = csv.read_csv(out / "_kseg" / "damages.csv").to_pylist()
    assert [(row["topic"], row["position"], row["size"], row["kind"], row["endOffset"]) for row in rows] == [
        (part.topic, loss.position, loss.size, loss.kind, loss.end)
        for part in report.partitions
        for loss in part.damages
    ]
    (wiped,) = (row for row in rows if row["topic"] == WIPED)
    assert (wiped["position"], wiped["firstOffset"], wiped["endOffset"]) == (237, 21938, 21939)
    assert "kind" not in pq.read_table(out).column_names
