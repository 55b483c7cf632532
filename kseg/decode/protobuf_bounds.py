"""Bounds on a Protobuf message: each message in it takes memory for all fields of its type, however few it has."""

from typing import Any

from kseg.decode.decoded import NotDecodable

MOST_FIELDS = 1 << 22
"""The most fields of all messages in a value, including those at their defaults."""
_SMALLEST = 2
"""The fewest bytes of a message in another one: a tag, and a length of 0."""
_VARINT, _LENGTH, _START, _END = 0, 2, 3, 4
_FIXED = {1: 8, 5: 4}

Descriptor = Any


class FieldCounts:
    """Counts the fields that a message of a type will have in memory."""

    def __init__(self, descriptor: Descriptor) -> None:
        """Takes the type's descriptor."""
        self.descriptor = descriptor
        self._widest = _widest(descriptor)

    def check(self, data: bytes) -> None:
        """Raises NotDecodable if messages within a message would have too many."""
        if len(data) // _SMALLEST * self._widest > MOST_FIELDS and _count(data, self.descriptor) > MOST_FIELDS:
            raise NotDecodable(f"its messages would have more than {MOST_FIELDS} fields")


def _widest(descriptor: Descriptor) -> int:
    """The most fields of a type and of all types within it."""
    waiting, seen, widest = [descriptor], {descriptor.full_name}, 0
    while waiting:
        for field in waiting.pop().fields:
            inner = field.message_type
            if inner is not None:
                widest = max(widest, len(inner.fields))
                if inner.full_name not in seen:
                    seen.add(inner.full_name)
                    waiting.append(inner)
    return widest


def _count(data: bytes, descriptor: Descriptor) -> int:
    """Fields of the messages within a message, as far as it can be read; counting stops at the limit."""
    waiting, total = [(0, len(data), descriptor)], 0
    while waiting and total <= MOST_FIELDS:
        position, end, own = waiting.pop()
        groups = [own]
        fields = groups[-1].fields_by_number
        while position < end:
            tag, position = _varint(data, position, end)
            number, kind = tag >> 3, tag & 7
            inner = fields[number].message_type if number in fields else None
            if kind == _VARINT:
                _, position = _varint(data, position, end)
            elif kind == _LENGTH:
                size, position = _varint(data, position, end)
                if inner is not None:
                    total += len(inner.fields)
                    waiting.append((position, min(position + size, end), inner))
                position += size
            elif kind == _START and inner is not None:
                total += len(inner.fields)
                groups.append(inner)
                fields = inner.fields_by_number
            elif kind == _END and len(groups) > 1:
                groups.pop()
                fields = groups[-1].fields_by_number
            else:
                position += _FIXED.get(kind, 0)
    return total


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """A number and the position after it; a cut number has the value of its bytes."""
    value = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift >= 70:
            break
    return value, position
