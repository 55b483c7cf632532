"""Files that a command can't read: one line names the kind of each, and a command that reads it."""

import re
import shlex
import shutil
from collections.abc import Callable
from gzip import compress
from itertools import product
from pathlib import Path

import pytest

from tests import golden
from tests.loops import for_each
from tests.run import kseg

READS_NONE = "kseg doesn't read such files"
LOG_LINE = b"[2026-11-01 03:00:01,201] WARN Loaded stray log: orders-7.0-stray (kafka.log.LogManager)\n"
FILES: dict[str, tuple[bytes | Callable[[], bytes], str, str]] = {
    "picture.png": (b"\x89PNG\r\n\x1a\n" + bytes(60), "a picture", READS_NONE),
    "server.properties": (b"# broker\nbroker.id=1\nlog.dirs=/data\n", "a broker's settings", "kseg retain"),
    "log4j.conf": (b"# comment\nlog4j.rootLogger=INFO\n", "a file of settings", READS_NONE),
    "part.parquet": (b"PAR1" + bytes(100) + b"PAR1", "a Parquet file", READS_NONE),
    "heap.hprof": (b"JAVA PROFILE 1.0.2\0" + bytes(100), "a Java heap dump", READS_NONE),
    "notes": (compress(b"hello"), "gzip", "name it *.gz, or unpack it"),
    "console": (LOG_LINE, "a broker's text log", "kseg doctor --broker-log"),
    "server.log": (LOG_LINE, "a broker's text log", "kseg doctor --broker-log"),
    "empty": (b"", "an empty file", READS_NONE),
    "zeros": (bytes(4096), "zeros", READS_NONE),
    "moves.json": (b'{"version":1,"partitions":[]}', "a plan of reassignments", "kseg doesn't read such files"),
    "other.json": (b'[{"a":1}]', "JSON", READS_NONE),
    "clients": (
        lambda: (golden.ROOT / "protocol/4.3.1/clients.pcap").read_bytes(),
        "a network capture",
        "kseg protocol",
    ),
    "renamed": (
        lambda: (golden.ROOT / "docs/test-1-0/00000000000000203000.log").read_bytes(),
        "a log under another name",
        "kseg dump - <",
    ),
    "notes.txt": (b"Dear diary, today the broker did not start. " * 3, "text", READS_NONE),
    "noise": (bytes(range(255, 100, -1)), "not a file that kseg knows", "specify a partition or log directory"),
}
"""By name: the content, the named kind, and the next step."""
COMMANDS = [
    "dump {}", "ls {}", "verify {}", "doctor {}", "salvage {} --dry-run", "reindex {} --dry-run",
    "compact {} --dry-run", "slice {} --to ../new", "retain {}", "lookup {} --offset 1", "get {} --offset 1", "txns {}",
    "groups {}", "metadata {}", "where --group g {}", "explain {}", "export {} ../out", "report {} --to ../page.html",
    "diff {} {}", "plan-move {} {}", "serve {} -- true", "rebuild-metadata {} --node-id 1 --to ../new",
    "query 'select 1' {}",
]  # fmt: skip
TAKES_TEXT = {("explain {}", "server.log")}
"""Commands that explain a file by its name, as damage of a log."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("machine") / "files"
    directory.mkdir()
    for name, (content, _, _) in FILES.items():
        (directory / name).write_bytes(content if isinstance(content, bytes) else content())
    return directory


@for_each("command, name", [each for each in product(COMMANDS, FILES) if each not in TAKES_TEXT], shards=4)
def test_a_file_that_no_command_takes_is_named_with_the_next_step(command: str, name: str, files: Path) -> None:
    ran = kseg(shlex.split(command.replace("{}", name)), files)
    _, what, next_step = FILES[name]
    if (command, name) == ("explain {}", "noise"):
        next_step = "specify its kind: `kseg explain - --input-kind log < noise`"
    lines = [
        line
        for line in ran.stderr.decode().splitlines()
        if line.startswith(f"kseg: {name}: can't be used here: it is ")
    ]
    assert len(set(lines)) == 1, ran.stderr.decode()
    assert (f"here: it is {what}" in lines[0], next_step in lines[0]) == (True, True), lines[0]
    assert ran.status == 2
    assert not (files.parent / "new").exists()


@for_each("name", FILES)
def test_the_named_command_takes_the_file(name: str, files: Path) -> None:
    told = kseg(["verify", name], files).stderr.decode()
    for line in re.findall(r"run `kseg ([^`]+)`", told):
        if " < " in line:
            continue  # the content as standard input, which `kseg dump -` takes
        words = [str(golden.ROOT / "docs/test-1-0") if word == "DIR" else word for word in shlex.split(line)]
        assert kseg(words, files).status in (0, 1), line


@for_each("command, kind", product(["groups {}", "metadata {}", "diff {} {}"], ["index", "log"]))
def test_a_partitions_file_is_named_where_a_directory_is_expected(command: str, kind: str, tmp_path: Path) -> None:
    name = f"00000000000000203000.{kind}"
    shutil.copy(golden.ROOT / "docs/test-1-0" / name, tmp_path)
    ran = kseg(command.replace("{}", name).split(), tmp_path)
    what = {"index": "an offset index", "log": "a log segment"}[kind]
    told = f"kseg: {name}: can't be used here: it is {what}, where a directory is expected; run `kseg dump {name}`\n"
    assert (ran.status, ran.stderr.decode()) == (2, told)


TAKES_CONTENTS = ("protocol {}", "build {} --to ../new")
KAFKAS = {"index": "an offset index", "log": "a log segment"}


@for_each("command, name", product(TAKES_CONTENTS, ["picture.png", "part.parquet", "heap.hprof", "renamed", "zeros"]))
def test_a_command_that_takes_other_files_names_what_it_gets(command: str, name: str, files: Path) -> None:
    ran = kseg(command.replace("{}", name).split(), files)
    assert (ran.status != 0, ran.stdout) == (True, b"")
    _, what, next_step = FILES[name]
    (said,) = ran.stderr.decode().splitlines()
    assert said.startswith(f"kseg: {name}: can't be used here: it is {what}")
    assert next_step in said


@for_each("command, kind", product(TAKES_CONTENTS, KAFKAS))
def test_a_command_that_takes_other_files_names_kafkas(command: str, kind: str, tmp_path: Path) -> None:
    name = f"00000000000000203000.{kind}"
    shutil.copy(golden.ROOT / "docs/test-1-0" / name, tmp_path)
    said = kseg(command.replace("{}", name).split(), tmp_path).stderr.decode()
    expected = "records" if command.startswith("build") else "requests and responses"
    told = f"it is {KAFKAS[kind]}, where {expected} are expected; run `kseg dump {name}`"
    assert said == f"kseg: {name}: can't be used here: {told}\n"


def test_a_directory_without_logs_says_what_it_holds(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "here" / name).mkdir(parents=True)
    (tmp_path / "here" / "notes.txt").touch()
    told = kseg(["ls", "here"], tmp_path).stderr.decode()
    assert told.endswith("; it holds 3 directories and 1 file (a, b, c, …), no meta.properties\n")


def test_blank_lines_are_looked_through_at_once(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\n" * 511 + b"!")
    assert kseg(["explain", path.name], tmp_path).status == 2
