"""The output and the status of `kseg export`."""

import json
import os
import resource
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import golden, run
from tests.export import exports


def kseg(*arguments: str | Path) -> run.Run:
    return run.kseg([str(argument) for argument in arguments], golden.ROOT)


def test_healthy_topics_end_with_0_and_a_table(tmp_path: Path) -> None:
    ran = kseg("export", "logs/4.3.1", tmp_path / "out", "--topic", "zst*")
    assert (ran.status, ran.stderr) == (0, b"")
    assert ran.stdout.decode().splitlines()[1].split()[:6] == ["zstd", "0", "281", "571", "290", "290"]


def test_loss_ends_with_1_and_says_where(tmp_path: Path) -> None:
    ran = kseg("export", "damaged/210-wiped-batch", tmp_path / "out")
    assert ran.status == 1
    assert "at position 237: bad-length: length field is 0" in ran.stdout.decode()


def test_failfast_ends_with_2_in_one_line(tmp_path: Path) -> None:
    ran = kseg("export", "--fail-on-damage", "damaged/210-wiped-batch", tmp_path / "out")
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert b"at position 237: bad-length" in ran.stderr


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        ran = kseg("export", "logs/4.3.1", tmp_path / "out", "--topic", "zstd", "-j", "1", "-q")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert ran.stderr.startswith(b"kseg: %b/out/_kseg/attempts/" % bytes(tmp_path))
    assert ran.stderr.endswith(b".attempt: can't be written: File too large\n")
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(("by", "partitioning"), [("topic", "hive"), ("none", None)])
def test_the_longest_topic_keeps_no_other_from_its_place(by: str, partitioning: str | None, tmp_path: Path) -> None:
    topics = "a" * 249, "a" * 248 + "b", "zz"
    for topic in topics:
        exports.write_log(tmp_path / "logs" / f"{topic}-0", 0, 10)
    out = tmp_path / "out"
    for _ in range(2):
        assert kseg("export", "--partition-by", by, tmp_path / "logs", out).status == 0
    rows = pq.read_table(out, partitioning=partitioning).column("topic").to_pylist()
    assert sorted(rows) == sorted(topics * 10)
    assert not list((out / "_kseg").glob("attempts/*"))


def test_a_file_that_stays_in_the_way_keeps_no_other_from_its_place(tmp_path: Path) -> None:
    for topic in ("first", "second"):
        exports.write_log(tmp_path / "logs" / f"{topic}-0", 0, 10)
    kseg("export", tmp_path / "logs", tmp_path / "out")
    names = [path.relative_to(tmp_path / "out") for path in sorted((tmp_path / "out").rglob("*.parquet"))[-2:]]
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "logs" / "none-0").mkdir()
    kseg("export", tmp_path / "logs" / "none-0", tmp_path / "out")
    (tmp_path / "out" / names[0] / "in the way").mkdir(parents=True)
    ran = kseg("export", tmp_path / "logs", tmp_path / "out")
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert ran.stderr.startswith(b"kseg: %b: can't be written: " % bytes(tmp_path / "out" / names[0]))
    assert (tmp_path / "out" / names[1]).is_file()
    shutil.rmtree(tmp_path / "out" / names[0])
    assert kseg("export", tmp_path / "logs", tmp_path / "out").status == 0
    assert pq.read_table(tmp_path / "out", partitioning=None).num_rows == 20


def test_a_directory_whose_name_is_no_text_is_exported_too(tmp_path: Path) -> None:
    exports.write_log(Path(os.fsdecode(bytes(tmp_path / "logs") + b"/\xff\xfe-0")), 0, 10)
    exports.write_log(tmp_path / "logs" / "plain-0", 0, 10)
    assert kseg("export", tmp_path / "logs", tmp_path / "out").status == 0
    table = pq.read_table(tmp_path / "out", partitioning="hive")
    assert sorted(set(table.column("topic").to_pylist())) == ["\\udcff\\udcfe-0", "plain"]


def test_json_has_partitions_damages_and_a_summary(tmp_path: Path) -> None:
    ran = kseg("export", "damaged/210-wiped-batch", tmp_path / "out", "-o", "json")
    objects = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [entry["type"] for entry in objects] == ["partition", "damage", "summary"]
    assert objects[0]["lost"] == objects[1]["end"] - objects[1]["first"] == 1


def test_the_destination_may_be_an_option_and_the_source_the_current_directory(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "logs" / "orders-0", 0, 10)
    named = run.kseg(["export", "logs", "other-0", "--to", "out"], tmp_path)
    assert (named.status, named.stderr.count(b"\n")) == (2, 1)
    assert b"other-0" in named.stderr
    assert run.kseg(["export", "--to", "../out"], tmp_path / "logs").status == 0
    assert exports.offsets(tmp_path / "out", "orders") == list(range(10))


def test_quiet_prints_errors_only_and_the_report_lies_in_the_destination(tmp_path: Path) -> None:
    ran = kseg("export", "damaged/210-wiped-batch", tmp_path / "out", "-q")
    assert (ran.status, ran.stdout) == (1, b"")
    told = f"damage in 1 partition costs 1 offset; see {tmp_path}/out/_kseg/damages.csv\n"
    assert ran.stderr.decode() == f"kseg: 210-wiped-batch: {told}"
    assert not json.loads((tmp_path / "out" / "_kseg" / "report.json").read_bytes())["isWhole"]
    ran = kseg("export", "damaged/210-wiped-batch", "logs/nowhere", tmp_path / "two", "-q")
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.splitlines()[1].startswith(b"kseg: logs/nowhere: ")


def test_dry_run_prints_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    ran = kseg("export", "--dry-run", "logs/4.3.1", tmp_path / "out")
    assert ran.status == 0
    assert ran.stdout.decode().splitlines()[-1] == "7 partitions, 7 tasks, 42.8 KiB"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["logs/4.3.1"], "SOURCE"),
        (["logs/nowhere", "OUT"], "nowhere"),
        (["logs/4.3.1", "OUT", "--topic", "missing"], "--topic missing: no such partition here; there are __"),
        (["logs/4.3.1", "OUT", "--target-file-size", "big"], "big"),
        (["logs/4.3.1", "OUT", "--partition-by", "key"], "key"),
        (["logs/4.3.1", "OUT", "--from-time", "noon"], "noon"),
        (["logs/4.3.1", "OUT", "--control", "--isolation", "read_committed"], "--control"),
        (
            ["logs/4.3.1", "OUT", "--value-decoder", "value=json"],
            "--value-decoder value=json: no such decoder; specify one of string",
        ),
        (["logs/4.3.1", "--to", "damaged"], "isn't empty"),
        (["logs/4.3.1", "damaged"], "isn't empty"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_ends_with_2(arguments: list[str], complaint: str, tmp_path: Path) -> None:
    ran = kseg("export", *(str(tmp_path / "out") if text == "OUT" else text for text in arguments))
    assert (ran.status, ran.stdout) == (2, b"")
    assert complaint in ran.stderr.decode()


def test_processes_write_what_one_writes(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 40_000, per_batch=100, value=bytes(1000))
    ran = kseg("export", tmp_path / "orders-0", tmp_path / "out", "-j", "2", "-o", "json")
    assert ran.status == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["newFiles"] > 1
    assert exports.offsets(tmp_path / "out", "orders") == list(range(40_000))
