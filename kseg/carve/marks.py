"""Marks of other evidence, which the pass over an image notes: copies of checkpoints, structures of file systems."""

import re
from array import array
from collections.abc import Iterator

from kseg.formats.checkpoints import OFFSET_CHECKPOINT_START
from kseg.formats.extent_lists import SIGNATURES, Signature, Structure

_MOST_TEXTS = 10_000
"""Most checkpoints that are noted: a disk has hundreds of old ones, a hostile image as many as it has room for."""
_MOST_STRUCTURES = 1 << 20
"""Most structures of a kind that are noted."""


class Marks:
    """Positions of marks, in the common space of the images."""

    def __init__(self, *, has_structures: bool) -> None:
        """Note checkpoints, and structures of file systems if they are wanted."""
        self.texts = array("q")
        self._structures = {each.structure: array("q") for each in SIGNATURES if has_structures}

    def look(self, position: int, piece: memoryview) -> None:
        """Note the marks in a piece of an image, which begins at a multiple of 512."""
        for match in OFFSET_CHECKPOINT_START.finditer(piece):
            if len(self.texts) == _MOST_TEXTS:
                break
            self.texts.append(position + match.start())
        if self._structures:
            words = piece[: len(piece) // 2 * 2].cast("H")
            for signature in SIGNATURES:
                self._note(signature, position, words)

    def _note(self, signature: Signature, position: int, words: memoryview) -> None:
        found = self._structures[signature.structure]
        candidates = words[signature.place // 2 :: signature.slot // 2].tobytes()
        for match in re.finditer(re.escape(signature.magic), candidates):
            if match.start() % 2 == 0 and len(found) < _MOST_STRUCTURES:
                found.append(position + match.start() // 2 * signature.slot + signature.place - signature.before)

    def structures(self) -> Iterator[tuple[Structure, int]]:
        """Yield structures and the positions of their starts."""
        for structure, positions in self._structures.items():
            yield from ((structure, position) for position in positions)
