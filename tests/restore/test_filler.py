"""Restores that keep the offsets of logs that begin later than at 0."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings

from kseg.client.connection import DELETE_RECORDS
from kseg.formats.codes import Codec
from kseg.log.writer import PartitionWriter
from kseg.writer.batches import RecordsBuilder
from tests import run
from tests.commands.test_restore import write_groups
from tests.restore.fake_network import Schedule
from tests.restore.strict_broker import StrictBroker
from tests.restore.test_sender import (
    EXAMPLES,
    REQUEST,
    SCHEDULES,
    SILENT_TWICE,
    Contents,
    Sources,
    assert_all_once,
    plan_of,
    run_schedule,
    write_partition,
)

FIRSTS = (107, 1000)
"""The first offsets of the partitions."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches."""
    monkeypatch.setattr("kseg.restore.batches.MERGED_SIZE", 2000)
    monkeypatch.setattr("kseg.restore.filler.FILLER_COUNT", 60)


def write_later_partition(directory: Path, first: int) -> list[Contents]:
    """Write batches without gaps from an offset on; return the contents of their records."""
    directory.mkdir(parents=True)
    written: list[Contents] = []
    with PartitionWriter(directory) as writer:
        for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD) * 4:
            builder = RecordsBuilder(first, codec=codec)
            for _ in range(25):
                builder.append_at(first, 1_700_000_000_000, b"k", b"%d" % first, [])
                written.append((1_700_000_000_000, b"k", b"%d" % first, ()))
                first += 1
            writer.append(builder.build().raw)
    return written


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    root = tmp_path_factory.mktemp("sources")
    written = [write_later_partition(root / f"t-{number}", first) for number, first in enumerate(FIRSTS)]
    return Sources(plan_of(root, replace(REQUEST, keeps_offsets=True)), written)


@settings(max_examples=EXAMPLES)
@given(SCHEDULES)
@example(SILENT_TWICE)
def test_each_record_arrives_once_at_its_offset(sources: Sources, schedule: Schedule) -> None:
    broker = run_schedule(sources, schedule, replace(REQUEST, keeps_offsets=True))
    assert_all_once(broker, sources.written)
    assert [log.start for log in broker.logs["t"]] == [*FIRSTS]


@pytest.fixture
def broker() -> Iterator[StrictBroker]:
    with StrictBroker(set()).running() as running:
        yield running


def restore(broker: StrictBroker, root: Path, *options: str) -> run.Run:
    words = ["restore", "disk", "--bootstrap", "{}:{}".format(*broker.address), "--job", "j", "--yes"]
    return run.kseg([*words, "--offsets", "keep", *options], root)


def test_groups_and_maps_keep_their_offsets(broker: StrictBroker, tmp_path: Path) -> None:
    written = write_later_partition(tmp_path / "disk" / "t-0", 107)
    write_groups(tmp_path / "disk", {"below": 3, "inside": 120, "beyond": 10**9})
    ran = restore(broker, tmp_path, "--mapping", "map.csv", "-o", "json", "-q")
    assert ran.status == 0, ran.stderr
    plan = json.loads(ran.stdout.splitlines()[0])
    assert (plan["keepsOffsets"], plan["firstTargetOffset"]) == (True, 107)
    log = broker.logs["t"][0]
    assert (log.start, log.end, log.records()) == (107, 107 + len(written), written)
    found = {name: broker.groups[name]["t", 0][0] for name in ("below", "inside", "beyond")}
    assert found == {"below": 107, "inside": 120, "beyond": log.end}
    assert (tmp_path / "map.csv").read_text().splitlines()[1] == f"t,0,107,{log.end},t,107"
    again = restore(broker, tmp_path)
    assert (b"offsets stay" in again.stdout, b"already restored" in again.stdout) == (True, True)


def test_a_later_run_deletes_the_empty_records_that_a_killed_broker_has_again(
    broker: StrictBroker, tmp_path: Path
) -> None:
    write_later_partition(tmp_path / "disk" / "t-0", 107)
    assert restore(broker, tmp_path).status == 0
    broker.logs["t"][0].start = 0
    ran = restore(broker, tmp_path)
    assert (b"already restored" in ran.stdout, broker.logs["t"][0].start) == (True, 107)


def test_logs_with_gaps_are_refused(broker: StrictBroker, tmp_path: Path) -> None:
    write_partition(tmp_path / "disk" / "t-0", 20, random.Random(1))
    ran = restore(broker, tmp_path)
    problem = b"t-0: --offsets keep: its log has gaps, and kseg fills none; use --offsets translate"
    assert (ran.status, problem in ran.stderr, broker.logs) == (2, True, {})


def test_the_right_to_delete_is_needed(broker: StrictBroker, tmp_path: Path) -> None:
    write_later_partition(tmp_path / "disk" / "t-0", 1)
    broker.refused.add(DELETE_RECORDS.key)
    ran = restore(broker, tmp_path)
    assert (ran.status, b"topic t: the target refuses Delete; run `" in ran.stderr) == (3, True)
    assert restore(broker, tmp_path, "--offsets", "translate").status == 0
