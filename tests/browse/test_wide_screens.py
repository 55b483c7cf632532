"""Screens of several sizes: details of a row, times in a zone, keys and values in full."""

import asyncio
from pathlib import Path

import pytest
from textual.widgets import Static

from kseg.browse.bytes import Decoders
from kseg.browse.place import Clock
from kseg.browse.places import places_at
from kseg.browse.screen.browser import Browser
from kseg.times import parse_zone
from tests import golden
from tests.browse.driving import Driver, drive
from tests.log_files import NewBatch, NewRecord, write_segment

RELEASE = golden.ROOT / "logs" / "4.3.1"
BEGIN = 1_793_491_200_000
"""2026-11-01T00:00Z."""
JSON = b'{"id":7,"lines":[{"sku":"a-1","count":2}],"note":"fragile"}'
LONG = b" ".join(b"word-%03d" % number for number in range(60))


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Records with JSON, long text and bytes as values; a segment after the first."""
    values = [JSON, LONG, bytes(range(128, 200)), b"short"]
    records = [NewRecord(b"k-%d" % at, value, BEGIN + 1000 * at) for at, value in enumerate(values)]
    write_segment(tmp_path / "orders-0", [NewBatch(records)])
    write_segment(tmp_path / "orders-0", [NewBatch(records, 4)], 4)
    return tmp_path / "orders-0"


def heading(driver: Driver, name: str) -> str:
    return str(driver.browser.query_one(f"#{name}-heading", Static).content)


def footer(driver: Driver) -> str:
    return str(driver.browser.query_one("#says", Static).content)


@pytest.mark.parametrize("size", [(140, 40), (200, 50)])
def test_a_topic_shows_its_sums_and_settings_beside_the_list(size: tuple[int, int]) -> None:
    async def look(driver: Driver) -> None:
        await driver.press("down", "down", "down")
        fields = [line.split() for line in driver.fields()]
        assert ["size", "5.2", "KiB"] in fields
        assert ["setting", "cleanup.policy", "=", "compact"] in fields
        assert driver.browser.rows.size.width >= 60
        assert driver.browser.fields.size.width >= 60

    drive(RELEASE, look, size=size)


def test_a_partition_shows_where_it_ends() -> None:
    async def look(driver: Driver) -> None:
        await driver.press("enter")
        fields = {line.split()[0]: line.split()[1] for line in driver.fields()}
        assert fields["log_end_offset"] == "209300"
        assert fields["largest_time"] == "2020-02-13T12:38:18.775Z"

    drive(golden.ROOT / "docs", look, size=(140, 40))


def test_a_segment_shows_its_ends(orders: Path) -> None:
    async def look(driver: Driver) -> None:
        fields = {line.split()[0]: line.split()[1] for line in driver.fields()}
        assert (fields["first_offset"], fields["last_offset"]) == ("0", "3")
        assert fields["largest_time"] == "2026-11-01T00:00:03.000Z"

    drive(orders, look, size=(140, 40))


def test_records_have_their_times_in_wide_lists(orders: Path) -> None:
    async def look(driver: Driver) -> None:
        await driver.press("enter", "enter")
        assert driver.row.split()[:2] == ["0", "2026-11-01T00:00:00.000Z"]
        assert heading(driver, "rows").split() == ["offset", "time", "key", "→", "value"]
        assert heading(driver, "fields") == "record 0, offset 0  2026-11-01T00:00:00.000Z"

    drive(orders, look, size=(140, 40))


def test_narrow_lists_are_as_they_were(orders: Path) -> None:
    async def look(driver: Driver) -> None:
        await driver.press("enter", "enter")
        assert driver.row.startswith("0  'k-0' → ")
        assert heading(driver, "fields").endswith("2026-11-01T00:00:00.000Z")

    drive(orders, look)


def test_values_are_shown_in_full(orders: Path) -> None:
    async def look(driver: Driver) -> None:
        await driver.press("enter", "enter")
        assert [line.strip() for line in driver.fields() if '"sku"' in line and "'" not in line] == ['"sku": "a-1",']
        await driver.press("down")
        shown = "".join(line.strip() + " " for line in driver.fields())
        assert "word-059" in shown.replace(" ", "")
        await driver.press("down")
        assert any(line.strip().startswith("80 81 82 83") for line in driver.fields())
        await driver.press("down")
        assert sum("short" in line for line in driver.fields()) == 1

    drive(orders, look, size=(140, 50))


def test_bytes_in_hex_fit_narrow_panes(orders: Path) -> None:
    async def look(driver: Driver) -> None:
        await driver.press("enter", "enter", "down", "down")
        await driver.press("enter", "end")
        assert any(line.strip() == "c0 c1 c2 c3 c4 c5 c6 c7" for line in driver.fields())

    drive(orders, look)


def test_times_are_in_the_zone_of_the_command_line(orders: Path) -> None:
    async def run() -> None:
        clock = Clock(parse_zone("+02:00"), "+02:00")
        browser = Browser(places_at(orders), Decoders(), None, clock)
        async with browser.run_test(size=(200, 50)) as pilot:
            driver = Driver(browser, pilot)
            await driver.settle()
            await driver.press("enter")
            assert "2026-11-01T02:00:03.000+02:00" in driver.row
            assert any("max_timestamp" in line and "2026-11-01T02:00:03.000" in line for line in driver.fields())
            await driver.answer("t", "2026-11-01T02:00:02")
            assert driver.row.startswith("2 ")
            assert "2026-11-01T02:00:02.000+02:00" in driver.row

    asyncio.run(run())


def test_screen_that_becomes_wider_is_used(orders: Path) -> None:
    async def widen(driver: Driver) -> None:
        await driver.press("enter", "enter")
        await driver.pilot.resize_terminal(160, 40)
        await driver.settle()
        assert heading(driver, "rows").split()[1] == "time"
        assert driver.row.split()[1] == "2026-11-01T00:00:00.000Z"

    drive(orders, widen)


def test_footer_has_the_keys_that_work_here(orders: Path) -> None:
    async def look(driver: Driver) -> None:
        assert "p position" not in footer(driver)
        assert "v decode" not in footer(driver)
        await driver.press("enter", "enter")
        for key in ("? keys", "o offset", "p position", "/ search", "v decode", "C command", "q quit"):
            assert key in footer(driver)

    drive(orders, look, size=(140, 40))

    async def look_at_80(driver: Driver) -> None:
        assert footer(driver).startswith("? keys  o offset")
        assert footer(driver).endswith("q quit")
        assert len(footer(driver)) <= 78

    drive(orders, look_at_80)
