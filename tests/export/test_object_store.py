"""Exports into an object store, a moto server in this process: claims are conditional puts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from pyarrow import fs

import kseg.export.recording as recording
from kseg.errors import KsegError, UsageError
from kseg.export.commit.manifest import read_manifest
from kseg.export.commit.order import Job, execute_here
from kseg.export.commit.runs import LostError
from kseg.export.destination import open_destination
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.recording import Recorder
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import FileOptions
from kseg.output.progress import Talk
from kseg.store import remote_files as remote
from tests.export import exports
from tests.export.object_store import redirect_to, serving

OUT = "s3://kafka/out"


@pytest.fixture(scope="module", autouse=True)
def urls() -> Iterator[tuple[str, str]]:
    """Yield a store for s3:// URLs with a bucket `kafka`, and one with the same files that ignores conditions."""
    backend = DomainDispatcherApplication(create_backend_app)

    def forgetful(environ: dict[str, Any], start_response: Any) -> Any:
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return backend(environ, start_response)

    with serving(backend) as url, serving(forgetful) as other, redirect_to(url):
        yield url, other


@pytest.fixture
def out(urls: tuple[str, str]) -> Iterator[str]:
    """Yield an empty place in the store."""
    place = urls[0].removeprefix("http://")
    system = fs.S3FileSystem(
        endpoint_override=place,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )
    system.create_dir("kafka")
    yield OUT
    system.delete_dir("kafka")


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    """Return four topics of ten records."""
    for number in range(4):
        exports.write_log(tmp_path / f"topic{number}-0", 0, 10)
    return sorted(map(str, tmp_path.iterdir()))


def topics(out: str) -> list[str]:
    """Return the topics of the existing files, which must be exactly the manifest's."""
    place = open_destination(out)
    manifest = read_manifest(place)
    assert manifest is not None
    there = [name for name in place.names() if name.endswith(".parquet") and not name.startswith("_kseg/")]
    assert sorted(manifest.paths()) == there
    return [result.topic for result in manifest.results]


def test_a_claim_is_kept_from_all_others(out: str) -> None:
    one, other = open_destination(out), open_destination(out)
    assert [place.claim(f"_kseg/runs/{number}.json", b"{}") for number, place in enumerate((one, other))] == [True] * 2
    assert (one.claims_safely, other.claims_safely) == (True, True)
    assert one.claim("_kseg/manifest-00000001.json", b"one")
    assert not other.claim("_kseg/manifest-00000001.json", b"other")
    assert one.read("_kseg/manifest-00000001.json") == b"one"


def test_a_run_that_three_others_overtake_loses_and_says_so(out: str, sources: list[str]) -> None:
    def overtaken(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(execute_here(orders, job))
        for source in sources[1:]:
            run_export(Export((source,), out), execute_here)
        return results

    with pytest.raises(LostError, match="run the command again"):
        run_export(Export((sources[0],), out), overtaken)
    assert topics(out) == ["topic1", "topic2", "topic3"]
    run_export(Export((sources[0],), out), execute_here)
    assert topics(out) == ["topic0", "topic1", "topic2", "topic3"]


def test_two_that_find_the_place_empty_do_not_disturb_each_other(out: str, sources: list[str]) -> None:
    """One run's files are at their final place when the other lists it."""

    def overtaken(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(execute_here(orders, job))
        run_export(Export((sources[1],), out), execute_here)
        return results

    with pytest.raises(LostError):
        run_export(Export((sources[0],), out), overtaken)
    assert topics(out) == ["topic1"]


def test_without_conditions_a_second_run_is_refused(
    out: str, sources: list[str], urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", urls[1])
    remote._store_at.cache_clear()

    def alone(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        with pytest.raises(KsegError, match=r"accepts only one export at a time, and run .* may still be running"):
            run_export(Export((sources[1],), out), execute_here)
        return list(execute_here(orders, job))

    run_export(Export((sources[0],), out), alone)
    run_export(Export((sources[1],), out), execute_here)
    assert topics(out) == ["topic0", "topic1"]
    remote._store_at.cache_clear()


def test_a_table_of_runs_in_it_has_each_row_once(out: str, sources: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Export(tuple(sources), f"{out}/table", runs_table=f"{out}/_kseg_runs")

    def record() -> None:
        Recorder(Talk()).record(wanted, lambda each: run_export(each, execute_here))

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recording, "write_rows", die)
        with pytest.raises(KeyboardInterrupt):
            record()
    for _ in range(2):
        record()
    place = open_destination(f"{out}/_kseg_runs")
    found = []
    for name in place.names():
        with place.open(name) as file:
            found += pq.read_table(file).to_pylist()
    assert sorted((row["topic"], row["outcome"], row["newRows"]) for row in found) == sorted(
        (f"topic{number}", outcome, rows)
        for number in range(4)
        for outcome, rows in (("committed", 10), ("nothing new", 0), ("nothing new", 0))
    )


def test_an_iceberg_table_in_it_needs_a_catalog(out: str, sources: list[str]) -> None:
    files = FileOptions(table_format="iceberg")
    with pytest.raises(UsageError, match="needs a catalog that isn't a file; specify --catalog NAME"):
        run_export(Export(tuple(sources), out, files=files), execute_here)
