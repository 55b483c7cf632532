"""Little of a bucket of any size is in memory, and a forked process can read it too."""

from pathlib import Path

import pytest

from tests.run import kseg, run_bounded
from tests.tiered import aiven_objects
from tests.tiered.aiven_objects import Plugin
from tests.tiered.test_overlaps import make_segments, upload_in_turn

PLUGINS = [Plugin(1 << 20), Plugin(1 << 20, is_compressing=True, key=1)]
COUNT, SIZE = 220, 1 << 20


@pytest.mark.parametrize("plugin", PLUGINS)
def test_memory_does_not_grow_with_the_bucket(plugin: Plugin, tmp_path: Path) -> None:
    """Segments of 1 MiB each, more than are kept."""
    segment = make_segments(tmp_path, "a", base=0, count=10, epochs={0: 0})[0]
    (log,) = (tmp_path / "a").rglob("*.log")
    content = log.read_bytes() + bytes(SIZE)  # zeros, as fast to read as to write; they damage the segment
    for number in range(COUNT):
        partition = segment.uploaded_again(number, files={**segment.files, "log": content})
        aiven_objects.store(tmp_path / "b", plugin, f"orders-{number}", [partition])
    key = f"--private-key=key1={aiven_objects.private_key_file(tmp_path)}"
    ran = run_bounded(
        ["dump", "b", key, "-o", "json", "--only", "records", "-q"], tmp_path, seconds=60, memory=420 << 20
    )
    assert ran.status == 1
    assert ran.stdout.count(b"\n") == COUNT * 10
    assert ran.stderr.count(b'"kind":"zero-tail"') == COUNT


def test_processes_share_a_bucket(tmp_path: Path) -> None:
    segments = upload_in_turn(make_segments(tmp_path, "a", base=0, count=400, epochs={0: 0}))
    for topic in ("orders", "bills", "stock"):
        aiven_objects.store(tmp_path / "b", Plugin(is_compressing=True, key=1), topic, segments)
    key = f"--private-key=key1={aiven_objects.private_key_file(tmp_path)}"
    for command in (
        ["verify", "b", "-q"],
        ["ls", "b", "--deep", "-o", "json", "--now", "2026-11-22"],
        ["salvage", "b", "--dry-run", "-o", "json"],
    ):
        alone = kseg([*command, key, "-j", "1"], tmp_path)
        assert alone.status == 0
        assert kseg([*command, key, "-j", "3"], tmp_path) == alone
