"""A log directory with topics of different habits, and reports about it."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.run import kseg

NOW = "2026-11-24T12:00"
NOW_MS = 1_795_521_600_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

Record = dict[str, Any]


def record(number: int, time: int, key: str | None, value: str | None) -> Record:
    """Return a line for `kseg build`."""
    return {"key": key, "value": value, "timestamp": time + number}


def build(directory: Path, records: Iterable[Record], *options: str) -> None:
    """Build a partition directory with some records."""
    source = directory.parent / f"{directory.name}.jsonl"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    ran = kseg(["build", str(source), "--to", str(directory), "-q", *options], directory.parent)
    assert ran.status == 0, ran.stderr
    source.unlink()


def made_disk(root: Path) -> Path:
    """Return a disk with topics: single records, compressed and keyless, compacted, without records."""
    disk = root / "disk"
    key_of: Callable[[int], str] = lambda number: "hot" if number % 3 == 0 else f"customer-{number % 50}"  # noqa: E731
    began = NOW_MS - 5 * DAY_MS
    for partition, count in ((0, 300), (1, 300), (2, 1500)):
        records = [record(number, began + 60_000 * number, key_of(number), "v" * 80) for number in range(count)]
        build(disk / f"orders-{partition}", records, "--batch-records", "1", "--producer-id", str(1000 + partition))
    clicks = [
        record(number, began + HOUR_MS * (number // 20), None, f"click {number % 9} " * 12) for number in range(2000)
    ]
    build(disk / "clicks-0", clicks, "--batch-records", "100", "--compression", "zstd", "--segment-bytes", "4KB")
    profiles = [
        record(number, began + 1000 * number, f"user-{number % 40}", None if number % 10 == 9 else "p" * 120)
        for number in range(800)
    ]
    build(disk / "profiles-0", profiles, "--batch-records", "20", "--segment-bytes", "20KB")
    empty = disk / "unused-0"
    empty.mkdir()
    (empty / "00000000000000000000.log").touch()
    (disk / "cleaner-offset-checkpoint").write_text("0\n1\nprofiles 0 0\n", encoding="ascii")
    return disk


def objects(directory: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the output of `kseg report -o json`."""
    ran = kseg(["report", *arguments, "-o", "json", "-q"], directory)
    assert ran.status in (0, 1), ran.stderr
    assert ran.stderr == b""
    return [json.loads(line) for line in ran.stdout.splitlines()]


def rows(found: list[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    return [each for each in found if each.get("table") == table]


def row(found: list[dict[str, Any]], table: str, **cells: Any) -> dict[str, Any]:
    """Return the only row of a table with these cells."""
    (only,) = (each for each in rows(found, table) if cells.items() <= each.items())
    return only


def page_of(directory: Path, *arguments: str) -> str:
    """Return the page."""
    ran = kseg(["report", *arguments, "-q"], directory)
    assert ran.status in (0, 1), ran.stderr
    assert ran.stderr == b""
    return ran.stdout.decode()


def json_of(page: str) -> dict[str, Any]:
    """Return the JSON in a page."""
    found = re.search(r'<script type="application/json" id="kseg">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content
