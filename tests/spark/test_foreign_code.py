"""None of Spark's processes that kseg starts imports modules from the current directory."""

import shutil
import sys
from pathlib import Path

import pytest

from kseg.errors import SwappedError
from kseg.export.commit.order import Job
from kseg.export.settings import FileOptions, ReadOptions
from tests import golden, traps

pytestmark = pytest.mark.spark

SUBMIT = """
import sys
from kseg.spark.submit import submit
from kseg.spark.submit import Cluster
sys.exit(submit(Cluster("local[2]"), sys.argv[1:], verbose=False))
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return partitions, with a trap for each module name next to them."""
    shutil.copytree(golden.ROOT / "logs/2.8.2", tmp_path / "data")
    traps.set_traps(tmp_path / "data")
    return tmp_path / "data"


def files(directory: Path) -> set[str]:
    return {str(path) for path in directory.rglob("*")}


@pytest.mark.parametrize(
    "command",
    [
        [str(Path(sys.executable).with_name("kseg")), "spark-export", "--master", "local[2]"],
        [sys.executable, "-P", "-m", "kseg", "spark-export", "--master", "local[2]"],
        [sys.executable, "-P", "-c", SUBMIT],
    ],
    ids=["kseg", "python -P -m kseg", "spark-submit"],
)
def test_an_export_imports_nothing_from_there(command: list[str], directory: Path, tmp_path: Path) -> None:
    before = files(directory)
    status, sprung, stderr = traps.run([*command, str(directory), str(tmp_path / "out")], directory)
    assert (status, sprung) == (0, set()), stderr
    assert (tmp_path / "out/_SUCCESS").exists()
    assert files(directory) == before


def test_tasks_believe_the_orders_of_their_own_run_alone(tmp_path: Path) -> None:
    """Orders name code and files: others may write to the destination while the job runs."""
    from kseg.spark.tasks import Round

    job = Job("01234567", str(tmp_path / "out"), ReadOptions(), FileOptions())
    own = Round(job.destination, job.id, "0").with_orders(job, [[]])
    assert list(own.execute([0])) == []
    path = next((tmp_path / "out").rglob("orders-0.json"))
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(SwappedError):
        list(own.execute([0]))
