"""OpenLineage's events about exports: their members, and the places that get them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from kseg.export.lineage.collector import Collector
from kseg.export.lineage.datasets import DatasetName, name_of_place
from kseg.export.planning import Export
from kseg.export.recording import Recorder
from kseg.output.progress import Talk
from tests import run
from tests.export import exports
from tests.export.typed_logs import TypedLogs

REQUIRED = {
    "errorMessage": {"message", "programmingLanguage"},
    "jobType": {"processingType", "integration"},
    "lifecycleStateChange": {"lifecycleStateChange"},
    "outputStatistics": {"rowCount", "size", "fileCount"},
    "parent": {"run", "job"},
    "processing_engine": {"version"},
    "schema": {"fields"},
    "storage": {"storageLayer", "fileFormat"},
    "symlinks": {"identifiers"},
    "version": {"datasetVersion"},
}
"""Members of each facet. Source: OpenLineage's facets; rows, bytes and files are optional there."""


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "ENDPOINT", "API_KEY", "NAMESPACE", "DISABLED", "PARENT_ID"):
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    exports.write_log(tmp_path / "logs/orders-0", 0, 30)
    exports.write_log(tmp_path / "logs/orders-1", 0, 30)
    return tmp_path / "logs"


def kseg(logs: Path, *options: str, to: str = "lake/{topic}") -> run.Run:
    return run.kseg(["export", str(logs), *options, "--to", to, "-q"], logs.parent)


def events_in(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    for each in found:
        check_event(each)
    return found


def check_event(event: dict[str, Any]) -> None:
    """Check the members that OpenLineage requires of a run event and of its facets."""
    assert {"eventType", "eventTime", "producer", "schemaURL", "run", "job", "inputs", "outputs"} == event.keys()
    assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    UUID(event["run"]["runId"])
    for each in (event["job"], *event["inputs"], *event["outputs"]):
        assert each["namespace"]
        assert each["name"]
    for part in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        for name, facet in {**part.get("facets", {}), **part.get("outputFacets", {})}.items():
            assert facet.keys() >= {"_producer", "_schemaURL"} | REQUIRED[name]
            assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_a_run_has_an_event_for_its_start_and_one_for_its_end(table_format: str, logs: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert kseg(logs, "--format", table_format, "--openlineage", "events.jsonl").stderr == b""
    first, done, _, again = events_in(tmp_path / "events.jsonl")
    assert [each["eventType"] for each in (first, done, again)] == ["START", "COMPLETE", "COMPLETE"]
    assert first["run"]["runId"] == done["run"]["runId"] != again["run"]["runId"]
    assert first["job"] == done["job"] == again["job"]
    assert done["inputs"] == [{"namespace": "file", "name": str(tmp_path / "logs/orders")}]
    (output,), (later,) = done["outputs"], again["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(tmp_path / "lake/orders"))
    facets, statistics = output["facets"], output["outputFacets"]["outputStatistics"]
    assert facets["storage"]["storageLayer"] == {"parquet": "files"}.get(table_format, table_format)
    assert facets["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    assert "lifecycleStateChange" not in later["facets"]
    assert ("symlinks" in facets) == (table_format == "iceberg")
    columns = {each["name"]: each for each in facets["schema"]["fields"]}
    assert (columns["offset"]["type"], columns["topic"]["type"]) == ("int64", "string")
    assert [each["name"] for each in columns["headers"]["fields"]] == ["key", "value"]
    assert (statistics["rowCount"], statistics["fileCount"]) == (60, 2)
    assert statistics["size"] == sum(path.stat().st_size for path in (tmp_path / "lake/orders").rglob("*-0*.parquet"))
    assert later["outputFacets"]["outputStatistics"]["rowCount"] == 0


def test_an_overwriting_run_says_so(logs: Path, tmp_path: Path) -> None:
    kseg(logs)
    kseg(logs, "--overwrite", "--openlineage", "events.jsonl")
    (output,) = events_in(tmp_path / "events.jsonl")[1]["outputs"]
    assert output["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"


def test_a_failed_run_has_the_reason(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "lake/orders").mkdir(parents=True)
    (tmp_path / "lake/orders/mine").touch()
    assert kseg(logs, "--openlineage", "events.jsonl").status == 2
    _, failed = events_in(tmp_path / "events.jsonl")
    assert failed["eventType"] == "FAIL"
    assert "isn't empty" in failed["run"]["facets"]["errorMessage"]["message"]


def test_an_interrupted_run_is_aborted(logs: Path, tmp_path: Path) -> None:
    def interrupt(_: Export) -> Any:
        raise KeyboardInterrupt

    collector = Collector(str(tmp_path / "events.jsonl"), (), Talk())
    with pytest.raises(KeyboardInterrupt):
        Recorder(Talk(), collector=collector).record(Export((str(logs),), str(tmp_path / "out")), interrupt)
    assert [each["eventType"] for each in events_in(tmp_path / "events.jsonl")] == ["START", "ABORT"]


def test_a_kafka_server_names_the_topics(logs: Path, tmp_path: Path) -> None:
    kseg(logs, "--openlineage", "events.jsonl", "--openlineage-kafka", "broker-1:9092")
    assert events_in(tmp_path / "events.jsonl")[1]["inputs"] == [
        {"namespace": "kafka://broker-1:9092", "name": "orders"}
    ]


def test_fields_of_values_are_members_of_their_column(tmp_path: Path) -> None:
    logs = TypedLogs(tmp_path / "logs")
    fields = [{"name": "id", "type": "long"}, {"name": "tags", "type": {"type": "array", "items": "string"}}]
    logs.avro("orders", {"type": "record", "name": "Order", "fields": fields}, [{"id": 1, "tags": []}])
    assert logs.export(tmp_path / "out", "--openlineage", str(tmp_path / "events.jsonl")).status == 0
    columns = events_in(tmp_path / "events.jsonl")[1]["outputs"][0]["facets"]["schema"]["fields"]
    (decoded,) = [each for each in columns if each["name"] == "valueDecoded"]
    assert [(each["name"], each["type"]) for each in decoded["fields"]] == [
        ("id", "int64"),
        ("tags", "list<element: string>"),
    ]


@pytest.mark.parametrize(
    ("place", "account", "name"),
    [
        ("s3://bucket/lake/orders", None, DatasetName("s3://bucket", "lake/orders")),
        ("gs://bucket", None, DatasetName("gs://bucket", "/")),
        ("az://box/lake", "me", DatasetName("abfss://box@me.dfs.core.windows.net", "lake")),
        (
            "abfss://box@me.dfs.core.windows.net/lake",
            "other",
            DatasetName("abfss://box@me.dfs.core.windows.net", "lake"),
        ),
        ("hdfs://namenode:8020/lake", None, DatasetName("hdfs://namenode:8020", "lake")),
        ("/srv/lake", None, DatasetName("file", "/srv/lake")),
    ],
)
def test_places_are_named_as_openlineage_names_them(
    place: str, account: str | None, name: DatasetName, monkeypatch: pytest.MonkeyPatch
) -> None:
    if account is not None:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", account)
    assert name_of_place(place) == name


class Received(NamedTuple):
    """A request of a client."""

    path: str
    key: str | None
    event: dict[str, Any]


@contextmanager
def serving(status: int = 201) -> Iterator[tuple[str, list[Received]]]:
    """Yield the URL of a collector on this machine, and the requests that it gets."""
    received: list[Received] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/json"
            received.append(Received(self.path, self.headers["Authorization"], json.loads(content)))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            server.shutdown()
            thread.join()


def test_a_collector_gets_the_events_by_http(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (url, received):
        assert kseg(logs, "--openlineage", url).stderr == b""
        monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
        monkeypatch.setenv("OPENLINEAGE_ENDPOINT", "v7/lineage")
        monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "nightly")
        parent = UUID(int=7)
        monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/exports.orders/{parent}")
        monkeypatch.setenv("OPENLINEAGE_URL", url)
        assert kseg(logs).stderr == b""
        monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
        kseg(logs, "--openlineage", url)
    for each in received:
        check_event(each.event)
    assert [(each.path, each.key) for each in received] == [
        *[("/api/v1/lineage", None)] * 2,
        *[("/v7/lineage", "Bearer secret")] * 2,
    ]
    assert [each.event["job"]["namespace"] for each in received] == ["default", "default", "nightly", "nightly"]
    facet = received[-1].event["run"]["facets"]["parent"]
    assert facet["run"] == {"runId": str(parent)}
    assert facet["job"] == {"namespace": "airflow", "name": "exports.orders"}


def test_a_collector_that_refuses_fails_no_export(logs: Path) -> None:
    exports.write_log(logs / "payments-0", 0, 5)
    with serving(status=401) as (url, received):
        ran = kseg(logs, "--openlineage", url)
    line = f"kseg: {url}: lineage events can't be sent: the collector answered 401 Unauthorized; check --openlineage"
    assert (ran.status, ran.stderr.count(b"\n"), len(received)) == (0, 1, 1)
    assert ran.stderr.decode().startswith(line)


@pytest.mark.parametrize("place", ["http://127.0.0.1:1", "missing/events.jsonl", "http://[broken"])
def test_an_unreachable_place_fails_no_export(place: str, logs: Path, tmp_path: Path) -> None:
    ran = kseg(logs, "--openlineage", place, to="out")
    assert (ran.status, ran.stderr.count(b"\n")) == (0, 1)
    assert f"kseg: {place}: lineage events can't be sent: ".encode() in ran.stderr
    assert len(exports.offsets(tmp_path / "out", "orders")) == 30


@pytest.mark.parametrize("place", ["logs/events.jsonl", "kafka://broker:9092"])
def test_a_wrong_place_for_events_is_refused(place: str, logs: Path, tmp_path: Path) -> None:
    ran = kseg(logs, "--openlineage", place, to="out")
    assert (ran.status, (tmp_path / "out").exists()) == (2, False)
