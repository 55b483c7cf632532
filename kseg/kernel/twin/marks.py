"""Marks by the twin: offset checkpoints by their regular expression, and signatures place by place."""

from collections.abc import Sequence

from kseg.formats.checkpoints import OFFSET_CHECKPOINT_START
from kseg.formats.extent_lists import Signature


def find_checkpoints(buffer: memoryview, most: int) -> list[int]:
    """Return the starts of offset checkpoints; see the contract."""
    return [match.start() for match in OFFSET_CHECKPOINT_START.finditer(buffer)][:most]


def find_signatures(buffer: memoryview, signatures: Sequence[Signature]) -> list[tuple[int, int]]:
    """Return the signatures' places; see the contract."""
    return [
        (number, at)
        for number, each in enumerate(signatures)
        for at in range(each.place, len(buffer) - len(each.magic) + 1, each.slot)
        if buffer[at : at + len(each.magic)] == each.magic
    ]
