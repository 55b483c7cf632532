"""Records of golden logs, read by aiokafka, so that decoders are tested without kseg's own readers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka.record.memory_records import _MemoryRecordsPy  # type: ignore[import-untyped]


class LogRecord(NamedTuple):
    """A record; `is_control` is the batch's."""

    offset: int
    key: bytes | None
    value: bytes | None
    is_control: bool


def records(path: Path) -> Iterator[LogRecord]:
    """The records of a log file, in file order."""
    batches: Any = _MemoryRecordsPy(path.read_bytes())
    while batches.has_next() and (batch := batches.next_batch()) is not None:
        is_control = getattr(batch, "is_control_batch", False)
        for record in batch:
            yield LogRecord(record.offset, record.key, record.value, is_control)
