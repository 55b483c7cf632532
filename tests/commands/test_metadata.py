"""`kseg metadata`."""

import csv
import io
import json
from pathlib import Path

from kseg.formats.messages import build_message
from kseg.formats.schemas.cluster_metadata import CONFIG_RECORD
from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg

LOGS = golden.ROOT / "logs"


def objects(arguments: list[str], directory: Path = LOGS) -> list[dict[str, object]]:
    return [json.loads(line) for line in kseg(["metadata", "-o", "json", *arguments], directory).stdout.splitlines()]


def test_text_has_all_sections() -> None:
    run = kseg(["metadata", "4.3.1"], LOGS)
    assert (run.status, run.stderr) == (0, b"")
    headings = [line for line in run.stdout.decode().splitlines() if not line.startswith(" ")]
    assert headings == ["Features:", "Controllers:", "Brokers:", "Topics:", "Partitions:", "Configs:"]


def test_json_begins_with_the_moment_and_has_an_object_for_each() -> None:
    found = objects(["4.3.1"])
    assert found[0] == {
        "type": "metadata",
        "offset": 675,
        "timestamp": 1795256080884,
        "time": "2026-11-21T10:14:40.884Z",
        "checkpoint": "00000000000000000674-0000000002.checkpoint",
        "missingBefore": None,
        "unapplied": 0,
    }
    assert {row["type"] for row in found[1:]} == {"feature", "controller", "broker", "topic", "partition", "config"}
    topic = next(row for row in found if row["type"] == "topic" and row["topic"] == "compacted-txn")
    assert topic == {"type": "topic", "topic": "compacted-txn", "topicId": "RI-mAOSURAe7LydtHh4Q4Q", "partitions": 1}


def test_the_topics_id_is_the_one_of_its_directory() -> None:
    found = objects(["4.3.1", "--show", "topics", "--topic", "compacted-txn"])
    written = (LOGS / "4.3.1" / "compacted-txn-0" / "partition.metadata").read_text()
    assert [f"topic_id: {row['topicId']}" in written for row in found] == [True]


def test_csv_has_the_partitions() -> None:
    run = kseg(["metadata", "4.3.1", "-o", "csv"], LOGS)
    rows = list(csv.DictReader(io.StringIO(run.stdout.decode())))
    of_json = objects(["4.3.1", "--show", "partitions"])
    assert [(row["topic"], row["partition"], row["isr"]) for row in rows] == [
        (row["topic"], str(row["partition"]), " ".join(map(str, row["isr"])))  # type: ignore[call-overload]
        for row in of_json
    ]


def test_at_takes_an_offset_or_a_time() -> None:
    by_offset = objects(["3.9.1-tiered", "--at", "60"])
    time = str(by_offset[0]["time"])
    by_time = objects(["3.9.1-tiered", "--at", time])
    assert by_time == objects(["3.9.1-tiered", "--at", str(by_time[0]["offset"])])
    assert by_time == objects(["3.9.1-tiered", "--at", str(by_offset[0]["timestamp"])])


def test_what_is_missing_is_said_and_ends_with_1() -> None:
    run = kseg(["metadata", "4.3.1", "--at", "600"], LOGS)
    assert run.status == 1
    assert b"records before offset 510 are missing" in run.stderr
    assert kseg(["metadata", "4.3.1", "--at", "600", "-q"], LOGS).stderr == b""


def config(name: str, value: str) -> NewRecord:
    fields = {"resourceType": 4, "resourceName": "1", "name": name, "value": value}
    return NewRecord(None, b"\1\4\0" + build_message(CONFIG_RECORD, 0, fields))


def test_passwords_are_hidden_in_every_form(tmp_path: Path) -> None:
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([config("ssl.key.password", "s3cret")])])
    for form in ("text", "json", "csv", "table"):
        run = kseg(["metadata", ".", "--show", "configs", "-o", form], tmp_path)
        assert b"s3cret" not in run.stdout
        assert b"(hidden)" in run.stdout


def test_text_of_files_does_no_harm_to_a_terminal(tmp_path: Path) -> None:
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([config("x\x1b[2J", "[red]\x9b1m[/red]\n")])])
    for form in ("text", "table"):
        shown = kseg(["metadata", ".", "-o", form], tmp_path).stdout.decode()
        assert all(char.isprintable() or char == "\n" for char in shown)
        assert "[red]" in shown


def test_a_time_that_is_none_is_refused() -> None:
    run = kseg(["metadata", "4.3.1", "--at", "-5"], LOGS)
    assert run.status == 2
    assert b"'-5' is no time" in run.stderr


def test_help_has_examples() -> None:
    assert b"Examples:" in kseg(["metadata", "--help"], LOGS).stdout
