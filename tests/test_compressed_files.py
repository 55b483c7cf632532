"""Kafka's files that were compressed one by one are read like the originals."""

import gzip
import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests import golden
from tests.loops import for_each
from tests.run import kseg

pytestmark = pytest.mark.usefixtures("unpacked_into")

LOGS = golden.ROOT / "logs" / "2.8.2"
PARTITION, SEGMENT = "broker-lz4-0", "00000000000000000000.log"
PACK: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstandard.compress}
COMMANDS = [
    "dump {}",
    "dump --like 2.8 --files {}",
    "dump -o json {}",
    "dump -o csv --fields file,topic,partition,offset,key --tail 3 {}",
    "ls -o json --now 2026-11-22 {}",
    "lookup --offset 7 {}",
    "verify {}",
    "salvage {} --dry-run",
    "explain {} --batch 0",
    "slice {} --to new --from-offset 3",
]


@pytest.fixture(params=PACK)
def packed_log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a log alone in a directory like its partition's, both uncompressed and compressed."""
    form: str = request.param
    for folder in ("plain", "packed"):
        (tmp_path / folder / PARTITION).mkdir(parents=True)
    content = (LOGS / PARTITION / SEGMENT).read_bytes()
    (tmp_path / "plain" / PARTITION / SEGMENT).write_bytes(content)
    file = tmp_path / "packed" / PARTITION / f"{SEGMENT}.{form}"
    file.write_bytes(PACK[form](content))
    return file


@for_each("command", COMMANDS)
def test_commands_say_the_same_of_a_compressed_file(command: str, packed_log: Path) -> None:
    root = packed_log.parent.parent.parent
    plain = kseg(command.format(f"{PARTITION}/{SEGMENT}").split(), root / "plain")
    ran = kseg(command.format(f"{PARTITION}/{packed_log.name}").split(), root / "packed")
    assert ran.status == plain.status
    assert ran.stdout.replace(packed_log.name.encode(), SEGMENT.encode()) == plain.stdout
    assert ran.stderr.replace(packed_log.name.encode(), SEGMENT.encode()) == plain.stderr


def test_files_of_a_directory_are_together(packed_log: Path) -> None:
    index = (LOGS / PARTITION / SEGMENT).with_suffix(".index").read_bytes()
    (packed_log.parent / "00000000000000000000.index.gz").write_bytes(gzip.compress(index))
    ran = kseg(["ls", f"{PARTITION}/*", "-o", "json"], packed_log.parent.parent)
    assert ran.stdout.count(b'"type":"partition"') == 1
    assert ran.stdout.count(b'"indexEntries":null') == 0
    ran = kseg(["dump", f"{PARTITION}/*.index.gz", f"{PARTITION}/{packed_log.name}"], packed_log.parent.parent)
    assert (ran.status, ran.stderr) == (0, b"")


def test_a_compressed_log_on_standard_input(packed_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed_log.read_bytes())))
    plain = kseg(["dump", f"{PARTITION}/{SEGMENT}"], packed_log.parent.parent.parent / "plain")
    ran = kseg(["dump", "-"], packed_log.parent)
    assert ran.stdout == plain.stdout.replace(f"{PARTITION}/{SEGMENT}".encode(), b"-")


def test_a_cut_file_is_read_as_far_as_it_goes(packed_log: Path) -> None:
    content = (LOGS / PARTITION / SEGMENT).read_bytes()
    whole, rest = content[:1000], content[1000:]
    compress = PACK[packed_log.suffix[1:]]
    packed_log.write_bytes(compress(whole) + compress(rest)[:-8])
    ran = kseg(["dump", f"{PARTITION}/{packed_log.name}", "--shallow"], packed_log.parent.parent)
    assert ran.status == 2
    assert b"can't be read to its end (" in ran.stderr
    assert b"); kseg reads the part before that\n" in ran.stderr
    assert ran.stdout.count(b"\nbaseOffset: ") >= 1


@pytest.mark.parametrize("content", [b"", b"x", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x1f\x8b" + bytes(50)])
def test_what_is_not_compressed_is_an_error_of_one_line(content: bytes, packed_log: Path) -> None:
    packed_log.write_bytes(content)
    ran = kseg(["dump", f"{PARTITION}/{packed_log.name}"], packed_log.parent.parent)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(f"kseg: {PARTITION}/{packed_log.name}: can't be decompressed: ".encode())
    assert ran.stderr.count(b"\n") == 1


def test_a_file_that_the_disk_cannot_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log.gz").symlink_to("/proc/self/mem")
    ran = kseg(["dump", "00000000000000000000.log.gz"], tmp_path)
    said = b"kseg: 00000000000000000000.log.gz: can't be decompressed: [Errno 5] Input/output error\n"
    assert (ran.status, ran.stderr) == (2, said)


def test_a_bomb_ends_at_the_limit(packed_log: Path) -> None:
    bomb = PACK[packed_log.suffix[1:]](bytes(30_000_000))
    assert len(bomb) < 100_000
    packed_log.write_bytes(bomb)
    ran = kseg(["dump", f"{PARTITION}/{packed_log.name}", "--max-unpacked", "1000000"], packed_log.parent.parent)
    said = f"kseg: {PARTITION}/{packed_log.name}: unpacks to more than 1000000 bytes; raise --max-unpacked to read it\n"
    assert (ran.status, ran.stdout, ran.stderr.decode()) == (2, b"", said)


def test_the_same_file_compressed_in_two_ways_is_read_twice(packed_log: Path) -> None:
    other = next(form for form in PACK if form != packed_log.suffix[1:])
    packed_log.with_suffix(f".{other}").write_bytes(PACK[other](b""))
    ran = kseg(["dump", f"{PARTITION}/*.log.*", "-o", "json", "--only", "records"], packed_log.parent.parent)
    sizes = {line.split(b'"bytes":')[1].split(b",")[0] for line in ran.stderr.splitlines()}
    assert sizes == {b"0", str((LOGS / PARTITION / SEGMENT).stat().st_size).encode()}


def test_a_directory_with_the_name_of_a_compressed_file_is_a_directory(tmp_path: Path) -> None:
    shutil.copytree(LOGS / PARTITION, tmp_path / f"{SEGMENT}.gz")
    ran = kseg(["ls", f"{SEGMENT}.gz", "-o", "json"], tmp_path)
    assert (ran.status, ran.stdout.count(b'"type":"partition"')) == (0, 1)
