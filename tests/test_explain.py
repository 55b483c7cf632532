"""Explained bytes: every byte once, values as parsed, damage with its reason; tables of formats."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from kseg import Segment
from kseg.explain.internal_records import internal_opener
from kseg.explain.items import ExplainedField, Item, explain_file
from kseg.explain.walk import format_page, format_rows, whole_page
from kseg.formats.batch import BATCH_HEADER, FORMATS
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.index.producers import ProducerSnapshot
from kseg.reading.batch import Batch
from tests import golden, run
from tests.loops import for_each, some, some_of_each

UNTOLD = (FileKind.UNKNOWN, FileKind.LOCK)
FILES = [
    path
    for folder in ("logs", "docs", "damaged")
    for path in sorted((golden.ROOT / folder).rglob("*"))
    if path.is_file() and parse_file_name(path).kind not in UNTOLD
]
LOGS = golden.files(".log")
SAMPLE = "docs/test-1-0/00000000000000203000.log"
SNAPSHOTS = [path for path in golden.files(".snapshot") if path.stat().st_size > 10]


def name(path: Path) -> str:
    return str(path.relative_to(golden.ROOT))


def leaves(path: Path) -> Iterator[ExplainedField]:
    for item in explain_file(path):
        for field in item.fields:
            yield from field.leaves()


def with_bodies(fields: list[ExplainedField]) -> Iterator[ExplainedField]:
    for field in fields:
        for leaf in field.leaves():
            yield leaf
            yield from with_bodies(leaf.body)


class Told(NamedTuple):
    """A log, its parsed batches, and their explanations."""

    path: Path
    batches: list[Batch]
    items: list[Item]


@for_each("path", some(LOGS, 3), ids=name, shards=4)
def test_a_log_is_explained_as_it_is_parsed(path: Path) -> None:
    with Segment(path) as segment:
        told = Told(path, list(segment.batches()), list(explain_file(path)))
    check_every_byte(path, told.items)
    check_every_byte_of_decompressed_bodies(told)
    check_an_intact_log_has_no_problem(told)
    check_headers_are_the_parsed_ones(told)
    check_keys_and_values_are_the_parsed_ones(told)


def check_every_byte(path: Path, items: Iterable[Item]) -> None:
    content, position = path.read_bytes(), 0
    for leaf in (leaf for item in items for field in item.fields for leaf in field.leaves()):
        assert leaf.position == position
        assert content[position : position + leaf.size].startswith(leaf.raw)
        assert len(leaf.raw) in (leaf.size, 64)
        position += leaf.size
    assert position == len(content)


def check_every_byte_of_decompressed_bodies(told: Told) -> None:
    for item in told.items:
        for leaf in (leaf for field in item.fields for leaf in field.leaves()):
            position = 0
            for inner in with_bodies(leaf.body):
                assert inner.position == position
                position += inner.size


def check_an_intact_log_has_no_problem(told: Told) -> None:
    for item in told.items:
        assert item.problem is None
        assert [field.problem for field in with_bodies(item.fields) if field.problem] == []


def check_headers_are_the_parsed_ones(told: Told) -> None:
    batches = [item for item in told.items if not item.title.startswith("damage")]
    for batch, item in zip(told.batches, batches, strict=True):
        if batch.magic == 2:
            header = BATCH_HEADER.parse(batch.raw)
            for field in list(with_bodies(item.fields))[: len(BATCH_HEADER.subcons)]:
                bits = {bits.name: bits.value for bits in field.bits}
                assert (bits or field.value) == header[field.name]


def check_keys_and_values_are_the_parsed_ones(told: Told) -> None:
    batches = [item for item in told.items if not item.title.startswith("damage")]
    for batch, item in zip(told.batches, batches, strict=True):
        if batch.is_control or internal_opener(told.path):
            continue  # the contents of their keys and values are shown instead
        fields = [field for field in with_bodies(item.fields) if ".headers[" not in field.path and not field.body]
        for name in ("key", "value"):
            parsed = [getattr(record, name) for record in batch.records()]
            assert [field.value for field in fields if field.name == name] == [each for each in parsed if each]


def form(path: Path) -> tuple[bool, str]:
    """Return True if a file was damaged, and its kind."""
    return "damaged" in path.parts, path.suffix or path.name


@for_each("path", some_of_each([path for path in FILES if path not in LOGS], form, 3), ids=name)
def test_every_byte_of_another_file_is_reported_exactly_once(path: Path) -> None:
    check_every_byte(path, explain_file(path))


@for_each("path", SNAPSHOTS, ids=name)
def test_producers_of_a_snapshot_are_reported(path: Path) -> None:
    (item,) = explain_file(path)
    with ProducerSnapshot(path) as snapshot:
        entry = next(snapshot.entries())
    told = {field.name: field.value for field in with_bodies(item.fields) if field.path.startswith("entries[0]")}
    assert told == entry._asdict()


def test_markers_are_opened() -> None:
    told: dict[str, object] = {}
    for path in LOGS:
        if "classes-4.3.1/control-raft" in str(path):
            told |= {leaf.path: leaf.value for leaf in leaves(path)}
    assert told["records[0].key.version"] == 0
    assert told["records[0].value.leader_id"] is not None


def kseg(*arguments: str, directory: Path = golden.ROOT) -> run.Run:
    return run.kseg(["explain", *arguments], directory)


def objects(*arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in kseg(*arguments, "-o", "json").stdout.splitlines()]


def test_a_field_is_shown_with_position_bytes_value_and_meaning() -> None:
    lines = kseg(SAMPLE, "--batch", "0").stdout.decode().splitlines()
    assert lines[0] == "batch 0, format 2, last offset 203099: position 0, 2987 bytes"
    assert lines[2].split() == [
        *["0", "00", "00", "00", "00", "00", "03", "18", "f8", "base_offset", "int64", "203000"],
        *["offset", "of", "the", "first", "record", "as", "written;", "kept", "by", "compaction"],
    ]
    text = "\n".join(lines)
    assert "covers bytes 21 to 2986; holds" in text
    assert "bits 0-2 codec = 0 none" in text
    assert "(2020-02-13T12:37:58.310Z)" in text


def test_a_long_varint_is_opened() -> None:
    path = next(path for path in LOGS if "classes-4.3.1/varints" in str(path))
    assert "zig-zag" in kseg(str(path)).stdout.decode()


def test_json_has_an_object_per_field() -> None:
    item, first, *_ = objects(SAMPLE, "--batch", "0")
    assert item == {
        "type": "item", "file": SAMPLE, "item": 0, "title": "batch 0, format 2, last offset 203099", "position": 0,
        "size": 2987, "problem": None,
    }  # fmt: skip
    assert first == {
        "type": "field", "item": 0, "field": "header.base_offset", "within": None, "position": 0, "size": 8,
        "hex": "00000000000318f8", "kind": "int64", "value": 203000,
        "meaning": "offset of the first record as written; kept by compaction",
    }  # fmt: skip


def test_fields_of_a_compressed_body_say_where_they_are() -> None:
    path = next(path for path in LOGS if "classes-4.3.1/v2-zstd-create" in str(path))
    inner = [each for each in objects(str(path), "--batch", "0") if each.get("within") == "records"]
    assert inner[0]["position"] == 0
    assert inner[0]["field"] == "records[0].length"


@pytest.mark.parametrize(
    ("options", "positions"),
    [
        (["--batch", "1"], [2987]),
        (["--position", "2986"], [0]),
        (["--position", "2987"], [2987]),
        (["--offset", "203099"], [0]),
        (["--offset", "203100"], [2987]),
    ],
)
def test_one_batch_can_be_chosen(options: list[str], positions: list[int]) -> None:
    assert [each["position"] for each in objects(SAMPLE, *options) if each["type"] == "item"] == positions


def test_what_is_not_in_the_file_ends_with_1() -> None:
    ran = kseg(SAMPLE, "--offset", "5")
    assert (ran.status, ran.stdout) == (1, b"")
    assert (
        ran.stderr
        == f"kseg: {SAMPLE}: nothing in the file matches --offset 5; `kseg explain {SAMPLE}` prints all\n".encode()
    )


def test_an_index_entry_says_its_absolute_offset() -> None:
    ran = kseg("docs/test-1-0/00000000000000203000.index", "--batch", "0")
    assert b"relative_offset" in ran.stdout
    assert b": offset 203299" in ran.stdout


def test_a_wrong_crc_is_reported_with_both_values(tmp_path: Path) -> None:
    content = bytearray((golden.ROOT / SAMPLE).read_bytes()[:2987])
    content[100] ^= 1
    (tmp_path / "00000000000000203000.log").write_bytes(content)
    ran = kseg("00000000000000203000.log", directory=tmp_path)
    assert ran.status == 1
    assert b"0xdd227dca" in ran.stdout
    assert b"is wrong: computed 0x" in ran.stdout


def test_a_cut_batch_is_reported_up_to_the_cut(tmp_path: Path) -> None:
    (tmp_path / "00000000000000203000.log").write_bytes((golden.ROOT / SAMPLE).read_bytes()[:100])
    ran = kseg("00000000000000203000.log", directory=tmp_path)
    assert ran.status == 1
    assert b"'local test -------- 0'" in ran.stdout
    lines = ran.stdout.decode().splitlines()
    assert "torn-tail" in lines[0]
    assert "unreadable" in lines[-2]


@pytest.mark.parametrize(("form", "start"), [("html", b"<!DOCTYPE html>"), ("svg", b"<svg")])
def test_documents_hold_the_fields(form: str, start: bytes) -> None:
    ran = kseg(SAMPLE, "--batch", "0", "-o", form)
    assert ran.stdout.startswith(start)
    assert b"base_offset" in ran.stdout


def test_a_picture_holds_every_line_and_asks_nothing_of_the_network() -> None:
    text = kseg(SAMPLE, "--batch", "0").stdout.decode().splitlines()
    drawn = kseg(SAMPLE, "--batch", "0", "-o", "svg").stdout
    assert drawn_lines(drawn) == text
    assert b"url(http" not in drawn.replace(b'url("', b"url(")


def drawn_lines(document: bytes) -> list[str]:
    """Return the lines of an SVG: texts with the same height, from left to right."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for text in ElementTree.fromstring(document).iter("{http://www.w3.org/2000/svg}text"):
        if "clip-path" in text.attrib:
            piece = (float(text.attrib["x"]), text.text or "")
            lines.setdefault(float(text.attrib["y"]), []).append(piece)
    joined = ("".join(text for _, text in sorted(pieces)) for _, pieces in sorted(lines.items()))
    return [line.replace("\xa0", " ").rstrip() for line in joined]


def test_colours_come_when_asked_for() -> None:
    assert b"\x1b[" in kseg(SAMPLE, "--batch", "0", "--color").stdout
    assert b"\x1b[" not in kseg(SAMPLE, "--batch", "0").stdout


def test_a_format_prints_its_table() -> None:
    ran = kseg("--grammar", "record-batch")
    assert b"| 17 | crc | uint32 | 4 | CRC-32C of all bytes from the attributes to the batch's end |" in ran.stdout
    assert b"| bit 6 | attributes.has_delete_horizon |" in ran.stdout
    rows = [json.loads(line) for line in kseg("--grammar", "offset-index", "-o", "json").stdout.splitlines()]
    assert [(row["position"], row["name"], row["size"]) for row in rows] == [
        (0, "relative_offset", 4),
        (4, "position", 4),
    ]


@for_each("form", FORMATS)
def test_every_field_of_every_format_has_a_meaning(form: str) -> None:
    rows = format_rows(form)
    assert rows
    assert [row.name for row in rows if not row.meaning] == []


def test_the_documentation_is_generated() -> None:
    page = (golden.ROOT.parent / "docs/reference/formats.md").read_text(encoding="utf-8")
    assert kseg("--grammar", "all").stdout.decode() == whole_page()
    assert all(format_page((name,)).replace("## ", "### ") in page for name in FORMATS)


def test_unknown_files_and_options_that_do_not_go_together_are_refused() -> None:
    assert kseg("README.md").status == 2
    assert kseg("nowhere").stderr == b"kseg: nowhere: no such file or directory\n"
    assert kseg().status == 2
    assert kseg(SAMPLE, "--batch", "0", "--offset", "1").status == 2
    assert kseg("--grammar", "record", "-o", "svg").status == 2
