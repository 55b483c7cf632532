"""HDFS that can't be reached: one line names the missing part, and nothing is taken for an empty directory."""

from pathlib import Path

import pytest

from kseg.errors import OpenError
from kseg.export.destination import open_destination
from tests import golden, run

NOWHERE = "webhdfs://127.0.0.1:1"
LOG = "docs/test-1-0"


def test_without_libhdfs_one_line_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "ARROW_LIBHDFS_DIR", "HADOOP_HOME"):
        monkeypatch.setenv(name, "/nowhere")
    ran = run.run_bounded(["export", LOG, "hdfs://head:8020/out"], golden.ROOT, memory=None)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert ran.stderr.startswith(b"kseg: hdfs://head:8020/: Unable to load lib")
    assert b"ARROW_LIBHDFS_DIR and CLASSPATH of a Hadoop client; webhdfs://head:9870/" in ran.stderr


@pytest.mark.parametrize("paths", [(f"{NOWHERE}/logs", "out"), (LOG, f"{NOWHERE}/out")], ids=["source", "destination"])
def test_a_namenode_that_does_not_answer_is_one_line(paths: tuple[str, str]) -> None:
    ran = run.kseg(["export", *paths], golden.ROOT)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert b"http://127.0.0.1:1/webhdfs/v1/" in ran.stderr
    assert b" doesn't answer" in ran.stderr
    assert not (golden.ROOT / "out").exists()


def test_a_namenode_that_does_not_answer_has_no_empty_directory(tmp_path: Path) -> None:
    place = open_destination(f"{NOWHERE}{tmp_path}")
    with pytest.raises(OpenError):
        place.read("_kseg/manifest-00000001.json")
    with pytest.raises(OpenError):
        list(place.names())
