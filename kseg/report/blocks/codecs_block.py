"""Which codecs topics use, and how much they save."""

from kseg.formats.codes import Codec, codec_name
from kseg.output.sizes import human_size
from kseg.report.block import Block, Cell, CellColumn, CellKind, Figure, Sentence, Table, Weight
from kseg.report.charts.strips import Strip, StripPart, stacked
from kseg.report.charts.svg import COLORS
from kseg.report.commands import topic_line
from kseg.report.gathered import Gathered, TopicFacts
from kseg.report.numbers import ratio_text, share_text

_MOST_STRIPS, _WORTH = 16, 1 << 20
_NAMES = tuple(codec.name.lower() for codec in Codec)
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("codec", "Codec"),
    CellColumn("share", "Share of bytes", CellKind.BAR),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("storedBytes", "Stored", CellKind.SIZE),
    CellColumn("uncompressedBytes", "Uncompressed", CellKind.SIZE),
    CellColumn("ratio", "Ratio", CellKind.RATIO),
)


def codecs_block(known: Gathered) -> Block:
    """Bodies of batches by codec."""
    topics = [topic for topic in known.by_size if topic.sums.codecs]
    tables = (
        Table("codecs", "By topic and codec", _COLUMNS, tuple(row for each in topics for row in _rows(known, each))),
    )
    figures: tuple[Figure, ...] = ()
    if topics and not known.choices.is_quick:
        title = "Bytes by topic and codec; pale: what the codec saves"
        figures = (Figure(title, stacked(title, [_strip(each) for each in topics[:_MOST_STRIPS]], _NAMES)),)
    notes = (
        "Bytes of the batches' bodies, without their headers. The ratio is of those in compressed batches."
        if not known.choices.is_quick
        else "Sizes and ratios aren't known: --quick reads headers alone.",
    )
    return Block("codecs", "Compression", tuple(_verdicts(known, topics)), figures, tables, notes)


def _name(codec: int) -> str:
    return codec_name(codec) or f"unknown {codec}"


def _rows(known: Gathered, topic: TopicFacts) -> list[tuple[Cell, ...]]:
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
    """Uncompressed bytes by stored ones, of a topic's compressed batches; None if there are none."""
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


def _verdicts(known: Gathered, topics: list[TopicFacts]) -> list[Sentence]:
    verdicts = []
    plain = {each.name: each.sums.codecs[0].stored_size for each in topics if 0 in each.sums.codecs}
    total = sum(one.stored_size for each in topics for one in each.sums.codecs.values())
    large = {name: size for name, size in plain.items() if size >= _WORTH and not name.startswith("__")}
    if large and not known.choices.is_quick:
        names = ", ".join(list(large)[:3]) + (f" and {len(large) - 3} more" if len(large) > 3 else "")
        share = share_text(sum(large.values()) / total)
        sentence = f"{human_size(sum(large.values()))}, {share} of all record bytes, are uncompressed: {names}."
        first = known.topics[next(iter(large))]
        verdicts.append(Sentence(sentence, topic_line(first, "ls", "--deep"), Weight.WATCH))
    mixed = [each for each in topics if len(each.sums.codecs) > 1]
    if mixed:
        names = ", ".join(each.name for each in mixed[:3]) + (f" and {len(mixed) - 3} more" if len(mixed) > 3 else "")
        verdicts.append(Sentence(f"Several codecs in one topic: {names}.", topic_line(mixed[0], "ls", "--deep")))
    return verdicts
