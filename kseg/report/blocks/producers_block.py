"""Producers that wrote what is there: how much, since when, with which epochs; and their transactions."""

from kseg.counted import counted
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.blocks.batches_block import producer_name
from kseg.report.commands import line_of, topic_line
from kseg.report.gathered import Gathered, TopicFacts
from kseg.report.numbers import share_text
from kseg.report.partition_sums import ProducerSums

_MANY_EPOCHS = 20
_OPEN = ("hanging-transaction", "long-transaction", "open-transaction")
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("producerId", "Producer id"),
    CellColumn("share", "Of the topic's bytes", CellKind.BAR),
    CellColumn("bytes", "Bytes", CellKind.SIZE),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("firstTime", "First time", CellKind.TIME),
    CellColumn("lastTime", "Last time", CellKind.TIME),
    CellColumn("epoch", "Epoch", CellKind.COUNT),
    CellColumn("epochChanges", "Changes of it", CellKind.COUNT),
    CellColumn("transactional", "In transactions", CellKind.COUNT),
    CellColumn("markers", "Transactions ended", CellKind.COUNT),
)
_TRANSACTION_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("transactionalBatches", "Batches in transactions", CellKind.COUNT),
    CellColumn("share", "Of all batches", CellKind.SHARE),
    CellColumn("markers", "Markers", CellKind.COUNT),
    CellColumn("aborted", "Aborted, in .txnindex", CellKind.COUNT),
    CellColumn("open", "Open", CellKind.COUNT),
)


def producers_block(known: Gathered) -> Block:
    """Producers by topic."""
    topics = [topic for topic in known.by_size if topic.sums.producers]
    rows = [(topic, each) for topic in topics for each in _by_size(topic)]
    left = sum(topic.sums.other_producers for topic in topics)
    notes = ["Times are those of batches: the base timestamp of the first, the largest time of all."]
    if left:
        notes.append(f"{counted(left, 'producer')} that wrote less are left out.")
    verdicts = []
    restless = max((pair for pair in rows if pair[1].id >= 0), key=lambda pair: pair[1].epochs, default=None)
    if restless is not None and restless[1].epochs >= _MANY_EPOCHS:
        topic, producer = restless
        sentence = f"{topic.name}: the epoch of producer {producer.id} changed {producer.epochs} times."
        verdicts.append(Sentence(sentence, topic_line(topic, "txns"), Weight.WATCH))
    tables = (Table("producers", "By topic and producer", _COLUMNS, tuple(_row(topic, each) for topic, each in rows)),)
    return Block(
        "producers", "Producers", tuple(verdicts), tables=tables if rows else (), notes=tuple(notes) if rows else ()
    )


def _by_size(topic: TopicFacts) -> list[ProducerSums]:
    return sorted(topic.sums.producers.values(), key=lambda each: (-each.size, each.id))


def _row(topic: TopicFacts, each: ProducerSums) -> tuple[Cell, ...]:
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


def transactions_block(known: Gathered) -> Block:
    """Transactions: those that are open, and what they are of all batches."""
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
        "Open ones are judged by their coordinators' log, as by `kseg doctor`; ages and commands are in the findings.",
    )
    return Block("transactions", "Transactions", tuple(verdicts), tables=tables if rows else (), notes=notes)


def _transaction_row(topic: TopicFacts, count: int) -> tuple[Cell, ...]:
    aborted = sum(segment.aborted_transactions for each in topic.partitions for segment in each.segments)
    sums = topic.sums
    share = sums["transactional"] / max(sums["batches"], 1)
    return (topic.name, sums["transactional"], share, sums["control_batches"], aborted, count)
