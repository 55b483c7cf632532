"""Outputs are trusted as little as inputs: nothing is written through a link."""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import golden, run
from tests.loops import for_each

LOG = "00000000000000203000.log"
INPUT, OUTSIDE = "disk/test-1-0", "outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a partition, records in JSON, and a directory that must not change."""
    shutil.copytree(golden.ROOT / "docs/test-1-0", tmp_path / INPUT)
    (tmp_path / "records.jsonl").write_text('{"key":"a","value":"b"}\n')
    (tmp_path / OUTSIDE).mkdir()
    (tmp_path / OUTSIDE / "precious").write_bytes(b"precious")
    (tmp_path / OUTSIDE / "empty").mkdir()
    return tmp_path


def state(folder: Path) -> dict[str, tuple[int, int, bytes | None]]:
    """Return everything below a folder: inode, time of change, and content or a link's destination."""
    found = {}
    for path in sorted((folder, *folder.rglob("*"))):
        status = path.lstat()
        content = bytes(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path)] = (status.st_ino, status.st_mtime_ns, content)
    return found


def read_tree(root: Path) -> dict[str, tuple[int, int, bytes | None]]:
    return state(root / INPUT) | state(root / OUTSIDE)


def expect_refusal(root: Path, line: list[str], words: bytes) -> None:
    """Assert that the command ends with 2 and one line, and has changed nothing at all."""
    before = state(root)
    ran = run.kseg(line, root)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), ran
    assert words in ran.stderr, ran.stderr
    assert state(root) == before


# --- contents of the destination of an export
# --------------------------------------------------------------------------

FORMATS = ("parquet", "delta", "iceberg")


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def chain(path: Path, target: Path) -> None:
    """Create a link to a link in the destination, which leads further."""
    between = path.with_name("between")
    between.symlink_to(target)
    path.symlink_to(between)


def inner(path: Path, _: Path) -> None:
    """Replace a file by a link to it, which stays in the destination itself."""
    path.symlink_to(path.with_name("moved"))


TARGETS: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "to a folder of the input": (link, INPUT),
    "to a file of the input": (link, f"{INPUT}/{LOG}"),
    "out of the tree": (link, OUTSIDE),
    "to another one": (chain, INPUT),
    "to nothing": (link, "disk/nothing"),
    "within the destination": (inner, ""),
}


OWN_NAMES = ("_delta_log", "metadata", "catalog.db", "catalog.db-journal")
"""Files that the libraries of tables open themselves."""


FIRST = [("delta", "_delta_log"), ("iceberg", "metadata"), ("iceberg", "catalog.db-journal"), ("parquet", "_kseg")]


def export_topics(root: Path, table_format: str) -> list[str]:
    line = ["export", INPUT, "out", "--format", table_format]
    assert run.kseg(line, root).status == 0
    return line


@pytest.mark.parametrize("table_format", FORMATS)
def test_an_export_writes_through_no_link_that_it_finds(table_format: str, root: Path) -> None:
    """Each file and folder of an export is replaced by a link; the libraries' own files by each kind of link."""
    line, out = export_topics(root, table_format), root / "out"
    there = sorted(str(path.relative_to(out)) for path in out.rglob("*"))
    names = [*there, *({*OWN_NAMES} - {*there})]
    assert len(there) > 3
    in_turn = itertools.cycle(TARGETS)
    own = itertools.product({"_kseg", *OWN_NAMES}.intersection(names), TARGETS)
    for name, how in (*own, *((name, next(in_turn)) for name in names)):
        path, make, target = out / name, *TARGETS[how]
        moved, between = path.with_name("moved"), path.with_name("between")
        if name in there:
            path.rename(moved)
        make(path, root / target)
        options = ["--overwrite"] if how == "out of the tree" else []
        expect_refusal(root, [*line, *options], b"is a symbolic link, and kseg doesn't write through links")
        path.unlink()
        between.unlink(missing_ok=True)
        if name in there:
            moved.rename(path)


@for_each("table_format, name", FIRST)
def test_the_first_export_writes_through_no_link_either(table_format: str, name: str, root: Path) -> None:
    (root / "out").mkdir(exist_ok=True)
    (root / "out" / name).symlink_to(root / INPUT)
    expect_refusal(root, ["export", INPUT, "out", "--format", table_format], b"is a symbolic link")
    (root / "out" / name).unlink()


@pytest.mark.parametrize("table_format", FORMATS)
def test_an_export_takes_no_pipe_for_a_file(table_format: str, root: Path) -> None:
    line = export_topics(root, table_format)
    os.mkfifo(root / "out/_kseg/pipe")
    expect_refusal(root, line, b"is neither a file nor a directory")


# --- new directories and files ----------------------------------------------------------------------------------------

NEW = {
    "salvage": f"salvage {INPUT} --to TARGET",
    "reindex": f"reindex {INPUT} --to TARGET",
    "redact": f"redact {INPUT} --to TARGET",
    "slice": f"slice {INPUT} --to TARGET",
    "compact": f"compact {INPUT} --to TARGET",
    "retain": f"retain {INPUT} --to TARGET",
    "build": "build records.jsonl --to TARGET",
    "report": f"report {INPUT} --to TARGET",
    "rebuild-metadata": f"rebuild-metadata {INPUT} --node-id 1 --to TARGET",
    "get": f"get {INPUT} --offset 203500 --to TARGET",
}
PLACES = {
    "link to a folder of the input": INPUT,
    "link to an empty folder": f"{OUTSIDE}/empty",
    "link to a file of the input": f"{INPUT}/{LOG}",
    "link to a file": f"{OUTSIDE}/precious",
    "link to nothing": f"{OUTSIDE}/nothing",
    "link to nothing in the input": f"{INPUT}/nothing",
}


@for_each("name, place", list(itertools.product(NEW, PLACES)), ids=" to a ".join)
def test_nothing_new_is_made_through_a_link(name: str, place: str, root: Path) -> None:
    for target in ("target", "another"):
        (root / target).unlink(missing_ok=True)
    (root / "target").symlink_to(root / PLACES[place])
    (root / "another").symlink_to("target")
    for target in ("target", "another"):
        expect_refusal(root, NEW[name].replace("TARGET", target).split(), target.encode())


@for_each("name", NEW)
def test_a_folder_on_the_way_that_leads_into_the_input_is_the_input(name: str, root: Path) -> None:
    if not (root / "way").exists():
        (root / "way").symlink_to(root / INPUT)
    if name != "build":
        expect_refusal(root, NEW[name].replace("TARGET", "way/new").split(), b"which kseg reads; specify")


STATEMENTS = (
    "copy (select 1) to 'out/link'",
    "copy (select 1) to 'out/folder/new'",
    "from read_csv('out/folder/precious')",
)


@for_each("statement", STATEMENTS)
def test_sql_reaches_nothing_through_a_link_in_its_directory(statement: str, root: Path) -> None:
    (root / "out").mkdir(exist_ok=True)
    for name, target in (("link", f"{OUTSIDE}/precious"), ("folder", OUTSIDE)):
        (root / "out" / name).unlink(missing_ok=True)
        (root / "out" / name).symlink_to(root / target)
    expect_refusal(root, ["query", statement, INPUT, "--allow-files", "out"], b"file system operations are disabled")
