"""Sums for a report: by partition and time, histograms, and a sketch of keys."""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from kseg.kernel.contract import MOST
from kseg.kernel.statistics_contract import (
    MOST_TIMES,
    TIME_STEPS,
    WEEK_HOURS,
    Measure,
    OfHistogram,
    OfKey,
    OfProducer,
    OfTime,
    Statistics,
    bucket_bounds,
)
from kseg.sizes import human_size
from kseg.times import duration_text, time_text


class TimeStretch(NamedTuple):
    """An interval of time with its start (in milliseconds since 1970) and the data written in it."""

    start: int
    batches: int
    records: int
    size: int


@dataclass(slots=True)
class TimeSums:
    """Sums by stretches of `step` milliseconds; stretches without batches are omitted."""

    step: int = TIME_STEPS[0]
    sums: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, step: int, rows: Iterable[tuple[int, ...]]) -> "TimeSums":
        """Return the sums from a kernel."""
        return cls(step, {number: (batches, records, size) for number, batches, records, size in rows})

    def add(self, other: "TimeSums") -> None:
        """Add the sums of another partition."""
        self._lengthen(other.step)
        for number, sums in other.with_step(self.step).sums.items():
            known = self.sums.get(number, (0, 0, 0))
            self.sums[number] = (known[0] + sums[0], known[1] + sums[1], known[2] + sums[2])
        while len(self.sums) > MOST_TIMES:
            self._lengthen(_longer(self.step))

    def with_step(self, step: int) -> "TimeSums":
        """Return the same in longer stretches."""
        if step <= self.step:
            return self
        joined: dict[int, tuple[int, int, int]] = {}
        for number, sums in self.sums.items():
            place = number * self.step // step
            known = joined.get(place, (0, 0, 0))
            joined[place] = (known[0] + sums[0], known[1] + sums[1], known[2] + sums[2])
        return TimeSums(step, joined)

    def at_most(self, count: int) -> "TimeSums":
        """Return the same in stretches long enough that there are at most `count` from first to last."""
        found = self
        while found.sums and max(found.sums) - min(found.sums) >= count:
            found = found.with_step(_longer(found.step))
        return found

    def stretches(self) -> Iterator[TimeStretch]:
        """Yield all non-empty intervals in order."""
        for number, sums in sorted(self.sums.items()):
            yield TimeStretch(number * self.step, *sums)

    def _lengthen(self, step: int) -> None:
        longer = self.with_step(step)
        self.step, self.sums = longer.step, longer.sums


def _longer(step: int) -> int:
    return min((each for each in TIME_STEPS if each > step), default=10 * step)


@dataclass(slots=True)
class LogHistogram:
    """Frequencies of numbers. Count, sum, least and most are exact; `buckets`: by the kernels' numbers of buckets."""

    count: int = 0
    sum: int = 0
    least: int = 0
    most: int = 0
    buckets: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, packed: bytes) -> "LogHistogram":
        """Return the histogram from a kernel."""
        values = memoryview(packed).cast("q")
        head = len(OfHistogram)
        count, total, least, most = values[:head]
        return cls(count, total, least, most, {place: each for place, each in enumerate(values[head:]) if each})

    def add(self, other: "LogHistogram") -> None:
        """Add the numbers of another histogram."""
        if not other.count:
            return
        self.least = min(self.least, other.least) if self.count else other.least
        self.most = max(self.most, other.most)
        self.count += other.count
        self.sum = min(self.sum + other.sum, MOST)
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count

    @property
    def mean(self) -> float | None:
        """The mean, or None without numbers."""
        return self.sum / self.count if self.count else None

    def percentile(self, share: float) -> int | None:
        """Return the least number that the given share of numbers doesn't exceed, at most 3 % too large.

        None without numbers.
        """
        if not self.count:
            return None
        wanted, seen = max(share * self.count, 1), 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= wanted:
                return min(max(bucket_bounds(bucket)[1], self.least), self.most)
        return self.most

    def share_of_largest(self, share: float) -> float:
        """Return the approximate part of the sum that the given share of largest numbers makes up."""
        wanted = max(round(share * self.count), 1)
        taken = total = 0.0
        for bucket in sorted(self.buckets, reverse=True):
            least, most = bucket_bounds(bucket)
            count, middle = self.buckets[bucket], (least + min(most, self.most)) / 2
            now = min(count, wanted - taken)
            taken, total = taken + now, total + now * middle
            if taken >= wanted:
                break
        return min(total / self.sum, 1.0) if self.sum else 0.0

    def doublings(self) -> list[tuple[int, int, int]]:
        """Return counts between powers of two: the least number, the largest, the count, without gaps."""
        counts: dict[int, int] = {}
        for bucket, count in self.buckets.items():
            place = bucket_bounds(bucket)[0].bit_length()
            counts[place] = counts.get(place, 0) + count
        if not counts:
            return []
        places = range(min(counts), max(counts) + 1)
        return [(1 << place - 1 if place else 0, (1 << place) - 1, counts.get(place, 0)) for place in places]


LIBRARY = "datasketches"
_LG_REGISTERS = 12
"""2¹² registers, 4 KiB: an error of 1.6 %."""


@cache
def has_sketches() -> bool:
    """Return True if the library is installed."""
    return find_spec(LIBRARY) is not None


class KeySketch:
    """A sketch of the hashes of keys that a kernel had to drop, partition by partition."""

    def __init__(self) -> None:
        self._sketch: Any = None

    def take_dropped(self, statistics: "Statistics") -> None:
        """Take the keys dropped since the last call; without the library they are lost."""
        if statistics.dropped_below and (dropped := statistics.take_hashes()) and has_sketches():
            self._take(dropped)

    def finish(self, statistics: "Statistics") -> tuple[bytes, ...]:
        """Return the sketch of all keys, as bytes; none if all were kept, or without the library."""
        if self._sketch is None:
            return ()
        self._take(statistics.hashes())
        return (bytes(self._sketch.serialize_compact()),)

    def _take(self, hashes: bytes) -> None:
        if self._sketch is None:
            from datasketches import hll_sketch, tgt_hll_type

            self._sketch = hll_sketch(_LG_REGISTERS, tgt_hll_type.HLL_8)
        deque(map(self._sketch.update, memoryview(hashes).cast("q")), maxlen=0)


def sketched_count(sketches: Iterable[bytes]) -> int:
    """Return the approximate number of different keys in some sketches."""
    from datasketches import hll_sketch, hll_union, tgt_hll_type

    union = hll_union(_LG_REGISTERS)
    for sketch in sketches:
        union.update(hll_sketch.deserialize(sketch))
    estimate: float = union.get_result(tgt_hll_type.HLL_8).get_estimate()
    return round(estimate)


DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def count_text(count: int) -> str:
    """Return a count such as `1,234,567`."""
    return f"{count:,}"


def short_count(count: float) -> str:
    """Return a count for a picture, such as `1.2 M`."""
    for factor, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= factor:
            return f"{count / factor:.3g}{unit}"
    return f"{count:.3g}"


def axis_size(size: float) -> str:
    """Return a size for an axis, such as `20 MiB`."""
    return human_size(round(size)).replace(".0 ", " ")


def share_text(share: float) -> str:
    """Return a share such as `41 %`; small ones with a decimal."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 9.95 else f"{percent:.0f} %"


def ratio_text(ratio: float) -> str:
    """Return a ratio with a multiplication sign."""
    return f"{ratio:.1f}\N{MULTIPLICATION SIGN}" if ratio < 100 else f"{ratio:,.0f}\N{MULTIPLICATION SIGN}"


def rate_text(size: float, milliseconds: int) -> str:
    """Return bytes per second as text."""
    return f"{human_size(round(1000 * size / milliseconds))}/s" if milliseconds else ""


def moment_text(timestamp: int, zone: tzinfo = UTC) -> str:
    """Format a timestamp to the minute, such as `2026-11-24 12:00`."""
    try:
        moment = (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)
    except OverflowError:
        return time_text(timestamp, zone)
    return moment.strftime("%Y-%m-%d %H:%M")


def age_text(milliseconds: int) -> str:
    """Return an age or a duration, such as `13 days` or `5h02m`."""
    days = milliseconds // DAY_MS
    return f"{days:,} days" if days >= 3 else duration_text(milliseconds)


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
"""Kernel statistics that are added up over partitions."""
MOST_TOP_KEYS = 64
"""Most keys of a partition that are kept, those with the most records."""
MOST_KEPT_PRODUCERS = 256
_SHARES = (256, 1024, 4096)
"""Shares of hot keys: a key is kept if it has at least one of this many records, which limits their number."""


class CodecSums(NamedTuple):
    """Batches of a codec: their records, the bytes of their bodies as stored, and decompressed (0 if none was)."""

    batches: int = 0
    records: int = 0
    stored_size: int = 0
    uncompressed_size: int = 0


class ProducerSums(NamedTuple):
    """The values of a producer, see OfProducer, or -1 for none."""

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

    def join(self, other: "ProducerSums") -> "ProducerSums":
        """Return the sums of two partitions; offsets have no meaning then."""
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
    """A key's records: its hash, their number, their total size, the last one's offset."""

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
        """Add another partition's sums, except its largest records and keys, which belong to one partition."""
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
            self.producers[producer_id] = producer if before is None else before.join(producer)
        self.other_producers += other.other_producers
        if len(self.producers) > 2 * MOST_KEPT_PRODUCERS:
            self.leave_out_producers()

    def leave_out_producers(self) -> None:
        """Keep only the producers that wrote the most bytes."""
        kept = sorted(self.producers.values(), key=lambda each: (-each.size, each.id))[:MOST_KEPT_PRODUCERS]
        self.other_producers += len(self.producers) - len(kept)
        self.producers = {each.id: each for each in kept}


def sums_of(statistics: Statistics) -> Sums:
    """Return the sums that a kernel has computed for a partition."""
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
    """Return the keys with the most records.

    Each has at least one record of some thousands: others aren't hot.
    """
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
