"""Hostile bytes: none reaches the terminal unescaped, and none becomes markup."""

import unicodedata
from pathlib import Path

import pytest

from kseg.browse.bytes import Decoders
from tests import golden
from tests.browse.driving import Driver, drive
from tests.log_files import NewBatch, NewRecord, write_segment

EVIL = "\x1b]0;OWNED\x07\x1b[31m[red]x[/red][@click=app.quit]q[/]\u202egnp.\u2066\x9b2J\r\n\t\x00"
FOUND = golden.ROOT.parent / "tests" / "found"


def is_harmless(text: str) -> bool:
    return all(char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co") for char in text)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    text = EVIL.encode()
    record = NewRecord(text, text, headers=[(EVIL, text), ("[bold]h[/bold]", None)])
    directory = tmp_path / "logs" / "a\x1b[2J[b]t\u202e-0"
    write_segment(directory, [NewBatch([record])])
    (directory / "[red]\x1b]52;c;AAAA\x07.log.txt").write_text("x")
    (tmp_path / "logs" / "meta.properties").write_bytes(b"cluster.id=[red]" + text + b"\n")
    return tmp_path / "logs"


def test_names_keys_values_and_headers_are_escaped(evil: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.answer("v", "string")
        for _ in range(4):
            assert is_harmless(driver.text()), ascii(driver.text())
            await driver.press("down", "up", "enter")
        assert driver.way[-1] == "batch 0"
        assert "OWNED" in driver.text()
        assert "[red]x[/red]" in driver.text()
        for _ in range(30):
            assert is_harmless(driver.text()), ascii(driver.text())
            await driver.press("down")
        await driver.press("c")
        assert is_harmless(driver.browser.clipboard)
        await driver.answer("/", "no [bold]such[/bold] thing")
        assert "[bold]such[/bold]" in driver.said
        await driver.answer("o", "[red]")
        assert "[red]" in driver.said

    drive(evil, walk, size=(200, 50))


def test_line_of_a_properties_file_is_escaped(evil: Path) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("end", "enter", "enter")
        assert "[red]" in driver.text()
        assert is_harmless(driver.text())

    drive(evil, walk)


@pytest.mark.parametrize(
    "path", sorted(FOUND.rglob("*.log"))[:40] or [None], ids=lambda path: "" if path is None else path.parent.name
)
def test_finds_of_fuzzing_are_walked_through(path: Path | None) -> None:
    async def walk(driver: Driver) -> None:
        await driver.press("d", "enter", "end", "enter", "tab", "end", "home", "c", "tab", "down")
        assert is_harmless(driver.text())

    assert path is not None
    drive(path, walk, decoders=Decoders())
