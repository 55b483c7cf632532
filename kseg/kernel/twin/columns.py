"""The twin's records of a run of batches, column by column, in buffers that Arrow can use."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from kseg.kernel.contract import RecordFilter, RecordProblem, Rows
from kseg.kernel.entry_points import ALL_CONTENTS, Contents
from kseg.kernel.twin.headers import Header
from kseg.kernel.twin.records import RecordValues, read_rows
from kseg.kernel.twin.rows import RecordChoice, int32


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of the contract."""

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
    """Return the records of rows first … last - 1, including control records; see the contract.

    Raises OverflowError if the keys, the values or those of the headers have more than 2 GiB.
    """
    table = _Table(record_filter, contents)
    for number, row in enumerate(read_rows(buffer, rows, first, last, position, bodies, first_body), first):
        for record in row.records() if not table.is_full else ():
            if isinstance(record, RecordProblem):
                table.problems.append(record)
            elif not table.is_full:
                table.add(number, row.header, record)
    return table.columns()


class _Table:
    """Columns that grow."""

    def __init__(self, wanted: RecordFilter | None, contents: Contents) -> None:
        self._contents = contents
        self._choice = None if wanted is None else RecordChoice(wanted)
        self._read_count = 0
        self.problems: list[RecordProblem] = []
        self.places = array("i")
        self.rows, self.timestamp_types, self.sequences = array("i"), array("i"), array("i")
        self.offsets, self.timestamps, self.checksums = array("q"), array("q"), array("q")
        self.valid, self.control = bytearray(), bytearray()
        self.header_offsets = array("i", (0,))
        self.keys, self.values, self.header_keys, self.header_values = _Texts(), _Texts(), _Texts(), _Texts()

    @property
    def is_full(self) -> bool:
        """True if the filter's limit is reached."""
        return self._choice is not None and self._choice.is_full

    def add(self, row: int, batch: Header, record: RecordValues) -> None:
        """Add a record of a row's batch, if the filter takes it."""
        self._read_count += 1
        if self._choice is not None:
            if not self._choice.takes(record, len(self.rows)):
                return
            self.places.append(self._read_count - 1)
        self.rows.append(row)
        self.timestamp_types.append(batch.timestamp_type)
        self.control.append(batch.is_control)
        self.offsets.append(record.offset)
        self.timestamps.append(record.timestamp)
        self.sequences.append(int32(record.sequence))
        self.checksums.append(record.crc)
        self.valid.append(record.is_valid)
        self.keys.add(record.key if Contents.KEYS in self._contents else None)
        self.values.add(record.value if Contents.VALUES in self._contents else None)
        for key, value in record.headers if Contents.HEADERS in self._contents else ():
            self.header_keys.add(key)
            self.header_values.add(value)
        self.header_offsets.append(len(self.header_keys.is_there))

    def columns(self) -> Columns:
        """Return the columns as they are now."""
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
            header_offsets=self.header_offsets.tobytes(),
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

    def add(self, text: bytes | None) -> None:
        """Add a string, None for null."""
        self.data += text or b""
        self.offsets.append(len(self.data))
        self.is_there.append(text is not None)

    def validity(self) -> bytes:
        """Return one bit per string, lowest first."""
        bits = int("".join("01"[is_there] for is_there in reversed(self.is_there)) or "0", 2)
        return bits.to_bytes((len(self.is_there) + 7) // 8, "little")
