"""Keys that are too many to keep are estimated, or given as "at least"."""

import sys
from pathlib import Path

import pytest

from kseg.report import sums as key_sketch
from tests.report.made_disk import DAY_MS, NOW, NOW_MS, build, objects, record, row

KEYS, KEPT = 3000, 200


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a topic with far more keys than are kept, one of them hot."""
    monkeypatch.setattr("kseg.report.gather.MOST_KEYS", KEPT)
    began = NOW_MS - DAY_MS
    keys = ["hot" if number % 4 == 0 else f"key-{number}" for number in range(KEYS)]
    build(tmp_path / "disk" / "wide-0", [record(number, began, key, "v") for number, key in enumerate(keys)])
    return tmp_path


def test_keys_are_estimated_by_the_library(disk: Path) -> None:
    found = objects(disk, "disk", "--now", NOW, "-j", "1")
    words = row(found, "keyCounts", topic="wide")["keys"]
    assert words.startswith("about ")
    assert words.endswith(" (± 1.6 %)")
    count = int(words.split()[1].replace(",", ""))
    assert abs(count - (KEYS * 3 // 4 + 1)) < 0.06 * KEYS
    hot = row(found, "hotKeys", topic="wide", key="key 1")
    assert 0.9 * KEYS / 4 < hot["records"] <= KEYS / 4


def test_keys_are_at_least_so_many_without_the_library(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, key_sketch.LIBRARY, None)
    key_sketch.has_sketches.cache_clear()
    found = objects(disk, "disk", "--now", NOW, "-j", "1")
    key_sketch.has_sketches.cache_clear()
    assert row(found, "keyCounts", topic="wide")["keys"].startswith("at least ")
    notes = [each["text"] for each in found if each["type"] == "note" and each["block"] == "keys"]
    assert any("pip install 'kseg[report]'" in note for note in notes)
