"""What compaction has left to do: dirty bytes, superseded records, tombstones; and whether the cleaner can pass."""

from kseg.log.partition.cleaning import CleanerVerdict
from kseg.output.cleaning import cleaning_text, keys_text
from kseg.output.sizes import human_size
from kseg.report.block import Block, Cell, CellColumn, CellKind, Figure, Sentence, Table, Weight
from kseg.report.blocks.codecs_block import ratio_of
from kseg.report.charts.strips import Strip, StripPart, stacked
from kseg.report.commands import partition_line, topic_line
from kseg.report.gathered import Gathered, PartitionFacts, TopicFacts
from kseg.report.numbers import age_text, share_text

_MOST_STRIPS, _WORTH = 16, 1 << 20
_NAMES = ("clean", "dirty", "active or not to be cleaned")
_COLUMNS = (
    CellColumn("directory", "Partition"),
    CellColumn("dirtyRatio", "Dirty ratio", CellKind.SHARE),
    CellColumn("cleanBytes", "Clean", CellKind.SIZE),
    CellColumn("dirtyBytes", "Dirty", CellKind.SIZE),
    CellColumn("logBytes", "Log", CellKind.SIZE),
    CellColumn("firstDirtyOffset", "First dirty offset", CellKind.COUNT),
    CellColumn("superseded", "Superseded records", CellKind.COUNT),
    CellColumn("frees", "Would free, about", CellKind.SIZE),
    CellColumn("verdict", "The cleaner"),
)
_TOPIC_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("keys", "Keys", CellKind.COUNT),
    CellColumn("superseded", "Superseded", CellKind.COUNT),
    CellColumn("tombstones", "Tombstones", CellKind.COUNT),
    CellColumn("tombstoneBytes", "Their bytes", CellKind.SIZE),
    CellColumn("oldestTombstone", "Oldest tombstone", CellKind.TIME),
    CellColumn("nullKeys", "Without a key", CellKind.COUNT),
)


def compaction_block(known: Gathered) -> Block:
    """Partitions that the log cleaner has to do with."""
    partitions = [each for each in known.in_use if each.cleaning is not None]
    if not partitions:
        return Block("compaction", "Compaction", notes=("No topic here is known to be compacted.",))
    partitions.sort(key=lambda each: (-each.size, each.name))
    names = {each.topic for each in partitions}
    topics = [topic for topic in known.by_size if topic.name in names]
    tables = [Table("compaction", "By partition", _COLUMNS, tuple(_row(known, each) for each in partitions))]
    if not known.choices.is_quick:
        tables.append(Table("compactionTopics", "By topic", _TOPIC_COLUMNS, tuple(map(_topic_row, topics))))
    title = "Clean and dirty bytes"
    figures = (Figure(title, stacked(title, [_strip(each) for each in partitions[:_MOST_STRIPS]], _NAMES)),)
    notes = (
        "Superseded: the key came again before the active segment. What compaction would free is reckoned from the "
        "sizes of such records and the topic's compression; tombstones stay for delete.retention.ms. When the cleaner "
        "came last is written nowhere; nothing was cleaned later than its checkpoint in the log directory.",
    )
    return Block("compaction", "Compaction", tuple(_verdicts(known, topics, partitions)), figures, tuple(tables), notes)


def freed(known: Gathered, partition: PartitionFacts) -> int | None:
    """Bytes that compaction would free, about; None if records weren't read."""
    if partition.superseded is None:
        return None
    ratio = ratio_of(known.topics[partition.topic]) or 1.0
    return min(round(partition.superseded.size / ratio), partition.size)


def _row(known: Gathered, each: PartitionFacts) -> tuple[Cell, ...]:
    cleaning = each.cleaning
    assert cleaning is not None
    words = "; ".join(filter(None, (cleaning_text(cleaning), keys_text(cleaning))))
    return (
        each.name,
        cleaning.dirty_ratio,
        cleaning.clean_size,
        cleaning.cleanable_size,
        each.size,
        cleaning.first_dirty,
        None if each.superseded is None else each.superseded.records,
        freed(known, each),
        words,
    )


def _topic_row(topic: TopicFacts) -> tuple[Cell, ...]:
    sums = topic.sums
    oldest = sums.first_tombstone_time
    return (
        topic.name,
        sums["records"],
        sums["keys"] if sums.has_all_keys else None,
        sums["superseded"],
        sums["tombstones"],
        sums["tombstones_size"],
        None if oldest < 0 else oldest,
        sums["null_keys"],
    )


def _strip(each: PartitionFacts) -> Strip:
    cleaning = each.cleaning
    assert cleaning is not None
    rest = max(each.size - cleaning.clean_size - cleaning.cleanable_size, 0)
    sizes = (cleaning.clean_size, cleaning.cleanable_size, rest)
    parts = tuple(
        StripPart(size, color, f"{each.name}, {_NAMES[color]}: {human_size(size)}") for color, size in enumerate(sizes)
    )
    return Strip(each.name, parts, "" if cleaning.dirty_ratio is None else share_text(cleaning.dirty_ratio))


def _verdicts(known: Gathered, topics: list[TopicFacts], partitions: list[PartitionFacts]) -> list[Sentence]:
    verdicts = []
    for topic in topics:
        frees = sum(freed(known, each) or 0 for each in topic.partitions if each.cleaning is not None)
        if frees >= _WORTH or (topic.size and frees >= topic.size / 2):
            share = share_text(frees / max(topic.size, 1))
            sentence = f"{topic.name}: compaction would free about {human_size(frees)}, {share} of the topic."
            verdicts.append((frees, Sentence(sentence, _dry_run(topic), Weight.WATCH)))
    verdicts.sort(key=lambda pair: -pair[0])
    shown = [verdict for _, verdict in verdicts[:3]]
    for each in partitions:
        cleaning = each.cleaning
        stopped = cleaning is not None and cleaning.verdict in (CleanerVerdict.STOPPED, CleanerVerdict.UNCLEANABLE)
        if stopped and cleaning is not None and len(shown) < 5:
            sentence = f"{each.name}: the cleaner can't pass: {cleaning_text(cleaning)}."
            shown.append(Sentence(sentence, partition_line(each, "ls", "--by", "segment"), Weight.BAD))
    old = [topic for topic in topics if 0 <= topic.sums.first_tombstone_time < known.choices.now_ms - 30 * 86_400_000]
    for topic in old[:1]:
        age = age_text(known.choices.now_ms - topic.sums.first_tombstone_time)
        shown.append(Sentence(f"{topic.name}: its oldest tombstone is {age} old.", topic_line(topic, "ls")))
    return shown


def _dry_run(topic: TopicFacts) -> str:
    largest = max(topic.partitions, key=lambda each: each.superseded.size if each.superseded else 0)
    return partition_line(largest, "compact", "--dry-run")
