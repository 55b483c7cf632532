"""`kseg retain`: forms, options, the copy."""

import json
import shutil
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


@pytest.mark.parametrize("form", ["text", "json", "timeline"])
def test_where_all_segments_go_a_broker_has_rolled_an_empty_one(form: str, tmp_path: Path) -> None:
    ran = kseg(PARTITION, "--now", "2026-12-01", "--format", form, "-o", "broker-lz4-0", directory=tmp_path)
    assert ran.status == 0
    end = "00000000000000000150"
    copied = {path.name: path.read_bytes() for path in (tmp_path / "broker-lz4-0").iterdir()}
    assert {name: copied[name] for name in copied if name.endswith((".log", "index"))} == {
        f"{end}.log": b"", f"{end}.index": b"", f"{end}.timeindex": b"",
    }  # fmt: skip
    assert [name for name in copied if name.endswith(".snapshot")] == [f"{end}.snapshot"]
    last = ran.stdout.decode().splitlines()[-1]
    if form == "json":
        assert json.loads(last) == {"type": "copy", "directory": "broker-lz4-0", "baseOffsets": [150], "rolled": 150}
    else:
        assert last == "broker-lz4-0: no segment is left; an empty one at the log end offset 150 is written"
    assert run.kseg(["verify", "broker-lz4-0"], tmp_path).status == 0


def test_the_report_tells_what_was_copied(tmp_path: Path) -> None:
    ran = kseg(PARTITION, "--now", "2026-10-09T09:47:11Z", "-o", "copy", directory=tmp_path)
    assert ran.stdout.decode().splitlines()[-1] == "copy: 1 segment copied"


def test_the_empty_segment_has_its_producers_snapshot(tmp_path: Path) -> None:
    partition = Path(shutil.copytree(PARTITION, tmp_path / "broker-lz4-0"))
    snapshot = "00000000000000000150.snapshot"
    (partition / snapshot).unlink()
    assert kseg("broker-lz4-0", "--now", "2026-12-01", "-o", "copy", directory=tmp_path).status == 0
    assert (tmp_path / "copy" / snapshot).read_bytes() == (Path(PARTITION) / snapshot).read_bytes()


def decisions(*arguments: str) -> dict[str, set[tuple[str, bool]]]:
    """Of each topic's segments: what becomes of them, and whether they expire."""
    found: dict[str, set[tuple[str, bool]]] = {}
    for line in kseg("logs/4.3.1", "--now", "2030-01-01", "--format", "json", *arguments).stdout.splitlines():
        each = json.loads(line)
        topic = Path(each["directory"]).name.rpartition("-")[0]
        found.setdefault(topic, set()).add((each["retention"], each["expires"] is not None))
    return found


def test_the_topics_settings_are_those_of_the_metadata_beside() -> None:
    found = decisions()
    assert found["compacted-txn"] == {("keep", False)}  # cleanup.policy=compact
    assert found["__share_group_state"] == {("keep", False)}  # retention.ms=-1
    assert found["zstd"] == {("delete-time", True)}  # has none of its own
    assert found["__consumer_offsets"] == {("", False)}


def test_options_come_before_the_topics_settings() -> None:
    found = decisions("--retention-hours", "1")
    assert found["__share_group_state"] == {("delete-time", True)}
    assert found["compacted-txn"] == {("keep", False)}


@pytest.mark.parametrize(("form", "hint"), [("timeline", "the report's form is --format timeline; "), ("csv", "")])
def test_the_name_of_a_form_is_no_directory(form: str, hint: str, tmp_path: Path) -> None:
    ran = kseg(PARTITION, "-o", form, directory=tmp_path)
    assert ran.status == 2
    assert f"-o names the new directory here: {hint}./{form} is a directory of that name" in ran.stderr.decode()
    assert not (tmp_path / form).exists()
