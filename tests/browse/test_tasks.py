"""Typical tasks in counted keys, on a terminal of 80 columns and 24 lines."""

import json
import shutil
from pathlib import Path

import pytest

from kseg.browse.places import DirectoryPlace
from kseg.browse.search import Begin, NotThereError, Watch, next_damage
from kseg.cluster.directories import LogDir
from tests import golden
from tests.browse.driving import Driver, drive
from tests.commands.test_remote_tier import write_partition
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.loops import some, some_of_each

SAMPLE = golden.ROOT / "docs" / "test-1-0"
WIPED = golden.ROOT / "damaged" / "210-wiped-batch"
RELEASE = golden.ROOT / "logs" / "4.3.1"
HEADERS = (("trace", b"abc-1"), ("empty", b""), ("none", None))


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A log directory with a topic of two partitions, three segments in the first."""
    for partition, segments in ((0, 3), (1, 1)):
        for number in range(segments):
            base = 100 * number
            batches = [
                NewBatch(
                    [
                        NewRecord(
                            f"key-{base + first + each}".encode(),
                            b'{"price":%d}' % (base + first + each),
                            1_700_000_000_000 + 1000 * (base + first + each),
                            HEADERS if first + each == 57 else (),
                        )
                        for each in range(10)
                    ],
                    base + first,
                )
                for first in range(0, 100, 10)
            ]
            write_segment(tmp_path / "disk" / f"orders-{partition}", batches, base)
    return tmp_path / "disk"


def damage(log: Path, offset: int) -> None:
    """Change a byte in the batch of an offset that is a multiple of ten."""
    content = bytearray(log.read_bytes())
    at = 0
    while int.from_bytes(content[at : at + 8], "big") != offset:
        at += 12 + int.from_bytes(content[at + 8 : at + 12], "big")
    content[at + 70] ^= 0xFF
    log.write_bytes(content)


def test_damaged_batch_is_one_key_away() -> None:
    async def find(driver: Driver) -> None:
        await driver.press("d")
        assert driver.way == ["210-wiped-batch", "00000000000000021933.log"]
        assert driver.row == "bad-length: 107 B"
        assert "length field is 0" in driver.detail
        assert driver.red_rows() == ["bad-length: 107 B"]

    assert drive(WIPED, find).strokes == 1


def test_damage_in_a_later_segment_of_a_topic_is_one_key_away(orders: Path) -> None:
    damage(orders / "orders-0" / "00000000000000000100.log", 130)

    async def find(driver: Driver) -> None:
        await driver.press("d")
        assert driver.way[1:] == ["orders", "orders-0", "00000000000000000100.log"]
        assert driver.row.startswith("130 ")
        assert "crc" in driver.detail
        await driver.press("d")
        assert driver.said == "no damage after this place"
        await driver.press("backspace")
        assert [row.split()[0] for row in driver.red_rows()] == ["00000000000000000100.log"]
        await driver.press("backspace", "backspace")
        assert driver.red_rows() == ["orders  2 partitions, 13.0 KiB"]

    drive(orders, find)


def test_headers_of_a_record_are_a_few_keys_away(orders: Path) -> None:
    async def read(driver: Driver) -> None:
        await driver.answer("o", "157")  # o 1 5 7 Enter
        assert driver.row.startswith("157  'key-157'")
        await driver.press("enter", "end", "up")
        assert driver.field.split() == ["key", "'none'"]
        assert driver.lit == b"none"
        assert any("'abc-1'" in line for line in driver.fields())

    assert drive(orders / "orders-0", read).strokes == 8


def test_time_is_reached_by_typing_it(orders: Path) -> None:
    async def go(driver: Driver) -> None:
        await driver.answer("t", "1700000123000")
        assert driver.way[-2:] == ["00000000000000000100.log", "batch 120-129"]
        assert driver.row.startswith("123 ")

    assert drive(orders / "orders-0", go).strokes == 15


def test_position_leads_to_the_batch_that_holds_it() -> None:
    async def go(driver: Driver) -> None:
        await driver.answer("p", "5000")
        assert driver.row.startswith("203100 ")
        assert "position 2987," in driver.detail

    drive(SAMPLE / "00000000000000203000.log", go)


def test_bytes_of_the_field_under_the_cursor_are_lit() -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("enter", "enter", "down", "tab")
        await driver.press(*["down"] * 6)
        assert driver.field.startswith("value ")
        assert driver.lit == b"local test -------- 1"
        assert driver.detail.startswith("records[1].value")

    drive(SAMPLE, walk, size=(120, 30))


def test_byte_under_the_cursor_finds_its_field() -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("enter", "tab", "tab", *["right"] * 17)
        assert driver.field.startswith("crc ")
        assert len(driver.lit) == 4

    drive(SAMPLE, walk)


def test_search_goes_through_keys_and_values_and_on_to_the_next_segment(orders: Path) -> None:
    async def search(driver: Driver) -> None:
        await driver.answer("/", "/y-99|:100/")
        assert driver.row.startswith("99 ")
        await driver.press("n")
        assert driver.way[-2] == "00000000000000000100.log"
        assert driver.row.startswith("100 ")
        await driver.press("n")
        assert driver.said == "no match for '/y-99|:100/' after this place"
        assert driver.row.startswith("100 ")

    drive(orders / "orders-0", search)


def test_values_are_decoded_as_json(orders: Path) -> None:
    async def decode(driver: Driver) -> None:
        await driver.answer("o", "7")
        await driver.answer("v", "json")
        assert any('"price": 7' in line for line in driver.fields())
        await driver.answer("v", "int64")
        assert any("as int64" in line for line in driver.fields())
        await driver.answer("v", "nonsense")
        assert "no such decoder; specify one of string," in driver.said

    drive(orders / "orders-0", decode, size=(120, 40))


def test_copy_gives_the_value_and_the_bytes(orders: Path) -> None:
    async def copy(driver: Driver) -> None:
        await driver.answer("o", "7")
        await driver.press("enter", *["down"] * 6, "c")
        assert driver.browser.clipboard == "key-7"
        await driver.press("enter", "c")
        assert driver.browser.clipboard == b"key-7".hex(" ")

    drive(orders / "orders-0", copy)


def test_export_is_what_explain_prints(orders: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "row.json"
    target.parent.mkdir()

    async def export(driver: Driver) -> None:
        await driver.answer("o", "7")
        await driver.answer("e", str(target))
        assert "wrote" in driver.said
        await driver.answer("e", str(target))
        assert "already exists" in driver.said
        await driver.answer("e", str(orders / "orders-0" / "new.json"))
        assert "which kseg reads; specify" in driver.said

    drive(orders / "orders-0", export)
    first, *others = map(json.loads, target.read_text().splitlines())
    assert first["title"] == "record 7, offset 7"
    assert {each["field"]: each["value"] for each in others}["records[7].key"] == "key-7"
    assert not (orders / "orders-0" / "new.json").exists()


def test_every_file_of_a_broker_can_be_walked_into(tmp_path: Path) -> None:
    files = sorted(path for path in RELEASE.rglob("*") if path.is_file())
    for path in some_of_each(files, lambda path: path.suffix or path.name):
        copy = tmp_path / path.relative_to(RELEASE)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)

    async def walk(driver: Driver) -> None:
        depth, place = len(driver.way), driver.browser.place
        for _ in range(place.count):
            row = driver.row
            await driver.press("enter")
            assert len(driver.way) == depth + 1, row
            assert driver.rows() or "nothing" in driver.detail, driver.way
            if isinstance(driver.browser.place, DirectoryPlace):
                walked.append(driver.way[-1])
                await walk(driver)
            await driver.press("backspace", "down")

    walked: list[str] = []
    drive(tmp_path, walk)
    directories = {directory.name for directory in LogDir(tmp_path).directories}
    assert len(directories) > 2
    assert directories <= set(walked)


def test_index_snapshot_and_checkpoint_show_their_entries() -> None:
    async def index(driver: Driver) -> None:
        assert driver.browser.place.heading.split() == ["relative_offset", "position"]
        assert driver.row.split()[0].isdigit()
        await driver.press("end")
        assert driver.browser.rows.cursor == driver.browser.place.count - 1

    drive(SAMPLE / "00000000000000203000.index", index)

    async def checkpoint(driver: Driver) -> None:
        await driver.press("down", "down")
        assert driver.row == "zstd 0 571"
        assert driver.fields()[0].startswith("line 3")

    drive(RELEASE / "recovery-point-offset-checkpoint", checkpoint)


def test_every_golden_damage_is_said_in_red_as_verify_finds_it() -> None:
    async def find(driver: Driver) -> None:
        await driver.press("d")
        assert driver.red_rows() or driver.said == "no damage after this place"

    for directory in some(sorted((golden.ROOT / "damaged").iterdir())[::17], 2):
        drive(directory, find)


def test_an_offset_in_the_remote_tier_is_said_to_be_there_as_lookup_says(tmp_path: Path) -> None:
    async def find(driver: Driver) -> None:
        await driver.answer("o", "29")
        assert driver.said.startswith("offset 29: it is in the remote tier: local from 30; ")
        assert driver.row.startswith("30 ")

    drive(write_partition(tmp_path), find)


def test_keys_help_names_every_key() -> None:
    async def ask(driver: Driver) -> None:
        await driver.press("?")
        assert driver.browser.screen.name is None
        assert len(driver.browser.screen_stack) == 2
        await driver.press("escape")
        assert len(driver.browser.screen_stack) == 1

    drive(SAMPLE, ask)


def test_beginning_of_the_command_line_is_gone_to(orders: Path) -> None:
    async def look(driver: Driver) -> None:
        assert driver.row.startswith("142 ")

    drive(orders / "orders-0", look, first=("offset", "142"))

    async def look_at_position(driver: Driver) -> None:
        assert driver.row.startswith("203100 ")

    drive(SAMPLE / "00000000000000203000.log", look_at_position, first=("position", "5000"))


def test_pane_takes_the_whole_screen_and_gives_it_back() -> None:
    async def zoom(driver: Driver) -> None:
        browser = driver.browser
        widths = []
        for _ in range(3):
            await driver.press("z")
            widths.append(browser.focused.size.width if browser.focused is not None else 0)
            await driver.press("z", "tab")
        assert min(widths) >= 77
        assert browser.rows.size.width < 40

    drive(SAMPLE / "00000000000000203000.log", zoom)


def test_search_that_is_under_way_does_not_hold_up_the_end(tmp_path: Path) -> None:
    one = batch_bytes(NewBatch([NewRecord(None, b"v" * 1000)] * 200, 0))
    log = write_segment(tmp_path / "large-0", [])
    log.write_bytes(b"".join((200 * number).to_bytes(8, "big") + one[8:] for number in range(400)))

    async def search(driver: Driver) -> None:
        await driver.pilot.press("slash", "x", "enter", "q")

    drive(log, search)


def test_stopped_search_says_where(orders: Path) -> None:
    watch = Watch()
    watch.is_stopped = True
    with pytest.raises(NotThereError, match="stopped at position"):
        next_damage(Begin([orders / "orders-0" / "00000000000000000000.log"]), watch)


def test_mouse_does_what_the_keys_do(orders: Path) -> None:
    async def click(driver: Driver) -> None:
        await driver.pilot.double_click("#rows", offset=(3, 1))
        await driver.settle()
        assert driver.way[-1] == "00000000000000000100.log"
        await driver.pilot.click("#fields", offset=(3, 1))
        await driver.settle()
        assert driver.detail.startswith("header.base_offset")
        assert driver.lit == (100).to_bytes(8, "big")

    drive(orders / "orders-0", click)


def test_messages_in_an_old_wrapper_are_its_rows() -> None:
    log = golden.ROOT / "logs" / "0.10.0.1" / "gzip-0" / "00000000000000000247.log"

    async def walk(driver: Driver) -> None:
        await driver.press("enter")
        assert len(driver.rows()) == 5
        assert driver.row.startswith("247 ")

    drive(log, walk)


def test_wrong_answers_are_told_in_a_line(orders: Path) -> None:
    async def answer(driver: Driver) -> None:
        await driver.answer("o", "x")
        assert driver.said == "'x' isn't a number of 0 or more"
        await driver.answer("t", "soon")
        assert driver.said.startswith("'soon' isn't a valid time")
        await driver.answer("/", "/(/")
        assert driver.said.startswith("(: ")
        await driver.answer("o", "999")
        assert "above the log end offset 300" in driver.said
        await driver.press("o", "escape")
        assert driver.way == ["orders-0"]

    drive(orders / "orders-0", answer)


def test_batches_are_written_one_after_another() -> None:
    assert batch_bytes(NewBatch([NewRecord(None, b"x")], 5))[:8] == (5).to_bytes(8, "big")
