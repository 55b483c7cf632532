"""`kseg carve --check`: images and logs that changed since they were carved."""

from pathlib import Path

import pytest

from tests.carve.made_images import lockstep_logs, scatter
from tests.commands.test_carve import carve, carved_paths
from tests.run import kseg

INPUT = '{"type": "input", "path": "disk.img", "from": 0, "size": 4, "sha256": null}\n'
CHECK = ["carve", "--check", "carved/carve.jsonl"]


@pytest.fixture
def carved(tmp_path: Path) -> Path:
    """Return a directory with `disk.img` and what was carved from it."""
    carve(tmp_path, scatter(list(lockstep_logs(4, 30_000, 6)), seed=6, mean_blocks=2).content)
    return tmp_path


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_what_was_carved_agrees_with_its_evidence(carved: Path) -> None:
    ran = kseg(CHECK, carved)
    assert ran.status == 0
    assert ran.stdout.endswith(b" compared: 0 files differ\n")
    assert kseg([*CHECK, "-q"], carved) == (0, b"", b"")


def test_an_image_that_has_moved_is_named(carved: Path) -> None:
    (carved / "disk.img").rename(carved / "moved.img")
    assert kseg(CHECK, carved).status == 2
    assert kseg([*CHECK, "moved.img"], carved).status == 0


def test_a_changed_log_is_reported(carved: Path) -> None:
    flip(carved_paths(carved)[0], 100)
    ran = kseg(CHECK, carved)
    assert ran.status == 1
    assert ran.stdout.splitlines()[0].startswith(b"carved-0001-0/")
    assert b": has SHA-256 " in ran.stdout.splitlines()[0]


def test_a_changed_image_is_reported(carved: Path) -> None:
    flip(carved / "disk.img", 5)
    ran = kseg(CHECK, carved)
    assert ran.status == 1
    assert ran.stdout.startswith(b"disk.img: has SHA-256 ")


def test_a_log_that_never_came_from_the_image_is_reported(carved: Path) -> None:
    evidence = carved / "carved/carve.jsonl"
    lines = evidence.read_text().splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines) if '"batch"' in line)
    before, _, after = lines[number].partition("[[0, ")
    start, _, rest = after.partition(",")
    end, _, rest = rest.partition("]")
    lines[number] = f"{before}[[0, {int(start) + 1}, {int(end) + 1}]{rest}"
    evidence.write_text("".join(lines))
    ran = kseg(CHECK, carved)
    assert ran.status == 1
    assert b"at position 0: the batch isn't the one in the image" in ran.stdout


def test_a_missing_log_is_reported(carved: Path) -> None:
    carved_paths(carved)[0].unlink()
    ran = kseg(CHECK, carved)
    assert ran.status == 1
    assert b"can't be opened: No such file or directory" in ran.stdout


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]\n",
        "nonsense\n",
        INPUT + '{"type": "file", "file": "../x.log"}\n',
        INPUT + '{"type": "file"}\n',
    ],
)
def test_other_files_are_no_evidence(content: str, carved: Path) -> None:
    (carved / "carved/carve.jsonl").write_text(content)
    ran = kseg(CHECK, carved)
    assert ran.status == 2
    assert b"isn't the evidence of `kseg carve`" in ran.stderr
