"""An interrupted export by Spark leaves no file and no process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.export import exports
from tests.process_groups import SIGNALS, interruptible, members

pytestmark = pytest.mark.spark

# Each Python worker loads this at its start: its tasks never end.
ENDLESS = """
import os, pathlib, time
from kseg.export.commit import order
def execute_for_ever(wanted, job, place):
    pathlib.Path(os.environ["TEST_KSEG_STARTED"]).touch()
    while True:
        time.sleep(1)
order.execute_order = execute_for_ever
"""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: signal.Signals(number).name)
@pytest.mark.parametrize("to_all", [False, True], ids=["one", "all"])
def test_an_ended_export_leaves_nothing(number: int, to_all: bool, tmp_path: Path) -> None:
    exports.write_log(tmp_path / "big-0", 0, 60_000, per_batch=100, value=bytes(1000))
    (tmp_path / "temporary").mkdir()
    command = ["spark-export", "--master", "local[2]", "--target-file-size", "1MB", "big-0", "out"]
    with subprocess.Popen(
        [Path(sys.executable).with_name("kseg"), *command],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=interruptible,
    ) as process:
        while process.poll() is None and not any((tmp_path / "out/_kseg/attempts").glob("*")):
            pass
        (os.killpg if to_all else os.kill)(process.pid, number)
        stdout, _ = process.communicate()
    assert (process.returncode, stdout) == (128 + number, b"")
    while members(process.pid):
        pass
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_interrupt_does_not_wait_for_tasks(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 10)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(ENDLESS, encoding="utf-8")
    with subprocess.Popen(
        [Path(sys.executable).with_name("kseg"), "spark-export", "--master", "local[2]", "orders-0", "out"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site"), "TEST_KSEG_STARTED": str(tmp_path / "started")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=interruptible,
    ) as process:
        while process.poll() is None and not (tmp_path / "started").exists():
            pass
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate()
    assert (process.returncode, stdout) == (130, b"")
    while members(process.pid):
        pass
