"""Records of v2 batches to bytes, many at once: the twin's."""

from collections.abc import Iterable, Sequence

from kseg.formats.varint_writing import FEW_VARINTS
from kseg.kernel.contract import Appended


class Encoded:
    """Records as they stand in a batch, one after another."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._base_timestamp: int | None = None
        self.size = 0
        self.max_timestamp = -1
        self.next_delta = 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, record: bytes, offset_delta: int, timestamp: int) -> None:
        """Adds what is encoded already."""
        self._parts.append(record)
        self.size += len(record)
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.next_delta = offset_delta + 1

    def start(self, base_timestamp: int) -> None:
        """Sets the time to which those of usual records are relative."""
        self._base_timestamp = base_timestamp

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str | bytes, bytes | None]],
    ) -> bool:
        """Encodes a record at the next offset if it is usual; see the contract."""
        return self.extend(((timestamp, key, value, headers),)) is None

    def extend(self, records: Iterable[Appended]) -> Appended | None:
        """Encodes records whose numbers take a byte or two; see the contract."""
        few, null, parts, join = FEW_VARINTS, FEW_VARINTS[-1], self._parts, b"".join
        base, delta, size, largest = self._base_timestamp, self.next_delta, self.size, self.max_timestamp
        left = None
        for record in records:
            timestamp, key, value, headers = record
            if headers or timestamp < 0 or base is None:
                left = record
                break
            try:
                body = join(
                    (
                        b"\0",
                        few[timestamp - base],
                        few[delta],
                        null if key is None else few[len(key)],
                        key or b"",
                        null if value is None else few[len(value)],
                        value or b"",
                        b"\0",
                    )
                )
                prefix = few[len(body)]
            except KeyError:
                left = record
                break
            parts.append(prefix + body)
            size += len(prefix) + len(body)
            if timestamp > largest:
                largest = timestamp
            delta += 1
        self.next_delta, self.size, self.max_timestamp = delta, size, largest
        return left

    def body(self) -> bytes:
        """All records."""
        return b"".join(self._parts)
