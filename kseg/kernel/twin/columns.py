"""Records of a run of batches, column by column, in buffers that Arrow can take: the twin's."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, repeat

from kseg.kernel.contract import ALL_CONTENTS, Contents, RecordFilter, RecordProblem, Rows
from kseg.kernel.twin.rows import take_pieces, test_of
from kseg.kernel.twin.values import (
    IS_CONTROL,
    TIMESTAMP_TYPE,
    BatchValues,
    Piece,
    RecordValues,
    crc_of,
    header_count_of,
    headers_of,
    int32,
    key_of,
    offset_of,
    sequence_of,
    timestamp_of,
    validity_of,
    value_of,
)


@dataclass(frozen=True, slots=True)
class Columns:
    """What the contract says of columns."""

    count: int
    header_count: int
    rows: bytes
    places: bytes
    offsets: bytes
    timestamps: bytes
    sequences: bytes
    checksums: bytes
    valid: bytes
    timestamp_types: bytes
    control: bytes
    key_offsets: bytes
    key_validity: bytes
    key_data: bytes
    value_offsets: bytes
    value_validity: bytes
    value_data: bytes
    header_offsets: bytes
    header_key_offsets: bytes
    header_key_data: bytes
    header_value_offsets: bytes
    header_value_validity: bytes
    header_value_data: bytes
    problems: list[RecordProblem]


def columns(
    buffer: memoryview,
    rows: Rows,
    first: int,
    last: int,
    position: int,
    bodies: Sequence[bytes | None] | None,
    record_filter: RecordFilter | None = None,
    first_body: int = -1,
    contents: Contents = ALL_CONTENTS,
) -> Columns:
    """The records of rows first … last - 1, control records too; see the contract.

    Raises OverflowError if the keys, the values or those of the headers have more than 2 GiB.
    """
    table = _Table(record_filter, contents)
    taken = take_pieces(buffer, rows, first, last, position, bodies, first_body)
    for row, (batch, pieces) in enumerate(taken, first):
        if table.is_full:
            break
        table.add(row, batch, pieces)
    return table.columns()


class _Table:
    """Columns that grow."""

    def __init__(self, wanted: RecordFilter | None, contents: Contents) -> None:
        self._contents = contents
        self._takes = None if wanted is None else test_of(wanted)
        self._to_skip = 0 if wanted is None else wanted.skip
        self._limit = None if wanted is None else wanted.limit
        self._read_count = 0
        self.is_full = self._limit == 0
        self.problems: list[RecordProblem] = []
        self.places = array("i")
        self.rows, self.timestamp_types, self.sequences = array("i"), array("i"), array("i")
        self.offsets, self.timestamps, self.checksums = array("q"), array("q"), array("q")
        self.valid, self.control = bytearray(), bytearray()
        self.header_counts = array("i")
        self.keys, self.values, self.header_keys, self.header_values = _Texts(), _Texts(), _Texts(), _Texts()

    def add(self, row: int, batch: BatchValues, pieces: Iterable[Piece]) -> None:
        """Adds the records of a row's batch, or its problem."""
        for piece in pieces:
            if isinstance(piece, RecordProblem):
                self.problems.append(piece)
            elif piece:
                self._add(row, batch, piece if self._takes is None else self._taken(piece, self._takes))
                if self.is_full:
                    return

    def _taken(self, records: list[RecordValues], takes: Callable[[RecordValues], bool]) -> list[RecordValues]:
        """Those that the filter takes, up to its limit."""
        taken = [index for index, record in enumerate(records) if takes(record)]
        skipped = min(self._to_skip, len(taken))
        self._to_skip -= skipped
        left = None if self._limit is None else self._limit - len(self.places)
        taken = taken[skipped:][:left]
        self.is_full = len(taken) == left
        self.places.extend([self._read_count + index for index in taken])
        self._read_count += len(records)
        return [records[index] for index in taken]

    def _add(self, row: int, batch: BatchValues, records: list[RecordValues]) -> None:
        count = len(records)
        self.rows.extend(repeat(row, count))
        self.timestamp_types.extend(repeat(batch[TIMESTAMP_TYPE], count))
        self.control.extend(repeat(batch[IS_CONTROL], count))
        self.offsets.extend(map(offset_of, records))
        self.timestamps.extend(map(timestamp_of, records))
        self.sequences.extend(map(int32, map(sequence_of, records)))
        self.checksums.extend(map(crc_of, records))
        self.valid.extend(map(validity_of, records))
        nothing: list[bytes | None] = [None] * count
        self.keys.add(list(map(key_of, records)) if Contents.KEYS in self._contents else nothing)
        self.values.add(list(map(value_of, records)) if Contents.VALUES in self._contents else nothing)
        with_headers = records if Contents.HEADERS in self._contents else []
        self.header_counts.extend(map(header_count_of, with_headers) if with_headers else repeat(0, count))
        headers = list(chain.from_iterable(map(headers_of, with_headers)))
        self.header_keys.add([key for key, _ in headers])
        self.header_values.add([value for _, value in headers])

    def columns(self) -> Columns:
        """The columns as they are now."""
        return Columns(
            count=len(self.rows),
            header_count=len(self.header_keys.is_there),
            rows=self.rows.tobytes(),
            places=self.places.tobytes(),
            offsets=self.offsets.tobytes(),
            timestamps=self.timestamps.tobytes(),
            sequences=self.sequences.tobytes(),
            checksums=self.checksums.tobytes(),
            valid=bytes(self.valid),
            timestamp_types=self.timestamp_types.tobytes(),
            control=bytes(self.control),
            key_offsets=self.keys.offsets.tobytes(),
            key_validity=self.keys.validity(),
            key_data=bytes(self.keys.data),
            value_offsets=self.values.offsets.tobytes(),
            value_validity=self.values.validity(),
            value_data=bytes(self.values.data),
            header_offsets=array("i", accumulate(self.header_counts, initial=0)).tobytes(),
            header_key_offsets=self.header_keys.offsets.tobytes(),
            header_key_data=bytes(self.header_keys.data),
            header_value_offsets=self.header_values.offsets.tobytes(),
            header_value_validity=self.header_values.validity(),
            header_value_data=bytes(self.header_values.data),
            problems=self.problems,
        )


class _Texts:
    """A column of byte strings that grows."""

    def __init__(self) -> None:
        self.offsets = array("i", (0,))
        self.is_there = bytearray()
        self.data = bytearray()

    def add(self, texts: Sequence[bytes | None]) -> None:
        """Adds some, None for null."""
        known = [text or b"" for text in texts]
        ends = accumulate(map(len, known), initial=len(self.data))
        next(ends)
        self.offsets.extend(ends)
        self.is_there.extend([text is not None for text in texts])
        self.data += b"".join(known)

    def validity(self) -> bytes:
        """A bit for each, lowest first."""
        digits = bytes(self.is_there[::-1]).translate(_DIGITS)
        return int(digits or b"0", 2).to_bytes((len(digits) + 7) // 8, "little")


_DIGITS = bytes([ord("0"), ord("1"), *range(2, 256)])
