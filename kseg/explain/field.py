"""What is said of a stretch of bytes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

Content = bytes | memoryview
"""Bytes of a file or of a body; a view where they are many."""


class Bits(NamedTuple):
    """Bits of a field, `width` of them from bit `first` (the lowest is 0) on, and what they are."""

    name: str
    first: int
    width: int
    value: int | bool
    meaning: str


class Check(NamedTuple):
    """A checksum: what is stored and computed, and the bytes that it covers, from `start` up to `end`."""

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

    path: its name, with those of the structures that it stands in. position: of its first byte in the file or, in a
    decompressed body, in that. raw: its bytes, of a leaf. body: what is in it once it is decompressed.
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
        """The fields that have no parts, in order; those of a decompressed body are left out."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()
