"""Settings that disagree with one another or with what is on the disk; topics that nobody uses."""

from collections import defaultdict
from collections.abc import Iterator

from kseg.counted import counted
from kseg.log.partition.roll import Rolled
from kseg.output.sizes import human_size
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.commands import line_of, topic_line
from kseg.report.gathered import Gathered, TopicFacts
from kseg.report.numbers import age_text, share_text
from kseg.views.doctor.examination import roll_settings_of

_EMPTY_SHARE, _LONG = 0.1, 2.0
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("what", "What disagrees"),
    CellColumn("command", "See", CellKind.COMMAND),
)
_OWN_COLUMNS = (CellColumn("topic", "Topic"), CellColumn("setting", "Setting"), CellColumn("value", "Value"))
_EMPTY_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("partitions", "Partitions", CellKind.COUNT),
    CellColumn("empty", "Empty", CellKind.COUNT),
    CellColumn("files", "Files", CellKind.SIZE),
)


def settings_block(known: Gathered) -> Block:
    """What doesn't fit together."""
    rows = tuple(row for topic in known.by_size for row in _disagreements(known, topic))
    empty = [topic for topic in known.by_size if any(not each.size for each in topic.partitions)]
    empty_rows = tuple(
        (topic.name, len(topic.partitions), sum(not each.size for each in topic.partitions), topic.disk_size)
        for topic in empty
    )
    own = tuple(
        (topic.name, name, value) for topic in known.by_size for name, value in sorted(topic.partitions[0].own.items())
    )
    possible = (
        Table("disagreements", "What disagrees", _COLUMNS, rows),
        Table("emptyTopics", "Topics with empty partitions", _EMPTY_COLUMNS, empty_rows),
        Table("topicSettings", "Settings of the topics' own", _OWN_COLUMNS, own),
    )
    tables = [table for table in possible if table.rows]
    notes = () if own else ("No settings of topics are known: there is no __cluster_metadata in these directories.",)
    return Block("settings", "Settings", tuple(_verdicts(known, rows)), tables=tuple(tables), notes=notes)


def _verdicts(known: Gathered, rows: tuple[tuple[Cell, ...], ...]) -> list[Sentence]:
    verdicts = [
        Sentence(f"{row[0]}: {row[1]}.", None if row[2] is None else str(row[2]), Weight.WATCH) for row in rows[:3]
    ]
    if len(rows) > len(verdicts):
        verdicts.append(Sentence(f"{counted(len(rows) - 3, 'more disagreement')} in the table.", None, Weight.WATCH))
    empty = sum(not each.size for each in known.in_use)
    if empty:
        share = empty / len(known.in_use)
        unused = sum(not topic.size for topic in known.topics.values())
        topics = f"{counted(unused, 'topic')} {'holds' if unused == 1 else 'hold'} nothing here"
        sentence = f"{empty} of {counted(len(known.in_use), 'partition')} are empty; {topics}."
        weight = Weight.WATCH if share >= _EMPTY_SHARE and empty > 1 else Weight.PLAIN
        verdicts.append(Sentence(sentence, line_of(known, "ls", "--by", "topic"), weight))
    return verdicts


def _disagreements(known: Gathered, topic: TopicFacts) -> Iterator[tuple[Cell, ...]]:
    for what in (*_of_ids(topic), *_of_counts(known, topic), *_of_retention(topic), *_of_replicas(known, topic)):
        yield topic.name, what, topic_line(topic, "ls")


def _of_ids(topic: TopicFacts) -> Iterator[str]:
    ids: dict[str, list[str]] = defaultdict(list)
    for each in topic.partitions:
        if each.topic_id is not None:
            ids[each.topic_id].append(each.name)
    if len(ids) > 1:
        named = ", ".join(f"{topic_id} of {names[0]}" for topic_id, names in sorted(ids.items())[:3])
        yield f"its partitions have {len(ids)} topic ids: {named}"


def _of_counts(known: Gathered, topic: TopicFacts) -> Iterator[str]:
    """Partitions that the cluster's metadata don't know; nobody reads them."""
    found = next((each for each in known.cluster.topics if each.name == topic.name), None) if known.cluster else None
    if known.cluster is None or topic.name.startswith("__cluster_metadata"):
        return
    if found is None:
        yield "the cluster's metadata don't know the topic"
        return
    numbers = {each.partition for each in found.partitions}
    strange = sorted(str(each.name) for each in topic.partitions if each.partition.partition not in numbers)
    if strange:
        yield f"the cluster's metadata have {counted(len(numbers), 'partition')}, not {', '.join(strange[:3])}"


def _of_retention(topic: TopicFacts) -> Iterator[str]:
    """Retention deletes whole segments: a segment that is open for longer than that keeps its records for longer."""
    one = topic.partitions[0]
    retention, roll = one.retention.retention_ms, roll_settings_of(one.own)
    if one.cleaning is not None or retention <= 0:
        return
    is_known = "segment.ms" in one.own or one.has_own_time
    if is_known and roll.segment_ms > _LONG * retention:
        yield (
            f"segments are open for up to {age_text(roll.segment_ms)} (segment.ms), but kept for "
            f"{age_text(retention)} (retention.ms): records stay for both together"
        )
    closed = [segment for each in topic.partitions for segment in each.segments if segment.rolled is not Rolled.ACTIVE]
    small = [segment for segment in closed if segment.size < roll.segment_bytes // 100]
    if len(closed) >= 100 and len(small) > len(closed) // 2:
        mean = human_size(sum(segment.size for segment in closed) // len(closed))
        yield f"{len(closed)} closed segments of {mean} on average: more files than segment.bytes would need"


def _of_replicas(known: Gathered, topic: TopicFacts) -> Iterator[str]:
    found = next((each for each in known.cluster.topics if each.name == topic.name), None) if known.cluster else None
    if found is None or not found.partitions:
        return
    least = min(len(each.replicas) for each in found.partitions)
    wanted = topic.partitions[0].own.get("min.insync.replicas", "")
    if wanted.isdigit() and int(wanted) > least:
        yield f"min.insync.replicas is {wanted}, but there are {counted(least, 'replica')}: acks=all fails"
    if wanted.isdigit() and int(wanted) == least > 1:
        yield f"min.insync.replicas is {wanted} of {counted(least, 'replica')}: acks=all fails when one broker is down"
    behind = [each for each in found.partitions if each.leader >= 0 and len(each.isr) < len(each.replicas)]
    if behind:
        share = share_text(len(behind) / len(found.partitions))
        yield f"{counted(len(behind), 'partition')}, {share}, lack in-sync replicas in the cluster's metadata"
