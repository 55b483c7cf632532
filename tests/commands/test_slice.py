"""`kseg slice`: options, output, and refusals."""

from pathlib import Path

import pytest

from tests import golden, run
from tests.kernel.made import BatchHeader, batch
from tests.log_files import NewBatch, NewRecord, write_segment

SOURCE = str(golden.ROOT / "docs" / "test-1-0")


def kseg(directory: Path, *arguments: str) -> run.Run:
    return run.kseg(["slice", *arguments], directory)


def test_a_piece_is_written_and_reported(tmp_path: Path) -> None:
    ran = kseg(tmp_path, SOURCE, "--from-offset", "203150", "--to-offset", "203200", "--to", "new/t-0")
    assert ran.status == 0
    assert ran.stdout.decode().splitlines() == [
        "new/t-0/00000000000000203100.log: offsets 203100 to 203199, 1 batch, "
        f"{(tmp_path / 'new/t-0/00000000000000203100.log').stat().st_size} bytes",
        "1 batch copied, 0 rebuilt, 0 records omitted",
    ]


def test_times_are_given_as_people_write_them(tmp_path: Path) -> None:
    assert kseg(tmp_path, SOURCE, "--to-time", "2020-02-13T12:37:58.311Z", "--to", "t-0", "-q").stdout == b""
    assert run.kseg(["verify", "t-0"], tmp_path).stdout == b"ok\n"


def test_a_poison_pill_is_left_out(tmp_path: Path) -> None:
    ran = kseg(tmp_path, SOURCE, "--drop-offset", "203500", "--to", "t-0")
    assert b"1 rebuilt, 1 record omitted" in ran.stdout
    shown = run.kseg(["dump", "-o", "json", "--only", "records", "t-0"], tmp_path).stdout
    assert b'"offset":203499,' in shown
    assert b'"offset":203500,' not in shown


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--from-offset", "1000000", "--to", "t-0"], 2),
        (["--from-time", "soon", "--to", "t-0"], 2),
        ([], 2),
    ],
)
def test_nothing_is_left_behind_where_it_fails(arguments: list[str], status: int, tmp_path: Path) -> None:
    assert kseg(tmp_path, SOURCE, *arguments).status == status
    assert list(tmp_path.iterdir()) == []


def test_damage_is_left_to_salvage(tmp_path: Path) -> None:
    source = str(golden.ROOT / "damaged" / "004-torn-records")
    ran = kseg(tmp_path, source, "--to", "t-0")
    assert ran.status == 1
    assert b"run `kseg salvage` to keep the intact batches" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_into_the_source(tmp_path: Path) -> None:
    assert kseg(tmp_path, SOURCE, "--to", f"{SOURCE}/piece").status == 2


def test_a_batch_that_can_not_be_searched_for_a_key_is_damage(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(batch(BatchHeader(attributes=5, count=1), body=b"?"))
    ran = run.kseg(["slice", "t-0", "--drop-key", "k", "--to", "out"], tmp_path)
    assert ran.status == 1
    assert ran.stderr.startswith(b"kseg: t-0/00000000000000000000.log: at position 0: unknown codec 5 ")
    assert ran.stderr.endswith(b"; run `kseg salvage` to keep the intact batches\n")


def built(directory: Path) -> None:
    records = [NewRecord(key, b"v") for key in (b"k", b"\xff\x00", b"hex:ff00", b"k")]
    write_segment(directory / "t-0", [NewBatch(records)])


def offsets(directory: Path, partition: str) -> list[int]:
    shown = run.kseg(["dump", partition, "--template", "{offset}"], directory).stdout
    return list(map(int, shown.split()))


@pytest.mark.parametrize(
    ("key", "left"),
    [
        ("k", [1, 2]),
        ("hex:6b", [1, 2]),
        ("base64:aw==", [1, 2]),
        ("hex:ff00", [0, 2, 3]),
        ("base64:/wA=", [0, 2, 3]),
        ("hex:6865783a66663030", [0, 1, 3]),
    ],
)
def test_a_key_means_what_it_means_to_dump(key: str, left: list[int], tmp_path: Path) -> None:
    built(tmp_path)
    assert kseg(tmp_path, "t-0", "--drop-key", key, "--to", "new/t-0", "-q").status == 0
    assert offsets(tmp_path, "new/t-0") == left
    chosen = run.kseg(["dump", "t-0", "--key", key, "--template", "{offset}"], tmp_path).stdout
    assert sorted([*map(int, chosen.split()), *left]) == [0, 1, 2, 3]


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    built(tmp_path)
    assert kseg(tmp_path, "t-0", "--drop-key", "hex:f", "--to", "new").status == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--drop-offset", "7"),
        ("--drop-key", "other"),
        ("--drop-key", "hex:ff", "--drop-offset", "1"),
        ("--drop-offset", "1", "--drop-offset", "9"),
    ],
)
def test_leaving_nothing_out_is_said(arguments: tuple[str, ...], tmp_path: Path) -> None:
    built(tmp_path)
    ran = kseg(tmp_path, "t-0", *arguments, "--to", "new/t-0", "-q")
    assert ran.status == 1
    missed = next(
        f"{option} {given}"
        for option, given in zip(arguments[::2], arguments[1::2], strict=True)
        if given in ("7", "9", "other", "hex:ff")
    )
    assert ran.stderr.decode() == (f"kseg: t-0: {missed}: no requested record matches it, so it left nothing out\n")
    assert offsets(tmp_path, "new/t-0") == ([0, 2, 3] if "1" in arguments else [0, 1, 2, 3])


def test_batches_that_bounds_of_time_leave_out_between_copied_ones_are_reported(tmp_path: Path) -> None:
    times = (1000, 5000, 1000, 5000, 5000, 1000, 5000)
    batches = [NewBatch([NewRecord(b"k", b"v", time)], base) for base, time in enumerate(times)]
    write_segment(tmp_path / "old-0", batches, 0)
    ran = kseg(tmp_path, "old-0", "--to-time", "2000ms", "--to", "t-0")
    assert ran.status == 0
    assert b"t-0: the slice has 2 holes, since records" in ran.stderr
    assert b"; left out: offsets 1, 3 to 4\n" in ran.stderr
    assert b"hole" not in kseg(tmp_path, "old-0", "--to-offset", "3", "--to", "u-0").stderr
