"""kseg starts quickly: a command only imports modules that it uses, also from the standard library."""

import os
import subprocess
import sys
from pathlib import Path

from tests import golden
from tests.architecture import ROOT
from tests.run import KERNELS
from tests.start import loaded_by

SAMPLE = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
OF_A_DUMP = {
    "kseg": "__main__ cli errors named_tuple releases times",
    "kseg.codecs": "limits",
    "kseg.commands": "dump inputs options",
    "kseg.commands.options": "command row table types",
    "kseg.dump": "decoders files forms log_steps options plan reader text_form",
    "kseg.formats": "codes file_names header_fields",
    "kseg.kernel": "contract fast",
    "kseg.layouts": "programs release_lines template",
    "kseg.log": "selection",
    "kseg.output": "csv_style progress streams",
    "kseg.reading": "blocks bodies log_file",
    "kseg.store": "location",
    "kseg.system": "files late_modules placed_path safe_path signals terminal_text",
    "kseg.tiered": "places",
}
"""Modules that a dump of one log imports, by their packages: each costs every dump 0.3 M instructions or more."""


def test_dump_of_a_log_imports_only_modules_that_it_uses() -> None:
    expected = {f"{package}.{name}" for package, names in OF_A_DUMP.items() for name in names.split()}
    loaded = {name for name in loaded_by(["dump", str(SAMPLE)]) if name.startswith("kseg.")}
    if "fast" not in KERNELS:  # the twin has modules of its own
        loaded = {name for name in loaded if not name.startswith("kseg.kernel.")}
    assert loaded - expected - set(OF_A_DUMP) == set()


def test_dump_of_an_uncompressed_log_imports_no_grammar_and_no_codec() -> None:
    slow_to_import = {"construct", "lz4", "pyarrow", "rich", "snappy", "zstandard"}
    if "fast" in KERNELS:  # the twin makes classes of its own
        slow_to_import |= {"base64", "dataclasses", "json"}
    assert loaded_by(["dump", str(SAMPLE)]) & slow_to_import == set()


def test_dump_imports_no_library_for_text_that_it_does_not_print() -> None:
    for_some_runs = {"ast", "click.shell_completion", "csv", "difflib", "email", "gettext", "importlib.metadata"}
    for_some_runs |= {"inspect", "ipaddress", "locale", "platform", "shlex", "shutil", "textwrap", "urllib.parse"}
    assert loaded_by(["dump", str(SAMPLE)]) & for_some_runs == set()


def test_a_start_imports_no_library_for_a_small_part_of_it() -> None:
    assert "signal" not in loaded_by(["dump", str(SAMPLE)])
    assert loaded_by(["--version"]) & {"email", "importlib.metadata", "platform"} == set()


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


def test_substitutes_of_late_modules_answer_like_the_modules() -> None:
    code = """
import sys
late = ["gettext", "inspect", "ipaddress", "ntpath", "platform", "urllib.parse"]
for name in late:
    sys.modules.pop(name, None)
def answers():
    import gettext, inspect, ipaddress, ntpath, platform, urllib.parse
    from gettext import gettext as _, ngettext
    from urllib.parse import quote_from_bytes
    numbers = [getattr(inspect, "CO_" + name) for name in
               "OPTIMIZED NEWLOCALS VARARGS VARKEYWORDS GENERATOR COROUTINE ASYNC_GENERATOR".split()]
    texts = [_("Usage"), ngettext("one", "some", 1), ngettext("one", "some", 2), inspect.cleandoc(" a")]
    others = [platform.system(), quote_from_bytes(b"a b"), quote_from_bytes(b"a/b", safe="")]
    yield numbers, texts, others
    yield [ntpath.join("a", "b"), str(ipaddress.ip_address("::1")), urllib.parse.quote("a b"), gettext.find("kseg")]
real = [*answers()]
for name in late:
    del sys.modules[name]
import kseg.system.late_modules as late_modules
late_modules.put_off_imports()
substitutes = [next(answers()), [type(sys.modules[name]) for name in ("ntpath", "gettext")], [*answers()][1]]
print(real[0] == substitutes[0], real[1] == substitutes[2], [each.__module__ for each in substitutes[1]])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "True True ['kseg.system.late_modules', 'kseg.system.late_modules']\n"


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
