"""aiokafka, kafka-python and kcat read the same as the disk has, except for directories that they can't read."""

import asyncio
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import golden
from tests.serve.reading import Got, by_kafka_python
from tests.serve.running import Running, log_directories, serving
from tests.serve.test_clients import BROKERS, LIBRDKAFKA_CANNOT, STRAY, as_librdkafka, by_aiokafka, expected_records
from tests.serve.test_java_clients import rising

pytestmark = [pytest.mark.kafka, pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")]

ROOTS = (*BROKERS, golden.ROOT / "damaged")
DAMAGED = {each.name for each in (golden.ROOT / "damaged").iterdir()}
LZ4_OF_FORMAT_0 = {
    *("v0-lz4-0", "lz4-0", "gaps-v0-lz4", "v0-lz4", "mixed", "000-torn-header", "012-zero-tail", "024-crc-zero"),
    *("036-length-max", "048-length-22", "060-magic-255", "072-codec-7", "100-flip-crc", "199-hole-zeros"),
    *("223-offset-negative", "234-message-value-short", "266-first-flipped-and-torn"),
}
TEXT_KEYS = {"157-record-header-key-not-utf8", "158-record-header-key-not-utf8"}
"""Headers' keys that aren't UTF-8, which Python's clients can't represent."""
TORN_WRAPPERS = {"242-inner-torn", "243-inner-torn"}
"""A torn message ends a wrapper: Java reads those before it."""

FALLING_OFFSETS = "offset-delta|inner-offsets|duplicated|reordered|offset-lower|offset-negative"


def with_aiokafka(running: Running) -> dict[str, list[Got]]:
    return asyncio.run(by_aiokafka(running))


def with_kcat(running: Running) -> dict[str, list[Got]]:
    """Read with kcat, without headers. Records of a topic come in any order of partitions."""
    found: dict[str, list[Got]] = {str(each): [] for each in running.served.partitions}
    for topic in running.served.topics:
        line = ["-C", "-b", running.bootstrap, "-t", topic, "-o", "beginning", "-e", "-q"]
        settings = ["-X", "isolation.level=read_uncommitted", "-X", "fetch.wait.max.ms=10", "-X", "check.crcs=true"]
        form = r"%p %o %T %K %S\n%k%s\n"
        left = subprocess.run(["kcat", *line, *settings, "-f", form], capture_output=True, check=True).stdout
        while left:
            numbers, _, left = left.partition(b"\n")
            partition, offset, timestamp, *sizes = map(int, numbers.split())
            key, value = (None if size < 0 else left[start : start + size] for size, start in _places(*sizes))
            left = left[sum(max(size, 0) for size in sizes) + 1 :]
            found[f"{topic}-{partition}"].append(Got(offset, timestamp, key, value, ()))
    return found


def _places(key_size: int, value_size: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (key_size, 0), (value_size, max(key_size, 0))


def names(pattern: str) -> set[str]:
    """Return names of damaged directories."""
    return {each for each in DAMAGED if re.search(pattern, each)}


CLIENTS: dict[str, tuple[Callable[[Running], dict[str, list[Got]]], set[str]]] = {
    "aiokafka": (
        with_aiokafka,
        {
            *LZ4_OF_FORMAT_0,  # it rejects these
            *TEXT_KEYS,
            *TORN_WRAPPERS,
            "mixed-gzip-0",  # it skips the rest where the format changes
            "unused-attributes",  # bits that Kafka ignores make its CRC check fail
            "115-last-offset-delta-large",  # it trusts that offset, and skips a batch
        },
    ),
    "kafka-python": (
        by_kafka_python,
        {
            *TEXT_KEYS,
            *TORN_WRAPPERS,
            "timestamps-v2",  # it shows timestamps below -1 as -1
            *names(FALLING_OFFSETS),  # it returns them
        },
    ),
    "kcat": (with_kcat, {*LIBRDKAFKA_CANNOT, *names(FALLING_OFFSETS)}),  # Debian's, which is older, returns some
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("root", ROOTS, ids=lambda path: path.name)
def test_a_client_reads_what_is_on_the_disk(client: str, root: Path) -> None:
    read, cannot = CLIENTS[client]
    directories = [each for each in log_directories(root) if each.name not in cannot | STRAY.keys()]
    with serving(*directories) as running:
        got, wanted = read(running), expected_records(running)
    shown = as_kcat if client == "kcat" else as_it_is
    for name, records in wanted.items():
        assert [shown(each) for each in got[name]] == [shown(each) for each in rising(records)], name


def as_it_is(record: Got) -> Got:
    return record


def as_kcat(record: Got) -> Got:
    """Return the record without headers, which kcat doesn't print here, and without timestamps up to 0."""
    return as_librdkafka(record)._replace(headers=())
