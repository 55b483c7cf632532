"""CSV, tables, fields and decoders of `kseg dump`, and other files as objects."""

import csv
import io
import json
import re
from base64 import b64decode
from pathlib import Path
from struct import pack

import pytest
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kseg.decode.values import DECODERS
from kseg.layouts.record_columns import FIELD_NAMES
from tests import golden, run
from tests.decode.schemas_topic import new_client, schema_records, write_topic
from tests.kernel import made
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.terminal import in_terminal, plain

NASTY = '\x1b[2J\x1b]0;owned\x07[red]mark[/red] "quoted"\r\n\x9b31m\u202e'


def run_dump(directory: Path, *arguments: str) -> run.Run:
    return run.kseg(["dump", *arguments], directory)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Nulls, empty texts, quotes, bytes that aren't UTF-8, text that looks like Base64, headers."""
    records = [
        NewRecord(None, b""),
        NewRecord(b"", None),
        NewRecord(b"\xff\0", b'say "no",\nplease', headers=[("trace", b"1"), ("raw", b"\xff"), ("none", None)]),
        NewRecord(b"base64:AA==", NASTY.encode()),
    ]
    write_segment(tmp_path / "orders-3", [NewBatch(records)])
    return tmp_path


def test_csv_comes_back_with_nulls_and_bytes(partition: Path) -> None:
    ran = run_dump(partition, "orders-3", "-o", "csv", "--fields", "topic,partition,offset,key,value,headers")
    assert ran.stdout.startswith(
        b'topic,partition,offset,key,value,headers\n"orders",3,0,,"","[]"\n"orders",3,1,"",,"[]"\n'
    )
    rows = list(csv.reader(io.StringIO(ran.stdout.decode(), newline="")))[1:]
    assert b64decode(rows[2][3].removeprefix("base64:")) == b"\xff\0"
    assert rows[2][4] == 'say "no",\nplease'
    names = [header.get("key") for header in json.loads(rows[2][5])]
    assert names == ["trace", "raw", "none"]
    assert b64decode(rows[3][3].removeprefix("base64:")) == b"base64:AA=="
    assert rows[3][4] == NASTY


def test_fields_of_json_are_those_asked_for_in_their_order(partition: Path) -> None:
    ran = run_dump(partition, "orders-3", "-o", "json", "--fields", "value,offset,magic,isControl", "--limit", "1")
    assert ran.stdout == b'{"value":"","offset":0,"magic":2,"isControl":false}\n'


def test_fields_of_text_are_named(partition: Path) -> None:
    ran = run_dump(partition, "orders-3", "--fields", "offset,time,key,value", "--limit", "2")
    assert ran.stdout.splitlines() == [
        b"offset: 0 time: 2023-11-14T22:13:20.000Z key: null value: ",
        b"offset: 1 time: 2023-11-14T22:13:20.000Z key:  value: null",
    ]


RAW = b"\xff\xfe\x80|\xed\xa0\x80|\xc3"


def test_templates_and_text_give_bytes_as_they_are(tmp_path: Path) -> None:
    long = RAW * 100_000
    records = [NewRecord(RAW, b"v", headers=[("h", b"1")]), NewRecord(b"k", RAW), NewRecord(b"l", long)]
    write_segment(tmp_path / "t-0", [NewBatch(records)])
    lines = run_dump(tmp_path, "t-0", "--template", "{key}|{value}").stdout
    assert lines == RAW + b"|v\nk|" + RAW + b"\nl|" + long + b"\n"
    rows = run_dump(tmp_path, "t-0", "--fields", "key,value").stdout
    assert rows == b"key: " + RAW + b" value: v\nkey: k value: " + RAW + b"\nkey: l value: " + long + b"\n"
    lines = run_dump(tmp_path, f"t-0/{0:020}.log", "--print-data-log").stdout
    assert b" key: " + RAW + b" payload: v\n" in lines
    assert lines.endswith(b" key: l payload: " + long + b"\n")


def test_templates_know_where_a_record_is(tmp_path: Path) -> None:
    for name in ("logs/orders-0", "logs/orders-12", "logs/{a}\\"):
        write_segment(tmp_path / name, [NewBatch([NewRecord(b"k", b"v")])])
    log = f"{0:020}.log"
    lines = run_dump(tmp_path, "logs", "--template", r"\{topic\} {topic} {partition}\t{key?{file}}").stdout.decode()
    assert lines.splitlines() == [
        f"{{topic}} orders 0\tlogs/orders-0/{log}",
        f"{{topic}} orders 12\tlogs/orders-12/{log}",
        f"{{topic}} null null\tlogs/{{a}}\\/{log}",
    ]


def test_names_of_headers_are_given_as_they_are(tmp_path: Path) -> None:
    record = made.Record(value=b"v", headers=[(b"\xff", b"1"), (b"b", None)])
    (tmp_path / f"{0:020}.log").write_bytes(made.batch(made.BatchHeader(), [record]))
    assert run_dump(tmp_path, f"{0:020}.log", "--template", "{headerKeys}").stdout == b"\xff,b\n"


def test_real_tools_lines_show_what_java_makes_of_bytes(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [NewBatch([NewRecord(b"k", b"\xff")])])
    lines = run_dump(tmp_path, f"t-0/{0:020}.log", "--print-data-log", "--like", "4.3").stdout
    assert lines.endswith(b" key: k payload: \xef\xbf\xbd\n")


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (None, None),
        (b"", ""),
        (b"k", "k"),
        (NASTY.encode(), NASTY),
        (b"\xff\0", "base64:/wA="),
        (b"base64:AA==", "base64:YmFzZTY0OkFBPT0="),
    ],
)
def test_templates_give_whole_json_values(key: bytes | None, shown: str | None, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [NewBatch([NewRecord(key, key)])])
    template = r'\{"k":{key:json},"v":{value:json},"t":{timestamp:iso},"h":{headers:json}\}'
    line = run_dump(tmp_path, "t-0", "--template", template).stdout
    assert json.loads(line) == {"k": shown, "v": shown, "t": "2023-11-14T22:13:20.000Z", "h": []}
    assert "\x1b" not in line.decode()


def test_old_formats_have_nulls_for_what_they_lack() -> None:
    ran = run_dump(
        golden.ROOT,
        "logs/classes-3.9.1/v0-none",
        "-o",
        "csv",
        "--fields",
        "offset,timestamp,time,producerId",
        "--limit",
        "1",
    )
    assert re.fullmatch(rb"offset,timestamp,time,producerId\n\d+,,,\n", ran.stdout)


# --- tables ----------------------------------------------------------------------------------------------------------


def test_terminal_shortens_values_and_no_digits(tmp_path: Path) -> None:
    offset = 2**40
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k" * 300, b"v" * 300)], offset)], offset)
    lines = plain(
        in_terminal(tmp_path, "dump", "orders-0", "-o", "table", "--fields", "offset,time,key,value")
    ).splitlines()
    assert len(lines) == 3
    assert all(len(line) <= 100 for line in lines)
    assert str(offset) in lines[2]
    assert "2023-11-14T22:13:20.000Z" in lines[2]
    assert "kkk…" in lines[2]
    assert "vvv…" in lines[2]
    whole = run_dump(tmp_path, "orders-0", "-o", "table").stdout.decode()
    assert "v" * 300 in whole
    assert "\x1b" not in whole


def test_rows_beyond_a_piece_stay_in_their_columns() -> None:
    lines = (
        run_dump(golden.ROOT, "docs/test-1-0", "-o", "table", "--fields", "offset,value").stdout.decode().splitlines()
    )
    assert len(lines) == 6302
    assert {line.index("local") for line in lines[2:]} == {lines[2].index("local")}


# --- decoders --------------------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Avro messages of confluent-kafka's serializer and one that is none; its registry's topic beside them."""
    client = new_client()
    serialize = AvroSerializer(client, json.dumps(SCHEMA))
    context = SerializationContext("orders", MessageField.VALUE)
    values = [serialize({"id": number, "note": "é\n"}, context) for number in (1, 2)]
    records = [NewRecord(pack(">q", 7), value) for value in (*values, b"\0\0\0\0\x09?", None)]
    write_segment(tmp_path / "orders-0", [NewBatch(records)])
    write_topic(tmp_path, schema_records(client))
    return tmp_path


AVRO = ["--key-decoder", "int64", "--value-decoder", "avro", "--schema-registry", "_schemas-0"]


def test_json_has_the_decoded_beside_the_raw(orders: Path) -> None:
    ran = run_dump(orders, "orders-0", "-o", "json", "--only", "records", *AVRO)
    objects = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [each.get("valueDecoded") for each in objects] == [
        {"id": 1, "note": "é\n"},
        {"id": 2, "note": "é\n"},
        None,
        None,
    ]
    assert [each["keyDecoded"] for each in objects] == [7, 7, 7, 7]
    assert "valueError" in objects[2]
    assert "valueError" not in objects[3]
    raw = run_dump(orders, "orders-0", "-o", "json", "--only", "records").stdout.splitlines()
    names = ("key", "keyBase64", "value", "valueBase64")
    assert [[each.get(name) for name in names] for each in objects] == [
        [json.loads(line).get(name) for name in names] for line in raw
    ]
    assert ran.status == 0
    assert b"1 record can't be decoded and is shown raw; the first at offset 2: " in ran.stderr


def test_strict_makes_what_does_not_decode_a_finding(orders: Path) -> None:
    assert run_dump(orders, "orders-0", "--strict", *AVRO).status == 1
    assert run_dump(orders, "orders-0", "--strict", "--limit", "2", *AVRO).status == 0


def test_text_csv_and_templates_show_the_decoded(orders: Path) -> None:
    text = run_dump(orders, "orders-0", *AVRO).stdout.decode()
    assert ' key: 7 payload: {"id":1,"note":"é\\n"}\n' in text
    template = run_dump(orders, "orders-0", "--template", "{key} {value}", "--limit", "1", *AVRO).stdout.decode()
    assert template == '7 {"id":1,"note":"é\\n"}\n'
    rows = run_dump(orders, "orders-0", "-o", "csv", "--fields", "key,value,valueError", *AVRO).stdout.decode()
    shown = list(csv.reader(io.StringIO(rows, newline="")))
    assert shown[1] == ["7", '{"id":1,"note":"é\\n"}', ""]
    assert shown[3][2] != ""


def test_tables_show_what_was_decoded_and_why_not_in_columns_of_their_own(orders: Path) -> None:
    fields = "offset,keyDecoded,valueDecoded,valueError"
    lines = run_dump(orders, "orders-0", "-o", "table", "--fields", fields, *AVRO).stdout.decode().splitlines()
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines[2:]]
    assert cells[0] == ["0", "7", '{"id":1,"note":"é\\n"}', "null"]
    assert cells[2][:3] == ["2", "7", "null"]
    assert cells[2][3] != "null"


@pytest.mark.parametrize(
    ("name", "shown"), [("json", b'{"a":[1,{}]}\n'), ("json-pretty", b'{\n  "a": [\n    1,\n    {}\n  ]\n}\n')]
)
def test_json_is_compact_or_pretty(name: str, shown: bytes, tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(None, b' {"a" : [1, {}]}')])])
    assert run_dump(tmp_path, "orders-0", "--template", "{value}", "--value-decoder", name).stdout == shown
    (line,) = run_dump(
        tmp_path, "orders-0", "-o", "json", "--only", "records", "--value-decoder", name
    ).stdout.splitlines()
    assert json.loads(line)["valueDecoded"] == {"a": [1, {}]}


def test_help_of_dump_names_every_decoder() -> None:
    text = " ".join(run.kseg(["dump", "--help"], golden.ROOT).stdout.decode().split())
    listed = text.partition("Decoders are ")[2].partition("module:callable")[0]
    assert [name for name in DECODERS if f"{name}," not in listed and f"{name} (" not in listed] == []


def test_decoded_text_of_any_kind_stands_in_a_table(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b'say "no"', b"\xff"), NewRecord(b"", None)])])
    arguments = ("--key-decoder", "string", "--value-decoder", "json", "--fields", "keyDecoded,valueError")
    lines = run_dump(tmp_path, "orders-0", "-o", "table", *arguments).stdout.decode().splitlines()
    assert lines[2].startswith('say "no"')
    assert lines[2].rstrip()[-4:] != "null"
    internal = ("-o", "table", "--fields", "keyError,valueError", "--offsets-decoder")
    assert "not" in run_dump(tmp_path, "orders-0", *internal).stdout.decode()


@pytest.mark.parametrize("form", ["text", "json", "csv", "table"])
def test_every_field_stands_in_every_form(form: str, orders: Path) -> None:
    arguments = ("-o", form, "--fields", ",".join(FIELD_NAMES), *AVRO)
    ran = run_dump(orders, "orders-0", *arguments)
    assert ran.status == 0
    names = {"text": 0, "json": 0, "csv": 1, "table": 2}[form]
    assert len(ran.stdout.decode().splitlines()) == names + 4


def test_decoder_of_the_users_own_is_given_headers(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (partition / "mine.py").write_text(
        "def read(data, headers):\n    return {header.key: len(data) for header in headers}\n"
    )
    monkeypatch.syspath_prepend(str(partition))
    ran = run_dump(partition, "orders-3", "--template", "{value}", "--value-decoder", "mine:read")
    assert ran.stdout.splitlines() == [b"{}", b"", b'{"trace":16,"raw":16,"none":16}', b"{}"]


INTERNAL = [
    ("__consumer_offsets-1", "group"),
    ("__transaction_state-0", "transactionalId"),
    ("__cluster_metadata-0", "type"),
    ("__share_group_state-1", "groupId"),
]


@pytest.mark.parametrize(("directory", "name"), INTERNAL)
def test_internal_topics_are_decoded_by_themselves_in_json_and_tables(directory: str, name: str) -> None:
    path = f"logs/4.3.1/{directory}"
    ran = run_dump(golden.ROOT, path, "-o", "json", "--only", "records", "--no-control")
    objects = [json.loads(line) for line in ran.stdout.splitlines()]
    assert objects
    assert all(name in json.dumps([each.get("keyDecoded"), each.get("valueDecoded")]) for each in objects)
    assert all("keyError" not in each and "valueError" not in each for each in objects)
    assert f'"{name}"' in run_dump(golden.ROOT, path, "-o", "table", "--no-control").stdout.decode()
    assert (
        b"Decoded" not in run_dump(golden.ROOT, path, "-o", "json", "--value-decoder", "base64", "--limit", "0").stdout
    )


# --- other files -----------------------------------------------------------------------------------------------------


def objects_of(*paths: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run_dump(golden.ROOT, *paths, "-o", "json").stdout.splitlines()]


def test_indexes_are_objects() -> None:
    sample = "docs/test-1-0/00000000000000203000"
    entries = objects_of(f"{sample}.index")
    text = run_dump(golden.ROOT, f"{sample}.index").stdout.decode().splitlines()[1:]
    assert [
        f"offset: {entry['offset']} position: {entry['position']}" for entry in entries if entry["type"] == "index"
    ] == text
    times = [entry for entry in objects_of(f"{sample}.timeindex") if entry["type"] == "timeindex"]
    assert times[0]["time"] == "2020-02-13T12:38:03.325Z" or isinstance(times[0]["timestamp"], int)


@pytest.mark.parametrize(
    ("path", "type", "name"),
    [
        ("logs/4.3.1/compacted-txn-0/00000000000000000240.txnindex", "txnindex", "producerId"),
        ("logs/4.3.1/compacted-txn-0/00000000000000000240.snapshot", "snapshot", "lastSequence"),
        ("logs/4.3.1/compacted-txn-0/leader-epoch-checkpoint", "leader-epoch-checkpoint", "startOffset"),
        ("logs/4.3.1/compacted-txn-0/partition.metadata", "partition.metadata", "topicId"),
        ("logs/4.3.1/recovery-point-offset-checkpoint", "offset-checkpoint", "offset"),
        ("logs/4.3.1/meta.properties", "meta.properties", "properties"),
        ("logs/4.3.1/__cluster_metadata-0/quorum-state", "quorum-state", "leaderEpoch"),
    ],
)
def test_other_files_are_objects_and_tables(path: str, type: str, name: str) -> None:  # noqa: A002
    entries = objects_of(path)
    assert entries
    assert all(entry["type"] == type and name in entry for entry in entries)
    assert name in run_dump(golden.ROOT, path, "-o", "table").stdout.decode().splitlines()[0]
    assert name in run_dump(golden.ROOT, path, "-o", "csv").stdout.decode().splitlines()[0].split(",")


def test_what_is_wrong_with_an_index_is_an_object(tmp_path: Path) -> None:
    write_segment(tmp_path, [NewBatch([NewRecord(None, b"a")], 5)], 5)
    (tmp_path / f"{5:020}.index").write_bytes(pack(">ii", 3, 0) + b"\0")
    ran = run_dump(tmp_path, f"{5:020}.index", "-o", "json")
    assert ran.status == 1
    findings = [each for each in map(json.loads, ran.stdout.splitlines()) if each["type"] == "finding"]
    assert {"indexOffset": 8, "logOffset": 5}.items() <= findings[-1].items()
    assert any("not a complete entry" in str(each.get("detail")) for each in findings)
