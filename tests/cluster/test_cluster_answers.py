"""One directory alone would answer otherwise: the answer is the cluster's, whichever command gives it."""

import shutil
from itertools import permutations
from pathlib import Path

import pytest

from tests import golden
from tests.cluster.questions import lines

TRANSACTIONS = Path("transactions-0")
LAST_MARKER = 78
"""Bytes of the last batch of the golden partition: the marker that commits its last transaction."""


def is_about_open(row: dict[str, object]) -> bool:
    return "transaction" in str(row.get("id"))


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A broker, and a follower that stopped before the marker of the last transaction came."""
    shutil.copytree(golden.ROOT / "logs" / "4.4.0-made", tmp_path / "b1")
    shutil.copytree(tmp_path / "b1" / TRANSACTIONS, tmp_path / "b2" / TRANSACTIONS)
    identity = (tmp_path / "b1" / "meta.properties").read_text(encoding="utf-8").replace("node.id=1", "node.id=2")
    (tmp_path / "b2" / "meta.properties").write_text(identity, encoding="utf-8")
    log = tmp_path / "b2" / TRANSACTIONS / f"{3:020}.log"
    log.write_bytes(log.read_bytes()[:-LAST_MARKER])
    (tmp_path / "b2" / TRANSACTIONS / f"{24:020}.snapshot").unlink()
    return tmp_path


@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_transaction_that_ended_in_the_copy_that_answers_is_open_in_none(command: str, stopped: Path) -> None:
    given = [f"{broker}/{TRANSACTIONS}" for broker in ("b1", "b2")]
    for paths in (*permutations(("b1", "b2")), *permutations(given)):
        assert not any(row.get("state") == "open" for row in lines(stopped, ["txns", "-o", "json"], paths, ()))
        assert not list(filter(is_about_open, lines(stopped, [command, "-o", "json"], paths, ())))


@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_transaction_that_is_open_in_the_only_copy_is_reported(command: str, stopped: Path) -> None:
    for paths in (("b2",), (f"b2/{TRANSACTIONS}",)):
        assert any(map(is_about_open, lines(stopped, [command, "-o", "json"], paths, ())))
