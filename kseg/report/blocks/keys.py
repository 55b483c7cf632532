"""Blocks of a report about keys, compaction and skew."""

from contextlib import suppress
from statistics import median

from kseg.errors import FileError, install_step
from kseg.log.cleaner import CleanerVerdict
from kseg.log.lookup import lookup_offset
from kseg.redaction import Redactor
from kseg.report.block import (
    Block,
    Cell,
    CellColumn,
    CellKind,
    Figure,
    Sentence,
    Table,
    Weight,
    partition_line,
    topic_line,
)
from kseg.report.blocks.batches import ratio_of
from kseg.report.charts import Strip, StripPart, draw_strips
from kseg.report.gather import PartitionFacts, PlacedKey, ReportFacts, TopicFacts
from kseg.report.sums import age_text, has_sketches, ratio_text, share_text, sketched_count
from kseg.sizes import human_size
from kseg.system.terminal_text import escaped_text
from kseg.text.retention import cleaning_text, keys_text

_HOT_SHARE, _WORTH_RECORDS, _MOST_KEYS, _MOST_TOPICS = 0.1, 1000, 10, 30
_LONGEST = 64
_KEY_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("key", "Key"),
    CellColumn("share", "Share of topic records", CellKind.BAR),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("bytes", "Bytes", CellKind.SIZE),
    CellColumn("directory", "Partition"),
    CellColumn("command", "Command", CellKind.COMMAND),
)
_COUNT_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("keys", "Distinct keys"),
    CellColumn("recordsPerKey", "Records per key", CellKind.RATIO),
    CellColumn("nullKeys", "Without a key", CellKind.COUNT),
)


def keys_block(known: ReportFacts) -> Block:
    """Return the block about keys with the most records, topic by topic."""
    if known.choices.is_quick:
        return Block("keys", "Hot keys", notes=("Unknown: --quick reads no records.",))
    topics = [topic for topic in known.by_size if topic.sums["keys"]][:_MOST_TOPICS]
    rows = [row for topic in topics for row in _rows(known, topic)]
    tables = (
        Table(
            "keyCounts",
            "Keys by topic",
            _COUNT_COLUMNS,
            tuple(_count_row(topic) for topic in known.by_size if topic.sums["records"]),
        ),
        Table("hotKeys", "Keys with the most records", _KEY_COLUMNS, tuple(rows)),
    )
    return Block("keys", "Hot keys", tuple(_key_verdicts(known, topics)), tables=tables, notes=tuple(_notes(known)))


def _notes(known: ReportFacts) -> list[str]:
    notes = [
        "A key in several partitions counts in each of them. In topics with very many keys, the number of a key's"
        " records is a minimum."
    ]
    if not has_sketches() and not known.all.has_all_keys:
        notes.append(f"Some topics have more keys than kseg can count; for an estimate, {install_step('report')}.")
    if known.choices.shows_keys:
        return notes
    if known.choices.redact_key is None:
        notes.append(
            "Keys are data, so the report shows numbers instead. The commands show the keys, as does --show-keys."
            " --redact-key shows the same substitutes as `kseg dump --redact keys` with the same key."
        )
    else:
        notes.append(
            "Keys are data, so the report shows the same substitutes as `kseg dump --redact keys` with the same key."
        )
    return notes


def _rows(known: ReportFacts, topic: TopicFacts) -> list[tuple[Cell, ...]]:
    hot = sorted(topic.keys.values(), key=lambda each: (-each.key.records, -each.key.size, each.key.last_offset))
    records = max(topic.sums["records"], 1)
    return [
        (
            topic.name,
            _name(known, each, place),
            each.key.records / records,
            each.key.records,
            each.key.size,
            each.partition.name,
            partition_line(each.partition, "get", "--offset", str(each.key.last_offset), "--field", "key"),
        )
        for place, each in enumerate(hot[:_MOST_KEYS], 1)
    ]


def _name(known: ReportFacts, placed: PlacedKey, place: int) -> str:
    """Return the text for a key: a number, a substitute, or itself."""
    choices = known.choices
    if not choices.shows_keys and choices.redact_key is None:
        return f"key {place}"
    key = _read(placed)
    if key is None:
        return f"key {place}"
    shown = key if choices.redact_key is None or choices.shows_keys else Redactor(choices.redact_key).replace_bytes(key)
    text = escaped_text(shown.decode("utf-8", "backslashreplace"))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _read(placed: PlacedKey) -> bytes | None:
    """Return the key, read from its last record."""
    with suppress(FileError):
        record = lookup_offset(placed.partition.partition, placed.key.last_offset).record
        return None if record is None else record.key
    return None


def key_count(topic: TopicFacts) -> tuple[int, bool]:
    """Return the number of keys of a topic, and whether it is exact."""
    sums = topic.sums
    if sums.has_all_keys:
        return sums["keys"], True
    if not sums.sketches:
        return sums["keys"], False
    return max(sketched_count(sums.sketches), sums["keys"]), False


def _count_row(topic: TopicFacts) -> tuple[Cell, ...]:
    count, is_exact = key_count(topic)
    words = f"{count:,}" if is_exact else f"about {count:,} (± 1.6 %)" if topic.sums.sketches else f"at least {count:,}"
    keyed = topic.sums["records"] - topic.sums["null_keys"]
    return (topic.name, topic.sums["records"], words, keyed / count if count else None, topic.sums["null_keys"])


def _key_verdicts(known: ReportFacts, topics: list[TopicFacts]) -> list[Sentence]:
    found = []
    for topic in topics:
        records = topic.sums["records"]
        hottest = max(topic.keys.values(), key=lambda each: each.key.records, default=None)
        if hottest is None or records < _WORTH_RECORDS or topic.name.startswith("__"):
            continue
        share = hottest.key.records / records
        if share >= _HOT_SHARE:
            home = hottest.partition.name
            sentence = f"{topic.name}: one key has {share_text(share)} of the records, most in {home}."
            line = partition_line(hottest.partition, "get", "--offset", str(hottest.key.last_offset), "--field", "key")
            found.append((hottest.key.records, Sentence(sentence, line, Weight.WATCH)))
    found.sort(key=lambda pair: -pair[0])
    return [verdict for _, verdict in found[:3]]


_MOST_STRIPS, _WORTH_COMPACTION = 16, 1 << 20
_NAMES = ("clean", "dirty", "active or not cleanable")
_DIRTY_COLUMNS = (
    CellColumn("directory", "Partition"),
    CellColumn("dirtyRatio", "Dirty ratio", CellKind.SHARE),
    CellColumn("cleanBytes", "Clean", CellKind.SIZE),
    CellColumn("dirtyBytes", "Dirty", CellKind.SIZE),
    CellColumn("logBytes", "Log", CellKind.SIZE),
    CellColumn("firstDirtyOffset", "First dirty offset", CellKind.COUNT),
    CellColumn("superseded", "Superseded records", CellKind.COUNT),
    CellColumn("frees", "Freed by compaction, about", CellKind.SIZE),
    CellColumn("verdict", "The cleaner"),
)
_TOPIC_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("keys", "Keys", CellKind.COUNT),
    CellColumn("superseded", "Superseded", CellKind.COUNT),
    CellColumn("tombstones", "Tombstones", CellKind.COUNT),
    CellColumn("tombstoneBytes", "Tombstone bytes", CellKind.SIZE),
    CellColumn("oldestTombstone", "Oldest tombstone", CellKind.TIME),
    CellColumn("nullKeys", "Without a key", CellKind.COUNT),
)


def compaction_block(known: ReportFacts) -> Block:
    """Return the block about partitions that the log cleaner still has to clean."""
    partitions = [each for each in known.in_use if each.cleaning is not None]
    if not partitions:
        return Block("compaction", "Compaction", notes=("No topic is known to be compacted.",))
    partitions.sort(key=lambda each: (-each.size, each.name))
    names = {each.topic for each in partitions}
    topics = [topic for topic in known.by_size if topic.name in names]
    tables = [
        Table("compaction", "By partition", _DIRTY_COLUMNS, tuple(_dirty_row(known, each) for each in partitions))
    ]
    if not known.choices.is_quick:
        tables.append(Table("compactionTopics", "By topic", _TOPIC_COLUMNS, tuple(map(_topic_row, topics))))
    title = "Clean and dirty bytes"
    figures = (Figure(title, draw_strips(title, [_strip(each) for each in partitions[:_MOST_STRIPS]], _NAMES)),)
    notes = (
        "Superseded: a later record before the active segment has the same key. kseg estimates the bytes that"
        " compaction would free from these records' sizes and the topic's compression. Tombstones stay for"
        " delete.retention.ms. No file records the time of the last cleaning, but it isn't later than the cleaner's"
        " checkpoint in the log directory.",
    )
    return Block(
        "compaction", "Compaction", tuple(_dirty_verdicts(known, topics, partitions)), figures, tuple(tables), notes
    )


def freed_bytes(known: ReportFacts, partition: PartitionFacts) -> int | None:
    """Estimate how many bytes compaction would free, or return None if the records weren't read."""
    if partition.superseded is None:
        return None
    ratio = ratio_of(known.topics[partition.topic]) or 1.0
    return min(round(partition.superseded.size / ratio), partition.size)


def _dirty_row(known: ReportFacts, each: PartitionFacts) -> tuple[Cell, ...]:
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
        freed_bytes(known, each),
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


def _dirty_verdicts(known: ReportFacts, topics: list[TopicFacts], partitions: list[PartitionFacts]) -> list[Sentence]:
    verdicts = []
    for topic in topics:
        frees = sum(freed_bytes(known, each) or 0 for each in topic.partitions if each.cleaning is not None)
        if frees >= _WORTH_COMPACTION or (topic.size and frees >= topic.size / 2):
            share = share_text(frees / max(topic.size, 1))
            sentence = f"{topic.name}: compaction would free about {human_size(frees)}, {share} of the topic."
            verdicts.append((frees, Sentence(sentence, _dry_run(topic), Weight.WATCH)))
    verdicts.sort(key=lambda pair: -pair[0])
    shown = [verdict for _, verdict in verdicts[:3]]
    for each in partitions:
        cleaning = each.cleaning
        stopped = cleaning is not None and cleaning.verdict in (CleanerVerdict.STOPPED, CleanerVerdict.UNCLEANABLE)
        if stopped and cleaning is not None and len(shown) < 5:
            sentence = f"{each.name}: the cleaner can't continue: {cleaning_text(cleaning)}."
            shown.append(Sentence(sentence, partition_line(each, "ls", "--by", "segment"), Weight.BAD))
    old = [topic for topic in topics if 0 <= topic.sums.first_tombstone_time < known.choices.now_ms - 30 * 86_400_000]
    for topic in old[:1]:
        age = age_text(known.choices.now_ms - topic.sums.first_tombstone_time)
        shown.append(Sentence(f"{topic.name}: its oldest tombstone is {age} old.", topic_line(topic, "ls")))
    return shown


def _dry_run(topic: TopicFacts) -> str:
    largest = max(topic.partitions, key=lambda each: each.superseded.size if each.superseded else 0)
    return partition_line(largest, "compact", "--dry-run")


_SKEWED, _WORTH_SKEW, _MOST_VERDICTS = 2.0, 1 << 20, 3
_SKEW_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("partitions", "Partitions", CellKind.COUNT),
    CellColumn("bytesRatio", "Bytes, largest to median", CellKind.RATIO),
    CellColumn("recordsRatio", "Records, most to median", CellKind.RATIO),
    CellColumn("largest", "Largest"),
    CellColumn("largestBytes", "Partition bytes", CellKind.SIZE),
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


def skew_block(known: ReportFacts) -> Block:
    """Return the block about ratios of the largest partition to the median one."""
    answering = {topic.name: known.answering(topic) for topic in known.topics.values() if topic.size}
    skewed = (_skew_row(name, partitions) for name, partitions in answering.items() if len(partitions) > 1)
    rows = sorted(skewed, key=lambda row: (-float(row[2] or 0), str(row[0])))
    verdicts: list[Sentence] = []
    for row in rows:
        ratio, largest = float(row[2] or 0), int(row[5] or 0)
        if ratio >= _SKEWED and largest >= _WORTH_SKEW and len(verdicts) < _MOST_VERDICTS:
            sentence = f"{row[0]}: its largest partition has {ratio_text(ratio)} the bytes of the median partition."
            command = topic_line(known.topics[str(row[0])], "ls", "--sort", "size")
            verdicts.append(Sentence(sentence, command, Weight.WATCH))
    tables = [Table("skew", "Topics by skew", _SKEW_COLUMNS, tuple(rows))] if rows else []
    dirs = _dir_rows(known)
    if len(dirs) > 1:
        tables.append(Table("logDirs", "By log directory", _DIR_COLUMNS, dirs))
        sizes = [int(row[2] or 0) for row in dirs]
        if sizes[0] >= _SKEWED * max(sizes[-1], 1) and sizes[0] >= _WORTH_SKEW:
            sentence = f"{dirs[0][0]} holds {human_size(sizes[0])}, {dirs[-1][0]} only {human_size(sizes[-1])}."
            verdicts.append(Sentence(sentence, None, Weight.WATCH))
    return Block("skew", "Skew", tuple(verdicts), tables=tuple(tables))


def _skew_row(topic: str, partitions: list[PartitionFacts]) -> tuple[str | int | float | None, ...]:
    sizes = [each.size for each in partitions]
    records = [each.records for each in partitions]
    largest = max(partitions, key=lambda each: each.size)
    return (
        topic,
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


def _dir_rows(known: ReportFacts) -> tuple[tuple[str | int | float | None, ...], ...]:
    sizes: dict[str, tuple[int, int]] = {}
    for each in known.partitions:
        size, count = sizes.get(str(each.log_dir), (0, 0))
        sizes[str(each.log_dir)] = size + each.disk_size, count + 1
    total = sum(size for size, _ in sizes.values()) or 1
    rows = [(path, size / total, size, count) for path, (size, count) in sizes.items()]
    return tuple(sorted(rows, key=lambda row: (-row[2], row[0])))
