"""Hints of file systems: lists of extents put batches in order, if nothing contradicts them."""

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from kseg.carve.extents import FileExtents
from kseg.carve.joins import How, Joins, Link, LinkKind, PiecedBatch
from kseg.carve.listed_files import ListedFiles, Step, has_weak_head
from kseg.carve.runs import Runs


class _Torn(NamedTuple):
    """A pieced batch, however its first bytes were found. end: of its last piece."""

    end: int
    size: int
    crc: int
    base_offset: int


_Node: TypeAlias = int | _Torn
"""The number of a run, or a pieced batch."""


def add_hints(runs: Runs, joins: Joins, lists: Iterable[FileExtents]) -> None:
    """Add the batches and links that lists of extents lead to, unless other links or lists contradict them.

    A list counts only where CRCs are right and the next offset follows: its blocks may have another file's bytes by
    now.
    """
    order = _ListedOrder(joins)
    for steps in ListedFiles(runs, joins.skipped).walks(lists):
        order.add(steps)
    order.settle()


class _ListedOrder:
    """The order of runs and pieced batches by lists, next to the one that `joins` proves."""

    def __init__(self, joins: Joins) -> None:
        self._joins = joins
        proven = chain.from_iterable((*joins.leads.values(), *joins.trails.values()))
        self._proven = {_torn(batch): batch for batch in proven}
        self._listed: dict[_Torn, PiecedBatch] = {}
        self._contradicted: set[_Node] = set()
        self._after: dict[_Node, set[_Node]] = {}
        self._before: dict[_Node, set[_Node]] = {}

    def add(self, steps: list[Step]) -> None:
        """Add steps along a file by one of its lists."""
        for step in steps:
            if isinstance(step, PiecedBatch) and self._listed.setdefault(_torn(step), step).pieces != step.pieces:
                self._contradicted.add(_torn(step))
        for before, after in pairwise(_torn(step) if isinstance(step, PiecedBatch) else step.number for step in steps):
            self._after.setdefault(before, set()).add(after)
            self._before.setdefault(after, set()).add(before)

    def settle(self) -> None:
        """Add to `joins` what nothing contradicts."""
        self._contradicted.update(self._in_other_places())
        proven = _proven_order(self._joins)
        for node in set(self._wrong_middles()):
            del self._proven[node]
            proven = {before: after for before, after in proven.items() if node not in (before, after)}
        preceded = set(proven.values())
        added = {
            before: after
            for before, afters in self._after.items()
            for after in afters
            if len(afters) == len(self._before[after]) == 1
            and before not in proven
            and after not in preceded
            and not self._contradicted & {before, after}
        }
        listed = {node: batch for node, batch in self._listed.items() if node not in self._contradicted}
        while unsure := _unsure(listed, proven | added):
            listed = {node: batch for node, batch in listed.items() if node not in unsure}
            added = {before: after for before, after in added.items() if not unsure & {before, after}}
        _rewrite(self._joins, proven | added, self._proven | listed)

    def _in_other_places(self) -> Iterator[_Torn]:
        """Yield batches with proven pieces in other places than their list says."""
        for node in self._listed.keys() & self._proven.keys():
            known = self._proven[node]
            if known.how is not How.HEADLESS and known.pieces != self._listed[node].pieces:
                yield node

    def _wrong_middles(self) -> Iterator[_Torn]:
        """Yield batches of three pieces that end elsewhere by a list: among many middles, a wrong one may fit."""
        ends = {batch.pieces[0][0]: node for node, batch in self._listed.items() if node not in self._contradicted}
        for node, batch in self._proven.items():
            if batch.how is How.JOINED_3 and ends.get(batch.pieces[0][0], node) != node:
                yield node


def _torn(batch: PiecedBatch) -> _Torn:
    return _Torn(batch.pieces[-1][1], batch.header.size, batch.header.crc, batch.header.first_offset)


def _unsure(listed: dict[_Torn, PiecedBatch], following: dict[_Node, _Node]) -> set[_Node]:
    """Return the batches with a weak head that don't have both neighbours."""
    both = following.keys() & set(following.values())
    return {node for node, batch in listed.items() if has_weak_head(batch) and node not in both}


def _proven_order(joins: Joins) -> dict[_Node, _Node]:
    """Return what directly follows each run and pieced batch."""
    found: dict[_Node, _Node] = {}
    for number, batches in joins.leads.items():
        found.update(pairwise((*map(_torn, batches), number)))
    for number, batches in joins.trails.items():
        found.update(pairwise((number, *map(_torn, batches))))
    for number, link in joins.links.items():
        before, after = joins.trails.get(link.before), joins.leads.get(number)
        found[_torn(before[-1]) if before else link.before] = _torn(after[0]) if after else number
    return found


def _rewrite(joins: Joins, following: dict[_Node, _Node], batches: dict[_Torn, PiecedBatch]) -> None:
    """Make the order, and the pieced batches, those of `joins`."""
    known = dict(joins.links)
    for each in (joins.leads, joins.trails, joins.links):
        each.clear()
    for start in (following.keys() | batches.keys()) - set(following.values()):
        held: list[PiecedBatch] = []
        before: int | None = None
        node: _Node | None = start
        while node is not None:
            if isinstance(node, _Torn):
                held.append(batches[node])
            else:
                if held:
                    joins.leads[node] = held
                if before is not None:
                    is_known = node in known and known[node].before == before
                    joins.links[node] = known[node] if is_known else Link(before, LinkKind.EXTENT)
                before, held = node, []
            node = following.get(node)
        if held and before is not None:
            joins.trails[before] = held
        elif held:
            joins.apart.append(held)
    added = {number for number, link in joins.links.items() if known.get(number) != link}
    befores = {joins.links[number].before for number in added}
    starts = {batch.pieces[0][0] for batch in batches.values()}
    joins.torn = [head for head in joins.torn if head.run not in befores and head.header.position not in starts]
    joins.likely = [(one, other) for one, other in joins.likely if one not in befores and other not in added]
