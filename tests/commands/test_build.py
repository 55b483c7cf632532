"""`kseg build`: from dumps, JSON lines, CSV and text to partitions; segments, indexes; messages about bad input."""

import json
import resource
import signal
import sys
from io import BytesIO, TextIOWrapper
from itertools import product
from pathlib import Path
from subprocess import PIPE

import pytest

from kseg import Segment
from kseg.formats.codes import Codec
from kseg.reading.blocks import Damage
from tests import golden, run
from tests.loops import for_each, some
from tests.processes import start_process

TIME = "1760000000000"
TOO_LARGE = 2**63 - 1


def is_uncompressed(path: Path) -> bool:
    with Segment(path) as segment:
        return all(not isinstance(item, Damage) and item.codec == Codec.NONE for item in segment.scan())


UNCOMPRESSED = [path for path in golden.files(".log") if is_uncompressed(path)]
COMPRESSED = [path for path in golden.files(".log") if path not in UNCOMPRESSED]
PARTITION = golden.ROOT / "logs/4.3.1-tiered/__transaction_state-1"


def name(path: Path) -> str:
    return str(path.relative_to(golden.ROOT))


def kseg(directory: Path, *arguments: str) -> run.Run:
    return run.kseg(arguments, directory)


def dump(directory: Path, *arguments: str) -> bytes:
    return kseg(directory, "dump", "-o", "json", *arguments).stdout


def build(directory: Path, source: bytes, *options: str) -> run.Run:
    """Build the partition `built` from a file."""
    (directory / "source").write_bytes(source)
    return kseg(directory, "build", "source", "--to", "built", "--timestamp", TIME, *options)


def records(directory: Path, *options: str) -> list[dict[str, object]]:
    return [line for line in objects(directory / "built", *options) if line["type"] == "record"]


def objects(partition: Path, *options: str) -> list[dict[str, object]]:
    """Return the objects of a dump of a partition's logs."""
    logs = sorted(str(path) for path in partition.glob("*.log"))
    return [json.loads(line) for line in dump(partition, *options, *logs).splitlines()]


def batches(partition: Path) -> list[dict[str, object]]:
    return [line for line in objects(partition) if line["type"] == "batch"]


@for_each("path", some(UNCOMPRESSED, 3), ids=name)
def test_an_uncompressed_segment_comes_back_byte_for_byte(path: Path, tmp_path: Path) -> None:
    assert build(tmp_path, dump(golden.ROOT, str(path))).status == 0
    (built,) = (tmp_path / "built").glob("*.log")
    assert built.read_bytes() == path.read_bytes()
    assert int(built.stem) == int(path.stem[:20])


@for_each("path", some(COMPRESSED, 3), ids=name)
def test_a_compressed_segment_comes_back_with_its_batches_and_records(path: Path, tmp_path: Path) -> None:
    assert build(tmp_path, dump(golden.ROOT, str(path))).status == 0
    assert content(*sorted((tmp_path / "built").glob("*.log"))) == content(path)


def content(*paths: Path) -> list[dict[str, object]]:
    """Return a dump without values that depend on compression.

    Segments too far from their base have become several.
    """
    lines = [json.loads(line) for line in dump(golden.ROOT, *map(str, paths)).splitlines()]
    return [
        {member: value for member, value in line.items() if member not in ("file", "position", "size", "crc")}
        for line in lines
        if line["type"] != "summary"
    ]


def test_a_partition_gets_the_files_that_its_broker_left(tmp_path: Path) -> None:
    build(tmp_path, dump(golden.ROOT, str(PARTITION)), "--topic-id", topic_id(PARTITION))
    built = {path.name: path.read_bytes() for path in (tmp_path / "built").iterdir()}
    assert built == {path.name: path.read_bytes() for path in PARTITION.iterdir()}


def topic_id(partition: Path) -> str:
    return (partition / "partition.metadata").read_text().rpartition(" ")[2]


def test_segments_begin_where_the_sources_did(tmp_path: Path) -> None:
    source = golden.ROOT / "logs/4.3.1/compacted-txn-0"
    build(tmp_path, dump(golden.ROOT, str(source)))
    logs = sorted(path.name for path in (tmp_path / "built").glob("*.log"))
    assert logs == sorted(path.name for path in source.glob("*.log"))


def test_what_dump_prints_can_be_piped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"one\ntwo\n")))
    ran = kseg(tmp_path, "build", "--input-format", "text", "--to", "built", "--timestamp", TIME)
    assert ran.stdout == b"built/00000000000000000000.log: offsets 0 to 1, 1 batch, 81 bytes\n"
    assert [record["value"] for record in records(tmp_path)] == ["one", "two"]


def test_records_have_the_time_given_or_their_own(tmp_path: Path) -> None:
    build(tmp_path, b'{"value":"a"}\n{"value":"b","timestamp":5}\n')
    assert [record["timestamp"] for record in records(tmp_path)] == [int(TIME), 5]


def test_without_a_time_it_is_now(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"{}")
    kseg(tmp_path, "build", "source", "--to", "built")
    (record,) = records(tmp_path)
    assert isinstance(record["timestamp"], int)
    assert record["timestamp"] > 1_790_000_000_000


@for_each("magic, compression", list(product(["0", "1", "2"], ["none", "gzip:9", "snappy", "lz4", "zstd:1"])))
def test_every_format_and_codec_verifies(magic: str, compression: str, tmp_path: Path) -> None:
    source = b"".join(b'{"key":"k%d","value":"%d"}\n' % (number % 7, number) for number in range(500))
    ran = build(tmp_path, source, "--magic", magic, "--compression", compression, "--batch-size", "900")
    if compression == "zstd:1" and magic != "2":
        assert (ran.status, ran.stderr) == (2, b"kseg: source: line 1: format %s has no codec zstd\n" % magic.encode())
        return
    assert [record["value"] for record in records(tmp_path)] == [str(number) for number in range(500)]
    assert kseg(tmp_path, "verify", "built").stdout == b"ok\n"


def test_log_append_time_is_the_time_of_all(tmp_path: Path) -> None:
    build(tmp_path, b'{"timestamp":5}\n{}\n', "--timestamp-type", "LogAppendTime")
    assert {(record["timestamp"], record["timestampType"]) for record in records(tmp_path)} == {
        (int(TIME), "LogAppendTime")
    }


def test_csv_columns_become_members(tmp_path: Path) -> None:
    build(tmp_path, b"offset,key,value,header.h\n3,k,,x\n9,,v,\n", "--input-format", "csv")
    first, second = records(tmp_path)
    assert (first["offset"], first["key"], first["value"], first["headers"]) == (
        3, "k", None, [{"key": "h", "value": "x"}],
    )  # fmt: skip
    assert (second["offset"], second["key"], second["value"], second["headers"]) == (9, None, "v", [])


def test_batches_end_at_their_size_or_count(tmp_path: Path) -> None:
    source = b"x\n" * 100
    build(tmp_path, source, "--input-format", "text", "--batch-records", "30")
    assert [batch["count"] for batch in batches(tmp_path / "built")] == [30, 30, 30, 10]
    ran = kseg(
        tmp_path,
        "build",
        "source",
        "--to",
        "small",
        "--input-format",
        "text",
        "--batch-size",
        "100",
        "--timestamp",
        TIME,
    )
    assert ran.status == 0
    sizes = [int(str(batch["size"])) for batch in batches(tmp_path / "small")]
    assert max(sizes) <= 100
    assert sizes[0] > 90


def test_transactions_end_with_their_markers(tmp_path: Path) -> None:
    source = b'{"value":"a"}\n{"type":"abort"}\n{"value":"b"}\n'
    build(
        tmp_path,
        source,
        "--producer-id",
        "7",
        "--producer-epoch",
        "2",
        "--base-sequence",
        "5",
        "--transaction",
        "commit",
    )
    made = batches(tmp_path / "built")
    assert [(batch["producerId"], batch["producerEpoch"], batch["baseSequence"]) for batch in made] == [
        (7, 2, 5), (7, 2, -1), (7, 2, 6), (7, 2, -1),
    ]  # fmt: skip
    controls = [record["control"] for record in records(tmp_path) if "control" in record]
    assert [control["type"] for control in controls if isinstance(control, dict)] == ["ABORT", "COMMIT"]
    aborted = kseg(tmp_path, "dump", "built/00000000000000000000.txnindex").stdout
    assert b"producerId: 7 firstOffset: 0 lastOffset: 1 lastStableOffset: 2" in aborted
    assert kseg(tmp_path, "verify", "built").stdout == b"ok\n"


def test_an_open_transaction_stays_open(tmp_path: Path) -> None:
    build(tmp_path, b"{}\n", "--producer-id", "7", "--transaction", "open")
    assert [batch["isTransactional"] for batch in batches(tmp_path / "built")] == [True]


@pytest.mark.parametrize(
    ("options", "reason", "bases"),
    [
        (["--segment-bytes", "200"], b"rolled by size", [0, 2, 4]),
        (["--segment-ms", "1500"], b"rolled by time", [0, 2, 4]),
        (["--segment-index-bytes", "24", "--index-interval-bytes", "0"], b"rolled by index-full", [0, 2, 4]),
    ],
)
def test_segments_roll_by_kafkas_rules(options: list[str], reason: bytes, bases: list[int], tmp_path: Path) -> None:
    source = b"".join(b'{"timestamp":%d000,"value":"%b"}\n' % (number, b"v" * 10) for number in range(1, 6))
    ran = build(tmp_path, source, "--batch-records", "1", *options)
    assert sorted(int(path.stem) for path in (tmp_path / "built").glob("*.log")) == bases
    assert ran.stdout.count(reason) == len(bases) - 1
    assert kseg(tmp_path, "verify", "built").stdout == b"ok\n"


def test_a_segment_rolls_where_offsets_are_too_far_from_its_base(tmp_path: Path) -> None:
    ran = build(tmp_path, b'{"offset":0}\n{"offset":%d}\n' % 2**31, "--batch-records", "1")
    assert b"rolled by offset-range" in ran.stdout
    assert (tmp_path / "built" / f"{2**31:020}.log").exists()


@pytest.mark.parametrize("magic", ["0", "1"])
@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_a_segment_of_old_messages_begins_where_they_are_not_too_far(
    magic: str, compression: str, tmp_path: Path
) -> None:
    far = 10**12
    options = ("--magic", magic, "--compression", compression)
    ran = build(tmp_path, b'{"offset":68}\n{"offset":%d}\n' % far, *options)
    assert b"rolled by offset-range" in ran.stdout
    bases = sorted(int(path.stem) for path in (tmp_path / "built").glob("*.log"))
    assert bases == [68, far - 2**31 + 1]
    assert b"offset-too-far" not in kseg(tmp_path, "verify", "built").stdout


def test_whole_batches_take_another_codec(tmp_path: Path) -> None:
    source = dump(golden.ROOT, "docs/test-1-0/00000000000000203000.log")
    build(tmp_path, source, "--compression", "zstd:3")
    assert {batch["compression"] for batch in batches(tmp_path / "built")} == {"zstd"}
    before = [json.loads(line) for line in source.splitlines()]
    values = [line["value"] for line in before if line["type"] == "record"]
    assert [record["value"] for record in records(tmp_path)] == values


@for_each(
    "source, options, message",
    [
        (b'{}\n{"key":', [], b"source: line 2: not JSON: Expecting value at column 8"),
        (b'{"value":NaN}', [], b"source: line 1: value is nan, which isn't valid JSON"),
        (b'{"offset":5}\n{"offset":5}\n', [], b"source: line 2: offset 5 doesn't increase; the next offset is 6"),
        (b'{"timestamp":-2}', [], b"source: line 1: the timestamp -2 is negative"),
        (
            b'{"offset":%d}' % TOO_LARGE,
            [],
            b"source: line 1: offset %d is above the largest possible offset, %d" % (TOO_LARGE, TOO_LARGE - 1),
        ),
        (
            b"{}",
            ["--base-offset", str(TOO_LARGE)],
            b"source: line 1: offset %d is above the largest possible offset, %d" % (TOO_LARGE, TOO_LARGE - 1),
        ),
        (
            b'{"type":"batch","magic":2,"baseOffset":5,"lastOffset":%d,"count":0}' % TOO_LARGE,
            [],
            b"source: line 1: offset %d is above the largest possible offset, %d" % (TOO_LARGE, TOO_LARGE - 1),
        ),
        (
            b'{"type":"summary","file":"%020d.log"}' % TOO_LARGE,
            [],
            b"source: line 1: offset %d is above the largest possible offset, %d" % (TOO_LARGE, TOO_LARGE - 1),
        ),
        (b'{"headers":{"h":"v"}}', ["--magic", "1"], b"source: line 1: format 1 has no headers"),
        (
            b'{"type":"commit"}',
            [],
            b"source: line 1: there is no transaction to end; specify a producer id, and make batches transactional",
        ),
        (b"{}", ["--transaction", "open"], b"--transaction needs --producer-id"),
        (
            b"{}",
            ["--compression", "lzma"],
            b"--compression: 'lzma' isn't a codec; specify none, gzip, snappy, lz4, zstd",
        ),
        (b"{}", ["--compression", "gzip:11"], b"gzip: level 11 isn't valid; specify one from 1 to 9"),
        (b"{}", ["--topic-id", "x"], b"--topic-id: 'x' isn't 22 characters of base64url"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    source: bytes, options: list[str], message: bytes, tmp_path: Path
) -> None:
    ran = build(tmp_path, source, *options)
    assert (ran.status, ran.stdout, ran.stderr) == (2, b"", b"kseg: %b\n" % message)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("form", "source", "message"),
    [
        ("json", b'{}\n{"offset":', b"line 2: not JSON: Expecting value at column 11"),
        ("csv", b"offset\n7\n6\n", b"line 3: offset 6 doesn't increase; the next offset is 8"),
        ("text", b"a=b\nc\n", b"line 2: the line has no '=' between key and value"),
    ],
)
def test_bad_standard_input_is_one_line_too(
    form: str, source: bytes, message: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(source)))
    separator = ["--key-separator", "="] if form == "text" else []
    ran = kseg(tmp_path, "build", "-", "--input-format", form, *separator, "--to", "new/partition")
    assert (ran.status, ran.stdout, ran.stderr) == (2, b"", b"kseg: standard input: %b\n" % message)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"value\n" * 20_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        ran = kseg(tmp_path, "build", "source", "--input-format", "text", "--to", "new/partition")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr == b"kseg: new/partition: can't be written: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kseg", "build", "--input-format", "text", "--to", "new/partition"]
    with start_process(command, tmp_path, stdin=PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"value\n" * 300_000)  # more than pipes and buffers hold, so that work has begun
        process.stdin.flush()
        assert any(tmp_path.glob("new/.partition-*/*.log"))
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr.strip()) == (130, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_records_far_from_each_other_stand_in_batches_of_their_own(tmp_path: Path) -> None:
    ran = build(tmp_path, b'{"offset":0}\n{"offset":%d}\n' % 2**31)
    assert (ran.status, ran.stderr) == (0, b"")
    assert [record["offset"] for record in records(tmp_path)] == [0, 2**31]


def test_damage_in_the_dump_is_reported(tmp_path: Path) -> None:
    source = dump(golden.ROOT, "damaged/004-torn-records/00000000000000077901.log")
    ran = build(tmp_path, source)
    assert (ran.status, ran.stderr.count(b"\n")) == (0, 1)
    assert b"torn-tail: records lost to the damage are omitted" in ran.stderr


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "file").write_text("kept")
    assert build(tmp_path, b"{}").status == 2
    assert (tmp_path / "built" / "file").read_text() == "kept"


def test_quiet_says_nothing(tmp_path: Path) -> None:
    ran = build(tmp_path, b"{}", "-q")
    assert (ran.status, ran.stdout, ran.stderr) == (0, b"", b"")


# --- selections ------------------------------------------------------------------------------------------------------

SELECTIONS = [
    ("docs/test-1-0", ["--from-offset", "203550", "--to-offset", "204020"]),
    ("docs/test-1-0", ["--grep", "99$"]),
    ("docs/test-1-0", ["--tail", "3"]),
    ("logs/2.8.2/broker-lz4-0", ["--sample", "20%"]),
    ("logs/0.10.2.2/v0-gzip-0", ["--tail", "2"]),
    ("logs/4.3.1/compacted-txn-0", ["--from-offset", "237"]),
]
CONTENT = ["offset", "timestamp", "timestampType", "key", "keyBase64", "value", "valueBase64", "headers", "sequence"]


def contents(lines: bytes) -> list[dict[str, object]]:
    found = [json.loads(line) for line in lines.splitlines()]
    return [{name: each.get(name) for name in CONTENT} for each in found if each["type"] == "record"]


@pytest.mark.parametrize(("partition", "selection"), SELECTIONS)
def test_what_is_selected_is_built(partition: str, selection: list[str], tmp_path: Path) -> None:
    source = dump(golden.ROOT, partition, *selection)
    ran = build(tmp_path, source, "--index-interval-bytes", "0")
    assert ran.status == 0
    wanted = contents(source)
    assert contents(dump(tmp_path, "built")) == wanted
    assert len(wanted) > 1
    first = min(path.stem for path in (tmp_path / "built").glob("*.log"))
    assert int(first) == wanted[0]["offset"]
    verified = run.kseg(["verify", "built"], tmp_path)
    assert verified.status == 0, verified.stdout
    for batch in objects(tmp_path / "built"):
        if batch["type"] == "batch":
            assert batch["isValid"]


def test_batches_that_were_cut_are_counted(tmp_path: Path) -> None:
    ran = build(tmp_path, dump(golden.ROOT, "docs/test-1-0", "--from-offset", "203550", "--to-offset", "204020"))
    assert (
        ran.stderr
        == b"kseg: source: line 1: kseg keeps only the following records of 2 batches, starting with this one\n"
    )


def test_a_selection_of_several_segments_keeps_them(tmp_path: Path) -> None:
    partition = golden.ROOT / "logs/2.3.1/txn-1"
    names = sorted(path.name for path in partition.glob("*.log"))
    assert len(names) > 2
    first = int(names[1][:20])
    build(tmp_path, dump(golden.ROOT, str(partition), "--from-offset", str(first)))
    assert sorted(path.name for path in (tmp_path / "built").glob("*.log")) == names[1:]


def test_records_alone_name_the_segment_by_the_first(tmp_path: Path) -> None:
    build(tmp_path, dump(golden.ROOT, "docs/test-1-0", "--from-offset", "203550", "--only", "records"))
    (log,) = (tmp_path / "built").glob("*.log")
    assert int(log.stem) == 203550


def test_a_base_offset_that_is_given_names_the_segment(tmp_path: Path) -> None:
    build(tmp_path, b'{"offset":7}', "--base-offset", "3")
    assert [path.stem for path in (tmp_path / "built").glob("*.log")] == [f"{3:020}"]


def test_input_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    whole = dump(golden.ROOT, "docs/test-1-0", "--limit", "250")
    cut = b"".join(whole.splitlines(keepends=True)[:220])
    ran = build(tmp_path, cut)
    assert ran.status == 2
    assert b" follow: the input was truncated, or " in ran.stderr
    assert not (tmp_path / "built").exists()


@pytest.mark.parametrize("case", ["066-codec-5", "104-count-plus-one", "106-count-minus-one", "168-body-truncated"])
def test_what_can_be_read_of_a_damaged_log_is_built(case: str, tmp_path: Path) -> None:
    source = dump(golden.ROOT, f"damaged/{case}")
    ran = build(tmp_path, source)
    assert ran.status == 0
    assert contents(dump(tmp_path, "built")) == contents(source)
    assert b"kseg keeps only the following records" in ran.stderr or b" are omitted" in ran.stderr
