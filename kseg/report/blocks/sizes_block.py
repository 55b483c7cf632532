"""How large records are: keys, values, headers; and the largest ones."""

from kseg.kernel.statistics_contract import Measure
from kseg.output.sizes import human_size
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.blocks.batches_block import histogram_figure
from kseg.report.commands import partition_line
from kseg.report.gathered import Gathered, TopicFacts
from kseg.report.numbers import share_text

_FEW, _MUCH, _WORTH_RECORDS = 0.001, 0.2, 10_000
_PARTS = (
    (Measure.RECORD_SIZE, "record"),
    (Measure.KEY_SIZE, "key"),
    (Measure.VALUE_SIZE, "value"),
    (Measure.HEADERS_SIZE, "headers"),
)
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("part", "Of"),
    CellColumn("count", "How many", CellKind.COUNT),
    CellColumn("bytes", "Together", CellKind.SIZE),
    CellColumn("least", "Least", CellKind.SIZE),
    CellColumn("p50", "50 %", CellKind.SIZE),
    CellColumn("mean", "Mean", CellKind.SIZE),
    CellColumn("p99", "99 %", CellKind.SIZE),
    CellColumn("most", "Most", CellKind.SIZE),
)
_LARGEST_COLUMNS = (
    CellColumn("directory", "Partition"),
    CellColumn("offset", "Offset", CellKind.COUNT),
    CellColumn("bytes", "Key, value, headers", CellKind.SIZE),
    CellColumn("command", "Show it", CellKind.COMMAND),
)


def sizes_block(known: Gathered) -> Block:
    """Sizes of records, uncompressed."""
    if known.choices.is_quick:
        return Block("sizes", "Message sizes", notes=("Not known: --quick reads no records.",))
    topics = [topic for topic in known.by_size if topic.sums.histograms[Measure.RECORD_SIZE].count]
    rows = tuple(row for topic in topics for row in _rows(topic))
    placed = sorted((each for topic in topics for each in topic.largest), key=lambda each: -each.record.size)[:20]
    largest = tuple(
        (
            each.partition.name,
            each.record.offset,
            each.record.size,
            partition_line(
                each.partition, "dump", "--from-offset", str(each.record.offset), "--limit", "1", "-o", "json"
            ),
        )
        for each in placed
    )
    all_sizes = known.all.histograms[Measure.RECORD_SIZE]
    figures = (histogram_figure("Bytes of a record", all_sizes, "bytes"),) if topics else ()
    tables = (
        Table("sizes", "By topic", _COLUMNS, rows),
        Table("largestRecords", "The largest records", _LARGEST_COLUMNS, largest),
    )
    notes = ("Bytes of key, value and headers before compression. Null keys and values aren't counted as sizes.",)
    return Block("sizes", "Message sizes", tuple(_verdicts(topics)), figures, tables, notes)


def _rows(topic: TopicFacts) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for measure, part in _PARTS:
        sizes = topic.sums.histograms[measure]
        if sizes.count:
            mean = round(sizes.sum / sizes.count)
            ends = (sizes.least, sizes.percentile(0.5), mean, sizes.percentile(0.99), sizes.most)
            rows.append((topic.name, part, sizes.count, sizes.sum, *ends))
    return rows


def _verdicts(topics: list[TopicFacts]) -> list[Sentence]:
    found = []
    for topic in topics:
        sizes = topic.sums.histograms[Measure.RECORD_SIZE]
        share = sizes.share_of_largest(_FEW)
        if sizes.count >= _WORTH_RECORDS and share >= _MUCH and topic.largest:
            largest = topic.largest[0]
            sentence = (
                f"{topic.name}: {share_text(_FEW)} of the records are {share_text(share)} of the bytes; the largest "
                f"has {human_size(largest.record.size)}, at offset {largest.record.offset} of {largest.partition.name}."
            )
            found.append((share * sizes.sum, Sentence(sentence, _lookup(topic), Weight.WATCH)))
    found.sort(key=lambda pair: -pair[0])
    return [verdict for _, verdict in found[:3]]


def _lookup(topic: TopicFacts) -> str:
    largest = topic.largest[0]
    return partition_line(largest.partition, "lookup", "--offset", str(largest.record.offset))
