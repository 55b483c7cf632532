"""Small input, small cost: what is made to cost much stays within the processor time and memory of an ordinary file.

The bounds are generous: what they keep out takes several times as much.
"""

import json
import random
from pathlib import Path

import pytest

from tests.kernel.made import BatchHeader, Record, batch
from tests.run import bounded

LOG = f"{0:020}.log"
MANY = 30_000


def write(directory: Path, *pieces: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / LOG
    path.write_bytes(b"".join(pieces))
    return path


def single(offset: int, value: bytes = b"v", **fields: int) -> bytes:
    return batch(BatchHeader(offset, **fields), [Record(value=value)])


# --- salvage ---------------------------------------------------------------------------------------------------------


def salvaged(directory: Path, *paths: str) -> dict[str, object]:
    ran = bounded(["salvage", "--dry-run", "--format", "json", *paths], directory, seconds=10)
    assert ran.status == 1, ran.stderr
    found: dict[str, object] = json.loads(ran.stdout)
    return found


def test_salvage_keeps_each_batch_between_tens_of_thousands_of_damages(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", *(single(offset) + b"\xff" * 30 for offset in range(MANY)))
    found = salvaged(tmp_path, "orders-0")
    assert found["batches"] == MANY


def test_salvage_fills_tens_of_thousands_of_holes_from_other_replicas(tmp_path: Path) -> None:
    for replica in range(3):
        lost = (b"\xff" * 30 if offset % 3 == replica else single(offset) for offset in range(MANY))
        write(tmp_path / f"broker{replica}" / "orders-0", *lost)
    found = salvaged(tmp_path, "broker0", "broker1", "broker2")
    assert (found["batches"], found["holes"]) == (MANY, [])


def test_salvage_fills_tens_of_thousands_of_holes_from_one_whole_replica(tmp_path: Path) -> None:
    half = MANY // 2
    write(tmp_path / "a" / "orders-0", *(single(n) if n % 2 else b"\xff" * 30 for n in range(half)))
    later = f"{half:020}.log"
    (tmp_path / "a" / "orders-0" / later).write_bytes(b"".join(single(n) for n in range(half, MANY + half)))
    write(tmp_path / "b" / "orders-0", *(single(n) for n in range(half)))
    found = salvaged(tmp_path, "a", "b")
    assert found["batches"] == MANY + half


@pytest.mark.parametrize("order", ["shuffled", "reversed", "same"])
def test_salvage_of_tens_of_thousands_of_batches_out_of_order_ends(order: str, tmp_path: Path) -> None:
    offsets = {"shuffled": random.Random(1).sample(range(MANY), MANY), "reversed": [*range(MANY)][::-1]}
    pieces = (single(offset, b"%d" % place) for place, offset in enumerate(offsets.get(order, [5] * MANY)))
    write(tmp_path / "orders-0", *pieces)
    salvaged(tmp_path, "orders-0")


def test_salvage_of_a_leader_epoch_for_each_batch_ends(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", *(single(n, leader_epoch=n % 7) for n in range(MANY)))
    ran = bounded(["salvage", "-o", "saved", "orders-0"], tmp_path)
    assert ran.status == 0, ran.stderr
