"""The columns of what `rebuild-metadata` finds, for JSON, CSV and tables; and what is to be said with them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.archive.shown_paths import shown
from kseg.output.row_writer import NOT_SHOWN, RowWriter, Section
from kseg.views.column_kinds import column, iso_time_column, number_column, timestamp_column, unless_negative
from kseg.views.rebuild.metadata_copies import MetadataCopy
from kseg.views.rebuild.newer_partitions import NewerPartition
from kseg.views.rebuild.rebuilding import Rebuilding
from kseg.views.rebuild.rebuilt import RebuiltMetadata

_MOST_SHOWN = 20
"""Partitions that people are shown; programs get all."""


class CopyRow(NamedTuple):
    """A copy, and the one that is used."""

    copy: MetadataCopy
    used: MetadataCopy

    @property
    def behind(self) -> int:
        """Records that the used copy has and this one doesn't."""
        return max(self.used.end_offset - self.copy.end_offset, 0)

    @property
    def behind_ms(self) -> int:
        """Milliseconds between the last records of both."""
        return max(self.used.timestamp - self.copy.timestamp, 0)

    def behind_text(self) -> str:
        """For people."""
        if self.copy is self.used:
            return "used"
        return f"{self.behind} records, {self.behind_ms / 1000:.1f} s" if self.behind else "as far"


COPIES: Section[CopyRow] = Section(
    "copy",
    "Copies of __cluster_metadata",
    (
        column("nodeId", "NODE", lambda row: row.copy.node_id),
        column("path", "COPY", lambda row: shown(str(row.copy.partition.path))),
        number_column("endOffset", "END OFFSET", lambda row: row.copy.end_offset),
        number_column("leaderEpoch", "LEADER EPOCH", lambda row: row.copy.leader_epoch),
        number_column("knownEpoch", NOT_SHOWN, lambda row: unless_negative(row.copy.known_epoch)),
        timestamp_column("last", NOT_SHOWN, lambda row: row.copy.timestamp),
        iso_time_column("last", lambda row: row.copy.timestamp, "LAST RECORD"),
        column("isUsed", NOT_SHOWN, lambda row: row.copy is row.used),
        number_column("behindRecords", NOT_SHOWN, lambda row: row.behind),
        column("behindMs", "BEHIND", lambda row: row.behind_ms, lambda row: row.behind_text()),
        column("problem", NOT_SHOWN, lambda row: row.copy.problem),
    ),
)
NEWER: Section[NewerPartition] = Section(
    "newerPartition",
    "Newer than the copy that is used",
    (
        column("path", "PARTITION", lambda row: shown(str(row.path))),
        column("topicId", "TOPIC ID", lambda row: row.topic_id),
        number_column("leaderEpoch", NOT_SHOWN, lambda row: row.leader_epoch),
        number_column("startOffset", NOT_SHOWN, lambda row: row.start_offset),
        number_column("knownEpoch", NOT_SHOWN, lambda row: row.known_epoch),
        column("reason", "WHY", lambda row: row.reason),
    ),
)
REBUILT: Section[RebuiltMetadata] = Section(
    "rebuilt",
    "Controller",
    (
        number_column("nodeId", "NODE", lambda row: row.node_id),
        column("clusterId", "CLUSTER", lambda row: row.cluster_id),
        column("directoryId", "DIRECTORY", lambda row: row.directory_id),
        column("quorum", "QUORUM", lambda row: "dynamic" if row.is_dynamic else "static"),
        column("checkpoint", "CHECKPOINT", lambda row: row.copy.found.checkpoint),
        number_column("endOffset", "END OFFSET", lambda row: row.end_offset),
        number_column("leaderEpoch", "AFTER EPOCH", lambda row: row.leader_epoch),
        column(
            "oldVoters",
            "INSTEAD OF",
            lambda row: [voter.voter_id for voter in row.old_voters],
            lambda row: ",".join(str(voter.voter_id) for voter in row.old_voters),
        ),
    ),
)


def write_rebuilding(rebuilding: Rebuilding, writer: RowWriter) -> None:
    """Writes all that was found."""
    planned, newer = rebuilding.planned, rebuilding.newer
    writer.write(COPIES, [CopyRow(copy, planned.copy) for copy in rebuilding.copies])
    writer.write(NEWER, newer[:_MOST_SHOWN] if writer.form.is_for_people else newer)
    writer.write(REBUILT, [planned])


def rebuilding_notes(rebuilding: Rebuilding, directory: Path | None) -> Iterator[str]:
    """What is wrong or to be minded, and the next step, if the directory is written."""
    planned = rebuilding.planned
    for copy in rebuilding.copies:
        if copy.problem is not None:
            yield f"{copy.partition.path}: ends before {copy.problem}"
        if copy.known_epoch > copy.leader_epoch:
            known = f"leader epoch {copy.known_epoch}, of which it has no record"
            yield f"{copy.partition.path}: its node knew of {known}: something may have been decided after its end"
    if len(rebuilding.newer) > _MOST_SHOWN:
        yield f"{len(rebuilding.newer) - _MOST_SHOWN} more partitions are newer than the copy: -o json has all"
    if planned.node_id in {broker.broker_id for broker in planned.copy.found.brokers}:
        yield f"{planned.node_id} is a broker's id: right only for a node that is broker and controller at once"
    if directory is not None and planned.is_dynamic and rebuilding.is_behind:
        yield "a broker that has more of the metadata has to be started twice: at first it doesn't see the new voter"
    if directory is not None:
        yield f"{directory}: start no controller on it before you have read docs/how-to/metadata.md"
