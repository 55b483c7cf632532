"""Where the bytes are: by topic, partition and kind of file."""

from collections import Counter

from kseg.counted import counted
from kseg.output.sizes import human_size
from kseg.report.block import Block, CellColumn, CellKind, Figure, Sentence, Table, Weight
from kseg.report.charts.treemap import Tile, treemap
from kseg.report.commands import line_of
from kseg.report.gathered import Gathered, PartitionFacts
from kseg.report.numbers import share_text
from kseg.report.survey import LEFTOVERS, OTHERS, FileSizes

_MOST_TILES, _MOST_PARTS = 20, 16
_LARGE_SHARE, _FULL = 0.25, 0.9
_KIND_ORDER = ("logs", "indexes", "snapshots", OTHERS, LEFTOVERS)
_TOPIC_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("share", "Share", CellKind.BAR),
    CellColumn("bytes", "On disk", CellKind.SIZE),
    CellColumn("logBytes", "Logs", CellKind.SIZE),
    CellColumn("partitions", "Partitions", CellKind.COUNT),
    CellColumn("segments", "Segments", CellKind.COUNT),
    CellColumn("records", "Records", CellKind.COUNT),
)
_PARTITION_COLUMNS = (
    CellColumn("directory", "Directory"),
    CellColumn("share", "Share", CellKind.BAR),
    CellColumn("bytes", "On disk", CellKind.SIZE),
    CellColumn("logBytes", "Logs", CellKind.SIZE),
    CellColumn("segments", "Segments", CellKind.COUNT),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("logStartOffset", "First offset", CellKind.COUNT),
    CellColumn("logEndOffset", "End offset", CellKind.COUNT),
    CellColumn("logDir", "Log directory"),
)
_KIND_COLUMNS = (
    CellColumn("kind", "Kind of file"),
    CellColumn("share", "Share", CellKind.BAR),
    CellColumn("bytes", "Size", CellKind.SIZE),
    CellColumn("allocatedBytes", "Set aside on disk", CellKind.SIZE),
)


def bytes_block(known: Gathered) -> Block:
    """Sizes of everything."""
    total = sum(each.disk_size for each in known.partitions) or 1
    tables = (
        Table("topics", "By topic", _TOPIC_COLUMNS, _topic_rows(known, total)),
        Table("partitions", "By partition", _PARTITION_COLUMNS, _partition_rows(known, total)),
        Table("kinds", "By kind of file", _KIND_COLUMNS, _kind_rows(known)),
    )
    tiles = _tiles(known)
    figures = (Figure("Bytes by topic and partition", treemap("Bytes by topic and partition", tiles)),) if tiles else ()
    notes = ("Set aside: blocks of the disk. Indexes of active segments are 10 MiB large, but mostly holes.",)
    return Block("bytes", "Where the bytes are", tuple(_verdicts(known, total)), figures, tables, notes)


def _verdicts(known: Gathered, total: int) -> list[Sentence]:
    verdicts = []
    if len(known.topics) > 1:
        largest = max(known.topics.values(), key=lambda topic: topic.disk_size)
        if largest.disk_size >= _LARGE_SHARE * total:
            sentence = f"{largest.name} is {share_text(largest.disk_size / total)} of {human_size(total)}."
            verdicts.append(Sentence(sentence, line_of(known, "ls", "--by", "topic", "--sort", "size")))
    for disk in known.check_up.disks:
        used = (disk.size - disk.available) / disk.size
        places = ", ".join(map(str, disk.log_dirs))
        sentence = f"The disk of {places} is {share_text(used)} full: {human_size(disk.available)} are free."
        verdicts.append(Sentence(sentence, None, Weight.WATCH if used >= _FULL else Weight.PLAIN))
    gone = [each for each in known.partitions if each.state is not None]
    if gone:
        states = Counter(f"-{each.state}" for each in gone)
        names = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        size = sum(each.disk_size for each in gone)
        sentence = f"{counted(len(gone), 'directory', 'directories')} not in use ({names}) hold {human_size(size)}."
        verdicts.append(Sentence(sentence, line_of(known, "ls"), Weight.WATCH))
    return verdicts


def _topic_rows(known: Gathered, total: int) -> tuple[tuple[str | int | float | None, ...], ...]:
    topics = sorted(known.topics.values(), key=lambda topic: (-topic.disk_size, topic.name))
    return tuple(
        (
            topic.name,
            topic.disk_size / total,
            topic.disk_size,
            topic.size,
            len(topic.partitions),
            sum(len(each.retained) for each in topic.partitions),
            topic.sums["records"],
        )
        for topic in topics
    )


def _partition_rows(known: Gathered, total: int) -> tuple[tuple[str | int | float | None, ...], ...]:
    partitions = sorted(known.partitions, key=lambda each: (-each.disk_size, str(each.path)))
    return tuple(
        (
            each.name,
            each.disk_size / total,
            each.disk_size,
            each.size,
            len(each.retained),
            each.records,
            each.log_start_offset,
            each.log_end_offset,
            str(each.log_dir),
        )
        for each in partitions
    )


def _kind_rows(known: Gathered) -> tuple[tuple[str | int | float | None, ...], ...]:
    sums: dict[str, FileSizes] = {}
    for partition in known.partitions:
        for kind, sizes in partition.files.items():
            before = sums.get(kind, FileSizes())
            sums[kind] = FileSizes(before.size + sizes.size, before.allocated + sizes.allocated)
    total = sum(each.size for each in sums.values()) or 1
    return tuple((kind, sums[kind].size / total, *sums[kind]) for kind in _KIND_ORDER if kind in sums)


def _tiles(known: Gathered) -> list[Tile]:
    topics = sorted(known.topics.values(), key=lambda topic: (-topic.disk_size, topic.name))
    tiles = [
        Tile(topic.name, topic.disk_size, f"{topic.name}: {human_size(topic.disk_size)}", _parts(topic.partitions))
        for topic in topics[:_MOST_TILES]
    ]
    rest = sum(topic.disk_size for topic in topics[_MOST_TILES:])
    if rest:
        count = len(topics) - _MOST_TILES
        tiles.append(Tile(f"{count} others", rest, f"{count} other topics: {human_size(rest)}"))
    gone = [each for each in known.partitions if each.state is not None]
    if gone:
        size = sum(each.disk_size for each in gone)
        tiles.append(Tile("not in use", size, f"not in use: {human_size(size)}", _parts(gone)))
    return [tile for tile in tiles if tile.size]


def _parts(partitions: list[PartitionFacts]) -> tuple[Tile, ...]:
    largest = sorted(partitions, key=lambda each: (-each.disk_size, each.name))[:_MOST_PARTS]
    return tuple(Tile(each.name, each.disk_size, f"{each.name}: {human_size(each.disk_size)}") for each in largest)
