"""`kseg compact`: forms, options, exit status."""

import json
from pathlib import Path

import pytest

from tests import golden, run
from tests.commands.test_remote_tier import write_metadata

PARTITION = str(golden.ROOT / "logs" / "2.8.2" / "broker-lz4-0")


def kseg(directory: Path, *arguments: str) -> run.Run:
    return run.kseg(["compact", *arguments], directory)


def build(directory: Path, *lines: str, separator: bool = True) -> None:
    """Write a partition `t-0` of records KEY=VALUE, three to a segment; or of values alone."""
    (directory / "lines").write_text("".join(f"{line}\n" for line in lines))
    options = ["--segment-bytes", "1", "--batch-records", "3", *(["--key-separator", "="] if separator else [])]
    assert run.kseg(["build", "lines", "--input-format", "text", "--to", "t-0", *options], directory).status == 0
    (directory / "lines").unlink()


def test_a_dry_run_tells_how_much_would_go(tmp_path: Path) -> None:
    build(tmp_path, "a=1", "b=1", "a=2", "b=2", "c=1", "d=1", "x=1")
    before = sorted(tmp_path.rglob("*"))
    lines = kseg(tmp_path, "t-0", "--dry-run").stdout.decode().splitlines()
    assert sorted(tmp_path.rglob("*")) == before
    assert lines[0].startswith("t-0: cleaned offsets below 6, dirty from 0 on; ")
    assert lines[0].endswith(" B after that unchanged: the active segment")
    assert lines[1].startswith("  kept 4 of 6 records, ")
    assert lines[2:] == [
        "  removed 2: superseded by a later record of the same key",
        "  2 segments become 1, in 1 pass",
    ]


def test_a_cleaned_copy_is_made(tmp_path: Path) -> None:
    build(tmp_path, "a=1", "b=1", "a=2", "b=2", "c=1", "d=1", "x=1")
    assert kseg(tmp_path, "t-0", "--to", "new/t-0", "-q").stdout == b""
    shown = run.kseg(["dump", "new/t-0", "--template", "{offset} {key}"], tmp_path).stdout
    assert shown.decode().split("\n")[:-1] == ["2 a", "3 b", "4 c", "5 d", "6 x"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["t-0"]


def test_json_has_every_count(tmp_path: Path) -> None:
    build(tmp_path, "a=1", "b=1", "a=2", "b=2", "c=1", "d=1", "x=1")
    ran = kseg(tmp_path, "t-0", "--dry-run", "-o", "json", "--log-cleaner-dedupe-buffer-size", "96")
    told = json.loads(ran.stdout)
    assert (told["type"], told["records"], told["kept"], told["passes"]) == ("compaction", 6, 4, 2)
    assert told["gone"] == {"superseded": 2, "tombstone": 0, "aborted": 0, "marker": 0, "noKey": 0}
    assert told["newSegments"] == [{"baseOffset": 0, "size": told["bytesKept"], "madeOf": [0, 3]}]


def test_the_topics_settings_hold_unless_options_are_given(tmp_path: Path) -> None:
    build(tmp_path, "a=1", "b=1", "a=2", "b=2", "c=1", "d=1", "x=1")
    (tmp_path / "t-0").rename(tmp_path / "orders-0")
    (tmp_path / "static").write_text("log.cleaner.min.compaction.lag.ms=3600000")
    lagging = "3600000"

    def kept(*arguments: str) -> int:
        ran = kseg(tmp_path, "orders-0", "--dry-run", "-o", "json", *arguments)
        return int(json.loads(ran.stdout)["kept"])

    assert (kept(), kept("--server-properties", "static"), kept("--min-compaction-lag-ms", lagging)) == (4, 0, 0)
    write_metadata(tmp_path / "ctl", min_compaction_lag_ms=lagging)
    assert (kept(), kept("--cluster-metadata", "ctl"), kept("--topic", "orders", "ctl")) == (4, 0, 0)
    write_metadata(tmp_path, min_compaction_lag_ms=lagging)
    assert (kept(), kept("--min-compaction-lag-ms", "0")) == (0, 4)


def test_records_without_a_key_are_reported_of(tmp_path: Path) -> None:
    build(tmp_path, "1", "2", "3", "4", separator=False)
    ran = kseg(tmp_path, "t-0", "--dry-run")
    assert (ran.status, ran.stderr) == (
        1,
        b"kseg: t-0: 3 records have no key: dropped\n"
        b"kseg: settings: delete.retention.ms and min.compaction.lag.ms from Kafka's default;"
        b" no metadata of the cluster read\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [PARTITION],
        [PARTITION, "--to", "t-0", "--dry-run"],
        [str(golden.ROOT / "logs" / "2.8.2"), "--to", "t-0"],
        [PARTITION, "--to", f"{PARTITION}/new"],
        [str(golden.ROOT / "damaged" / "004-torn-records"), "--to", "t-0", "--log-cleaner-dedupe-buffer-size", "1"],
    ],
)
def test_wrong_usage_leaves_nothing_behind(arguments: list[str], tmp_path: Path) -> None:
    ran = kseg(tmp_path, *arguments)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert list(tmp_path.iterdir()) == []


def test_many_partitions_are_reported_of_by_a_dry_run() -> None:
    ran = kseg(golden.ROOT, "logs/0.10.2.2", "--dry-run", "--first-dirty-offset", "0")
    assert b"logs/0.10.2.2/compacted-0: " in ran.stdout


def test_a_dry_run_omits_topics_that_kafka_does_not_compact_unless_named(tmp_path: Path) -> None:
    build(tmp_path, "a=1", "a=2", "b=1", "x=1")
    (tmp_path / "t-0").rename(tmp_path / "orders-0")
    write_metadata(tmp_path, cleanup_policy="delete")
    ran = kseg(tmp_path, ".", "--dry-run")
    assert b"orders-0: cleaned" not in ran.stdout
    assert (
        b"orders-0: Kafka doesn't compact it, since its cleanup.policy is delete; specify --topic orders" in ran.stderr
    )
    for named in ([".", "--topic", "orders"], ["orders-0"]):
        assert b"orders-0: cleaned offsets" in kseg(tmp_path, *named, "--dry-run").stdout
