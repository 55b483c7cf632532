"""The complete program of the docs, run by plain Python: with the source registered, and found by Spark."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import golden

pytestmark = pytest.mark.spark

PAGE = golden.ROOT.parent / "docs" / "how-to" / "spark.md"


@pytest.mark.parametrize("left_out", ["", "register(spark)\n"], ids=["registered", "found"])
def test_the_program_of_the_docs_runs(left_out: str, tmp_path: Path) -> None:
    (code,) = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert left_out in code
    program = tmp_path / "program.py"
    program.write_text(code.replace(left_out, "") if left_out else code)
    ran = subprocess.run(
        [sys.executable, str(program)], cwd=golden.ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.stdout == "10\n", ran.stderr[-3000:]
