"""Reads every record of a segment by one library, checks CRCs, and prints the number of records: READER FILE."""

import importlib
import sys
from pathlib import Path

PEERS = {"aiokafka": "aiokafka.record.memory_records", "kafka-python": "kafka.record"}


def iterate_kseg(path: Path) -> int:
    """Read records by kseg's Python API."""
    import kseg

    count = 0
    for record in kseg.open_segment(path).records():
        _ = record.offset, record.timestamp, record.key, record.value
        count += 1
    return count


def iterate_peer(library: str, path: Path) -> int:
    """Read records by the reader of the library's consumer, with its default check_crcs."""
    records = importlib.import_module(PEERS[library]).MemoryRecords(path.read_bytes())
    count = 0
    while (batch := records.next_batch()) is not None:
        if not batch.validate_crc():
            sys.exit(f"{path}: a batch's CRC is wrong")
        for record in batch:
            _ = record.offset, record.timestamp, record.key, record.value
            count += 1
    return count


if __name__ == "__main__":
    reader, file = sys.argv[1], Path(sys.argv[2])
    print(iterate_kseg(file) if reader == "kseg" else iterate_peer(reader, file))
