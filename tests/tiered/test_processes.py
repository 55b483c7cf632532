"""Several processes read a tier as one does: each knows what the files represent."""

import json
from pathlib import Path

import pytest

from kseg.system.shared_work import WORTH_PROCESSES
from tests.run import kseg, process
from tests.tiered import aiven_objects
from tests.tiered.aiven_objects import Plugin

COUNT, SIZE = 20, 1 << 20
COMMANDS = {
    "verify": ["verify", "-o", "json"],
    "doctor": ["doctor", "-o", "json", "--now", "2026-11-22"],
    "ls": ["ls", "--deep", "-o", "json", "--now", "2026-11-22"],
    "reindex": ["reindex", "--dry-run", "-o", "json"],
    "diff": ["diff", "-o", "json"],
}


@pytest.fixture(scope="module")
def tier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two partitions, large enough for two processes."""
    directory = tmp_path_factory.mktemp("processes")
    assert 2 * COUNT * SIZE > WORTH_PROCESSES
    lines = (json.dumps({"key": f"{number}", "value": "x" * SIZE}) for number in range(COUNT))
    (directory / "lines.jsonl").write_text("\n".join(lines))
    for partition in range(2):
        to = f"local/orders-{partition}"
        built = kseg(
            ["build", "lines.jsonl", "--to", to, "--batch-records", "1", "--segment-bytes", "5000000"], directory
        )
        assert built.status == 0, built.stderr
        segments = aiven_objects.segments_of(directory / to)
        aiven_objects.store(directory / "tier", Plugin(chunk_size=SIZE), "orders", segments, partition=partition)
    return directory


def test_an_export_by_two_processes_has_all_records(tier: Path, tmp_path: Path) -> None:
    ran = process(["export", "tier", str(tmp_path / "out"), "-j", "2", "-o", "json"], tier)
    assert ran.status == 0, ran.stdout
    report = json.loads((tmp_path / "out" / "_kseg" / "report.json").read_bytes())
    assert [(each["recordsOut"], each["lost"], each["copies"]) for each in report["partitions"]] == [
        (COUNT, 0, [f"tier/orders-{partition}"]) for partition in range(2)
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_two_processes_say_the_same_as_one(name: str, tier: Path) -> None:
    one, two = (process([*COMMANDS[name], "-j", count, "tier"], tier) for count in ("1", "2"))
    assert two == one
    assert b"zero" not in two.stdout
