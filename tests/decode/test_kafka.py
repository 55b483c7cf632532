"""Records that the newest Kafka's serializers wrote: kseg shows them as Kafka's JSON converters and dump tool do."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from kseg.formats.message_json import json_text, json_value
from kseg.formats.messages import Fields, build_message, parse_message
from kseg.formats.schemas import MessageSchema, messages_in, version_range
from tests import run
from tests.formats.test_messages import fields_of
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.releases import NEWEST
from tools.kafka_classes import KafkaClasses

pytestmark = pytest.mark.kafka

ARTIFACTS = [f"org.apache.kafka:{name}:{NEWEST}" for name in ("kafka_2.13", "kafka-tools")]
EXAMPLES = 40
"""Random values of each version of each message."""
DUMPED = 12
"""The same in a log for the real tool."""
PACKAGES: dict[str, str] = {
    "consumer_offsets": "org.apache.kafka.coordinator.group.generated",
    "transaction_state": "org.apache.kafka.coordinator.transaction.generated",
    "share_group_state": "org.apache.kafka.coordinator.share.generated",
    "cluster_metadata": "org.apache.kafka.common.metadata",
    "remote_log_metadata": "org.apache.kafka.server.log.remote.metadata.storage.generated",
    "consumer_protocol": "org.apache.kafka.common.message",
    "control_records": "org.apache.kafka.common.message",
}


class Kind(NamedTuple):
    """A version of a message, and the Java package of its class."""

    package: str
    message: MessageSchema
    version: int

    def __str__(self) -> str:
        return f"{self.message.name}-{self.version}"


def kinds_of(*files: str) -> list[Kind]:
    """Every version of every message."""
    return [
        Kind(PACKAGES[file], message, version)
        for file in files
        for message in messages_in(file)
        for first, last in [version_range(message.versions)]
        for version in range(first, last + 1)
    ]


KINDS = kinds_of(*PACKAGES)


class Kafka:
    """A process with Kafka's classes; see tools/WriteMessages.java for its input and output."""

    def __init__(self, classes: KafkaClasses, process: "subprocess.Popen[str]") -> None:
        self.classes = classes
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def write(self, kind: Kind, value: Fields, frame: str = "bare") -> tuple[bytes, str]:
        """Return the bytes and the JSON that Kafka writes for a message."""
        text = json.dumps(json_value(kind.message, kind.version, value), ensure_ascii=True)
        self._stdin.write(f"{frame} {kind.package}.{kind.message.name} {kind.version} {text}\n")
        self._stdin.flush()
        answer = self._stdout.readline().rstrip("\n")
        assert not answer.startswith("!"), f"{kind} {text}: {answer}"
        data, _, shown = answer.partition(" ")
        return bytes.fromhex(data), shown


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    classes = KafkaClasses(ARTIFACTS, ["WriteMessages"], tmp_path_factory.mktemp("classes"))
    with subprocess.Popen(
        classes.command("WriteMessages"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        yield Kafka(classes, process)


def short_double(value: float) -> float:
    """A double in its place that every Java prints alike: before 19 some have digits too many (JDK-4511638)."""
    return hash(value) % 2**30 / 1024


def random_values(kind: Kind, count: int = EXAMPLES) -> list[Fields]:
    """Random values of a message; the same ones each time."""
    found: list[Fields] = []

    @seed(len(kind.message.name) + kind.version)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(fields_of(kind.message.fields, kind.version))
    def collect(value: Fields) -> None:
        doubles = {field.name for field in kind.message.fields if field.type == "float64"}
        found.append({name: short_double(one) if name in doubles else one for name, one in value.items()})

    collect()
    return found


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_message_that_kafka_wrote_is_shown_as_kafkas_json(kafka: Kafka, kind: Kind) -> None:
    for value in random_values(kind):
        data, shown = kafka.write(kind, value)
        parsed, end = parse_message(kind.message, kind.version, data)
        assert end == len(data)
        assert json_text(json_value(kind.message, kind.version, parsed)) == shown
        assert build_message(kind.message, kind.version, parsed) == data


# --- the dump tool ---------------------------------------------------------------------------------------------------


def coordinator_records(kafka: Kafka, file: str, count: int = DUMPED) -> Iterator[NewRecord]:
    """Records with random keys and values of each version, and tombstones."""
    kinds = kinds_of(file)
    values: dict[int | None, list[bytes]] = {kind.message.api_key: [] for kind in kinds}
    for kind in kinds:
        if kind.message.kind == "coordinator-value":
            values[kind.message.api_key] += [
                kafka.write(kind, value, "value")[0]
                for value in random_values(kind, count) + embedded_fields(kafka, kind)
            ]
    for kind in kinds:
        if kind.message.kind == "coordinator-key":
            keys = [kafka.write(kind, value, "key")[0] for value in random_values(kind, count)]
            for number, value in enumerate([*values[kind.message.api_key], None]):
                yield NewRecord(keys[number % len(keys)], value)


def embedded_fields(kafka: Kafka, kind: Kind) -> list[Fields]:
    """Groups of consumers, whose members' subscriptions and assignments are messages themselves."""
    if kind.message.name != "GroupMetadataValue":
        return []
    inner = {
        name: [
            kafka.write(each, value, "value")[0]
            for each in kinds_of("consumer_protocol")
            if word in each.message.name
            for value in random_values(each, 2)
        ]
        for name, word in (("subscription", "Subscription"), ("assignment", "Assignment"))
    }
    (value,) = random_values(kind, 1)[:1]
    pairs = zip(inner["subscription"], inner["assignment"], strict=True)
    member = {"memberId": "m", "clientId": "c", "clientHost": "h", "sessionTimeout": 1, "rebalanceTimeout": 2}
    members = [{**member, "groupInstanceId": None, "subscription": one, "assignment": other} for one, other in pairs]
    names = {
        field.name
        for field in next(field for field in kind.message.fields if field.name == "members").fields
        if kind.version in version_range(field.versions)
    }
    members = [{name: text for name, text in each.items() if name in names} for each in members]
    return [{**value, "protocolType": "consumer", "members": members}]


def framed_records(kafka: Kafka, file: str, count: int = DUMPED) -> Iterator[NewRecord]:
    """Records of each version of each message; of each value that Kafka's classes may refuse a likelier one too."""
    for kind in kinds_of(file):
        for value in random_values(kind, count):
            for one in (value, likely(value)):
                yield NewRecord(None, kafka.write(kind, one, "record")[0])


def likely(value: Fields) -> Fields:
    """The value with states that there are, offsets that rise, and leader epochs."""
    changed: Fields = {name: number % 5 for name, number in value.items() if name.endswith("State")}
    if "endOffset" in value:
        first, last = sorted((abs(value["startOffset"]) >> 1, abs(value["endOffset"]) >> 1))
        changed |= {"startOffset": first, "endOffset": last}
        changed["segmentLeaderEpochs"] = value["segmentLeaderEpochs"] or [{"leaderEpoch": 7, "offset": first}]
    return value | changed


CONTROL_TYPES = {
    "LeaderChangeMessage": 2,
    "SnapshotHeaderRecord": 3,
    "SnapshotFooterRecord": 4,
    "KRaftVersionRecord": 5,
    "VotersRecord": 6,
}


def control_batches(kafka: Kafka, offset: int) -> Iterator[NewBatch]:
    """Control records as KRaft has them: version 0 of each."""
    for kind in kinds_of("control_records"):
        number = CONTROL_TYPES.get(kind.message.name)
        for value in random_values(kind, 3) if number is not None and kind.version == 0 else ():
            data, _ = kafka.write(kind, {**value, "version": 0})
            yield NewBatch([NewRecord(bytes([0, 0, 0, number or 0]), data)], offset, is_control=True)
            offset += 1


TOPICS = {
    "offsets-decoder": "consumer_offsets",
    "transaction-log-decoder": "transaction_state",
    "share-group-state-decoder": "share_group_state",
    "cluster-metadata-decoder": "cluster_metadata",
    "remote-log-metadata-decoder": "remote_log_metadata",
}


@pytest.mark.parametrize("option", TOPICS)
def test_dump_of_what_kafka_wrote_is_the_real_tools(kafka: Kafka, option: str, tmp_path: Path) -> None:
    file = TOPICS[option]
    is_framed = file in ("cluster_metadata", "remote_log_metadata")
    records = list((framed_records if is_framed else coordinator_records)(kafka, file))
    batches = [NewBatch([record], offset) for offset, record in enumerate(records)]
    if file == "cluster_metadata":
        batches += control_batches(kafka, len(batches))
    log = write_segment(tmp_path / "topic-0", batches).relative_to(tmp_path)
    arguments = ["--files", str(log), f"--{option}"]
    real = subprocess.run(
        kafka.classes.command("org.apache.kafka.tools.DumpLogSegments", *arguments),
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    ours = run.kseg(["dump", "--like", NEWEST, *arguments], tmp_path).stdout
    for line, wanted in zip(ours.split(b"\n"), real.stdout.split(b"\n"), strict=False):
        assert line == wanted
    assert ours == real.stdout
