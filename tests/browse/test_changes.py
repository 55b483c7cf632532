"""Logs that grow, are cut, replaced or removed on the screen: browse reports it, and nothing breaks."""

import os
from pathlib import Path

import pytest

from kseg.browse.bytes import OpenLogBytes
from kseg.reading.log_file import LogFile
from tests.browse.driving import Driver, drive
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment


def batches(first: int, last: int) -> list[NewBatch]:
    return [NewBatch([NewRecord(b"k%d" % offset, b"v" * 100)], offset) for offset in range(first, last)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_segment(tmp_path / "orders-0", batches(0, 5))


def test_log_that_grows_is_read_on(log: Path) -> None:
    async def grow(driver: Driver) -> None:
        await driver.press("r")
        assert driver.said == "no changes"
        size = log.stat().st_size
        with log.open("ab") as file:
            file.write(b"".join(map(batch_bytes, batches(5, 8))))
        await driver.press("r")
        assert driver.said == f"the log grew from {size} to {log.stat().st_size} bytes"
        assert [row.split()[0] for row in driver.rows()] == [str(offset) for offset in range(8)]

    drive(log, grow)


def test_torn_tail_that_is_completed_is_no_damage_any_more(log: Path) -> None:
    added = batch_bytes(batches(5, 6)[0])
    with log.open("ab") as file:
        file.write(added[:50])

    async def complete(driver: Driver) -> None:
        assert driver.rows()[-1].strip() == "torn-tail: 50 B"
        with log.open("ab") as file:
            file.write(added[50:])
        await driver.press("r")
        assert driver.rows()[-1].split()[0] == "5"

    drive(log, complete)


def test_log_that_is_cut_loses_its_rows(log: Path) -> None:
    async def cut(driver: Driver) -> None:
        await driver.press("end")
        size = log.stat().st_size
        with log.open("r+b") as file:
            file.truncate(size // 2)
        await driver.press("up")  # the visible rows are read again
        await driver.press("r")
        assert driver.said == f"the log was cut from {size} to {size // 2} bytes"
        assert [row.split()[0] for row in driver.rows()] == ["0", "1", "torn-tail:"]

    drive(log, cut)


def test_row_that_was_cut_off_says_so_before_anybody_looks_again(log: Path) -> None:
    async def cut(driver: Driver) -> None:
        with log.open("r+b") as file:
            file.truncate(10)
        await driver.press("end")
        assert "cut since" in driver.row or "was cut" in driver.said
        await driver.press("enter")
        assert driver.way[-1] == log.name

    drive(log, cut)


def test_log_that_is_emptied_and_filled_again(log: Path) -> None:
    whole = log.read_bytes()

    async def empty(driver: Driver) -> None:
        with log.open("r+b") as file:
            file.truncate(0)
        await driver.press("r")
        assert driver.said.endswith("to 0 bytes")
        assert driver.rows() == []
        await driver.press("enter", "down", "end", "d", "c", "tab", "enter")
        log.write_bytes(whole)
        await driver.press("backspace", "backspace", "r")
        assert len(driver.rows()) == 5 or driver.way == ["orders-0"]

    drive(log, empty)


def test_bytes_of_a_log_that_was_left_are_none(log: Path) -> None:
    with LogFile(log) as log_file:
        source = OpenLogBytes(log_file)
        assert source.read(0, 8) == log.read_bytes()[:8]
    other = os.open(__file__, os.O_RDONLY)  # takes the number that the log had
    try:
        assert source.read(0, 8) == b""
    finally:
        os.close(other)


def test_log_that_is_gone_can_still_be_read(log: Path) -> None:
    async def remove(driver: Driver) -> None:
        log.unlink()
        await driver.press("r")
        assert driver.said == "the file is gone; kseg can still read the open file"
        await driver.press("down", "enter")
        assert driver.row.startswith("1 ")
        await driver.press("backspace", "backspace", "r")
        assert driver.way == ["orders-0"]
        assert driver.said == "updated: 1 gone"

    drive(log, remove)


def test_log_that_another_took_the_place_of_is_shown_anew(log: Path) -> None:
    async def replace(driver: Driver) -> None:
        await driver.press("end")
        other = log.with_name("other")
        other.write_bytes(b"".join(map(batch_bytes, batches(40, 42))))
        other.replace(log)
        await driver.press("r")
        assert "another file" in driver.said
        assert [row.split()[0] for row in driver.rows()] == ["40", "41"]

    drive(log, replace)


def test_new_segments_are_listed_again(log: Path) -> None:
    async def roll(driver: Driver) -> None:
        write_segment(log.parent, batches(5, 7), 5)
        await driver.press("r")
        assert driver.said == "updated: 1 new"
        assert len(driver.rows()) == 2

    drive(log.parent, roll)


def test_only_what_is_looked_at_of_a_large_log_is_read(tmp_path: Path) -> None:
    one = batch_bytes(NewBatch([NewRecord(None, b"v" * 16000)], 0))
    log = write_segment(tmp_path / "large-0", [])
    with log.open("wb") as file, log.with_suffix(".index").open("wb") as index:
        for offset in range(4096):
            if offset:
                index.write(offset.to_bytes(4, "big") + (offset * len(one)).to_bytes(4, "big"))
            file.write(offset.to_bytes(8, "big") + one[8:])

    async def walk(driver: Driver) -> None:
        place = driver.browser.place
        assert place.count < 1024
        await driver.press("end")
        assert driver.row.startswith("4095 ")
        assert place.count < 1024
        await driver.press(*["pageup"] * 5)
        assert driver.row.startswith(f"{4095 - 5 * 18} ")
        await driver.answer("o", "2048")
        await driver.press("backspace")
        assert driver.row.startswith("2048 ")
        assert driver.browser.place.count < 1024
        await driver.press("home")
        assert driver.row.startswith("0 ")

    drive(log, walk)
