"""Bytes of a log that can't be read as Kafka means them."""

from typing import NamedTuple

from kseg.formats.codes import DamageKind


class Damage(NamedTuple):
    """Bytes of a log that can't be read as Kafka means them.

    `position` and `size` are bytes of the file; a damage inside a batch (its body, its records) has the batch's
    position and size 0, since the batch stands for the bytes. `next_offset` is the first offset known to follow.
    """

    kind: DamageKind
    position: int
    size: int
    detail: str
    next_offset: int | None = None
