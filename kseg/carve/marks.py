"""Marks of other evidence, which the pass over an image notes: copies of Kafka's offset checkpoints."""

from array import array

from kseg.formats.checkpoints import OFFSET_CHECKPOINT_START

_MOST_TEXTS = 10_000
"""Most checkpoints that are noted: a disk has hundreds of old ones, a hostile image as many as it has room for."""


class Marks:
    """Positions of marks, in the common space of the images."""

    def __init__(self) -> None:
        self.texts = array("q")

    def look(self, position: int, piece: memoryview) -> None:
        """Note the marks in a piece of an image."""
        for match in OFFSET_CHECKPOINT_START.finditer(piece):
            if len(self.texts) == _MOST_TEXTS:
                break
            self.texts.append(position + match.start())
