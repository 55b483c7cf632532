"""`kseg spark-export --dead-letter`: Spark's tasks copy the records that don't decode, each once."""

from pathlib import Path

import pytest

from tests import run
from tests.export.test_dead_letters import letters_of, places_of
from tests.export.test_undecoded import BAD, GOOD, write

pytestmark = pytest.mark.spark


def test_letters_are_added_by_spark_once(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    options = ["logs", "out", "--value-decoder", "json", "--dead-letter", "dead", "-o", "json"]
    write(logs, "orders-0", [GOOD, BAD])
    write(logs, "orders-1", [BAD])
    expected = [("orders", 0, 1), ("orders", 1, 0)]
    for status in (1, 0):
        ran = run.kseg(["spark-export", "--master", "local[2]", *options], tmp_path)
        assert (ran.status, letters_of(ran)["records"], places_of(tmp_path / "dead")) == (status, 2, expected)
