"""Images of disks that never were: logs cut into pieces of whole blocks, shuffled, with other bytes between them.

The truth is known, so that each carved segment can be compared with the log that it is a part of.
"""

import random
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.kernel.made import BatchHeader, Record, batch

FIRST_TIME = 1_700_000_000_000


class Log(NamedTuple):
    """A log and its batches: the base offset, position and size of each."""

    name: str
    content: bytes
    batches: tuple[tuple[int, int, int], ...]


class Piece(NamedTuple):
    """Adjacent bytes of a log, at a position of the image. is_lost: other bytes were written there."""

    log: Log
    log_position: int
    position: int
    size: int
    is_lost: bool


class MadeImage(NamedTuple):
    """An image, its logs, and the place of each of their pieces."""

    content: bytes
    logs: tuple[Log, ...]
    pieces: tuple[Piece, ...]

    def intact_batches(self) -> int:
        """Return the batches that aren't overwritten, even in part."""
        lost: dict[str, list[range]] = {}
        for piece in self.pieces:
            if piece.is_lost:
                lost.setdefault(piece.log.name, []).append(range(piece.log_position, piece.log_position + piece.size))
        return sum(
            not any(hole.start < position + size and position < hole.stop for hole in lost.get(log.name, ()))
            for log in self.logs
            for _, position, size in log.batches
        )


def make_log(name: str, sizes: list[tuple[int, int]], seed: int, first_offset: int = 0, epoch: int = 0) -> Log:
    """Return a log of batches, each with a number of records and the size of their values.

    Two logs of equal sizes have batches with equal offsets, sizes and times, and different values.
    """
    chance = random.Random(f"{name} {seed}")
    offset, position = first_offset, 0
    contents, batches = [], []
    for number, (count, value_size) in enumerate(sizes):
        records = [Record(b"key", chance.randbytes(value_size), offset_delta=delta) for delta in range(count)]
        time = FIRST_TIME + 500 * number
        header = BatchHeader(
            offset,
            leader_epoch=epoch,
            last_offset_delta=count - 1,
            base_timestamp=time,
            max_timestamp=time,
            producer_id=7,
            producer_epoch=0,
            base_sequence=offset % 2**31,
        )
        contents.append(batch(header, records))
        batches.append((offset, position, len(contents[-1])))
        offset += count
        position += len(contents[-1])
    return Log(name, b"".join(contents), tuple(batches))


def lockstep_logs(count: int, size: int, seed: int) -> Iterator[Log]:
    """Yield logs of about `size` bytes: twins in lockstep, twins of one record per batch, small and large batches."""
    for number in range(count):
        kind = number % 4
        chance = random.Random(f"{kind} {seed}" if kind < 2 else f"{number} {seed}")
        sizes: list[tuple[int, int]] = []
        while sum((records * (value + 12) + 61) for records, value in sizes) < size:
            if kind == 0:
                sizes.append((chance.randint(1, 20), chance.randint(20, 200)))
            elif kind == 1:
                sizes.append((1, 180))
            else:
                most = 16_000 if kind == 2 else 60_000
                sizes.append((chance.randint(1, 5), chance.randint(200, most) // 3))
        yield make_log(f"topic-{number}", sizes, seed, first_offset=0 if kind < 2 else chance.randint(0, 10**6))


def scatter(
    logs: list[Log],
    *,
    seed: int,
    mean_blocks: float = 4,
    lost: float = 0,
    block: int = 4096,
    phase: int = 0,
) -> MadeImage:
    """Return an image of the logs' blocks, in pieces of some blocks on average; `lost` is the share of lost ones."""
    chance = random.Random(seed)
    pieces: list[tuple[Log, int, int]] = []
    for log in logs:
        at = 0
        while at < len(log.content):
            size = min(block * max(1, round(chance.expovariate(1 / mean_blocks))), len(log.content) - at)
            pieces.append((log, at, size))
            at += size
    chance.shuffle(pieces)
    content = bytearray(chance.randbytes(phase))
    placed = []
    for log, at, size in pieces:
        if chance.random() < 0.2:
            content += chance.choice((bytes(block), chance.randbytes(block), b"\0\0\0\2" * (block // 4)))
        is_lost = chance.random() < lost
        placed.append(Piece(log, at, len(content), size, is_lost))
        piece = log.content[at : at + size] + bytes(-size % block)
        content += chance.randbytes(len(piece)) if is_lost else piece
    return MadeImage(bytes(content), tuple(logs), tuple(placed))


def freed_ext4(directory: Path, logs: Iterable[Log], file_count: int) -> bytes:
    """Return an ext4 image of 4 MiB from which logs were deleted, whose blocks lie between those of other files."""
    assert shutil.which("mke2fs"), "install e2fsprogs"
    files, disk, script = (directory / name for name in ("root", "ext4.img", "script"))
    files.mkdir()
    for number in range(file_count):
        (files / f"{number:03}").write_bytes(b"\xaa" * 4096)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-b", "4096", "-d", files, disk, "4M"], check=True)
    steps = [f"rm {number:03}" for number in range(0, file_count, 2)]
    for log in logs:
        (directory / log.name).write_bytes(log.content)
        steps.append(f"write {directory / log.name} {log.name}")
    script.write_text("\n".join([*steps, *(f"rm {log.name}" for log in logs)]))
    subprocess.run(["debugfs", "-w", "-f", script, disk], check=True, capture_output=True)
    return disk.read_bytes()
