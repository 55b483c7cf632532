"""kseg starts quickly: a command only imports modules that it uses, also from the standard library."""

import os
import subprocess
import sys
from pathlib import Path

from tests import golden
from tests.architecture import ROOT
from tests.run import KERNELS
from tests.start import loaded_by


def test_dump_of_an_uncompressed_log_imports_no_grammar_and_no_codec() -> None:
    sample = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
    slow_to_import = {"construct", "lz4", "pyarrow", "rich", "snappy", "zstandard"}
    if "fast" in KERNELS:  # the twin makes classes of its own
        slow_to_import |= {"base64", "dataclasses", "json"}
    assert loaded_by(["dump", str(sample)]) & slow_to_import == set()


def test_lookup_imports_nothing_that_it_does_not_use() -> None:
    sample = golden.ROOT / "docs" / "test-1-0"
    loaded = loaded_by(["lookup", str(sample), "--offset", "203500"])
    assert loaded & {"construct", "kseg.log.selected_records", "kseg.rewrite.salvage_plan", "rich", "json"} == set()


def test_exports_and_queries_import_no_pandas(tmp_path: Path) -> None:
    logs = str(golden.ROOT / "logs" / "4.3.1")
    exporting = ["export", logs, str(tmp_path / "out"), "--topic", "zstd", "-q"]
    assert {"pandas", "pyarrow"} & loaded_by(exporting) == {"pyarrow"}
    assert {"pandas", "pyarrow"} & loaded_by(["query", "SELECT count(*) FROM zstd", logs]) == {"pyarrow"}


def test_garbage_is_collected_while_a_command_runs(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import gc\ndef decode(*_): return str(gc.isenabled())\n")
    sample = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
    decoder = ["--value-decoder", "own:decode", "--fields", "value", "--limit", "1"]
    ran = subprocess.run(
        [sys.executable, "-m", "kseg", "dump", *decoder, str(sample)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "value: True\n"


def test_what_stands_for_inspect_has_its_numbers() -> None:
    put_off = "import sys; sys.modules.pop('inspect', 0); import kseg.system.signals as late; late.put_off_inspect()"
    code = f"""
{put_off}
import inspect as stand_in
del sys.modules["inspect"]
import inspect
names = [name for name in dir(type(stand_in)) if name.startswith("CO_")]
print(len(names), [name for name in names if getattr(stand_in, name) != getattr(inspect, name)])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "7 []\n"


def test_a_process_of_kseg_imports_inspect_only_when_something_of_it_is_asked_for() -> None:
    code = """
import sys
from kseg.__main__ import main
main()
loaded = list(sys.modules)
import inspect
print("tokenize" in loaded, inspect.cleandoc("  a\\n    b"), inspect.signature(lambda: None), file=sys.stderr)
"""
    sample = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
    program = [sys.executable, "-c", code, "dump", str(sample)]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stderr.endswith("False a\nb ()\n")
