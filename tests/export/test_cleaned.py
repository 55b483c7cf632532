"""Logs that are cleaned, retained, damaged and recreated between runs: exported records stay, each once."""

import json
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kseg
from kseg.export.report import Report
from kseg.export.settings import MIB, Isolation
from tests.export import exports
from tests.export.changing_log import ChangingLog, Row
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.loops import for_each, some


@pytest.fixture
def log(tmp_path: Path) -> ChangingLog:
    """Return a topic of three segments, the last one active."""
    made = ChangingLog(tmp_path / "disk" / "orders-0", Random(7))
    for _ in range(2):
        made.append(20)
        made.roll()
    made.append(20)
    return made


def rows(destination: Path) -> list[Row]:
    """Return the table's rows."""
    found = []
    for _, _, table in exports.tables(destination):
        topic_id = json.loads(table.schema.metadata[b"kseg"]).get("topicId")
        pairs = zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True)
        found += [(topic_id, offset, value) for offset, value in pairs]
    assert len(set(found)) == len(found)
    return found


def export(tmp_path: Path, expected: set[Row], **options: Any) -> Report:
    report = exports.export([tmp_path / "disk"], tmp_path / "out", **options)
    assert set(rows(tmp_path / "out")) == expected
    for part in report.partitions:
        assert part.unexplained == 0
    assert sum(part.records_out for part in report.partitions) == len(expected)
    return report


@pytest.mark.parametrize("size", [300, MIB])
def test_what_compaction_took_stays_exported(size: int, log: ChangingLog, tmp_path: Path) -> None:
    before = log.rows()
    export(tmp_path, before, target_size=size)
    log.clean()
    assert log.rows() < before
    report = export(tmp_path, before, target_size=size)
    part = exports.of_partition(report, "orders")
    assert (report.new_files, part.lost, part.missed, part.disordered, report.status) == (0, 0, 0, 0, 0)
    log.append(10)
    export(tmp_path, before | log.rows(), target_size=size)


def test_a_cleaned_log_is_looked_at_once(log: ChangingLog, tmp_path: Path) -> None:
    export(tmp_path, before := log.rows())
    log.clean()
    export(tmp_path, before)
    names = sorted((tmp_path / "out" / "_kseg").glob("manifest-*"))
    export(tmp_path, before)
    assert sorted((tmp_path / "out" / "_kseg").glob("manifest-*")) == names


def test_what_compaction_took_before_a_run_is_a_gap(log: ChangingLog, tmp_path: Path) -> None:
    export(tmp_path, before := log.rows())
    log.append(20)
    log.clean()
    report = export(tmp_path, before | log.rows())
    part = exports.of_partition(report, "orders")
    assert part.gaps > 0
    assert (part.lost, part.missed, part.disordered, report.is_whole, report.status) == (0, 0, 0, True, 0)


def test_a_log_that_was_truncated_and_rewritten_is_exported_again(log: ChangingLog, tmp_path: Path) -> None:
    export(tmp_path, log.rows())
    topic_id = log.topic_id
    log.make()
    log.topic_id, log.epoch = topic_id, 1
    (log.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n", encoding="utf-8")
    for _ in range(3):
        log.append(30)
        log.roll()
    export(tmp_path, log.rows())


def damage(log: ChangingLog, segment: int, batch: int) -> set[Row]:
    """Flip a bit in a batch of a segment; return its rows."""
    path = log.path / f"{log.bases()[segment]:020}.log"
    with kseg.open_segment(path) as opened:
        chosen = [item for item in opened.scan() if isinstance(item, kseg.Batch)][batch]
        lost = {(log.topic_id, record.offset, record.value) for record in chosen.records()}
    content = bytearray(path.read_bytes())
    content[chosen.position + kseg.Batch.HEADER_SIZE + 3] ^= 16
    path.write_bytes(content)
    return lost


@pytest.mark.parametrize("segment", [0, 2])
def test_records_stay_exported_when_their_log_is_damaged_later(segment: int, log: ChangingLog, tmp_path: Path) -> None:
    export(tmp_path, before := log.rows())
    log.append(5)
    before |= log.rows()
    damage(log, segment, 3)
    report = export(tmp_path, before)
    part = exports.of_partition(report, "orders")
    assert (part.lost, part.damages, report.is_whole, report.status) == (0, [], True, 0)
    export(tmp_path, before)


def test_records_below_an_open_transaction_stay_exported_when_they_are_damaged_later(
    log: ChangingLog, tmp_path: Path
) -> None:
    path, begun = log.path / f"{log.bases()[-1]:020}.log", max(offset for _, offset, _ in log.rows()) + 1
    before = log.rows()
    transaction = NewBatch([NewRecord(b"k", b"open")], begun, 7, 0, is_transactional=True)
    path.write_bytes(path.read_bytes() + batch_bytes(transaction))
    export(tmp_path, before, isolation=Isolation.READ_COMMITTED)
    damage(log, -1, 2)
    export(tmp_path, before, isolation=Isolation.READ_COMMITTED)


def test_only_records_that_were_damaged_before_any_run_are_lost(log: ChangingLog, tmp_path: Path) -> None:
    before = log.rows()
    lost = damage(log, -1, 2)
    export(tmp_path, before - lost)
    damage(log, -1, 5)
    part = exports.of_partition(export(tmp_path, before - lost), "orders")
    assert (part.lost, part.new_lost) == (len(lost), 0)


def test_repaired_records_are_exported(log: ChangingLog, tmp_path: Path) -> None:
    export(tmp_path, before := log.rows() - damage(log, -1, 2))
    damage(log, -1, 5)
    export(tmp_path, before)
    log.append(1)  # writes the whole segment
    export(tmp_path, log.rows())


def test_a_damaged_log_that_was_truncated_and_rewritten_is_exported_again(log: ChangingLog, tmp_path: Path) -> None:
    export(tmp_path, log.rows())
    topic_id = log.topic_id
    log.make()
    log.topic_id, log.epoch = topic_id, 1
    (log.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n", encoding="utf-8")
    log.append(90)
    rewritten = log.rows()
    export(tmp_path, rewritten - damage(log, 0, 2))


STEPS = ("append", "append", "append", "roll", "roll", "clean", "retain", "make", "export", "export", "export")


@for_each("seed, isolation", some(zip(range(8), cycle(Isolation)), 3))
def test_each_record_that_was_there_at_a_run_is_in_the_table_once(
    seed: int, isolation: Isolation, tmp_path: Path
) -> None:
    """Without transactions, both isolation levels give the same rows, so they alternate."""
    random = Random(seed)
    logs = [ChangingLog(tmp_path / "disk" / name, random) for name in ("orders-0", "payments-0")]
    seen, ends, missed = set[Row](), dict[str, int](), dict[str, int]()
    for _ in range(60):
        log, step = random.choice(logs), random.choice(STEPS)
        if step == "append":
            log.append(random.randint(1, 20))
        elif step != "export":
            getattr(log, step)()
        else:
            for each in logs:
                seen |= each.rows()
                first = each.bases()[0]
                if each.topic_id in ends:
                    missed[each.topic_id] = missed.get(each.topic_id, 0) + max(first - ends[each.topic_id], 0)
                last = max((offset + 1 for _, offset, _ in each.rows()), default=0)
                ends[each.topic_id] = max(last, first if each.topic_id in ends else 0)
            report = export(tmp_path, seen, target_size=700, isolation=isolation)
            assert all((part.lost, part.disordered, part.passed_over) == (0, 0, 0) for part in report.partitions)
    told = {part.topic_id: part.missed for part in report.partitions}
    assert {key: count for key, count in told.items() if count} == {k: v for k, v in missed.items() if v}
