"""Which items of a file are explained, and whether something is wrong with them."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.explain.field import ExplainedField
from kseg.explain.items import Item


class ItemChoice(NamedTuple):
    """One item at most, each way by itself: the batch with an offset, what holds a position, or a number; None: all."""

    offset: int | None = None
    position: int | None = None
    number: int | None = None

    @classmethod
    def of(cls, offset: int | None, position: int | None, number: int | None) -> "ItemChoice":
        """Raises UsageError if more than one is given."""
        if sum(choice is not None for choice in (offset, position, number)) > 1:
            raise UsageError("give one of --offset, --position, --batch")
        return cls(offset, position, number)

    @property
    def is_narrow(self) -> bool:
        """Whether not all items are meant."""
        return self != ItemChoice()

    def chosen(self, items: Iterator[Item]) -> Iterator[tuple[int, Item]]:
        """Those of a file's items that are meant, with their numbers."""
        numbered = enumerate(items)
        number, position, offset = self.number, self.position, self.offset
        if number is not None:
            return islice(numbered, number, number + 1)
        if position is not None:
            return (each for each in numbered if each[1].position <= position < each[1].position + each[1].size)
        if offset is not None:
            return islice((each for each in numbered if _holds(each[1], offset)), 1)
        return numbered


class SeenItems:
    """Items on their way to the output; count: those so far; is_wrong: whether something is wrong with one of them."""

    def __init__(self, items: Iterator[tuple[int, Item]]) -> None:
        self._items = items
        self.count = 0
        self.is_wrong = False

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        for number, item in self._items:
            self.count += 1
            self.is_wrong |= item.problem is not None or any(map(_is_wrong, item.fields))
            yield number, item


def _is_wrong(field: ExplainedField) -> bool:
    inside = (*field.children, *field.body)
    return field.problem is not None or any(map(_is_wrong, inside))


def _holds(item: Item, offset: int) -> bool:
    """Whether a batch has the offset; one whose first isn't known has all up to its last."""
    if item.last_offset is None or offset > item.last_offset:
        return False
    return item.first_offset is None or offset >= item.first_offset
