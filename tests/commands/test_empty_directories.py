"""Directories without partitions: all commands say the same of them, and end with the same status."""

from pathlib import Path

import pytest

from tests.run import kseg

EMPTY = b"kseg: here: no partition is here: give a partition's directory, a log directory, or a parent of it\n"


@pytest.mark.parametrize("inside", [[], ["notes"], ["notes/more"]], ids=["empty", "a file", "a directory"])
@pytest.mark.parametrize(
    "command",
    [
        "dump here",
        "dump here -o csv",
        "ls here -o csv -q",
        "verify here",
        "lookup here --offset 1",
        "lookup here --offset 1 --topic orders --partition 0",
        "salvage here --dry-run",
        "salvage here -o new",
        "reindex here -o new",
        "explain here",
        "slice here -o new",
        "retain here",
        "txns here",
        "groups here",
        "metadata here",
        "where --group billing here",
        "export here new",
    ],
)
def test_directory_without_partitions_is_told_in_the_same_words(
    command: str, inside: list[str], tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    for name in inside:
        path = tmp_path / "here" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("nothing of Kafka's")
    ran = kseg(command.split(), tmp_path)
    assert (ran.status, ran.stderr) == (2, EMPTY)
    assert not (tmp_path / "new").exists()


def test_current_directory_without_partitions_is_told_too(tmp_path: Path) -> None:
    assert {kseg([name], tmp_path).stderr.replace(b".", b"here", 1) for name in ("dump", "ls", "txns")} == {EMPTY}
