"""Segments stored by Aiven's plugin are read in place, with any of its transformations."""

import json
from itertools import product
from operator import itemgetter
from pathlib import Path

import pytest

from tests import golden
from tests.loops import for_each, some_of_each
from tests.run import Run, kseg
from tests.tiered import aiven_objects
from tests.tiered.aiven_objects import Plugin

SAMPLES = golden.ROOT / "tiered" / "bucket"
KEY = ["--private-key", f"key1={golden.ROOT / 'tiered' / 'private.pem'}"]
ORIGINALS = {
    0: "logs/2.4.1/plain-big-0/00000000000000000000.log",
    164: "logs/3.9.1-tiered-remote/kafka-tiered-storage/tier-txn-0-2FKqzgGrRKKf_aq0IeFMBQ/"
    "00000000000000000164-9sCuaTRcSwmBVp6n1AjR0g.log",
}
PLUGINS = {
    "plain": Plugin(),
    "zstd": Plugin(is_compressing=True),
    "aes": Plugin(key=1),
    "zstd-aes": Plugin(is_compressing=True, key=1),
    "heuristic": Plugin(is_compressing=True, has_heuristic=True),
    "one-chunk": Plugin(chunk_size=4 << 20),
    "one-chunk-zstd-aes": Plugin(chunk_size=4 << 20, is_compressing=True, key=1),
    "second-key": Plugin(key=2, is_compressing=True),
    "prefix-without-slash": Plugin(prefix="a/b/backup-"),
    "no-prefix": Plugin(prefix=""),
}


def records(run: Run) -> list[dict[str, object]]:
    """Return the records in the output of `dump -o json`, without their positions."""
    found = [json.loads(line) for line in run.stdout.splitlines()]
    return [
        {name: value for name, value in each.items() if name not in ("file", "topic", "partition")} for each in found
    ]


@pytest.mark.parametrize("topic", ["plain", "zstd", "aes"])
def test_samples_of_the_plugin_itself_are_their_segments_byte_for_byte(topic: str, tmp_path: Path) -> None:
    ran = kseg(["salvage", str(SAMPLES), "--topic", topic, *KEY, "--to", "saved"], tmp_path)
    assert b"lost: 3 to 163" in ran.stdout, "they are two segments of different topics"
    for base, original in ORIGINALS.items():
        saved = tmp_path / "saved" / f"{topic}-0" / f"{base:020}.log"
        assert saved.read_bytes() == (golden.ROOT / original).read_bytes()
    content = (tmp_path / "saved" / f"{topic}-0" / "partition.metadata").read_text()
    assert content.split("topic_id: ")[1].strip() == topic_id(topic)


def topic_id(topic: str) -> str:
    folder = next(each.name for each in (SAMPLES / "prod").iterdir() if each.name.startswith(f"{topic}-AAAA"))
    return folder.removeprefix(f"{topic}-")


@for_each(
    "plugin, source",
    some_of_each(
        product(PLUGINS, ["docs/test-1-0", "logs/4.3.1/compacted-txn-0", "logs/2.0.1/compacted-0"]), itemgetter(0)
    ),
    ids=" of ".join,
)
def test_objects_are_read_as_the_partition_that_was_stored(
    plugin: str, source: str, restored: Path, tmp_path: Path
) -> None:
    bucket = tmp_path / "bucket"
    topic = Path(source).name.removesuffix("-0")
    aiven_objects.store(bucket, PLUGINS[plugin], topic, aiven_objects.segments_of(restored / source))
    keys = [f"--private-key=key{n}={aiven_objects.private_key_file(tmp_path, n)}" for n in (1, 2)]
    dumped = kseg(["dump", "bucket", "-o", "json", *keys], tmp_path)
    assert dumped.stderr == b""
    there = kseg(["dump", source, "-o", "json"], restored)
    assert [each for each in records(dumped) if each["type"] == "record"] == [
        each for each in records(there) if each["type"] == "record"
    ]
    saved = kseg(["salvage", "bucket", *keys, "--to", "saved"], tmp_path)
    assert saved.stderr == b""
    for log in sorted((restored / source).glob("*.log")):
        content = (tmp_path / "saved" / f"{topic}-0" / log.name).read_bytes()
        assert content == log.read_bytes()


def test_segments_of_one_partition_may_have_keys_of_their_own(
    restored: Path, unpacked_into: Path, tmp_path: Path
) -> None:
    """This happens after a change of the active key pair."""
    segments = aiven_objects.segments_of(restored / "logs/2.0.1/compacted-0")
    for number, segment in enumerate(segments):
        aiven_objects.store(tmp_path / "bucket", Plugin(key=number % 2 + 1), "compacted", [segment])
    keys = [f"--private-key=key{n}={aiven_objects.private_key_file(tmp_path, n)}" for n in (1, 2)]
    listed = kseg(["ls", "bucket", "--by", "segment", "-o", "json"], tmp_path).stdout.splitlines()[:-1]
    assert [json.loads(line)["keyId"] for line in listed] == ["key1", "key2", "key1"]
    all_of_them = kseg(["dump", "bucket", "-o", "json", "--only", "records", "-q", *keys], tmp_path)
    there = kseg(["dump", "logs/2.0.1/compacted-0", "-o", "json", "--only", "records", "-q"], restored)
    assert (all_of_them.status, records(all_of_them)) == (0, records(there))
    ran = kseg(["dump", "bucket", "-o", "json", "--only", "records", "-q", keys[0]], tmp_path)
    offsets = [each["offset"] for each in records(ran)]
    assert offsets == [each["offset"] for each in records(there) if not 421 <= int(str(each["offset"])) < 596]
    assert (ran.status, ran.stderr.count(b"is encrypted with the key key2")) == (1, 1)


def test_keys_are_taken_as_the_command_line_has_them(tmp_path: Path) -> None:
    ran = kseg(["ls", str(SAMPLES), "--private-key", "key1"], tmp_path)
    assert ran.status == 2
    assert b"'key1' isn't ID=FILE, such as key1=private.pem" in ran.stderr
