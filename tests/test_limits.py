"""Files one byte larger than kseg's limits: a status, and one line that names the limit."""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from kseg.client import settings
from kseg.cluster.metadata_copy import CHEAP_METADATA
from kseg.commands import config_file
from kseg.decode.avro import LARGEST_SCHEMA
from kseg.decode.protobuf import LARGEST_DESCRIPTORS
from kseg.export.commit import manifest
from kseg.export.commit.iceberg import LARGEST_CATALOG
from kseg.export.commit.iceberg_files import LARGEST_METADATA
from kseg.export.commit.runs import MOST_MARKER_BYTES
from kseg.export.write.typed_plan import LARGEST_JSON_SCHEMA
from kseg.index.producers import LARGEST_READ
from kseg.serve import login
from kseg.system.files import LARGEST_TEXT
from kseg.system.tls import LARGEST_PEM
from kseg.tiered import segment_bytes
from kseg.tiered.places import DEEPEST
from kseg.tiered.segments import LARGEST_CHECKPOINT
from tests import golden
from tests.loops import for_each
from tests.run import kseg

TIER = "logs/3.9.1-tiered-remote"


class Case(NamedTuple):
    """A file that is too large: its limit, its name in the test's directory, the command that reads it, its status."""

    bound: int
    name: str
    command: str
    status: int = 2


CASES = [
    Case(config_file.LARGEST_FILE, "kseg.toml", "ls SAMPLES/docs/test-1-0"),
    Case(login.LARGEST_FILE, "users", "serve SAMPLES/docs/test-1-0 --sasl-users FILE"),
    Case(LARGEST_PEM, "cert.pem", "serve SAMPLES/docs/test-1-0 --tls-cert FILE"),
    Case(
        settings.LARGEST_FILE,
        "client.properties",
        "restore SAMPLES/docs/test-1-0 --bootstrap 127.0.0.1:1 --dry-run --command-config FILE",
    ),
    Case(
        segment_bytes.LARGEST_PEM,
        "private.pem",
        "lookup SAMPLES/tiered/bucket --topic aes --offset 0 --private-key key1=FILE",
    ),
    Case(LARGEST_SCHEMA, "value.avsc", "dump SAMPLES/docs/test-1-0 --value-decoder avro --schema FILE"),
    Case(LARGEST_DESCRIPTORS, "value.desc", "dump SAMPLES/docs/test-1-0 --value-decoder protobuf --schema FILE"),
    Case(
        LARGEST_JSON_SCHEMA,
        "value.json",
        "export SAMPLES/docs/test-1-0 out --value-decoder json --schema FILE",
    ),
    Case(LARGEST_TEXT, "replication-offset-checkpoint", "dump FILE", 1),
    Case(LARGEST_TEXT, "t-0/leader-epoch-checkpoint", "dump FILE", 1),
    Case(LARGEST_TEXT, "meta.properties", "dump FILE", 1),
]


@for_each("case", CASES, ids=lambda case: case.name)
def test_file_beyond_its_bound_is_refused(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sparse(tmp_path / case.name, case.bound + 1)
    if "FILE" not in case.command:
        monkeypatch.setenv("KSEG_CONFIG", str(path))
    ran = kseg(case.command.replace("SAMPLES", str(golden.ROOT)).replace("FILE", str(path)).split(), tmp_path)
    *_, said = ran.stderr.decode().splitlines()
    assert ran.status == case.status, ran
    assert f"more than {case.bound} bytes" in said
    assert path.name in said


EXPORTED = [
    ("parquet", "_kseg/manifest-00000001.json", manifest.MOST_BYTES, "has more than {} bytes"),
    ("iceberg", "catalog.db", LARGEST_CATALOG, "kseg's limit of {} bytes;"),
    ("iceberg", "catalog.db-journal", LARGEST_CATALOG, "kseg's limit of {} bytes;"),
    ("iceberg", "metadata/00001-*.metadata.json", LARGEST_METADATA, "kseg's limit of {} bytes;"),
]


@for_each("table_format, name, bound, words", EXPORTED, ids=lambda case: case[1])
def test_file_of_an_export_beyond_its_bound_is_refused(
    table_format: str, name: str, bound: int, words: str, tmp_path: Path
) -> None:
    command = ["export", str(golden.ROOT / "docs/test-1-0"), "out", "--format", table_format]
    assert kseg(command, tmp_path).status == 0
    path = next((tmp_path / "out").glob(name), tmp_path / "out" / name)
    sparse(path, bound + 1)
    ran = kseg(command, tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1), ran
    assert path.name in ran.stderr.decode()
    assert words.format(bound) in ran.stderr.decode()


def test_marker_of_an_export_beyond_its_bound_is_not_believed(tmp_path: Path) -> None:
    """A marker of an ended run is removed; a marker with one byte too many stays, and is reported."""
    command = ["export", str(golden.ROOT / "docs/test-1-0"), "out"]
    marker = tmp_path / "out/_kseg/runs/01234567.json"
    process = {"host": os.uname().nodename, "boot": "another", "pid": 1, "namespace": None, "started": None}
    content = json.dumps({"base": 0, "process": process}).encode()
    for size, is_left in ((MOST_MARKER_BYTES, False), (MOST_MARKER_BYTES + 1, True)):
        assert kseg(command, tmp_path).status == 0
        marker.parent.mkdir(exist_ok=True)
        marker.write_bytes(content.ljust(size))
        ran = kseg(command, tmp_path)
        assert (ran.status, marker.exists(), b"run 01234567 may still be running" in ran.stdout) == (
            0,
            is_left,
            is_left,
        )


def test_producer_snapshot_beyond_its_bound_is_a_finding(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / "docs/test-1-0", tmp_path / "test-1-0")
    path = sparse(tmp_path / "test-1-0" / f"{209300:020}.snapshot", LARGEST_READ + 1)
    with path.open("r+b") as file:
        file.write(bytes.fromhex("0001"))  # version
    ran = kseg(["verify", "test-1-0"], tmp_path)
    assert ran.status == 1
    assert f"the size is {LARGEST_READ + 1} bytes, but a broker reads at most {LARGEST_READ}".encode() in ran.stdout


def test_metadata_with_snapshots_beyond_their_bound_are_named(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / "docs/test-1-0", tmp_path / "t-0")
    sparse(tmp_path / "__cluster_metadata-0" / f"{0:020}.log", 1)
    sparse(tmp_path / "__cluster_metadata-0" / f"{5:020}-{1:010}.checkpoint", CHEAP_METADATA)
    ran = kseg(["ls", "t-0"], tmp_path)
    assert ran.status == 0, ran
    assert f"{CHEAP_METADATA + 1} bytes, more than the {CHEAP_METADATA} that kseg reads here".encode() in ran.stderr


def test_tier_below_more_levels_than_kseg_goes_is_none(tmp_path: Path) -> None:
    topic = next((golden.ROOT / "tiered/bucket/prod").glob("zstd-*"))  # its partitions are a level below
    for levels, status in ((DEEPEST - 2, 0), (DEEPEST - 1, 2)):
        top = tmp_path / str(levels)
        shutil.copytree(topic, top.joinpath(*["x"] * levels, topic.name))
        ran = kseg(["ls", str(top)], tmp_path)
        assert ran.status == status, (levels, ran)


def test_members_of_an_archive_beyond_the_bound_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in sorted((golden.ROOT / "docs/test-1-0").iterdir()):
            archive.write(path, f"test-1-0/{path.name}")
        count = len(archive.namelist())
    for most, status in ((count, 0), (count - 1, 2)):
        monkeypatch.setattr("kseg.store.archive.MOST_MEMBERS", most)
        ran = kseg(["ls", "a.zip"], tmp_path)
        assert ran.status == status, ran
        assert (
            f"has more than {most} members; specify a part of the archive, such as ARCHIVE/orders-0".encode()
            in ran.stderr
        ) is (status == 2)


def test_directories_of_an_archive_beyond_the_bound_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(3):
            archive.writestr(f"disk/{number}/x-{number}/00000000000000000000.log", b"")
    for most, status in ((7, 0), (6, 2)):
        monkeypatch.setattr("kseg.store.archive.MOST_DIRECTORIES", most)
        ran = kseg(["ls", "a.zip"], tmp_path)
        assert ran.status == status, ran
        assert (
            f"has more than {most} directories; specify a part of the archive, such as ARCHIVE/orders-0".encode()
            in ran.stderr
        ) is (status == 2)


def test_leader_epochs_of_a_remote_segment_beyond_the_bound_are_named(restored: Path, tmp_path: Path) -> None:

    shutil.copytree(restored / TIER, tmp_path / "tier")
    path = next((tmp_path / "tier").rglob("*.leader_epoch_checkpoint"))
    sparse(path, LARGEST_CHECKPOINT + 1)
    ran = kseg(["ls", "tier", "--retention-ms", "-1"], tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (1, 1)
    assert f"kseg reads checkpoints of up to {LARGEST_CHECKPOINT}".encode() in ran.stderr


def sparse(path: Path, size: int) -> Path:
    """Return a file that is a hole."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path
