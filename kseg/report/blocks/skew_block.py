"""How evenly topics are spread over their partitions, and partitions over log directories."""

from statistics import median

from kseg.output.sizes import human_size
from kseg.report.block import Block, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.commands import topic_line
from kseg.report.gathered import Gathered, TopicFacts
from kseg.report.numbers import ratio_text

_SKEWED, _WORTH, _MOST_VERDICTS = 2.0, 1 << 20, 3
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("partitions", "Partitions", CellKind.COUNT),
    CellColumn("bytesRatio", "Bytes, largest to median", CellKind.RATIO),
    CellColumn("recordsRatio", "Records, most to median", CellKind.RATIO),
    CellColumn("largest", "Largest"),
    CellColumn("largestBytes", "Its bytes", CellKind.SIZE),
    CellColumn("medianBytes", "Median", CellKind.SIZE),
    CellColumn("leastBytes", "Least", CellKind.SIZE),
    CellColumn("empty", "Empty", CellKind.COUNT),
)
_DIR_COLUMNS = (
    CellColumn("logDir", "Log directory"),
    CellColumn("share", "Share", CellKind.BAR),
    CellColumn("bytes", "On disk", CellKind.SIZE),
    CellColumn("partitions", "Partitions", CellKind.COUNT),
)


def skew_block(known: Gathered) -> Block:
    """Ratios of the largest partition to the median one."""
    topics = [topic for topic in known.topics.values() if len(topic.partitions) > 1 and topic.size]
    rows = sorted((_row(topic) for topic in topics), key=lambda row: (-float(row[2] or 0), str(row[0])))
    verdicts: list[Sentence] = []
    for row in rows:
        ratio, largest = float(row[2] or 0), int(row[5] or 0)
        if ratio >= _SKEWED and largest >= _WORTH and len(verdicts) < _MOST_VERDICTS:
            sentence = f"{row[0]}: its largest partition has {ratio_text(ratio)} the bytes of the median one."
            command = topic_line(known.topics[str(row[0])], "ls", "--sort", "size")
            verdicts.append(Sentence(sentence, command, Weight.WATCH))
    tables = [Table("skew", "Topics by skew", _COLUMNS, tuple(rows))] if rows else []
    dirs = _dir_rows(known)
    if len(dirs) > 1:
        tables.append(Table("logDirs", "By log directory", _DIR_COLUMNS, dirs))
        sizes = [int(row[2] or 0) for row in dirs]
        if sizes[0] >= _SKEWED * max(sizes[-1], 1) and sizes[0] >= _WORTH:
            sentence = f"{dirs[0][0]} holds {human_size(sizes[0])}, {dirs[-1][0]} only {human_size(sizes[-1])}."
            verdicts.append(Sentence(sentence, None, Weight.WATCH))
    return Block("skew", "Skew", tuple(verdicts), tables=tuple(tables))


def _row(topic: TopicFacts) -> tuple[str | int | float | None, ...]:
    sizes = [each.size for each in topic.partitions]
    records = [each.records for each in topic.partitions]
    largest = max(topic.partitions, key=lambda each: each.size)
    return (
        topic.name,
        len(sizes),
        _to_median(sizes),
        _to_median(records),
        largest.name,
        largest.size,
        round(median(sizes)),
        min(sizes),
        sum(not size for size in sizes),
    )


def _to_median(numbers: list[int]) -> float | None:
    middle = median(numbers)
    return max(numbers) / middle if middle else None


def _dir_rows(known: Gathered) -> tuple[tuple[str | int | float | None, ...], ...]:
    sizes: dict[str, tuple[int, int]] = {}
    for each in known.partitions:
        size, count = sizes.get(str(each.log_dir), (0, 0))
        sizes[str(each.log_dir)] = size + each.disk_size, count + 1
    total = sum(size for size, _ in sizes.values()) or 1
    rows = [(path, size / total, size, count) for path, (size, count) in sizes.items()]
    return tuple(sorted(rows, key=lambda row: (-row[2], row[0])))
