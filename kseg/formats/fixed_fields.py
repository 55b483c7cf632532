"""What a field at a fixed position is, and a structure of such fields, without construct."""

from struct import Struct, calcsize
from typing import NamedTuple

Bytes = bytes | bytearray | memoryview


class FixedField(NamedTuple):
    """An integer at a fixed position: the bytes of its structure before it, its own, and what struct calls such."""

    position: int
    size: int
    code: str

    @property
    def end(self) -> int:
        """Position of the first byte after it."""
        return self.position + self.size

    def read(self, content: Bytes, at: int = 0) -> int:
        """Its value in the structure that begins at byte `at`. Where bytes are missing it means nothing."""
        start = at + self.position
        return int.from_bytes(content[start : start + self.size], "big", signed=self.code.islower())

    def packed(self, value: int) -> bytes:
        """A value's bytes. Raises OverflowError if it doesn't fit."""
        return value.to_bytes(self.size, "big", signed=self.code.islower())

    def write(self, content: bytearray, value: int, at: int = 0) -> None:
        """Puts a value into the structure that begins at byte `at`. Raises OverflowError if it doesn't fit."""
        start = at + self.position
        content[start : start + self.size] = self.packed(value)


class FixedFields(NamedTuple):
    """Fields that always take the same bytes: `struct` unpacks what `names` names, in order."""

    struct: Struct
    names: tuple[str, ...]

    def position(self, name: str) -> int:
        """Bytes before a field."""
        return calcsize(self.struct.format[: 1 + self.names.index(name)])


def struct_of(*fields: FixedField) -> Struct:
    """Unpacks some fields, whose positions rise, and passes over the bytes between them."""
    form, position = ">", 0
    for field in fields:
        form += "x" * (field.position - position) + field.code
        position = field.end
    return Struct(form)
