"""Whatever happens to runs, requests and answers: the target gets each record once, in order."""

import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kseg.client import brokers as client
from kseg.client.brokers import Brokers
from kseg.cluster.cluster import Cluster
from kseg.formats.codes import Codec
from kseg.log.segments import RollSettings
from kseg.log.selection import EVERY_PARTITION
from kseg.log.writer import PartitionSettings, PartitionWriter
from kseg.restore import send
from kseg.restore.plan import Plan, Planning, RestoreRequest
from kseg.restore.run import RestoreReport, Step, run_restore
from kseg.writer.batches import RecordsBuilder
from tests.restore.fake_broker import FakeBroker

REQUEST = RestoreRequest(EVERY_PARTITION, group=None, job="test")
Contents = tuple[int, bytes | None, bytes | None, tuple[object, ...]]


class CrashError(Exception):
    """Stands for the end of a process."""


def write_partition(directory: Path, batches: int, chance: random.Random) -> list[Contents]:
    """Write batches of all kinds with gaps, in several segments; return the contents of their records."""
    directory.mkdir(parents=True)
    written: list[Contents] = []
    offset = 0
    with PartitionWriter(directory, settings=PartitionSettings(RollSettings(20_000))) as writer:
        for _ in range(batches):
            builder = RecordsBuilder(offset, codec=chance.choice([Codec.NONE, Codec.LZ4, Codec.ZSTD]))
            for _ in range(chance.choice([1, 2, 30, 200])):
                offset += chance.random() < 0.02
                value = chance.choice([None, b"", chance.randbytes(chance.choice([5, 300]))])
                headers: list[tuple[bytes, bytes | None]] = [(b"h\xff", None)] * (chance.random() < 0.1)
                record = chance.choice([0, -1, 5, 1_700_000_000_000]), chance.choice([None, b"k"]), value
                builder.append_at(offset, *record, headers)
                written.append((*record, tuple(headers)))
                offset += 1
            writer.append(builder.build().raw)
    return written


def plan_of(root: Path, request: RestoreRequest = REQUEST) -> Plan:
    planning = Planning(Cluster([root]), request, [root], lambda _: None)
    for _ in planning.read():
        pass
    return planning.plan()


def run_once(
    broker: FakeBroker, plan: Plan, request: RestoreRequest = REQUEST, on_sent: Callable[[int], None] = lambda _: None
) -> RestoreReport:
    with Brokers([broker.address], patience=5) as brokers:
        return run_restore(
            brokers, plan, request, lambda step: lambda records, _: on_sent(records * (step is Step.SEND))
        )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, list[list[Contents]]]:
    root = tmp_path_factory.mktemp("sources")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kseg.restore.source.CHECKPOINT_SIZE", 5000)
        return read_sources(root)


def read_sources(root: Path) -> tuple[Plan, list[list[Contents]]]:
    written = [write_partition(root / f"t-{number}", 40, random.Random(number)) for number in range(2)]
    plan = plan_of(root)
    assert all(len(each.survey.checkpoints) > 3 for each in plan.partitions)
    return plan, written


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches, and short pauses."""
    monkeypatch.setattr("kseg.restore.batches.JOINED_SIZE", 2000)
    monkeypatch.setattr(send, "FIRST_PAUSE", 0.0005)
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.0005)


def assert_all_once(broker: FakeBroker, written: list[list[Contents]]) -> None:
    for number, expected in enumerate(written):
        assert broker.logs["t"][number].records() == expected


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(0, 4000), max_size=4))
def test_each_record_arrives_once(
    sources: tuple[Plan, list[list[Contents]]], events: list[int], crashes: list[int]
) -> None:
    plan, written = sources
    with FakeBroker().running() as broker:
        broker.produced = deque(events)
        for crash in crashes:
            left = crash

            def count(records: int) -> None:
                nonlocal left
                left -= records
                if left < 0:
                    raise CrashError

            with suppress(CrashError):
                run_once(broker, plan, on_sent=count)
        run_once(broker, plan)
        assert_all_once(broker, written)


def test_a_restore_that_is_done_sends_nothing(sources: tuple[Plan, list[list[Contents]]]) -> None:
    plan, written = sources
    with FakeBroker().running() as broker:
        first, second = run_once(broker, plan), run_once(broker, plan)
        assert (first.sent_records, first.was_done) == (sum(map(len, written)), False)
        assert (second.sent_records, second.was_done) == (0, True)
        assert_all_once(broker, written)


def test_all_batches_are_of_one_producer(sources: tuple[Plan, list[list[Contents]]]) -> None:
    plan, _ = sources
    with FakeBroker().running() as broker:
        run_once(broker, plan)
        for log in broker.logs["t"]:
            assert len(log.producers) == 1
            assert [batch.base_sequence for _, batch in log.batches] == [base for base, _ in log.batches]


def test_sequences_begin_again_after_the_last(
    sources: tuple[Plan, list[list[Contents]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, written = sources
    monkeypatch.setattr("kseg.restore.batches.LARGEST_SEQUENCE", 1000)
    monkeypatch.setattr("tests.restore.fake_broker.SEQUENCES", 1000)
    with FakeBroker().running() as broker:
        run_once(broker, plan)
        assert_all_once(broker, written)
