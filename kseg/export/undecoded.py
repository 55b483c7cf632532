"""Keys and values that don't decode: their counts, the first reason, and the most that a run accepts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kseg.decode.decoded import Part

PLURALS: Mapping["Part", str] = {"key": "keys", "value": "values"}


@dataclass(frozen=True, slots=True)
class DecodedPart:
    """Numbers of keys or values that should have been decoded.

    total: those that aren't null. undecoded: those among them that don't decode. first_offset, last_offset: the bounds
    of their records; None if all decode. reason: for the first of them.
    """

    part: "Part"
    total: int = 0
    undecoded: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    reason: str = ""

    def __add__(self, other: "DecodedPart") -> "DecodedPart":
        """Return the sums of two parts of a partition."""
        failed = [each for each in (self, other) if each.first_offset is not None]
        first = min(failed, key=lambda each: each.first_offset or 0, default=self)
        return DecodedPart(
            self.part,
            self.total + other.total,
            self.undecoded + other.undecoded,
            first.first_offset,
            max((each.last_offset or 0 for each in failed), default=None),
            first.reason,
        )

    def line(self, where: str = "") -> str:
        """Return the counts, and the place and the reason of the first undecoded one. where: more about that place."""
        return (
            f"{self.undecoded} of {self.total} {PLURALS[self.part]} don't decode, the first at"
            f" {where}offset {self.first_offset}: {self.reason}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON's values."""
        return {_JSON_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "DecodedPart":
        """Return the counts of `to_json`."""
        names = {own: name for name, own in _JSON_NAMES.items()}
        return cls(**{names.get(name, name): value for name, value in members.items()})


_JSON_NAMES = {"first_offset": "firstOffset", "last_offset": "lastOffset"}


def joined_parts(parts: Iterable[DecodedPart]) -> list[DecodedPart]:
    """Return the sums of keys and of values."""
    sums: dict[Part, DecodedPart] = {}
    for each in parts:
        sums[each.part] = sums[each.part] + each if each.part in sums else each
    return [sums[part] for part in sorted(sums)]


def new_parts(now: Iterable[DecodedPart], before: Iterable[DecodedPart]) -> list[DecodedPart]:
    """Return the counts that were added, for keys and for values; offsets and reason are of results that weren't there.

    A log that is read again, such as one whose offsets don't rise, adds only what exceeds its earlier counts.
    """
    now, before = list(now), list(before)
    added = {each.part: each for each in joined_parts((Counter(now) - Counter(before)).elements())}
    old = {each.part: each for each in joined_parts(before)}
    found = []
    for each in joined_parts(now):
        known = old.get(each.part, DecodedPart(each.part))
        total, undecoded = each.total - known.total, each.undecoded - known.undecoded
        own = added.get(each.part, known)
        found.append(
            replace(own, total=max(total, 0), undecoded=undecoded)
            if undecoded > 0
            else DecodedPart(each.part, max(total, 0))
        )
    return found


class UndecodedPart(NamedTuple):
    """The keys or values of a topic that include undecodable data. `partition` is where it occurs first."""

    topic: str
    partition: int | None
    counts: DecodedPart

    def line(self) -> str:
        """Return the counts, and the place and the reason of the first one, for people."""
        where = "" if self.partition is None else f"partition {self.partition}, "
        return f"{self.topic}: {self.counts.line(where)}"


def undecoded_of_topics(parts: Iterable[tuple[str, int | None, Iterable[DecodedPart]]]) -> list[UndecodedPart]:
    """Return the keys and values of topics that don't decode, from the counts of partitions, in their order."""
    totals: dict[tuple[str, Part], UndecodedPart] = {}
    for topic, partition, counts in parts:
        for own in counts:
            known = totals.get((topic, own.part))
            if known is None:
                totals[topic, own.part] = UndecodedPart(topic, partition, own)
                continue
            first = known if known.counts.undecoded or not own.undecoded else UndecodedPart(topic, partition, own)
            sums = replace(
                first.counts,
                total=known.counts.total + own.total,
                undecoded=known.counts.undecoded + own.undecoded,
            )
            totals[topic, own.part] = first._replace(counts=sums)
    return [each for each in totals.values() if each.counts.undecoded]


class DeadLetters(NamedTuple):
    """The dead letters of an export. records: all at the destination; undecoded: the table's undecoded records.

    has_new_losses: whether this run found undecoded records that it couldn't add. added: the number of records that it
    added, by topic; None if nobody wants it.
    """

    destination: str
    records: int
    undecoded: int
    has_new_losses: bool = False
    added: Mapping[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON's values."""
        return {"destination": self.destination, "records": self.records, "undecoded": self.undecoded}


@dataclass(frozen=True, slots=True)
class UndecodedLimit:
    """The most keys, and the most values, of a topic that may not decode in a run.

    most: a number, or a percentage of those that the run exports. is_share: whether it is a percentage.
    """

    most: float = 0
    is_share: bool = False

    def __str__(self) -> str:
        return f"{self.most:g}%" if self.is_share else f"{self.most:.0f}"

    def is_exceeded(self, counts: DecodedPart) -> bool:
        """Return True if more don't decode."""
        most = self.most * counts.total / 100 if self.is_share else self.most
        return counts.undecoded > most


NONE_ACCEPTED = UndecodedLimit()
"""The default: a decoder that was requested should fit."""
