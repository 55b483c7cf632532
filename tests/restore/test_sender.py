"""Whatever happens to runs, requests and answers: the target gets each record once, in order."""

import gzip
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kseg.client.brokers import Brokers
from kseg.cluster.cluster import Cluster
from kseg.errors import ClusterError
from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD, Codec
from kseg.kernel import load
from kseg.log.segments import RollSettings
from kseg.log.selection import EVERY_PARTITION
from kseg.log.writer import PartitionSettings, PartitionWriter
from kseg.restore.plan import Plan, Planning, RestoreRequest
from kseg.restore.run import RestoreReport, Step, append_plan, run_restore
from kseg.writer.batches import RecordsBuilder
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.restore.contents import Contents, contents_of
from tests.restore.fake_broker import FakeBroker, FakeLog
from tests.restore.fake_network import ADDRESSES, Event, FakeNetwork, Schedule

EXAMPLES = int(os.environ.get("EXAMPLES", "15"))
MOST_RUNS = 3
LONGEST = 100_000
"""Seconds of the network's clock after which the restore has no end."""
REQUEST = RestoreRequest(EVERY_PARTITION, group=None, job="test")


class Sources:
    """Two partitions: the plan of their restore, and the contents of their records. Its repr is short.

    schedules, requests: the numbers of tried ones.
    """

    def __init__(self, plan: Plan, written: list[list[Contents]]) -> None:
        self.plan, self.written = plan, written
        self.schedules = self.requests = 0


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
    broker: FakeBroker,
    plan: Plan,
    on_sent: Callable[[int], None] = lambda _: None,
    on_checked: Callable[[int], None] = lambda _: None,
) -> RestoreReport:
    calls = {Step.SEND: on_sent, Step.CHECK: on_checked}
    with Brokers([broker.address], patience=5) as brokers:
        return run_restore(brokers, plan, REQUEST, lambda step: lambda records, _: calls[step](records))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Sources]:
    """Yield the sources; show at the end what the model has tried."""
    root = tmp_path_factory.mktemp("sources")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kseg.restore.source.CHECKPOINT_SIZE", 5000)
        found = read_sources(root)
    yield found
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    if found.schedules and capture is not None:
        with capture.global_and_fixture_disabled():
            print(f"\nmodel: {found.schedules} schedules, {found.requests} requests")  # noqa: T201


def read_sources(root: Path) -> Sources:
    written = [write_partition(root / f"t-{number}", 40, random.Random(number)) for number in range(2)]
    plan = plan_of(root)
    assert all(len(each.survey.checkpoints) > 3 for each in plan.partitions)
    return Sources(plan, written)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches."""
    monkeypatch.setattr("kseg.restore.batches.MERGED_SIZE", 2000)


def assert_all_once(broker: FakeBroker, written: list[list[Contents]]) -> None:
    for number, expected in enumerate(written):
        assert broker.logs["t"][number].records() == expected


def restore_by(plan: Plan, request: RestoreRequest = REQUEST, tell: Callable[[str], None] = lambda _: None) -> None:
    with Brokers([*ADDRESSES.values()], tell=tell) as brokers:
        placed = append_plan(brokers, plan, request) if request.appends else plan
        run_restore(brokers, placed, request, lambda _: lambda records, size: None)


GAVE_UP = re.compile("check the broker.*run the command again$|since the plan; run the command again$")


def run_until_its_end(network: FakeNetwork, plan: Plan, request: RestoreRequest) -> bool:
    """Run a restore; return whether it has done everything. It may give up, if it says what to do."""
    try:
        return network.run(lambda: restore_by(plan, request))
    except ClusterError as error:
        if not GAVE_UP.search(str(error)):
            raise
        return False


HAPPENINGS = st.tuples(st.integers(0, 20), st.sampled_from(Event))
SCHEDULES = st.lists(HAPPENINGS, max_size=10) | st.lists(HAPPENINGS, min_size=20, max_size=60)
LOST_TWICE = [
    (4, Event.LOSE_ANSWER),
    (8, Event.LAG),
    (18, Event.LOSE_REQUEST),
    (16, Event.LOSE_REQUEST),
    (6, Event.SILENCE),
    (7, Event.KILL),
    (18, Event.LOST_TAIL),
    (8, Event.LOST_TAIL),
]
"""The log loses its last batch again between two questions about its end."""
SILENT_TWICE = [
    (4, Event.LAG),
    (2, Event.LOSE_ANSWER),
    (0, Event.LOSE_ANSWER),
    (9, Event.KILL_AFTER),
    (12, Event.RESTART),
    (0, Event.LOSE_ANSWER),
    (9, Event.OTHER_RUN),
    (17, Event.ELECTION),
    (8, Event.LOSE_ANSWER),
    (13, Event.ELECTION),
    (0, Event.LOSE_ANSWER),
    (5, Event.ELECTION),
    (8, Event.SILENCE),
    (0, Event.ELECTION),
    (15, Event.LOSE_ANSWER),
    *((0, Event.LOSE_ANSWER),) * 4,
    (18, Event.LOSE_ANSWER),
    (0, Event.LOSE_ANSWER),
    (0, Event.SILENCE),
    (5, Event.ELECTION),
]
"""Two minutes pass without an answer, and then a broker refuses a batch out of order once."""
FIRST_IS_REFUSED = [(2, Event.ELECTION), (20, Event.ELECTION), (0, Event.ELECTION)]
"""The broker refuses the first batch, and would take the second one."""


@settings(max_examples=EXAMPLES)
@given(SCHEDULES, st.sampled_from([None, 5, 2**31 - 100]))
@example(FIRST_IS_REFUSED, None)
@example([(10, Event.OTHER_RUN)], 5)
@example(LOST_TWICE, 5)
def test_each_record_arrives_once(sources: Sources, schedule: Schedule, base: int | None) -> None:
    """base: where the target's logs end before, and records are appended."""
    logs = [] if base is None else [FakeLog(end=base), FakeLog(end=base + 1)]
    broker = run_schedule(sources, schedule, replace(REQUEST, appends=base is not None), logs)
    assert_all_once(broker, sources.written)


def run_schedule(
    sources: Sources, schedule: Schedule, request: RestoreRequest, logs: list[FakeLog] | None = None
) -> FakeBroker:
    """Restore to the end while something happens to runs and requests; return the target. logs: of the topic before."""

    def run_another(network: FakeNetwork) -> None:
        if network.runs < MOST_RUNS:
            run_until_its_end(network, sources.plan, request)

    network = FakeNetwork(schedule, run_another)
    if logs:
        network.broker.logs["t"], network.broker.settings["t"] = logs, {}
    with pytest.MonkeyPatch.context() as patch, network.connected(patch):
        while not run_until_its_end(network, sources.plan, request) or network.has_lost_tail:
            assert network.clock.now < LONGEST, "it has no end"
        network.deliver_all()
    sources.schedules, sources.requests = sources.schedules + 1, sources.requests + network.handled
    return network.broker


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_large_batch_with_wrong_offsets_inside_is_encoded_again(tmp_path: Path, is_compressed: bool) -> None:
    """A broker wouldn't look at them in an uncompressed batch, and consumers would get wrong offsets."""
    values = [random.Random(number).randbytes(40_000) for number in range(3)]
    right = batch_bytes(NewBatch([NewRecord(b"k", value) for value in values]))
    write_files(tmp_path / "t-0", with_wrong_offset(right, is_compressed=is_compressed))
    with FakeBroker().running() as broker:
        run_once(broker, plan_of(tmp_path))
        assert [value for _, _, value, _ in broker.logs["t"][0].records()] == values


def write_files(directory: Path, log: bytes) -> None:
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(log)


def with_wrong_offset(raw: bytes, *, is_compressed: bool) -> bytes:
    """Return an uncompressed batch of large records whose first one has offset 4."""
    body = bytearray(raw[BATCH_HEADER_SIZE:])
    after_size = next(at for at, byte in enumerate(body) if byte < 0x80) + 1
    body[after_size + 2] = 8  # after the attributes and the timestamp; 8 is the varint of 4
    changed = bytearray(raw[:BATCH_HEADER_SIZE]) + (gzip.compress(body) if is_compressed else body)
    changed[8:12] = (len(changed) - LOG_OVERHEAD).to_bytes(4, "big")
    changed[22] = Codec.GZIP if is_compressed else Codec.NONE
    changed[17:21] = load().crc32c(memoryview(changed)[21:]).to_bytes(4, "big")
    return bytes(changed)


def test_a_restore_that_is_done_sends_nothing(sources: Sources) -> None:
    plan, written = sources.plan, sources.written
    with FakeBroker().running() as broker:
        first, second = run_once(broker, plan), run_once(broker, plan)
        assert (first.sent_records, first.was_done) == (sum(map(len, written)), False)
        assert (second.sent_records, second.was_done) == (0, True)
        assert_all_once(broker, written)


def test_a_topic_that_was_deleted_is_restored_again(sources: Sources) -> None:
    with FakeBroker().running() as broker:
        run_once(broker, sources.plan)
        del broker.logs["t"]
        report = run_once(broker, sources.plan)
        assert (report.sent_records, report.was_done) == (sum(map(len, sources.written)), False)
        assert_all_once(broker, sources.written)


def test_records_that_the_cleaner_removed_since_are_no_difference(sources: Sources) -> None:
    with FakeBroker().running() as broker:
        run_once(broker, sources.plan)
        cleaned, trimmed = broker.logs["t"]
        del cleaned.batches[5]
        trimmed.start = 10
        report = run_once(broker, sources.plan)
        assert (report.sent_records, report.was_done, report.shortened) == (0, True, ("t-0", "t-1"))


def test_a_lost_record_is_a_difference(sources: Sources) -> None:
    def lose(broker: FakeBroker) -> None:
        broker.logs["t"][1].batches[5:-1] = []

    with FakeBroker().running() as broker, pytest.raises(ClusterError, match=r"t-1: the record at offset .* differs"):
        run_once(broker, sources.plan, on_checked=lambda _: lose(broker))


def test_records_that_brokers_lose_meanwhile_are_no_difference(sources: Sources) -> None:
    """The brokers have lost records that were already compared."""
    checked = count(-len(sources.written[0]))

    def lose(broker: FakeBroker, records: int) -> None:
        if next(islice(checked, records - 1, None)) > 600:
            while broker.logs["t"][1].end > 500:
                broker.logs["t"][1].lose_tail()

    with FakeBroker().running() as broker:
        with pytest.raises(ClusterError, match=r"t-1: the target's log ends at .* its brokers have lost records"):
            run_once(broker, sources.plan, on_checked=lambda records: lose(broker, records))
        run_once(broker, sources.plan)
        assert_all_once(broker, sources.written)


@pytest.mark.parametrize("changed", [0, 3, 50])
def test_another_record_is_named(sources: Sources, changed: int) -> None:
    with FakeBroker().running() as broker:
        run_once(broker, sources.plan)
        log = broker.logs["t"][0]
        at, (base, found) = next(
            each for each in enumerate(log.batches) if each[1][0] + each[1][1].last_offset >= changed
        )
        contents = contents_of(found)
        timestamp, _, *others = contents[changed - base]
        contents[changed - base] = timestamp, b"another", *others
        builder = RecordsBuilder(0)
        builder.extend(contents)
        log.batches[at] = base, next(builder.build().shallow())
        with pytest.raises(ClusterError, match=rf"t-0: the record at offset {changed} of the target differs"):
            run_once(broker, sources.plan)


def test_a_lost_record_is_no_difference_once_another_run_has_ended(sources: Sources) -> None:
    """That run gives topics their cleaner back."""

    def let_another_run_end(broker: FakeBroker) -> None:
        if not broker.logs["t"][1].start:
            run_once(broker, sources.plan)
            broker.logs["t"][1].start = 10

    with FakeBroker().running() as broker:
        report = run_once(broker, sources.plan, on_checked=lambda _: let_another_run_end(broker))
        assert report.shortened == ("t-1",)


def one_record(sequence: int, producer_id: int) -> bytes:
    builder = RecordsBuilder(0, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    builder.append(0, b"k", None)
    return builder.build().raw


def test_another_programs_record_ends_the_run(sources: Sources) -> None:
    def write_another(broker: FakeBroker) -> None:
        broker.logs["t"][0].append(one_record(0, 1))

    with FakeBroker().running() as broker, pytest.raises(ClusterError, match="t-0: another program writes to it"):
        run_once(broker, sources.plan, on_sent=lambda _: write_another(broker))


def test_a_log_that_takes_no_next_record_ends_the_run(sources: Sources) -> None:
    """A request of an earlier run came after the topic was deleted and created again, and its record was deleted."""
    network = FakeNetwork((), lambda _: None)
    with pytest.MonkeyPatch.context() as patch, network.connected(patch):
        patch.setattr("kseg.restore.send.PATIENCE", 10)
        network.run(lambda: restore_by(sources.plan))
        (producer,) = network.broker.logs["t"][0].producers
        log = network.broker.logs["t"][0] = FakeLog()
        log.append(one_record(500, producer))
        log.start = 1
        with pytest.raises(ClusterError, match=r"t-0: .*OUT_OF_ORDER_SEQUENCE_NUMBER, .*; delete the topic and run"):
            network.run(lambda: restore_by(sources.plan))
        network.broker.logs["t"][0] = FakeLog()
        assert network.run(lambda: restore_by(sources.plan))
    assert_all_once(network.broker, sources.written)


def test_a_long_wait_is_explained_once(sources: Sources) -> None:
    network, told = FakeNetwork((), lambda _: None), list[str]()
    network.broker.logs["t"] = [FakeLog(refusals=8), FakeLog(refusals=8)]
    network.broker.settings["t"] = {}
    network.broker.throttle_ms = 5000
    with pytest.MonkeyPatch.context() as patch, network.connected(patch):
        assert network.run(lambda: restore_by(sources.plan, tell=told.append))
    assert len(told) == 2
    assert re.fullmatch("broker [78] slows the restore down to a quota; raise producer_byte_rate for speed", told[0])
    assert re.fullmatch("t-[01]: the broker answered NOT_ENOUGH_REPLICAS; kseg tries for another 1.. seconds", told[1])
    assert_all_once(network.broker, sources.written)


def test_a_record_that_a_broker_removes_meanwhile_is_written_again(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kseg.restore.run.REWRITE_SECONDS", 0)
    with FakeBroker().running() as broker:
        removed: list[str] = []

        def on_sent(_: int) -> None:
            if not removed:
                removed.append(broker.groups.popitem()[0])

        kept: list[bool] = []
        run_once(broker, sources.plan, on_sent, lambda _: kept.append(removed[0] in broker.groups))
        assert kept[0]


def test_all_batches_are_of_one_producer(sources: Sources) -> None:
    plan = sources.plan
    with FakeBroker().running() as broker:
        run_once(broker, plan)
        for log in broker.logs["t"]:
            assert len(log.producers) == 1
            assert [batch.base_sequence for _, batch in log.batches] == [base for base, _ in log.batches]


def test_sequences_begin_again_after_the_last(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, written = sources.plan, sources.written
    monkeypatch.setattr("kseg.restore.batches.LARGEST_SEQUENCE", 1000)
    monkeypatch.setattr("tests.restore.fake_broker.SEQUENCES", 1000)
    with FakeBroker().running() as broker:
        run_once(broker, plan)
        assert_all_once(broker, written)
