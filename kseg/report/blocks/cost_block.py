"""What the bytes cost a month, at a price that the user gives, and what could be saved of it."""

from kseg.counted import counted
from kseg.formats.codes import Codec
from kseg.output.sizes import human_size
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table
from kseg.report.blocks.codec_trial_block import saved_share
from kseg.report.blocks.compaction_block import freed
from kseg.report.gathered import Gathered, TopicFacts

_GIB = 1 << 30
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("bytes", "Bytes here", CellKind.SIZE),
    CellColumn("cost", "A month", CellKind.MONEY),
    CellColumn("due", "Due for deletion", CellKind.MONEY),
    CellColumn("zstd", "By zstd", CellKind.MONEY),
    CellColumn("compaction", "By compaction", CellKind.MONEY),
)


def cost_block(known: Gathered) -> Block:
    """Costs by topic; nothing without a price."""
    price = known.choices.price
    if price is None:
        return Block("cost", "Cost")
    rows = tuple(_row(known, topic, price * known.choices.replicas) for topic in known.by_size)
    cost, due, zstd, compaction = (sum(float(row[place] or 0) for row in rows) for place in (2, 3, 4, 5))
    size = sum(topic.disk_size for topic in known.by_size)
    replicas = counted(known.choices.replicas, "replica")
    sentence = (
        f"{human_size(size)} in {replicas} cost {cost:,.2f} a month; zstd would save about {zstd:,.2f}, "
        f"compaction {compaction:,.2f}, retention that is due {due:,.2f}."
    )
    notes = (
        f"At {price:g} for a GiB a month, and {replicas} of what is here (--price, --replicas): "
        "disk alone, no traffic. Savings are estimates of their own; they don't add up.",
    )
    return Block(
        "cost", "Cost", (Sentence(sentence),), tables=(Table("cost", "By topic", _COLUMNS, rows),), notes=notes
    )


def _row(known: Gathered, topic: TopicFacts, price: float) -> tuple[Cell, ...]:
    sample = known.samples.get(topic.name)
    zstd = None if sample is None else max(saved_share(sample, Codec.ZSTD), 0.0) * topic.size
    compaction = [freed(known, each) for each in topic.partitions if each.cleaning is not None]
    known_sizes = [size for size in compaction if size is not None]
    due = sum(one.segment.size for each in topic.partitions for one in each.retained if not one.is_kept)
    sizes = (topic.disk_size, due, zstd, sum(known_sizes) if known_sizes else None)
    return (topic.name, topic.disk_size, *(None if size is None else round(size / _GIB * price, 6) for size in sizes))
