"""A destination that is replaced while an export runs, and tables whose metadata lead elsewhere."""

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from kseg.errors import KsegError, SwappedError
from kseg.export.commit.order import Job, execute_here
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import FileOptions
from tests import golden, run
from tests.export import exports
from tests.export.test_hostile_destination import listing
from tests.loops import for_each

FORMATS = ("parquet", "delta", "iceberg")
NAMES = {
    "parquet": ("_kseg", "topic=orders"),
    "delta": ("_delta_log", "topic=orders"),
    "iceberg": ("metadata", "catalog.db", "topic=orders"),
}
"""Paths that an export or its library writes to."""
ELSEWHERE = ("{outside}/precious", "file://{outside}/precious", "../outside/precious", "topic=orders/../../x", "s3:x")


class Place:
    """A source with new records, an export, and a directory that must stay unchanged."""

    def __init__(self, folder: Path, table_format: str) -> None:
        self.source, self.out, self.outside = folder / "orders-0", folder / "out", folder / "outside"
        self.table_format = table_format
        self.outside.mkdir()
        (self.outside / "precious").write_bytes(b"precious")
        exports.write_log(self.source, 0, 10)
        assert self.export().status == 0
        exports.write_log(self.source, 10, 10)

    def export(self, *options: str) -> run.Run:
        line = ["export", str(self.source), str(self.out), "--format", self.table_format, *options]
        return run.kseg(line, golden.ROOT)

    def untouched_files(self) -> dict[str, Any]:
        """Return everything that no export may change."""
        return listing(self.source) | listing(self.outside)

    def assert_refused(self, words: str, *options: str) -> None:
        """Assert that an export exits with 2 and one line, and has changed nothing outside."""
        before = self.untouched_files()
        ran = self.export(*options)
        assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), ran
        assert words in ran.stderr.decode(), ran.stderr
        assert self.untouched_files() == before

    def swap(self, name: str = "") -> None:
        """Move something away and put a link in its place."""
        path = self.out / name
        if os.path.lexists(path):
            path.rename(self.out.parent / "moved")
        path.symlink_to(self.outside)


# --- replaced while the export runs -----------------------------------------------------------------------------------


@for_each("table_format, moment", [(each, when) for each in FORMATS for when in ("before", "after")])
def test_a_destination_that_is_replaced_meanwhile_is_status_3(table_format: str, moment: str, tmp_path: Path) -> None:
    """The rest is written where the export began, and nothing at the link's target."""
    place = Place(tmp_path, table_format)
    before = place.untouched_files()

    def execute(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        if moment == "before":
            place.swap()
            return [result for order in orders for result in execute_here([order], job)]  # as another process does
        results = list(execute_here(orders, job))
        place.swap()
        return results

    files = FileOptions(table_format=table_format)
    export = Export((str(place.source),), str(place.out), files=files, overwrite=True)
    with pytest.raises(KsegError) as raised:
        run_export(export, execute)
    assert isinstance(raised.value, SwappedError) or moment == "after"
    assert place.untouched_files() == before


@for_each(
    "table_format, name",
    [(each, name) for each in FORMATS for name in NAMES[each]],
)
def test_a_folder_that_is_replaced_meanwhile_gets_nothing(table_format: str, name: str, tmp_path: Path) -> None:
    place = Place(tmp_path, table_format)
    before = place.untouched_files()

    def execute(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(execute_here(orders, job))
        place.swap(name)
        return results

    files = FileOptions(table_format=table_format)
    export = Export((str(place.source),), str(place.out), files=files, overwrite=True)
    with pytest.raises(KsegError, match=r"symbolic link|replaced it"):
        run_export(export, execute)
    assert place.untouched_files() == before


@pytest.mark.parametrize("is_put_back", [False, True], ids=["stays", "is put back"])
def test_a_delta_log_that_is_replaced_while_deltalake_commits_is_status_3(
    is_put_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library opens paths itself: the swap can't be prevented, but it is reported."""
    source, out, outside = tmp_path / "orders-0", tmp_path / "out", tmp_path / "outside"
    exports.write_log(source, 0, 10)
    outside.mkdir()
    original = deltalake.transaction.create_table_with_add_actions

    def swapped(*arguments: Any, **options: Any) -> None:
        (out / "_delta_log").symlink_to(outside)
        original(*arguments, **options)
        if is_put_back:
            (out / "_delta_log").unlink()

    monkeypatch.setattr("deltalake.transaction.create_table_with_add_actions", swapped)
    ran = run.kseg(["export", str(source), str(out), "--format", "delta"], golden.ROOT)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (3, b"", 1), ran
    assert f"{out}/_delta_log: another program replaced it while kseg was writing".encode() in ran.stderr
    assert len(list(outside.iterdir())) == 1


def test_a_catalog_that_is_replaced_while_pyiceberg_commits_is_status_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, "iceberg")
    (place.outside / "catalog.db").write_bytes((place.out / "catalog.db").read_bytes())
    original = SqlCatalog.commit_table

    def swapped(self: SqlCatalog, *arguments: Any, **options: Any) -> Any:
        self.engine.dispose()
        (place.out / "catalog.db").unlink()
        (place.out / "catalog.db").symlink_to(place.outside / "catalog.db")
        return original(self, *arguments, **options)

    monkeypatch.setattr(SqlCatalog, "commit_table", swapped)
    ran = place.export()
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (3, b"", 1), ran
    assert f"{place.out}/catalog.db: another program replaced it while kseg was writing".encode() in ran.stderr


# --- targets of a table's metadata ------------------------------------------------------------------------------------


def change_metadata(place: Place, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the newest metadata of an Iceberg table."""
    newest = max((place.out / "metadata").glob("*.metadata.json"))
    metadata = json.loads(newest.read_bytes())
    change(metadata)
    newest.write_text(json.dumps(metadata), encoding="utf-8")


@for_each("where", ["file://{outside}/precious", "file://{out}/../outside/precious", "{outside}/precious"])
def test_old_metadata_elsewhere_are_not_removed(where: str, tmp_path: Path) -> None:
    """pyiceberg removes the oldest of the listed files."""
    place = Place(tmp_path, "iceberg")
    location = where.format(outside=place.outside, out=place.out)
    others = [f"file://{place.out}/metadata/{number:05}-x.metadata.json" for number in range(11)]
    entries = [{"metadata-file": name, "timestamp-ms": 1} for name in (location, *others)]
    change_metadata(place, lambda metadata: metadata.update({"metadata-log": entries}))
    place.assert_refused(f"the table names {location}, which isn't in it; choose another destination")


@for_each("name", ["write.metadata.path", "write.data.path"])
def test_new_metadata_are_not_written_elsewhere(name: str, tmp_path: Path) -> None:
    place = Place(tmp_path, "iceberg")
    before = place.untouched_files()
    change_metadata(place, lambda metadata: metadata["properties"].update({name: f"file://{place.outside}"}))
    ran = place.export()
    assert ran.status == (2 if name == "write.metadata.path" else 0)
    assert place.untouched_files() == before


@for_each("name", ["py-io-impl", "write.py-location-provider.impl"])
def test_a_property_of_a_table_imports_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, "iceberg")
    (place.outside / "foreign.py").write_text("raise SystemExit(7)", encoding="utf-8")
    monkeypatch.syspath_prepend(str(place.outside))
    change_metadata(place, lambda metadata: metadata["properties"].update({name: "foreign.Code"}))
    place.assert_refused(f"has the property {name}, which names code; remove the property")


@for_each("column", ["metadata_location", "previous_metadata_location"])
def test_a_catalog_that_leads_elsewhere_is_refused(column: str, tmp_path: Path) -> None:
    place = Place(tmp_path, "iceberg")
    before = place.untouched_files()
    with sqlite3.connect(place.out / "catalog.db") as catalog:
        catalog.execute(f"UPDATE iceberg_tables SET {column} = ?", (f"file://{place.outside}/precious",))
    catalog.close()
    ran = place.export()
    assert ran.status == (2 if column == "metadata_location" else 0)
    assert place.untouched_files() == before


def test_a_journal_that_names_another_file_is_refused(tmp_path: Path) -> None:
    """SQLite would restore the catalog from it, and then remove the file that it names."""
    place = Place(tmp_path, "iceberg")
    name = os.fsencode(place.outside / "precious")
    end = len(name).to_bytes(4) + (sum(name) & 0xFFFFFFFF).to_bytes(4) + bytes.fromhex("d9d505f920a163d7")
    head = bytes.fromhex("d9d505f920a163d7") + bytes(4) + bytes(4) + (1).to_bytes(4) + (512).to_bytes(4)
    journal = head + (4096).to_bytes(4)
    (place.out / "catalog.db-journal").write_bytes(journal.ljust(512, b"\0") + bytes(4) + name + end)
    place.assert_refused("would make SQLite remove another file")


def test_a_catalog_that_is_another_file_too_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, "iceberg")
    os.link(place.out / "catalog.db", place.outside / "catalog.db")
    place.assert_refused("catalog.db: the file is a hard link, so another file would change with it")


@for_each(
    "path", ["{outside}/precious", "file://{outside}/precious", "../outside/precious", "topic=orders/../../x", "s3:x"]
)
def test_a_delta_log_that_names_files_elsewhere_is_refused(path: str, tmp_path: Path) -> None:
    place = Place(tmp_path, "delta")
    location = path.format(outside=place.outside)
    first = place.out / "_delta_log/00000000000000000000.json"
    actions = list(map(json.loads, first.read_text(encoding="utf-8").splitlines()))
    for action in actions:
        if "add" in action:
            action["add"]["path"] = location
    first.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    place.assert_refused(f"the Delta log names {location}, which isn't in the table", "--merge-files")
