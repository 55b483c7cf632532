"""Commands that write refuse a place inside their input before anything is written."""

import itertools
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests import golden, run
from tests.loops import for_each

LOG = "00000000000000203000.log"
BY_PARTITION = {
    "salvage": "salvage PATH --to TARGET",
    "salvage of a file": f"salvage PATH/{LOG} --to TARGET",
    "reindex": "reindex PATH --to TARGET",
    "reindex of a file": f"reindex PATH/{LOG} --to TARGET",
    "redact": "redact PATH --to TARGET",
    "slice": "slice PATH --to TARGET",
    "slice of a file": f"slice PATH/{LOG} --to TARGET",
    "compact": "compact PATH --to TARGET",
    "retain": "retain PATH --to TARGET",
    "build": f"build --input-format text PATH/{LOG} --to TARGET",
    "export": "export PATH TARGET",
    "export by a URL": "export file://PATH TARGET",
    "export to a URL": "export PATH file://TARGET",
    "export, planned": "export PATH TARGET --dry-run",
}
"""Command lines that write; PATH is a partition's directory."""
BY_LOG_DIRECTORY = {name: BY_PARTITION[name] for name in ("salvage", "reindex", "redact", "export", "export by a URL")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a broker's log directory with a partition, and other paths to it."""
    shutil.copytree(golden.ROOT / "docs/test-1-0", tmp_path / "disk/logs/test-1-0")
    (tmp_path / "disk/logs/meta.properties").write_text("version=0\nbroker.id=1\n")
    shutil.copytree(golden.ROOT / "docs/test-1-0", tmp_path / "alone/test-1-0")
    (tmp_path / "link").symlink_to(tmp_path / "disk/logs")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/link").symlink_to(tmp_path / "disk/logs/test-1-0")
    return tmp_path


def files(root: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in (root, *root.rglob("*"))}


def expect_refusal(root: Path, line: str, path: str, target: str) -> None:
    before = files(root)
    arguments = line.replace("PATH", str(root / path)).replace("TARGET", target)
    ran = run.kseg(arguments.split(), root)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), ran.stderr
    assert b"which kseg reads; specify" in ran.stderr
    assert files(root) == before


WITHIN = [
    "disk/logs/test-1-0/new",
    "disk/logs/test-1-0/some/new",
    "disk/logs/test-1-0/../test-1-0/new",
    "disk/logs/../../link/test-1-0/new",
    "deep/link/new",
    "link/test-1-0/some/new",
    "link/new",
    "deep/link/../new",
]


@for_each("name, target", list(itertools.product(BY_PARTITION, WITHIN)), ids=" to ".join)
def test_a_place_within_the_input_is_refused(root: Path, name: str, target: str) -> None:
    expect_refusal(root, BY_PARTITION[name], "disk/logs/test-1-0", str(root / target))


@for_each("name, path", list(itertools.product(BY_LOG_DIRECTORY, ["disk/logs", "disk", "link"])), ids=" of ".join)
def test_a_place_within_a_disk_that_is_read_is_refused(root: Path, name: str, path: str) -> None:
    expect_refusal(root, BY_LOG_DIRECTORY[name], path, str(root / "disk/logs/new"))


@for_each("name", BY_PARTITION)
def test_a_link_to_the_input_counts_as_the_input(root: Path, name: str) -> None:
    expect_refusal(root, BY_PARTITION[name], "deep/link", str(root / "disk/logs/test-1-0/new"))


@for_each("name", ["salvage", "reindex", "export", "export, planned"])
def test_what_a_glob_matches_is_the_input(root: Path, name: str) -> None:
    expect_refusal(root, BY_PARTITION[name], "d*/lo?s/test-[0-9]-0", str(root / "disk/logs/test-1-0/new"))


def test_another_mount_of_the_input_counts_as_the_input(root: Path) -> None:
    """It needs permission to mount a directory a second time."""
    (root / "mounted").mkdir()
    mounted = f"mount --bind {root}/disk/logs {root}/mounted"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mounted], capture_output=True, check=False).returncode:
        return
    before = files(root)
    for line in ("salvage PATH --to TARGET", "export PATH TARGET"):
        command = line.replace("PATH", f"{root}/disk/logs/test-1-0").replace("TARGET", f"{root}/mounted/test-1-0/new")
        script = f"{mounted} && exec {sys.executable} -P -m kseg {command}"
        ran = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, check=False)
        assert (ran.returncode, ran.stdout) == (2, b"")
        assert b"which kseg reads; specify" in ran.stderr
    assert files(root) == before


def test_the_second_of_several_inputs_counts(root: Path) -> None:
    expect_refusal(root, "salvage PATH disk/logs/test-1-0 --to TARGET", "alone/test-1-0", str(root / "disk/logs/new"))
    expect_refusal(root, "export PATH disk/l*s TARGET", "alone/test-1-0", str(root / "disk/logs/new"))


@pytest.mark.parametrize("line", ["salvage PATH", "reindex PATH", "slice PATH"])
def test_the_place_of_cluster_metadata_counts(root: Path, line: str) -> None:
    (root / "metadata").mkdir()
    line += f" --cluster-metadata {root}/metadata --to TARGET"
    expect_refusal(root, line, "alone/test-1-0", str(root / "metadata/new"))


def test_an_export_into_what_holds_its_input_is_refused(root: Path) -> None:
    expect_refusal(root, "export PATH TARGET", "disk/logs", str(root / "disk"))
    expect_refusal(root, "export PATH TARGET", "disk/logs", str(root / "disk/logs"))


@pytest.mark.parametrize("name", BY_PARTITION)
def test_a_place_beside_the_input_is_taken(root: Path, name: str) -> None:
    line = BY_PARTITION[name].replace("PATH", str(root / "alone/test-1-0")).replace("TARGET", str(root / "alone/new"))
    assert run.kseg(line.split(), root).status in (0, 1)


def test_build_takes_a_place_beside_its_records(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text('{"key":"a","value":"b"}\n')
    assert run.kseg(["build", "records.jsonl", "--to", "orders-0"], tmp_path).status == 0


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an archive in a directory of its own."""
    (tmp_path / "in").mkdir()
    with tarfile.open(tmp_path / "in/bundle.tar", "w") as tar:
        tar.add(golden.ROOT / "docs/test-1-0", "test-1-0")
    return tmp_path / "in/bundle.tar"


@pytest.mark.parametrize("line", ["salvage A --to A/new", "reindex A --to A", "export A/test-1-0 A/test-1-0/new"])
def test_nothing_is_written_into_an_archive(archive: Path, line: str) -> None:
    before = (archive.read_bytes(), files(archive.parent))
    assert run.kseg(line.replace("A", str(archive)).split(), archive.parent).status == 2
    assert (archive.read_bytes(), files(archive.parent)) == before
