"""`C`: the copied command for the row under the cursor runs, and prints the row."""

import asyncio
import shlex
from pathlib import Path
from threading import current_thread, main_thread

import pytest

from kseg.browse.bytes import Decoders
from kseg.browse.place import Clock
from kseg.browse.places import places_at
from kseg.browse.screen.browser import Browser
from kseg.cluster.metadata_copy import AdjacentMetadata
from kseg.decode.values import DecoderOptions
from kseg.log.partition import PartitionLog
from kseg.times import parse_zone
from tests import golden
from tests.browse.driving import Driver, drive
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """Two log directories with a name that a shell must quote."""
    for disk, topic in (("disk 1", "orders"), ("disk 2", "it's")):
        for base in (0, 100):
            batches = [NewBatch([NewRecord(b"k", b"v-%d" % at)] * 10, at) for at in range(base, base + 100, 10)]
            log = write_segment(tmp_path / disk / f"{topic}-0", batches, base)
            index = b"".join((at).to_bytes(4, "big") + (8 * at).to_bytes(4, "big") for at in (10, 20, 30))
            log.with_suffix(".index").write_bytes(index)
        (tmp_path / disk / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{topic} 0 200\n")
    return tmp_path


async def run_copied_command(driver: Driver) -> str:
    """Return the output of the copied command."""
    await driver.press("C")
    sheet = driver.browser.screen_stack[-1]
    line = driver.browser.clipboard
    assert sheet is not driver.browser.screen_stack[0]
    await driver.press("escape")
    words = shlex.split(line)
    assert words[0] == "kseg"
    ran = kseg(words[1:], Path.cwd())
    assert ran.status == 0, (line, ran.stderr)
    return ran.stdout.decode(errors="replace")


def test_log_directory_topic_partition_file_batch_and_record(disks: Path) -> None:
    async def walk(driver: Driver) -> None:
        assert str(disks / "disk 1") in await run_copied_command(driver)
        await driver.press("enter")
        assert "orders-0" in await run_copied_command(driver)
        await driver.press("enter")
        assert "orders-0" in await run_copied_command(driver)
        await driver.press("enter")
        assert "00000000000000000000.log" in await run_copied_command(driver)
        await driver.press("enter", "down")
        assert driver.row.startswith("10 ")
        assert "10  offset of the first record" in await run_copied_command(driver)
        await driver.press("enter", "down", "down")
        assert driver.row.startswith("12 ")
        assert "\noffset: 12 " in await run_copied_command(driver)

    drive(disks, walk)


def test_names_with_quotes_and_files_next_to_topics(disks: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("down", "enter")
        assert driver.row.startswith("it's")
        assert "it's-0" in await run_copied_command(driver)
        await driver.press("down")
        assert "recovery-point-offset-checkpoint" in await run_copied_command(driver)
        await driver.press("enter", "end")
        assert driver.row == "it's 0 200"
        assert "it's 0 200" in await run_copied_command(driver)

    drive(disks, walk)


def test_entries_of_indexes(disks: Path) -> None:
    async def walk(driver: Driver) -> None:
        assert driver.row.split() == ["10", "80"]
        await driver.press("down")
        shown = await run_copied_command(driver)
        assert "relative_offset" in shown
        assert " 20 " in shown

    drive(disks / "disk 1" / "orders-0" / "00000000000000000000.index", walk)


def test_messages_in_an_old_wrapper() -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("enter", "down")
        assert driver.row.startswith("248 ")
        assert "offset: 248 " in await run_copied_command(driver)

    drive(golden.ROOT / "logs" / "0.10.0.1" / "gzip-0" / "00000000000000000247.log", walk)


def test_file_that_kseg_does_not_know_has_no_command(disks: Path) -> None:
    (disks / "disk 1" / "orders-0" / "zzz.txt").write_text("x")

    async def walk(driver: Driver) -> None:
        await driver.press("end", "C")
        assert driver.said == "no kseg command prints this row"

    drive(disks / "disk 1" / "orders-0", walk)


def test_the_command_decodes_and_shows_times_as_the_screen_does(disks: Path) -> None:
    schema = disks / "own schema.avsc"
    schema.write_text('"string"')

    async def run() -> None:
        decoders = Decoders(options=DecoderOptions(schema))
        decoders.choose("value", "avro")
        browser = Browser(places_at(disks / "disk 1"), decoders, None, Clock(parse_zone("+02:00"), "+02:00"))
        async with browser.run_test(size=(100, 40)) as pilot:
            driver = Driver(browser, pilot)
            await driver.settle()
            await driver.press("C", "escape")
            assert shlex.split(driver.browser.clipboard)[-2:] == ["--tz", "+02:00"]
            await driver.press("enter", "enter", "enter", "enter", "C", "escape")
            decoded = ["--value-decoder", "avro", "--schema", str(schema)]
            assert shlex.split(driver.browser.clipboard)[-7:] == ["--print-data-log", *decoded, "--tz", "+02:00"]

    asyncio.run(run())


def test_settings_are_not_read_by_the_thread_of_the_screen(disks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readers = set()

    def settings(self: AdjacentMetadata, partition: PartitionLog) -> dict[str, str]:
        readers.add(current_thread())
        return {"retention.ms": "5"}

    monkeypatch.setattr(AdjacentMetadata, "topic_settings", settings)

    async def walk(driver: Driver) -> None:
        await driver.press("enter")
        assert "retention.ms = 5" in driver.fields()[-1]
        await driver.press("enter")
        assert "retention.ms = 5" in driver.fields()[-1]

    drive(disks, walk)
    assert readers
    assert main_thread() not in readers
