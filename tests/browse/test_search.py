"""`/`, `n` and `N`: names of topics, and text in keys, values and headers."""

from pathlib import Path

import pytest

from kseg.browse.search import Begin, NotThereError, Sought, Watch, next_match, previous_match
from tests.browse.driving import Driver, drive
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Topics of two segments each, 20 records in a segment; every seventh has a header."""
    for topic in ("orders", "payments", "shipments"):
        for base in (0, 20):
            records = [
                NewRecord(f"Key-{offset}".encode(), f"{topic} {offset}".encode(), headers=_headers(offset))
                for offset in range(base, base + 20)
            ]
            batches = [NewBatch(records[at : at + 5], base + at) for at in range(0, 20, 5)]
            write_segment(tmp_path / f"{topic}-0", batches, base)
    return tmp_path


def _headers(offset: int) -> list[tuple[str, bytes | None]]:
    return [("Trace-Id", b"seven"), ("none", None)] if offset % 7 == 0 else []


def offset_of(driver: Driver) -> int:
    return int(driver.row.split()[0])


def test_names_of_topics_are_found_from_the_cursor_and_round_the_end(disk: Path) -> None:
    async def search(driver: Driver) -> None:
        await driver.answer("/", "MENTS")
        assert "no match" in driver.said  # capitals count, and no record has them
        await driver.answer("/", "ments")
        assert driver.row.startswith("payments")
        await driver.press("n")
        assert driver.row.startswith("shipments")
        await driver.press("n")
        assert driver.row.startswith("payments")
        await driver.press("N")
        assert driver.row.startswith("shipments")

    drive(disk, search)


def test_records_are_searched_on_and_back_over_segments(disk: Path) -> None:
    async def search(driver: Driver) -> None:
        await driver.answer("/", "trace-id")
        found = [offset_of(driver)]
        for _ in range(5):
            await driver.press("n")
            found.append(offset_of(driver))
        assert found == [0, 7, 14, 21, 28, 35]
        await driver.press("n")
        assert driver.said == "no match for 'trace-id' after this place"
        for expected in (28, 21, 14, 7, 0):
            await driver.press("N")
            assert offset_of(driver) == expected
        assert driver.way[-2] == "00000000000000000000.log"
        await driver.press("N")
        assert driver.said == "no match for 'trace-id' before this place"

    drive(disk / "orders-0", search)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("key-12", 12),
        ("Key-12", 12),
        ("orders 13", 13),
        ("SEVEN", None),
        ("seven", 0),
        ("/Key-1[23]/", 12),
        ("[1]", None),
    ],
)
def test_text_is_found_in_keys_values_and_headers(disk: Path, text: str, offset: int | None) -> None:
    async def search(driver: Driver) -> None:
        await driver.answer("/", text)
        if offset is None:
            assert driver.said == f"no match for {text!r} after this place"
        else:
            assert offset_of(driver) == offset

    drive(disk / "orders-0", search)


def test_a_search_goes_on_and_back_over_topics(disk: Path) -> None:
    async def search(driver: Driver) -> None:
        await driver.answer("/", "key-39")
        await driver.press("n")
        assert (driver.way[1], offset_of(driver)) == ("payments", 39)
        await driver.press("N")
        assert (driver.way[1], offset_of(driver)) == ("orders", 39)
        await driver.press("N")
        assert driver.said == "no match for 'key-39' before this place"

    drive(disk, search)


def test_long_log_is_searched_back_by_its_index(tmp_path: Path) -> None:
    one = batch_bytes(NewBatch([NewRecord(b"k", b"v" * 100_000)], 0))
    other = batch_bytes(NewBatch([NewRecord(b"k", b"needle")], 0))
    log = write_segment(tmp_path / "large-0", [])
    with log.open("wb") as file, log.with_suffix(".index").open("wb") as index:
        for offset in range(60):
            if offset:
                index.write(offset.to_bytes(4, "big") + file.tell().to_bytes(4, "big"))
            file.write(offset.to_bytes(8, "big") + (other if offset in (3, 40) else one)[8:])
    sought = Sought.of("needle")
    end = Begin([log], log.stat().st_size)
    found = previous_match(end, sought, Watch())
    assert found.offset == 40
    assert previous_match(Begin([log], found.position, 40), sought, Watch()).offset == 3
    with pytest.raises(NotThereError):
        previous_match(Begin([log], 0), sought, Watch())


def test_search_that_is_stopped_says_where(disk: Path) -> None:
    watch = Watch()
    watch.is_stopped = True
    logs = [disk / "orders-0" / "00000000000000000000.log"]
    for search in (next_match, previous_match):
        with pytest.raises(NotThereError, match="stopped at position"):
            search(Begin(logs, 1 << 20 if search is previous_match else 0), Sought.of("x"), watch)
