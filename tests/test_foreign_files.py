"""Files of others among Kafka's: reports name their kind instead of their errors."""

import io
import json
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

from tests import golden, run
from tests.log import edits
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.loops import for_each

NAME = f"{0:020}.log"
LOG = b"".join(batch_bytes(NewBatch([NewRecord(b"k", b"v" * 40)], offset)) for offset in range(20))


def pointer(number: int) -> bytes:
    """Return a pointer of Git LFS: the third version of its specification has more keys."""
    keys = ["ext-0-kseg sha256:" + "0" * 64] * (number % 3)
    lines = ["version https://git-lfs.github.com/spec/v1", *keys, f"oid sha256:{number:064x}", f"size {10**number}"]
    return "\n".join(lines).encode() + b"\n" * (number % 2)


def redpanda(number: int) -> bytes:
    """Return a batch in Redpanda's form: little-endian, with a CRC of its own header."""
    random = Random(number)
    body = random.randbytes(20 * number)
    rest = struct.pack("<iqbIhiqqqhii", 61 + len(body), 2**number, 1, number, 0, 0, 10**12, 10**12, -1, -1, -1, 1)
    return struct.pack("<I", calc_crc32c(rest)) + rest + body


def make_tar(number: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz" if number % 2 else "w") as archive:
        archive.addfile(tarfile.TarInfo(f"orders-{number}/{NAME}"))
    return stream.getvalue()


def make_zip(number: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(f"orders-{number}/{NAME}", LOG)
    return stream.getvalue()


CONTENTS: dict[str, Callable[[int], bytes]] = {
    "a Git LFS pointer to 1": pointer,
    "a git-annex pointer": lambda number: f"/annex/objects/SHA256E-s946--{number:064x}.log\n".encode(),
    "a Redpanda batch": redpanda,
    "gzip|a tar archive": make_tar,
    "a zip archive": make_zip,
    "a page of XML or HTML": lambda number: (b"<?xml version='1.0'?>", b"<!DOCTYPE html>", b"<Error>")[number % 3] * 9,
    "text: '[2026-11-25": lambda number: b"[2026-11-25 20:10:02,876] INFO started (kafka.Server)\n" * (number + 1),
    "a Parquet file": lambda number: b"PAR1" + bytes(100 * number) + b"PAR1",
}


def list_findings(directory: Path) -> list[dict[str, str]]:
    ran = run.kseg(["verify", ".", "-o", "json"], directory)
    return [each for each in map(json.loads, ran.stdout.splitlines()) if each.get("severity") == "error"]


@for_each("what, number", [(what, number) for what in CONTENTS for number in range(10)], ids=str)
def test_content_is_named(tmp_path: Path, what: str, number: int) -> None:
    log = tmp_path / "orders-0" / NAME
    log.parent.mkdir()
    log.write_bytes(CONTENTS[what](number))
    (finding,) = list_findings(tmp_path)
    assert finding["id"] == "foreign-content"
    assert any(each in finding["sentence"] for each in what.split("|"))
    ran = run.kseg(["dump", "--files", f"orders-0/{NAME}"], tmp_path)
    assert ran.status == 1
    assert any(each.encode() in ran.stderr for each in what.split("|"))


def test_text_before_a_log_hides_nothing(tmp_path: Path) -> None:
    """A shell wrote a banner in front; the following log is saved."""
    log = tmp_path / "orders-0" / NAME
    log.parent.mkdir()
    log.write_bytes(b"Warning: Permanently added '10.0.0.1' (ED25519) to the list of known hosts.\n" + LOG)
    (finding,) = list_findings(tmp_path)
    assert (finding["id"], 'looks like text: "Warning: Perm' in finding["sentence"]) == ("bad-length", True)
    assert run.kseg(["salvage", "orders-0", "--to", "saved"], tmp_path).status == 1
    assert (tmp_path / "saved" / "orders-0" / NAME).read_bytes() == LOG


NAMES = {
    "lost+found": "the place where `fsck` and `kseg salvage` put recovered files",
    ".nfs000000000263400b0000003a": "deleted while a process had it open, on NFS",
    ".fuse_hidden0000002300000001": "deleted while a process had it open, on FUSE",
    ".DS_Store": "macOS's",
    ".snapshot": "a file of the file server or file system",
    f".{NAME}.aB3xYz": "an interrupted copy by rsync",
    f"{NAME}.filepart": "an interrupted transfer",
    f"{NAME}~": "a manual copy",
    f"{0:020} (1).log": "a manual copy",
    f"{0:020} - Copy.log": "a manual copy",
    f"{NAME}.bak": "a manual copy",
    "0-1-v1.log": "a Redpanda file, which kseg doesn't read",
    "bundle.tar.gz": "an archive; unpack it, or specify its own path",
    f"{NAME}.gz": "compressed; specify its own path",
}


@for_each("name, what", list(NAMES.items()), ids=str)
def test_name_beside_a_log_is_told(tmp_path: Path, name: str, what: str) -> None:
    log = tmp_path / "orders-0" / NAME
    log.parent.mkdir()
    log.write_bytes(LOG)
    (log.parent / name).write_bytes(b"x")
    ran = run.kseg(["verify", "."], tmp_path)
    assert f"{name} ({what}" in ran.stderr.decode()


@pytest.mark.parametrize("name", [".snapshot", "lost+found"])
def test_directory_that_no_broker_starts_on_is_told(tmp_path: Path, name: str) -> None:
    partition = edits.copy_partition(tmp_path, "4.3.1/zstd-0")
    (partition.parent / name).mkdir()
    shutil.copy(golden.ROOT / "logs" / "4.3.1" / "meta.properties", partition.parent)
    found = [each["sentence"] for each in list_findings(tmp_path) if each["id"] == "foreign-directory"]
    assert found == [f"its name isn't a topic with a partition number: it is {NAMES[name]}"]


@for_each("name", ["bundle.tar.gz", "disk.zip", "0-1-v1.log", f"{NAME}.gz"], ids=str)
def test_path_without_a_partition_says_what_is_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "here" / "below").mkdir(parents=True)
    (tmp_path / "here" / "below" / name).write_bytes(b"x")
    ran = run.kseg(["verify", "here"], tmp_path)
    assert ran.status == 2
    assert f"or a parent of it; below/{name} is {NAMES.get(name, NAMES['bundle.tar.gz'])}" in ran.stderr.decode()


@for_each("form", ["tar", "zip"], ids=str)
def test_archive_within_an_archive_is_named(tmp_path: Path, form: str) -> None:
    outer = tmp_path / f"outer.{form}"
    if form == "tar":
        with tarfile.open(outer, "w") as archive:
            inner = tarfile.TarInfo("disks/disk1.tar.gz")
            inner.size = len(make_tar(1))
            archive.addfile(inner, io.BytesIO(make_tar(1)))
    else:
        with zipfile.ZipFile(outer, "w") as packed:
            packed.writestr("disks/disk1.tar.gz", make_tar(1))
    ran = run.kseg(["ls", outer.name], tmp_path)
    assert (ran.status, ran.stderr.splitlines()[0].decode()) == (
        2,
        f"kseg: outer.{form}/disks/disk1.tar.gz: is an archive within an archive; unpack outer.{form} first",
    )


@for_each("number", range(10), ids=str)
def test_emptied_files_are_one_finding(tmp_path: Path, number: int) -> None:
    """A failed copy leaves names without bytes. Logs that a broker left empty have no finding."""
    names = ("4.3.1/zstd-0", "4.3.1/append-zstd-0", "2.3.1/txn-1", "4.1.0/roll-index-0", "3.3.2/headers-0")
    partition = edits.copy_partition(tmp_path, names[number % 5])
    before = {each["id"] for each in list_findings(tmp_path)}
    for file in partition.iterdir():
        if number < 5 or file.suffix != ".index":
            file.write_bytes(b"")
    found = [each for each in list_findings(tmp_path) if each["id"] not in before]
    first, *others = (each for each in found if each["id"] != "unreadable-text")  # partition.metadata: no start at all
    assert (first["id"], others) == ("emptied-files", [])
    assert first["sentence"].startswith("empty: ")
    ran = run.kseg(["doctor", "."], tmp_path)
    assert not ran.stdout.startswith(b"A broker would start without problems")


def test_empty_log_before_others_is_named(tmp_path: Path) -> None:
    log = tmp_path / "orders-0" / NAME
    log.parent.mkdir()
    log.write_bytes(b"")
    second = batch_bytes(NewBatch([NewRecord(None, b"v")], 20))
    log.with_name(f"{20:020}.log").write_bytes(second)
    (finding,) = list_findings(tmp_path)
    assert finding["sentence"].endswith(f"are missing before the segment's first batch; {NAME} is empty")
