"""Logs that a program copied as text: the change is identified, and `salvage` restores the log byte for byte."""

import json
import os
import re
import shutil
from base64 import encodebytes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import golden, run
from tests.log.advice import POINTER
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.loops import for_each, some

LOGS = [
    path for path in golden.files(".log") if re.fullmatch(r"[0-9]{20}\.log", path.name) and b"\n" in path.read_bytes()
]


def with_crs(data: bytes) -> bytes:
    """Convert LF to CRLF like unix2dos: a CRLF stays."""
    return re.sub(rb"(?<!\r)\n", b"\r\n", data)


def as_text(page: str) -> Callable[[bytes], str]:
    """Return a decoder to the characters of a code page; a missing one becomes the character of the byte's number."""
    characters = [bytes([number]).decode(page, "ignore") or chr(number) for number in range(256)]
    return lambda data: "".join(characters[each] for each in data)


def powershell(page: str) -> Callable[[bytes], bytes]:
    """Return a function that converts a program's output like `>` of PowerShell."""
    return lambda data: b"\xff\xfe" + (as_text(page)(with_crs(data)) + "\r\n").encode("utf-16-le")


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "LF became CRLF": with_crs,
    "its bytes were written in base64": encodebytes,
    "its bytes were written in base64, in UTF-16": lambda data: encodebytes(data).decode().encode("utf-16") + b"\n\0",
    "its bytes were written as hex digits": lambda data: data.hex().encode(),
    "its bytes were read as Latin-1 and written as UTF-8": lambda data: data.decode("latin-1").encode(),
    "its bytes were read as Windows-1252 and written as UTF-8": lambda data: as_text("cp1252")(data).encode(),
    "its bytes were read as Latin-1 and written as UTF-8, twice": (
        lambda data: data.decode("latin-1").encode().decode("latin-1").encode()
    ),
    "its bytes were read as code page 437 and written as UTF-8, LF as CRLF": (
        lambda data: as_text("cp437")(with_crs(data)).encode()
    ),
    "its bytes were read as code page 850 and written as UTF-16, LF as CRLF": powershell("cp850"),
}


def cases() -> Iterator[tuple[str, Path]]:
    """Yield ten logs for each change, of all releases and formats."""
    for number, change in enumerate(CHANGES):
        yield from ((change, log) for log in LOGS[number :: len(LOGS) // 10][:10])


def case_name(case: tuple[str, Path]) -> str:
    return f"{case[0]}: {case[1].relative_to(golden.ROOT)}"


def change_log(directory: Path, change: Callable[[bytes], bytes], data: bytes, base: str) -> Path:
    """Return the partition's log after a change."""
    log = directory / "copy-0" / f"{base}.log"
    log.parent.mkdir()
    log.write_bytes(change(data))
    return log


def errors(directory: Path) -> list[tuple[str, str]]:
    ran = run.kseg(["verify", ".", "-o", "json"], directory)
    found = map(json.loads, ran.stdout.splitlines())
    return [(each["id"], each["sentence"]) for each in found if each.get("severity") == "error"]


@for_each("change, log", some(cases(), 4), ids=case_name, shards=4)
def test_change_is_named_and_undone(tmp_path: Path, change: str, log: Path) -> None:
    data = log.read_bytes()
    copied = change_log(tmp_path, CHANGES[change], data, log.name[:20])
    (sentence,) = (sentence for finding, sentence in errors(tmp_path) if finding == "changed-as-text")
    pages = re.sub("Latin-1|Windows-1252|code page [0-9]+", "PAGE", change)  # several may have the characters
    assert pages in re.sub("Latin-1|Windows-1252|code page [0-9]+", "PAGE", sentence)
    ran = run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path)
    assert b"was copied as text: " in ran.stdout
    assert (tmp_path / "saved" / "copy-0" / copied.name).read_bytes() == data


def test_salvaged_copy_is_whole(tmp_path: Path) -> None:
    """The status is 0, and names and times of written files are those of the user's file."""
    records = [NewRecord(b"k", b"first line\nsecond line\n") for _ in range(10)]
    data = b"".join(batch_bytes(NewBatch(records, base_offset)) for base_offset in range(0, 100, 10))
    log = change_log(tmp_path, with_crs, data, f"{0:020}")
    ran = run.kseg(["salvage", "copy-0", "--to", "saved", "-o", "json"], tmp_path)
    _, told = map(json.loads, ran.stdout.splitlines())
    assert ran.status == 0
    assert told["undone"] == [{"file": "copy-0/00000000000000000000.log", "change": "LF became CRLF"}]
    (written,) = (each for each in told["files"] if each["file"].endswith(".log"))
    assert written["sources"] == ["copy-0/00000000000000000000.log"]
    assert run.kseg(["verify", "saved"], tmp_path).status == 0
    assert (tmp_path / "saved" / "copy-0" / log.name).stat().st_mtime_ns == log.stat().st_mtime_ns


def test_own_line_ends_are_told_from_added_ones(tmp_path: Path) -> None:
    """Programs leave a value's own CRLFs unchanged; only the CRC shows which these were."""
    records = [NewRecord(None, b"a\r\nb\nc"), NewRecord(None, b"x" * 10 + b"\n")]
    data = b"".join(batch_bytes(NewBatch(records, base_offset)) for base_offset in range(0, 40, 2))
    log = change_log(tmp_path, with_crs, data, f"{0:020}")
    assert run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path).status == 0
    assert (tmp_path / "saved" / "copy-0" / log.name).read_bytes() == data


def test_batches_that_no_change_explains_are_lost(tmp_path: Path) -> None:
    """Only changes that a CRC confirms are undone: a batch with further damage stays lost."""
    batches = [batch_bytes(NewBatch([NewRecord(b"k", b"v\n" * 20)], offset)) for offset in range(10)]
    damaged = b"".join(batches[:4]) + batches[4][:-9] + b"#" + batches[4][-8:] + b"".join(batches[5:])
    log = change_log(tmp_path, with_crs, damaged, f"{0:020}")
    ran = run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path)
    assert ran.status == 1
    assert b"  offset lost: 4 (damage); next good offset 5\n" in ran.stdout
    assert (tmp_path / "saved" / "copy-0" / log.name).read_bytes() == b"".join(batches[:4] + batches[5:])


LOST: dict[str, Callable[[bytes], bytes]] = {
    "bytes that aren't UTF-8 became U+FFFD": lambda data: data.decode(errors="replace").encode(),
    "bytes above 0x7f were replaced, or cut to 7 bits": lambda data: bytes(each & 0x7F for each in data),
}
"""Changes that can't be undone."""


NEW_LOGS = [path for path in LOGS if path.read_bytes()[16] == 2 and path.stat().st_size > 1000]
"""Logs of format 2 that aren't small: in older messages often only the CRC has a byte above 0x7f."""


@for_each(
    "change, log",
    [(change, log) for change in LOST for log in some(NEW_LOGS[:: len(NEW_LOGS) // 10], 4)],
    ids=case_name,
)
def test_change_that_cannot_be_undone_is_named(tmp_path: Path, change: str, log: Path) -> None:
    change_log(tmp_path, LOST[change], log.read_bytes(), log.name[:20])
    assert change in " ".join(sentence for _, sentence in errors(tmp_path))
    ran = run.kseg(["dump", "--files", f"copy-0/{log.name[:20]}.log"], tmp_path)
    assert change.encode() in ran.stderr


def test_whole_disk_that_was_copied_as_text_is_saved(tmp_path: Path) -> None:
    """Logs and the metadata's checkpoints are restored; other changed files are rebuilt."""
    disk = tmp_path / "disk"
    shutil.copytree(golden.ROOT / "logs" / "4.3.1", disk)
    files = [path for path in disk.rglob("*") if path.is_file()]
    before = {path.relative_to(disk): path.read_bytes() for path in files}
    for path in files:
        path.write_bytes(encodebytes(path.read_bytes()))
    assert run.kseg(["salvage", "disk", "--to", "saved"], tmp_path).status == 0
    logs = [name for name in before if name.suffix in (".log", ".checkpoint") and name.parent != Path()]
    assert len(logs) > 8
    assert [name for name in logs if (tmp_path / "saved" / name).read_bytes() != before[name]] == []


def test_small_file_of_a_disk_says_what_it_holds(tmp_path: Path) -> None:
    """One finding for each file describes it; none describes entries that it would have."""
    disk = tmp_path / "disk"
    shutil.copytree(golden.ROOT / "logs" / "4.3.1", disk)
    for path in disk.rglob("*"):
        if path.is_file():
            path.write_bytes(POINTER)
    ran = run.kseg(["verify", "disk", "-v", "-o", "json"], tmp_path)
    found = [each for each in map(json.loads, ran.stdout.splitlines()) if each["type"] == "finding"]
    of_files = [each for each in found if (tmp_path / each["file"]).is_file()]
    assert len({each["file"] for each in of_files}) == len(of_files) > 30
    assert [each for each in of_files if "a Git LFS pointer to 946 bytes" not in each["sentence"]] == []


BATCHES = [
    batch_bytes(NewBatch([NewRecord(b"k", f"line {offset}\nend\n".encode() * 9)], offset)) for offset in range(200)
]
HALF = len(BATCHES) // 2


@for_each("change, is_first", [(change, is_first) for change in CHANGES for is_first in (False, True)], ids=str)
def test_half_of_a_log_that_was_changed_is_undone(tmp_path: Path, change: str, is_first: bool) -> None:
    """A transfer continued in another mode: intact batches stay, whatever precedes them."""
    first, second = b"".join(BATCHES[:HALF]), b"".join(BATCHES[HALF:])
    data = CHANGES[change](first) + second if is_first else first + CHANGES[change](second)
    log = change_log(tmp_path, lambda _: data, b"", f"{0:020}")
    assert run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path).status == 0
    assert (tmp_path / "saved" / "copy-0" / log.name).read_bytes() == first + second


def test_change_is_found_behind_a_damaged_batch(tmp_path: Path) -> None:
    """The first batch was damaged before the copy; the others are saved."""
    damaged = BATCHES[0][:-3] + b"#" + BATCHES[0][-2:]
    log = change_log(tmp_path, with_crs, damaged + b"".join(BATCHES[1:]), f"{0:020}")
    assert run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path).status == 1
    assert (tmp_path / "saved" / "copy-0" / log.name).read_bytes() == b"".join(BATCHES[1:])


def test_batches_with_line_ends_of_windows_stay(tmp_path: Path) -> None:
    """They had only CRLFs, so that no program changed them; a preceding batch can't be restored."""
    mixed = batch_bytes(NewBatch([NewRecord(b"k", (b"a\r\nb\nc\nd\r\n" * 20))], 1))
    windows = [batch_bytes(NewBatch([NewRecord(b"k", b"line\r\n" * 9)], offset)) for offset in range(2, 9)]
    whole = [BATCHES[0], *(batch for batch in windows if with_crs(batch) == batch)]
    change_log(tmp_path, with_crs, b"".join([BATCHES[0], mixed, *windows]), f"{0:020}")
    run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path)
    saved = (tmp_path / "saved" / "copy-0" / f"{0:020}.log").read_bytes()
    assert len(whole) > 3
    assert [batch for batch in whole if batch not in saved] == []


def test_large_batch_before_a_change_stays(tmp_path: Path) -> None:
    """It is too large to be tried, and has no LF, so it is unchanged."""
    large = batch_bytes(NewBatch([NewRecord(b"k", bytes(17 << 20))], 0))
    data = b"".join([large, *BATCHES[1:]])
    assert b"\n" not in large
    log = change_log(tmp_path, with_crs, data, f"{0:020}")
    assert run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path).status == 0
    assert (tmp_path / "saved" / "copy-0" / log.name).read_bytes() == data


def test_zeros_behind_a_changed_log_are_no_loss(tmp_path: Path) -> None:
    """A preallocated segment, copied with its holes."""
    log = change_log(tmp_path, with_crs, b"".join(BATCHES), f"{0:020}")
    os.truncate(log, 1 << 30)
    assert run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path).status == 0
    assert (tmp_path / "saved" / "copy-0" / log.name).read_bytes() == b"".join(BATCHES)


def test_no_place_for_the_copy_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It isn't a loss: with another TMPDIR nothing is lost."""
    change_log(tmp_path, encodebytes, b"".join(BATCHES), f"{0:020}")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    ran = run.kseg(["salvage", "copy-0", "--to", "saved"], tmp_path)
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: copy-0/00000000000000000000.log: ")
    assert b"set TMPDIR to another place" in ran.stderr
    assert not (tmp_path / "saved").exists()


@for_each("size", [3_000, 30_000], ids=str)
def test_cut_copy_takes_no_time(tmp_path: Path, size: int) -> None:
    """In a large batch of many lines, changed and cut, nothing distinguishes its CRs. The search stays short."""
    log = change_log(tmp_path, with_crs, batch_bytes(NewBatch([NewRecord(b"k", b"x\n" * size)])), f"{0:020}")
    os.truncate(log, log.stat().st_size // 2)
    assert run.kseg(["verify", "copy-0"], tmp_path).status == 1
