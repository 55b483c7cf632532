"""`kseg dump -o json`: keys and their order, and that nothing of what a log holds is lost."""

import json
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kseg
from kseg.formats.codes import Codec, TimestampType
from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden, run
from tests.kernel.made import MARKER_KEY, MARKER_VALUE, BatchHeader, Record, batch
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import some
from tests.releases import NEWEST

BATCH_KEYS = [
    *("type", "file", "position", "size", "baseOffset", "lastOffset", "count", "magic", "compression", "crc"),
    *("isValid", "attributes", "timestampType", "baseTimestamp", "maxTimestamp", "producerId", "producerEpoch"),
    *("baseSequence", "lastSequence", "partitionLeaderEpoch", "isTransactional", "isControl", "deleteHorizonMs"),
]
RECORD_KEYS = [
    *("type", "offset", "timestamp", "time", "timestampType", "sequence", "key", "value", "headers", "position"),
    *("isValid", "keySize", "valueSize"),
]
DAMAGE_KEYS = ["type", "kind", "position", "size", "detail", "nextOffset"]
SUMMARY_KEYS = ["type", "file", "batches", "records", "bytes", "lost"]
ONLY_V2 = ["baseTimestamp", "producerId", "producerEpoch", "baseSequence", "lastSequence", "partitionLeaderEpoch"]
FROM_V1 = ["maxTimestamp"]
TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
NAME = f"{0:020}.log"
SINGLES = [
    "classes-2.0.1/singles-v0/00000000000000001000.log",
    "classes-3.9.1/singles-v1/00000000000000001000.log",
    "classes-2.0.1/singles-v2/00000000000000001000.log",
]

Object = dict[str, Any]


class Dumped(NamedTuple):
    """Return the objects that a dump printed, and its run."""

    objects: list[Object]
    ran: run.Run

    def of(self, kind: str) -> list[Object]:
        return [item for item in self.objects if item["type"] == kind]


def dump(directory: Path, *arguments: str) -> Dumped:
    ran = run.kseg(["dump", "-o", "json", *arguments], directory)
    return Dumped([json.loads(line) for line in ran.stdout.splitlines()], ran)


def dump_content(directory: Path, content: bytes, *arguments: str) -> Dumped:
    (directory / NAME).write_bytes(content)
    return dump(directory, *arguments, NAME)


def log(case: str) -> str:
    """The path in golden of a log, of CLASSES/CASE."""
    (path,) = (golden.ROOT / "logs" / case).glob("*.log")
    return str(path.relative_to(golden.ROOT))


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SINGLES)
def test_keys_of_batches_and_records_stand_in_their_order_in_every_format(name: str) -> None:
    dumped = dump(golden.ROOT / "logs", name)
    assert [list(item) for item in dumped.of("batch")] == [BATCH_KEYS] * 60
    assert [list(item) for item in dumped.of("record")] == [RECORD_KEYS] * 60
    assert [list(item) for item in dumped.of("summary")] == [SUMMARY_KEYS]


@pytest.mark.parametrize(("name", "absent"), list(zip(SINGLES, ([*ONLY_V2, *FROM_V1], ONLY_V2, []), strict=True)))
def test_what_a_format_does_not_have_is_null(name: str, absent: list[str]) -> None:
    item = dump(golden.ROOT / "logs", name).of("batch")[0]
    flags = [] if name == SINGLES[2] else ["isTransactional", "isControl"]
    assert sorted(key for key in item if item[key] is None) == sorted([*absent, *flags, "deleteHorizonMs"])


@pytest.mark.parametrize("case", ["classes-4.3.1/headers", "classes-3.9.1/mixed", "classes-4.3.1/control-raft"])
def test_lines_are_as_compact_as_json_can_be(case: str) -> None:
    for line in dump(golden.ROOT, log(case)).ran.stdout.splitlines():
        assert json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":")).encode() == line


def test_each_batch_stands_in_front_of_its_records() -> None:
    position = None
    for item in dump(golden.ROOT, log("classes-3.9.1/mixed")).objects[:-1]:
        position = item["position"] if item["type"] == "batch" else position
        assert item["position"] == position


# --- nothing is lost -------------------------------------------------------------------------------------------------


def text_of(item: Object, name: str) -> bytes | None:
    if f"{name}Base64" in item:
        return b64decode(item[f"{name}Base64"], validate=True)
    return None if item[name] is None else item[name].encode()


def headers_of(item: Object) -> list[tuple[bytes | None, bytes | None]]:
    return [(text_of(header, "key"), text_of(header, "value")) for header in item["headers"]]


def iso_time(milliseconds: int) -> str | None:
    if not 0 <= milliseconds < 253402300800000:
        return None
    whole = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def check_record(item: Object, record: kseg.Record, magic: int) -> None:
    assert (item["offset"], item["position"], item["isValid"]) == (record.offset, record.position, record.is_valid)
    assert (item["keySize"], item["valueSize"]) == (record.key_size, record.value_size)
    assert (text_of(item, "key"), text_of(item, "value")) == (record.key, record.value)
    assert headers_of(item) == [(header.key.encode(), header.value) for header in record.headers]
    assert item["timestampType"] == TYPES[record.timestamp_type]
    assert item["timestamp"] == (record.timestamp if magic else None)
    assert item["time"] == (iso_time(record.timestamp) if magic else None)
    assert item["sequence"] == (record.sequence if magic == 2 else None)


def check_batch(item: Object, one: kseg.Batch) -> None:
    always = ("position", "size", "baseOffset", "lastOffset", "count", "magic", "crc", "isValid", "attributes")
    told = (one.position, one.size, one.base_offset, one.last_offset, one.count, one.magic, one.crc, one.is_valid)
    assert tuple(item[key] for key in always) == (*told, one.attributes)
    assert item["compression"] == Codec(one.codec).name.lower()
    assert item["timestampType"] == TYPES[one.timestamp_type]
    assert item["maxTimestamp"] == (one.max_timestamp if one.magic else None)
    if one.magic == 2:
        new = ("baseTimestamp", "producerId", "producerEpoch", "baseSequence", "partitionLeaderEpoch")
        values = (one.base_timestamp, one.producer_id, one.producer_epoch, one.base_sequence)
        assert tuple(item[key] for key in new) == (*values, one.partition_leader_epoch)
        flags = (one.is_transactional, one.is_control, one.delete_horizon_ms)
        assert (item["isTransactional"], item["isControl"], item["deleteHorizonMs"]) == flags


@pytest.mark.parametrize("releases", ["0.", "1.", "2.", "3.", "4.", "classes-", "../docs"])
def test_json_of_every_golden_log_holds_all_that_the_log_holds(releases: str) -> None:
    paths = [path for path in golden.files(".log") if folder_of(path).startswith(releases)]
    assert paths
    for path in some(paths, 3):
        dumped = dump(path.parent, path.name)
        with kseg.open_segment(path) as segment:
            batches = list(segment.batches())
        magics = {one.position: one.magic for one in batches}
        records = [record for one in batches for record in one.records()]
        for item, one in zip(dumped.of("batch"), batches, strict=True):
            check_batch(item, one)
        for item, record in zip(dumped.of("record"), records, strict=True):
            check_record(item, record, magics[record.position])


def folder_of(path: Path) -> str:
    """The first folder below logs, or ../docs."""
    relative = path.relative_to(golden.ROOT)
    return relative.parts[1] if relative.parts[0] == "logs" else f"../{relative.parts[0]}"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"plain",
        "привет 🚀".encode(),
        b'"\\/\b\f\n\r\t\x00\x1f\x7f',
        b"\xff",
        b"ok\xc3",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"{offset}",
    ],
    ids=repr,
)
def test_any_text_comes_back(text: bytes, tmp_path: Path) -> None:
    content = batch(BatchHeader(), [Record(key=text, value=text, headers=[(b"h", text)])])
    (item,) = dump_content(tmp_path, content).of("record")
    assert (text_of(item, "key"), text_of(item, "value")) == (text, text)
    assert headers_of(item) == [(b"h", text)]


def test_bytes_that_are_no_utf_8_stand_in_a_key_of_their_own(tmp_path: Path) -> None:
    content = batch(BatchHeader(), [Record(key=b"\xff", value=b"\xfe", headers=[(b"h", b"\xfd")])])
    (item,) = dump_content(tmp_path, content).of("record")
    names = {"key": "keyBase64", "value": "valueBase64"}
    assert list(item) == [names.get(key, key) for key in RECORD_KEYS]
    assert (item["keyBase64"], item["valueBase64"]) == ("/w==", "/g==")
    assert item["headers"] == [{"key": "h", "valueBase64": "/Q=="}]


def test_name_of_a_header_that_is_no_utf_8_comes_back(tmp_path: Path) -> None:
    content = batch(BatchHeader(), [Record(headers=[(b"\xffname", b"value")])])
    (item,) = dump_content(tmp_path, content).of("record")
    assert headers_of(item) == [(b"\xffname", b"value")]


@pytest.mark.parametrize(
    "timestamp", [0, 1581597478310, 951782400000, 253402300799999, 253402300800000, -1, -(2**63), 2**63 - 1]
)
def test_time_is_the_timestamp_in_utc_where_a_year_of_four_digits_has_it(timestamp: int, tmp_path: Path) -> None:
    content = batch(BatchHeader(base_timestamp=timestamp), [Record()])
    (item,) = dump_content(tmp_path, content).of("record")
    assert (item["timestamp"], item["time"]) == (timestamp, iso_time(timestamp))


@pytest.mark.parametrize(
    ("log_append_time", "delta", "attributes", "told"),
    [
        (False, 7, 0, {}),
        (True, 7, 0, {"timestampDelta": 7}),
        (True, 0, 0, {}),
        (False, -1, -3, {"recordAttributes": -3}),
        (True, -1, 127, {"timestampDelta": -1, "recordAttributes": 127}),
    ],
)
def test_what_the_timestamp_does_not_tell_stands_behind_the_rest(
    log_append_time: bool, delta: int, attributes: int, told: Object, tmp_path: Path
) -> None:
    header = BatchHeader(attributes=8 * log_append_time, base_timestamp=50, max_timestamp=99)
    record = Record(timestamp_delta=delta, attributes=attributes)
    (item,) = dump_content(tmp_path, batch(header, [record])).of("record")
    assert list(item) == [*RECORD_KEYS, *told]
    assert {name: item[name] for name in told} == told


# --- control records -------------------------------------------------------------------------------------------------


def test_markers_tell_their_type_and_the_coordinators_epoch() -> None:
    markers = [item for item in dump(golden.ROOT, log("classes-4.3.1/transactions")).of("record") if "control" in item]
    assert list(markers[0]) == [*RECORD_KEYS, "control"]
    assert [item["control"] for item in markers[:2]] == [
        {"type": "COMMIT", "version": 0, "coordinatorEpoch": 0},
        {"type": "ABORT", "version": 0, "coordinatorEpoch": 7},
    ]


def test_control_records_of_kraft_tell_what_they_hold() -> None:
    controls = [item["control"] for item in dump(golden.ROOT, log("classes-4.3.1/control-raft")).of("record")]
    kinds = ["LEADER_CHANGE", "SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", "SNAPSHOT_FOOTER", "LEADER_CHANGE"]
    assert [control["type"] for control in controls] == kinds
    assert controls[2] == {"type": "KRAFT_VERSION", "version": 0, "data": {"version": 0, "kRaftVersion": 1}}
    assert [voter["voterId"] for voter in controls[3]["data"]["voters"]] == [0, 1, 2]


def test_control_record_of_an_unknown_type_tells_its_number() -> None:
    first = dump(golden.ROOT, log("classes-4.3.1/control-unknown")).of("record")[0]
    assert first["control"] == {"type": 77, "version": 0}


@pytest.mark.parametrize(
    ("key", "value"), [(None, None), (b"\0\0\0", MARKER_VALUE), (MARKER_KEY, b"\0\0"), (MARKER_KEY, None)]
)
def test_control_record_that_can_not_be_one_is_null_and_a_damage(
    key: bytes | None, value: bytes | None, tmp_path: Path
) -> None:
    dumped = dump_content(tmp_path, batch(BatchHeader(attributes=0x20), [Record(key=key, value=value)]))
    (item,), (damage,) = dumped.of("record"), dumped.of("damage")
    assert item["control"] is None
    assert (text_of(item, "key"), text_of(item, "value")) == (key, value)
    assert damage["kind"] == "bad-record"


@pytest.mark.parametrize("kind", [2, 3, 4, 5, 6])
def test_control_record_of_kraft_whose_value_can_not_be_read_has_no_data(kind: int, tmp_path: Path) -> None:
    record = Record(key=bytes([0, 0, 0, kind]), value=b"\xff")
    (item,) = dump_content(tmp_path, batch(BatchHeader(attributes=0x20), [record])).of("record")
    assert item["control"]["data"] is None


# --- damage and summary ----------------------------------------------------------------------------------------------

HEALTHY = batch(BatchHeader(), [Record(value=b"first")])
NEXT = batch(BatchHeader(1), [Record(value=b"second")])
HOLE = b"\xff" * 50


def test_damage_stands_where_it_lies(tmp_path: Path) -> None:
    dumped = dump_content(tmp_path, HEALTHY + HOLE + NEXT)
    assert [item["type"] for item in dumped.objects] == ["batch", "record", "damage", "batch", "record", "summary"]
    damage = dumped.objects[2]
    assert list(damage) == DAMAGE_KEYS
    assert (damage["position"], damage["size"], damage["nextOffset"]) == (len(HEALTHY), 50, 1)
    assert dumped.ran.status == 1


def test_damage_of_records_stands_behind_those_that_can_be_read(tmp_path: Path) -> None:
    damaged = batch(BatchHeader(count=2), [Record(value=b"first")])
    dumped = dump_content(tmp_path, damaged + NEXT)
    assert [item["type"] for item in dumped.objects] == ["batch", "record", "damage", "batch", "record", "summary"]


def test_summary_counts_what_was_printed_and_lost(tmp_path: Path) -> None:
    (summary,) = dump_content(tmp_path, HEALTHY + HOLE + NEXT).of("summary")
    size = len(HEALTHY) + 50 + len(NEXT)
    assert summary == {"type": "summary", "file": NAME, "batches": 2, "records": 2, "bytes": size, "lost": 50}


def test_empty_log_has_a_summary_alone(tmp_path: Path) -> None:
    dumped = dump_content(tmp_path, b"")
    assert dumped.objects == [{"type": "summary", "file": NAME, "batches": 0, "records": 0, "bytes": 0, "lost": 0}]
    assert dumped.ran.status == 0


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("only", "kind"), [("records", "record"), ("batches", "batch")])
def test_only_one_type_is_left_on_stdout_and_the_rest_told_on_stderr(only: str, kind: str, tmp_path: Path) -> None:
    dumped = dump_content(tmp_path, HEALTHY + HOLE + NEXT, "--only", only)
    assert [item["type"] for item in dumped.objects] == [kind, kind]
    told = [json.loads(line) for line in dumped.ran.stderr.splitlines()]
    assert [item["type"] for item in told] == ["damage", "summary"]
    assert told[1]["lost"] == 50
    assert dumped.ran.status == 1


@pytest.mark.parametrize("only", ["records", "batches"])
def test_only_one_type_prints_the_same_objects(only: str) -> None:
    path = log("classes-3.9.1/mixed")
    whole, part = dump(golden.ROOT, path), dump(golden.ROOT, "--only", only, path)
    assert part.objects == whole.of({"records": "record", "batches": "batch"}[only])


def test_records_name_their_file_only_where_several_are_read(tmp_path: Path) -> None:
    names = [f"{offset:020}.log" for offset in (0, 1)]
    for name, content in zip(names, (HEALTHY, NEXT), strict=True):
        (tmp_path / name).write_bytes(content)
    several = dump(tmp_path, *names).of("record")
    assert [item["file"] for item in several] == names
    assert list(several[0]) == ["type", "file", *RECORD_KEYS[1:]]
    assert [list(item) for item in dump(tmp_path, names[0]).of("record")] == [RECORD_KEYS]


def test_directory_counts_as_several_files(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(HEALTHY)
    (record,) = dump(tmp_path, ".").of("record")
    assert record["file"] == f"./{NAME}"


def test_records_name_their_partition_only_where_several_may_be_read(tmp_path: Path) -> None:
    for partition in ("logs/orders-0", "logs/orders-12", "logs/segments"):
        (tmp_path / partition).mkdir(parents=True)
        (tmp_path / partition / NAME).write_bytes(HEALTHY)
    records = dump(tmp_path, "logs").of("record")
    places = [(item["file"], item["topic"], item["partition"]) for item in records]
    assert places == [
        (f"logs/orders-0/{NAME}", "orders", 0),
        (f"logs/orders-12/{NAME}", "orders", 12),
        (f"logs/segments/{NAME}", None, None),
    ]
    assert list(records[0]) == ["type", "file", "topic", "partition", *RECORD_KEYS[1:]]
    assert dump(tmp_path, "logs/orders-0", f"logs/orders-12/{NAME}", "logs/segments/").of("record") == records
    assert dump(tmp_path, "logs", "--topic", "orders", "--partition", "12").of("record") == records[1:2]
    (alone,) = dump(tmp_path, "logs/orders-0", f"./logs/orders-0/{NAME}", "--limit", "1").of("record")
    assert list(alone) == ["type", "file", *RECORD_KEYS[1:]]


@pytest.mark.parametrize("name", ["a{b}c.log", 'quote"d.log', "back\\slash.log", "нет.log"])
def test_any_name_of_a_file_comes_back(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(HEALTHY)
    objects = dump(tmp_path, name).objects
    assert [item["file"] for item in objects if "file" in item] == [name, name]


def test_summary_counts_the_same_with_and_without_records() -> None:
    path = log("classes-3.9.1/mixed")
    whole = dump(golden.ROOT, path).of("summary")[0]
    told = json.loads(dump(golden.ROOT, "--only", "batches", path).ran.stderr)
    assert told == whole


def test_json_and_a_releases_text_do_not_go_together(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(HEALTHY)
    ran = dump(tmp_path, "--like", "2.8", NAME).ran
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"--like" in ran.stderr


def test_only_needs_json(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(HEALTHY)
    ran = run.kseg(["dump", "--only", "records", NAME], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"-o json" in ran.stderr


@pytest.mark.parametrize("form", ["text", "json", "csv", "table"])
@pytest.mark.parametrize("limit", ["9000", "8800", "1"])
def test_batch_that_a_limit_of_bytes_cuts_is_no_damage(form: str, limit: str) -> None:
    path = "docs/test-1-0/00000000000000203000.log"
    ran = run.kseg(["dump", "-o", form, "--max-bytes", limit, path], golden.ROOT)
    assert (ran.status, ran.stderr, b"damage" in ran.stdout) == (0, b"", False)


@pytest.mark.parametrize(("decoder", "status"), [("offsets", 1), ("cluster-metadata", 0), ("remote-log-metadata", 0)])
@pytest.mark.parametrize("form", ["text", "json", "csv", "table"])
def test_internal_topics_decoder_fails_in_each_form_where_the_tool_would(form: str, decoder: str, status: int) -> None:
    path = "docs/test-1-0/00000000000000203000.log"
    ran = run.kseg(["dump", "-o", form, f"--{decoder}-decoder", path], golden.ROOT)
    assert ran.status == status


@pytest.mark.parametrize("only", ["records", "batches"])
def test_only_of_a_directory_leaves_out_its_other_files(only: str) -> None:
    everything = dump(golden.ROOT, "docs/test-1-0").objects
    left = dump(golden.ROOT, "--only", only, "docs/test-1-0").objects
    wanted = {"records": "record", "batches": "batch"}[only]
    assert [each["type"] for each in left] == [each["type"] for each in everything if each["type"] == wanted]


# --- what is newer than kseg knows -----------------------------------------------------------------------------------

NEW_TAG = b"\x01\x63\x02hi"
"""Tagged fields: one, of tag 99 and two bytes."""
METADATA = {
    "a newer version": (
        b"\1\4\7" + build_message(message_schema("ConfigRecord"), 0, {"resourceName": "t", "name": "n", "value": "v"}),
        f"ConfigRecord version 7 is newer than kseg supports, up to Kafka {NEWEST}",
    ),
    "a new tagged field": (
        b"\1\x1d\0" + (5).to_bytes(4, "big") + NEW_TAG,
        f"UnregisterControllerRecord version 0 has tagged fields 99, newer than kseg supports, up to Kafka {NEWEST}",
    ),
}


@pytest.mark.parametrize(("value", "said"), METADATA.values(), ids=METADATA)
def test_what_is_newer_than_kseg_knows_is_said(value: bytes, said: str, tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    write_segment(directory, [NewBatch([NewRecord(None, value)])])
    ran = run.kseg(["dump", "__cluster_metadata-0", "-o", "json", "--only", "records"], tmp_path)
    record = json.loads(ran.stdout)
    assert record["valueError"] == said
    assert record["valueDecoded"]["data"]
    log = f"__cluster_metadata-0/{0:020}.log"
    assert f"kseg: {log}: 1 record isn't shown completely; the first at offset 0: {said}\n" in ran.stderr.decode()
    viewed = run.kseg(["metadata", "__cluster_metadata-0"], tmp_path)
    assert viewed.status == 1
    assert f"kseg: __cluster_metadata: offset 0: {said}\n" in viewed.stderr.decode()


def test_types_that_are_newer_than_kseg_knows_are_said(tmp_path: Path) -> None:
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([NewRecord(None, b"\1\x30\0\0")])])
    viewed = run.kseg(["metadata", "__cluster_metadata-0"], tmp_path)
    assert viewed.status == 1
    assert f"offset 0: it is newer than kseg supports, up to Kafka {NEWEST}: " in viewed.stderr.decode()


def test_records_of_4_4_are_known(tmp_path: Path) -> None:
    value = build_message(message_schema("UnregisterControllerRecord"), 0, {"controllerId": 7})
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([NewRecord(None, b"\1\x1d\0" + value)])])
    ran = run.kseg(["dump", "__cluster_metadata-0", "-o", "json", "--only", "records"], tmp_path)
    wanted = {"type": "UNREGISTER_CONTROLLER_RECORD", "version": 0, "data": {"controllerId": 7}}
    assert json.loads(ran.stdout)["valueDecoded"] == wanted
    log = f"__cluster_metadata-0/{0:020}.log"
    options = ["--cluster-metadata-decoder", "--files", log]
    assert b"UNREGISTER_CONTROLLER" in run.kseg(["dump", "--like", "4.4", *options], tmp_path).stdout
    assert b"UNREGISTER_CONTROLLER" not in run.kseg(["dump", "--like", "4.3", *options], tmp_path).stdout
