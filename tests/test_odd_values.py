"""Any value of an option or argument: a result, or one line and status 2; never a traceback."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kseg.cli import COMMANDS, cli
from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import TAKES_ALL, for_each

ODD = (
    "",
    " ",
    "..",
    "../..",
    "~",
    ".:.",
    ":",
    "a:",
    ":b",
    "..a:b",
    "a:..b",
    "os:",
    "os:path..x",
    "\0",
    "a\0b:c\0d",
    "\x1b[2J\x9b",
    "\n",
    "\u202e",
    "\ud800",
    "\udcff",
    "é日本😀",
    "\u0663",
    "²",
    "1_0",
    "0x10",
    "-1",
    "1e999",
    "nan",
    "9" * 30,
    "-" + "9" * 30,
    "9" * 5000,
    "+99:99",
    "-2400",
    "0000-00-00",
    "9999-12-31T23:59:59.999+00:01",
    "0001-01-01T00:00+23:59",
    "%",
    "{",
    "}{offset",
    "[",
    "(?P<",
    "((a+)+)+",
    "=",
    "key=..a:b",
    "value=",
    "gzip:\u0663",
    "zstd:" + "9" * 5000,
    "Fetch:²",
    "Fetch:" + "9" * 5000,
    ",",
    "a,,b",
    "hex:zz",
    "base64:é",
    "x" * 5000,
)
BASES: dict[str, tuple[str, ...]] = {
    "lookup": ("t-0", "--offset", "0"),
    "salvage": ("t-0", "--to", "out"),
    "carve": (f"t-0/{0:020}.log", "--to", "out"),
    "diff": ("t-0", "t-0"),
    "report": ("t-0", "--to", "out.html"),
    "redact": ("t-0", "--to", "out"),
    "get": ("t-0", "--offset", "0"),
    "reindex": ("t-0", "--to", "out"),
    "explain": (f"t-0/{0:020}.log",),
    "build": ("lines", "--input-format", "text", "--to", "out/t-0"),
    "slice": ("t-0", "--to", "out"),
    "compact": ("t-0", "--dry-run"),
    "where": ("--key", "k", "--partitions", "3"),
    "protocol": ("hex",),
    "serve": ("t-0", "--", "true"),
    "restore": ("t-0", "--bootstrap", "127.0.0.1:1", "--dry-run"),
    "groups": ("__consumer_offsets-0",),
    "query": ("SELECT 1", "t-0"),
    "plan-move": (".",),
    "metadata": ("__cluster_metadata-0",),
    "rebuild-metadata": ("__cluster_metadata-0", "--node-id", "1", "--to", "out"),
    "export": ("t-0", "out", "--dry-run"),
    "spark-export": ("t-0", "out", "--dry-run"),
    "completion": ("bash",),
    "help": ("dump",),
}
"""Arguments with which a command does little, if it needs others than a partition."""

REFUSED = {"browse", "plan-move", "spark-export"}
"""Commands that need a terminal, all disks of a broker, or Spark."""


def base_of(command: str) -> list[str]:
    """Return arguments with which a command does little."""
    return [*BASES.get(command, ("t-0",))]


def parameters() -> Iterator[tuple[str, str, str]]:
    """Yield each command with its arguments and options that take a value, from click, and the kind of each."""
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            shown = f"{parameter.name} {parameter.type} {parameter.callback} {parameter.multiple}"
            kind = re.sub(" at 0x[0-9a-f]+", "", shown)
            if isinstance(parameter, click.Argument):
                yield name, parameter.name or "", kind
            elif isinstance(parameter, click.Option) and not parameter.is_flag:
                yield name, max(parameter.opts, key=len), kind


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inputs")
    write_segment(directory / "t-0", [NewBatch([NewRecord(b"k", b'{"a":1}', headers=[("h", b"x")])])])
    key = build_message(message_schema("OffsetCommitKey"), 0, {"group": "g", "topic": "t", "partition": 0})
    value = build_message(message_schema("OffsetCommitValue"), 3, {"offset": 5})
    write_segment(directory / "__consumer_offsets-0", [NewBatch([NewRecord(b"\0\1" + key, b"\0\3" + value)])])
    write_segment(directory / "__cluster_metadata-0", [])
    (directory / "lines").write_text("one\n")
    (directory / "hex").write_text("00000012 00120000 00000001 00086d79 2d617070 2d31")
    return directory


def with_value(command: str, parameter: str, value: str) -> list[str]:
    """Return the command line with one argument or option replaced by a value."""
    base = base_of(command)
    if parameter.startswith("--"):
        options = base.index("--") if "--" in base else len(base)  # the rest is the child command of `serve`
        return [command, *base[:options], f"{parameter}={value}", *base[options:]]
    if "--" in base:
        return [command, value, *base[base.index("--") :]]
    arguments = 0 if base[0].startswith("-") else 1
    return [command, *base[arguments:], "--", value]


@for_each("command", [name for name in COMMANDS if name not in REFUSED])
def test_arguments_of_each_command_are_accepted(command: str, inputs: Path, tmp_path: Path) -> None:
    shutil.copytree(inputs, tmp_path / "inputs")
    ran = run.kseg([command, *base_of(command)], tmp_path / "inputs")
    assert ran.status in (0, 1), ran.stderr.decode()


def cases() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each parameter with the values to try: all, and for those of the same kind in later commands every sixth.

    The sixth changes with each command. `make test` takes a third of them, which also changes.
    """
    seen: Counter[str] = Counter()
    share = 1 if TAKES_ALL else 3
    for number, (command, parameter, kind) in enumerate(parameters()):
        values = ODD[seen[kind] % (6 * share) :: 6 * share] if seen[kind] else ODD[number % share :: share]
        seen[kind] += 1
        yield command, parameter, values


def contents(directory: Path) -> dict[str, tuple[int, int]]:
    """Return sizes and times of change of all that is below a directory, by name."""
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in directory.rglob("*")}


@for_each("command, parameter, values", list(cases()), ids=lambda case: " ".join(case[:2]), shards=4)
def test_odd_values_are_taken_or_refused_in_a_line(
    command: str, parameter: str, values: tuple[str, ...], inputs: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "deep" / "deeper" / "inputs"
    shutil.copytree(inputs, directory)
    before = contents(directory)
    for value in values:
        arguments = with_value(command, parameter, value)
        ran = run.kseg(arguments, directory)
        assert ran.status in (0, 1, 2), arguments
        if ran.status == 2:
            lines = ran.stderr.decode().splitlines()
            assert lines, arguments
            assert all(line.startswith("kseg: ") for line in lines), (arguments, lines)
            assert len(lines) == 1 or "," in value or command == "ls", (arguments, lines)
        if contents(directory) != before:
            shutil.rmtree(directory)
            shutil.copytree(inputs, directory)
