"""Blocks of a report about bytes, sizes, costs and trials of codecs."""

from collections import Counter
from collections.abc import Iterable

from kseg.errors import plural
from kseg.formats.codes import BATCH_HEADER_SIZE, Codec
from kseg.kernel.statistics_contract import Measure
from kseg.log.sizes import LEFTOVERS, OTHERS, FileSizes
from kseg.report.block import (
    Block,
    Cell,
    CellColumn,
    CellKind,
    Figure,
    Sentence,
    Table,
    Weight,
    line_of,
    partition_line,
)
from kseg.report.blocks.batches import histogram_figure
from kseg.report.blocks.keys import freed_bytes
from kseg.report.charts import Tile, treemap
from kseg.report.gather import (
    SAMPLE_SIZE,
    PartitionFacts,
    ReportFacts,
    Sample,
    TopicFacts,
    try_codecs,
)
from kseg.report.sums import share_text
from kseg.sizes import human_size

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
    CellColumn("notInUseBytes", "Not in use", CellKind.SIZE),
)
_PARTITION_COLUMNS = (
    CellColumn("directory", "Directory"),
    CellColumn("share", "Share", CellKind.BAR),
    CellColumn("bytes", "On disk", CellKind.SIZE),
    CellColumn("logBytes", "Logs", CellKind.SIZE),
    CellColumn("segments", "Segments", CellKind.COUNT),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("logStartOffset", "Log start offset", CellKind.COUNT),
    CellColumn("localStartOffset", "First local offset", CellKind.COUNT),
    CellColumn("logEndOffset", "Log end offset", CellKind.COUNT),
    CellColumn("logDir", "Log directory"),
)
_KIND_COLUMNS = (
    CellColumn("kind", "Kind of file"),
    CellColumn("share", "Share", CellKind.BAR),
    CellColumn("bytes", "Size", CellKind.SIZE),
    CellColumn("allocatedBytes", "Set aside on disk", CellKind.SIZE),
)


def bytes_block(known: ReportFacts) -> Block:
    """Return the block about all sizes."""
    total = _disk_size(known.partitions) or 1
    tables = (
        Table("topics", "By topic", _TOPIC_COLUMNS, _topic_rows(known, total)),
        Table("partitions", "By partition", _PARTITION_COLUMNS, _partition_rows(known, total)),
        Table("kinds", "By kind of file", _KIND_COLUMNS, _kind_rows(known)),
    )
    tiles = _tiles(known)
    figures = (Figure("Bytes by topic and partition", treemap("Bytes by topic and partition", tiles)),) if tiles else ()
    notes = ("Set aside: blocks of the disk. Indexes of active segments have 10 MiB, but mostly holes.",)
    return Block("bytes", "Disk usage", tuple(_bytes_verdicts(known, total)), figures, tables, notes)


def _bytes_verdicts(known: ReportFacts, total: int) -> list[Sentence]:
    verdicts = []
    if len(known.topics) > 1:
        largest = max(known.topics.values(), key=lambda topic: topic.disk_size)
        if largest.disk_size >= _LARGE_SHARE * total:
            sentence = f"{largest.name} is {share_text(largest.disk_size / total)} of {human_size(total)}."
            verdicts.append(Sentence(sentence, line_of(known, "ls", "--by", "topic", "--sort", "size")))
    verdicts += disk_verdicts(known)
    if gone := known.not_in_use:
        statuses = Counter(str(each.status) for each in gone)
        names = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
        many = plural(len(gone), "directory", "directories")
        sentence = f"{many} not in use ({names}): {human_size(_disk_size(gone))}."
        verdicts.append(Sentence(sentence, line_of(known, "ls"), Weight.WATCH))
    return verdicts


def disk_verdicts(known: ReportFacts) -> list[Sentence]:
    """Return verdicts about the disk usage."""
    verdicts = []
    for disk in known.check_up.disks:
        used = (disk.size - disk.available) / disk.size
        places = ", ".join(map(str, disk.log_dirs))
        sentence = (
            f"The disk of {places} on this machine is {share_text(used)} full: {human_size(disk.available)} free."
        )
        verdicts.append(Sentence(sentence, None, Weight.WATCH if used >= _FULL else Weight.PLAIN))
    return verdicts


def _topic_rows(known: ReportFacts, total: int) -> tuple[tuple[str | int | float | None, ...], ...]:
    """Return rows of all directories of each topic; directories not in use count too, and are listed separately."""
    by_topic: dict[str, list[PartitionFacts]] = {}
    for partition in known.partitions:
        by_topic.setdefault(partition.topic, []).append(partition)
    return tuple(
        (
            topic,
            _disk_size(own) / total,
            _disk_size(own),
            sum(each.size for each in own),
            len(own),
            sum(len(each.retained) for each in own),
            sum(each.records for each in own),
            _disk_size(each for each in own if not each.is_in_use),
        )
        for topic, own in sorted(by_topic.items(), key=lambda item: (-_disk_size(item[1]), item[0]))
    )


def _disk_size(partitions: Iterable[PartitionFacts]) -> int:
    return sum(each.disk_size for each in partitions)


def _partition_rows(known: ReportFacts, total: int) -> tuple[tuple[str | int | float | None, ...], ...]:
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
            each.local_start_offset,
            each.log_end_offset,
            str(each.log_dir),
        )
        for each in partitions
    )


def _kind_rows(known: ReportFacts) -> tuple[tuple[str | int | float | None, ...], ...]:
    sums: dict[str, FileSizes] = {}
    for partition in known.partitions:
        for kind, sizes in partition.files.items():
            sums[kind] = sums.get(kind, FileSizes()).plus(sizes)
    total = sum(each.size for each in sums.values()) or 1
    return tuple((kind, sums[kind].size / total, *sums[kind]) for kind in _KIND_ORDER if kind in sums)


def _tiles(known: ReportFacts) -> list[Tile]:
    topics = sorted(known.topics.values(), key=lambda topic: (-topic.disk_size, topic.name))
    tiles = [
        Tile(topic.name, topic.disk_size, f"{topic.name}: {human_size(topic.disk_size)}", _parts(topic.partitions))
        for topic in topics[:_MOST_TILES]
    ]
    rest = sum(topic.disk_size for topic in topics[_MOST_TILES:])
    if rest:
        count = len(topics) - _MOST_TILES
        tiles.append(Tile(f"{count} others", rest, f"{plural(count, 'other topic')}: {human_size(rest)}"))
    if gone := known.not_in_use:
        size = _disk_size(gone)
        tiles.append(Tile("not in use", size, f"not in use: {human_size(size)}", _parts(gone)))
    return [tile for tile in tiles if tile.size]


def _parts(partitions: list[PartitionFacts]) -> tuple[Tile, ...]:
    largest = sorted(partitions, key=lambda each: (-each.disk_size, each.name))[:_MOST_PARTS]
    return tuple(Tile(each.name, each.disk_size, f"{each.name}: {human_size(each.disk_size)}") for each in largest)


_FEW, _MUCH, _WORTH_RECORDS = 0.001, 0.2, 10_000
_PARTS = (
    (Measure.RECORD_SIZE, "record"),
    (Measure.KEY_SIZE, "key"),
    (Measure.VALUE_SIZE, "value"),
    (Measure.HEADERS_SIZE, "headers"),
)
_SIZE_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("part", "Of"),
    CellColumn("count", "Count", CellKind.COUNT),
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
    CellColumn("command", "Command", CellKind.COMMAND),
)


def sizes_block(known: ReportFacts) -> Block:
    """Return the block about uncompressed sizes of records."""
    if known.choices.is_quick:
        return Block("sizes", "Message sizes", notes=("Unknown: --quick reads no records.",))
    topics = [topic for topic in known.by_size if topic.sums.histograms[Measure.RECORD_SIZE].count]
    rows = tuple(row for topic in topics for row in _size_rows(topic))
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
        Table("sizes", "By topic", _SIZE_COLUMNS, rows),
        Table("largestRecords", "The largest records", _LARGEST_COLUMNS, largest),
    )
    notes = ("Bytes of key, value and headers before compression. Null keys and values aren't counted.",)
    return Block("sizes", "Message sizes", tuple(_size_verdicts(topics)), figures, tables, notes)


def _size_rows(topic: TopicFacts) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for measure, part in _PARTS:
        sizes = topic.sums.histograms[measure]
        if sizes.count:
            mean = round(sizes.sum / sizes.count)
            ends = (sizes.least, sizes.percentile(0.5), mean, sizes.percentile(0.99), sizes.most)
            rows.append((topic.name, part, sizes.count, sizes.sum, *ends))
    return rows


def _size_verdicts(topics: list[TopicFacts]) -> list[Sentence]:
    found = []
    for topic in topics:
        sizes = topic.sums.histograms[Measure.RECORD_SIZE]
        share = sizes.share_of_largest(_FEW)
        if sizes.count >= _WORTH_RECORDS and share >= _MUCH and topic.largest:
            largest = topic.largest[0]
            sentence = (
                f"{topic.name}: {share_text(_FEW)} of the records have {share_text(share)} of the bytes; the largest"
                f" has {human_size(largest.record.size)}, at offset {largest.record.offset} of"
                f" {largest.partition.name}."
            )
            found.append((share * sizes.sum, Sentence(sentence, _lookup(topic), Weight.WATCH)))
    found.sort(key=lambda pair: -pair[0])
    return [verdict for _, verdict in found[:3]]


def _lookup(topic: TopicFacts) -> str:
    largest = topic.largest[0]
    return partition_line(largest.partition, "lookup", "--offset", str(largest.record.offset))


MOST_TOPICS = 16
_WORTH_SHARE, _WORTH = 0.2, 1 << 20
_TRIAL_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("codec", "Codec"),
    CellColumn("ratio", "Ratio", CellKind.RATIO),
    CellColumn("saved", "Saved", CellKind.SHARE),
    CellColumn("bytes", "Topic size with codec, about", CellKind.SIZE),
    CellColumn("joinedSaved", "Saved, in full batches", CellKind.SHARE),
    CellColumn("joinedBytes", "Topic size, in full batches", CellKind.SIZE),
    CellColumn("speed", "Compressed per second", CellKind.SIZE),
    CellColumn("sample", "Sample", CellKind.SIZE),
)


def codec_trial_block(known: ReportFacts) -> Block:
    """Return the block about codecs tried on samples."""
    if known.choices.is_quick:
        return Block("codecTrial", "Codec what-if", notes=("Unknown: --quick reads no records.",))
    topics = [topic for topic in known.by_size if topic.size and not topic.name.startswith("__")][:MOST_TOPICS]
    tried = [(topic, known.samples[topic.name]) for topic in topics if topic.name in known.samples]
    rows = tuple(row for topic, sample in tried for row in _trial_rows(topic, sample))
    notes = [
        f"kseg compresses a sample at Kafka's default levels: up to {human_size(SAMPLE_SIZE)} of the largest"
        " partition's records, from the start of each segment. Saved: the share of the sample's stored bytes, headers"
        " included, that the codec would save. A value below 0 means more bytes. Full batches: the same records in"
        f" batches of 16 KiB with a header of {BATCH_HEADER_SIZE} bytes.",
    ]
    if not known.choices.times_codecs:
        notes.append(
            "--speeds measures the speed of each codec on this machine. The page then differs from run to run."
        )
    tables = (Table("codecTrial", "Codecs on a sample", _TRIAL_COLUMNS, rows),)
    return Block(
        "codecTrial", "Codec what-if", tuple(_trial_verdicts(tried)), tables=tables if rows else (), notes=tuple(notes)
    )


def take_samples(known: ReportFacts) -> None:
    """Measure the codecs on the largest topics."""
    topics = [topic for topic in known.by_size if topic.size and not topic.name.startswith("__")][:MOST_TOPICS]
    for topic in topics:
        largest = max(topic.partitions, key=lambda each: (each.size, each.name))
        sample = try_codecs(largest.partition, is_timed=known.choices.times_codecs)
        if sample is not None:
            known.samples[topic.name] = sample


def saved_share(sample: Sample, codec: Codec) -> float:
    """Return the share of the stored bytes that a codec would save."""
    size = next(trial.size for trial in sample.trials if trial.codec is codec)
    return 1 - size / sample.stored_size


def _trial_rows(topic: TopicFacts, sample: Sample) -> list[tuple[Cell, ...]]:
    whole = sample.uncompressed_size + BATCH_HEADER_SIZE * sample.batches
    rows: list[tuple[Cell, ...]] = []
    for trial in sample.trials:
        now, joined = trial.size / sample.stored_size, trial.joined_size / sample.stored_size
        sizes = (1 - now, round(topic.size * now), 1 - joined, round(topic.size * joined))
        speed = None if trial.speed is None else round(trial.speed)
        rows.append((topic.name, trial.codec.name.lower(), whole / trial.size, *sizes, speed, sample.uncompressed_size))
    return rows


_RATIOS = ("ls", "--by", "segment", "--deep", "--fields", "baseOffset,bytes,codecs,compressionRatio")
"""The command that shows the current compression of each segment."""


def _trial_verdicts(tried: list[tuple[TopicFacts, Sample]]) -> list[Sentence]:
    found = []
    for topic, sample in tried:
        share = saved_share(sample, Codec.ZSTD)
        saved = round(share * topic.size)
        if share >= _WORTH_SHARE and saved >= _WORTH:
            sentence = (
                f"{topic.name}: about {human_size(saved)} of {human_size(topic.size)}, {share_text(share)}, would be"
                " saved by zstd with unchanged batches."
            )
            largest = max(topic.partitions, key=lambda each: each.size)
            found.append((saved, Sentence(sentence, partition_line(largest, *_RATIOS), Weight.WATCH)))
    found.sort(key=lambda pair: -pair[0])
    return [verdict for _, verdict in found[:3]] + ([_whole_trial(tried)] if tried else [])


def _whole_trial(tried: list[tuple[TopicFacts, Sample]]) -> Sentence:
    """Return a sentence about zstd's savings in all topics that it was tried on; a growing topic saves nothing."""
    size = sum(topic.size for topic, _ in tried)
    saved = round(sum(max(saved_share(sample, Codec.ZSTD), 0.0) * topic.size for topic, sample in tried))
    words = f"about {human_size(saved)} of {human_size(size)}, {share_text(saved / size)}"
    return Sentence(f"With unchanged batches, zstd would save {words} in {plural(len(tried), 'topic')}.")


_GIB = 1 << 30
_COST_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("bytes", "Bytes here", CellKind.SIZE),
    CellColumn("cost", "Per month", CellKind.MONEY),
    CellColumn("due", "Due for deletion", CellKind.MONEY),
    CellColumn("zstd", "Saved by zstd", CellKind.MONEY),
    CellColumn("compaction", "Saved by compaction", CellKind.MONEY),
)


def cost_block(known: ReportFacts) -> Block:
    """Return the block about the cost of topics, which is empty if there is no price."""
    price = known.choices.price
    if price is None:
        return Block("cost", "Cost")
    price *= known.choices.replicas
    rows = tuple(_row(known, topic, price) for topic in known.by_size)
    if gone := _disk_size(known.not_in_use):
        rows = (*rows, ("not in use", gone, round(gone / _GIB * price, 6), None, None, None))
    cost, due, zstd, compaction = (sum(float(row[place] or 0) for row in rows) for place in (2, 3, 4, 5))
    size = _disk_size(known.partitions)
    replicas = plural(known.choices.replicas, "replica")
    sentence = (
        f"{human_size(size)} in {replicas} cost {cost:,.2f} a month; zstd would save about {zstd:,.2f}, compaction"
        f" {compaction:,.2f}, due retention {due:,.2f}."
    )
    notes = (
        f"At {known.choices.price:g} per GiB and month, with {replicas} (--price, --replicas). Only disk, no traffic."
        " Each saving is a separate estimate: don't add them up.",
    )
    return Block(
        "cost", "Cost", (Sentence(sentence),), tables=(Table("cost", "By topic", _COST_COLUMNS, rows),), notes=notes
    )


def _row(known: ReportFacts, topic: TopicFacts, price: float) -> tuple[Cell, ...]:
    sample = known.samples.get(topic.name)
    zstd = None if sample is None else max(saved_share(sample, Codec.ZSTD), 0.0) * topic.size
    compaction = [freed_bytes(known, each) for each in topic.partitions if each.cleaning is not None]
    known_sizes = [size for size in compaction if size is not None]
    due = sum(one.segment.size for each in topic.partitions for one in each.retained if not one.is_kept)
    sizes = (topic.disk_size, due, zstd, sum(known_sizes) if known_sizes else None)
    return (topic.name, topic.disk_size, *(None if size is None else round(size / _GIB * price, 6) for size in sizes))
