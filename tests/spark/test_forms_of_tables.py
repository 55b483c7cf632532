"""Tables by Spark with folders, orders of rows, flat columns, or one per topic: the rows equal those of an export."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kseg.export.commit.formats import FORMATS
from tests.export import every_partition
from tests.export.growing_logs import ORDERS, SCHEMA, GrowingLogs, write_orders
from tests.log_files import NewBatch, NewRecord, write_segment

pytestmark = pytest.mark.spark

TYPED = ("--topic", ORDERS, "--value-decoder", "json", "--schema", "schema.json", "--max-undecoded", "100%")
FLAT = (*TYPED, "--flatten", "--drop", "raw")
FORMS: dict[str, tuple[str, ...]] = {
    "flat": ("out", "--partition-by", "topic,dt", "--sort-by", "key,offset", *FLAT),
    "topics": ("lake/{topic}", "--partition-by", "bucket(4)", "--sort-by", "timestamp", "--headers", "map"),
    "field": ("out/{topic}", "--partition-by", "value.country", *TYPED, "--dead-letter", "dead"),
}
"""A destination and options, by the name of a form."""
WAYS = {"export": ("export",), "spark": ("spark-export", "--master", "local[2]")}


def rows(folder: Path, table_format: str, per_topic: bool) -> list[Any]:
    """Return all rows of the tables below a folder as text, in order."""
    (out,) = (path for path in folder.iterdir() if path.name != "dead")
    places = sorted(path for path in out.iterdir()) if per_topic else [out]
    return sorted(repr(row) for place in places for row in every_partition.TABLES[table_format](place).to_pylist())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table_format", FORMATS)
def test_rows_are_those_of_an_export_also_after_a_second_run(table_format: str, form: str, tmp_path: Path) -> None:
    destination, *options = FORMS[form]
    chance = Random(7)
    made = tmp_path / "made"
    write_segment(made / "pays.eu-0", [NewBatch([NewRecord(b"k%d" % number, b"v")], number) for number in range(20)])
    logs = GrowingLogs(tmp_path / "logs", write_orders(made, chance) | {("pays.eu", 0): made / "pays.eu-0"}, chance)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    for left in (2, 1):
        logs.grow(left)
        for way, command in WAYS.items():
            to = f"{way}/{destination}"
            own = [each if each != "dead" else f"{way}/dead" for each in options]
            whole = [sys.executable, "-m", "kseg", *command, "logs", "--to", to, "--format", table_format, *own]
            ran = subprocess.run(whole, capture_output=True, check=False, cwd=tmp_path)
            assert ran.returncode == 0, ran.stderr.decode()
        found = {way: rows(tmp_path / way, table_format, "{" in destination) for way in WAYS}
        assert found["spark"] == found["export"]
        assert found["spark"]
    letters = {way: sorted((tmp_path / way / "dead").rglob("*.parquet")) for way in WAYS}
    assert len(letters["spark"]) == len(letters["export"])
    assert ("--dead-letter" in options) == bool(letters["spark"])
