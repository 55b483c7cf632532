"""The topics of a nightly pipeline: logs on two brokers, and a model of their records that shares no code with kseg.

Only the log cleaner is kseg's own, since no other program compacts a log without a broker.
"""

import json
import shutil
import struct
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import fastavro
from confluent_kafka.schema_registry import Schema
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kseg.log.cleaner import CompactSettings
from kseg.log.partition import PartitionLog
from kseg.rewrite.compact import compact_partition
from tests.decode.schemas_topic import schema_key, schema_value, write_topic
from tests.export import exports
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, batch_bytes, marker, write_segment

DAY_MS = 86_400_000
FIRST_NIGHT = 1_793_491_200_000
"""2026-11-01."""
NEW_FIELD, WIDER, RENAMED, OTHER_TYPE = 8, 12, 16, 22
"""The nights on which schemas change."""
ROLLED_EVERY = 3
HEADER_SIZE = 61
Fields = dict[str, Any]
Key = tuple[str, int, int]
"""Topic id, partition, offset."""


class Made(NamedTuple):
    """A record, and the fields of its value that the table must have; none if the value isn't to be decoded."""

    record: NewRecord
    fields: Fields


@dataclass
class Log:
    """A partition's log on several brokers, and its records that can be read now.

    bases: of the segments. active: the batches of the last one. open: offsets of open transactions by producer.
    aborted: records of aborted transactions. lost: records that are damaged on all brokers.
    """

    places: Sequence[Path]
    number: int
    topic_id: str
    next_offset: int = 0
    epoch: int = 0
    bases: list[int] = field(default_factory=lambda: [0])
    active: list[NewBatch] = field(default_factory=list)
    records: dict[int, Made] = field(default_factory=dict)
    open: dict[int, list[int]] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)

    def append(self, made: Sequence[Made], producer: int = -1) -> None:
        """Append a batch; a producer's belongs to its transaction."""
        records, epoch = [one.record for one in made], -1 if producer < 0 else 0
        batch = NewBatch(records, self.next_offset, producer, epoch, producer >= 0, False, self.epoch)
        offsets = range(self.next_offset, batch.next_offset)
        self.records |= dict(zip(offsets, made, strict=True))
        if producer >= 0:
            self.open.setdefault(producer, []).extend(offsets)
        self._add(batch)

    def end(self, producer: int, *, is_commit: bool) -> None:
        """End a producer's transaction."""
        offsets = self.open.pop(producer)
        self.aborted.update(() if is_commit else offsets)
        last = self.active[-1]._replace(producer_id=producer, producer_epoch=0)
        self._add(marker(COMMIT if is_commit else ABORT, last)._replace(partition_leader_epoch=self.epoch))

    def _add(self, batch: NewBatch) -> None:
        self.active.append(batch)
        self.next_offset = batch.next_offset

    def write(self) -> None:
        """Write the active segment on all brokers, which repairs it."""
        self.lost.clear()
        for place in self.places:
            path = write_segment(place, self.active, self.bases[-1])
            exports.write_indexes(path)
            path.with_suffix(".txnindex").unlink(missing_ok=True)  # it would lack transactions of earlier segments
            (place / "partition.metadata").write_text(f"version: 0\ntopic_id: {self.topic_id}\n", encoding="utf-8")

    def roll(self) -> None:
        """Begin a segment."""
        self.active = []
        self.bases.append(self.next_offset)
        self.write()

    def retain(self, count: int) -> None:
        """Keep only the last segments."""
        for base in self.bases[:-count]:
            for path in (path for place in self.places for path in place.glob(f"{base:020}.*")):
                path.unlink()
        self.bases = self.bases[-count:]
        self.records = {offset: made for offset, made in self.records.items() if offset >= self.bases[0]}

    def clean(self, now: int) -> None:
        """Compact all segments but a new one, on all brokers."""
        self.roll()
        for place in self.places:
            cleaned = place.with_name("cleaned")
            cleaned.mkdir()
            compact_partition(PartitionLog(place), CompactSettings(now, first_dirty_offset=0), cleaned)
            shutil.rmtree(place)
            cleaned.rename(place)
        latest = {made.record.key: offset for offset, made in self.records.items()}
        self.records = {offset: self.records[offset] for offset in sorted(latest.values())}
        self.bases = sorted(int(path.stem) for path in self.places[0].glob("*.log"))
        self.write()

    def readable(self) -> Iterator[tuple[Key, Made]]:
        """Yield the intact records on disk that a consumer with read_committed gets."""
        end = min((offsets[0] for offsets in self.open.values()), default=self.next_offset)
        for offset, made in self.records.items():
            if offset < end and offset not in self.aborted | self.lost:
                yield (self.topic_id, self.number, offset), made

    def flip_bit(self, batch: int, places: Sequence[Path]) -> NewBatch:
        """Damage a batch of the active segment in the files of some brokers; return it."""
        position = sum(len(batch_bytes(each)) for each in self.active[:batch]) + HEADER_SIZE + 3
        for path in (place / f"{self.bases[-1]:020}.log" for place in places):
            content = bytearray(path.read_bytes())
            content[position] ^= 16
            path.write_bytes(content)
        return self.active[batch]


Make = Callable[["Topic", int, int], Made]
"""Makes a record of a topic; from the night, and from a number that is unique in the night and partition."""


@dataclass
class Topic:
    """A topic on some brokers. retention: the number of segments that stay. first: the night when it is created."""

    name: str
    make: Make
    brokers: Sequence[Path]
    random: Random
    first: int = 1
    retention: int = 3
    is_transactional: bool = False
    is_compacted: bool = False
    logs: list[Log] = field(default_factory=list)

    def create(self) -> None:
        """Create the topic, after deletion of an earlier one of its name."""
        for place in (place for log in self.logs for place in log.places):
            place.rename(place.with_name(f"{place.name}.{self.random.getrandbits(128):032x}-delete"))
        topic_id = urlsafe_b64encode(self.random.randbytes(16)).decode().rstrip("=")
        places = [[broker / f"{self.name}-{number}" for broker in self.brokers] for number in (0, 1)]
        self.logs = [Log(own, number, topic_id) for number, own in enumerate(places)]

    def spend_day(self, night: int, count: int) -> None:
        """Repair damage, roll, compact, delete old segments, and append a day's records."""
        for log in self.logs:
            log.write()
            if night % ROLLED_EVERY == 0 and log.active:
                log.epoch += night % 2
                if self.is_compacted:
                    log.clean(FIRST_NIGHT + night * DAY_MS)
                else:
                    log.roll()
                    log.retain(self.retention)
            for number in range(0, count, 10):
                size = self.random.randint(1, 10)
                self._append(log, [self.make(self, night, number + place) for place in range(size)])
            log.write()

    def readable(self) -> dict[Key, Made]:
        """Return the records that an export can read now."""
        return {key: made for log in self.logs for key, made in log.readable()}

    def _append(self, log: Log, made: Sequence[Made]) -> None:
        producer = self.random.randrange(3) if self.is_transactional and self.random.random() < 0.7 else -1
        log.append(made, producer)
        if producer >= 0 and self.random.random() < 0.6:
            log.end(producer, is_commit=self.random.random() < 0.7)

    def time(self, night: int) -> int:
        """Return a time of the day before a night; one of twenty is late by up to 20 days."""
        late = self.random.randrange(1, 20) if self.random.random() < 0.05 else 0
        return FIRST_NIGHT + (night - late) * DAY_MS + self.random.randrange(DAY_MS)


# --- records ----------------------------------------------------------------------------------------------------------


def text(topic: Topic, night: int, number: int) -> Made:
    """Make a line of text with headers and without a key."""
    headers = [("trace", b"%d" % number), ("null", None)]
    return Made(NewRecord(None, f"night {night}: GET /{number} é".encode(), topic.time(night), headers), {})


def metric(topic: Topic, night: int, number: int) -> Made:
    """Make a number as Kafka's serializers write it."""
    return Made(NewRecord(struct.pack(">q", number % 9), struct.pack(">d", number / 4), topic.time(night)), {})


def profile(topic: Topic, night: int, number: int) -> Made:
    """Make JSON with one of few keys, or a tombstone."""
    key, is_tombstone = b"user-%d" % topic.random.randrange(60), topic.random.random() < 0.1
    value = None if is_tombstone else json.dumps({"night": night, "number": number}, separators=(",", ":"))
    record = NewRecord(key, None if value is None else value.encode(), topic.time(night))
    return Made(record, {"valueDecoded": value})


def order(topic: Topic, night: int, number: int) -> Made:
    """Make JSON with a schema."""
    fields: Fields = {"id": night * 10_000 + number, "amount": number / 4}
    fields["note" if night < RENAMED else "remark"] = f"text {number}"
    if night >= NEW_FIELD:
        fields["coupon"] = None if number % 2 else {"code": f"c{number}", "cents": number}
    return Made(NewRecord(b"%d" % number, json.dumps(fields).encode(), topic.time(night)), fields)


def order_schema(night: int) -> Fields:
    """Return the JSON Schema of orders at a night."""
    properties: Fields = {"id": {"type": "integer"}, "amount": {"type": "number"}, "note": {"type": "string"}}
    if night >= NEW_FIELD:
        coupon = {"code": {"type": "string"}, "cents": {"type": "integer"}}
        properties["coupon"] = {"type": ["object", "null"], "properties": coupon, "additionalProperties": False}
    if night >= RENAMED:
        properties["remark"] = properties["note"]
    return {"type": "object", "properties": properties, "additionalProperties": False}


def payment_schema(night: int) -> Fields:
    """Return the Avro schema of payments at a night."""
    time = ["null", {"type": "long", "logicalType": "timestamp-millis"}]
    fields: list[Fields] = [
        {"name": "id", "type": "int" if night < WIDER else "long" if night < OTHER_TYPE else "string"},
        {"name": "cost", "type": "float" if night < WIDER else "double"},
        {"name": "who", "type": "string"}
        if night < RENAMED
        else {"name": "payer", "type": "string", "aliases": ["who"]},
        *([] if night < NEW_FIELD else [{"name": "paid", "type": time, "default": None}]),
    ]
    return {"type": "record", "name": "Payment", "namespace": "shop", "fields": fields}


class Payments:
    """The maker of payments in Avro, and the topic of the registry with their schemas."""

    def __init__(self, broker: Path) -> None:
        self.broker = broker
        self._versions: list[Fields] = []

    def __call__(self, topic: Topic, night: int, number: int) -> Made:
        schema, name, body = payment_schema(night), f"p{number}", BytesIO()
        fields: Fields = {"id": night * 10_000 + number, "cost": number / 4, "who": name}
        paid = FIRST_NIGHT + number if night >= NEW_FIELD and number % 3 else None
        written = {**fields, "payer": name, "paid": paid}
        if night >= OTHER_TYPE:
            written["id"] = str(written["id"])
        fastavro.schemaless_writer(body, fastavro.parse_schema(schema), written)
        value = b"\0" + self._register(schema).to_bytes(4, "big") + body.getvalue()
        decoded = {"valueDecoded": None} if night >= OTHER_TYPE else fields | {"paid": paid}
        return Made(NewRecord(b"p%d" % number, value, topic.time(night)), decoded)

    def _register(self, schema: Fields) -> int:
        if schema not in self._versions:
            self._versions.append(schema)
            texts = [Schema(json.dumps(each), "AVRO") for each in self._versions]
            subject, numbers = "payments-value", range(1, len(texts) + 1)
            pairs = zip(numbers, texts, strict=True)
            write_topic(
                self.broker, [NewRecord(schema_key(subject, n), schema_value(subject, n, n, own)) for n, own in pairs]
            )
        return self._versions.index(schema) + 1


def trip_descriptors(night: int) -> descriptor_pb2.FileDescriptorSet:
    """Return the descriptor set of trips at a night."""
    kinds = descriptor_pb2.FieldDescriptorProto
    fields = [("id", kinds.TYPE_INT32 if night < WIDER else kinds.TYPE_INT64), ("km", kinds.TYPE_DOUBLE)]
    fields += [("city" if night < RENAMED else "town", kinds.TYPE_STRING)]
    fields += [] if night < NEW_FIELD else [("seats", kinds.TYPE_INT32)]
    file = descriptor_pb2.FileDescriptorProto(name="trip.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Trip")
    for number, (name, kind) in enumerate(fields, 1):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    return descriptor_pb2.FileDescriptorSet(file=[file])


def trip(topic: Topic, night: int, number: int) -> Made:
    """Make a bare Protobuf message."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(trip_descriptors(night).file[0].SerializeToString())
    fields: Fields = {"id": night * 10_000 + number, "km": number / 8}
    fields["city" if night < RENAMED else "town"] = f"c{number}"
    fields |= {} if night < NEW_FIELD else {"seats": number % 5}
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Trip"))(**fields)
    return Made(NewRecord(None, message.SerializeToString(), topic.time(night)), fields)
