"""`kseg spark-export --dry-run`: it prints what would be done, and changes nothing anywhere."""

import json
import shlex
from pathlib import Path

import pytest

from tests import golden, run
from tests.export import exports

pytestmark = pytest.mark.spark


def kseg(*arguments: str | Path) -> run.Run:
    return run.kseg([str(argument) for argument in arguments], golden.ROOT)


def test_a_dry_run_leaves_a_commit_that_was_broken_off_as_it_is(tmp_path: Path) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 10)
    assert kseg("export", source, out).status == 0
    (manifest,) = (out / "_kseg").glob("manifest-*")
    (file,) = json.loads(manifest.read_bytes())["results"][0]["files"]
    (out / "_kseg" / "attempts").mkdir(exist_ok=True)
    (out / file["path"]).rename(out / file["attempt"])
    before = {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")}
    ran = kseg("spark-export", "--dry-run", source, out)
    assert (ran.status, ran.stderr) == (0, b"")
    assert {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")} == before
    manifest.write_bytes(b"[]")
    ran = kseg("spark-export", "--dry-run", source, out)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)


def test_the_command_line_for_spark_submit_asks_for_the_same(tmp_path: Path) -> None:
    options = ["--topic", "*txn", "--partition", "0,4-7", "--no-control", "--value-decoder", "string"]
    asked = [*options, "--from-time", "2026-01-01", "--tz", "+01:00", "--partition-by", "none"]
    ran = kseg("spark-export", "--dry-run", "--master", "spark://head:7077", "logs/4.3.1", "--to", tmp_path, *asked)
    assert (ran.status, ran.stderr) == (0, b"")
    arguments = shlex.split(ran.stdout.decode().splitlines()[-1])
    assert set(asked) <= set(arguments)
    assert arguments[-2:] == [str(golden.ROOT / "logs/4.3.1"), str(tmp_path)]
