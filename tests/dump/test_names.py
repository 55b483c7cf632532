"""Names of files in what `kseg dump` prints: as they were given, harmless to terminals, and whole in JSON."""

import json
import os
from itertools import product
from pathlib import Path

import pytest

from tests import golden
from tests.loops import for_each
from tests.run import Run, kseg

SAMPLE = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000"
WILD = "\x1b[31m\n\x9b2J"
NO_UTF_8 = os.fsdecode(b"\xff\xe4")


def dump(directory: Path, *arguments: str) -> Run:
    return kseg(["dump", *arguments], directory)


@pytest.fixture
def wild(tmp_path: Path) -> Path:
    """A directory whose name no terminal should see, with a damaged log, an index and a checkpoint that is none."""
    directory = tmp_path / f"{WILD}{NO_UTF_8}"
    directory.mkdir()
    (directory / f"{SAMPLE.name}.log").write_bytes(SAMPLE.with_suffix(".log").read_bytes()[:-1])
    (directory / f"{SAMPLE.name}.index").write_bytes(SAMPLE.with_suffix(".index").read_bytes()[:-3])
    (directory / f"{SAMPLE.name}.snapshot").write_bytes(b"no snapshot")
    (directory / "meta.properties").write_bytes(b"\xff")
    return directory


@pytest.mark.parametrize(
    "option", ["--shallow", "--verify-index-only", "--index-sanity-check", "-o table", "--fields file"]
)
def test_no_name_does_harm_to_a_terminal(option: str, wild: Path) -> None:
    names = [f"{wild.name}/{name}" for name in sorted(path.name for path in wild.iterdir())]
    ran = dump(wild.parent, *option.split(), *names, f"{wild.name}/nowhere.log")
    shown = ran.stdout if option != "--fields file" else b""
    for line in (shown + ran.stderr).decode().splitlines():
        assert line.isprintable()
    assert b"\\xff\\xe4/nowhere.log: can't be opened" in ran.stderr


@pytest.mark.parametrize(
    "command",
    ["ls", "ls -o table", "verify", "salvage --dry-run", "reindex --dry-run", "retain", "lookup --offset 203000"],
)
def test_no_command_shows_a_name_that_does_harm(command: str, wild: Path) -> None:
    ran = kseg([*command.split(), wild.name], wild.parent)
    assert b"\\x1b[31m" in ran.stdout + ran.stderr
    for line in (ran.stdout + ran.stderr).decode().splitlines():
        assert line.isprintable()


def test_json_is_json_for_every_name(wild: Path) -> None:
    ran = dump(wild.parent, "-o", "json", wild.name)
    files = [json.loads(line)["file"] for line in ran.stdout.decode().splitlines() if '"file"' in line]
    assert {os.fsencode(file) for file in files} == {
        os.fsencode(path.relative_to(wild.parent)) for path in wild.iterdir()
    }


@pytest.mark.parametrize("option", ["-o csv", "-o json", "--fields file,offset", "-o json --fields file,offset"])
def test_rows_of_several_files_name_each_its_own(option: str, tmp_path: Path) -> None:
    names = ["a{}.log", "{b}.log"]
    for name in names:
        (tmp_path / name).write_bytes(SAMPLE.with_suffix(".log").read_bytes())
    ran = dump(tmp_path, *option.split(), *names)
    lines = [line for line in ran.stdout.decode().splitlines() if '"type":"summary"' not in line]
    counts = [sum(name in line for line in lines) for name in names]
    assert counts == [6300 + (30 if option == "-o json" else 0)] * 2


@for_each(
    "name, output",
    list(
        product(
            ["nowhere.log", "nowhere.index", "nowhere.snapshot", "nowhere.txnindex", "meta.properties"],
            ["text", "json", "csv"],
        )
    ),
)
def test_file_that_is_not_there_is_named_as_it_was_given(name: str, output: str, tmp_path: Path) -> None:
    ran = dump(tmp_path, "-o", output, f"./{name}", name)
    assert [line.split(": ")[1] for line in ran.stderr.decode().splitlines()] == [f"./{name}", name]


def test_files_beside_each_other_are_one_partition_however_they_are_named(tmp_path: Path) -> None:
    log = SAMPLE.with_suffix(".log").read_bytes()
    (tmp_path / "00000000000000203000.log").write_bytes(log)
    (tmp_path / "00000000000000209300.log").write_bytes(log[:0])
    ran = dump(tmp_path, "--tail", "2", "--fields", "offset", "00000000000000203000.log", "./00000000000000209300.log")
    assert ran.stdout == b"offset: 209298\noffset: 209299\n"


@pytest.mark.parametrize("files", ["", ",", ",,"])
def test_files_option_that_names_no_file_is_refused(files: str, tmp_path: Path) -> None:
    ran = dump(tmp_path, "--files", files)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"kseg: dump: --files is empty")
