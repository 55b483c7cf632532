"""Files of a byte more than kseg reads: a status, and one line that names the bound."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from kseg.commands import config_file
from kseg.decode.avro import LARGEST_SCHEMA
from kseg.decode.protobuf import LARGEST_DESCRIPTORS
from kseg.export.write.typed_plan import LARGEST_JSON_SCHEMA
from kseg.serve import login
from kseg.serve.connections import LARGEST_PEM
from kseg.system.files import LARGEST_TEXT
from kseg.tiered import segment_bytes
from kseg.tiered.segments import LARGEST_CHECKPOINT
from tests import golden
from tests.loops import for_each
from tests.run import kseg

TIER = "logs/3.9.1-tiered-remote"


class Case(NamedTuple):
    """A file that is too large: its bound, its name in the test's directory, the command that reads it, its status."""

    bound: int
    name: str
    command: str
    status: int = 2


CASES = [
    Case(config_file.LARGEST_FILE, "kseg.toml", "ls SAMPLES/docs/test-1-0"),
    Case(login.LARGEST_FILE, "users", "serve SAMPLES/docs/test-1-0 --sasl-users FILE"),
    Case(LARGEST_PEM, "cert.pem", "serve SAMPLES/docs/test-1-0 --tls-cert FILE"),
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


def test_leader_epochs_of_a_remote_segment_beyond_the_bound_are_named(restored: Path, tmp_path: Path) -> None:

    shutil.copytree(restored / TIER, tmp_path / "tier")
    path = next((tmp_path / "tier").rglob("*.leader_epoch_checkpoint"))
    sparse(path, LARGEST_CHECKPOINT + 1)
    ran = kseg(["ls", "tier"], tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (1, 1)
    assert f"kseg reads checkpoints of up to {LARGEST_CHECKPOINT}".encode() in ran.stderr


def sparse(path: Path, size: int) -> Path:
    """A file that is a hole."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path
