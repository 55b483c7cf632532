"""Special times of a log whose start is in a remote tier, in `kseg serve` and `kseg lookup`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.wire import answer_of
from tests.loops import for_each
from tests.run import kseg
from tests.serve.running import Running, joined_serving
from tests.tiered import aiven_objects
from tests.tiered.aiven_objects import Plugin
from tests.tiered.test_overlaps import make_segments, upload_in_turn

LIST_OFFSETS, UNSUPPORTED_VERSION = 2, 35
T0 = 1_700_000_000_000


@pytest.fixture
def joined_tier(tmp_path: Path) -> Path:
    """Return a tier of 0 to 99, joined with a broker's disk of 70 to 169."""
    remote = make_segments(tmp_path, "remote", base=0, count=100, epochs={0: 0})
    make_segments(tmp_path, "local", base=70, count=100, epochs={0: 0})
    aiven_objects.store(tmp_path / "tier", Plugin(), "orders", upload_in_turn(remote))
    return tmp_path


@pytest.fixture
def running(joined_tier: Path) -> Iterator[Running]:
    with joined_serving(joined_tier / "local", joined_tier / "tier") as running:
        yield running


def list_offsets(running: Running, timestamp: int, version: int = 11) -> tuple[int, int, int]:
    asked = [{"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": timestamp}]
    body = {"replicaId": -1, "timeoutMs": 1000, "topics": [{"name": "orders", "partitions": asked}]}
    (topic,) = answer_of(running.address[1], LIST_OFFSETS, version, body)["topics"]
    (found,) = topic["partitions"]
    return found["errorCode"], found["offset"], found["timestamp"]


OFFSETS = {
    "latest": (-1, 170),
    "earliest": (-2, 0),
    "max-timestamp": (-3, 169),
    "earliest-local": (-4, 70),
    "latest-tiered": (-5, 99),
    "earliest-pending-upload": (-6, 100),
}


@for_each("name", [*OFFSETS])
def test_serve_and_lookup_tell_what_is_on_the_disk_and_what_was_copied(
    name: str, running: Running, joined_tier: Path
) -> None:
    code, offset = OFFSETS[name]
    assert list_offsets(running, code)[:2] == (0, offset)
    for time in (name, str(code)):
        command = ["lookup", "local", "--tier", "tier", f"--timestamp={time}", "-o", "json"]
        assert json.loads(kseg(command, joined_tier).stdout)["offset"] == offset


def test_the_largest_time_is_that_of_the_disk_alone(tmp_path: Path) -> None:
    """Brokers don't look into the tier for it, either."""
    remote = make_segments(tmp_path, "remote", base=0, count=100, epochs={0: 0})
    lines = [{"key": "k", "value": "v", "timestamp": T0 + number % 40} for number in range(100, 150)]
    (tmp_path / "local.jsonl").write_text("\n".join(map(json.dumps, lines)))
    built = kseg(["build", "local.jsonl", "--to", "local/orders-0", "--base-offset", "100"], tmp_path)
    assert built.status == 0, built.stderr
    aiven_objects.store(tmp_path / "tier", Plugin(), "orders", upload_in_turn(remote))
    with joined_serving(tmp_path / "local", tmp_path / "tier") as running:
        assert list_offsets(running, -3) == (0, 119, T0 + 39)
        assert list_offsets(running, T0 + 98) == (0, 98, T0 + 98)


@for_each("timestamp, since", [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12)])
def test_a_special_time_needs_the_version_that_has_it(timestamp: int, since: int, running: Running) -> None:
    refused = (UNSUPPORTED_VERSION, -1, -1)
    answers = {version: list_offsets(running, timestamp, version) for version in range(1, 12)}
    assert [version for version, answer in answers.items() if answer == refused] == [*range(1, since)]
