"""Likely links: they put unnamed partitions together if the user wants it. A name never travels over them."""

from collections import Counter
from collections.abc import Container, Iterator

from kseg.carve.chains import CarvedPartition, merge_partitions
from kseg.carve.joins import Joins
from kseg.carve.runs import Runs


def join_likely(
    runs: Runs, joins: Joins, partitions: list[CarvedPartition], named: Container[int]
) -> list[CarvedPartition]:
    """Return the partitions, those without a name put together by likely links as far as they can be of one log.

    named: numbers of partitions with a name, which stay as they are.
    """
    current = {each.number: each for each in partitions}
    owner = {run: each.number for each in partitions for chain in each.chains for run in chain.runs}
    for before, after in _only_links(joins):
        if before not in owner or after not in owner:
            continue
        one, other = sorted((owner[before], owner[after]))
        if one == other or one in named or other in named:
            continue
        merged = merge_partitions(runs, current[one], current[other])
        if merged is None:
            continue
        current[one] = merged._replace(likely_links=merged.likely_links + 1)
        for chain in current.pop(other).chains:
            owner.update(dict.fromkeys(chain.runs, one))
    return list(current.values())


def _only_links(joins: Joins) -> Iterator[tuple[int, int]]:
    """Yield the likely links between runs that have no other link at that side, likely or certain."""
    befores = Counter(before for before, _ in joins.likely) + Counter(link.before for link in joins.links.values())
    afters = Counter(after for _, after in joins.likely) + Counter(joins.links.keys())
    for before, after in sorted(set(joins.likely), key=lambda link: (link[1], link[0])):
        if befores[before] == afters[after] == 1:
            yield before, after
