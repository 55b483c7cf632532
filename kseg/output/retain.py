"""What retention does, as JSON, as a table, and as a timeline."""

from datetime import UTC, datetime
from pathlib import Path

from kseg.log.partition import PartitionLog
from kseg.log.retain import Retained, Written
from kseg.output.table import TableColumn

TIMELINE_WIDTH = 40


def _time(ms: int | None) -> str:
    if ms is None or not 0 <= ms < 253_402_300_800_000:
        return ""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"


def _decision(each: Retained) -> str:
    return "" if each.segment.retention is None else str(each.segment.retention)


COLUMNS: tuple[TableColumn[Retained], ...] = (
    TableColumn("baseOffset", "base offset", 1, lambda each: each.segment.base_offset),
    TableColumn("bytes", "bytes", 1, lambda each: each.segment.size),
    TableColumn(
        "largestTimestamp",
        "largest time",
        -1,
        lambda each: each.segment.largest_timestamp,
        lambda each: _time(each.segment.largest_timestamp),
    ),
    TableColumn("retention", "retention", -1, _decision),
    TableColumn("expires", "expires by time", -1, lambda each: each.expires_ms, lambda each: _time(each.expires_ms)),
)


def retained_object(partition: PartitionLog, each: Retained) -> dict[str, object]:
    """A segment as JSON tells it."""
    place: dict[str, object] = {"type": "segment", "directory": str(partition.path)}
    return place | {column.name: column.value(each) for column in COLUMNS}


def written_object(directory: Path, written: Written) -> dict[str, object]:
    """A copy as JSON tells it; `rolled` is null unless a new, empty segment took the place of all."""
    base_offsets = list(written.base_offsets)
    return {"type": "copy", "directory": str(directory), "baseOffsets": base_offsets, "rolled": written.rolled}


def written_line(directory: Path, written: Written) -> str:
    """A copy in a line."""
    count = len(written.base_offsets)
    if written.rolled is not None:
        return f"{directory}: no segment is left; an empty one at the log end offset {written.rolled} is written"
    return f"{directory}: {count} segment{'' if count == 1 else 's'} copied"


def timeline(retained: list[Retained], now_ms: int) -> list[str]:
    """A line per segment over time: from its first record to its last `█`, to its end by age `·`; `|` is now."""
    starts = [each.segment.first_timestamp for each in retained if each.segment.first_timestamp >= 0]
    ends = [each.expires_ms for each in retained if each.expires_ms is not None]
    if not starts:
        return []
    first, last = min(starts), max([*ends, now_ms])
    scale = max(last - first, 1)

    def column(ms: int) -> int:
        return min(max((ms - first) * (TIMELINE_WIDTH - 1) // scale, 0), TIMELINE_WIDTH - 1)

    lines = [f"{_time(first)} to {_time(last)}"]
    for each in retained:
        cells = [" "] * TIMELINE_WIDTH
        if each.segment.first_timestamp >= 0:
            end = each.expires_ms if each.expires_ms is not None else last
            for place in range(column(each.segment.first_timestamp), column(end) + 1):
                cells[place] = "·"
            largest = max(each.segment.largest_timestamp, each.segment.first_timestamp)
            for place in range(column(each.segment.first_timestamp), column(largest) + 1):
                cells[place] = "█"
        cells[column(now_ms)] = "|"
        lines.append(f"{''.join(cells).rstrip():<{TIMELINE_WIDTH}}  {each.segment.base_offset:020} {_decision(each)}")
    return lines
