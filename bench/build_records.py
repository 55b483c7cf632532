"""Builds batches by one library, and prints records per CPU second: READER CODEC COUNT PER_BATCH VALUE_SIZE."""

import sys
import time
from collections.abc import Callable, Iterator

FIRST_TIMESTAMP = 1_760_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Build = Callable[[str, int, int, list[bytes], list[bytes]], None]


def build_kseg(codec: str, count: int, per_batch: int, keys: list[bytes], values: list[bytes]) -> None:
    """Build batches by kseg with one call per record, as the peers' builders require."""
    from kseg.formats.codes import Codec
    from kseg.writer.batches import RecordsBuilder

    for first in range(0, count, per_batch):
        builder = RecordsBuilder(first, codec=Codec[codec.upper()])
        for i in range(first, first + per_batch):
            builder.append(FIRST_TIMESTAMP + i, keys[i % 1000], values[i % 1000])
        builder.build()


def build_kseg_at_once(codec: str, count: int, per_batch: int, keys: list[bytes], values: list[bytes]) -> None:
    """Build batches by kseg with one call per batch."""
    from kseg.formats.codes import Codec
    from kseg.writer.batches import RecordsBuilder

    def records(first: int) -> Iterator[tuple[int, bytes, bytes, tuple[()]]]:
        for i in range(first, first + per_batch):
            yield FIRST_TIMESTAMP + i, keys[i % 1000], values[i % 1000], ()

    for first in range(0, count, per_batch):
        builder = RecordsBuilder(first, codec=Codec[codec.upper()])
        builder.extend(records(first))
        builder.build()


def build_aiokafka(codec: str, count: int, per_batch: int, keys: list[bytes], values: list[bytes]) -> None:
    """Build batches by the builder of the library's producer."""
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    _build_peer(DefaultRecordBatchBuilder, codec, count, per_batch, keys, values)


def build_kafka_python(codec: str, count: int, per_batch: int, keys: list[bytes], values: list[bytes]) -> None:
    """Build batches by the builder of the library's producer."""
    from kafka.record.default_records import DefaultRecordBatchBuilder

    _build_peer(DefaultRecordBatchBuilder, codec, count, per_batch, keys, values)


def _build_peer(
    builder_type: type, codec: str, count: int, per_batch: int, keys: list[bytes], values: list[bytes]
) -> None:
    for first in range(0, count, per_batch):
        builder = builder_type(
            magic=2,
            compression_type=CODECS.index(codec),
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 30,
        )
        for delta in range(per_batch):
            i = first + delta
            builder.append(delta, FIRST_TIMESTAMP + i, keys[i % 1000], values[i % 1000], [])
        builder.build()


READERS: dict[str, Build] = {
    "kseg": build_kseg,
    "kseg, at once": build_kseg_at_once,
    "aiokafka": build_aiokafka,
    "kafka-python": build_kafka_python,
}


def main() -> None:
    """Run the command line."""
    reader, codec, *numbers = sys.argv[1:]
    count, per_batch, value_size = map(int, numbers)
    values = [bytes([97 + i % 26]) * value_size for i in range(1000)]
    keys = [b"key-%d" % i for i in range(1000)]
    READERS[reader](codec, per_batch, per_batch, keys, values)  # imports
    start = time.process_time()
    READERS[reader](codec, count, per_batch, keys, values)
    print(count / (time.process_time() - start))


if __name__ == "__main__":
    main()
