"""Marks of other evidence, which the pass over an image notes: copies of checkpoints, structures of file systems."""

from array import array
from collections.abc import Iterator

from kseg import kernel
from kseg.formats.extent_lists import SIGNATURES, Structure

_MOST_TEXTS = 10_000
"""Most checkpoints that are noted: a disk has hundreds of old ones, a hostile image as many as it has room for."""
_MOST_STRUCTURES = 1 << 20
"""Most structures of a kind that are noted."""


class Marks:
    """Positions of marks, in the common space of the images."""

    def __init__(self, *, has_structures: bool) -> None:
        """Note checkpoints, and structures of file systems if they are wanted."""
        self.texts = array("q")
        self._kernel = kernel.load()
        self._signatures = SIGNATURES if has_structures else ()
        self._structures = {each.structure: array("q") for each in self._signatures}

    def look(self, position: int, piece: memoryview) -> None:
        """Note the marks in a piece of an image, which begins at a multiple of 512."""
        for at in self._kernel.find_checkpoints(piece, _MOST_TEXTS - len(self.texts)):
            self.texts.append(position + at)
        for number, at in self._kernel.find_signatures(piece, self._signatures):
            signature = self._signatures[number]
            found = self._structures[signature.structure]
            if len(found) < _MOST_STRUCTURES:
                found.append(position + at - signature.before)

    def structures(self) -> Iterator[tuple[Structure, int]]:
        """Yield structures and the positions of their starts."""
        for structure, positions in self._structures.items():
            yield from ((structure, position) for position in positions)
