"""Run events of OpenLineage: the start and the end of the export of one table.

Source: OpenLineage's specification 2-0-2, and its facets.
"""

import os
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from kseg.export.commit.formats import FORMATS
from kseg.export.lineage.datasets import DatasetName, name_of_place, schema_fields
from kseg.export.report import CommitFacts
from kseg.export.topic_runs import ExportedTable, RunStart, TopicCounts
from kseg.times import iso_time, now_ms
from kseg.version import VERSION

EventType = Literal["START", "COMPLETE", "FAIL", "ABORT"]
Members = dict[str, Any]

_SPEC = "https://openlineage.io/spec"
_RUN_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "errorMessage": ("ErrorMessageRunFacet", "1-0-1"),
    "jobType": ("JobTypeJobFacet", "2-0-4"),
    "lifecycleStateChange": ("LifecycleStateChangeDatasetFacet", "1-0-1"),
    "outputStatistics": ("OutputStatisticsOutputDatasetFacet", "1-0-2"),
    "parent": ("ParentRunFacet", "1-2-0"),
    "processing_engine": ("ProcessingEngineRunFacet", "1-1-1"),
    "schema": ("SchemaDatasetFacet", "1-2-0"),
    "storage": ("StorageDatasetFacet", "1-0-1"),
    "symlinks": ("SymlinksDatasetFacet", "1-0-1"),
    "version": ("DatasetVersionDatasetFacet", "1-0-1"),
}
"""The definition and the version of each facet."""


class LineageJob(NamedTuple):
    """The export of one table, as a job and one run of it. overwrites: whether it replaces an earlier table."""

    start: RunStart
    table: ExportedTable
    overwrites: bool = False

    def event(
        self,
        kind: EventType,
        inputs: Sequence[DatasetName] = (),
        facts: CommitFacts | None = None,
        error: str | None = None,
    ) -> Members:
        """Return an event of the run.

        inputs: the read topics, as far as they are known. facts: of the table after the run. error: the reason of a
        failure.
        """
        output = name_of_place(self.table.destination)
        return {
            "eventType": kind,
            "eventTime": iso_time(self.start.started_ms if kind == "START" else now_ms()),
            "producer": _producer(),
            "schemaURL": _RUN_EVENT,
            "run": {"runId": self.start.id, "facets": _run_facets(error)},
            "job": {
                "namespace": os.environ.get("OPENLINEAGE_NAMESPACE") or "default",
                "name": f"kseg_export.{output.name.lstrip('/')}",
                "facets": _facets(jobType={"processingType": "BATCH", "integration": "KSEG", "jobType": "EXPORT"}),
            },
            "inputs": [each._asdict() for each in inputs],
            "outputs": [{**output._asdict(), **self._output_facets(output, facts)}],
        }

    def _output_facets(self, output: DatasetName, facts: CommitFacts | None) -> Members:
        layer = self.table.table_format
        found: Members = {
            "storage": {"storageLayer": layer if FORMATS[layer].has_log else "files", "fileFormat": "parquet"}
        }
        if self.table.name is not None:
            identifier = {"namespace": output.namespace, "name": self.table.name, "type": "TABLE"}
            found["symlinks"] = {"identifiers": [identifier]}
        if facts is None:
            return {"facets": _facets(**found)}
        found["schema"] = {"fields": schema_fields(facts.schema)}
        found["version"] = {"datasetVersion": facts.version or str(facts.number)}
        if facts.is_first or (facts.is_new and self.overwrites):
            found["lifecycleStateChange"] = {"lifecycleStateChange": "CREATE" if facts.is_first else "OVERWRITE"}
        statistics = _facets(outputStatistics=_statistics(facts.record.topics))
        return {"facets": _facets(**found), "outputFacets": statistics}


def _statistics(topics: Sequence[TopicCounts]) -> Members:
    """Return the sums of topics' numbers, as far as all of them are known."""
    names = {"rowCount": "rows", "size": "bytes", "fileCount": "files"}
    values = {own: [getattr(each, name) for each in topics] for own, name in names.items()}
    return {name: sum(counts) for name, counts in values.items() if None not in counts}


def _run_facets(error: str | None) -> Members:
    found: Members = {"processing_engine": {"name": "kseg", "version": VERSION, "openlineageAdapterVersion": VERSION}}
    if error is not None:
        found["errorMessage"] = {"message": error, "programmingLanguage": "PYTHON"}
    parent = os.environ.get("OPENLINEAGE_PARENT_ID", "").split("/")
    if len(parent) == len(("namespace", "job", "run")):
        namespace, job, run = parent
        found["parent"] = {"run": {"runId": run}, "job": {"namespace": namespace, "name": job}}
    return _facets(**found)


def _facets(**facets: Members) -> Members:
    """Return facets with their producer and the URLs of their definitions."""
    found = {}
    for name, members in facets.items():
        kind, number = _FACETS[name]
        url = f"{_SPEC}/facets/{number}/{kind}.json#/$defs/{kind}"
        found[name] = {"_producer": _producer(), "_schemaURL": url, **members}
    return found


def _producer() -> str:
    return f"pkg:pypi/kseg@{VERSION}"
