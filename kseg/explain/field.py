"""A field, or a structure of fields, with its bytes, value and meaning."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

Content = bytes | memoryview
"""Bytes of a file or of a body; a view if there are many."""


class Bits(NamedTuple):
    """Some bits of a field: `width` of them from bit `first` (the lowest is 0) on, and their meaning."""

    name: str
    first: int
    width: int
    value: int | bool
    meaning: str


class Check(NamedTuple):
    """A checksum, as stored and as computed, and the bytes that it covers, from `start` up to `end`."""

    stored: int
    computed: int
    start: int
    end: int

    @property
    def holds(self) -> bool:
        """Whether both are the same."""
        return self.stored == self.computed


@dataclass(slots=True)
class ExplainedField:
    """A field, a structure of fields (`children`), or bytes that can't be read (`problem`).

    path: its name, after those of the structures that it is in. position: of its first byte in the file or in a
    decompressed body. raw: the bytes of a leaf. body: its contents after decompression.
    """

    path: str
    position: int
    size: int
    kind: str
    value: object
    meaning: str
    raw: Content
    bits: tuple[Bits, ...] = ()
    check: Check | None = None
    children: list["ExplainedField"] = field(default_factory=list)
    body: list["ExplainedField"] = field(default_factory=list)
    problem: str | None = None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    def leaves(self) -> Iterator["ExplainedField"]:
        """The fields that have no parts, in order, without those of a decompressed body."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()
