"""The size of a partition: bytes in its files by kind, and their disk space."""

from typing import NamedTuple

from kseg.formats.file_names import FileKind, parse_file_name
from kseg.log.partition import PartitionLog

KINDS = {
    FileKind.LOG: "logs",
    FileKind.OFFSET_INDEX: "indexes",
    FileKind.TIME_INDEX: "indexes",
    FileKind.TRANSACTION_INDEX: "indexes",
    FileKind.PRODUCER_SNAPSHOT: "snapshots",
    FileKind.METADATA_SNAPSHOT: "snapshots",
}
OTHERS, LEFTOVERS = "other files", "leftovers"


class FileSizes(NamedTuple):
    """Files of a kind: their bytes, and their disk space in bytes.

    Indexes of active segments are 10 MiB large, but mostly holes, which take no space.
    """

    size: int = 0
    allocated: int = 0

    def plus(self, other: "FileSizes") -> "FileSizes":
        """Return the sum of both sizes."""
        return FileSizes(self.size + other.size, self.allocated + other.allocated)


def sizes_by_kind(partition: PartitionLog) -> dict[str, FileSizes]:
    """Return the sizes of the files of a partition by kind, as listed."""
    sizes: dict[str, FileSizes] = {}
    for file in partition.files():
        name = parse_file_name(file.name)
        kind = LEFTOVERS if name.suffix is not None else KINDS.get(name.kind, OTHERS)
        sizes[kind] = sizes.get(kind, FileSizes()).plus(FileSizes(file.size, file.allocated))
    return sizes
