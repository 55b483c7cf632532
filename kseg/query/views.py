"""The tables of records: a view for each topic, and `records` for all of them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from kseg.export.copies import Copies
from kseg.export.decoding import DecodedAs
from kseg.export.plan import Splitting, plan_orders
from kseg.export.settings import LogSelection, ReadOptions
from kseg.export.typed_export import with_typed_columns
from kseg.query.internal_topics import INTERNAL_TOPICS
from kseg.query.record_scan import RecordTable

ALL_RECORDS = "records"
_WHOLE = Splitting(1 << 62, whole_partitions=True)


@dataclass(frozen=True, slots=True)
class RecordViews:
    """What the views are of. copies: the partitions; selection, read: which records, and what decodes them."""

    copies: Copies
    selection: LogSelection
    read: ReadOptions

    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({topic for topic, _ in self.copies})

    def all_records(self) -> RecordTable:
        """The records of all topics, with what the batch of each says; decoded columns are text there."""
        decode = replace(self.read.decode, decoded_as=DecodedAs.TEXT)
        return RecordTable(
            ALL_RECORDS, self.copies, self.selection, replace(self.read, batch_columns=True, decode=decode)
        )

    def of_topic(self, topic: str) -> RecordTable:
        """The records of a topic as exports have them; keys and values of internal topics as structs, too."""
        copies = {key: known for key, known in self.copies.items() if key[0] == topic}
        internal = INTERNAL_TOPICS.get(topic)
        if internal is not None and not self.read.decode.fields():
            return RecordTable(topic, copies, self.selection, self.read, internal.fields(), internal.added)
        read = self.read
        if read.decode.typed_parts():
            orders = plan_orders(copies, self.selection, _WHOLE)
            read = with_typed_columns(read, None, [topic], orders)
        return RecordTable(topic, copies, self.selection, read)


def view_names(topics: Sequence[str], tables: Collection[str], schema: str, note: Callable[[str], None]) -> list[str]:
    """The topics that get a view of their name; SQL doesn't tell names apart that differ by case alone.

    tables: those of `schema`, which a topic of the same name hides.
    """
    taken: dict[str, str] = {}
    for topic in topics:
        taken.setdefault(topic.lower(), topic)
    hidden = {table: f"{schema}.{table}" for table in tables if table in taken}
    for table, full_name in hidden.items():
        note(f"{taken[table]} is the topic here: the table of that name is {full_name}")
    for topic in topics:
        if (first := taken[topic.lower()]) != topic:
            records = hidden.get(ALL_RECORDS, ALL_RECORDS)
            note(f"{topic} has no view beside {first}: it is in {records}, where topic = '{topic}'")
    return list(taken.values())
