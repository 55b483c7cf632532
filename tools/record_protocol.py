"""Records the messages between real clients and a real broker: `--out clients.pcap`.

A broker (KRaft, on 127.0.0.1) names a small proxy as its address; the proxy passes bytes on and writes them down as the
packets of a capture. Kafka's own tools (Java), aiokafka and librdkafka then make topics, write, read in groups and in
transactions, and look at what there is. Needs Java and Maven, and the Python packages dpkt, aiokafka, confluent-kafka.
Payloads are fixed; ids, times and the order of connections are not, so that two recordings differ.
"""

import argparse
import asyncio
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

import dpkt
import make_golden
from kafka_classes import KafkaClasses

LARGEST_PAYLOAD = 1400
"""Bytes of a packet's payload, as in Ethernet."""
CLIENT_HOST, BROKER_HOST = bytes([10, 0, 0, 2]), bytes([10, 0, 0, 1])
"""Addresses in the capture; two addresses are clearer in documentation than 127.0.0.1 twice."""
BROKER_PORT = 9092
TOOLS = "org.apache.kafka.tools."
JAVA_SECONDS = 120


class Recorder:
    """A capture of the packets of several connections, in the order in which they passed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._writer = dpkt.pcap.Writer(file)
        self._lock = threading.Lock()
        self._sequences: dict[tuple[int, bool], int] = {}

    def open(self, port: int) -> None:
        """Write the three packets that open a connection."""
        with self._lock:
            self._sequences[port, True], self._sequences[port, False] = port * 1000, port * 2000
            self._packet(port, True, dpkt.tcp.TH_SYN)
            self._sequences[port, True] += 1
            self._packet(port, False, dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK)
            self._sequences[port, False] += 1
            self._packet(port, True, dpkt.tcp.TH_ACK)

    def pass_on(self, port: int, is_client: bool, content: bytes) -> None:
        """Write bytes that one side sent."""
        with self._lock:
            for at in range(0, len(content), LARGEST_PAYLOAD):
                payload = content[at : at + LARGEST_PAYLOAD]
                self._packet(port, is_client, dpkt.tcp.TH_PUSH | dpkt.tcp.TH_ACK, payload)
                self._sequences[port, is_client] += len(payload)

    def close(self, port: int, is_client: bool) -> None:
        """Write the packet with which one side ends its stream."""
        with self._lock:
            self._packet(port, is_client, dpkt.tcp.TH_FIN | dpkt.tcp.TH_ACK)
            self._sequences[port, is_client] += 1

    def _packet(self, port: int, is_client: bool, flags: int, payload: bytes = b"") -> None:
        ports = (port, BROKER_PORT) if is_client else (BROKER_PORT, port)
        hosts = (CLIENT_HOST, BROKER_HOST) if is_client else (BROKER_HOST, CLIENT_HOST)
        segment = dpkt.tcp.TCP(
            sport=ports[0],
            dport=ports[1],
            seq=self._sequences[port, is_client] % (1 << 32),
            ack=self._sequences[port, not is_client] % (1 << 32) if flags & dpkt.tcp.TH_ACK else 0,
            flags=flags,
            data=payload,
        )
        packet = dpkt.ip.IP(src=hosts[0], dst=hosts[1], p=dpkt.ip.IP_PROTO_TCP, ttl=64, data=segment)
        packet.len = len(packet)
        self._writer.writepkt(dpkt.ethernet.Ethernet(data=packet), time.time())


class Proxy:
    """Passes connections to a port to the broker, and records them."""

    def __init__(self, broker_port: int, recorder: Recorder) -> None:
        self._broker_port = broker_port
        self._recorder = recorder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, (_, port) = self._listener.accept()
            except OSError:
                return  # closed
            broker = socket.create_connection(("127.0.0.1", self._broker_port))
            self._recorder.open(port)
            for source, target, is_client in ((client, broker, True), (broker, client, False)):
                threading.Thread(target=self._pump, args=(source, target, port, is_client), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, port: int, is_client: bool) -> None:
        try:
            while content := source.recv(1 << 16):
                # Recorded first: a response must not precede its request.
                self._recorder.pass_on(port, is_client, content)
                target.sendall(content)
            self._recorder.close(port, is_client)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the other side has closed

    def close(self) -> None:
        """Stop accepting connections."""
        self._listener.close()


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.3.1", help="Kafka's release, 4.0 or later (%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="a new file for the capture")
    arguments = parser.parse_args()
    if arguments.out.exists():
        parser.error(f"{arguments.out} is there already")
    with tempfile.TemporaryDirectory() as work, arguments.out.open("wb") as file:
        record(arguments.release, Recorder(file), Path(work))
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")
    return 0


def record(release: str, recorder: Recorder, work: Path) -> None:
    """Start the broker behind a proxy and run each client. `work` is scratch."""
    kafka = KafkaClasses(
        [*make_golden.tool_artifacts(release), f"org.slf4j:slf4j-simple:{make_golden.SLF4J}"],
        ["RunDumps"],
        work,
    )
    port, controller_port = make_golden.free_port(), make_golden.free_port()
    proxy = Proxy(port, recorder)
    text = make_golden.server_properties(port, controller_port, work / "broker-logs")
    text = text.replace(f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}", f"advertised.listeners={proxied(proxy)}")
    properties = work / "server.properties"
    properties.write_text(text)
    storage = ("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties))
    subprocess.run(kafka.command(*storage, options=[make_golden.QUIET]), check=True, stdout=subprocess.DEVNULL)
    broker = subprocess.Popen(kafka.command("kafka.Kafka", str(properties), options=[make_golden.WARNINGS]))
    try:
        make_golden.wait_until(lambda: make_golden.is_listening(port), make_golden.START_SECONDS, "no broker", broker)
        server = f"127.0.0.1:{proxy.port}"
        use_java(kafka, server, work)
        asyncio.run(use_aiokafka(server))
        use_librdkafka(server)
    finally:
        proxy.close()
        broker.terminate()
        broker.wait()


def proxied(proxy: Proxy) -> str:
    """Return the address that the broker advertises."""
    return f"PLAINTEXT://127.0.0.1:{proxy.port}"


def lines(name: str, count: int) -> list[str]:
    """Return values of records, of which every fifth repeats itself so that it compresses."""
    return [f"{name} {number} {'more of it ' * (number % 5)}" for number in range(count)]


def use_java(kafka: KafkaClasses, server: str, work: Path) -> None:
    """Run Kafka's own tools: topics, console producer and consumer in three kinds of groups, transactions, admin."""

    def run(tool: str, *arguments: str, text: str = "") -> None:
        command = kafka.command(TOOLS + tool, *arguments, options=[make_golden.QUIET])
        subprocess.run(command, input=text.encode(), stdout=subprocess.DEVNULL, timeout=JAVA_SECONDS, check=True)

    at = ("--bootstrap-server", server)
    group_settings = work / "consumer.properties"
    group_settings.write_text("group.protocol=consumer\n")
    run("TopicCommand", *at, "--create", "--topic", "java", "--partitions", "2")
    run("TopicCommand", *at, "--describe", "--topic", "java")
    keyed = "".join(f"key-{number % 3}\t{line}\n" for number, line in enumerate(lines("java", 20)))
    keys = ("--reader-property", "parse.key=true")
    run("ConsoleProducer", *at, "--topic", "java", "--compression-codec", "zstd", *keys, text=keyed)
    read = ("--topic", "java", "--from-beginning", "--max-messages", "20", "--timeout-ms", "20000")
    run("consumer.ConsoleConsumer", *at, *read, "--group", "java-classic")
    run("consumer.ConsoleConsumer", *at, *read, "--group", "java-new", "--consumer.config", str(group_settings))
    transactional = ("--transactional-id", "java-transactions", "--transaction-duration-ms", "20")
    speed = ("--num-records", "10", "--record-size", "50", "--throughput", "100")
    settings = ("--producer-props", f"bootstrap.servers={server}")
    run("ProducerPerformance", "--topic", "java", *speed, *settings, *transactional)
    run("TransactionsCommand", *at, "list")
    run("consumer.group.ConsumerGroupCommand", *at, "--describe", "--group", "java-classic", "--offsets")
    run("GetOffsetShell", *at, "--topic", "java")
    run("LogDirsCommand", *at, "--describe", "--topic-list", "java")


async def use_aiokafka(server: str) -> None:
    """Run aiokafka: a producer, a transaction with a group's offsets, a consumer in a group."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    admin = AIOKafkaAdminClient(bootstrap_servers=server)
    await admin.start()
    await admin.create_topics([NewTopic("aiokafka", 1, 1)])
    await admin.list_consumer_groups()
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=server, compression_type="gzip", enable_idempotence=True) as producer:
        for line in lines("aiokafka", 20):
            await producer.send("aiokafka", line.encode(), headers=[("kind", b"plain")])
    consumer = AIOKafkaConsumer(
        "aiokafka",
        bootstrap_servers=server,
        group_id="aiokafka",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=server, transactional_id="aiokafka") as producer:
        for _ in range(20):
            await asyncio.wait_for(consumer.getone(), make_golden.START_SECONDS)
        offsets = {place: await consumer.position(place) for place in consumer.assignment()}
        async with producer.transaction():
            await producer.send_and_wait("aiokafka", b"in a transaction")
            await producer.send_offsets_to_transaction(offsets, "aiokafka")
        await consumer.commit()


def use_librdkafka(server: str) -> None:
    """Run librdkafka: a producer with lz4 and snappy, committed and aborted transactions, a group's consumer, admin."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

    base: dict[str, Any] = {"bootstrap.servers": server}
    admin = AdminClient(base)
    for made in admin.create_topics([NewTopic("librdkafka", 1, 1)]).values():
        made.result(make_golden.START_SECONDS)
    for codec in ("lz4", "snappy"):
        producer = Producer({**base, "compression.codec": codec, "linger.ms": 50})
        for line in lines(f"librdkafka {codec}", 10):
            producer.produce("librdkafka", line, key=codec)
        producer.flush(make_golden.START_SECONDS)
    producer = Producer({**base, "transactional.id": "librdkafka"})
    producer.init_transactions(make_golden.START_SECONDS)
    for is_kept in (True, False):
        producer.begin_transaction()
        producer.produce("librdkafka", f"kept: {is_kept}")
        producer.flush(make_golden.START_SECONDS)
        if is_kept:
            producer.commit_transaction(make_golden.START_SECONDS)
        else:
            producer.abort_transaction(make_golden.START_SECONDS)
    consumer = Consumer(
        {**base, "group.id": "librdkafka", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe(["librdkafka"])
    for _ in range(21):
        assert consumer.poll(make_golden.START_SECONDS) is not None
    consumer.commit(asynchronous=False)
    consumer.close()
    for described in admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "librdkafka")]).values():
        described.result(make_golden.START_SECONDS)
    admin.list_consumer_groups().result(make_golden.START_SECONDS)
    for deleted in admin.delete_topics(["librdkafka"]).values():
        deleted.result(make_golden.START_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
