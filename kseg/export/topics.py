"""Exports of several topics in one run, each to a table of its own."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from kseg.errors import ClusterError, KsegError, OpenError, UsageError, quote
from kseg.export.planning import Export, Listing, is_meant, list_sources
from kseg.export.write import parquet
from kseg.log.selection import numbers_by_topic

PLACEHOLDER = "{topic}"
"""The part of a destination or of a table's name that stands for the topic."""
TABLE_OF_TOPIC = f"kafka.{PLACEHOLDER}"
"""The default name of a topic's Iceberg table."""
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Kafka's rule for names of topics. Source: org.apache.kafka.common.internals.Topic."""
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class TopicOutcome(Generic[Done]):
    """The result of exporting a topic to `destination`, or the error that stopped the export."""

    topic: str
    destination: str
    done: Done | None = None
    error: KsegError | None = None


@dataclass(frozen=True, slots=True)
class TopicOutcomes(Generic[Done]):
    """The outcomes of a run, in the order of topics. destination: with the placeholder. refused: as in a report."""

    destination: str
    topics: tuple[TopicOutcome[Done], ...]
    refused: tuple[OpenError, ...]

    @property
    def done(self) -> list[Done]:
        """The results of all exported topics."""
        return [each.done for each in self.topics if each.done is not None]

    @property
    def errors(self) -> list[tuple[str, KsegError]]:
        """The topics that weren't exported, with the reasons."""
        return [(each.topic, each.error) for each in self.topics if each.error is not None]


def is_per_topic(export: Export) -> bool:
    """Return True if the export writes a separate table for every topic.

    Raises UsageError if only one of the destination and the table's name depends on the topic, so that tables of
    several topics would be in one place.
    """
    if export.dead_letters and PLACEHOLDER in export.dead_letters and PLACEHOLDER not in export.destination:
        raise UsageError("--dead-letter has {topic}, but DEST doesn't; specify both the same pattern")
    if export.runs_table and PLACEHOLDER in export.runs_table and PLACEHOLDER not in export.destination:
        raise UsageError("--runs-table has {topic}, but DEST doesn't; specify both the same pattern")
    has_places, has_names = PLACEHOLDER in export.destination, PLACEHOLDER in export.table.name
    if has_names and not has_places:
        raise UsageError("--table has {topic}, but DEST doesn't; specify each table its own place")
    if has_places and not has_names and export.table.catalog is not None:
        raise UsageError("DEST has {topic}, but --table doesn't; specify each table of the catalog its own name")
    return has_places


def run_topics(export: Export, run: Callable[[Export], Done]) -> TopicOutcomes[Done]:
    """Run an export for each topic, in order; the error of a topic doesn't stop the others.

    The sources are listed once. Raises OpenError or UsageError if there is nothing to read, UsageError if no table can
    be written, ClusterError if the cluster fails that does the work.
    """
    export.files.format.load()
    parquet.check_options(export.files)
    listing = list_sources(export.sources)
    choice = export.selection.partitions
    choice.require_among(numbers_by_topic((each.topic, each.partition) for each in listing.replicas if each.copies))
    outcomes = tuple(_outcome(each, run) for each in _topic_exports(export, listing))
    return TopicOutcomes(
        export.destination, outcomes, tuple(each for each in listing.refused if is_meant(each, choice))
    )


def _topic_exports(export: Export, listing: Listing) -> Iterator[tuple[str, Export | UsageError]]:
    """Yield the requested topics with their exports, or with the reason why they can't be exported."""
    replicas = defaultdict(list)
    for each in listing.replicas:
        if each.copies and export.selection.range_of(each.topic, each.partition) is not None:
            replicas[each.topic].append(each)
    taken: dict[str, str] = {}
    for topic, own in sorted(replicas.items()):
        table = export.table.name.replace(PLACEHOLDER, topic.replace(".", "_"))
        other = taken.setdefault(table, topic) if PLACEHOLDER in export.table.name else topic
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            yield topic, UsageError("no topic of Kafka has this name; export it to a DEST without {topic}")
        elif other != topic:
            yield topic, UsageError(f"its table would be {quote(table)}, which is that of the topic {other}")
        else:
            choice = export.selection.partitions._replace(topics=(topic,), allow_missing=True)
            yield (
                topic,
                replace(
                    export,
                    destination=export.destination.replace(PLACEHOLDER, topic),
                    selection=replace(export.selection, partitions=choice),
                    table=export.table._replace(name=table),
                    dead_letters=export.dead_letters and export.dead_letters.replace(PLACEHOLDER, topic),
                    runs_table=export.runs_table and export.runs_table.replace(PLACEHOLDER, topic),
                    listing=Listing(tuple(own), tuple(each for each in listing.refused if is_meant(each, choice))),
                ),
            )


def _outcome(topic_export: tuple[str, Export | UsageError], run: Callable[[Export], Done]) -> TopicOutcome[Done]:
    topic, export = topic_export
    if isinstance(export, UsageError):
        return TopicOutcome(topic, "", error=export)
    try:
        return TopicOutcome(topic, export.destination, run(export))
    except ClusterError:
        raise
    except KsegError as error:
        return TopicOutcome(topic, export.destination, error=error)
