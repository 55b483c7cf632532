"""Plans and reports of exports, as tables and as JSON objects."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Protocol

_PLAN_COLUMNS = ("topic", "partition", "orders", "bytes", "files")
_REPORT_COLUMNS = {
    "topic": "topic",
    "partition": "partition",
    "from": "from_offset",
    "to": "to_offset",
    "in": "records_in",
    "out": "records_out",
    "control": "control",
    "aborted": "aborted",
    "gaps": "gaps",
    "lost": "lost",
    "recovered": "recovered",
    "bytes": "bytes",
}
UNKNOWN = "?"


class _Order(Protocol):
    topic: str
    partition: int | None
    ranges: tuple[Any, ...]

    @property
    def size(self) -> int: ...


class _Plan(Protocol):
    @property
    def orders(self) -> tuple[Any, ...]: ...


class _Report(Protocol):
    destination: str

    @property
    def partitions(self) -> tuple[Any, ...]: ...

    @property
    def new_files(self) -> int: ...


def plan_rows(orders: Iterable[_Order]) -> list[dict[str, Any]]:
    """By partition: orders, bytes and files to read."""
    rows: dict[tuple[str, int | None], dict[str, Any]] = {}
    for order in orders:
        row = rows.setdefault(
            (order.topic, order.partition),
            {"topic": order.topic, "partition": order.partition, "orders": 0, "bytes": 0, "files": 0},
        )
        row["orders"] += 1
        row["bytes"] += order.size
        row["files"] += len(order.ranges)
    return sorted(rows.values(), key=lambda row: (row["topic"], row["partition"] or 0))


def plan_objects(plan: _Plan) -> Iterator[dict[str, Any]]:
    """A plan as objects: one per partition, and a summary."""
    rows = plan_rows(plan.orders)
    yield from ({"type": "partition", **row} for row in rows)
    yield {"type": "summary", "partitions": len(rows), "orders": len(plan.orders), "bytes": _total(rows)}


def plan_lines(plan: _Plan) -> Iterator[str]:
    """A plan as a table."""
    rows = plan_rows(plan.orders)
    yield from _table(_PLAN_COLUMNS, ([row[name] for name in _PLAN_COLUMNS] for row in rows))
    yield f"{len(rows)} partitions, {len(plan.orders)} orders, {_total(rows)} bytes"


def _total(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(row["bytes"] for row in rows)


def report_objects(report: _Report) -> Iterator[dict[str, Any]]:
    """A report as objects: one per partition, one per damage, and a summary."""
    for partition in report.partitions:
        members = partition.to_json()
        damages = members.pop("damages")
        yield {"type": "partition", **members}
        place = {"topic": partition.topic, "partition": partition.partition}
        yield from ({"type": "damage", **place, **damage} for damage in damages)
    yield {"type": "summary", **_sums(report)}


def report_lines(report: _Report) -> Iterator[str]:
    """A report as a table, with the damages below it."""
    rows = ([getattr(partition, name) for name in _REPORT_COLUMNS.values()] for partition in report.partitions)
    yield from _table(tuple(_REPORT_COLUMNS), rows)
    for partition in report.partitions:
        for loss in map(asdict, partition.damages):
            offsets = f"offsets {_shown(loss['first'])} to {_shown(loss['end'])}"
            yield f"{loss['segment']}: at position {loss['position']}: {loss['kind']}: {loss['detail']}; {offsets}"
    sums = _sums(report)
    yield (
        f"{sums['recordsOut']} of {sums['recordsIn']} records, {sums['lost']} offsets lost, {sums['damages']} damages; "
        f"{sums['newFiles']} new files in {report.destination}"
    )


def _sums(report: _Report) -> dict[str, Any]:
    partitions = report.partitions
    return {
        "partitions": len(partitions),
        "recordsIn": sum(partition.records_in for partition in partitions),
        "recordsOut": sum(partition.records_out for partition in partitions),
        "lost": sum(partition.lost or 0 for partition in partitions),
        "damages": sum(len(partition.damages) for partition in partitions),
        "newFiles": report.new_files,
    }


def _shown(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _table(names: tuple[str, ...], rows: Iterable[list[Any]]) -> Iterator[str]:
    """Columns as wide as needed; numbers to the right."""
    cells = [list(names), *([_shown(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(names))]
    for row in cells:
        shown = [
            cell.ljust(width) if names[column] == "topic" else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(shown).rstrip()
