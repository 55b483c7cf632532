"""Histograms with buckets that widen with their numbers, as the kernels make them: merged, asked for percentiles."""

from dataclasses import dataclass, field

from kseg.kernel.contract import MOST
from kseg.kernel.statistics_contract import OfHistogram, bucket_bounds


@dataclass(slots=True)
class LogHistogram:
    """How often numbers occur. Count, sum, least and most are exact; `buckets`: by the kernels' numbers of buckets."""

    count: int = 0
    sum: int = 0
    least: int = 0
    most: int = 0
    buckets: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, packed: bytes) -> "LogHistogram":
        """One that a kernel made."""
        values = memoryview(packed).cast("q")
        head = len(OfHistogram)
        count, total, least, most = values[:head]
        return cls(count, total, least, most, {place: each for place, each in enumerate(values[head:]) if each})

    def add(self, other: "LogHistogram") -> None:
        """Takes the numbers of another one too."""
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
        """The mean; None of no numbers."""
        return self.sum / self.count if self.count else None

    def percentile(self, share: float) -> int | None:
        """The least number that so large a share of the numbers doesn't exceed, at most 3 % too large; None of none."""
        if not self.count:
            return None
        wanted, seen = max(share * self.count, 1), 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= wanted:
                return min(max(bucket_bounds(bucket)[1], self.least), self.most)
        return self.most

    def share_of_largest(self, share: float) -> float:
        """The part of the sum that so large a share of the numbers makes up, the largest ones; about."""
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
        """How many numbers lie between powers of two: the least number, the largest, how many, without gaps."""
        counts: dict[int, int] = {}
        for bucket, count in self.buckets.items():
            place = bucket_bounds(bucket)[0].bit_length()
            counts[place] = counts.get(place, 0) + count
        if not counts:
            return []
        places = range(min(counts), max(counts) + 1)
        return [(1 << place - 1 if place else 0, (1 << place) - 1, counts.get(place, 0)) for place in places]
