"""What a partition's batches and records add up to, as values that processes send to one another and merge."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kseg.kernel.statistics_contract import (
    WEEK_HOURS,
    Measure,
    OfKey,
    OfProducer,
    OfTime,
    Statistics,
)
from kseg.report.log_histogram import LogHistogram
from kseg.report.time_sums import TimeSums

SUMMED = (
    "batches",
    "control_batches",
    "size",
    "records",
    "without_time",
    "beyond_time",
    "append_time",
    "transactional",
    "sparse",
    "null_keys",
    "tombstones",
    "tombstones_size",
    "late",
    "superseded",
    "superseded_size",
    "keys",
)
"""Numbers of kernel statistics that partitions' sums are the sums of."""
MOST_TOP_KEYS = 64
"""Keys of a partition that are kept since they have the most records."""
MOST_KEPT_PRODUCERS = 256
_SHARES = (256, 1024, 4096)
"""A key is looked at if it has one of so many records: there are no more such keys than that."""


class CodecSums(NamedTuple):
    """Batches of a codec: their records, the bytes of their bodies as stored, and decompressed (0 if none was)."""

    batches: int = 0
    records: int = 0
    stored_size: int = 0
    uncompressed_size: int = 0


class ProducerSums(NamedTuple):
    """What is known of a producer, see OfProducer; -1 for none."""

    id: int
    batches: int
    records: int
    size: int
    first_offset: int
    last_offset: int
    first_time: int
    last_time: int
    epoch: int
    epochs: int
    transactional: int
    markers: int
    after_short: int
    after_middle: int
    after_long: int

    def joined(self, other: "ProducerSums") -> "ProducerSums":
        """Those of two partitions; offsets mean nothing then."""
        known = [time for time in (self.first_time, other.first_time) if time >= 0]
        return ProducerSums(
            id=self.id,
            batches=self.batches + other.batches,
            records=self.records + other.records,
            size=self.size + other.size,
            first_offset=-1,
            last_offset=-1,
            first_time=min(known, default=-1),
            last_time=max(self.last_time, other.last_time),
            epoch=max(self.epoch, other.epoch),
            epochs=max(self.epochs, other.epochs),
            transactional=self.transactional + other.transactional,
            markers=self.markers + other.markers,
            after_short=self.after_short + other.after_short,
            after_middle=self.after_middle + other.after_middle,
            after_long=self.after_long + other.after_long,
        )


class KeySums(NamedTuple):
    """A key's records: its hash, how many, their sizes together, the last one's offset."""

    hash: int
    records: int
    size: int
    last_offset: int


class LargeRecord(NamedTuple):
    """Size and offset of a record."""

    size: int
    offset: int


@dataclass(slots=True)
class Sums:
    """Sums of a partition, or of several.

    numbers: by the names of SUMMED. largest_timestamp: -1 for none. magics: bit n for magic n. first_tombstone_time: -1
    for none. has_all_keys: whether all keys were counted. sketches: of keys that couldn't all be kept.
    """

    numbers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMMED, 0))
    largest_timestamp: int = -1
    magics: int = 0
    first_tombstone_time: int = -1
    has_all_keys: bool = True
    key_error: int = 0
    sketches: tuple[bytes, ...] = ()
    histograms: dict[Measure, LogHistogram] = field(default_factory=lambda: {each: LogHistogram() for each in Measure})
    codecs: dict[int, CodecSums] = field(default_factory=dict)
    times: TimeSums = field(default_factory=TimeSums)
    week: "array[int]" = field(default_factory=lambda: array("q", bytes(16 * WEEK_HOURS)))
    producers: dict[int, ProducerSums] = field(default_factory=dict)
    other_producers: int = 0
    largest: list[LargeRecord] = field(default_factory=list)
    keys: dict[int, KeySums] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.numbers[name]

    def add(self, other: "Sums") -> None:
        """Takes another partition's sums too, but not its largest records and keys: these are of one partition."""
        for name in SUMMED:
            self.numbers[name] += other.numbers[name]
        self.largest_timestamp = max(self.largest_timestamp, other.largest_timestamp)
        self.magics |= other.magics
        times = [each for each in (self.first_tombstone_time, other.first_tombstone_time) if each >= 0]
        self.first_tombstone_time = min(times, default=-1)
        self.has_all_keys = self.has_all_keys and other.has_all_keys
        self.sketches += other.sketches
        for measure, histogram in other.histograms.items():
            self.histograms[measure].add(histogram)
        for codec, sums in other.codecs.items():
            known = self.codecs.get(codec, CodecSums())
            self.codecs[codec] = CodecSums(*(a + b for a, b in zip(known, sums, strict=True)))
        self.times.add(other.times)
        self.week = array("q", map(sum, zip(self.week, other.week, strict=True)))
        for producer_id, producer in other.producers.items():
            before = self.producers.get(producer_id)
            self.producers[producer_id] = producer if before is None else before.joined(producer)
        self.other_producers += other.other_producers
        if len(self.producers) > 2 * MOST_KEPT_PRODUCERS:
            self.leave_out_producers()

    def leave_out_producers(self) -> None:
        """Keeps the producers that wrote the most bytes."""
        kept = sorted(self.producers.values(), key=lambda each: (-each.size, each.id))[:MOST_KEPT_PRODUCERS]
        self.other_producers += len(self.producers) - len(kept)
        self.producers = {each.id: each for each in kept}


def sums_of(statistics: Statistics) -> Sums:
    """What a kernel has added up of a partition."""
    codecs = (CodecSums(*each) for each in _rows(statistics.codecs(), len(CodecSums._fields)))
    sums = Sums(
        numbers={name: getattr(statistics, name) for name in SUMMED},
        largest_timestamp=statistics.largest_timestamp,
        magics=statistics.magics,
        first_tombstone_time=statistics.first_tombstone_time,
        has_all_keys=not statistics.dropped_below,
        key_error=statistics.dropped_below,
        histograms={measure: LogHistogram.of(statistics.histogram(measure)) for measure in Measure},
        codecs={codec: each for codec, each in enumerate(codecs) if each.batches},
        times=TimeSums.of(statistics.time_step, _rows(statistics.times(), len(OfTime))),
        week=array("q", statistics.week()),
        producers={row[0]: ProducerSums(*row) for row in _rows(statistics.producers(), len(OfProducer))},
        largest=[LargeRecord(*row) for row in _rows(statistics.largest(), len(LargeRecord._fields))],
        keys=_top_keys(statistics),
    )
    sums.leave_out_producers()
    return sums


def _top_keys(statistics: Statistics) -> dict[int, KeySums]:
    """The keys with the most records, each with one in some thousands at least: others aren't hot."""
    found: list[KeySums] = []
    for share in _SHARES:
        least = max(statistics.records // share, 2)
        found = [KeySums(*row[:4]) for row in _rows(statistics.top_keys(least), len(OfKey))]
        if len(found) >= MOST_TOP_KEYS or least == 2:
            break
    found.sort(key=lambda key: (-key.records, -key.size, key.last_offset))
    return {key.hash: key for key in found[:MOST_TOP_KEYS]}


def _rows(packed: bytes, width: int) -> Iterator[tuple[int, ...]]:
    values: Iterable[int] = memoryview(packed).cast("q") if packed else ()
    return zip(*[iter(values)] * width, strict=True)
