"""Negative sizes other than null's -1: librdkafka would request such a batch forever, so it isn't sent."""

import zlib
from pathlib import Path

import pytest
from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.loops import for_each
from tests.serve.reading import by_librdkafka
from tests.serve.running import serving

NULL, ODD, VERY_ODD = 1, 3, 0x7F
"""Zig-zag of -1, -2 and -64."""
PLACES = {"key": (4, 1), "value": (6, 5), "header's value": (15, 1)}
"""The positions of sizes in RECORD, and the number of bytes after them."""
RECORD = NewRecord(b"k", b"value", headers=[("h", b"x")])


def alter_batch(offset: int, place: str, size: int) -> bytes:
    """Return a batch whose record has another size at a place, and no bytes after it."""
    data = bytearray(batch_bytes(NewBatch([RECORD], base_offset=offset)))
    record = data[61:]
    at, length = PLACES[place]
    assert record[at] == 2 * length
    record[at : at + 1 + length] = bytes([size])
    record[0] = 2 * (len(record) - 1)
    data[61:] = record
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[17:21] = calc_crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def message(offset: int, key_size: int) -> bytes:
    """Return a v1 message whose value is `v` and whose key has a negative size."""
    fields = b"\1\0" + (1_700_000_000_000).to_bytes(8, "big") + key_size.to_bytes(4, "big", signed=True)
    content = fields + (1).to_bytes(4, "big") + b"v"
    content = zlib.crc32(content).to_bytes(4, "big") + content
    return offset.to_bytes(8, "big") + len(content).to_bytes(4, "big") + content


@pytest.mark.usefixtures("kernel")
@for_each("place", PLACES)
def test_a_batch_with_an_odd_null_is_passed_over_as_damage(place: str, tmp_path: Path) -> None:
    directory = tmp_path / place[:3] / "orders-0"
    directory.mkdir(parents=True)
    batches = [batch_bytes(NewBatch([RECORD])), alter_batch(1, place, ODD), alter_batch(2, place, VERY_ODD)]
    batches += [alter_batch(3, place, NULL), batch_bytes(NewBatch([RECORD], base_offset=4))]
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))
    with serving(directory) as running:
        (found,) = by_librdkafka(running).values()
        assert [each.offset for each in found] == [0, 3, 4]
        assert (
            sum("bad-record: a record has a key, value or header with a negative size" in each for each in running.said)
            == 2
        )


@pytest.mark.usefixtures("kernel")
def test_a_message_with_an_odd_null_is_passed_over_as_damage(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    log = b"".join(message(offset, -2 if offset == 1 else -1) for offset in range(3))
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(log)
    with serving(tmp_path) as running:
        (found,) = by_librdkafka(running).values()
        assert [each.offset for each in found] == [0, 2]
