"""lz4 of brokers up to 0.9: with --fix-lz4 its frames have right checksums, as some clients require."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import lz4.frame
import pytest

from kseg.serve.values import ServeSettings
from tests import golden
from tests.serve.reading import by_librdkafka, on_disk
from tests.serve.running import Running, serving
from tests.serve.test_server import FETCH, open_connection, partition_of

OF_0_9 = golden.ROOT / "logs" / "0.9.0.1" / "lz4-0"
OTHERS = [
    golden.ROOT / "logs" / "0.10.2.2" / "lz4-0",
    golden.ROOT / "logs" / "0.9.0.1" / "snappy-0",
    golden.ROOT / "logs" / "2.3.1" / "compacted-lz4-0",
]
MENDS = ServeSettings(mends_lz4=True)
LZ4 = 3


def fetch_all(running: Running) -> bytes:
    """Return all bytes that the server sends of the only partition, fetch after fetch."""
    (partition,) = running.served.partitions
    found, offset = b"", partition.offsets().log_start
    with open_connection(running) as client:
        while offset < partition.offsets().log_end:
            part = {"partition": partition.number, "fetchOffset": offset, "partitionMaxBytes": 6000}
            topics = [{"topic": partition.topic, "partitions": [part]}]
            body = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1 << 20, "replicaId": -1, "topics": topics}
            records = partition_of(client.ask(FETCH, 11, body))["records"]
            found += records
            *_, last = messages(records)
            offset = int.from_bytes(last[:8], "big") + 1
    return found


def messages(records: bytes) -> Iterator[bytes]:
    """Yield messages of formats 0 and 1, each with its offset and size."""
    while records:
        end = 12 + int.from_bytes(records[8:12], "big")
        yield records[:end]
        records = records[end:]


def body_of(message: bytes) -> bytes:
    """Return the value of a message of format 0 without a key."""
    assert message[18:22] == b"\xff\xff\xff\xff"
    return message[26:]


def is_readable(body: bytes) -> bool:
    try:
        return bool(lz4.frame.decompress(body))
    except RuntimeError:
        return False


def stored_bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def test_frames_get_the_checksum_that_they_should_have() -> None:
    with serving(OF_0_9, settings=MENDS) as running:
        sent = list(messages(fetch_all(running)))
    on_the_disk = list(messages(stored_bytes(OF_0_9)))
    assert len(sent) == len(on_the_disk)
    for message, before in zip(sent, on_the_disk, strict=True):
        assert (len(message), message[:12]) == (len(before), before[:12])
        assert int.from_bytes(message[12:16], "big") == zlib.crc32(message[16:])
        if message[17] == LZ4:
            assert is_readable(body_of(message))
            assert not is_readable(body_of(before))
            assert sum(a != b for a, b in zip(message[16:], before[16:], strict=True)) == 1
        else:
            assert message == before


def test_without_the_option_all_goes_out_as_it_lies() -> None:
    with serving(OF_0_9) as running:
        assert fetch_all(running) == stored_bytes(OF_0_9)


@pytest.mark.parametrize("directory", OTHERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_is_right_goes_out_as_it_lies(directory: Path) -> None:
    with serving(directory, settings=MENDS) as running, serving(directory) as as_it_lies:
        (part,) = running.served.partitions
        body = {"partition": part.number, "fetchOffset": part.offsets().log_start, "partitionMaxBytes": 1 << 20}
        request = {"maxBytes": 1 << 20, "replicaId": -1, "topics": [{"topic": part.topic, "partitions": [body]}]}
        with open_connection(running) as one, open_connection(as_it_lies) as other:
            sent = [partition_of(each.ask(FETCH, 11, request))["records"] for each in (one, other)]
        assert sent[0] == sent[1]
        assert len(sent[0]) > 0


def test_librdkafka_reads_it_as_before() -> None:
    with serving(OF_0_9, settings=MENDS) as running:
        (found,) = by_librdkafka(running).values()
    assert found == [each._replace(timestamp=max(each.timestamp, 0)) for each in on_disk(OF_0_9)]
