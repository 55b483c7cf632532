"""Counted comparisons of rows from Kafka's tools and kseg."""

from collections import Counter
from collections.abc import Iterable


class Compared:
    """The results of comparisons.

    `counts`: rows by name, of one side or both; `differences`: rows of one side alone.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: dict[str, list[str]] = {}

    def rows(self, name: str, theirs: Iterable[object], ours: Iterable[object]) -> None:
        """Compare rows in any order; fail at a difference."""
        wanted, found = Counter(theirs), Counter(ours)
        self.counts[name] += sum((wanted | found).values())
        differences = [f"Kafka's alone: {row}" for row in wanted - found]
        differences += [f"kseg's alone: {row}" for row in found - wanted]
        if differences:
            self.differences[name] = differences
        assert differences == [], "\n".join([name, *differences])

    def summary(self) -> str:
        """Return the counts as a line."""
        each = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        wrong = sum(map(len, self.differences.values()))
        return f"{sum(self.counts.values())} rows compared ({each}), {wrong} differences"
