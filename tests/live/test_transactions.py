"""Transactions have the same outcome for kseg and for a broker that is started on the same disk, damaged or not.

Real producers make the history of a few partitions. Copies of these are damaged, each in its own way, and replace
topics. kseg reads the disk first; then a broker is started on it, queried and stopped; then kseg reads it again. Where
the two differ, the table of variants has the reason, and the sent records confirm kseg. Needs Java and Maven.
"""

import re
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.live import transaction_answers as asked
from tests.live.cluster import CLIENT_RELEASE
from tests.live.compared import Compared
from tests.live.one_broker import OneBroker
from tests.live.transaction_answers import Answers
from tests.live.transaction_history import ABORTS_LATE, EXPIRES, PARTITIONS, SOURCE, History, Records, writer
from tests.live.transaction_variants import MAY_DIFFER, VARIANTS, Reason, Variant
from tests.log.real_broker import PATIENCE, Broker, new_broker, put_in_place
from tests.releases import NEWEST_TWO

pytestmark = pytest.mark.kafka

SETTINGS = {
    "transaction.partition.verification.enable": "false",
    "auto.create.topics.enable": "false",
    "transaction.state.log.num.partitions": 3,
    **ABORTS_LATE,
}
SMALL = "1500"
"""The size of a segment in bytes: some ten batches."""
TIMEOUT_MINUTES = 15


class Disk(NamedTuple):
    """A stopped broker, a copy of its disk, its contents, and Kafka's tools."""

    broker: Broker
    made: Path
    history: History
    tools: Broker

    def lay(self, variants: dict[str, Variant], *, is_clean: bool) -> None:
        """Restore the original disk with some variants for the broker."""
        logs = self.broker.logs
        shutil.rmtree(logs)
        shutil.copytree(self.made, logs)
        for topic, variant in variants.items():
            put_in_place(self.made / f"{SOURCE}-{variant.source}", logs / f"{topic}-0")
            variant.edit(logs / f"{topic}-0")
        if not is_clean:
            (logs / ".kafka_cleanshutdown").unlink()


class Start(NamedTuple):
    """The answers on each variant: by kseg before a start, by the broker, and by kseg after its stop."""

    disk: Disk
    reasons: dict[str, Reason | None]
    before: dict[str, Answers]
    others: tuple[dict[str, Records], ...]
    said: dict[str, Answers]
    after: dict[str, Answers]
    tables: dict[str, list[dict[str, str]]]
    told: list[list[dict[str, object]]]


@pytest.fixture(scope="module", params=["3.9.1", *NEWEST_TWO])
def disk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Disk:
    from confluent_kafka.admin import AdminClient, NewTopic
    from kafka_classes import KafkaClasses

    broker = new_broker(tmp_path_factory, {**SETTINGS, **EXPIRES}, request.param)
    history = History()
    name = "segment.bytes" if request.param.startswith("3.") else "internal.segment.bytes"
    with broker.running("forgotten"):
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}", "log_level": 0})
        counts = {SOURCE: len(PARTITIONS), **dict.fromkeys(VARIANTS, 1)}
        wanted = [NewTopic(topic, n, 1, config={name: SMALL, "retention.ms": "-1"}) for topic, n in counts.items()]
        for future in admin.create_topics(wanted).values():
            future.result(PATIENCE)
        with writer(broker, history) as producers:
            producers.write_forgotten()
    properties = broker.work / "server.properties"
    kept = [line for line in properties.read_text().splitlines() if line.partition("=")[0] not in EXPIRES]
    properties.write_text("\n".join(kept))
    with broker.running("made"), writer(broker, history) as producers:
        producers.write()
    made = broker.work / "disk"
    shutil.copytree(broker.logs, made)
    classes = KafkaClasses(broker.tools.tool_artifacts(CLIENT_RELEASE), [], tmp_path_factory.mktemp("tools"))
    return Disk(broker, made, history, broker._replace(kafka=classes))


@pytest.fixture(scope="module", params=["clean", "unclean"])
def start(request: pytest.FixtureRequest, disk: Disk) -> Start:
    reasons = {topic: getattr(variant, request.param) for topic, variant in VARIANTS.items()}
    reasons = {topic: reason for topic, reason in reasons.items() if reason is not Reason.REFUSES}
    topics, logs, broker = list(reasons), disk.broker.logs, disk.broker
    disk.lay({topic: VARIANTS[topic] for topic in topics}, is_clean=request.param == "clean")
    before = asked.of_disk(logs, topics)
    others = asked.ask_export(logs, topics), asked.ask_query(logs, topics)
    told = [asked.lines(logs, "txns", "--now", "now")]
    with ExitStack() as running:
        running.enter_context(broker.running(request.param))
        said = asked.of_broker(broker.port, topics)
        tools = OneBroker(disk.tools, (logs,), 0, running)
        tables = {
            "list": tools.table("TransactionsCommand", "list"),
            "find-hanging": tools.table("TransactionsCommand", "find-hanging", "--broker-id", "1"),
            "describe-producers": tools.table(
                "TransactionsCommand", "describe-producers", "--topic", "intact-hanging", "--partition", "0"
            ),
        }
    told.append(asked.lines(logs, "txns", "--now", "now"))
    return Start(disk, reasons, before, others, said, asked.of_disk(logs, topics), tables, told)


def test_all_commands_give_the_same_records(start: Start, compared: Compared) -> None:
    """`dump` prints records with a wrong CRC too."""
    exported, queried = start.others
    compared.counts["dump, export and query"] += len(exported)
    assert exported == queried
    assert {topic: records - start.before[topic].records for topic, records in exported.items()} == dict.fromkeys(
        exported, frozenset()
    )


def test_records_are_committed_and_none_is_left_out(start: Start, compared: Compared) -> None:
    """The sent records decide."""
    exported, _ = start.others
    wrong = []
    for topic, answers in start.before.items():
        variant = VARIANTS[topic]
        if variant.is_misleading:
            continue
        compared.counts["truth"] += 1
        committed = start.disk.history.committed_records(variant.source)
        stable = start.disk.history.last_stable_offset(variant.source)
        read = {offset for offset, _ in answers.records}
        left_out = {offset for offset, _ in committed if offset < min(answers.stable, answers.end)} - read
        if exported[topic] - committed or left_out or answers.stable > (answers.end if stable is None else stable):
            wrong.append((topic, exported[topic] - committed, left_out, answers.stable))
    assert wrong == []


def differing(theirs: Answers, ours: Answers) -> dict[str, bool]:
    """Return the answers that differ; if the broker has cut the log, only the remaining records are compared."""
    if theirs.end < ours.end:
        kept = frozenset(record for record in ours.records if record[0] < theirs.stable)
        return {"records": theirs.records != kept}
    return {name: getattr(theirs, name) != getattr(ours, name) for name in Answers._fields}


def test_a_broker_says_what_kseg_says_before_it_starts(start: Start, compared: Compared) -> None:
    require_reasons(start.said, start.before, start.reasons, "before", compared)


def test_kseg_says_the_same_after_the_broker_has_stopped(start: Start, compared: Compared) -> None:
    """The broker has repaired an unclean disk, and changed nothing else."""
    is_clean = start.reasons["indexes-deleted"] is not None
    reasons = start.reasons if is_clean else dict.fromkeys(start.reasons)
    require_reasons(start.said, start.after, reasons, "after", compared)


def require_reasons(
    theirs: dict[str, Answers],
    ours: dict[str, Answers],
    reasons: dict[str, Reason | None],
    name: str,
    compared: Compared,
) -> None:
    """Check that each difference has a reason, and each reason a difference."""
    wrong = []
    for topic, reason in reasons.items():
        questions = differing(theirs[topic], ours[topic])
        found = {answer for answer, differs in questions.items() if differs}
        compared.counts[f"{name}: the same"] += len(questions) - len(found)
        if reason is not None:
            compared.counts[f"{name}: {reason.name.lower()}"] += len(found)
        if bool(found) != (reason is not None) or (reason is not None and not found <= MAY_DIFFER[reason]):
            alone = sorted(theirs[topic].records ^ ours[topic].records)
            wrong.append((topic, reason, found, alone[:9]))
    assert wrong == []


def test_coordinators_have_the_listed_transactional_ids(start: Start, compared: Compared) -> None:
    listed = [(row["TransactionalId"], row["ProducerId"], row["TransactionState"]) for row in start.tables["list"]]
    assert {name for name, _, state in listed if state == "Ongoing"} == {"left-0", "left-1"}
    assert not {name for name, _, _ in listed} & start.disk.history.forgotten.keys()
    for rows in start.told:
        ours = [row for row in rows if row["type"] == "coordinatorTransaction"]
        compared.rows("list", listed, [(row["transactionalId"], str(row["producerId"]), row["state"]) for row in ours])


def test_producers_with_open_transactions_are_those_that_are_described(start: Start, compared: Compared) -> None:
    described = [
        (row["ProducerId"], row["CurrentTransactionStartOffset"])
        for row in start.tables["describe-producers"]
        if row["CurrentTransactionStartOffset"] != "None"
    ]
    ours = start.before["intact-hanging"].open
    compared.rows("describe-producers", described, [tuple(map(str, each)) for each in ours])


def test_the_same_transactions_hang(start: Start, compared: Compared) -> None:
    """kseg leaves a transaction open if a damaged stretch may have had the marker."""
    excused = {topic for topic, reason in start.reasons.items() if reason in (Reason.SNAPSHOT, Reason.TORN)}
    theirs = {
        (row["Topic"], row["Partition"], row["ProducerId"], row["StartOffset"])
        for row in start.tables["find-hanging"]
        if row["Topic"] not in excused
    }
    ours = {
        (str(row["topic"]), str(row["partition"]), str(row["producerId"]), str(row["firstOffset"])): row["isHanging"]
        for row in start.told[1]
        if row["type"] == "transaction" and row["blocksLastStableOffset"] and row["topic"] not in excused
    }
    open_to_doubt = {key for key, is_hanging in ours.items() if is_hanging is None}
    compared.counts["find-hanging: left open by kseg"] += len(open_to_doubt)
    hanging = {key for key, is_hanging in ours.items() if is_hanging}
    compared.rows("find-hanging", theirs - open_to_doubt, hanging)
    assert open_to_doubt <= theirs
    assert {(SOURCE, "2")} == {(topic, number) for topic, number, *_ in hanging if topic == SOURCE}


def test_a_broker_refuses_bytes_that_are_no_batch_after_a_clean_stop(disk: Disk, compared: Compared) -> None:
    refused = {topic: variant for topic, variant in VARIANTS.items() if variant.clean is Reason.REFUSES}
    disk.lay(refused, is_clean=True)
    with pytest.raises(SystemExit), disk.broker.running("refused"):
        pass
    said = (disk.broker.work / "refused.txt").read_text()
    blamed = set(re.findall(r"CorruptRecordException: Found record size .*?/([a-z-]+)-0/0", said))
    compared.counts["refused"] += len(refused)
    assert blamed
    assert blamed <= refused.keys()
