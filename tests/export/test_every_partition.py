"""All golden partitions, at both isolation levels, in all table formats: the rows match those of independent readers.

In each format half of the partitions use one level, and the rest the other, so that each is read at both: the level
decides which rows are read, the format how they are written. `make test` takes one partition for each kind of damage,
and one for each name and format of messages, of any release.
"""

from pathlib import Path

import pytest

from tests import run
from tests.export import every_partition
from tests.loops import some_of_each

PARTS = {"even": slice(0, None, 2), "odd": slice(1, None, 2)}


def kind(path: Path) -> tuple[str, bytes]:
    """Return what a partition exemplifies: its damage; or its name, which implies its contents, and its first magic."""
    if every_partition.is_damaged(path):
        return path.name.partition("-")[2], b""
    return path.name, min(path.glob("*.log")).read_bytes()[16:17]


@pytest.mark.parametrize(
    ("table_format", "isolation", "part"),
    [
        ("parquet", "read_uncommitted", "even"),
        ("parquet", "read_committed", "odd"),
        ("delta", "read_committed", "even"),
        ("delta", "read_uncommitted", "odd"),
        ("iceberg", "read_uncommitted", "even"),
        ("iceberg", "read_committed", "odd"),
    ],
)
def test_every_partitions_rows_are_those_that_others_read(
    table_format: str, isolation: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    places = every_partition.link_partitions(tmp_path / "logs")
    links = sorted((tmp_path / "logs").iterdir())
    taken = some_of_each(links, lambda link: kind(link.readlink()))[PARTS[part]]
    kept = {link.readlink() for link in taken}
    for link in set(links) - set(taken):
        link.unlink()
    places = {key: path for key, path in places.items() if path in kept}
    options = ["--format", table_format, "--isolation", isolation, "-o", "json"]
    ran = run.kseg(["export", "logs", "--to", "out", *options], tmp_path)
    assert (ran.status, {b": damage in " in line for line in ran.stderr.splitlines()}) == (1, {True})
    table = every_partition.TABLES[table_format](tmp_path / "out")
    assert every_partition.differences(places, table, isolation) == []
    with capsys.disabled():
        print(f"\n{table_format}, {isolation}: {table.num_rows} rows of {len(places)} partitions are equal")  # noqa: T201
