"""Blocks of a report about batches, codecs and producers."""

from kseg.errors import plural
from kseg.formats.codes import BATCH_HEADER_SIZE, Codec, codec_name
from kseg.kernel.statistics_contract import BATCH_SIZE, LINGERS_MS, Measure
from kseg.report.block import Block, Cell, CellColumn, CellKind, Figure, Sentence, Table, Weight, line_of, topic_line
from kseg.report.charts import COLORS, Bin, Strip, StripPart, columns, draw_strips
from kseg.report.gather import ReportFacts, TopicFacts
from kseg.report.sums import LogHistogram, ProducerSums, axis_size, count_text, ratio_text, share_text, short_count
from kseg.sizes import human_size

_MOST_VERDICTS, _WORTH_BATCHES, _WORTH_SAVING = 3, 1000, 0.3
_MIDDLE = LINGERS_MS[1]
_BATCH_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("recordsMean", "Records per batch, mean", CellKind.RATIO),
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
    CellColumn("recordsMean", "Records per batch", CellKind.RATIO),
    CellColumn("bytesMean", "Bytes per batch", CellKind.SIZE),
    *(CellColumn(f"batchesAfter{linger}ms", f"With linger {linger} ms", CellKind.COUNT) for linger in LINGERS_MS),
)


def batches_block(known: ReportFacts) -> Block:
    """Return the block about batches of data; batches of control records aren't counted."""
    topics = [topic for topic in known.by_size if topic.sums["batches"]]
    sizes, records = known.all.histograms[Measure.BATCH_SIZE], known.all.histograms[Measure.BATCH_RECORDS]
    producers = tuple(row for topic in topics for row in _producer_rows(topic))
    tables = (
        Table("batches", "By topic", _BATCH_COLUMNS, tuple(map(_batch_row, topics))),
        Table("batchesByProducer", "By producer", _PRODUCER_COLUMNS, producers),
    )
    figures = (
        histogram_figure("Records in a batch", records, "records"),
        histogram_figure("Bytes of a batch", sizes, "bytes"),
    )
    notes = (
        "With linger: the number of batches if the producer had waited for this time after the first record, up to"
        f" batch.size={BATCH_SIZE}. kseg computes it from the batches' base timestamps. In each partition, it counts"
        " all producers without an id as one, so several seem to save more than they can. A v2 batch's header has"
        f" {BATCH_HEADER_SIZE} bytes. Percentiles are at most 3 % too large.",
    )
    return Block("batches", "Batch fill", tuple(_batch_verdicts(topics)), figures if topics else (), tables, notes)


def histogram_figure(title: str, histogram: LogHistogram, unit: str) -> Figure:
    """Return the figure of a histogram by powers of two."""
    is_size = unit == "bytes"

    def name(value: int) -> str:
        return axis_size(value) if is_size else short_count(value)

    bins = [
        Bin(name(least), count, f"{least:,} to {most:,} {unit}: {count_text(count)}")
        for least, most, count in histogram.doublings()
    ]
    return Figure(title, columns(title, bins, short_count, f"count, by {unit}"))


def after_lingers(topic: TopicFacts) -> tuple[int, int, int]:
    """Estimate the number of batches of a topic for different values of linger.ms."""
    producers = topic.sums.producers.values()
    return (
        sum(each.after_short for each in producers),
        sum(each.after_middle for each in producers),
        sum(each.after_long for each in producers),
    )


def _batch_row(topic: TopicFacts) -> tuple[str | int | float | None, ...]:
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
    """Return the percentage of bytes used by batch headers, or None if some batches aren't v2."""
    sizes = topic.sums.histograms[Measure.BATCH_SIZE]
    return BATCH_HEADER_SIZE * sizes.count / sizes.sum if topic.sums.magics == 1 << 2 and sizes.sum else None


def _producer_rows(topic: TopicFacts) -> list[tuple[str | int | float | None, ...]]:
    producers = sorted(topic.sums.producers.values(), key=lambda each: (-each.batches, each.id))
    return [_producer_row(topic.name, each) for each in producers if each.batches]


def producer_name(producer_id: int) -> str:
    """Return the text for a producer."""
    return {-1: "without an id", -2: "others"}.get(producer_id, str(producer_id))


def _producer_row(topic: str, each: ProducerSums) -> tuple[str | int | float | None, ...]:
    means = each.records / each.batches, round(each.size / each.batches)
    after = each.after_short, each.after_middle, each.after_long
    return (topic, producer_name(each.id), each.batches, each.records, *means, *after)


def _batch_verdicts(topics: list[TopicFacts]) -> list[Sentence]:
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
            f"{topic.name}: half of the batches have at most {records} records and {human_size(size)}{of_header};"
            f" linger.ms={_MIDDLE} would make {count_text(after)} of {count_text(batches)} batches."
        ).replace(" 1 records", " 1 record")
        found.append((batches - after, Sentence(sentence, topic_line(topic, "ls", "--deep"), Weight.WATCH)))
    found.sort(key=lambda pair: -pair[0])
    small = _small(topics) if not found else []
    return [verdict for _, verdict in found[:_MOST_VERDICTS]] + small


def _small(topics: list[TopicFacts]) -> list[Sentence]:
    """Return sentences about topics of batches with one record each, which lingering wouldn't change."""
    for topic in topics:
        records = topic.sums.histograms[Measure.BATCH_RECORDS]
        if topic.sums["batches"] >= _WORTH_BATCHES and records.percentile(0.5) == 1:
            overhead = _header_share(topic)
            of_header = "" if overhead is None else f": headers are {share_text(overhead)} of the bytes"
            return [Sentence(f"{topic.name}: half of the batches have one record{of_header}.", None, Weight.WATCH)]
    return []


_MOST_STRIPS, _WORTH = 16, 1 << 20
_NAMES = tuple(codec.name.lower() for codec in Codec)
_CODEC_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("codec", "Codec"),
    CellColumn("share", "Share of bytes", CellKind.BAR),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("storedBytes", "Stored", CellKind.SIZE),
    CellColumn("uncompressedBytes", "Uncompressed", CellKind.SIZE),
    CellColumn("ratio", "Ratio", CellKind.RATIO),
)


def codecs_block(known: ReportFacts) -> Block:
    """Return the block about the compression codecs of batches."""
    topics = [topic for topic in known.by_size if topic.sums.codecs]
    tables = (
        Table(
            "codecs", "By topic and codec", _CODEC_COLUMNS, tuple(row for each in topics for row in _rows(known, each))
        ),
    )
    figures: tuple[Figure, ...] = ()
    if topics and not known.choices.is_quick:
        title = "Bytes by topic and codec; pale: bytes saved by the codec"
        figures = (Figure(title, draw_strips(title, [_strip(each) for each in topics[:_MOST_STRIPS]], _NAMES)),)
    notes = (
        "Bytes of the batches' bodies, without headers. The ratio is for compressed batches only."
        if not known.choices.is_quick
        else "Sizes and ratios are unknown: --quick reads only headers.",
    )
    return Block("codecs", "Compression", tuple(_codec_verdicts(known, topics)), figures, tables, notes)


def _name(codec: int) -> str:
    return codec_name(codec) or f"unknown {codec}"


def _rows(known: ReportFacts, topic: TopicFacts) -> list[tuple[Cell, ...]]:
    total = sum(each.stored_size for each in topic.sums.codecs.values()) or 1
    rows: list[tuple[Cell, ...]] = []
    for codec, each in sorted(topic.sums.codecs.items()):
        share = each.stored_size / total
        ratio = (
            each.uncompressed_size / each.stored_size if codec and each.stored_size and each.uncompressed_size else None
        )
        sizes = (share, each.batches, each.records, each.stored_size, each.uncompressed_size, ratio)
        quick = (None, each.batches, each.records, None, None, None)
        rows.append((topic.name, _name(codec), *(quick if known.choices.is_quick else sizes)))
    return rows


def ratio_of(topic: TopicFacts) -> float | None:
    """Return uncompressed bytes divided by stored bytes, of a topic's compressed batches; None without any."""
    compressed = [each for codec, each in topic.sums.codecs.items() if codec]
    stored, whole = sum(each.stored_size for each in compressed), sum(each.uncompressed_size for each in compressed)
    return whole / stored if stored and whole else None


def _strip(topic: TopicFacts) -> Strip:
    parts = []
    for codec, each in sorted(topic.sums.codecs.items()):
        color = codec if codec < len(_NAMES) else len(COLORS) - 1
        title = f"{topic.name}, {_name(codec)}: {human_size(each.stored_size)}"
        parts.append(StripPart(each.stored_size, color, title))
        saved = each.uncompressed_size - each.stored_size
        if saved > 0:
            parts.append(
                StripPart(saved, color, f"{title} instead of {human_size(each.uncompressed_size)}", is_pale=True)
            )
    ratio = ratio_of(topic)
    return Strip(topic.name, tuple(parts), "" if ratio is None else ratio_text(ratio))


def _codec_verdicts(known: ReportFacts, topics: list[TopicFacts]) -> list[Sentence]:
    verdicts = []
    plain = {each.name: each.sums.codecs[0].stored_size for each in topics if 0 in each.sums.codecs}
    total = sum(one.stored_size for each in topics for one in each.sums.codecs.values())
    large = {name: size for name, size in plain.items() if size >= _WORTH and not name.startswith("__")}
    if large and not known.choices.is_quick:
        names = ", ".join(list(large)[:3]) + (f" and {len(large) - 3} more" if len(large) > 3 else "")
        share = share_text(sum(large.values()) / total)
        sentence = f"{human_size(sum(large.values()))}, {share} of all record bytes, aren't compressed: {names}."
        first = known.topics[next(iter(large))]
        verdicts.append(Sentence(sentence, topic_line(first, "ls", "--deep"), Weight.WATCH))
    mixed = [each for each in topics if len(each.sums.codecs) > 1]
    if mixed:
        names = ", ".join(each.name for each in mixed[:3]) + (f" and {len(mixed) - 3} more" if len(mixed) > 3 else "")
        verdicts.append(Sentence(f"Several codecs in one topic: {names}.", topic_line(mixed[0], "ls", "--deep")))
    return verdicts


_MANY_EPOCHS = 20
_OPEN = ("hanging-transaction", "long-transaction", "open-transaction")
_WRITER_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("producerId", "Producer id"),
    CellColumn("share", "Share of topic bytes", CellKind.BAR),
    CellColumn("bytes", "Bytes", CellKind.SIZE),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("firstTime", "First timestamp", CellKind.TIME),
    CellColumn("lastTime", "Last timestamp", CellKind.TIME),
    CellColumn("epoch", "Epoch", CellKind.COUNT),
    CellColumn("epochChanges", "Epoch changes", CellKind.COUNT),
    CellColumn("transactional", "In transactions", CellKind.COUNT),
    CellColumn("markers", "Transactions ended", CellKind.COUNT),
)
_TRANSACTION_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("transactionalBatches", "Batches in transactions", CellKind.COUNT),
    CellColumn("share", "Share of all batches", CellKind.SHARE),
    CellColumn("markers", "Markers", CellKind.COUNT),
    CellColumn("aborted", "Aborted, in .txnindex", CellKind.COUNT),
    CellColumn("open", "Open", CellKind.COUNT),
)


def producers_block(known: ReportFacts) -> Block:
    """Return the block about producers by topic."""
    topics = [topic for topic in known.by_size if topic.sums.producers]
    rows = [(topic, each) for topic in topics for each in _by_size(topic)]
    left = sum(topic.sums.other_producers for topic in topics)
    notes = ["First timestamp: the base timestamp of the first batch. Last timestamp: the largest of all batches."]
    if left:
        notes.append(f"The table omits {plural(left, 'producer')} with fewer bytes.")
    verdicts = []
    restless = max((pair for pair in rows if pair[1].id >= 0), key=lambda pair: pair[1].epochs, default=None)
    if restless is not None and restless[1].epochs >= _MANY_EPOCHS:
        topic, producer = restless
        sentence = f"{topic.name}: producer {producer.id} changed its epoch {plural(producer.epochs, 'time')}."
        verdicts.append(Sentence(sentence, topic_line(topic, "txns"), Weight.WATCH))
    tables = (
        Table(
            "producers",
            "By topic and producer",
            _WRITER_COLUMNS,
            tuple(_writer_row(topic, each) for topic, each in rows),
        ),
    )
    return Block(
        "producers", "Producers", tuple(verdicts), tables=tables if rows else (), notes=tuple(notes) if rows else ()
    )


def _by_size(topic: TopicFacts) -> list[ProducerSums]:
    return sorted(topic.sums.producers.values(), key=lambda each: (-each.size, each.id))


def _writer_row(topic: TopicFacts, each: ProducerSums) -> tuple[Cell, ...]:
    times = (time if time >= 0 else None for time in (each.first_time, each.last_time))
    epoch = each.epoch if each.id >= 0 else None
    share = each.size / max(topic.sums["size"], 1)
    return (
        topic.name,
        producer_name(each.id),
        share,
        each.size,
        each.records,
        each.batches,
        *times,
        epoch,
        each.epochs,
        each.transactional,
        each.markers,
    )


def transactions_block(known: ReportFacts) -> Block:
    """Return the block about transactions: open ones, and their share of all batches."""
    is_open = [trouble for trouble in known.check_up.troubles if trouble.id in _OPEN]
    topics = [topic for topic in known.by_size if topic.sums["transactional"] or topic.sums["control_batches"]]
    if not topics and not is_open:
        return Block("transactions", "Transactions")
    rows = tuple(_transaction_row(topic, sum(each.topic == topic.name for each in is_open)) for topic in topics)
    verdicts = [
        Sentence(f"{each.topic}-{each.partition}: {each.sentence}.", each.command, Weight.WATCH) for each in is_open[:3]
    ]
    if not is_open:
        share = share_text(known.all["transactional"] / max(known.all["batches"], 1))
        words = "none was seen to be open" if known.choices.is_quick else "none is open"
        sentence = f"{share} of all batches are in transactions; {words}."
        verdicts = [Sentence(sentence, line_of(known, "txns"))]
    tables = (Table("transactions", "By topic", _TRANSACTION_COLUMNS, rows),)
    notes = (
        "Like `kseg doctor`, the report checks open transactions against their coordinators' log. The findings have"
        " ages and commands.",
    )
    return Block("transactions", "Transactions", tuple(verdicts), tables=tables if rows else (), notes=notes)


def _transaction_row(topic: TopicFacts, count: int) -> tuple[Cell, ...]:
    aborted = sum(segment.aborted_transactions for each in topic.partitions for segment in each.segments)
    sums = topic.sums
    share = sums["transactional"] / max(sums["batches"], 1)
    return (topic.name, sums["transactional"], share, sums["control_batches"], aborted, count)
