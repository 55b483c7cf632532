"""Hot keys: those with the most records of a topic; how many keys there are."""

from contextlib import suppress

from kseg.errors import KsegError
from kseg.log.lookup.lookup import lookup_offset
from kseg.output.printable import printable
from kseg.redaction import Redactor
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.commands import partition_line
from kseg.report.gathered import Gathered, PlacedKey, TopicFacts
from kseg.report.key_sketch import has_sketches, sketched_count
from kseg.report.numbers import share_text

_HOT_SHARE, _WORTH_RECORDS, _MOST_KEYS, _MOST_TOPICS = 0.1, 1000, 10, 30
_LONGEST = 64
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("key", "Key"),
    CellColumn("share", "Of the topic's records", CellKind.BAR),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("bytes", "Bytes", CellKind.SIZE),
    CellColumn("directory", "Partition"),
    CellColumn("command", "Show it", CellKind.COMMAND),
)
_COUNT_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("keys", "Different keys"),
    CellColumn("recordsPerKey", "Records of each", CellKind.RATIO),
    CellColumn("nullKeys", "Without a key", CellKind.COUNT),
)


def keys_block(known: Gathered) -> Block:
    """The keys with the most records, topic by topic."""
    if known.choices.is_quick:
        return Block("keys", "Hot keys", notes=("Not known: --quick reads no records.",))
    topics = [topic for topic in known.by_size if topic.sums["keys"]][:_MOST_TOPICS]
    rows = [row for topic in topics for row in _rows(known, topic)]
    tables = (
        Table(
            "keyCounts",
            "Keys by topic",
            _COUNT_COLUMNS,
            tuple(_count_row(topic) for topic in known.by_size if topic.sums["records"]),
        ),
        Table("hotKeys", "Keys with the most records", _COLUMNS, tuple(rows)),
    )
    return Block("keys", "Hot keys", tuple(_verdicts(known, topics)), tables=tables, notes=tuple(_notes(known)))


def _notes(known: Gathered) -> list[str]:
    notes = [
        "A key in several partitions counts in each of them. Records of a key are at least so many where there are "
        "very many keys."
    ]
    if not has_sketches() and not known.all.has_all_keys:
        notes.append("Some topics have more keys than can be kept; pip install 'kseg[report]' lets them be counted.")
    if known.choices.shows_keys:
        return notes
    if known.choices.redact_key is None:
        notes.append(
            "Keys are data: here they have numbers. The commands show them, and so does --show-keys; --redact-key "
            "puts substitutes in their place, those of `kseg dump --redact keys` with the same key."
        )
    else:
        notes.append("Keys are data: substitutes stand for them, as of `kseg dump --redact keys` with the same key.")
    return notes


def _rows(known: Gathered, topic: TopicFacts) -> list[tuple[Cell, ...]]:
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


def _name(known: Gathered, placed: PlacedKey, place: int) -> str:
    """What stands for a key: a number, a substitute, or itself."""
    choices = known.choices
    if not choices.shows_keys and choices.redact_key is None:
        return f"key {place}"
    key = _read(placed)
    if key is None:
        return f"key {place}"
    shown = key if choices.redact_key is None or choices.shows_keys else Redactor(choices.redact_key).replace_bytes(key)
    text = printable(shown.decode("utf-8", "backslashreplace"))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _read(placed: PlacedKey) -> bytes | None:
    """The key, out of its last record."""
    with suppress(KsegError):
        record = lookup_offset(placed.partition.partition, placed.key.last_offset).record
        return None if record is None else record.key
    return None


def key_count(topic: TopicFacts) -> tuple[int, bool]:
    """How many keys a topic has, and whether that is exact."""
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


def _verdicts(known: Gathered, topics: list[TopicFacts]) -> list[Sentence]:
    found = []
    for topic in topics:
        records = topic.sums["records"]
        hottest = max(topic.keys.values(), key=lambda each: each.key.records, default=None)
        if hottest is None or records < _WORTH_RECORDS or topic.name.startswith("__"):
            continue
        share = hottest.key.records / records
        if share >= _HOT_SHARE:
            home = hottest.partition.name
            sentence = f"{topic.name}: one key has {share_text(share)} of the records, most of them in {home}."
            line = partition_line(hottest.partition, "get", "--offset", str(hottest.key.last_offset), "--field", "key")
            found.append((hottest.key.records, Sentence(sentence, line, Weight.WATCH)))
    found.sort(key=lambda pair: -pair[0])
    return [verdict for _, verdict in found[:3]]
