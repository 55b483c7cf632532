"""On systems that lack features of Linux, kseg does the same by other means."""

import ctypes
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import crc32c
import pytest

from tests import golden
from tests.export.exports import offsets
from tests.log import edits
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.loops import for_each
from tests.run import KERNELS, Run, process

ROOT = golden.ROOT.parent
DUMP = "dump -o json sparse-0"
CACHE = "ls --cache -o csv orders-0"
VERIFY = "verify -j 2 --gentle ."
SALVAGE = "salvage damaged-0 --to ../new"
EXPORT = "export -j 1 orders-0 ../exported"
TAKEN_AWAY = {
    "`posix_fadvise`, `mincore`": (VERIFY, "del os.posix_fadvise"),
    "`cachestat`": (
        CACHE,
        """
import ctypes
class Library:
    real = ctypes.CDLL
    def __init__(self, *arguments, **options):
        self.library = Library.real(*arguments, **options)
    def __getattr__(self, name):
        if name != "syscall":
            return getattr(self.library, name)
        def no_such_call(*arguments):
            return -1
        return no_such_call
ctypes.CDLL = Library
""",
    ),
    "`copy_file_range`": (SALVAGE, "del os.copy_file_range"),
    "`sendfile`": (SALVAGE, "del os.copy_file_range, os.sendfile"),
    "`sendfile` between files": (
        SALVAGE,
        """
def to_sockets_only(*arguments):
    raise OSError(88, "Socket operation on non-socket")
del os.copy_file_range
os.sendfile = to_sockets_only
""",
    ),
    "`SEEK_DATA`, `SEEK_HOLE`": (DUMP, "del os.SEEK_DATA, os.SEEK_HOLE"),
    "`fork`": (VERIFY, "del os.fork"),
    "`pthread_sigmask`": (VERIFY, "import signal; del signal.pthread_sigmask"),
    "`flock`": (SALVAGE, "sys.modules['fcntl'] = None"),
    "`nice`, `ioprio_set`": (VERIFY, "del os.nice; sys.platform = 'elsewhere'"),
    "`sched_getaffinity`": (VERIFY, "del os.sched_getaffinity"),
    "`/proc`": (
        EXPORT,
        """
from pathlib import Path
def hidden(name):
    real = getattr(Path, name)
    def method(path, *arguments, **options):
        if str(path).startswith("/proc/"):
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path, *arguments, **options)
    setattr(Path, name, method)
hidden("read_text"), hidden("readlink")
Path.exists = lambda path: os.path.exists(path) and not str(path).startswith("/proc/")
""",
    ),
    "hard links": (
        EXPORT,
        """
def no_links(*arguments, **options):
    raise OSError(95, "Operation not supported")
os.link = no_links
""",
    ),
}
"""By its row in docs/start/install.md: a command that uses a feature, and the code that removes it from Python."""
Outcome = tuple[int, list[str], Mapping[str, object]]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with an intact partition, a damaged one, and one whose log has a hole."""
    root = tmp_path_factory.mktemp("elsewhere") / "logs"
    write_segment(root / "orders-0", [NewBatch([NewRecord(b"key", b"value" * 100)], offset) for offset in range(50)])
    damaged = write_segment(root / "damaged-0", [NewBatch([NewRecord(b"k", b"v")], offset) for offset in range(3)])
    position, size = list(edits.v2_batches(damaged))[1]
    content = damaged.read_bytes()
    damaged.write_bytes(content[:position] + bytes(size) + content[position + size :])
    (root / "sparse-0").mkdir()
    with (root / "sparse-0" / f"{0:020}.log").open("wb") as file:
        file.write(batch_bytes(NewBatch([NewRecord(b"before", b"the hole")], 0)))
        file.seek(8 << 20)
        file.write(batch_bytes(NewBatch([NewRecord(b"after", b"it")], 1)))
    return root


def kseg(line: str, directory: Path, taken_away: str = "") -> Run:
    """Run `kseg LINE`, in a new Python if a feature is removed."""
    if not taken_away:
        return process(shlex.split(line), directory, with_arrow="export" in line)
    code = f"import os, sys\n{taken_away}\nfrom kseg.cli import main\nif __name__ == '__main__': sys.exit(main())"
    ran = subprocess.run([sys.executable, "-c", code, *shlex.split(line)], cwd=directory, capture_output=True)
    return Run(ran.returncode, ran.stdout, ran.stderr)


def outcome(line: str, logs: Path, taken_away: str = "") -> Outcome:
    """Return status, lines without times and the name of a run, and the written files; they are then removed."""
    for path in logs.rglob("*.log"):
        path.read_bytes()  # loads it into the page cache
    ran = kseg(line, logs, taken_away)
    changing = rb"run [0-9a-f]{8}\b|\d+\.\d+ s\b|\d{4}-\d\d-\d\dT[\d:.]+Z"
    said = re.sub(changing, b"...", ran.stdout + ran.stderr).decode().splitlines()
    written: dict[str, object] = {}
    for place in (logs.parent / "new", logs.parent / "exported"):
        if (place / "_SUCCESS").exists():
            written["offsets"] = offsets(place, "orders")
        else:
            written |= {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        shutil.rmtree(place, ignore_errors=True)
    return ran.status, said, written


@pytest.fixture(scope="module")
def usual(logs: Path) -> Mapping[str, Outcome]:
    """Return the outcome of each line here."""
    return {line: outcome(line, logs) for line in (DUMP, CACHE, VERIFY, SALVAGE, EXPORT)}


@for_each("name", TAKEN_AWAY)
def test_same_comes_out_without_what_linux_has(name: str, logs: Path, usual: Mapping[str, Outcome]) -> None:
    line, code = TAKEN_AWAY[name]
    assert outcome(line, logs, code) == usual[line]


def test_lines_find_and_write_something(usual: Mapping[str, Outcome]) -> None:
    statuses = {line: (status, bool(written)) for line, (status, _, written) in usual.items()}
    assert statuses == {
        DUMP: (1, False),
        CACHE: (0, False),
        VERIFY: (1, False),
        SALVAGE: (1, True),
        EXPORT: (0, True),
    }


def test_without_locks_what_a_killed_run_left_stays(logs: Path) -> None:
    left = logs.parent / ".new-kseg-abcdefgh"
    left.mkdir()
    line, code = TAKEN_AWAY["`flock`"]
    outcome(line, logs, code)
    assert left.exists()
    outcome(SALVAGE, logs)
    assert not left.exists()


def test_table_of_other_systems_names_each() -> None:
    text = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    table = text.split("| missing function | effect: kseg … |\n|---|---|\n")[1].split("\n\n")[0]
    assert [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()] == list(TAKEN_AWAY)


def test_only_one_package_asks_what_the_system_has() -> None:
    asks = re.compile(
        r"hasattr\((os|signal|socket)|sys\.platform|os\.name\b|platform\.(machine|system)|import fcntl|/proc/"
    )
    modules = sorted((ROOT / "kseg").rglob("*.py"))
    asking = {path.parent.name for path in modules if asks.search(path.read_text(encoding="utf-8"))}
    assert asking == {"system"}


@pytest.mark.skipif("fast" not in KERNELS, reason="there is no compiler")
@pytest.mark.parametrize("function", ["as_usual", "by_table"])
def test_crc_is_the_same_without_the_processors_instruction(function: str, tmp_path: Path) -> None:
    source = tmp_path / "crc.c"
    source.write_text(
        '#include "crc.h"\n'
        "uint32_t by_table(const uint8_t *at, size_t size)"
        " { crc_prepare(); return ~crc_by_table(crc32c_table, 0xffffffffu, at, size); }\n"
        "uint32_t as_usual(const uint8_t *at, size_t size) { crc_prepare(); return crc32c_of(at, size); }\n"
    )
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC"))
    library = tmp_path / "crc.so"
    compile_it = [*compiler, "-shared", "-fPIC", f"-I{ROOT}/kseg/kernel", str(source), "-o", str(library)]
    subprocess.run(compile_it, check=True)
    crc = getattr(ctypes.CDLL(str(library)), function)
    crc.restype, crc.argtypes = ctypes.c_uint32, [ctypes.c_char_p, ctypes.c_size_t]
    for size in (0, 1, 7, 8, 9, 1535, 1536, 1537, 5000):
        content = random.Random(size).randbytes(size)
        assert crc(content, size) == crc32c.crc32c(content)
