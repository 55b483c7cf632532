"""The partitions that a query reads."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape

from kseg.cluster.copies import Copies, copies_of, find_replicas, require_replicas
from kseg.cluster.directories import Refuse
from kseg.errors import UsageError
from kseg.formats.codes import INTERNAL_TOPICS
from kseg.log.selection import require_named
from kseg.output.progress import talk
from kseg.spark.java_pattern import compile_pattern
from kseg.spark.options import PARTITION_CHOICES, Request


def find_partitions(request: Request) -> Copies:
    """Return the requested partitions; none if no topic matches a pattern, or only internal topics do.

    Raises UsageError if a named topic is missing, OpenError for paths that can't be listed.
    """
    choice = _Choice.of(request)
    everything = copies_of(find_replicas(request.sources()))
    require_replicas(everything, request.sources())
    require_named(map(escape, choice.topics), {topic for topic, _ in everything}, choice.option, "topic")
    if internal := sorted(INTERNAL_TOPICS.intersection(choice.topics)):
        talk(f"kseg: {choice.option} skips internal topics ({', '.join(internal)}); omit it to read them")
    return choice.among(everything)


def find_present_partitions(request: Request, refuse: Refuse | None = None) -> Copies:
    """Return the requested partitions that exist. `refuse` receives errors, which are raised without it."""
    return _Choice.of(request).among(copies_of(find_replicas(request.sources(), refuse)))


@dataclass(frozen=True)
class _Choice:
    """Topics by name, with the numbers of partitions for `assign`, or by pattern. Without an option, all are chosen.

    Options omit internal topics, and `assign` omits missing partitions. Source: ConsumerStrategy of spark-sql-kafka.
    """

    option: str = ""
    topics: Sequence[str] = ()
    numbers: Mapping[str, Sequence[int]] | None = None
    pattern: re.Pattern[str] | None = None

    @classmethod
    def of(cls, request: Request) -> "_Choice":
        """Return the choice of a query's options. Raises UsageError if it is invalid."""
        for option in PARTITION_CHOICES:
            if (text := request.text(option)) is not None:
                break
        else:
            return cls()
        if option == "assign":
            numbers = request.partitions_by_topic(option)
            return cls(option, [*numbers], numbers)
        if not text.replace(",", "").strip():
            raise UsageError(f"{option} is empty; specify topics, or omit it to read all")
        if option == "subscribe":
            return cls(option, [name for name in map(str.strip, text.split(",")) if name])
        return cls(option, pattern=compile_pattern(text.strip()))

    def among(self, copies: Copies) -> Copies:
        """Return the chosen partitions among existing ones."""
        return {key: own for key, own in copies.items() if not self.option or self._takes(*key)}

    def _takes(self, topic: str, partition: int | None) -> bool:
        if topic in INTERNAL_TOPICS:
            return False
        if self.pattern is not None:
            return self.pattern.search(topic) is not None
        return topic in self.topics and (self.numbers is None or partition in self.numbers[topic])
