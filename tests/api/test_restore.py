"""A restore from Python does what the command does, with its options as keywords."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import kseg
from kseg.client.connection import PRODUCE
from tests.restore.strict_broker import StrictBroker
from tests.restore.test_sender import Contents, write_partition

pytestmark = pytest.mark.filterwarnings("ignore:PATHS have no")


@pytest.fixture
def broker() -> Iterator[StrictBroker]:
    with StrictBroker(set()).running() as running:
        yield running


@pytest.fixture
def written(tmp_path: Path) -> list[Contents]:
    return write_partition(tmp_path / "disk" / "t-0", 5, random.Random(2))


def bootstrap(broker: StrictBroker) -> str:
    return "{}:{}".format(*broker.address)


def test_a_cluster_is_restored_from_python(broker: StrictBroker, written: list[Contents], tmp_path: Path) -> None:
    cluster = kseg.open_cluster(tmp_path / "disk")
    report = cluster.restore(bootstrap(broker), topic_map={"t": "u"}, job="j", keep_settings=True)
    assert (report.was_done, report.is_incomplete, report.sent_records) == (False, False, len(written))
    assert broker.logs["u"][0].records() == written
    again = cluster.restore(bootstrap(broker), topic_map={"t": "u"}, job="j", keep_settings=True)
    assert (again.was_done, again.sent_records) == (True, 0)


def test_wrong_options_from_python_are_refused(broker: StrictBroker, written: object, tmp_path: Path) -> None:
    cluster = kseg.open_cluster(tmp_path / "disk")
    for options, problem in (
        ({"final_settings": "none"}, "final_settings='none' isn't 'safe' or 'source'"),
        ({"offsets": "same"}, "offsets='same' isn't 'auto', 'keep' or 'translate'"),
    ):
        with pytest.raises(kseg.UsageError, match=problem):
            cluster.restore(bootstrap(broker), **options)  # type: ignore[arg-type]
    for address in ("broker", "broker:99999", "::1:9092"):
        with pytest.raises(kseg.UsageError, match=f"'{address}' isn't HOST:PORT"):
            cluster.restore(address)
    assert broker.logs == {}


def test_damage_and_missing_rights_end_a_restore_from_python(
    broker: StrictBroker, written: object, tmp_path: Path
) -> None:
    broker.refused.add(PRODUCE.key)
    cluster = kseg.open_cluster(tmp_path / "disk")
    with pytest.raises(kseg.ClusterError, match="the target refuses Write on topic t"):
        cluster.restore(bootstrap(broker))
    log = min((tmp_path / "disk" / "t-0").glob("*.log"))
    damaged = bytearray(log.read_bytes())
    damaged[30] ^= 1
    log.write_bytes(damaged)
    with pytest.raises(kseg.DamagedError, match="the logs have 1 damage, so nothing is restored"):
        kseg.open_cluster(tmp_path / "disk").restore(bootstrap(broker))
    assert broker.logs == {}
