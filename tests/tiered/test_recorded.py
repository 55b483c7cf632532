"""Tiers compared with `__remote_log_metadata`, and read through other readers: servers, Python."""

import base64
import json
import uuid
from pathlib import Path

import pytest

import kseg as library
from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg
from tests.serve.reading import by_librdkafka, on_disk
from tests.serve.running import serving
from tests.tiered import aiven_objects
from tests.tiered.aiven_objects import TOPIC_ID, Plugin
from tests.tiered.test_overlaps import make_segments, upload_in_turn

STARTED, COPIED, DELETING, DELETED = range(4)
HOUR = 3_600_000
NOW = 1_700_000_000_000


def write_metadata(log_dir: Path, *segments: tuple[str, int, int, int]) -> None:
    """Write segments by id, base offset, state, and the time of its last change."""
    written = []
    for segment_id, base, state, changed in segments:
        owner = {"name": "orders", "id": TOPIC_ID, "partition": 0}
        own = {"topicIdPartition": owner, "id": segment_id}
        begun = {
            "remoteLogSegmentId": own,
            "startOffset": base,
            "endOffset": base + 9,
            "eventTimestampMs": changed,
            "segmentLeaderEpochs": [{"leaderEpoch": 0, "offset": base}],
            "remoteLogSegmentState": STARTED,
        }
        written.append(b"\1\0\0" + build_message(message_schema("RemoteLogSegmentMetadataRecord"), 0, begun))
        if state != STARTED:
            update = {"remoteLogSegmentId": own, "eventTimestampMs": changed, "remoteLogSegmentState": state}
            written.append(b"\1\1\0" + build_message(message_schema("RemoteLogSegmentMetadataUpdateRecord"), 0, update))
    write_segment(log_dir / "__remote_log_metadata-3", [NewBatch([NewRecord(None, value) for value in written])])


def new_id(number: int) -> str:
    return base64.urlsafe_b64encode(uuid.UUID(int=number).bytes)[:22].decode()


def test_tier_is_compared_with_what_was_recorded(tmp_path: Path) -> None:
    segments = upload_in_turn(make_segments(tmp_path, "a", base=0, count=200, epochs={0: 0}))
    aiven_objects.store(tmp_path / "bucket", Plugin(), "orders", segments)
    make_segments(tmp_path, "local", base=200, count=20, epochs={0: 0})
    known = [(each.segment_id, each.base, COPIED, NOW) for each in segments]
    known[1] = (*known[1][:2], DELETED, NOW)
    known[2] = (*known[2][:2], DELETING, NOW - 2 * HOUR)
    lost = [(new_id(1), 500, COPIED, NOW), (new_id(2), 510, STARTED, NOW - 3 * HOUR), (new_id(3), 520, STARTED, NOW)]
    write_metadata(tmp_path / "local", *known[:-1], *lost)
    for arguments in (["local", "--tier", "bucket"], ["bucket", "local"]):
        ran = kseg(["verify", *arguments, "--topic", "orders", "-o", "json"], tmp_path)
        found = [json.loads(line) for line in ran.stdout.splitlines()]
        assert sorted((each["id"], each["firstOffset"]) for each in found if each["type"] == "finding") == [
            ("remote-deleted", segments[1].base),
            ("remote-lost", 500),
            ("remote-started", segments[2].base),
            ("remote-started", 510),
            ("remote-unknown", segments[-1].base),
        ]


@pytest.mark.parametrize("finding", ["remote-lost", "remote-manifest", "remote-unfinished", "remote-overlap"])
def test_findings_of_tiers_are_explained(finding: str, tmp_path: Path) -> None:
    ran = kseg(["verify", "--explain", finding], tmp_path)
    assert ran.status == 0
    assert ran.stdout.startswith(f"{finding} (".encode())


def test_missing_segment_is_a_gap(tmp_path: Path) -> None:
    segments = upload_in_turn(make_segments(tmp_path, "a", base=0, count=200, epochs={0: 0}))
    aiven_objects.store(tmp_path / "bucket", Plugin(key=1), "orders", [segments[0], *segments[2:]])
    missing = (segments[1].base, segments[1].end)
    ran = kseg(["verify", "bucket", "-o", "json"], tmp_path)  # without the key: from the manifests
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    gaps = [(each["firstOffset"], each["lastOffset"]) for each in found if each.get("id") == "remote-gap"]
    assert (ran.status, gaps) == (1, [missing])


@pytest.mark.parametrize("plugin", [Plugin(), Plugin(4096, is_compressing=True, key=1)])
def test_clients_get_what_was_stored(plugin: Plugin, restored: Path, tmp_path: Path) -> None:
    from kseg.cluster.tier_inputs import RemoteLogs

    source = restored / "logs" / "4.3.1" / "zstd-0"
    aiven_objects.store(tmp_path / "b", plugin, "zstd", aiven_objects.segments_of(source))
    keys = {"key1": aiven_objects.private_key_file(tmp_path)}
    with RemoteLogs(keys, print) as logs, serving(logs.place(str(tmp_path / "b"))) as running:
        got = by_librdkafka(running)
    assert [*got.values()] == [on_disk(source)]


def test_notebooks_read_tiers_too(unpacked_into: Path) -> None:
    keys = {"key1": golden.ROOT / "tiered" / "private.pem"}
    with library.open(golden.ROOT / "tiered" / "bucket", topic="aes", private_keys=keys) as tier:
        assert [record.offset for record in tier.records()][-1] == 298


def test_exports_have_the_records_of_the_segments(tmp_path: Path) -> None:
    import pyarrow.dataset

    segments = upload_in_turn(make_segments(tmp_path, "a", base=0, count=200, epochs={0: 0}))
    aiven_objects.store(tmp_path / "bucket", Plugin(is_compressing=True, key=1), "orders", segments)
    key = f"--private-key=key1={aiven_objects.private_key_file(tmp_path)}"
    for source, target in (("bucket", "there"), ("a", "here")):
        ran = kseg(["export", source, target, key, "-q"], tmp_path)
        assert (ran.status, ran.stderr) == (0, b"")
    here, there = (
        pyarrow.dataset.dataset(tmp_path / name, exclude_invalid_files=True).to_table(["offset", "key", "value"])
        for name in ("here", "there")
    )
    assert there.equals(here)
    assert there.num_rows == 200
