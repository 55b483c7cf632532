"""Numbers of a run by topic, from the accounts before and after it, and from its results and files."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kseg.export.report import PartitionReport
from kseg.export.results import Result
from kseg.export.topic_runs import OffsetSpan, TopicCounts
from kseg.export.write.parquet import ATTEMPT
from kseg.log.selection import PartitionChoice


class Accounts(NamedTuple):
    """The accounts of all partitions before and after a run."""

    before: tuple[PartitionReport, ...]
    after: tuple[PartitionReport, ...]


class WrittenFiles(NamedTuple):
    """Files of a topic: their number, and their bytes."""

    number: int = 0
    size: int = 0


def count_topics(
    accounts: Accounts,
    choice: PartitionChoice,
    read: Iterable[Result],
    files: Mapping[str, WrittenFiles] | None,
) -> tuple[TopicCounts, ...]:
    """Return the numbers of each topic that the run was to export, in the order of their names.

    read: the results that the run adds. files: by topic; None if the run's files don't belong to single topics.
    """
    spans = _spans_of(read)
    before, after = _by_topic(accounts.before), _by_topic(accounts.after)
    found = []
    for topic, own in after.items():
        if not any(choice.takes(each.topic, each.partition) for each in own):
            continue
        rows = sum(each.records_out for each in own)
        written = None if files is None else files.get(topic, WrittenFiles())
        found.append(
            TopicCounts(
                topic,
                rows - sum(each.records_out for each in before.get(topic, ())),
                rows,
                None if written is None else written.number,
                None if written is None else written.size,
                sum(part.undecoded for each in own for part in each.new_decoded),
                sum(each.new_lost for each in own),
                sum(each.new_missed for each in own),
                tuple(spans[topic]),
            )
        )
    return tuple(found)


def _by_topic(accounts: Iterable[PartitionReport]) -> dict[str, list[PartitionReport]]:
    found: dict[str, list[PartitionReport]] = defaultdict(list)
    for each in accounts:
        found[each.topic].append(each)
    return found


def _spans_of(read: Iterable[Result]) -> Mapping[str, list[OffsetSpan]]:
    """Return the bounds of the results' offsets, by topic and in the order of partitions."""
    bounds: dict[tuple[str, int | None], tuple[int, int]] = {}
    for result in read:
        span, key = result.tally.span, (result.topic, result.partition)
        if span is not None and span.first is not None and span.end is not None:
            first, end = bounds.get(key, (span.first, span.end))
            bounds[key] = min(first, span.first), max(end, span.end)
    found: dict[str, list[OffsetSpan]] = defaultdict(list)
    for (topic, partition), (first, end) in sorted(bounds.items(), key=lambda each: (each[0][0], each[0][1] or 0)):
        found[topic].append(OffsetSpan(partition, first, end))
    return found


def files_of_run(results: Iterable[Result], run_id: str) -> dict[str, WrittenFiles]:
    """Return the files that a run wrote, by topic; the bytes of a file of several topics are divided by rows."""
    rows: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    sizes: dict[str, int] = {}
    for result in results:
        for file in result.files:
            match = ATTEMPT.fullmatch(file.attempt)
            if match is not None and match[1] == run_id:
                rows[file.attempt][result.topic] += file.rows
                sizes[file.attempt] = file.size
    found: dict[str, WrittenFiles] = defaultdict(WrittenFiles)
    for name, by_topic in rows.items():
        total = sum(by_topic.values()) or 1
        for topic, count in by_topic.items():
            known = found[topic]
            found[topic] = WrittenFiles(known.number + 1, known.size + sizes[name] * count // total)
    return found
