"""`kseg protocol`: hex text, frames and captures as text and JSON, and reports of damage."""

import io
import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kseg.formats.codes import Codec
from kseg.writer.batches import MemoryRecords, RecordsBuilder
from tests import golden, run
from tests.protocol.packets import Wire, frame_message, metadata_request, metadata_response, pcap, request, response
from tests.releases import NEWEST

CAPTURE = golden.ROOT / "protocol/4.3.1/clients.pcap"
HEX = "00000012 00120000 00000001 00086d79 2d617070 2d31"
"""An ApiVersions request of version 0."""


def kseg(*arguments: str | Path, directory: Path = golden.ROOT) -> tuple[int, list[str], list[str]]:
    ran = run.kseg(["protocol", *map(str, arguments)], directory)
    return ran.status, ran.stdout.decode().splitlines(), ran.stderr.decode().splitlines()


def write_file(directory: Path, content: bytes | str) -> Path:
    path = directory / "input"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def records() -> MemoryRecords:
    builder = RecordsBuilder(codec=Codec.GZIP)
    builder.append(1_800_000_000_000, b"key", b"value")
    builder.append(1_800_000_000_001, None, None)
    return builder.build()


def produce(content: bytes, acks: int = 1) -> bytes:
    partition = {"index": 0, "records": content}
    return request(0, 9, {"acks": acks, "topicData": [{"name": "orders", "partitionData": [partition]}]})


@pytest.mark.parametrize(
    "text",
    [
        HEX,
        HEX.replace(" ", ""),
        f"# from a log\n{HEX[9:]}  # without its size\n",
        "0x" + HEX.replace(" ", ""),
        ":".join(HEX.replace(" ", "")[at : at + 2] for at in range(0, 44, 2)),
        "00000000: 0000 0012 0012 0000 0000 0001 0008 6d79  ..............my\n"
        "00000010: 2d61 7070 2d31                           -app-1\n",
        "00000000  00 00 00 12 00 12 00 00  00 00 00 01 00 08 6d 79  |..............my|\n"
        "00000010  2d 61 70 70 2d 31                                 |-app-1|\n00000016\n",
    ],
    ids=["words", "digits", "comments", "0x", "colons", "xxd", "hexdump"],
)
def test_hex_text_in_its_usual_forms(text: str, tmp_path: Path) -> None:
    status, lines, said = kseg(write_file(tmp_path, text))
    assert (status, said) == (0, [])
    assert lines[0].startswith('frame 1: request ApiVersions v0, header v1, correlation id 1, client id "my-app-1"; ')


def test_paragraphs_of_hex_text_are_messages_and_a_response_follows_its_request(tmp_path: Path) -> None:
    answer = response(18, 0, {"apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]})
    status, lines, _ = kseg(write_file(tmp_path, f"{HEX}\n\n{answer.hex()}\n"))
    assert status == 0
    assert lines[1:] == [
        "frame 2: response ApiVersions v0, header v0, correlation id 1, to frame 1; 16 bytes at position 22",
        "  errorCode: 0",
        "  apiKeys:",
        "    - apiKey: 18",
        "      minVersion: 0",
        "      maxVersion: 4",
    ]


def test_responses_alone_are_read_as_those_to_the_api_that_is_named(tmp_path: Path) -> None:
    path = write_file(tmp_path, metadata_response(7) + metadata_response(8))
    status, lines, _ = kseg(path, "--response-to", "metadata:12", "-o", "json")
    assert status == 0
    assert [json.loads(line)["body"]["controllerId"] for line in lines[:-1]] == [7, 8]


def test_frames_come_from_standard_input() -> None:
    content = metadata_request(1) + metadata_response(1)
    ran = subprocess.run([sys.executable, "-m", "kseg", "protocol"], input=content, capture_output=True, check=True)
    assert [line.split(",")[0] for line in ran.stdout.decode().splitlines() if line[0] == "f"] == [
        "frame 1: request Metadata v12",
        "frame 2: response Metadata v12",
    ]


def test_records_are_shown_as_dump_shows_them(tmp_path: Path) -> None:
    content = records().raw
    (tmp_path / "00000000000000000000.log").write_bytes(content)
    dumped = run.kseg(["dump", "--print-data-log", "00000000000000000000.log"], tmp_path).stdout.splitlines()[2:]
    status, lines, _ = kseg(write_file(tmp_path, frame_message(produce(content))), "--print-data-log")
    assert status == 0
    at = lines.index(f"          records: {len(content)} bytes")
    assert [line.strip().encode() for line in lines[at + 1 :]] == dumped
    *objects, _ = run.kseg(["dump", "-o", "json", "00000000000000000000.log"], tmp_path).stdout.splitlines()
    (line, _) = kseg(tmp_path / "input", "-o", "json")[1]
    shown = json.loads(line)["body"]["topicData"][0]["partitionData"][0]["records"]
    assert shown == [{k: v for k, v in json.loads(each).items() if k != "file"} for each in objects]


def test_shallow_shows_batches(tmp_path: Path) -> None:
    _, lines, _ = kseg(write_file(tmp_path, frame_message(produce(records().raw))), "--shallow")
    assert lines[-1].strip().startswith("baseOffset: 0 lastOffset: 1 count: 2 ")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda raw: raw[:-3], "torn-tail at position 0"),
        (lambda raw: raw[:40] + bytes([raw[40] ^ 1]) + raw[41:], "bad-crc at position 0"),
        (lambda raw: raw[:16] + b"\x09" + raw[17:], "bad-magic at position 0"),
        (lambda raw: raw[:8] + bytes(4) + raw[12:], "bad-length at position 0"),
    ],
    ids=["cut", "crc", "magic", "length"],
)
def test_damaged_records_are_reported(broken, said: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    status, lines, _ = kseg(write_file(tmp_path, frame_message(produce(broken(records().raw)))))
    assert status == 1
    assert any(line.strip().startswith(said) for line in lines)


def test_batch_that_a_fetch_response_cuts_is_no_damage(tmp_path: Path) -> None:
    raw = records().raw
    partition = {"partitionIndex": 0, "records": raw + raw[:50]}
    body = {"responses": [{"topic": "orders", "partitions": [partition]}]}
    path = write_file(tmp_path, frame_message(request(1, 11, {}, 5)) + frame_message(response(1, 11, body, 5)))
    status, lines, _ = kseg(path)
    assert status == 0
    assert any("torn-tail" in line for line in lines)


def test_damage_is_said_with_its_place_and_the_rest_is_read(tmp_path: Path) -> None:
    content = metadata_request(1) + b"\xff\xff\xff\xff junk" + metadata_request(2)
    path = write_file(tmp_path, content)
    status, lines, said = kseg(path)
    size = len(metadata_request(1))
    assert status == 1
    assert [line.split(",")[2] for line in lines if line.startswith("frame")] == [
        " correlation id 1",
        " correlation id 2",
    ]
    assert said == [
        f"kseg: {path}: 9 bytes at position {size} aren't a frame: a size can't be -1",
        f"kseg: {path}: 2 frames, 0 of them can't be read completely; 9 bytes in no frame",
    ]


def test_body_that_cannot_be_read_is_reported_with_its_frame(tmp_path: Path) -> None:
    status, lines, _ = kseg(write_file(tmp_path, frame_message(request(3, 12, {})[:-1])), "-o", "json")
    assert status == 1
    frame, summary = map(json.loads, lines)
    assert frame["body"] is None
    assert frame["problem"] == "MetadataRequest version 12: its bytes end too early"
    assert summary["problemCount"] == 1


def test_bytes_after_a_body_are_noted_and_the_body_is_shown(tmp_path: Path) -> None:
    """librdkafka asks for versions with four bytes that ApiVersions v0 doesn't have."""
    answer = response(18, 0, {"apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]})
    path = write_file(tmp_path, f"00000016 {HEX[9:]} 00000000\n\n{answer.hex()} ff\n")
    status, lines, said = kseg(path)
    assert (status, said) == (0, [])
    assert lines[0].startswith('frame 1: request ApiVersions v0, header v1, correlation id 1, client id "my-app-1"; ')
    assert lines[1] == "  note: 4 bytes after the body, which Kafka ignores"
    assert lines[3:5] == ["  note: 1 byte after the body, which Kafka ignores", "  errorCode: 0"]
    status, lines, _ = kseg(path, "-o", "json")
    asked, answered, summary = map(json.loads, lines)
    assert (status, asked["body"], asked["trailingSize"]) == (0, {}, 4)
    assert (answered["body"]["errorCode"], answered["trailingSize"]) == (0, 1)
    assert summary["problemCount"] == 0


def test_file_of_something_else_ends_with_1(tmp_path: Path) -> None:
    status, lines, said = kseg(write_file(tmp_path, b"nothing of Kafka's, but text\n" * 9))
    assert (status, lines) == (1, [])
    assert len(said) == 2


def test_text_that_is_no_hex_is_refused_with_its_line(tmp_path: Path) -> None:
    path = write_file(tmp_path, f"{HEX}\nand more\n")
    status, _, said = kseg(path, "--input-format", "hex")
    assert status == 2
    assert said == [f"kseg: {path}: line 2 isn't valid hexadecimal text: 'and more'"]


def test_counts_of_a_real_capture() -> None:
    status, lines, said = kseg(CAPTURE, "--count")
    sums = "kseg: 57 versions of APIs, 199 requests, 199 responses, size 65.0 KiB"
    assert (status, said) == (0, [sums])
    assert lines[0].split() == ["key", "api", "version", "requests", "responses", "size", "problems"]
    assert "  0  Produce                          13         4          4   1.8 KiB         0" in lines


def test_frames_of_one_api() -> None:
    status, lines, _ = kseg(CAPTURE, "--api", "EndTxn", "--port", "9092", "-o", "json")
    *frames, summary = map(json.loads, lines)
    assert status == 0
    assert {frame["api"] for frame in frames} == {"EndTxn"}
    assert summary["frames"] == len(frames) == 10


def test_port_that_nothing_uses_ends_with_1() -> None:
    assert kseg(CAPTURE, "--port", "9093")[0] == 1


def test_json_of_a_damaged_capture(tmp_path: Path) -> None:
    wire = Wire().open()
    wire.send(metadata_request(1))
    wire.lose(bytes(100))
    wire.send(metadata_request(2))
    wire.answer(metadata_response(2))
    status, lines, _ = kseg(write_file(tmp_path, pcap(wire.packets)), "-o", "json")
    objects = [json.loads(line) for line in lines]
    assert status == 1
    assert [each["type"] for each in objects] == ["request", "damage", "request", "response", "summary"]
    assert objects[1] == {
        "type": "damage",
        "position": len(metadata_request(1)),
        "size": 100,
        "client": "10.0.0.2:40000",
        "server": "10.0.0.1:9092",
        "stream": "requests",
        "detail": "100 bytes are missing",
    }
    assert (objects[-1]["unanswered"], objects[-1]["lost"]) == (1, 100)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--api", "Nothing"],
            "'Nothing' isn't a Kafka API; specify Produce, Fetch, Metadata, ApiVersions, … or a number",
        ),
        (
            ["--response-to", "Fetch:17"],
            "--response-to needs frames or hexadecimal text; omit it, since a capture has the requests",
        ),
        (["--input-format", "frames", "--port", "1"], "--port needs a capture; omit it"),
        (
            ["--input-format", "frames", "--response-to", "Fetch"],
            "--response-to Fetch: this isn't an API and its version; specify one such as Fetch:17",
        ),
    ],
)
def test_wrong_usage(arguments: list[str], said: str) -> None:
    assert kseg(CAPTURE, *arguments) == (2, [], [f"kseg: {said}"])


@pytest.mark.parametrize("form", ["text", "json"])
def test_records_of_a_frame_end_where_their_text_is_too_much(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit applies to all partitions of the frame, however few bytes the records were compressed to."""
    monkeypatch.setattr("kseg.dump.frame_lines.MOST_TEXT", 1000)
    builder = RecordsBuilder(codec=Codec.ZSTD)
    builder.append(0, None, b"v" * 2000)
    partition = {"index": 0, "records": builder.build().raw}
    topics = [{"name": "orders", "partitionData": [partition] * 3}]
    path = write_file(tmp_path, frame_message(request(0, 9, {"acks": 1, "topicData": topics})))
    status, lines, _ = kseg(path, "-o", form, "--print-data-log")
    text = "\n".join(lines)
    assert status == 1
    assert text.count("v" * 2000) == 1
    assert text.count("the text of the frame's records is too large for memory; use --shallow") == 2


def test_input_that_cannot_be_read_is_named() -> None:
    assert kseg(Path("/proc/self/mem")) == (1, [], ["kseg: /proc/self/mem: can't be read: Input/output error"])


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dpkt", None)
    assert kseg(CAPTURE) == (2, [], ["kseg: dpkt is missing; run `pip install 'kseg[pcap]'`"])


def test_standard_input_may_be_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CAPTURE.read_bytes())))
    assert kseg("-", "--count")[1] == kseg(CAPTURE, "--count")[1]


def test_versions_that_the_schemas_lack_are_counted_and_named(tmp_path: Path) -> None:
    content = b"".join(
        frame_message(struct.pack(">hhih", api_key, version, 1000 + number, -1) + bytes(12))
        for number, (api_key, version) in enumerate([(1, 40), (1, 40), (900, 3), (0, 2)])
    )
    path = write_file(tmp_path, content)
    newer = f"is newer than kseg supports; its schemas are from Kafka {NEWEST}"
    named = [
        f"kseg: {path}: 2 frames not read: Fetch version 40 {newer}",
        (
            f"kseg: {path}: 1 frame not read: Produce version 2 is older than kseg supports; its schemas are"
            f" from Kafka {NEWEST}"
        ),
        f"kseg: {path}: 1 frame not read: api 900 {newer}",
    ]
    status, lines, said = kseg(path, "-o", "json")
    *objects, summary = map(json.loads, lines)
    assert (status, summary["problemCount"], said) == (1, 4, named)
    assert [(each["body"], each["problem"]) for each in objects[:1]] == [(None, named[0].split("not read: ")[1])]
    status, lines, said = kseg(path)
    assert (status, said[:3]) == (1, named)
    assert sum("can't be read: " in line for line in lines) == 4
    assert kseg(path, "--count")[0] == 1
