"""The producer snapshot (.snapshot): the state of producers up to an offset."""

import os
from collections.abc import Iterator
from pathlib import Path

from kseg import kernel
from kseg.errors import KsegError
from kseg.formats.entries import PRODUCER_SNAPSHOT_VERSION
from kseg.formats.header_fields import PRODUCER_ENTRY_FIELDS, PRODUCER_SNAPSHOT_HEADER_FIELDS, SNAPSHOT_CRC
from kseg.formats.names import parse_file_name
from kseg.index.entry_file import EntryFile
from kseg.index.producer_state import ProducerState, ProducerStates

LARGEST_READ = 2**31 - 1
"""The largest file, in bytes, that a broker can read at once: Java's arrays can't be larger."""


class ProducerSnapshot:
    """A .snapshot, open for reading; a context manager.

    end_offset: up to which (not including) the log was seen, of the file's name; None if it has none. header_size:
    bytes of the header that are there; in a cut one version, crc and count are 0 as far as they are missing. count:
    entries that the file says it has; `whole_count` those that are there. Source: ProducerStateManager.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the file. Raises OpenError if it can't be opened or its header not be read."""
        header = PRODUCER_SNAPSHOT_HEADER_FIELDS.struct
        self.file = EntryFile(path, PRODUCER_ENTRY_FIELDS, header.size)
        self.path = Path(path)
        self.end_offset = parse_file_name(path).base_offset
        self.size = self.file.size
        try:
            fields = self.file.read(0, header.size)
        except KsegError:
            self.close()
            raise
        self.header_size = len(fields)
        self.version, self.crc, self.count = header.unpack(fields.ljust(header.size, b"\0"))
        self.whole_count = max(min(self.count, self.file.capacity), 0)

    @property
    def is_cut(self) -> bool:
        """Whether the file is too short for its header."""
        return self.header_size < PRODUCER_SNAPSHOT_HEADER_FIELDS.struct.size

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    def __enter__(self) -> "ProducerSnapshot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[ProducerState]:
        """The producers, in file order; in a cut file only the whole ones."""
        for piece in self.pieces():
            yield from piece

    def pieces(self) -> Iterator[list[ProducerState]]:
        """The same in lists, as they are read."""
        for piece in self.file.pieces(self.whole_count):
            yield list(map(ProducerState._make, piece))

    def compute_crc(self) -> int:
        """The CRC-32C computed from the file's bytes."""
        return self.file.crc32c(SNAPSHOT_CRC.end)

    def problem(self) -> str | None:
        """Why a broker would refuse it; None if it wouldn't. Source: ProducerStateManager.readSnapshot."""
        if self.is_cut:
            least = PRODUCER_SNAPSHOT_HEADER_FIELDS.struct.size
            return f"{self.header_size} bytes, a producer snapshot has at least {least}"
        if self.version != PRODUCER_SNAPSHOT_VERSION:
            return f"version is {self.version}, known is {PRODUCER_SNAPSHOT_VERSION}"
        if self.size > LARGEST_READ:
            return f"{self.size} bytes, a broker reads at most {LARGEST_READ}"
        if (computed := self.compute_crc()) != self.crc:
            return f"crc is {self.crc:#010x}, computed {computed:#010x}"
        if self.count != self.whole_count:
            return f"{self.count} producers are counted in its header, {self.whole_count} are there"
        return None


def snapshot_problem(path: str | os.PathLike[str]) -> str | None:
    """Why a broker wouldn't take a .snapshot, one that can't be opened too; None if it would."""
    try:
        with ProducerSnapshot(path) as snapshot:
            return snapshot.problem()
    except KsegError as error:
        return error.message


def build_producer_snapshot(states: ProducerStates) -> bytes:
    """A .snapshot's bytes. Source: ProducerStateManager.writeSnapshot."""
    entries = b"".join(PRODUCER_ENTRY_FIELDS.struct.pack(*state) for state in states.producers.values())
    header = PRODUCER_SNAPSHOT_HEADER_FIELDS.struct
    count = len(states.producers)
    covered = header.pack(PRODUCER_SNAPSHOT_VERSION, 0, count)[SNAPSHOT_CRC.end :] + entries
    crc = kernel.load().crc32c(memoryview(covered))
    return header.pack(PRODUCER_SNAPSHOT_VERSION, crc, count) + entries
