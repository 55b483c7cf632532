"""`kseg metadata`: a cluster's topics, partitions, brokers, configurations and features."""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from kseg.commands.options import (
    color_option,
    csv_safe_option,
    output_option,
    paths_argument,
    quiet_option,
    raw_option,
    reads_archives,
)
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout
from kseg.output.talk import talk
from kseg.times import iso_time, parse_time
from kseg.views.cluster import ClusterMetadata
from kseg.views.columns import BROKERS, CONFIGS, CONTROLLERS, FEATURES, PARTITIONS, TOPICS, PartitionRow
from kseg.views.metadata import Until, read_cluster_metadata
from kseg.views.replica_places import ReplicaPlaces
from kseg.views.rows import RowWriter, Section

LARGEST_OFFSET_DIGITS = 12
"""A number of more digits is a time: milliseconds since 1970 have had 13 since 2001."""


@click.command()
@paths_argument
@click.option(
    "--at", metavar="OFFSET|TIME", help="As it was after that offset, or then: ISO 8601 or 13 digits of milliseconds."
)
@click.option("--topic", metavar="GLOB", default="*", help="Only topics that match, 'ord*' for example.")
@click.option(
    "--show",
    type=click.Choice(["features", "brokers", "controllers", "topics", "partitions", "configs"]),
    help="Only these rows; all by themselves, in CSV the partitions.",
)
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@reads_archives("paths")
@click.pass_context
def metadata(
    command: click.Context,
    paths: tuple[Path, ...],
    at: str | None,
    topic: str,
    show: str | None,
    output: str,
    csv_safe: bool,
    quiet: bool,
    color: bool | None,
) -> None:
    """Show a KRaft cluster as __cluster_metadata tells it: topics, partitions, brokers, configurations, features.

    \b
    Examples:
      kseg metadata kafka-logs/ --show partitions
      kseg metadata __cluster_metadata-0/ --at 2026-11-01T03:00 --topic 'ord*'
      kseg metadata __cluster_metadata-0/ --at 203500 -o json | jq 'select(.type == "topic") | .topicId'

    PATHS are the directory __cluster_metadata-0, log directories of which one has it, or parents of these; none means
    the current directory. The replay begins with the newest usable checkpoint. Each replica's directory is shown: its
    path if it is among PATHS, else its id. Values of passwords are hidden.
    """
    refuse = Refusals()
    found = read_cluster_metadata(paths, _until(at), refuse)
    places = ReplicaPlaces(found.log_dirs, are_of_now=at is None)
    writer = RowWriter(output, color, csv_safe=csv_safe)
    wanted = show or ("partitions" if output == "csv" else None)
    if wanted is None and output == "json":
        _write_summary(found)
    for section, rows in _sections(found, places, topic):
        if wanted in (None, section.title.lower()):
            writer.write(section, rows)
    flush_stdout()
    if not quiet:
        _talk(found)
        if not writer.count:
            talk(f"kseg: no {wanted or 'metadata'} to show")
    command.exit(max(refuse.status, int(bool(found.unreadable) or found.missing_before is not None)))


def _sections(found: ClusterMetadata, places: ReplicaPlaces, topic: str) -> list[tuple[Section[Any], list[Any]]]:
    configs = (row for row in found.configs if row.resource_type != "topic" or fnmatchcase(row.resource, topic))
    return [
        (FEATURES, [*found.features]),
        (CONTROLLERS, [*found.controllers]),
        (BROKERS, [*found.brokers]),
        (TOPICS, [row for row in found.topics if fnmatchcase(row.name, topic)]),
        (PARTITIONS, [PartitionRow(row, places.of(row)) for row in found.partitions if fnmatchcase(row.topic, topic)]),
        (CONFIGS, [*configs]),
    ]


def _until(at: str | None) -> Until:
    if at is None:
        return Until()
    if re.fullmatch(r"[0-9]+", at) and len(at) <= LARGEST_OFFSET_DIGITS:
        return Until(offset=int(at))
    return Until(timestamp_ms=parse_time(at))


def _write_summary(found: ClusterMetadata) -> None:
    from kseg.output.json_lines import write_json

    write_json(
        {
            "type": "metadata",
            "offset": None if found.offset < 0 else found.offset,
            "timestamp": None if found.timestamp < 0 else found.timestamp,
            "time": iso_time(found.timestamp),
            "checkpoint": found.checkpoint,
            "missingBefore": found.missing_before,
            "unapplied": found.unapplied,
        }
    )


def _talk(found: ClusterMetadata) -> None:
    for unreadable in found.unreadable:
        talk(f"kseg: {unreadable.line()}")
    if found.missing_before is not None:
        talk(f"kseg: records before offset {found.missing_before} are missing, and no checkpoint has them: incomplete")
    if found.unapplied:
        talk(f"kseg: {found.unapplied} records belong to what isn't known, or to a transaction that has not ended")
