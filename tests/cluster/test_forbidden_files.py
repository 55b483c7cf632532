"""A store that refuses one file of a disk: no command treats that as a disk without the file."""

import shlex
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from tests import golden
from tests.export.object_store import CountingStore, redirect_to, serving
from tests.loops import for_each, some
from tests.run import kseg

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

DISK = golden.ROOT / "logs" / "4.3.1"
FILES = (
    "meta.properties",
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "bootstrap.checkpoint",
    "partition.metadata",
    "leader-epoch-checkpoint",
    "quorum-state",
    "00000000000000000674-0000000002.checkpoint",
    ".snapshot",
    ".index",
    ".timeindex",
    ".txnindex",
    ".log",
)
COMMANDS = (
    "ls DISK",
    "ls DISK -o json",
    "lookup DISK --topic zstd --offset 400",
    "lookup DISK --topic zstd --timestamp 2025-05-10",
    "verify DISK",
    "doctor DISK",
    "salvage DISK --to out",
    "diff DISK DISK/zstd-0",
    "report DISK --to out.html",
    "reindex DISK --to out",
    "retain DISK --retention-ms 1",
    "retain DISK --free 1KB",
    "compact DISK --topic compacted-txn --dry-run",
    "groups DISK",
    "txns DISK",
    "txns DISK --open",
    "metadata DISK",
    "rebuild-metadata DISK --node-id 1 --endpoint CONTROLLER://h:1 --to out",
    "dump DISK --topic zstd --merge time",
    "dump DISK --topic compacted-txn --isolation read_committed",
    "dump DISK --topic zstd --tail 2",
    "slice DISK --topic zstd --from-offset 300 --to out",
    "query --quiet 'select count(*) from zstd' DISK",
    "export DISK out --topic zstd",
    "export DISK out --isolation read_committed",
)


class ForbiddingStore:
    """A store that answers requests for keys with a certain ending with status 403."""

    def __init__(self) -> None:
        self._store = CountingStore()
        self.ending: str | None = None
        self.refused = 0

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a WSGI request."""
        if self.ending is None or not environ["PATH_INFO"].endswith(self.ending):
            return self._store(environ, start_response)
        self.refused += 1
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]


@pytest.fixture(scope="module")
def store() -> Iterator[ForbiddingStore]:
    """Yield a refusing store with a copy of the disk."""
    store = ForbiddingStore()
    with serving(store) as url, redirect_to(url):
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        backend.create_bucket("refusing", "us-east-1")
        for path in DISK.rglob("*"):
            if path.is_file():
                key = path.relative_to(DISK).as_posix()
                backend.put_object("refusing", f"broker/{key}", path.read_bytes())
        yield store


def refusals(command: str, ending: str, store: ForbiddingStore, folder: Path) -> int:
    """Count a command's requests for the refused file, which must end it with status 3."""
    store.ending, store.refused = ending, 0
    ran = kseg(shlex.split(command.replace("DISK", "s3://refusing/broker")), folder)
    assert not store.refused or ran.status == 3, ran
    return store.refused


@for_each("command, ending", some([*product(COMMANDS, FILES)], 6), shards=2)
def test_refused_file_is_status_3(command: str, ending: str, store: ForbiddingStore, tmp_path: Path) -> None:
    refusals(command, ending, store, tmp_path)


@for_each(
    "command, ending",
    [
        ("ls DISK", "partition.metadata"),
        ("verify DISK", "recovery-point-offset-checkpoint"),
        ("salvage DISK --to out", "leader-epoch-checkpoint"),
        ("retain DISK --retention-ms 1", "meta.properties"),
        ("retain DISK --retention-ms 1", "log-start-offset-checkpoint"),
        ("groups DISK", "meta.properties"),
        ("metadata DISK", "0000000002.checkpoint"),
        ("query 'select count(*) from zstd' DISK", "partition.metadata"),
    ],
)
def test_file_that_an_answer_needs_is_asked_for(
    command: str, ending: str, store: ForbiddingStore, tmp_path: Path
) -> None:
    """Its absence would change the answer: for example, more would be deletable."""
    assert refusals(command, ending, store, tmp_path)
