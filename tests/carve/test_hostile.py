"""Images made to be slow: neither time nor memory grow out of proportion."""

import random
import struct
from pathlib import Path

import pytest

from kseg.carve.images import Images
from kseg.carve.joins import MOST_CANDIDATES, join_runs
from kseg.carve.runs import Blocks, Runs
from kseg.carve.scan import scan_images
from tests.carve.made_images import make_log
from tests.commands.test_carve import BLOCK, blocks_of, carved_logs, evidence, log_broken_at
from tests.kernel.made import BatchHeader, Record, batch
from tests.run import run_bounded

SIZE = 8 << 20
LARGE = 60 << 20
LOG = make_log("a", [(1, 300)] * 30, 1)


def headers_each(distance: int) -> bytes:
    """Return headers of batches of 60 MiB, so many bytes apart."""
    header = bytearray(batch(BatchHeader(7), [Record(b"k", b"v")])[:distance].ljust(distance, b"\0"))
    struct.pack_into(">i", header, 8, LARGE)
    return bytes(header) * (SIZE // distance)


CONTENTS = {
    "each 61 bytes": headers_each(61),
    "each sector": headers_each(512),
    "pattern": b"\0\2" * (SIZE // 2),
    "at the end": random.Random(1).randbytes(BLOCK) + struct.pack(">qii", 5, LARGE, 0) + b"\2",
}


def carve_bounded(directory: Path, content: bytes, *options: str) -> None:
    """Carve some bytes and a log after them, within bounds of time and memory."""
    (directory / "disk.img").write_bytes(content.ljust(-(-len(content) // BLOCK) * BLOCK, b"\0") + LOG.content)
    ran = run_bounded(["carve", "disk.img", "--to", "carved", *options], directory, seconds=60)
    assert ran.status in (0, 1), ran.stderr


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_claimed_sizes_cost_neither_batches_nor_memory(content: bytes, tmp_path: Path) -> None:
    carve_bounded(tmp_path, content)
    assert list(carved_logs(tmp_path).values()) == [LOG.content]


def test_messages_of_old_formats_that_claim_much_are_bounded(tmp_path: Path) -> None:
    message = bytearray(64)
    struct.pack_into(">qiIbbi", message, 0, 5, SIZE // 2, 1, 0, 0, SIZE // 2 - 14)
    carve_bounded(tmp_path, bytes(message) * (SIZE // 64), "--legacy")
    assert LOG.content in carved_logs(tmp_path).values()


def test_thousands_of_rests_with_one_offset_leave_a_batch_unplaced(tmp_path: Path) -> None:
    torn = make_log("torn", [(1, 300), (1, 5000), (1, 300)], 1)
    chance, place = random.Random(1), torn.batches[2][1] - BLOCK
    rests = [
        chance.randbytes(place) + make_log(str(number), [(1, 300)], 1, first_offset=2).content for number in range(1000)
    ]
    blocks = [torn.content[BLOCK:], *rests, torn.content[:BLOCK]]
    carve_bounded(tmp_path, b"".join(each.ljust(BLOCK, b"\0") for each in blocks))
    assert "torn-head" in [line.get("kind") for line in evidence(tmp_path) if line["type"] == "unplaced"]
    assert torn.content not in carved_logs(tmp_path).values()


class CountedImages(Images):
    """Images that count the reads, and their bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__([path])
        self.reads = self.bytes_read = 0

    def read(self, start: int, end: int) -> bytes:
        self.reads += 1
        self.bytes_read += end - start
        return super().read(start, end)


@pytest.mark.parametrize("cut", [30, 60])
@pytest.mark.parametrize("is_equal", [False, True], ids=["of many partitions", "of one partition"])
def test_heads_and_rests_with_one_offset_are_not_read_for_each_pair(is_equal: bool, cut: int, tmp_path: Path) -> None:
    head_count, rest_count = 2000, 60
    heads = [blocks_of(log_broken_at(cut, "0" if is_equal else f"head {number}"))[0] for number in range(head_count)]
    rests = [blocks_of(log_broken_at(cut, "0" if is_equal else f"rest {number}"))[1] for number in range(rest_count)]
    (tmp_path / "disk.img").write_bytes(b"".join([*heads, bytes(BLOCK), *rests]))
    with CountedImages(tmp_path / "disk.img") as images:
        scan = scan_images(images, is_hashed=False, is_legacy=False, on_read=lambda _: None, look=lambda *_: None)
        joins = join_runs(Runs(scan.batches, images, Blocks(BLOCK)))
    assert joins.links == {}
    assert len(joins.likely) <= rest_count * MOST_CANDIDATES
    assert images.reads <= 5 * (head_count + rest_count)
    assert images.bytes_read <= 2 * BLOCK * (head_count + rest_count)
