"""Sends records by confluent-kafka, and prints the records per second: PARTITION, BOOTSTRAP, TOPIC, CODEC.

The records are in memory before the first one is sent. The time ends with the last acknowledgement.
"""

import sys
import time

from confluent_kafka import Producer

import kseg

PATIENCE = 60


def main() -> None:
    """Read, then send."""
    partition, bootstrap, topic, codec = sys.argv[1:]
    records = [
        (each.value, each.key, each.timestamp, [(header.key, header.value) for header in each.headers])
        for each in kseg.open(partition).records()
    ]
    settings = {"acks": "all", "enable.idempotence": True, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, **settings})
    started = time.monotonic()
    for value, key, timestamp, headers in records:
        while True:
            try:
                producer.produce(topic, value, key, 0, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(PATIENCE) == 0
    print(len(records) / (time.monotonic() - started))


if __name__ == "__main__":
    main()
