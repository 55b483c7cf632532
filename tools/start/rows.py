"""Rows of measured starts, one line of JSON per cell, and their base disks."""

import json
from pathlib import Path
from typing import Any

ROWS = Path(__file__).resolve().parent.parent.parent / "golden" / "start"
KEY = ("file", "fault", "kind", "stop")

Row = dict[str, Any]


def rows_path(release: str, role: str) -> Path:
    """Return the file of the rows of a node."""
    return ROWS / f"{release}-{role}.jsonl"


def base_path(release: str, role: str, stop: str) -> Path:
    """Return the archive of a node's base disk."""
    return ROWS / f"base-{release}-{'' if role == 'combined' else f'{role}-'}{stop}.tar.gz"


def read_rows(path: Path) -> list[Row]:
    """Return the measured rows."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def key_of(row: Row) -> tuple[Any, ...]:
    """Return a row's cell and stop."""
    return tuple(row[name] for name in KEY)
