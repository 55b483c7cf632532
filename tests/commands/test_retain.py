"""`kseg retain`: forms, options, the copy."""

import json
from pathlib import Path

import pytest

from tests import golden, run

PARTITION = str(golden.ROOT / "logs" / "2.8.2" / "broker-lz4-0")


def kseg(*arguments: str, directory: Path = golden.ROOT) -> run.Run:
    return run.kseg(["retain", *arguments], directory)


@pytest.mark.parametrize(
    ("options", "retention"),
    [
        (["--now", "2026-10-09T09:47:09Z"], ["keep", "keep"]),
        (["--now", "2026-10-09T09:47:11Z"], ["delete-time", "keep"]),
        (["--now", "2026-10-02T12:00Z", "--retention-hours", "1"], ["delete-time", "delete-time"]),
        (["--now", "2026-10-02T12:00Z", "--retention-hours", "1", "--retention-ms", "-1"], ["keep", "keep"]),
        (["--now", "2026-10-02T12:00Z", "--retention-bytes", "1324"], ["delete-size", "keep"]),
    ],
)
def test_settings_are_kafkas(options: list[str], retention: list[str]) -> None:
    objects = [json.loads(line) for line in kseg(PARTITION, "--format", "json", *options).stdout.splitlines()]
    assert [each["retention"] for each in objects] == retention


def test_a_segment_is_a_line(tmp_path: Path) -> None:
    lines = kseg(PARTITION, "--now", "2026-11-21T00:00").stdout.decode().splitlines()
    assert lines[0] == PARTITION
    assert lines[2].split() == ["0", "5110", "2026-10-02T09:47:09Z", "delete-time", "2026-10-09T09:47:09Z"]


def test_a_timeline_shows_when_each_segment_goes() -> None:
    lines = kseg(PARTITION, "--now", "2026-10-05", "--format", "timeline").stdout.decode().splitlines()
    assert lines[1] == "  2026-10-02T09:46:40Z to 2026-10-09T09:47:17Z"
    assert lines[2].startswith("  █·")
    assert "|" in lines[2]
    assert lines[2].endswith("00000000000000000000 keep")


def test_a_copy_is_made_of_one_partition(tmp_path: Path) -> None:
    ran = kseg(PARTITION, "--now", "2026-10-09T09:47:11Z", "-o", "copy/t-0", directory=tmp_path)
    assert ran.status == 0
    assert [path.name for path in (tmp_path / "copy/t-0").glob("*.log")] == ["00000000000000000119.log"]
    assert kseg("logs/2.8.2", "-o", str(tmp_path / "other")).status == 2
    assert not (tmp_path / "other").exists()
