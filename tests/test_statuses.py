"""The same damage gives the same exit status in all commands: one table lists the statuses."""

import json
from pathlib import Path

import pytest

from kseg.findings.kinds import FINDINGS, status_of
from kseg.formats.codes import DamageKind
from tests import golden
from tests.log import edits
from tests.run import kseg


def test_every_kind_of_damage_stands_in_the_table_of_findings() -> None:
    assert {str(kind) for kind in DamageKind} <= FINDINGS.keys()
    assert {kind for kind in DamageKind if status_of(str(kind)) == 0} == {DamageKind.ZERO_TAIL}


COMMANDS = (["dump"], ["dump", "-o", "json"], ["verify"], ["doctor"], ["report"], ["export"], ["salvage", "--dry-run"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_zero_tail_is_wrong_only_where_a_segment_follows(command: list[str], tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path / "disk", "3.6.2/plain-1")
    destination = [str(tmp_path / "out"), "--overwrite"] if command == ["export"] else []
    first, *_, last = edits.logs(partition)
    with last.open("ab") as log:
        log.write(bytes(4096))
    assert kseg([*command, partition.name, *destination], partition.parent).status == 0
    with first.open("ab") as log:
        log.write(bytes(4096))
    assert kseg([*command, partition.name, *destination], partition.parent).status == 1


def test_json_of_messages_with_a_wrong_crc_ends_with_1() -> None:
    ran = kseg(["dump", "-o", "json", "236-inner-crc"], golden.ROOT / "damaged")
    objects = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.status == 1
    assert [each["isValid"] for each in objects if each["type"] == "record"].count(False) == 1
    assert [each["kind"] for each in objects if each["type"] == "damage"] == ["bad-record"]


def test_shallow_says_that_records_were_not_looked_at() -> None:
    ran = kseg(["dump", "--shallow", "066-codec-5"], golden.ROOT / "damaged")
    assert ran.status == 0
    assert b"batches weren't checked" in ran.stderr
    quiet = kseg(["dump", "--shallow", "-q", "066-codec-5"], golden.ROOT / "damaged")
    assert quiet.stderr == b""


def test_offsets_that_fall_are_reported_where_records_are_printed() -> None:
    ran = kseg(["dump", "217-reordered"], golden.ROOT / "damaged")
    assert ran.status == 1
    assert b"offsets-fall: offset " in ran.stderr
