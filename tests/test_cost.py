"""Small input, small cost: input made to be expensive needs no more time and memory than an ordinary file.

The bounds are generous: violations take several times as much.
"""

import functools
import json
import random
import zlib
from pathlib import Path

import pytest

from tests.kernel.made import BatchHeader, Record, batch, varint
from tests.run import run_bounded

LOG = f"{0:020}.log"
MANY = 20_000


def write(directory: Path, *pieces: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / LOG
    path.write_bytes(b"".join(pieces))
    return path


@functools.cache
def make_log(value: bytes) -> bytes:
    return batch(BatchHeader(0), [Record(value=value)])


def single(offset: int, value: bytes = b"v", leader_epoch: int = 0) -> bytes:
    """Return a batch of a record; its checksum covers neither offset nor epoch."""
    whole = make_log(value)
    return offset.to_bytes(8, "big") + whole[8:12] + leader_epoch.to_bytes(4, "big") + whole[16:]


# --- salvage ---------------------------------------------------------------------------------------------------------


def run_salvage(directory: Path, *paths: str) -> dict[str, object]:
    ran = run_bounded(["salvage", "--dry-run", "-o", "json", *paths], directory, seconds=10)
    assert ran.status == 1, ran.stderr
    found: dict[str, object] = json.loads(ran.stdout)
    return found


def test_salvage_keeps_each_batch_between_tens_of_thousands_of_damages(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", *(single(offset) + b"\xff" * 30 for offset in range(MANY)))
    found = run_salvage(tmp_path, "orders-0")
    assert found["batches"] == MANY


def test_salvage_fills_tens_of_thousands_of_holes_from_other_replicas(tmp_path: Path) -> None:
    for replica in range(3):
        lost = (b"\xff" * 30 if offset % 3 == replica else single(offset) for offset in range(MANY))
        write(tmp_path / f"broker{replica}" / "orders-0", *lost)
    found = run_salvage(tmp_path, "broker0", "broker1", "broker2")
    assert (found["batches"], found["holes"]) == (MANY, [])


def test_salvage_fills_tens_of_thousands_of_holes_from_one_whole_replica(tmp_path: Path) -> None:
    half = MANY // 2
    write(tmp_path / "a" / "orders-0", *(single(n) if n % 2 else b"\xff" * 30 for n in range(half)))
    later = f"{half:020}.log"
    (tmp_path / "a" / "orders-0" / later).write_bytes(b"".join(single(n) for n in range(half, MANY + half)))
    write(tmp_path / "b" / "orders-0", *(single(n) for n in range(half)))
    found = run_salvage(tmp_path, "a", "b")
    assert found["batches"] == MANY + half


@pytest.mark.parametrize("order", ["shuffled", "reversed", "same"])
def test_salvage_of_tens_of_thousands_of_batches_out_of_order_ends(order: str, tmp_path: Path) -> None:
    offsets = {"shuffled": random.Random(1).sample(range(MANY), MANY), "reversed": [*range(MANY)][::-1]}
    pieces = (single(offset, b"%d" % place) for place, offset in enumerate(offsets.get(order, [5] * MANY)))
    write(tmp_path / "orders-0", *pieces)
    run_salvage(tmp_path, "orders-0")


def test_salvage_of_a_leader_epoch_for_each_batch_ends(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", *(single(n, leader_epoch=n % 7) for n in range(MANY)))
    ran = run_bounded(["salvage", "--to", "saved", "orders-0"], tmp_path)
    assert ran.status == 0, ran.stderr


# --- headers ---------------------------------------------------------------------------------------------------------

HEADERS = 6_000_000


def gzip_bytes(body: bytes) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    return compressor.compress(body) + compressor.flush()


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a partition with a batch of some KiB: one record with six million headers without names and values."""
    directory = tmp_path_factory.mktemp("headers")
    record = b"\0\0\0\x01\x01" + varint(HEADERS) + bytes(2 * HEADERS)
    body = gzip_bytes(varint(len(record)) + record)
    path = write(directory / "orders-0", batch(BatchHeader(0, attributes=1, count=1), body=body))
    assert path.stat().st_size < 20_000
    return directory


@pytest.mark.parametrize(
    "options",
    [
        "--redact headers",
        "--redact headers -o json",
        "--redact values -o json",
        "--redact keys --redact headers -o csv",
        "--header name",
        "--header name=value",
        "-o csv",
        "-o table",
        "--fields headers -o csv",
        "--value-decoder string -o json",
        "--key-decoder hex --print-data-log",
    ],
)
def test_empty_headers_cost_little_each(options: str, headers: Path) -> None:
    ran = run_bounded(["dump", *options.split(), f"orders-0/{LOG}"], headers, seconds=6, memory=None)
    assert ran.status == 0, ran.stderr


def test_redacted_headers_of_very_many_are_those_of_json(tmp_path: Path) -> None:
    many = [(b"name", b"" if n % 3 else b"%d" % n) for n in range(5000)]
    write(tmp_path, batch(BatchHeader(0), [Record(value=b"v", headers=many)]))
    ran = run_bounded(["dump", "-o", "json", "--redact", "headers", "--redact-key", "k", LOG], tmp_path)
    [record] = [row for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == "record"]
    found = [header["value"] for header in record["headers"]]
    assert [len(value) for value in found] == [len(value) for _, value in many]
    assert all(value != text.decode() for value, (_, text) in zip(found, many, strict=True) if text)


def test_row_too_large_for_a_table_is_left_out_and_said(headers: Path) -> None:
    ran = run_bounded(["dump", "-o", "table", f"orders-0/{LOG}"], headers)
    assert ran.status == 0
    assert b"1 record omitted, longer than 8388608 bytes" in ran.stderr
