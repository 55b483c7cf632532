"""Exports of remote tiers by Spark: on this machine, all bytes are fetched before its processes read them."""

import subprocess
import sys
from pathlib import Path

import pyarrow.dataset
import pytest

from tests import golden
from tests.run import kseg

pytestmark = pytest.mark.spark

SOURCE = [str(golden.ROOT / "tiered" / "bucket"), "--private-key", f"key1={golden.ROOT / 'tiered' / 'private.pem'}"]
COLUMNS = ["offset", "key", "value", "partition"]


def test_spark_exports_what_kseg_exports_of_a_tier(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kseg", "spark-export", *SOURCE, "by-spark", "--master", "local[2]"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr
    assert kseg(["export", *SOURCE, "by-kseg"], tmp_path).status == 0
    by_spark, by_kseg = (
        pyarrow.dataset.dataset(tmp_path / name, partitioning="hive", exclude_invalid_files=True)
        .to_table([*COLUMNS, "topic"])
        .sort_by([("topic", "ascending"), ("offset", "ascending")])
        for name in ("by-spark", "by-kseg")
    )
    assert by_spark.equals(by_kseg)
    assert by_spark.num_rows == 387


def test_cluster_is_refused_a_tier(tmp_path: Path) -> None:
    ran = kseg(["spark-export", *SOURCE, "out", "--master", "spark://head:7077"], tmp_path)
    assert ran.status == 2
    assert b"a cluster's executors can't read remote tiers; run `kseg salvage BUCKET --to DIR`" in ran.stderr
