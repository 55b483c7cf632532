"""The report as objects: a line each for `-o json`, and one that the page holds."""

import json
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from kseg.report.block import About, DiskReport, Table
from kseg.report.page.cells import cell_value

MOST_ROWS = 250
"""Rows of a table that the page's own JSON has; `-o json` has all."""


def report_objects(report: DiskReport, zone: tzinfo) -> Iterator[dict[str, Any]]:
    """What the report is about; its verdicts, those that matter most first; rows of its tables; its notes."""
    yield {"type": "report", **_about(report.about)}
    for block, verdict in report.verdicts:
        yield {
            "type": "verdict",
            "block": block.id,
            "weight": str(verdict.weight),
            "sentence": verdict.sentence,
            "command": verdict.command,
        }
    for block in report.blocks:
        for table in block.tables:
            for row in _rows(table, zone):
                cells = {column.name: value for column, value in zip(table.columns, row, strict=True)}
                yield {"type": "row", "block": block.id, "table": table.id, **cells}
    for block in report.blocks:
        for note in block.notes:
            yield {"type": "note", "block": block.id, "text": note}


def report_json(report: DiskReport, zone: tzinfo) -> str:
    """The same as one text of JSON, which no page can take for markup; tables by columns and rows."""
    found = {
        **_about(report.about),
        "verdicts": [
            {"block": block.id, "weight": str(each.weight), "sentence": each.sentence, "command": each.command}
            for block, each in report.verdicts
        ],
        "tables": {
            table.id: {
                "block": block.id,
                "columns": [column.name for column in table.columns],
                "rows": _rows(table, zone)[:MOST_ROWS],
                "left": max(len(table.rows) - MOST_ROWS, 0),
            }
            for block in report.blocks
            for table in block.tables
        },
    }
    text = json.dumps(found, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _about(about: About) -> dict[str, Any]:
    return {
        "title": about.title,
        "kseg": about.version,
        "command": about.command,
        "time": about.time_text,
        "read": about.read,
        "partitions": about.partitions,
        "bytes": about.size,
        "directories": [
            {"path": source.path, "clusterId": source.cluster_id, "nodeId": source.node_id} for source in about.sources
        ],
    }


def _rows(table: Table, zone: tzinfo) -> list[list[Any]]:
    kinds = [column.kind for column in table.columns]
    return [[cell_value(kind, value, zone) for kind, value in zip(kinds, row, strict=True)] for row in table.rows]
