"""Records as values of both kernels: of v2 batches, and messages of v0 and v1."""

from dataclasses import dataclass
from typing import NamedTuple

from kseg.formats.codes import TimestampType


class Header(NamedTuple):
    """A header of a record; `value` may be null (None)."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a v2 batch, or a v0 or v1 message; a frozen dataclass.

    `timestamp` is milliseconds since 1970, -1 for none; `sequence` -1 for none; `position` the batch's in the file.
    `crc` is the stored checksum: the message's own, or its batch's for a v2 record; `is_valid` tells whether it is
    right. Null keys and values are None, empty ones b"".
    """

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    sequence: int
    position: int
    crc: int
    is_valid: bool

    @property
    def key_size(self) -> int:
        """Bytes of the key, or -1 for a null key."""
        return -1 if self.key is None else len(self.key)

    @property
    def value_size(self) -> int:
        """Bytes of the value, or -1 for a null value."""
        return -1 if self.value is None else len(self.value)

    @property
    def has_key(self) -> bool:
        """True if the key isn't null."""
        return self.key is not None

    @property
    def is_null(self) -> bool:
        """True if the value is null: a tombstone, if there is a key."""
        return self.value is None

    @property
    def next_offset(self) -> int:
        """The offset after this one."""
        return self.offset + 1
