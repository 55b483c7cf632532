"""A directory with the files that examples of help texts and documents name."""

import json
import shutil
import sys
import tarfile
from pathlib import Path

from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from kseg.index.rebuild import rebuild
from kseg.reading.log_file import LogFile
from tests import golden
from tests.decode.schemas_topic import new_client, schema_records, write_topic
from tests.log_files import COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.run import kseg

JQ = """import json, re, sys
path = re.fullmatch(r"\\.(\\w+)", sys.argv[-1])
for line in sys.stdin:
    print(json.dumps(json.loads(line).get(path[1])) if path else line, end="\\n" if path else "")
"""
"""The part of jq that examples need: `.name` prints a member, other filters print the lines unchanged."""
FIRST_OFFSET, RECORDS, PER_BATCH = 203000, 2000, 50
PROGRAMS = ("cat", "cut", "echo", "grep", "head", "seq", "sort", "tail", "uniq")
"""Programs of the system that examples run."""
STUBS = {
    "tcpdump": "#!/bin/sh\nexec cat clients.pcap\n",
    "jq": f"#!{sys.executable} -IS\n{JQ}",
    "kcat": f'#!/bin/sh\nexec {shutil.which("kcat") or "echo"} "$@"\n',
}
"""Replacements of other programs, installed or not: no test captures packets."""
START_MS = 1_793_500_200_000
"""2026-11-01T02:30: the examples' hours are among the records' timestamps, one second apart."""
LOG = f"{FIRST_OFFSET:020}"
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
INTERNAL = {
    "__consumer_offsets-1": 7,
    "__transaction_state-0": 7,
    "__cluster_metadata-0": 0,
    "__share_group_state-1": 1,
}
"""Golden partitions of internal topics, and their numbers in the examples."""


def make_sandbox(root: Path) -> Path:
    """Fill an empty directory; the examples run in it."""
    orders = _orders(root)
    for place in ("kafka-logs", "disk1/kafka-logs"):
        shutil.copytree(orders, root / place / "orders-0")
    for place in ("disk2/kafka-logs", "disk3/kafka-logs"):
        shutil.copytree(orders, root / place / "orders-1")
    for number in (1, 2, 3):
        shutil.copytree(orders, root / f"broker{number}" / "orders-0")
    for path in orders.iterdir():
        shutil.copy(path, root)
    shutil.copytree(golden.ROOT / "docs" / "test-1-0", root / "test-1-0")
    others = shutil.ignore_patterns("*0164-*", "aes-*")  # segments of another topic, and those that need a key
    shutil.copytree(golden.ROOT / "tiered" / "bucket", root / "bucket", ignore=others)
    shutil.copytree(root / "test-1-0", root / "kafka-logs/test-1-0")
    shutil.copytree(golden.ROOT / "logs/4.3.1/__transaction_state-0", root / "__transaction_state-7")
    _write_group(root / "__consumer_offsets-7")
    _write_metadata(root / "__cluster_metadata-0")
    _make_broker(root)
    for internal in root.glob("__*"):
        shutil.copytree(internal, root / "kafka-logs" / internal.name)
    (root / "map.csv").write_text(
        "topic,partition,firstOffset,endOffset,targetTopic,targetOffset\norders,0,0,9,orders,0\norders,0,9,9,orders,9\n"
    )
    (root / "kafka-logs/meta.properties").write_text("version=0\nbroker.id=1\n")
    shutil.copy(golden.ROOT / "protocol/4.3.1/clients.pcap", root)
    (root / "disk.img").write_bytes(bytes(1 << 20) + (orders / f"{LOG}.log").read_bytes())
    kseg(["carve", "disk.img", "--to", "recovered"], root)
    with tarfile.open(root / "support.tar.gz", "w:gz") as tar:
        tar.add(root / "orders-0", "orders-0")
    (root / "key.txt").write_text("for examples")
    (root / "records.jsonl").write_text('{"key":"a","value":"b"}\n{"key":"c","value":null}\n')
    for folder in (".zfunc", ".config/fish/completions", "copy", "piece", "day", "mended", "tmp", "out"):
        (root / folder).mkdir(parents=True)
    (root / "server.log").write_text(
        "[2026-11-01 03:00:01,201] WARN Loaded stray log: orders-7.0-stray (kafka.log.LogManager)\n"
    )
    (root / "report.sql").write_text("select count(*) from orders;\n")
    (root / "out/names.csv").write_text("key,name\ncustomer-7,Ada\n")
    return root


def make_programs(folder: Path) -> str:
    """Fill an empty directory with all programs that examples may run; return a PATH without others."""
    for name in PROGRAMS:
        program = shutil.which(name)
        assert program is not None
        (folder / name).symlink_to(program)
    (folder / "kseg").symlink_to(Path(sys.executable).with_name("kseg"))
    for name, script in STUBS.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return str(folder)


def _orders(root: Path) -> Path:
    """Write orders in Avro with customers as keys, and the registry's topic next to them; return the directory."""
    client = new_client()
    serialize = AvroSerializer(client, json.dumps(SCHEMA))
    context = SerializationContext("orders", MessageField.VALUE)
    records = [
        NewRecord(
            b"customer-%d" % (number % 10),
            serialize({"id": number}, context),
            START_MS + number * 1000,
            [("trace", b"%016x" % number)],
        )
        for number in range(RECORDS)
    ]
    batches = [
        NewBatch(records[first : first + PER_BATCH], FIRST_OFFSET + first) for first in range(0, RECORDS, PER_BATCH)
    ]
    transaction = batches[-1] = batches[-1]._replace(producer_id=7, producer_epoch=0, is_transactional=True)
    batches.append(marker(COMMIT, transaction, START_MS + RECORDS * 1000))
    log = write_segment(root / "orders-0", batches, FIRST_OFFSET)
    write_indexes(log)
    write_topic(root, schema_records(client))
    return log.parent


def _write_group(directory: Path) -> None:
    """Write a group of the orders' consumers, and its commits."""
    key = {"group": "orders-billing", "topic": "orders", "partition": 0}
    value = {"offset": FIRST_OFFSET + 100, "leaderEpoch": 0, "metadata": "", "commitTimestamp": START_MS}
    record = NewRecord(
        b"\0\1" + build_message(message_schema("OffsetCommitKey"), 0, key),
        b"\0\3" + build_message(message_schema("OffsetCommitValue"), 3, value),
        START_MS,
    )
    write_indexes(write_segment(directory, [NewBatch([record])]))


def _make_broker(root: Path) -> None:
    """Write both log directories of a broker with the orders, the second one empty; and one with a dynamic quorum."""
    (root / "dynamic").mkdir()
    for name in ("data1", "data2"):
        (root / name).mkdir()
        (root / name / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n")
    shutil.copytree(root / "kafka-logs/orders-0", root / "data1/orders-0")
    shutil.copytree(root / "__cluster_metadata-0", root / "data1/__cluster_metadata-0")
    for name in ("__cluster_metadata-0", "meta.properties"):
        copy = shutil.copytree if name.startswith("__") else shutil.copy
        copy(golden.ROOT / "logs/4.3.1" / name, root / "dynamic" / name)


def _write_metadata(directory: Path) -> None:
    """Write a cluster with the topic of the orders; frame version 1, type and version precede each message."""
    topic_id = "AAAAAAAAAAAAAAAAAAAAKg"
    partition = {"partitionId": 0, "topicId": topic_id, "replicas": [1], "isr": [1], "leader": 1}
    records = [
        b"\1\2\0" + build_message(message_schema("TopicRecord"), 0, {"name": "orders", "topicId": topic_id}),
        b"\1\3\0" + build_message(message_schema("PartitionRecord"), 0, partition),
    ]
    log = write_segment(directory, [NewBatch([NewRecord(None, record, START_MS) for record in records])])
    write_indexes(log)


def write_indexes(log: Path) -> None:
    """Write the indexes that a broker would have written."""
    with LogFile(log) as log_file:
        rebuilt = rebuild(log_file)
    log.with_suffix(".index").write_bytes(rebuilt.offset_index)
    log.with_suffix(".timeindex").write_bytes(rebuilt.time_index)
