"""`kseg doctor --bundle` as its user sees it: facts for a bug report that reveal nothing of the data."""

import json
import shutil
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import zstandard

import kseg as library
from kseg.rewrite.redacted_names import KAFKAS_TOPICS
from tests import golden
from tests.run import kseg

SIX = 6
"""Bytes of a piece that reveals something."""
RELEASES = ("3.9.1", "4.3.1")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Yield a log directory below a directory with a user name."""
    place = tmp_path / "margarete" / "kafka-logs"
    shutil.copytree(golden.ROOT / "logs" / "4.3.1", place)
    return place


def bundle_of(path: Path, target: Path, *options: str) -> dict[str, bytes]:
    """Write a bundle, and return its members."""
    ran = kseg(["doctor", str(path), "--bundle", str(target), "-q", *options], target.parent)
    assert ran.status in (0, 1), ran.stderr
    unpacked = zstandard.ZstdDecompressor().decompress(target.read_bytes(), max_output_size=1 << 26)
    with tarfile.open(fileobj=BytesIO(unpacked)) as archive:
        found = {info.name: archive.extractfile(info) for info in archive.getmembers()}
        return {name.removeprefix("kseg-bundle/"): file.read() for name, file in found.items() if file is not None}


def objects(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def pieces(text: bytes) -> set[bytes]:
    """Return pieces of a text, without pieces that have signs of JSON."""
    found = {text[start : start + SIX] for start in range(len(text) - SIX + 1)}
    return {piece for piece in found if not set(piece) & set(b'":,{}[]')}


def secrets_of(path: Path) -> set[bytes]:
    """Return keys, values, headers, and names of topics and directories, without Kafka's own."""
    found = {part.encode() for part in path.absolute().parts}
    for partition in library.open(path).partitions():
        own = partition.topic in KAFKAS_TOPICS
        found |= set() if own else {str(partition.topic).encode()}
        for record in () if own else partition.records():
            found |= {content for content in (record.key, record.value) if content}
            found |= {part for header in record.headers for part in (header.key.encode(), header.value or b"")}
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_no_content_and_no_name_is_in_it(release: str, tmp_path: Path) -> None:
    disk = tmp_path / "margarete" / "kafka-logs"
    shutil.copytree(golden.ROOT / "logs" / release, disk)
    members = bundle_of(disk, tmp_path / "facts.tar.zst")
    told = pieces(b"".join(members.values()))
    lines = [each for name, content in members.items() if name.endswith("jsonl") for each in objects(content)]
    keys = {json.dumps(key) for line in lines for key in line}
    words = set().union(*(pieces(text.encode()) for text in (*keys, *KAFKAS_TOPICS, "compacted")))
    secrets = set().union(*map(pieces, secrets_of(disk)))
    leaks = (secrets & told) - words - pieces(members["README.txt"])
    assert not leaks


def test_it_has_the_facts(disk: Path, tmp_path: Path) -> None:
    members = bundle_of(disk, tmp_path / "facts.tar.zst")
    files = objects(members["files.jsonl"])
    assert sum(each["bytes"] for each in files) == sum(
        each.stat().st_size for each in disk.rglob("*") if each.is_file()
    )
    records = sum(each["records"] for each in objects(members["segments.jsonl"]))
    listed = objects(kseg(["ls", str(disk), "--by", "segment", "--deep", "-o", "json"], tmp_path).stdout)
    assert records == sum(each["records"] for each in listed if each["type"] == "segment")
    summary = objects(members["findings.jsonl"])[-1]
    ran = kseg(["doctor", str(disk), "-o", "json"], tmp_path)
    judged = objects(ran.stdout)[-1]
    for name in ("result", "partitions", "bytes", "errors", "warnings", "notes", "start"):
        assert summary[name] == judged[name]


def test_a_damage_is_told_by_kind_and_place(tmp_path: Path) -> None:
    members = bundle_of(golden.ROOT / "damaged" / "003-torn-records", tmp_path / "facts.tar.zst")
    findings = [each for each in objects(members["findings.jsonl"]) if each["type"] == "finding"]
    torn = next(each for each in findings if each["id"] == "torn-tail")
    assert torn["severity"] == "warning"
    assert torn["position"] > 0
    assert "sentence" not in torn


def test_names_that_are_wanted_stay(disk: Path, tmp_path: Path) -> None:
    members = bundle_of(disk, tmp_path / "facts.tar.zst", "--keep", "topics")
    topics = {each["topic"] for each in objects(members["partitions.jsonl"])}
    assert topics == {each.topic for each in library.open(disk).partitions()}


def test_the_same_key_gives_the_same_names(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("0123456789abcdef")
    one, two = (bundle_of(disk, tmp_path / name, "--key-file", str(tmp_path / "key")) for name in ("one", "two"))
    other = bundle_of(disk, tmp_path / "other")
    for name in ("partitions.jsonl", "segments.jsonl", "files.jsonl", "settings.jsonl"):
        assert one[name] == two[name] != other[name]


def test_explain_lists_members_and_writes_nothing(disk: Path, tmp_path: Path) -> None:
    target = tmp_path / "facts.tar.zst"
    ran = kseg(["doctor", str(disk), "--bundle", str(target), "--explain"], tmp_path)
    assert b"segments.jsonl" in ran.stderr
    assert not target.exists()
    general = kseg(["doctor", "--explain"], tmp_path)
    assert b"segments.jsonl" in general.stdout


@pytest.mark.parametrize("options", [["--keep", "topics"], ["--key-file", "key"]])
def test_options_of_a_bundle_need_one(options: list[str], disk: Path, tmp_path: Path) -> None:
    ran = kseg(["doctor", str(disk), *options], tmp_path)
    assert ran.status == 2
    assert b"--keep and --key-file need --bundle" in ran.stderr


def test_it_is_never_written_over_or_into_the_disk(disk: Path, tmp_path: Path) -> None:
    target = tmp_path / "facts.tar.zst"
    target.write_bytes(b"mine")
    assert kseg(["doctor", str(disk), "--bundle", str(target)], tmp_path).status == 2
    assert target.read_bytes() == b"mine"
    before = sorted(disk.iterdir())
    assert kseg(["doctor", str(disk), "--bundle", str(disk / "facts.tar.zst")], tmp_path).status == 2
    assert sorted(disk.iterdir()) == before


def test_names_of_files_that_only_end_like_kafkas_are_replaced(disk: Path, tmp_path: Path) -> None:
    partition = next(disk.glob("zstd-0"))
    for name in ("geheim.log", "geheim.index.deleted", "notes.geheim"):
        (partition / name).write_bytes(b"")
    members = bundle_of(disk, tmp_path / "facts.tar.zst")
    assert b"geheim" not in b"".join(members.values())
    assert b"/bootstrap.checkpoint" in members["files.jsonl"]
