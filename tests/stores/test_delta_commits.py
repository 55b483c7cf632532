"""Delta tables in S3: the store's conditional writes keep commits apart, and without these only one run is allowed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from deltalake import DeltaTable
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from kseg.export.commit.runs import mark, marker_name, new_run
from kseg.export.destination import open_destination
from kseg.system.new_directory import HERE
from tests.export import exports
from tests.export.object_store import redirect_to
from tests.stores.servers import serving

pytestmark = pytest.mark.stores

OUT = "s3://lake/orders"


@pytest.fixture(params=["conditional", "unconditional"])
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield a store with an empty bucket; the second one ignores the conditions of writes."""
    backend = DomainDispatcherApplication(create_backend_app)

    def forgetful(environ: dict[str, Any], start_response: Any) -> Any:
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return backend(environ, start_response)

    with serving(backend if request.param == "conditional" else forgetful) as url, redirect_to(url):
        bucket = boto3.resource("s3", endpoint_url=url, region_name="us-east-1").Bucket("lake")
        bucket.create()
        yield url
        bucket.objects.all().delete()
        bucket.delete()


def start(source: Path, *options: str) -> "subprocess.Popen[str]":
    """Start an export into the table."""
    command = [sys.executable, "-m", "kseg", "export", str(source), OUT, "--format", "delta", "-q", *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def rows(folder: Path) -> list[tuple[int, int]]:
    """Return partition and offset of the table's rows, in order, as deltalake reads a copy of the table."""
    bucket = boto3.resource("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).Bucket("lake")
    for each in bucket.objects.all():
        path = folder / each.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(each.get()["Body"].read())
    table = DeltaTable(str(folder / "orders")).to_pyarrow_table()
    return sorted(zip(*(table.column(name).to_pylist() for name in ("partition", "offset")), strict=True))


def write(folder: Path, count: int) -> list[Path]:
    """Write the logs of some partitions, with 20 records each."""
    paths = [folder / f"orders-{number}" for number in range(count)]
    for path in paths:
        exports.write_log(path, 0, 20)
    return paths


@pytest.mark.parametrize("exists", [False, True], ids=["new", "grown"])
@pytest.mark.usefixtures("store")
def test_writers_at_once_lose_no_commit(exists: bool, tmp_path: Path) -> None:
    paths = write(tmp_path / "logs", 4)
    if exists:
        assert start(paths[3]).wait() == 0
    ended = [(each.communicate()[1], each.returncode) for each in [start(path) for path in paths[:3]]]
    assert all(said.count("\n") == (status != 0) for said, status in ended), ended
    done = [number for number, (_, status) in enumerate(ended) if status == 0] + [3] * exists
    before = rows(tmp_path / "before") if done else []  # without conditions, all of them may refuse each other
    assert before == [(number, offset) for number in done for offset in range(20)], ended
    assert start(tmp_path / "logs").wait() == 0
    assert rows(tmp_path / "after") == [(number, offset) for number in range(4) for offset in range(20)]


def test_a_run_meets_another_only_in_a_store_with_conditions(
    request: pytest.FixtureRequest, store: str, tmp_path: Path
) -> None:
    (path,) = write(tmp_path, 1)
    place, other = open_destination(OUT), new_run(0)
    assert mark(other, place, HERE)
    process = start(path)
    _, said = process.communicate()
    if "unconditional" in request.node.name:
        assert process.returncode != 0
        assert f"the destination accepts only one export at a time, and run {other.id}" in said
        place.delete(marker_name(other.id))
        process = start(path)
        process.communicate()
    assert process.returncode == 0
    assert rows(tmp_path / "copy") == [(0, offset) for offset in range(20)]
