"""`kseg slice`: options, what it says, what it refuses."""

from pathlib import Path

import pytest

from tests import golden, run
from tests.kernel.made import BatchHeader, batch

SOURCE = str(golden.ROOT / "docs" / "test-1-0")


def kseg(directory: Path, *arguments: str) -> run.Run:
    return run.kseg(["slice", *arguments], directory)


def test_a_piece_is_written_and_told(tmp_path: Path) -> None:
    ran = kseg(tmp_path, SOURCE, "--from-offset", "203150", "--to-offset", "203200", "-o", "new/t-0")
    assert ran.status == 0
    assert ran.stdout.decode().splitlines() == [
        "new/t-0/00000000000000203100.log: offsets 203100 to 203199, 1 batches, "
        f"{(tmp_path / 'new/t-0/00000000000000203100.log').stat().st_size} bytes",
        "1 batches copied, 0 made anew, 0 records left out",
    ]


def test_times_are_given_as_people_write_them(tmp_path: Path) -> None:
    assert kseg(tmp_path, SOURCE, "--to-time", "2020-02-13T12:37:58.311Z", "-o", "t-0", "-q").stdout == b""
    assert run.kseg(["verify", "t-0"], tmp_path).stdout == b"ok\n"


def test_a_poison_pill_is_left_out(tmp_path: Path) -> None:
    ran = kseg(tmp_path, SOURCE, "--drop-offset", "203500", "-o", "t-0")
    assert b"1 made anew, 1 records left out" in ran.stdout
    shown = run.kseg(["dump", "-o", "json", "--only", "records", "t-0"], tmp_path).stdout
    assert b'"offset":203499,' in shown
    assert b'"offset":203500,' not in shown


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--from-offset", "1000000", "-o", "t-0"], 2),
        (["--from-time", "soon", "-o", "t-0"], 2),
        ([], 2),
    ],
)
def test_nothing_is_left_behind_where_it_fails(arguments: list[str], status: int, tmp_path: Path) -> None:
    assert kseg(tmp_path, SOURCE, *arguments).status == status
    assert list(tmp_path.iterdir()) == []


def test_damage_is_left_to_salvage(tmp_path: Path) -> None:
    source = str(golden.ROOT / "damaged" / "004-torn-records")
    ran = kseg(tmp_path, source, "-o", "t-0")
    assert ran.status == 1
    assert b"`kseg salvage` saves what is intact" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_into_the_source(tmp_path: Path) -> None:
    assert kseg(tmp_path, SOURCE, "-o", f"{SOURCE}/piece").status == 2


def test_a_batch_that_can_not_be_searched_for_a_key_is_damage(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(batch(BatchHeader(attributes=5, count=1), body=b"?"))
    ran = run.kseg(["slice", "t-0", "--drop-key", "k", "-o", "out"], tmp_path)
    assert ran.status == 1
    assert ran.stderr.startswith(b"kseg: t-0/00000000000000000000.log: at position 0: unknown codec 5 ")
    assert ran.stderr.endswith(b": `kseg salvage` saves what is intact\n")
