"""The doctor on golden's directories: damage comes first; directories that brokers left, killed or not, are well."""

import shutil
from itertools import product
from pathlib import Path

import pytest

from kseg.doctor.examination import ExaminationSettings, examine, plan_examination
from kseg.findings.finding_kind import Severity
from tests import golden
from tests.doctor.check_ups import AFTER_ALL, BESIDE, check_up
from tests.loops import for_each

BROKERS = sorted(
    path.name
    for path in (golden.ROOT / "logs").iterdir()
    if not path.name.startswith("classes-") and not path.name.endswith("-remote")
)


def test_half_a_batch_that_is_finished_meanwhile_is_no_trouble(tmp_path: Path) -> None:
    """Next to a running broker a log may be read while a batch is written."""
    source = golden.ROOT / "logs" / "3.6.2" / "plain-1"
    log = sorted(shutil.copytree(source, tmp_path / "plain-1").glob("*.log"))[-1]
    whole = log.read_bytes()
    log.write_bytes(whole[:-5])
    plan = plan_examination([tmp_path / "plain-1"])

    def finish(_: int) -> None:
        log.write_bytes(whole)

    for is_torn, on_read in ((True, None), (False, finish)):
        (examined,) = examine(plan, ExaminationSettings(AFTER_ALL), processes=1, on_read=on_read)
        assert ("torn-tail" in {finding.id for finding in examined.verified.findings}) is is_torn


@pytest.mark.parametrize("name", [name for name in BROKERS if name.endswith("-killed")])
def test_nothing_is_wrong_with_what_killed_brokers_left(name: str, restored: Path) -> None:
    """Their own recovery lost nothing: see golden/README.md."""
    found = check_up(restored / "logs" / name)
    assert [each for each in found.troubles if each.severity is not Severity.NOTE and each.id not in BESIDE] == []


@for_each("is_quick, name", list(product([False, True], [name for name in BROKERS if not name.endswith("-killed")])))
def test_nothing_is_wrong_with_what_brokers_left(name: str, is_quick: bool, restored: Path) -> None:
    found = check_up(restored / "logs" / name, is_quick=is_quick)
    assert [each for each in found.troubles if each.severity is not Severity.NOTE and each.id not in BESIDE] == []
