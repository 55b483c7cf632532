"""The batches that salvage keeps of a log, and an independent brute-force search for those that it must keep."""

import re
from pathlib import Path
from zlib import crc32

from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

from kseg.cluster.cluster import Cluster
from kseg.rewrite.salvage import write_salvage
from kseg.rewrite.salvage_plan import Salvage, plan_salvage
from kseg.store.target import new_directory
from tests import golden

LEAST_SIZE = {0: 26, 1: 34, 2: 61}
# Findings that compaction or a lost batch explains aren't the copy's.
GAPS = {"offsets-lost", "offsets-missing", "sequence-gap"}
# Problems inside batches with a right CRC.
INNER = {"bad-codec", "bad-body", "bad-record", "bad-count", "record-offsets"}


def intact_batches(data: bytes) -> list[bytes]:
    """Return all batches with a right CRC: every position is tried, except within a found batch."""
    found, position = [], 0
    while position + 17 <= len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True) + 12
        if is_intact(data[position : position + size] if size > 0 else b"", size):
            found.append(data[position : position + size])
            position += size
        else:
            position += 1
    return found


def is_intact(raw: bytes, size: int) -> bool:
    if len(raw) < 17 or len(raw) < size or size < LEAST_SIZE.get(raw[16], 1 << 40):
        return False
    if raw[16] == 2:
        return bool(calc_crc32c(raw[21:]) == int.from_bytes(raw[17:21], "big"))
    return crc32(raw[16:]) == int.from_bytes(raw[12:16], "big")


def salvage(paths: list[Path], directory: Path, *, drop_unreadable: bool = False) -> Salvage:
    (found,) = Cluster(paths).partitions()
    plan = plan_salvage(found, drop_unreadable=drop_unreadable)
    with new_directory(directory) as target:
        write_salvage(plan, target)
    return plan


def may_remain() -> set[str]:
    """Return the findings that `verify` may have after salvage, according to docs/how-to/will-not-load.md."""
    text = (golden.ROOT.parent / "docs" / "how-to" / "will-not-load.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| finding | cause | next step |\n")
    rows = table.partition("\n\n")[0].splitlines()[1:]
    return {name for row in rows for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
