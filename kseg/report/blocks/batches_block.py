"""How full batches are: records and bytes of each, what headers cost, what waiting (`linger.ms`) would save."""

from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.kernel.statistics_contract import BATCH_SIZE, LINGERS_MS, Measure
from kseg.output.sizes import human_size
from kseg.report.block import Block, CellColumn, CellKind, Figure, Sentence, Table, Weight
from kseg.report.charts.plots import Bin, columns
from kseg.report.commands import topic_line
from kseg.report.gathered import Gathered, TopicFacts
from kseg.report.log_histogram import LogHistogram
from kseg.report.numbers import axis_size, count_text, share_text, short_count
from kseg.report.partition_sums import ProducerSums

_MOST_VERDICTS, _WORTH_BATCHES, _WORTH_SAVING = 3, 1000, 0.3
_MIDDLE = LINGERS_MS[1]
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("recordsMean", "Records each, mean", CellKind.RATIO),
    CellColumn("recordsP25", "25 %", CellKind.COUNT),
    CellColumn("recordsP50", "50 %", CellKind.COUNT),
    CellColumn("recordsP99", "99 %", CellKind.COUNT),
    CellColumn("recordsMost", "Most", CellKind.COUNT),
    CellColumn("bytesP25", "Bytes, 25 %", CellKind.SIZE),
    CellColumn("bytesP50", "50 %", CellKind.SIZE),
    CellColumn("bytesP99", "99 %", CellKind.SIZE),
    CellColumn("bytesMost", "Most", CellKind.SIZE),
    CellColumn("headerShare", "Headers of batches", CellKind.SHARE),
    *(
        CellColumn(f"batchesAfter{linger}ms", f"Batches with linger {linger} ms", CellKind.COUNT)
        for linger in LINGERS_MS
    ),
)
_PRODUCER_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("producerId", "Producer id"),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("recordsMean", "Records each", CellKind.RATIO),
    CellColumn("bytesMean", "Bytes each", CellKind.SIZE),
    *(CellColumn(f"batchesAfter{linger}ms", f"With linger {linger} ms", CellKind.COUNT) for linger in LINGERS_MS),
)


def batches_block(known: Gathered) -> Block:
    """Batches of data; those of control records aren't counted."""
    topics = [topic for topic in known.by_size if topic.sums["batches"]]
    sizes, records = known.all.histograms[Measure.BATCH_SIZE], known.all.histograms[Measure.BATCH_RECORDS]
    producers = tuple(row for topic in topics for row in _producer_rows(topic))
    tables = (
        Table("batches", "By topic", _COLUMNS, tuple(map(_row, topics))),
        Table("batchesByProducer", "By producer", _PRODUCER_COLUMNS, producers),
    )
    figures = (
        histogram_figure("Records in a batch", records, "records"),
        histogram_figure("Bytes of a batch", sizes, "bytes"),
    )
    notes = (
        f"With linger: into how many batches the same records would have gone if their producer had waited so long "
        f"after the first of them, up to batch.size={BATCH_SIZE}, reckoned from the batches' base timestamps. "
        "Producers without an id are taken for one in each partition, so several seem to save more than they could. "
        f"A v2 batch's header has {BATCH_HEADER_SIZE} bytes. Percentiles are at most 3 % too large.",
    )
    return Block("batches", "Batch fill", tuple(_verdicts(topics)), figures if topics else (), tables, notes)


def histogram_figure(title: str, histogram: LogHistogram, unit: str) -> Figure:
    """How many numbers lie between powers of two."""
    is_size = unit == "bytes"

    def name(value: int) -> str:
        return axis_size(value) if is_size else short_count(value)

    bins = [
        Bin(name(least), count, f"{least:,} to {most:,} {unit}: {count_text(count)}")
        for least, most, count in histogram.doublings()
    ]
    return Figure(title, columns(title, bins, short_count, f"how many, by {unit}"))


def after_lingers(topic: TopicFacts) -> tuple[int, int, int]:
    """Into how many batches a topic's records would have gone, by each linger."""
    producers = topic.sums.producers.values()
    return (
        sum(each.after_short for each in producers),
        sum(each.after_middle for each in producers),
        sum(each.after_long for each in producers),
    )


def _row(topic: TopicFacts) -> tuple[str | int | float | None, ...]:
    records, sizes = (topic.sums.histograms[each] for each in (Measure.BATCH_RECORDS, Measure.BATCH_SIZE))
    return (
        topic.name,
        topic.sums["batches"],
        records.mean,
        *(records.percentile(share) for share in (0.25, 0.5, 0.99)),
        records.most,
        *(sizes.percentile(share) for share in (0.25, 0.5, 0.99)),
        sizes.most,
        _header_share(topic),
        *after_lingers(topic),
    )


def _header_share(topic: TopicFacts) -> float | None:
    """What the headers of batches are of the topic's bytes; None where they aren't all v2."""
    sizes = topic.sums.histograms[Measure.BATCH_SIZE]
    return BATCH_HEADER_SIZE * sizes.count / sizes.sum if topic.sums.magics == 1 << 2 and sizes.sum else None


def _producer_rows(topic: TopicFacts) -> list[tuple[str | int | float | None, ...]]:
    producers = sorted(topic.sums.producers.values(), key=lambda each: (-each.batches, each.id))
    return [_producer_row(topic.name, each) for each in producers if each.batches]


def producer_name(producer_id: int) -> str:
    """What stands for a producer."""
    return {-1: "without an id", -2: "many others"}.get(producer_id, str(producer_id))


def _producer_row(topic: str, each: ProducerSums) -> tuple[str | int | float | None, ...]:
    means = each.records / each.batches, round(each.size / each.batches)
    after = each.after_short, each.after_middle, each.after_long
    return (topic, producer_name(each.id), each.batches, each.records, *means, *after)


def _verdicts(topics: list[TopicFacts]) -> list[Sentence]:
    found = []
    for topic in topics:
        batches, after = topic.sums["batches"], after_lingers(topic)[1]
        saved = 1 - after / batches
        if batches < _WORTH_BATCHES or saved < _WORTH_SAVING or topic.name.startswith("__"):
            continue
        records = topic.sums.histograms[Measure.BATCH_RECORDS].percentile(0.5)
        size = topic.sums.histograms[Measure.BATCH_SIZE].percentile(0.5) or 0
        overhead = _header_share(topic)
        of_header = "" if overhead is None else f", headers are {share_text(overhead)} of the bytes"
        sentence = (
            f"{topic.name}: half of the batches have no more than {records} records and {human_size(size)}{of_header}; "
            f"linger.ms={_MIDDLE} would make {count_text(after)} of {count_text(batches)} batches."
        ).replace(" 1 records", " 1 record")
        found.append((batches - after, Sentence(sentence, topic_line(topic, "ls", "--deep"), Weight.WATCH)))
    found.sort(key=lambda pair: -pair[0])
    small = _small(topics) if not found else []
    return [verdict for _, verdict in found[:_MOST_VERDICTS]] + small


def _small(topics: list[TopicFacts]) -> list[Sentence]:
    """Topics whose batches have a record each, which waiting wouldn't change."""
    for topic in topics:
        records = topic.sums.histograms[Measure.BATCH_RECORDS]
        if topic.sums["batches"] >= _WORTH_BATCHES and records.percentile(0.5) == 1:
            overhead = _header_share(topic)
            of_header = "" if overhead is None else f": headers are {share_text(overhead)} of the bytes"
            return [Sentence(f"{topic.name}: half of the batches have one record{of_header}.", None, Weight.WATCH)]
    return []
