"""What each codec would make of the largest topics, tried on a sample of their batches."""

from kseg.formats.codes import BATCH_HEADER_SIZE, Codec
from kseg.output.sizes import human_size
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.codec_trial import SAMPLE_SIZE, Sample, try_codecs
from kseg.report.commands import partition_line
from kseg.report.gathered import Gathered, TopicFacts
from kseg.report.numbers import share_text

MOST_TOPICS = 16
_WORTH_SHARE, _WORTH = 0.2, 1 << 20
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("codec", "Codec"),
    CellColumn("ratio", "Ratio", CellKind.RATIO),
    CellColumn("saved", "Less than now", CellKind.SHARE),
    CellColumn("bytes", "The topic would have, about", CellKind.SIZE),
    CellColumn("joinedSaved", "Less, in full batches", CellKind.SHARE),
    CellColumn("joinedBytes", "The topic then", CellKind.SIZE),
    CellColumn("speed", "Compressed a second", CellKind.SIZE),
    CellColumn("sample", "Sample", CellKind.SIZE),
)


def codec_trial_block(known: Gathered) -> Block:
    """Codecs tried on samples."""
    if known.choices.is_quick:
        return Block("codecTrial", "Codec what-if", notes=("Not tried: --quick reads no records.",))
    topics = [topic for topic in known.by_size if topic.size and not topic.name.startswith("__")][:MOST_TOPICS]
    tried = [(topic, known.samples[topic.name]) for topic in topics if topic.name in known.samples]
    rows = tuple(row for topic, sample in tried for row in _rows(topic, sample))
    notes = [
        f"A sample of up to {human_size(SAMPLE_SIZE)} of the largest partition's records, from the beginnings of its "
        "segments, compressed at Kafka's default levels. Less than now: bytes that would go, by the bytes of the same "
        "batches as they are stored, headers included; below 0 the codec would make them larger. Full batches: the "
        f"same records in batches of 16 KiB, headers of {BATCH_HEADER_SIZE} bytes each.",
    ]
    if not known.choices.times_codecs:
        notes.append("--speeds measures how fast each codec is here; then the page isn't the same each time.")
    tables = (Table("codecTrial", "Each codec on a sample", _COLUMNS, rows),)
    return Block(
        "codecTrial", "Codec what-if", tuple(_verdicts(tried)), tables=tables if rows else (), notes=tuple(notes)
    )


def take_samples(known: Gathered) -> None:
    """Tries the codecs on the largest topics."""
    topics = [topic for topic in known.by_size if topic.size and not topic.name.startswith("__")][:MOST_TOPICS]
    for topic in topics:
        largest = max(topic.partitions, key=lambda each: (each.size, each.name))
        sample = try_codecs(largest.partition, is_timed=known.choices.times_codecs)
        if sample is not None:
            known.samples[topic.name] = sample


def saved_share(sample: Sample, codec: Codec) -> float:
    """What a codec would save of the bytes as they are stored now."""
    size = next(trial.size for trial in sample.trials if trial.codec is codec)
    return 1 - size / sample.stored_size


def _rows(topic: TopicFacts, sample: Sample) -> list[tuple[Cell, ...]]:
    whole = sample.uncompressed_size + BATCH_HEADER_SIZE * sample.batches
    rows: list[tuple[Cell, ...]] = []
    for trial in sample.trials:
        now, joined = trial.size / sample.stored_size, trial.joined_size / sample.stored_size
        sizes = (1 - now, round(topic.size * now), 1 - joined, round(topic.size * joined))
        speed = None if trial.speed is None else round(trial.speed)
        rows.append((topic.name, trial.codec.name.lower(), whole / trial.size, *sizes, speed, sample.uncompressed_size))
    return rows


def _verdicts(tried: list[tuple[TopicFacts, Sample]]) -> list[Sentence]:
    found = []
    for topic, sample in tried:
        share = saved_share(sample, Codec.ZSTD)
        saved = round(share * topic.size)
        if share >= _WORTH_SHARE and saved >= _WORTH:
            sentence = (
                f"{topic.name}: about {human_size(saved)} of {human_size(topic.size)}, {share_text(share)}, would go "
                "by zstd, with batches as they are."
            )
            largest = max(topic.partitions, key=lambda each: each.size)
            found.append((saved, Sentence(sentence, partition_line(largest, "ls", "--deep"), Weight.WATCH)))
    found.sort(key=lambda pair: -pair[0])
    return [verdict for _, verdict in found[:3]]
