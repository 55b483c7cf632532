"""Keys pressed during a read: they act on the visible rows, and nothing jumps later."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore
from typing import Any

import pytest

from tests.browse.driving import Driver, drive
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment

COUNT = 3000


class HeldThreads(ThreadPoolExecutor):
    """Threads that start each work only when a test lets them, like a disk of any slowness."""

    def __init__(self) -> None:
        super().__init__(2)
        self.allowed = Semaphore(0)

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        def held() -> Any:
            self.allowed.acquire()
            return work(*arguments, **named)

        return super().submit(held)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two-record batches, and an index with all of them."""
    one = batch_bytes(NewBatch([NewRecord(b"k", b"v" * 2000)] * 2, 0))
    log = write_segment(tmp_path_factory.mktemp("slow") / "orders-0", [])
    with log.open("wb") as file, log.with_suffix(".index").open("wb") as index:
        for number in range(COUNT):
            if number:
                index.write((2 * number).to_bytes(4, "big") + (number * len(one)).to_bytes(4, "big"))
            file.write((2 * number).to_bytes(8, "big") + one[8:])
    return log


def slowly(path: Path, scenario: Callable[[Driver, HeldThreads], Awaitable[None]]) -> None:
    """Run a scenario that releases the threads itself."""

    async def hold(driver: Driver) -> None:
        threads = HeldThreads()
        asyncio.get_running_loop().set_default_executor(threads)
        try:
            await scenario(driver, threads)
        finally:
            threads.allowed.release(1000)
            await driver.settle()

    drive(path, hold)


def test_going_in_while_the_last_row_is_read_stays_in(log: Path) -> None:
    async def go_in(driver: Driver, threads: HeldThreads) -> None:
        await driver.press_meanwhile("end", "enter")
        threads.allowed.release(1000)
        await driver.settle()
        assert driver.way[-1] == "batch 0-1"
        assert driver.row.startswith("0 ")
        await driver.press("backspace")
        assert driver.row.startswith("0 ")

    slowly(log, go_in)


def test_coming_back_leads_to_the_same_row_though_rows_before_it_were_read(log: Path) -> None:
    async def come_back(driver: Driver, threads: HeldThreads) -> None:
        threads.allowed.release(2)
        await driver.press_meanwhile("o", *str(COUNT), "enter")
        await driver.settle()
        await driver.press_meanwhile("backspace")
        while not driver.browser.is_busy:
            await driver.press_meanwhile("pageup")
        row = driver.row
        await driver.press_meanwhile("enter")
        threads.allowed.release(1000)
        await driver.settle()
        await driver.press("backspace")
        assert driver.row == row

    slowly(log, come_back)


def test_rows_are_those_of_the_place_also_while_it_is_read(log: Path) -> None:
    async def look(driver: Driver, threads: HeldThreads) -> None:
        await driver.press_meanwhile("enter")
        threads.allowed.release(1)  # the match is found, and its surroundings are still to be read
        await driver.press_meanwhile("o", *str(2 * COUNT - 2), "enter")
        while driver.way[-1] != log.name:
            await driver.pilot.pause()
        assert driver.row.split()[:2] == ["0", "2"]
        threads.allowed.release(1000)
        await driver.settle()
        assert driver.row.startswith(str(2 * COUNT - 2))

    slowly(log, look)
