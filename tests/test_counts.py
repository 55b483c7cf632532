"""Nouns after 1 are singular: `1 record`, not `1 records`, in help, on the pages and in the output of commands."""

import re
from pathlib import Path

import pytest

from kseg.cli import COMMANDS
from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment

SEVERAL = re.compile(r"(?<![0-9.,:/=-])\b1 [a-z]+s\b")
NO_NOUNS = {"1 is", "1 has", "1 as", "1 says", "1 this", "1 was", "1 does", "1 stays", "1 goes", "1 needs"}
"""Words that may follow a number that isn't a count."""
PRINTED = (
    "ls ONE",
    "ls ONE --by segment --deep",
    "ls ONE --by topic",
    "ls ONE --deep --from-offset 0",
    "ls ONE -o chart",
    "verify ONE",
    "verify ONE -v",
    "doctor ONE -v",
    "retain ONE",
    "retain ONE --retention-ms 1",
    "compact ONE --plan",
    "lookup ONE --offset 0",
    "explain ONE/LOG",
    "salvage ONE",
    "reindex ONE",
    "slice ONE --to new --from-offset 0",
    "dump ONE -o csv",
    "dump ONE --value-decoder json --fields valueDecoded",
    "dump ONE --grep nothing",
    "txns ONE",
    "groups ONE",
    "diff ONE OTHER",
    "where ONE --key a",
    "query COUNT ONE",
    "report ONE -o text",
    "export ONE out --dry-run",
    "export ONE out",
)


def found_in(text: str) -> list[str]:
    return [found for found in SEVERAL.findall(text) if found not in NO_NOUNS]


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """Return a log with one record in one batch and a byte after it, and another with one remaining byte."""
    log = write_segment(tmp_path / "one-0", [NewBatch([NewRecord(b"a", b"b")])])
    log.write_bytes(log.read_bytes() + b"x")
    write_segment(tmp_path / "other" / "one-0", []).write_bytes(b"y")
    return log


@pytest.mark.parametrize("line", PRINTED)
def test_commands_print_one_thing_as_one(line: str, one: Path, tmp_path: Path) -> None:
    names = {
        "ONE/LOG": f"one-0/{one.name}",
        "ONE": "one-0",
        "OTHER": "other/one-0",
        "COUNT": "select count(*) from records",
    }
    ran = run.kseg([names.get(word, word) for word in line.split()], tmp_path)
    assert b"Usage:" not in ran.stderr
    assert found_in((ran.stdout + ran.stderr).decode()) == []


def test_golden_logs_are_told_so() -> None:
    for command in ("ls", "verify", "txns", "groups"):
        ran = run.kseg([command, "logs/4.3.1", "damaged/000-torn-header", "damaged/009-torn-first"], golden.ROOT)
        assert found_in((ran.stdout + ran.stderr).decode()) == [], command


def test_help_and_messages_say_one_thing_as_one() -> None:
    texts = {name: run.kseg([name, "--help"], golden.ROOT).stdout.decode() for name in COMMANDS}
    texts["messages"] = (golden.ROOT.parent / "docs/help/messages.md").read_text("utf-8")
    assert {name: found for name, text in texts.items() if (found := found_in(text))} == {}
